"""Written text in, samples out: text, voice packs and the engines that run them."""

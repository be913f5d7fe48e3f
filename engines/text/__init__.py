"""Written text to the phonemes that a voice was trained on."""

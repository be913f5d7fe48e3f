"""Numbers, dates, times, money and units in words: German, Spanish, French, Italian, Portuguese and Chinese."""

"""Written text as a person would say it: numbers, dates, money, addresses and signs in words."""

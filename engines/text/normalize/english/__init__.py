"""English written forms in words."""

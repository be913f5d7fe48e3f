"""Sensors, the governor and its modes. A leaf: it knows nothing of audio."""

"""Reason codes of MQTT 5 that are acted upon; paho gives the refusals of 3.1.1 the same numbers."""

from __future__ import annotations

from typing import Final

WITH_WILL: Final = 4
"""MQTT 5, 3.14.2.1: 'Disconnect with Will Message'."""

UNSPECIFIED: Final = 128
"""MQTT 5, 3.14.2.1: 'Unspecified error'. paho's own word for a connection that was lost without one of the broker's."""

UNSUPPORTED_VERSION: Final = 132
"""MQTT 5, 3.2.2.2: 'Unsupported Protocol Version'."""

TAKEN_OVER: Final = 142
"""MQTT 5, 3.14.2.1: 'Session taken over'."""

FAILURE: Final = 128
"""MQTT reason codes from here on are failures."""

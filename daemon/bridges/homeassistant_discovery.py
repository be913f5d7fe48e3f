"""The one payload by which Home Assistant knows a device and its entities (MQTT device discovery, 2024.11 and later).

https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from daemon.command_fields import LARGEST_RATE, LARGEST_VOLUME, SMALLEST_RATE
from daemon.topics import Topics

AS_CONFIGURED: Final = "as configured"
"""The option that stands for no voice in particular. Names of voices have no space."""

_EVENT_TYPES: Final = (
    "started",
    "interrupted",
    "resumed",
    "finished",
    "cancelled",
    "expired",
    "superseded",
    "failed",
    "rejected",
)

_AVAILABLE: Final = "{{ 'online' if value_json.state == 'online' else 'offline' }}"


def object_id(topic_prefix: str, device: str) -> str:
    """Give the name of a device in discovery topics and identifiers, which take few characters."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{topic_prefix}_{device}")


def discovery(
    topics: Topics, state_topic: str, *, prefix: str, device: str, version: str, voices: Sequence[str]
) -> dict[str, Any]:
    """Make the payload. `state_topic` is where `homeassistant.State` is published."""
    name = object_id(prefix, device)
    entities = {
        **_speech(topics),
        **_controls(topics, voices),
        **_states(topics, state_topic),
    }
    for key, entity in entities.items():
        entity["unique_id"] = f"{name}_{key}"
        entity.setdefault("qos", 1)
    return {
        "device": {"identifiers": [name], "name": device, "manufacturer": "speakd", "sw_version": version},
        "origin": {"name": "speakd", "sw_version": version},
        "availability_topic": topics.status,
        "availability_template": _AVAILABLE,
        "components": entities,
    }


def _speech(topics: Topics) -> dict[str, dict[str, Any]]:
    def notify(name: str, priority: str, icon: str) -> dict[str, Any]:
        template = f"{{{{ {{'text': value, 'priority': '{priority}'}} | to_json }}}}"
        return {
            "platform": "notify",
            "name": name,
            "icon": icon,
            "command_topic": topics.speak,
            "command_template": template,
        }

    return {
        "say": notify("Say", "message", "mdi:text-to-speech"),
        "alert": notify("Alert", "critical", "mdi:bullhorn"),
    }


def _controls(topics: Topics, voices: Sequence[str]) -> dict[str, dict[str, Any]]:
    def button(name: str, topic: str, icon: str, payload: str = "{}") -> dict[str, Any]:
        return {
            "platform": "button",
            "name": name,
            "icon": icon,
            "command_topic": topics.of(topic),
            "payload_press": payload,
        }

    return {
        "volume": {
            "platform": "number",
            "name": "Volume",
            "icon": "mdi:volume-high",
            "command_topic": topics.of("volume/set"),
            "command_template": "{{ value / 100 }}",
            "state_topic": topics.settings,
            "value_template": "{{ (value_json.volume * 100) | round(0) | int }}",
            "min": 0,
            "max": round(LARGEST_VOLUME * 100),
            "step": 5,
            "unit_of_measurement": "%",
        },
        "rate": {
            "platform": "number",
            "name": "Speed",
            "icon": "mdi:speedometer",
            "entity_category": "config",
            "command_topic": topics.of("config/set"),
            "command_template": "{{ {'rate': value / 100} | to_json }}",
            "state_topic": topics.settings,
            "value_template": "{{ (value_json.rate * 100) | round(0) | int }}",
            "min": round(SMALLEST_RATE * 100),
            "max": round(LARGEST_RATE * 100),
            "step": 5,
            "unit_of_measurement": "%",
        },
        "mute": {
            "platform": "switch",
            "name": "Mute",
            "icon": "mdi:volume-off",
            "command_topic": topics.of("mute/set"),
            "payload_on": "true",
            "payload_off": "false",
            "state_topic": topics.settings,
            "value_template": "{{ value_json.muted | lower }}",
            "state_on": "true",
            "state_off": "false",
        },
        "voice": {
            "platform": "select",
            "name": "Voice",
            "icon": "mdi:account-voice",
            "entity_category": "config",
            "command_topic": topics.of("voice/set"),
            "command_template": f"{{{{ {{'voice': '' if value == '{AS_CONFIGURED}' else value}} | to_json }}}}",
            "state_topic": topics.settings,
            "value_template": f"{{{{ value_json.voice or '{AS_CONFIGURED}' }}}}",
            "options": [AS_CONFIGURED, *voices],
        },
        "pause": button("Pause", "pause", "mdi:pause"),
        "resume": button("Resume", "resume", "mdi:play"),
        "skip": button("Skip", "skip", "mdi:skip-next"),
        "stop": button("Stop all", "cancel", "mdi:stop", '{"all": true}'),
    }


def _states(topics: Topics, state_topic: str) -> dict[str, dict[str, Any]]:
    return {
        "speaking": {
            "platform": "binary_sensor",
            "name": "Speaking",
            "device_class": "sound",
            "state_topic": state_topic,
            "value_template": "{{ 'ON' if value_json.speaking else 'OFF' }}",
        },
        "paused": {
            "platform": "binary_sensor",
            "name": "Paused",
            "icon": "mdi:pause-circle",
            "state_topic": topics.settings,
            "value_template": "{{ 'ON' if value_json.paused else 'OFF' }}",
        },
        "problem": {
            "platform": "binary_sensor",
            "name": "Problem",
            "device_class": "problem",
            "entity_category": "diagnostic",
            "state_topic": topics.status,
            "value_template": "{{ 'OFF' if value_json.audio | default('ok') == 'ok' "
            "and value_json.connection | default('ok') == 'ok' else 'ON' }}",
            "json_attributes_topic": topics.status,
        },
        "ttfa": {
            "platform": "sensor",
            "name": "Time to first audio",
            "icon": "mdi:timer-outline",
            "entity_category": "diagnostic",
            "state_class": "measurement",
            "unit_of_measurement": "ms",
            "state_topic": state_topic,
            "value_template": "{{ value_json.ttfa_ms }}",
        },
        "voice_in_use": {
            "platform": "sensor",
            "name": "Last voice",
            "icon": "mdi:account-voice",
            "entity_category": "diagnostic",
            "state_topic": state_topic,
            "value_template": "{{ value_json.voice }}",
        },
        "event": {
            "platform": "event",
            "name": "Speech",
            "icon": "mdi:message-text-clock",
            "state_topic": topics.event,
            "event_types": list(_EVENT_TYPES),
            "value_template": f"{{% if value_json.event in {list(_EVENT_TYPES)} %}}"
            "{{ dict(value_json, event_type=value_json.event) | to_json }}{% endif %}",
        },
    }

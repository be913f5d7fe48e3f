"""The discovery payload, held against what Home Assistant's MQTT integration requires of each platform."""

from __future__ import annotations

import json
from typing import Any

import jinja2
import pytest

from daemon.bridges.homeassistant_discovery import AS_CONFIGURED, discovery, object_id
from daemon.commands import COMMANDS
from daemon.events import Failed, Finished, Settings, Started, Status, Word
from daemon.payloads import parse_command
from daemon.topics import Topics

TOPICS = Topics("speakd", "kiosk-7")
STATE = "speakd/kiosk-7/homeassistant"

REQUIRED = {
    "notify": {"command_topic"},
    "button": {"command_topic"},
    "number": {"command_topic"},
    "switch": {"command_topic"},
    "select": {"command_topic", "options"},
    "sensor": {"state_topic"},
    "binary_sensor": {"state_topic"},
    "event": {"state_topic", "event_types"},
}
"""From the documentation of each platform, home-assistant.io/integrations/<platform>.mqtt."""


@pytest.fixture
def payload() -> dict[str, Any]:
    made = discovery(TOPICS, STATE, prefix="speakd", device="kiosk-7", version="1.2.3", voices=["joe", "thorsten"])
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def entity(payload: dict[str, Any], key: str) -> dict[str, Any]:
    return payload["components"][key]  # type: ignore[no-any-return]


def render(template: str, **variables: object) -> str:
    """Render as Home Assistant does; its filter `to_json` is not jinja's own."""
    environment = jinja2.Environment(autoescape=False)  # noqa: S701  no HTML
    environment.filters["to_json"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(template).render(**variables)


def shown(payload: dict[str, Any], key: str, message: str) -> str:
    return render(entity(payload, key)["value_template"], value=message, value_json=json.loads(message))


def sent(payload: dict[str, Any], key: str, value: object) -> Any:  # noqa: ANN401  whatever command it is
    """Give the command that a service call leads to, as the daemon reads it."""
    one = entity(payload, key)
    text = render(one["command_template"], value=value) if "command_template" in one else str(value)
    kind = TOPICS.command(one["command_topic"])
    assert kind is not None
    return parse_command(kind, text.encode(), max_text_chars=4000)


def test_device_origin_and_entities_are_complete(payload: dict[str, Any]) -> None:
    assert payload["device"]["identifiers"] == ["speakd_kiosk-7"]
    assert payload["device"]["name"] == "kiosk-7"
    assert payload["origin"] == {"name": "speakd", "sw_version": "1.2.3"}
    entities = payload["components"].values()
    for one in entities:
        assert REQUIRED[one["platform"]] <= one.keys()
        assert one["name"]
    assert len({one["unique_id"] for one in entities}) == len(entities)
    assert {one["platform"] for one in entities} == REQUIRED.keys()


def test_every_command_topic_is_one_of_ours(payload: dict[str, Any]) -> None:
    for one in payload["components"].values():
        if "command_topic" in one:
            assert one["command_topic"].removeprefix("speakd/kiosk-7/") in COMMANDS


@pytest.mark.parametrize(("state", "expected"), [("online", "online"), ("stopped", "offline"), ("offline", "offline")])
def test_available_only_while_online(payload: dict[str, Any], state: Any, expected: str) -> None:  # noqa: ANN401
    assert payload["availability_topic"] == "speakd/kiosk-7/status"
    status = json.loads(Status(state=state, version="1").to_json())
    assert render(payload["availability_template"], value_json=status) == expected


@pytest.mark.parametrize("text", ['He said "hi" \\ {{ 7 * 6 }}', "Grüße 🙂\nzweite Zeile", "42", "null", "{}"])
def test_any_text_is_said_as_it_is(payload: dict[str, Any], text: str) -> None:
    assert sent(payload, "say", text).text == text
    assert sent(payload, "alert", text).priority.value == "critical"


def test_controls_make_commands(payload: dict[str, Any]) -> None:
    assert sent(payload, "volume", 85).volume == 0.85
    assert sent(payload, "rate", 120).rate == 1.2
    assert sent(payload, "mute", entity(payload, "mute")["payload_on"]).muted is True
    assert sent(payload, "mute", entity(payload, "mute")["payload_off"]).muted is False
    assert sent(payload, "voice", "thorsten").voice == "thorsten"
    assert sent(payload, "voice", AS_CONFIGURED).voice == ""
    assert sent(payload, "stop", entity(payload, "stop")["payload_press"]).all is True
    for key in ("pause", "resume", "skip"):
        assert sent(payload, key, entity(payload, key)["payload_press"]).request


def test_settings_are_shown(payload: dict[str, Any]) -> None:
    settings = Settings(volume=0.35, muted=True, voice="joe", rate=1.1, paused=True).to_json()
    shown_now = {key: shown(payload, key, settings) for key in ("volume", "rate", "mute", "voice", "paused")}
    assert shown_now == {"volume": "35", "rate": "110", "mute": "true", "voice": "joe", "paused": "ON"}
    assert entity(payload, "mute")["state_on"] == "true"
    assert shown(payload, "voice", Settings().to_json()) == AS_CONFIGURED
    assert {"joe", "thorsten", AS_CONFIGURED} == set(entity(payload, "voice")["options"])
    for key, low, high in (("volume", 0, 200), ("rate", 50, 200)):
        assert (entity(payload, key)["min"], entity(payload, key)["max"]) == (low, high)


def test_a_problem_is_shown(payload: dict[str, Any]) -> None:
    fine = Status(state="online", version="1", audio="ok", connection="ok")
    assert shown(payload, "problem", fine.to_json()) == "OFF"
    assert shown(payload, "problem", fine.model_copy(update={"audio": "no card"}).to_json()) == "ON"
    assert shown(payload, "problem", Status(state="offline", version="1").to_json()) == "OFF"


def test_events_are_those_that_it_knows(payload: dict[str, Any]) -> None:
    types = entity(payload, "event")["event_types"]
    finished = json.loads(shown(payload, "event", Finished(id="a", audio_s=1.5, total_ms=1600).to_json()))
    assert finished["event_type"] in types
    assert (finished["id"], finished["audio_s"]) == ("a", 1.5)
    failed = json.loads(shown(payload, "event", Failed(id="a", code="audio", reason='it "broke"').to_json()))
    assert failed["reason"] == 'it "broke"'
    assert json.loads(shown(payload, "event", Started(id="a", ttfa_ms=3, output="x").to_json()))["event_type"] in types
    # Home Assistant passes over what is empty.
    assert shown(payload, "event", Word(id="a", index=0, at_s=0).to_json()) == ""


def test_a_devices_name_fits_the_discovery_topic() -> None:
    assert object_id("fleet/eu", "Kiösk 7.local") == "fleet_eu_Ki_sk_7_local"

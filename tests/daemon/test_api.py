from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from simulators.figures import figures

from daemon import cli
from daemon.api import asyncapi, json_schema
from daemon.commands import COMMANDS
from daemon.errors import PayloadError
from daemon.events import (
    Accepted,
    Done,
    Event,
    Failed,
    Finished,
    Interrupted,
    Known,
    QueuedCommand,
    QueueState,
    Rejected,
    Settings,
    Status,
    Synthesized,
    VoiceInfo,
    Voices,
)
from daemon.payloads import parse_command
from daemon.telemetry_messages import Alert, Telemetry
from daemon.topics import Topics

VOICE = VoiceInfo(name="v", language="en-us", speakers=(), family="vits", streaming=True, styles=False)

FOLDER = Path(__file__).parents[2] / "api"

SCHEMAS = json_schema()["$defs"]


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMAS})


def references(value: Any) -> Iterator[str]:  # noqa: ANN401  any JSON
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def resolve(document: Any, reference: str) -> Any:  # noqa: ANN401
    assert reference.startswith("#/")
    for part in reference[2:].split("/"):
        document = document[part]
    return document


@pytest.mark.parametrize(("arguments", "file"), [([], "asyncapi.json"), (["--json-schema"], "schema.json")])
def test_the_committed_copy_is_true(arguments: list[str], file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["api", *arguments]) == 0
    printed = json.loads(capsys.readouterr().out)
    committed = json.loads((FOLDER / file).read_text(encoding="utf-8"))
    assert printed == committed, f"the contract has changed: speakd api {' '.join(arguments)} > api/{file}"


@pytest.mark.parametrize("document", [asyncapi(), json_schema()], ids=["asyncapi", "json schema"])
def test_every_reference_leads_somewhere(document: Any) -> None:  # noqa: ANN401
    found = set(references(document))
    assert found
    for reference in found:
        assert resolve(document, reference)


class TestAsyncApi:
    def test_every_command_and_every_event_is_there(self) -> None:
        document = asyncapi()
        addresses = {channel["address"] for channel in document["channels"].values()}
        topics = Topics("{prefix}", "{scope}")
        assert {topics.of(end) for end in COMMANDS} <= addresses
        told = {message.rpartition("/")[2] for message in references(document["operations"]["tellEvent"]["messages"])}
        assert told == {kind.model_fields["event"].default for kind in get_args(Event)}
        own = Topics("{prefix}", "{device}")
        assert {
            own.event,
            own.status,
            own.settings,
            own.telemetry,
            own.alert,
            own.of("audio/{id}"),
            "{prefix}/render",
        } <= addresses

    def test_operations_name_messages_of_their_channel(self) -> None:
        document = asyncapi()
        for operation in document["operations"].values():
            channel = operation["channel"]["$ref"]
            assert operation["messages"]
            assert all(one["$ref"].startswith(channel + "/messages/") for one in operation["messages"])
            assert operation["action"] in {"send", "receive"}

    def test_addresses_and_parameters_agree(self) -> None:
        for channel in asyncapi()["channels"].values():
            assert {f"{{{name}}}" for name in channel["parameters"]} == {
                part for part in channel["address"].split("/") if part.startswith("{")
            }

    def test_every_field_that_says_something_in_the_code_says_it_here(self) -> None:
        schemas = asyncapi()["components"]["schemas"]
        assert schemas["Speak"]["properties"]["rate"]["description"] == "Factor on the speed."
        assert "response topic" in schemas["Speak"]["properties"]["reply_to"]["description"]  # inherited
        assert schemas["Finished"]["properties"]["total_ms"]["description"] == "Since the command came in."


class TestJsonSchema:
    @pytest.mark.parametrize("name", sorted(SCHEMAS))
    def test_it_is_one(self, name: str) -> None:
        Draft202012Validator.check_schema(SCHEMAS[name])

    @pytest.mark.parametrize(
        ("end", "payload"),
        [
            ("speak", {"text": "Yes."}),
            ("speak", {"text": "Yes.", "id": "a", "priority": "critical", "speaker": "bob", "expires_s": 5}),
            ("speak", {"text": "Yes.", "output": "file", "supersede": "gate", "session": "s", "marks": True}),
            ("speak", {}),
            ("speak", {"text": 42}),
            ("speak", {"text": "Yes.", "priority": "loud"}),
            ("speak", {"text": "Yes.", "volume": 2.5}),
            ("speak", {"text": "Yes.", "expires_s": 0}),
            ("speak", {"text": "Yes.", "id": "a\nb"}),
            ("speak", {"text": "Yes.", "colour": "red"}),
            ("speak", {"text": "Yes.", "speaker": 1.5}),
            ("cancel", {"id": "a"}),
            ("cancel", {"all": True}),
            ("cancel", {"all": False}),
            ("cancel", {"all": True, "id": None}),
            ("cancel", {"all": True, "id": "a"}),
            ("cancel", {}),
            ("volume/set", {"volume": 1}),
            ("volume/set", {}),
            ("config/set", {"version": 3, "rate": 1.1}),
            ("config/set", {"version": -1}),
            ("resume", {"repeat_sentences": 1}),
            ("resume", {"repeat_sentences": 101}),
            ("ping", {"request": "r"}),
            ("ping", {"request": ""}),
        ],
    )
    def test_it_takes_what_the_daemon_takes(self, end: str, payload: dict[str, object]) -> None:
        kind = COMMANDS[end]
        try:
            parse_command(kind, json.dumps(payload).encode(), max_text_chars=4000)
            accepted = True
        except PayloadError:
            accepted = False
        assert validator(kind.__name__).is_valid(payload) == accepted

    @pytest.mark.parametrize(
        "said",
        [
            Accepted(id="a", ahead=0),
            Accepted(id="a", ahead=2, starts_in_s=1.5),
            Interrupted(id="a", reason="paused", at_s=1.2),
            Synthesized(id="a", audio_s=0, compute_ms=1, cached=False, voice="v", backend="b", precision="fp32"),
            Finished(id="a", audio_s=1, total_ms=2, location="a.wav"),
            Failed(id="a", code="audio", reason="no card"),
            Rejected(id=None, code="json", reason="no JSON"),
            Known(id="a", final={"event": "finished"}),
            Done(request="r", command="cancel", affected=("a",)),
            QueueState(
                request="r",
                paused=False,
                commands=(QueuedCommand(id="a", state="waiting", priority="message", chars=3),),
            ),
            Voices(request="r", voices=(VOICE,)),
            Settings(),
            Status(state="offline", version="1"),
            figures(),
            Alert(alert="a", state="cleared", severity="warning", value=None, threshold=1, unit="ms", reason="well"),
        ],
        ids=lambda said: type(said).__name__,
    )
    def test_it_describes_what_is_written_and_misses_nothing(
        self, said: Event | Settings | Status | Telemetry | Alert
    ) -> None:
        payload = json.loads(said.to_json())
        check = validator(type(said).__name__)
        check.validate(payload)
        for key, field in SCHEMAS[type(said).__name__]["properties"].items():
            if {"type": "null"} not in field.get("anyOf", []):
                assert not check.is_valid({name: value for name, value in payload.items() if name != key}), key

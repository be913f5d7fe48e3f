from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daemon.commands import Priority, Speak
from daemon.errors import PayloadError
from daemon.events import Accepted, Event, Failed, Finished, Rejected, Started, Status, Synthesized, milliseconds
from daemon.payloads import parse_command

MOST = 50


def parse(payload: bytes | str | dict[str, Any]) -> Speak:
    if isinstance(payload, dict):
        payload = json.dumps(payload)
    return parse_command(Speak, payload.encode() if isinstance(payload, str) else payload, max_text_chars=MOST)


def refusal(payload: bytes | str | dict[str, Any]) -> PayloadError:
    with pytest.raises(PayloadError) as caught:
        parse(payload)
    return caught.value


class TestParsed:
    def test_an_object_says_everything(self) -> None:
        command = {"id": "a 1", "text": "Hallo", "voice": "joe", "speaker": 3, "volume": 0.5, "priority": "critical"}
        command |= {
            "cache": False,
            "reply_to": "r/1",
            "language": "de",
            "rate": 1.5,
            "expires_s": 5.0,
            "supersede": "k",
        }
        command |= {"supersede": "k", "session": "s", "on_interrupt": "drop", "output": "file", "marks": True}
        command |= {"target": "239.255.0.1:5004", "chime": {"before": "attention", "after": ""}}
        command |= {"style": "calm:0.5+urgent:0.5"}
        assert parse(command).model_dump() == {
            **command,
            "priority": Priority.CRITICAL,
            "ssml": None,
            "style_vector": None,
        }

    def test_an_object_may_say_no_more_than_the_text(self) -> None:
        command = parse({"text": "Hallo"})
        assert command.model_dump(exclude={"id"}) == {
            "reply_to": "",
            "text": "Hallo",
            "ssml": None,
            "voice": "",
            "language": None,
            "speaker": None,
            "style": None,
            "style_vector": None,
            "volume": 1.0,
            "rate": 1.0,
            "priority": Priority.MESSAGE,
            "expires_s": None,
            "supersede": None,
            "session": None,
            "on_interrupt": None,
            "output": "speaker",
            "target": None,
            "chime": None,
            "marks": False,
            "cache": True,
        }

    def test_each_command_without_an_id_gets_one_of_its_own(self) -> None:
        assert len({parse("Hallo").id, parse("Hallo").id, parse({"text": "Hallo"}).id}) == 3

    @pytest.mark.parametrize(
        "text",
        [
            "Hallo",
            "",
            "  ",
            "42 metres",
            "1e5 volts",
            "[aside] Hallo",
            '"Hallo", she said',
            "grüße 😂",
            "NaN",
            "nullify",
        ],
    )
    def test_what_is_no_json_is_the_text_itself(self, text: str) -> None:
        assert parse(text).text == text

    @pytest.mark.parametrize("payload", ['{"text": "Hallo"}', "Hallo"])
    def test_a_byte_order_mark_is_not_spoken(self, payload: str) -> None:
        assert parse("\ufeff" + payload).text == "Hallo"

    @pytest.mark.parametrize("volume", [0, 1, 2, 0.0, 2.0])
    def test_the_volume_has_bounds_that_belong_to_it(self, volume: float) -> None:
        assert parse({"text": "a", "volume": volume}).volume == volume

    def test_a_text_just_as_long_as_allowed_is_taken(self) -> None:
        assert len(parse("ü" * MOST).text) == MOST

    def test_half_a_character_may_be_in_the_text(self) -> None:
        # The phonemizer knows what to do with it, and no event repeats the text.
        assert parse(b'{"text": "a\\ud800"}').text == "a\ud800"

    def test_a_speaker_may_be_named(self) -> None:
        assert parse({"text": "a", "speaker": "bob"}).speaker == "bob"


class TestRefused:
    @pytest.mark.parametrize(
        ("payload", "code"),
        [
            (b"\xff\xfe", "encoding"),
            ("schön".encode("latin-1"), "encoding"),
            (b'{"text": "\xe4"}', "encoding"),
            (b'{"text":', "json"),
            (b'  {"text": "a"} b', "json"),
            (b"{'text': 'a'}", "json"),
            (b'{"text": "a", "volume": NaN}', "json"),
            (b'{"text": "a", "volume": -Infinity}', "json"),
            (b'{"text": "a", "volume": ' + b"9" * 5000 + b"}", "json"),
            (b'{"text": ' + b"[" * 100_000, "json"),
            (b'{"text":' * 100_000, "json"),
            (b"5", "json"),
            (b"-1.5", "json"),
            (b"null", "json"),
            (b"true", "json"),
            (b"[]", "json"),
            (b'["text", "a"]', "json"),
            (b'"Hallo"', "json"),
            (b"{}", "field"),
            (b'{"text": null}', "field"),
            (b'{"text": 5}', "field"),
            (b'{"text": "a", "volume": 1e999}', "field"),
            (b'{"text": "a", "volume": ' + b"9" * 400 + b"}", "field"),
            (b'{"text": "a", "\\ud800": 1}', "field"),
            (b"x" * (MOST + 1), "too_long"),
        ],
    )
    def test_the_code_tells_the_kind_of_mistake(self, payload: bytes, code: str) -> None:
        assert refusal(payload).code == code

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("id", ""),
            ("id", 5),
            ("id", None),
            ("id", "x" * 129),
            ("id", "a\nb"),
            ("id", "a\n"),
            ("id", "\0"),
            ("id", "\x1b[2J"),
            ("id", "\x85"),
            ("id", "\ud800"),
            ("text", ["a"]),
            ("voice", None),
            ("voice", "x" * 101),
            ("voice", "a\x1b[2J"),
            ("voice", "\ud800"),
            ("speaker", -1),
            ("speaker", 1.0),
            ("speaker", True),
            ("speaker", 10_001),
            ("speaker", "\ud800"),
            ("speaker", []),
            ("volume", "1"),
            ("volume", True),
            ("volume", -0.1),
            ("volume", 2.1),
            ("volume", None),
            ("priority", "urgent"),
            ("priority", "CRITICAL"),
            ("priority", 0),
            ("priority", None),
            ("priority", {}),
            ("lenght", 1),
            ("language", "Deutsch"),
            ("language", ""),
            ("rate", 0.4),
            ("rate", 2.1),
            ("expires_s", 0),
            ("expires_s", 1e9),
            ("supersede", ""),
            ("session", ""),
            ("on_interrupt", "stop"),
            ("output", "../x"),
            ("output", "/etc/passwd"),
            ("marks", 1),
        ],
    )
    def test_a_wrong_field_is_named(self, field: str, value: object) -> None:
        error = refusal({"text": "a", field: value})
        assert error.code == "field"
        assert error.reason.startswith(f"{field}: ")

    def test_all_mistakes_are_told_at_once(self) -> None:
        reason = refusal({"volume": 3, "colour": "red"}).reason
        assert {part.split(":")[0] for part in reason.split("; ")} == {"volume", "colour"}

    def test_a_usable_id_comes_back(self) -> None:
        assert refusal({"id": "a", "text": 5}).command_id == "a"
        assert refusal({"id": "a", "text": "x" * (MOST + 1)}).command_id == "a"

    @pytest.mark.parametrize("command_id", [5, "\ud800", "a\nb", "x" * 129, None, ["a"]])
    def test_an_unusable_id_does_not(self, command_id: object) -> None:
        assert refusal({"id": command_id, "text": 5}).command_id is None

    @pytest.mark.parametrize("payload", [b'{"text":', b"\xff", b"5"])
    def test_without_an_object_there_is_no_id(self, payload: bytes) -> None:
        assert refusal(payload).command_id is None

    def test_an_unknown_key_cannot_write_to_the_log_nor_fill_it(self) -> None:
        reason = refusal({"text": "a", "\x1b[2J\n" + "k" * 10_000: 1}).reason
        assert reason.isprintable()
        assert len(reason) < 200

    def test_the_reason_says_how_long_a_text_may_be(self) -> None:
        assert refusal("x" * 70).reason == "the text has 70 characters, 50 are allowed"


# Most keys are real ones, so that most objects are nearly right.
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["critical", "\ud800"])
KEYS = st.sampled_from(["id", "text", "voice", "speaker", "volume", "priority", "\ud800", "\0"]) | st.text()
OBJECTS = st.dictionaries(KEYS, SCALARS | st.lists(SCALARS) | st.dictionaries(st.text(), SCALARS))
PAYLOADS = st.binary() | st.text().map(str.encode) | OBJECTS.map(lambda value: json.dumps(value).encode())


@given(PAYLOADS)
@example(b"{" * 5000)
@example(b"[" * 5000)
@example(b"1" * 5000)
def test_whatever_comes_in_is_a_command_or_a_refusal_that_can_be_sent(payload: bytes) -> None:
    try:
        command = parse_command(Speak, payload, max_text_chars=MOST)
    except PayloadError as error:
        sent: Event = Rejected(id=error.command_id, code=error.code, reason=error.reason)
    else:
        assert len(command.text) <= MOST
        # What comes back of a command: its id, and its voice and speaker where there are no such ones.
        reason = f"{command.voice} {command.speaker}"
        sent = Failed(id=command.id, code="voice", reason=reason)
    assert type(sent).model_validate_json(sent.to_json()) == sent


# Surrogates are left out: that they never get as far is what the test above shows.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Accepted, id=TEXT, ahead=st.integers(0)),
    st.builds(Started, id=TEXT, ttfa_ms=NUMBER, output=TEXT),
    st.builds(
        Synthesized,
        id=TEXT,
        audio_s=NUMBER,
        compute_ms=NUMBER,
        rtf=st.none() | NUMBER,
        voice=TEXT,
        backend=TEXT,
        precision=TEXT,
    ),
    st.builds(Finished, id=TEXT, audio_s=NUMBER, total_ms=NUMBER),
    st.builds(Failed, id=TEXT, code=TEXT, reason=TEXT),
    st.builds(Rejected, id=st.none() | TEXT, code=TEXT, reason=TEXT),
)


@given(EVENTS)
def test_every_event_survives_its_json(event: Event) -> None:
    assert type(event).model_validate_json(event.to_json()) == event


@given(TEXT, st.none() | TEXT)
def test_so_does_every_status(version: str, voice: str | None) -> None:
    status = Status(state="online", version=version, voice=voice)
    assert Status.model_validate_json(status.to_json()) == status


class TestEvents:
    def test_times_are_utc_and_now(self) -> None:
        time = datetime.fromisoformat(json.loads(Accepted(id="a", ahead=0).to_json())["time"].replace("Z", "+00:00"))
        assert time.utcoffset() == datetime.now(timezone.utc).utcoffset()
        assert abs((datetime.now(timezone.utc) - time).total_seconds()) < 5

    def test_a_rejection_tells_even_that_there_was_no_id(self) -> None:
        assert json.loads(Rejected(id=None, code="json", reason="x").to_json())["id"] is None

    def test_what_is_unknown_is_left_out(self) -> None:
        assert json.loads(Status(state="offline", version="1").to_json()) == {"state": "offline", "version": "1"}

    @pytest.mark.parametrize(("seconds", "result"), [(0.0, 0.0), (1.23456, 1234.6), (float("inf"), 0.0)])
    def test_milliseconds_have_one_decimal(self, seconds: float, result: float) -> None:
        assert milliseconds(seconds) == result

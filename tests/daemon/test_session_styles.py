from __future__ import annotations

import pytest

from daemon.commands import Speak
from daemon.session_styles import _MOST, SessionStyles
from engines.styles import read_definitions


def test_the_session_silent_the_longest_is_forgotten_first() -> None:
    sessions = SessionStyles({})
    for number in range(_MOST):
        sessions.settle(Speak(text="", session=str(number), style="calm"))
    assert sessions.settle(Speak(text="", session="0")).style == "calm"
    sessions.settle(Speak(text="", session="one more", style="calm"))
    assert sessions.settle(Speak(text="", session="0")).style == "calm"
    assert sessions.settle(Speak(text="", session="1")).style is None
    assert sessions.settle(Speak(text="")).style is None


@pytest.mark.parametrize(
    ("style", "fields", "kept"),
    [
        ("calm", {}, "calm"),
        ("af_one", {}, "af_one"),
        ("calm", {"voice": "deutsch"}, "calm"),
        ("calm", {"speaker": 0}, "calm"),
        ("af_one", {"voice": "deutsch"}, None),
        ("af_one", {"speaker": 0}, None),
        ("mood", {"voice": "deutsch"}, None),
        ("af_one", {"language": "de"}, None),
        ("calm", {"language": "de"}, "calm"),
    ],
)
def test_who_speaks_is_what_the_command_says(style: str, fields: dict[str, object], kept: str | None) -> None:
    sessions = SessionStyles(read_definitions(["calm = rate=0.9", "mood = speaker_1 voice=tiny"]))
    sessions.settle(Speak(text="", session="s", style=style))
    assert sessions.settle(Speak(text="", session="s", **fields)).style == kept
    assert sessions.settle(Speak(text="", session="s")).style == style, "the session's is still the same"

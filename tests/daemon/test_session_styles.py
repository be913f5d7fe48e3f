from __future__ import annotations

from daemon.commands import Speak
from daemon.session_styles import _MOST, SessionStyles


def test_the_session_silent_the_longest_is_forgotten_first() -> None:
    sessions = SessionStyles()
    for number in range(_MOST):
        sessions.settle(Speak(text="", session=str(number), style="calm"))
    assert sessions.settle(Speak(text="", session="0")).style == "calm"
    sessions.settle(Speak(text="", session="one more", style="calm"))
    assert sessions.settle(Speak(text="", session="0")).style == "calm"
    assert sessions.settle(Speak(text="", session="1")).style is None
    assert sessions.settle(Speak(text="")).style is None

"""Which style each session speaks in: the one that it named last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from daemon.commands import Speak
from engines.styles import Style

_MOST: Final = 1000
"""Sessions whose style is remembered; the one silent the longest is forgotten first, all by a restart."""

_SOMEBODY: Final = Style(voice="somebody")
"""What a blend or a vector is, for our purpose."""


class SessionStyles:
    """Fills in what a session has said before. For the speaker's thread."""

    def __init__(self, named: Mapping[str, Style]) -> None:
        """`named`: the styles of the configuration."""
        self._named = named
        self._styles: OrderedDict[str, tuple[str | None, str | None]] = OrderedDict()

    def settle(self, command: Speak) -> Speak:
        """Give a command with its session's style, or take note of the one that it names; "" is the usual one.

        A command that names a voice, language or speaker has its session's style only where that names nobody.
        """
        session = command.session
        if session is None:
            return command
        if command.style is not None or command.style_vector is not None:
            self._styles[session] = command.style, command.style_vector
        elif session in self._styles:
            style, vector = self._styles[session]
            names_somebody = command.voice or command.language or command.speaker is not None
            if names_somebody and self._named.get(style or "", _SOMEBODY).names_somebody:
                style = vector = None
            command = command.model_copy(update={"style": style, "style_vector": vector})
        else:
            return command
        self._styles.move_to_end(session)
        if len(self._styles) > _MOST:
            self._styles.popitem(last=False)
        return command

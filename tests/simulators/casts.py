"""Voices to be cast, as speech has them and as renders have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Final

from engines.casting import Voices
from engines.families import load_for_many
from engines.lent import Lent
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.shared_voices import SharedVoices
from engines.shelf import Preferences, VoiceShelf

KINDS: Final = ("shelf", "lent")


@contextmanager
def voices_of(kind: str, store: PackStore, preferences: Preferences) -> Iterator[Voices]:
    """Give those of `store`: loaded for the loudspeaker's thread, or borrowed for one utterance of a render thread."""
    if kind == "shelf":
        with closing(VoiceShelf(store, preferences)) as shelf:
            yield shelf
    else:
        with ExitStack() as borrowed:
            shared = SharedVoices(store, lambda pack: load_for_many(pack, Precedence(), None, preferences.engine))
            yield Lent(shared, preferences, borrowed)

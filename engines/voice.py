"""What a voice is, of whatever family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from engines.pack_info import AnyInfo
from engines.spoken import Abilities, Spoken
from engines.vits import Delivery, Noise


@runtime_checkable
class Voice(Protocol):
    """A loaded pack. One thread at a time uses it, but for `abandon`; EngineError where an engine fails.

    Implementations: VITS, which streams a sentence by exact windows; Kokoro, which computes a sentence at once.
    """

    @property
    def info(self) -> AnyInfo:
        """What is known of it."""

    @property
    def abilities(self) -> Abilities:
        """What its family can do."""

    @property
    def backend(self) -> str:
        """Who computes."""

    @property
    def precision(self) -> str:
        """In what most of it is computed."""

    @property
    def fingerprint(self) -> str:
        """Tells apart what, beside its pack, decides how phonemes sound: what its family makes of them."""

    def ids(self, phonemes: Sequence[str]) -> tuple[list[int], list[str]]:
        """Give the ids of a sentence, and which phonemes the voice lacks, each once; these are left out.

        `phonemes`: code points of NFD as espeak-ng gives them, marks included.
        """

    def speak(
        self,
        ids: Sequence[int],
        delivery: Delivery,
        rng: np.random.Generator,
        *,
        capacity: int,
        frugal: bool = False,
        held: int = 0,
        noise: Noise | None = None,
    ) -> Spoken:
        """Begin a sentence: its pieces, at most `capacity` frames each, all but the last in whole periods.

        The same state of `rng` gives the same sound; a family without chance takes nothing of it. `noise` stands in for
        it where it is given and the family has any. `frugal`: fewer, larger pieces, so less work and a later first one.
        `held`: frames of it that are not played before as many more are there; a first piece is larger for that.
        """

    def abandon(self) -> None:
        """Have what is being computed end soon with EngineError. From any thread."""

    def close(self) -> None:
        """Free its engines. Idempotent."""

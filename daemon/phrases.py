"""What the engine thread takes from the phrase cache, and what it has kept there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from daemon.cache import LONGEST_CHARS, LONGEST_S, Keeper, Phrase, PhraseCache, key_of
from device.errors import PoolClosedError
from device.format import RATE, Samples
from device.memory import AudioChunk
from engines.casting import Wish, direct
from engines.errors import SpeechError, excerpt
from engines.shelf import VoiceShelf
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.script import plain
from engines.voice import Voice

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """The phrase cache, who writes it, and what belongs in it from the start."""

    cache: PhraseCache
    keeper: Keeper
    phrases: Sequence[str]


@dataclass(frozen=True, slots=True)
class Lookup:
    """What came of looking for an utterance in the cache."""

    key: str
    recording: Phrase | None
    """As it was said before."""
    keep: bool
    """Whether it is to be kept now that it is said."""

    @classmethod
    def of_clip(cls, clip: Samples) -> Lookup:
        """Give a sound that exists already."""
        return cls("", Phrase(clip), keep=False)


NOT_KEPT: Final = Lookup("", None, keep=False)


class Phrases:
    """The engine thread's use of the cache; without one nothing is found and nothing kept. For that thread."""

    def __init__(self, kept: Kept | None, synthesizer: Synthesizer) -> None:
        self._kept = kept
        self._synthesizer = synthesizer
        self._record = _Record() if kept else None
        self._unprepared = list(kept.phrases) if kept else []

    @property
    def prepared(self) -> bool:
        """Tell whether all phrases of `cache.phrases` were said, or tried."""
        return not self._unprepared

    def find(self, utterance: Utterance, voice: Voice, *, again: bool = False) -> Lookup:
        """Look a phrase up. `again`: it goes on after an interruption, which makes it no phrase that is said twice."""
        script = utterance.script
        if self._kept is None or script.chars > LONGEST_CHARS or not script.is_repeatable_by(voice.info.language):
            return NOT_KEPT
        key = self._key(utterance, voice)
        recording = self._kept.cache.get(key)
        return Lookup(key, recording, keep=recording is None and not again and self._kept.cache.wants(key))

    def recorded(self, chunks: Iterator[AudioChunk], phrase: Lookup) -> Iterator[AudioChunk]:
        """Pass chunks on, and copy them where the phrase shall be kept."""
        record = self._record
        if record is not None:
            record.clear()
        for chunk in chunks:
            if phrase.keep and record is not None:
                record.add(chunk.samples)
            yield chunk

    def finish(self, phrase: Lookup, tally: Tally, lead: int = 0) -> None:
        """Have a phrase kept whose speech begins at frame `lead`, now that all of it was `recorded`."""
        # A recording would be without the warnings.
        if phrase.keep and not tally.warnings and self._kept is not None and self._record is not None:
            whole = self._record.taken()
            if whole is not None:
                words = tuple(word - lead for word in tally.words)
                sentences = tuple(sentence - lead for sentence in tally.sentences)
                self._kept.keeper.keep(phrase.key, Phrase(whole, words, sentences))

    def prepare(self, shelf: VoiceShelf, is_wanted: Callable[[], bool]) -> None:
        """Say one phrase of `cache.phrases` to nobody; what cannot be said is told of and left out.

        A command that comes meanwhile, so that the thread `is_wanted`, goes first.
        """
        if self._kept is None or self.prepared:
            return
        text = self._unprepared.pop(0)
        try:
            if not self._is_kept(text, shelf, self._kept.cache, is_wanted):
                self._unprepared.append(text)
            elif not is_wanted():
                shelf.get()  # it may have had to make room for another
        except (SpeechError, PoolClosedError) as error:
            _LOG.warning("the phrase %r of cache.phrases cannot be prepared: %s", excerpt(text), error)

    def _is_kept(self, text: str, shelf: VoiceShelf, cache: PhraseCache, is_wanted: Callable[[], bool]) -> bool:
        tally = Tally()
        script, casting = direct(plain(text), Wish(), shelf, tally.warn)  # by whom it will be said on command
        voice = casting.own
        utterance = Utterance(script, casting.delivery, shelf.seed, casting.volume)
        cache.pin(self._key(utterance, voice))
        phrase = self.find(utterance, voice)
        if not phrase.keep:
            return True
        for chunk in self.recorded(self._synthesizer.chunks(utterance, casting, tally), phrase):
            chunk.release()
            if is_wanted():
                return False
        self.finish(phrase, tally)
        return True

    def _key(self, utterance: Utterance, voice: Voice) -> str:
        return key_of(utterance, voice, self._synthesizer.fingerprint(voice.info.language))


class _Record:
    """What was said last, as far as it fits; allocated once."""

    def __init__(self) -> None:
        self._memory: Samples = np.empty(LONGEST_S * RATE, np.float32)
        self._frames = 0

    def clear(self) -> None:
        """Forget it."""
        self._frames = 0

    def add(self, samples: Samples) -> None:
        """Copy some frames behind those that are there."""
        end = self._frames + samples.size
        if end <= self._memory.size:
            self._memory[self._frames : end] = samples
        self._frames = end

    def taken(self) -> Samples | None:
        """Give a copy of all of it; None where there is nothing, or more than fits."""
        return self._memory[: self._frames].copy() if 0 < self._frames <= self._memory.size else None

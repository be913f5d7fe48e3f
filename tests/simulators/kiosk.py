"""Twenty sentences that no voice was quantised with or judged by while it was made, and how well a sound matches."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import soxr
from pesq import pesq
from pocketsphinx import Decoder

from device.format import RATE, Samples

SENTENCES = (
    "The train to Berlin will depart from platform seven.",
    "Please place your luggage on the belt and wait for the green light.",
    "I am cleaning this area, please walk around me.",
    "Your table for two will be ready in ten minutes.",
    "The museum shop is open until half past five.",
    "Scan the code on your phone to open the locker.",
    "Mind the gap between the train and the platform.",
    "Lunch is served on the third floor, next to the library.",
    "My battery is low, I must recharge before the next delivery.",
    "The weather today is sunny, with a light wind from the west.",
    "Ticket number 85, please proceed to counter four.",
    "There is a person behind me, so I am slowing down.",
    "This machine does not give change.",
    "To hear the menu again, press the star key.",
    "Doctor Hughes is waiting for you in room thirty one.",
    "We apologize for the short delay and thank you for your patience.",
    "Please choose a drink: coffee, orange juice or water.",
    "The elevator is out of order, use the stairs on your left.",
    "I have delivered all the parcels and am going home.",
    "Keep your children close while the show is running.",
)

_EAR = 16_000


def pesq_wb(references: Sequence[Samples], sounds: Sequence[Samples]) -> list[float]:
    """Give PESQ-WB of each sound, 48 kHz, against its reference."""
    pairs = zip(references, sounds, strict=True)
    return [float(pesq(_EAR, _heard(reference), _heard(sound), "wb")) for reference, sound in pairs]


def words(sounds: Sequence[Samples]) -> list[str]:
    """Let a recogniser write down what it hears; one that is new for each, so that none depends on another.

    It chooses from all of English, and errs in every fourth word of the float voice.
    """
    return [_recognised(sound) for sound in sounds]


def said() -> list[str]:
    """Give the sentences as a recogniser would write them."""
    spelled = [sentence.lower().replace("85", "eighty five") for sentence in SENTENCES]
    return [re.sub("[^a-z ]", "", sentence) for sentence in spelled]


def _recognised(sound: Samples) -> str:
    decoder = Decoder(samprate=_EAR, loglevel="FATAL")
    decoder.start_utt()
    decoder.process_raw((np.clip(_heard(sound), -1, 1) * 32767).astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return re.sub(r"\(\d+\)", "", hypothesis.hypstr) if hypothesis else ""


def word_errors(expected: str, found: str) -> int:
    """Count the words that differ (Levenshtein)."""
    first, second = expected.split(), found.split()
    row = list(range(len(second) + 1))
    for i, word in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1]


def _heard(sound: Samples) -> Samples:
    resampled: Samples = soxr.resample(sound, RATE, _EAR, quality="VHQ")
    return resampled

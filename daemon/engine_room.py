"""The GPU, the buffers and the voices of the engine thread."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import Final

from daemon.config import Config, packs_folder, plans_folder, watermark_folder
from daemon.config_text_section import normalizer_of
from daemon.notify import Notifier
from daemon.plan_rebuild import rebuild_if_stale
from daemon.synthesis import Engines
from device.format import RATE
from device.memory import BufferPool, HostBufferPool
from engines.backends import Gpu, Wanted, open_gpu
from engines.pack import Pack
from engines.pack_store import PackStore
from engines.precedence import Precedence
from engines.shelf import Preferences, VoiceShelf, unmet
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.gaps import gaps
from engines.text.phonemes import Phonemizer
from engines.text.reading import Front
from engines.voice_memory import VoiceBudget
from engines.watermark_files import Watermark, open_watermark

_LOG = logging.getLogger(__name__)

BUFFER_FRAMES: Final = 4 * RATE
"""Four seconds: the largest window, most of an ordinary sentence. Longer ones would save hardly any margins."""

_WARM_UP_TEXT: Final = "1 2 3 4 5 6"
"""Some 2.5 s in any language: the window sizes that follow one another in the first seconds of speech."""


def make_engines(
    config: Config,
    phonemizer: Phonemizer,
    precedence: Precedence | None = None,
    put_aside: str = "",
    front: Front | None = None,
    watermark: Watermark | None = None,
    budget: VoiceBudget | None = None,
) -> Engines:
    """Open the GPU where there is one to be used, allocate the buffers, load and warm the default voice.

    `budget`: see `VoiceShelf`.

    Whoever calls this must be the thread that uses and closes all of it. SpeechError where there is no usable default
    voice, or TensorRT is a must and cannot be; DeviceError where memory is lacking.
    """
    preferred = preferences(config, put_aside)
    with ExitStack() as opened:
        gpu = open_gpu(preferred.engine, plans_folder(config), capacity=BUFFER_FRAMES)
        if gpu is not None:
            opened.callback(gpu.close)
            _rebuild(config, preferred, gpu, opened)
        pool = make_pool(config, gpu)
        opened.callback(pool.close)
        shelf = VoiceShelf(PackStore(packs_folder(config)), preferred, gpu, budget)
        opened.callback(shelf.close)
        front = front or Front(normalizer_of(config.text))
        synthesizer = Synthesizer(phonemizer, pool, precedence, front, watermark or watermark_of(config))
        voice = shelf.get()
        for problem in unmet(shelf.store, preferred):
            _LOG.warning("%s", problem)
        synthesizer.warm_up(voice)
        for chunk in synthesizer.chunks(Utterance(_WARM_UP_TEXT, shelf.delivery(voice), seed=0), voice, Tally()):
            chunk.release()
        memory = (lambda: None) if gpu is None else gpu.memory
        return Engines(synthesizer, shelf, opened.pop_all().close, memory)


def watermark_of(config: Config) -> Watermark | None:
    """Load the watermark where speech is to carry it. WatermarkError where it is not installed."""
    return open_watermark(watermark_folder()) if config.audio.watermark else None


def _rebuild(config: Config, preferred: Preferences, gpu: Gpu, opened: ExitStack) -> None:
    """Have lost plans of the default voice built again: now where TensorRT is a must, else until the next start."""
    store = PackStore(packs_folder(config))
    pack = store.open(store.default_name(preferred.voice))
    rebuild = rebuild_if_stale(config, pack, preferred.engine, gpu) if isinstance(pack, Pack) else None
    if rebuild is None:
        return
    if preferred.engine.backend == "trt":
        rebuild.wait(Notifier().extend_start)  # what is missing then is told by whoever loads it
    else:
        opened.callback(rebuild.close)


def make_pool(config: Config, gpu: Gpu | None) -> BufferPool:
    """Allocate the buffers, in the GPU's reach where there is one. DeviceError where they do not fit."""
    memory = config.memory
    limit_bytes = memory.pinned_limit_mb * 2**20
    if gpu is None:
        return HostBufferPool(buffers=memory.pool_buffers, capacity=BUFFER_FRAMES, limit_bytes=limit_bytes)
    return gpu.buffer_pool(buffers=memory.pool_buffers, limit_bytes=limit_bytes)


def preferences(config: Config, put_aside: str = "") -> Preferences:
    """Say what the configuration wants of every voice, but for what was `put_aside`: 'int8' or 'trt'."""
    voice, engine = config.voice, config.engine
    return Preferences(
        voice=voice.default,
        for_languages=voice.for_languages,
        speaker=voice.speaker,
        length_scale=voice.length_scale,
        noise_scale=voice.noise_scale,
        noise_w=voice.noise_w,
        gaps=gaps(voice.sentence_gap_ms, voice.paragraph_gap_ms),
        seed=voice.seed,
        loudness_lufs=config.audio.loudness_lufs,
        styles=config.styles.styles,
        voices_limit_bytes=config.memory.voices_limit_mb * 2**20,
        preload=voice.preload,
        engine=Wanted(engine.backend, engine.precision, engine.threads, learns=voice.seed is None).without(put_aside),
    )

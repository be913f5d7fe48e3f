"""What a very long sentence takes of memory, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SAY_A_LONG_SENTENCE = """
import re, sys
from pathlib import Path
import numpy as np
from device.heap import map_large_blocks
from engines.pack_store import PackStore
from engines.vits import USUAL_IDS, Delivery, VitsVoice

def memory(kind):
    return int(re.findall(kind + r":\\s*(\\d+)", Path("/proc/self/status").read_text())[0]) / 1024

map_large_blocks()
voice = VitsVoice.load(PackStore(Path(sys.argv[1])).get("en_US-joe-medium"), threads=1)
letters = [ids[0] for symbol, ids in voice.info.phoneme_ids.items() if symbol.isalpha()]

def say(count):
    ids = (letters * count)[:count]
    voice.latents(ids, Delivery(), voice.noise(count, np.random.default_rng(0)))

say(USUAL_IDS)
before = memory("VmRSS")
say(1200)
print(memory("VmHWM") - before, memory("VmRSS") - before)
"""


def test_memory_that_only_a_very_long_sentence_needs_goes_back_after_it(voice_packs: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", SAY_A_LONG_SENTENCE, str(voice_packs)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    taken_mb, kept_mb = map(float, result.stdout.split())
    assert taken_mb > 30  # else the sentence was none to test this with
    assert kept_mb < 10

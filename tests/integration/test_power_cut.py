"""Whoever writes a file may lose power at any step of it: what is read afterwards is whole, the old or the new."""

from __future__ import annotations

import subprocess
import sys
import wave
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from simulators import tiny_voice
from simulators.output_bench import Rig
from simulators.power_cut import cuts

from daemon.cache import Phrase, PhraseCache
from daemon.crashes import ENDS, Crashes
from daemon.journal import Journal
from device.format import RATE
from engines import kokoro_backends, precision_report
from engines.calibration import keep_speed, known_speed, processor
from engines.durable import write_whole
from engines.importer import import_voice
from engines.pack import BrokenPack, KokoroPack, Pack
from engines.pack_info import KokoroInfo, PackInfo
from engines.pack_store import PackStore
from engines.piper import find
from engines.runtime.plans import Machine, PlanCache, PlanKey
from engines.windows import Speed
from power.saved import Snapshot, SnapshotFile

KEY = PlanKey("ab" * 32, "int8", 96, Machine("10.3.0.30", (8, 7), 16))
CONTENTS = {1: b"old " * 1000, 2: b"newer " * 1000}


@dataclass(frozen=True)
class Kept:
    """Something that is kept in a folder."""

    write: Callable[[Path, int], object]
    """Keeps a number, 1 or 2, and much around it."""
    read: Callable[[Path], int]
    """Gives the number, 0 where there is none. Whatever is there half must count as absent."""


def number_of(content: bytes | None) -> int:
    return 0 if content is None else next(number for number, known in CONTENTS.items() if known == content)


def write_plan(folder: Path, number: int) -> None:
    plans = PlanCache(folder)
    with plans.building(KEY):  # as whoever compiles a graph does
        plans.put(KEY, CONTENTS[number])


def read_plan(folder: Path) -> int:
    plans = PlanCache(folder)
    assert plans.failure(KEY) == "", "one cut must not make it the CPU for ever"
    return number_of(plans.get(KEY))


def write_speed(folder: Path, number: int) -> None:
    keep_speed(Pack(folder, PackInfo.model_construct(name="v")), "this board", Speed(number / 1000, 0.001))


def read_speed(folder: Path) -> int:
    speed = known_speed(Pack(folder, PackInfo.model_construct(name="v")), "this board")
    return 0 if speed is None else round(speed.overhead_s * 1000)


def write_report(folder: Path, number: int) -> None:
    plan = precision_report.Plan(
        precision="fp32",
        backend="ort",
        int8_mac_share=0.0,
        quality=4.6,
        snr_db=None,
        passes=True,
        ms_per_window=number,
        bytes=1,
    )
    precision_report.record(Pack(folder, PackInfo.model_construct(name="v")), [plan])


def read_report(folder: Path) -> int:
    report = precision_report.read_report(Pack(folder, PackInfo.model_construct(name="v")))
    return 0 if report is None else int(report.plans[0].ms_per_window)


def write_choice(folder: Path, number: int) -> None:
    pack = KokoroPack(folder, KokoroInfo.model_construct(name="k"))
    times = {"int8": 1.0, "fp32": 2.0} if number == 1 else {"int8": 3.0, "fp32": 2.0}
    kokoro_backends._keep(pack, processor(1), times)


def read_choice(folder: Path) -> int:
    # What is not known is fp32, as is the second one.
    choice = kokoro_backends.chosen_precision(KokoroPack(folder, KokoroInfo.model_construct(name="k")), 1)
    return {"int8": 1, "fp32": 2}[choice]


def phrases(folder: Path) -> PhraseCache:
    return PhraseCache(folder, limit_bytes=2**20, keep_free_bytes=0, patience_s=60)


def write_phrase(folder: Path, number: int) -> None:
    phrases(folder).put("ab" * 32, Phrase(np.full(5000, number, np.float32)))


def read_phrase(folder: Path) -> int:
    phrase = phrases(folder).get("ab" * 32)
    if phrase is None:
        return 0
    assert phrase.samples.size == 5000
    return int(phrase.samples[0])


def write_render(folder: Path, number: int) -> None:
    rig = Rig(folder, file_format="wav")
    rig.begin(id="a", output="file")(np.full(RATE, number / 4, np.float32))
    assert rig.end("a").error is None
    rig.outputs.close()


def read_render(folder: Path) -> int:
    if not (folder / "a.wav").exists():
        return 0
    with wave.open(str(folder / "a.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert samples.size == RATE
    assert (samples == samples[-1]).all()
    return int(samples[-1]) * 4 // 2**15


def write_board(folder: Path, number: int) -> None:
    limits = {f"cpu{core}": ("1", "2") for core in range(50)}
    SnapshotFile(folder / "state.json").keep(Snapshot("boot", limits, emc_cap=None, mode=number))


def read_board(folder: Path) -> int:
    snapshot = SnapshotFile(folder / "state.json").load()
    return 0 if snapshot is None else snapshot.mode or 0


KEPT = {
    "a file": Kept(
        lambda folder, number: write_whole(folder / "file", CONTENTS[number]),
        lambda folder: number_of((folder / "file").read_bytes() if (folder / "file").exists() else None),
    ),
    "a plan of TensorRT": Kept(write_plan, read_plan),
    "the speed of a voice": Kept(write_speed, read_speed),
    "the precisions of a voice": Kept(write_report, read_report),
    "the precision of Kokoro": Kept(write_choice, read_choice),
    "a phrase": Kept(write_phrase, read_phrase),
    "a rendered file": Kept(write_render, read_render),
    "the board's old clocks": Kept(write_board, read_board),
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT.keys())
def test_what_is_kept_is_the_old_or_the_new(tmp_path: Path, kept: Kept) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    nothing = kept.read(folder)
    for cut in cuts(folder, lambda: kept.write(folder, 1)):
        assert kept.read(folder) in {nothing, 1}, cut
    assert kept.read(folder) == 1
    seen = []
    for cut in cuts(folder, lambda: kept.write(folder, 2)):
        seen.append(kept.read(folder))
        assert seen[-1] in {nothing, 1, 2} if kept is KEPT["a phrase"] else seen[-1] in {1, 2}, cut
    assert seen[0] == 1
    assert seen[-1] == 2


def test_what_cuts_have_left_is_gone_with_the_next_write(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for _ in cuts(folder, lambda: write_whole(folder / "file", CONTENTS[1])):
        write_whole(folder / "file", CONTENTS[2])
        assert [path.name for path in folder.iterdir()] == ["file"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_voice.write(tmp_path_factory.mktemp("tiny"))


class TestPacks:
    def test_an_import_is_there_whole_or_not_at_all(self, tmp_path: Path, model: Path) -> None:
        imported = PackStore(tmp_path / "elsewhere")
        import_voice(find(str(model)), imported)
        pack = imported.get("tiny")
        content = {file: (pack.folder / file).read_bytes() for file in pack.info.files}
        store = PackStore(tmp_path / "packs")
        store.folder.mkdir()
        for cut in cuts(store.folder, lambda: store.put("tiny", pack.info, content)):
            assert not any(isinstance(found, BrokenPack) for found in store.list()), cut
            assert all(store.get(name).info == pack.info for name in store.names()), cut
        assert store.names() == ["tiny"]
        other = pack.info.model_copy(update={"language": "de"})
        for cut in cuts(store.folder, lambda: store.put("tiny", other, content)):
            assert store.get("tiny").info in (pack.info, other), cut
        assert store.get("tiny").info == other
        for cut in cuts(store.folder, lambda: store.remove("tiny")):
            assert all(store.get(name).info == other for name in store.names()), cut
        assert store.names() == []

    def test_graphs_that_are_added_break_no_pack(self, tmp_path: Path, model: Path) -> None:
        store = PackStore(tmp_path / "packs")
        import_voice(find(str(model)), store)
        for content in CONTENTS.values():
            graphs = {"vocoder.int8.onnx": content, "vocoder.fp16.onnx": content * 2}
            for cut in cuts(store.folder, lambda graphs=graphs: store.attach(store.get("tiny"), graphs)):  # type: ignore[misc]
                pack = store.get("tiny")  # compares each file that it knows with its hash
                assert {"acoustic.onnx", "vocoder.onnx"} <= set(pack.info.files), cut
            assert set(graphs) <= set(store.get("tiny").info.files)


def test_crashes_put_one_engine_aside_and_not_two(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    Crashes(folder, "1").speaks_with("tensorrt int8")
    (folder / ENDS).write_text("signal\nsignal\nsignal\n")
    for cut in cuts(folder, lambda: Crashes(folder, "1")):
        assert Crashes(folder, "1").put_aside in {"", "int8"}, cut
    assert Crashes(folder, "1").put_aside == "int8"


_SETTER = """
import pathlib, sys
from daemon.journal import Journal
journal = Journal(pathlib.Path(sys.argv[1]))
for number in range(1, 10**6):
    journal.remember("settings", f"{number} " + "x" * 3000)
    print(number, flush=True)
"""


def test_settings_outlive_a_kill_and_a_log_of_sqlite_that_was_cut_anywhere(tmp_path: Path) -> None:
    """The write-ahead log is what a power cut finds unfinished; each commit was flushed before anybody was told."""
    file = tmp_path / "journal.db"
    with subprocess.Popen([sys.executable, "-c", _SETTER, str(file)], stdout=subprocess.PIPE, text=True) as setter:
        assert setter.stdout is not None
        for line in setter.stdout:
            if int(line) == 50:
                setter.kill()
                break
        told = max([50, *(int(line) for line in setter.stdout if line.endswith("\n"))])
    log = file.with_name(file.name + "-wal")
    whole, written = file.read_bytes(), log.read_bytes()
    numbers = []
    for kept in (*range(0, len(written), max(1, len(written) // 20)), len(written)):
        file.write_bytes(whole)
        log.write_bytes(written[:kept])
        journal = Journal(file)
        assert journal.problem == ""
        numbers.append(int((journal.recall("settings") or "0").split()[0]))
        journal.close()
    assert numbers == sorted(numbers)
    assert numbers[-1] in {told, told + 1}
    assert not list(tmp_path.glob("*.broken-*"))

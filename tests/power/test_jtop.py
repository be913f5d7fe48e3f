"""jtop in its child process: jetson-stats' real client, and a service that fails in the ways that have been seen."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators import boards
from simulators.board_parts import BoardTree
from simulators.jtop_service import SAMPLE, JtopService, child
from simulators.waiting import wait_until

from power import jetson
from power.jetson import LONGEST_WAIT_S, Jtop, JtopSample
from power.jtop_child import sample
from power.sensors import Sensors

SILENT_S = 5.0
"""Shorter than in earnest; loading jetson-stats takes a second on a busy machine."""

Start = Callable[..., Jtop]


@pytest.fixture
def start() -> Iterator[Start]:
    """Give what makes a Jtop; it is closed at the end, and nothing of it is left."""
    made: list[Jtop] = []

    def make(command: tuple[str, ...], **options: Any) -> Jtop:  # noqa: ANN401
        made.append(Jtop(command, **{"silent_s": SILENT_S, **options}))
        return made[-1]

    yield make
    for one in made:
        one.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "jtop"]


def first(jtop: Jtop) -> JtopSample:
    wait_until(jtop.poll, f"a sample; instead: {jtop.reason}")
    told = jtop.poll()
    assert told is not None
    return told


def wait_for_reason(jtop: Jtop, words: str) -> None:
    def is_so() -> bool:
        jtop.poll()
        return words in (jtop.reason or "")

    wait_until(is_so, f"{words}; instead: {jtop.reason}")


def test_tells_what_only_jtop_knows(tmp_path: Path, start: Start) -> None:
    with JtopService(tmp_path) as service:
        jtop = start(service.child())
        assert first(jtop) == JtopSample(
            gpu_load=0.31, gpu_hz=1_575_000_000, power_mode="MAXN", fans={"pwmfan": 0.4}, lacks=()
        )
        assert jtop.reason is None


def test_a_reading_on_thor_has_its_gpus_load(tmp_path: Path, start: Start) -> None:
    tree = boards.make("thor", tmp_path / "root")
    with JtopService(tmp_path) as service:
        sensors = Sensors(tree.root, make_jtop=lambda: start(service.child()))
        wait_until(lambda: "gpu" in sensors.read().loads, "the GPU's load")
        reading = sensors.read()
        assert reading.loads["gpu"] == 0.31
        assert reading.clocks["gpu"].current_hz == 1_575_000_000
        assert reading.clocks["gpu"].max_hz == 1_260_000_000, "what the kernel's files tell stays"
        assert reading.fans == {"pwmfan": 0.4}
        assert reading.power_mode == "120W", "the board's own file is nearer"
        assert reading.degraded == {}
        sensors.close()


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("no-power", "jtop tells no power"),
        ("other-version", "Mismatch version jtop service: [1.0.0]"),
        ("mute", "jtop does not answer"),
        ("deaf", "jtop does not answer"),
        ("stalls", "the jtop service has no new samples"),
        ("dies", "Lost connection with jtop server"),
    ],
)
def test_a_service_that_fails_is_told_of(tmp_path: Path, orin: BoardTree, start: Start, does: str, reason: str) -> None:
    expected = Sensors(orin.root, jtop=False).read()
    with JtopService(tmp_path, does) as service:
        jtop = start(service.child(), silent_s=3.0, first_wait_s=60.0)
        sensors = Sensors(orin.root, make_jtop=lambda: jtop)
        slowest = 0.0

        def is_told() -> bool:
            nonlocal slowest
            began = time.monotonic()
            reading = sensors.read()
            slowest = max(slowest, time.monotonic() - began)
            assert reading.temperatures == expected.temperatures
            assert reading.total_power_mw == expected.total_power_mw
            return reason in reading.degraded.get("jtop", "")

        wait_until(is_told, f"{reason}; instead: {jtop.reason}")
        assert slowest < 3, "a reading waited for jtop"
        sensors.close()


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("ENOENT", "The jtop.service is not active"),
        ("ECONNREFUSED", "The jtop.service is not active"),
        ("EACCES", "(is speakd's user in the group jtop?)"),
        ("EISDIR", "EISDIR"),
    ],
)
def test_a_socket_that_cannot_be_used_is_told_of(tmp_path: Path, start: Start, failure: str, reason: str) -> None:
    jtop = start(child(tmp_path / "jtop.sock", failure), first_wait_s=60.0)
    wait_for_reason(jtop, reason)
    assert jtop.starts == 1


def test_a_socket_that_is_a_folder_is_told_of(tmp_path: Path, start: Start) -> None:
    (tmp_path / "jtop.sock").mkdir()
    wait_for_reason(start(child(tmp_path / "jtop.sock"), first_wait_s=60.0), "The jtop.service is not active")


def test_without_jetson_stats_it_is_told(tmp_path: Path, start: Start) -> None:
    hidden = "import sys; sys.modules['jtop'] = None\nfrom power import jtop_child; sys.exit(jtop_child.main())"
    jtop = start((sys.executable, "-c", hidden), first_wait_s=60.0)
    wait_for_reason(jtop, "jetson-stats cannot be loaded")


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"gpu_load": "x"}', "{}", '{"fans": 7}'])
def test_a_child_that_talks_nonsense_is_ended(start: Start, line: str) -> None:
    code = f"import sys; print({line!r}, flush=True); sys.stdin.read()"
    wait_for_reason(start((sys.executable, "-c", code), first_wait_s=60.0), "says what nobody understands")


def test_a_child_that_cannot_be_started_is_told_of(start: Start) -> None:
    jtop = start(("/nonexistent/python",), first_wait_s=60.0)
    wait_for_reason(jtop, "cannot be started: No such file")


def test_a_service_that_comes_back_is_heard_again(tmp_path: Path, start: Start) -> None:
    with JtopService(tmp_path) as service:
        jtop = start(service.child(), first_wait_s=0.1)
        first(jtop)
        service.kill()
        wait_until(lambda: jtop.poll() is None, "that it is gone")
        service.start()
        first(jtop)
        assert jtop.reason is None


def test_it_is_started_ever_more_rarely(start: Start) -> None:
    now = [0.0]
    jtop = start((sys.executable, "-c", ""), first_wait_s=2.0, clock=lambda: now[0])
    began = []
    for _ in range(12):
        starts = jtop.starts
        while jtop.starts == starts:
            jtop.poll()
            now[0] += 0.5
        began.append(now[0])
        wait_until(lambda: jtop.poll() is None and jtop._child is None, "the child has died")
    waits = [later - earlier for earlier, later in itertools.pairwise(began)]
    assert waits[:5] == pytest.approx([2, 4, 8, 16, 32], abs=1.1)
    assert max(waits) <= LONGEST_WAIT_S + 1.1


def test_ten_thousand_polls_leave_nothing_behind(tmp_path: Path, start: Start) -> None:
    with JtopService(tmp_path) as service:
        jtop = start(service.child())
        first(jtop)
        descriptors, threads = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
        for _ in range(10_000):
            assert jtop.poll() is not None
        # Fewer where what other tests left has gone meanwhile.
        assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
        assert threading.active_count() <= threads
        assert jtop.starts == 1


def test_rebuilding_leaves_nothing_behind(start: Start) -> None:
    jtop = start((sys.executable, "-S", "-c", 'print(\'{"error": "x"}\')'), first_wait_s=0.0)
    wait_until(lambda: jtop.poll() is None and jtop.starts > 2, "some attempts")
    before = len(list(Path("/proc/self/fd").iterdir()))
    wait_until(lambda: jtop.poll() is None and jtop.starts > 12, "ten attempts more")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2, "one child's pipes at most"


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    with JtopService(tmp_path, "deaf") as service:
        code = (
            "import sys, time\nfrom power.jetson import Jtop\n"
            "jtop = Jtop(tuple(sys.argv[1:]))\njtop.poll()\nprint(jtop._child._process.pid, flush=True)\n"
            "import os; os.kill(os.getpid(), 9)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *service.child()], capture_output=True, check=False, text=True
        )
        pid = int(done.stdout)
        wait_until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), "the child is gone")


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
    except OSError:
        return True


class FakeJtop:
    """What the child sees of jtop: attributes that hold whatever a service told."""

    def __init__(self, gpu: object, fan: object, power: object) -> None:
        self.gpu, self.fan, self.power, self.nvpmodel = gpu, fan, power, None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 10**9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "integrated", "status", "load", "freq", "cur", "speed", "rail", "power_control"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(gpu=JSON, fan=JSON, power=JSON)
def test_any_shape_that_a_service_tells_is_taken(gpu: object, fan: object, power: object) -> None:
    told = sample(FakeJtop(gpu, fan, power))
    parsed, error = jetson.parse(told)
    assert error is None
    assert parsed is not None
    assert parsed.gpu_load is None or 0 <= parsed.gpu_load <= 1
    assert all(0 <= speed <= 1 for speed in parsed.fans.values())


def test_kilohertz_under_the_same_name() -> None:
    gpu = {"g": {**SAMPLE["gpu"]["Thor"], "freq": {"cur": 1_575_000}}}
    assert sample(FakeJtop(gpu, {}, {}))["gpu_hz"] == 1_575_000_000

"""jtop.service as a process of its own, with its failures: it speaks jetson-stats' protocol to jetson-stats' client.

    with JtopService(tmp_path, "no-power") as service:
        Jtop(service.child()).poll()

What it does: answers. no-power: answers, and knows no rails, as a board without monitors. other-version: answers as
another release. mute: takes the connection and never configures it. deaf: takes the connection and says nothing at all.
stalls: falls silent after some samples. dies: ends after some.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from simulators.waiting import wait_until

TIME_LIMIT_S: Final = 20.0
INTERVAL_S: Final = 0.1
SAMPLES: Final = 5

_CLIENT: Final = """
import errno, sys
import jtop.service, multiprocessing.connection
jtop.service.JTOP_PIPE = sys.argv[1]
failure = sys.argv[2]
if failure:
    def refuse(address):
        number = getattr(errno, failure)
        raise OSError(number, failure)
    multiprocessing.connection.SocketClient = refuse
from power import jtop_child
jtop_child.INTERVAL_S = float(sys.argv[3])
sys.exit(jtop_child.main())
"""


def child(path: Path, failure: str = "") -> tuple[str, ...]:
    """Give the command of our child process, with the real client, for a service at `path`.

    `failure`: the name of the error that connecting ends with, such as EACCES.
    """
    return sys.executable, "-c", _CLIENT, str(path), failure, str(INTERVAL_S)


SAMPLE: Final[dict[str, Any]] = {
    "gpu": {
        "Thor": {
            "type": "integrated",
            "status": {"load": 31.0, "3d_scaling": None, "railgate": None, "tpc_pg_mask": None},
            "freq": {"governor": "nvml", "cur": 1575, "max": 1575, "min": 0},
            "power_control": "nvml",
        }
    },
    "mem": {"RAM": {}},
    "fan": {"pwmfan": {"speed": [40.0], "rpm": [1500], "profile": "quiet"}},
    "power": {"rail": {"VDD_GPU": {"power": 476}}, "tot": {"power": 26112}},
    "nvp": {"status": [], "thread": False, "model": {"name": "MAXN", "id": 0}},
}


class JtopService:
    """It, from entering the block to leaving it."""

    def __init__(self, folder: Path, does: str = "answers", sample: dict[str, Any] | None = None) -> None:
        """`sample`: what it tells, instead of SAMPLE."""
        self.path: Final = folder / "jtop.sock"
        self.does = does
        self._sample = SAMPLE if sample is None else sample
        self._log = folder / "jtop.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> JtopService:  # noqa: PYI034  typing.Self is of Python 3.11
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def child(self) -> tuple[str, ...]:
        """Give the command of a child process for this service."""
        return child(self.path)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.path.unlink(missing_ok=True)
        command = [sys.executable, "-m", "simulators.jtop_service", self.path, self.does, json.dumps(self._sample)]
        tests = str(Path(__file__).parents[1])
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stderr=log, env={**os.environ, "PYTHONPATH": tests})
        wait_until(lambda: self.path.exists() or self.has_ended(), "the jtop service listens")
        assert not self.has_ended(), self._log.read_text()

    def has_ended(self) -> bool:
        """Tell whether it is gone."""
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(TIME_LIMIT_S)


def _be_deaf(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(8)
        threading.Event().wait()


def _serve(path: str, does: str, sample: dict[str, Any]) -> None:
    import jtop  # noqa: PLC0415  in the process that is the service only
    import jtop.service as real  # noqa: PLC0415

    real.JTOP_PIPE = path
    controls: queue.Queue[Any] = queue.Queue()
    data: dict[str, Any] = {}
    event = threading.Event()
    real.JtopManager.register("get_queue", callable=lambda: controls)
    real.JtopManager.register("sync_data", callable=lambda: data)
    real.JtopManager.register("sync_event", callable=lambda: event)
    if does != "mute":
        version = "1.0.0" if does == "other-version" else jtop.__version__
        threading.Thread(target=_control, args=(controls, version), daemon=True).start()
        threading.Thread(target=_tell, args=(does, sample, data, event), daemon=True).start()
    real.JtopManager().get_server().serve_forever()


def _control(controls: queue.Queue[Any], version: str) -> None:
    init = {
        "version": version,
        "interval": INTERVAL_S,
        "board": {"hardware": {}},
        "memory": "",
        "fan": {},
        "jc": False,
        "nvpmodel": {"models": ["MAXN"], "default": {}},
    }
    never = threading.Event()
    while True:
        control = controls.get()
        if "init" in control:  # the client's, which has not taken it yet
            controls.put(control)
            never.wait(0.01)
        elif "interval" in control:
            controls.put({"init": init})


def _tell(does: str, sample: dict[str, Any], data: dict[str, Any], event: threading.Event) -> None:
    if does == "no-power":
        sample = {**sample, "power": {}}
    never = threading.Event()
    told = 0
    while does != "stalls" or told < SAMPLES:
        never.wait(INTERVAL_S)
        if not event.is_set():  # the client has taken the last one
            told += 1
        data.update(sample)
        event.set()
        if does == "dies" and told >= SAMPLES:
            os._exit(1)


if __name__ == "__main__":
    if sys.argv[2] == "deaf":
        _be_deaf(sys.argv[1])
    else:
        _serve(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))

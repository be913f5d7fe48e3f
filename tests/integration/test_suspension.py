"""A machine that was suspended: no stale words, a connection that is really there."""

from __future__ import annotations

import os
from pathlib import Path

from integration.conftest import MakeDaemon
from simulators.controller import Controller

CLOCK = """
import pathlib
import time

_real = time.clock_gettime


def _with_sleep(clock):
    slept = float(pathlib.Path({file!r}).read_text()) if clock == time.CLOCK_BOOTTIME else 0.0
    return _real(clock) + slept


time.clock_gettime = _with_sleep
"""
"""For the daemon's Python to load at its start: no test may suspend the machine it runs on."""


def test_what_is_too_late_is_not_spoken_and_the_connection_is_made_anew(
    make_daemon: MakeDaemon, controller: Controller, tmp_path: Path
) -> None:
    slept = tmp_path / "slept"
    slept.write_text("0")
    (tmp_path / "sitecustomize.py").write_text(CLOCK.format(file=str(slept)))
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with make_daemon(mqtt={"keepalive_s": 60}, environment={"PYTHONPATH": path}) as daemon:
        controller.wait_for_status("online")
        controller.publish({}, command="pause")
        controller.publish({"id": "late", "text": "Turn left.", "expires_s": 3600})
        controller.publish({"id": "lasting", "text": "Yes."})
        controller.wait_for("lasting", "accepted")
        seen = len(controller.statuses)
        slept.write_text("7200")
        controller.publish({}, command="ping")
        assert controller.wait_for_final("late")[-1]["event"] == "expired"
        controller.wait_for_status("online", after=seen)
        controller.publish({}, command="resume")
        assert controller.wait_for_final("lasting")[-1]["event"] == "finished"
        assert daemon.log.count("connected, MQTT 5") == 2
        assert "suspended for 7200 s" in daemon.log

"""What the helper refuses, asked over its real socket."""

from __future__ import annotations

import contextlib
import grp
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators import boards
from simulators.board_parts import BoardTree
from simulators.power_helper import HelperProcess, own_group

from power import helper as program
from power.actions import SetEmcCap, SetLimits, SetPowerMode
from power.errors import HelperError, RefusedError
from power.helper_client import HelperClient

TIME_LIMIT_S = 30.0


@pytest.fixture
def helper(orin: BoardTree) -> Iterator[HelperProcess]:
    """Run it on the Orin Nano."""
    with HelperProcess(orin) as running:
        yield running


@pytest.fixture
def client(helper: HelperProcess, orin: BoardTree) -> Iterator[HelperClient]:
    """Give one."""
    made = HelperClient(helper.socket, orin.root)
    yield made
    made.close()


class Line:
    """A client that sends whatever it likes."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(TIME_LIMIT_S)
        self._socket.connect(str(path))

    def __enter__(self) -> Line:  # noqa: PYI034  typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, sent: bytes, answers: int = 1) -> bytes:
        """Send bytes and give what comes back: lines, or nothing where it hangs up."""
        self._socket.sendall(sent)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while received.count(b"\n") < answers and (more := self._socket.recv(4096)):
                received += more
        return received


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (SetLimits("gpu", 306000000, 1122000000), "gpu does not offer 1122000000 Hz"),
        (SetLimits("gpu", 306000001, 1020000000), "gpu does not offer 306000001 Hz"),
        (SetLimits("gpu", 612000000, 306000000), "the lower limit is above the upper one"),
        (SetLimits("gpu", 0, 306000000), "gpu does not offer 0 Hz"),
        (SetLimits("cpu1", 115200000, 960000000), "this board has no clock cpu1"),
        (SetLimits("emc", 1, 2), "this board has no clock emc"),
        (SetEmcCap(1), "no power mode of this board has 1 Hz"),
        (SetPowerMode(3), "power mode 7W needs a reboot"),
        (SetPowerMode(7), "this board has no power mode 7"),
    ],
)
def test_nothing_beyond_what_the_board_offers(
    orin: BoardTree, helper: HelperProcess, client: HelperClient, action: SetLimits, reason: str
) -> None:
    with pytest.raises(RefusedError, match=reason):
        client.do(action)
    assert helper.writes() == []
    assert not (orin.root / "nvpmodel-calls").exists()


def test_nothing_beyond_what_it_was_set_to(orin: BoardTree, helper: HelperProcess, client: HelperClient) -> None:
    orin.write(f"{orin.gpu}/max_freq", "612000000")
    orin.write("var/lib/nvpmodel/status", "pmode:0001 fmode:quiet")
    orin.write(str(orin.emc_cap), "2133000000")
    for action, reason in (
        (SetLimits("gpu", 306000000, 816000000), "was limited to 612000000 Hz before"),
        (SetPowerMode(2), "the board was in power mode 25W, and MAXN_SUPER is more"),
        (SetEmcCap(0), "no power mode of this board has 0 Hz"),
    ):
        with pytest.raises(RefusedError, match=reason):
            client.do(action)
    assert helper.writes() == []


@pytest.mark.parametrize(
    "line", [b"\n", b"hello\n", b"limits gpu 1 2 ; reboot\n", b"\xff\n", b"power-mode 2 --force\n"]
)
def test_what_is_no_action_is_refused_and_the_next_is_done(helper: HelperProcess, line: bytes) -> None:
    with Line(helper.socket) as client:
        assert client.ask(line) == b"refused is no action that there is\n"
        assert client.ask(b"limits gpu 306000000 612000000\n") == b"ok limits gpu 306000000 612000000\n"


def test_a_line_without_an_end_is_hung_up_on(helper: HelperProcess) -> None:
    with Line(helper.socket) as client:
        assert client.ask(b"x" * 300) == b""
    with Line(helper.socket) as client:
        assert client.ask(b"restore\n") == b"ok restore\n"


def test_lines_in_pieces_and_together(helper: HelperProcess) -> None:
    with Line(helper.socket) as client:
        assert client.ask(b"resto", answers=0) == b""
        assert (
            client.ask(b"re\nrestore\nemc-cap 2133000000\n", answers=3)
            == b"ok restore\nok restore\nok emc-cap 2133000000\n"
        )


def test_one_client_at_a_time(orin: BoardTree, helper: HelperProcess, client: HelperClient) -> None:
    client.do(SetLimits("gpu", 306000000, 612000000))
    second = HelperClient(helper.socket, orin.root)
    with pytest.raises(HelperError, match="another client is served"):
        _ = second.board
    client.close()
    assert second.board.ranges["gpu"].max_hz == 1_020_000_000, "as it was before the first client"
    second.close()


GROUP = "audio"
NOBODY = 65534


def test_only_root_and_the_group_may_ask() -> None:
    # Everyone can reach this socket, so that only the helper's own check is left.
    with tempfile.TemporaryDirectory(prefix="speakd-power-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        tree = boards.make("orin-nano-super", folder / "root")
        with HelperProcess(tree, group=GROUP) as helper:
            helper.socket.chmod(0o777)
            assert _ask_without_group(helper.socket) == "refused"
            assert "may not change this board's settings" in helper.log()
        group = GROUP if os.geteuid() == 0 else own_group()
        with HelperProcess(tree, group=group) as helper:
            helper.socket.chmod(0o777)
            assert _ask_with_group(helper.socket, group) == "ok"


def test_a_group_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no group speakd-nobody-has-this: run systemd-sysusers"):
        program.main(["--socket", str(tmp_path / "s"), "--group", "speakd-nobody-has-this"])


def test_without_a_socket_it_is_told_what_to_do() -> None:
    with pytest.raises(SystemExit, match=r"speakd-power\.socket"):
        program.main([])


@pytest.mark.parametrize("answer", [b"", b"maybe\n", b"\xff\xfe\n", b"ok" * 2000, b"refused we are closed\n"])
def test_a_helper_that_talks_nonsense_is_none(orin: BoardTree, tmp_path: Path, answer: bytes) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            other, _ = listener.accept()
            with other:
                other.recv(100)
                other.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        client = HelperClient(path, orin.root)
        with pytest.raises(HelperError):
            _ = client.board
        client.close()
        thread.join(TIME_LIMIT_S)


def test_systemd_hands_it_the_socket_and_it_ends_when_nobody_asks(tmp_path: Path, orin: BoardTree) -> None:
    path = tmp_path / "handed.sock"
    # The socket comes as standard input, and systemd would have put it at 3.
    code = (
        "import os, sys; os.dup2(0, 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')\n"
        "from power import helper; helper.IDLE_S = 0.3; sys.exit(helper.main(sys.argv[1:]))\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        command = [sys.executable, "-c", code, "--root", orin.root, "--state", tmp_path / "state.json"]
        if os.geteuid() != 0:
            command += ["--group", own_group()]
        with subprocess.Popen(command, stdin=listener.fileno()) as process:
            client = HelperClient(path, orin.root)
            client.do(SetLimits("gpu", 306000000, 612000000))
            client.close()
            assert process.wait(TIME_LIMIT_S) == 0
    assert orin.read(f"{orin.gpu}/max_freq") == "1020000000"


_ASK = """import contextlib, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1])
with contextlib.suppress(BrokenPipeError):  # it may have refused us, and hung up
    s.sendall(b'restore\\n')
print(s.recv(300).decode().split()[0])
"""


def _ask_without_group(path: Path) -> str:
    """Ask in a process of somebody who is neither root nor of a group, and give the first word of the answer."""
    who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return _ask(path, who)


def _ask_with_group(path: Path, group: str) -> str:
    """Ask in a process that is not root's, but of the group."""
    groups = [grp.getgrnam(group).gr_gid]
    who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": groups} if os.geteuid() == 0 else {}
    return _ask(path, who)


def _ask(path: Path, who: dict[str, Any]) -> str:
    command = ["/usr/bin/python3", "-I", "-S", "-c", _ASK, path]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30, **who).stdout.strip()

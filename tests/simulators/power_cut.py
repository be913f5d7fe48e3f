"""A power cut at every step of whatever writes files.

    for cut in cuts(folder, lambda: keep(folder)):
        assert read(folder) in {old, new}, cut

What is called runs in a process of its own, which ends before its first step, then before its second, and so on: a file
opened, flushed, renamed, linked or deleted. Whatever it wrote and did not flush is then lost by half, as a disk may
lose it; names are kept, which is the worse case.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

_CUT: Final = 77
"""Exit status of a process whose power was cut."""

_MOST_STEPS: Final = 1000

_STEPS: Final = ("replace", "rename", "unlink", "symlink_to", "hardlink_to", "mkdir", "rmdir")
"""Methods of Path that change a folder."""


def cuts(folder: Path, act: Callable[[], object]) -> Iterator[str]:
    """Yield after each cut, with `folder` as the cut has left it, and at last once more after `act` ran to its end.

    Each time it begins with `folder` as it is now. Gives the step before which the power went. AssertionError where
    `act` fails.
    """
    with tempfile.TemporaryDirectory(prefix="speakd-cut-") as kept:
        before = Path(kept) / "before"
        shutil.copytree(folder, before, symlinks=True)
        for survived in range(_MOST_STEPS):
            shutil.rmtree(folder)
            shutil.copytree(before, folder, symlinks=True)
            told = Path(kept) / "step"
            ended = _run(lambda survived=survived, told=told: _Power(folder, survived, told).lasts_for(act))  # type: ignore[misc]
            assert ended in {0, _CUT}, f"it failed with {ended}, see above"
            yield told.read_text() if ended == _CUT else "ran to its end"
            if ended == 0:
                assert survived > 0, "it did nothing that a cut could end"
                return
    raise AssertionError(f"more than {_MOST_STEPS} steps")


def _run(act: Callable[[], None]) -> int:
    """Run it in a copy of this process, and give its exit status."""
    with warnings.catch_warnings():
        # Python 3.12 warns of threads: what is run here takes no lock that one of them might hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except BaseException:  # noqa: BLE001  whatever it is, this process must not go on as a second pytest
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class _Power:
    """Counts steps, and ends the process before one of them."""

    def __init__(self, folder: Path, lasts: int, told: Path) -> None:
        self._folder = folder
        self._left = lasts
        self._told = told
        self._safe = {_key(status): _state(status) for status in _files(folder)}
        """What of each file is on the disk."""

    def lasts_for(self, act: Callable[[], object]) -> None:
        for name in _STEPS:
            if hasattr(Path, name):
                setattr(Path, name, self._counted(name, getattr(Path, name)))
        os.link = self._counted("link", os.link)
        open_file, flush = Path.open, os.fsync

        def opened(path: Path, mode: str = "r", *others: Any, **named: Any) -> Any:  # noqa: ANN401
            if set(mode) & set("wxa+"):
                self._step(f"open {path.name}")
            return open_file(path, mode, *others, **named)

        def flushed(descriptor: int) -> None:
            self._step("fsync")
            flush(descriptor)
            status = os.fstat(descriptor)
            self._safe[_key(status)] = _state(status)

        Path.open = opened  # type: ignore[assignment,method-assign]
        os.fsync = flushed  # type: ignore[assignment]
        act()

    def _counted(self, name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            self._step(f"{name} {Path(arguments[0]).name}")
            return change(*arguments, **named)

        return counted

    def _step(self, name: str) -> None:
        if self._left > 0:
            self._left -= 1
            return
        descriptor = os.open(self._told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, name.encode())
        for path in _paths(self._folder):
            status = path.stat()
            if self._safe.get(_key(status)) != _state(status):
                os.truncate(path, status.st_size // 2)
        os._exit(_CUT)


def _paths(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _files(folder: Path) -> Iterator[os.stat_result]:
    return (path.stat() for path in _paths(folder))


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _state(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns

"""Compiled plans on the disk: whole or not at all, checked, and only ever loaded where they were made for.

One file per plan: a line of JSON that says what the plan is, then the plan. A file that is damaged, or says that it is
something else than its name, is set aside and counts as absent, so that the plan is built again and the file can be
looked at. Nothing here needs TensorRT.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from engines import durable
from engines.errors import EngineError

_LOG = logging.getLogger(__name__)

_FORMAT: Final = 1
"""Counts up with every change that an older speakd could not read."""

_LONGEST_HEADER: Final = 4096
_MOST_CRASHES: Final = 2
"""Loads, or builds, of one plan that may end with the process: one may have been a power cut."""

_PLAN, _ASIDE, _TIMING = ".plan", ".aside", ".timing"
_LOADING, _BUILDING, _FAILED = ".loading", ".building", ".failed"


@dataclass(frozen=True, slots=True)
class Machine:
    """What a plan can run on: nothing but the like of it."""

    tensorrt: str
    """Version, all of it: TensorRT loads no plan of another one."""
    compute_capability: tuple[int, int]
    multiprocessors: int
    """Two GPUs of one generation differ in it, and in which tactics fit."""

    @property
    def name(self) -> str:
        """Fit for a file's name."""
        major, minor = self.compute_capability
        return f"{self.tensorrt}-sm{major}{minor}-{self.multiprocessors}"


@dataclass(frozen=True, slots=True)
class PlanKey:
    """What a plan was made of and for."""

    graph: str
    """SHA-256 of the ONNX file, or of what it is derived from."""
    precision: str
    window: int
    """Latent frames."""
    machine: Machine

    @property
    def name(self) -> str:
        """Fit for a file's name, and for people."""
        return f"{self.graph[:16]}-{self.precision}-{self.window}-{self.machine.name}"


class PlanCache:
    """A folder of plans. Several processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder

    def get(self, key: PlanKey) -> bytes | None:
        """Give the plan of `key`; None where there is none, or none that is whole. EngineError if it is unreadable."""
        path = self._path(key, _PLAN)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise EngineError(str(path), f"cannot be read: {error.strerror}") from error
        wrong = _fault(content, key)
        if wrong:
            self._set_aside(path, wrong)
            return None
        return content[content.index(b"\n") + 1 :]

    def put(self, key: PlanKey, plan: bytes) -> None:
        """Keep a plan, in place of an older one. EngineError where the disk refuses; the older one then stays."""
        header = {
            "format": _FORMAT,
            "key": asdict(key),
            "size": len(plan),
            "sha256": hashlib.sha256(plan).hexdigest(),
        }
        self._write(self._path(key, _PLAN), json.dumps(header).encode() + b"\n" + plan)
        for kind in (_FAILED, _LOADING, _BUILDING):
            self._remove(self._path(key, kind))

    @contextmanager
    def loading(self, key: PlanKey) -> Iterator[None]:
        """Surround the load of a plan, which in a plan gone bad can end the process.

        EngineError, the plan set aside, where it has done so before: a service that is restarted for ever is worse than
        one that runs slower.
        """
        mark = self._path(key, _LOADING)
        crashes = _size(mark)
        if crashes >= _MOST_CRASHES:
            reason = f"loading it has ended the process {crashes} times"
            self._set_aside(self._path(key, _PLAN), reason)
            self._remove(mark)
            raise EngineError(key.name, f"is not loaded: {reason}; it is set aside and can be built again")
        with self._marked(mark):
            yield

    @contextmanager
    def building(self, key: PlanKey) -> Iterator[None]:
        """Surround a build, which may be killed; `failure` then tells of it."""
        with self._marked(self._path(key, _BUILDING)):
            yield

    def excuse(self, keys: Iterable[PlanKey]) -> None:
        """Let no build of these count as killed: whoever ended it did not want it just then."""
        for key in keys:
            self._remove(self._path(key, _BUILDING))

    @contextmanager
    def _marked(self, mark: Path) -> Iterator[None]:
        """Count on the disk how often what is inside ended with the process."""
        try:
            durable.make_folder(self.folder)
            with mark.open("ab") as file:
                file.write(b"x")
        except OSError as error:  # a folder that cannot be written: plans that load there still do
            _LOG.info("%s cannot be written: %s", mark, error.strerror)
        try:
            yield
        finally:
            self._remove(mark)

    def fail(self, key: PlanKey, reason: str) -> None:
        """Note that a plan cannot be built, so that no restart tries it again. EngineError where the disk refuses."""
        self._write(self._path(key, _FAILED), reason.encode())

    def failure(self, key: PlanKey) -> str:
        """Give the reason why building a plan has failed; empty where it has not, or was never tried."""
        try:
            return self._path(key, _FAILED).read_text(errors="replace")
        except OSError:
            crashes = _size(self._path(key, _BUILDING))
            killed = f"it was killed {crashes} times, perhaps for want of memory"
            return killed if crashes >= _MOST_CRASHES else ""

    def was_used(self) -> bool:
        """Whether a plan was ever built here, for whatever machine."""
        return any(next(self.folder.glob(f"*{kind}"), None) for kind in (_PLAN, _ASIDE))

    def timing(self, machine: Machine) -> bytes:
        """Give the timing cache of earlier builds on a machine; empty where there is none."""
        try:
            return self._timing_path(machine).read_bytes()
        except OSError:  # it only saves time
            return b""

    def keep_timing(self, machine: Machine, content: bytes) -> None:
        """Keep a timing cache. EngineError where the disk refuses."""
        self._write(self._timing_path(machine), content)

    def prune(self, machine: Machine, wanted: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Delete what no longer serves; gives the names.

        That is: all of another TensorRT or GPU, plans of a graph (its hash) that is not `wanted`, and what a killed
        process has left half written. EngineError where the disk refuses.
        """
        gone: list[str] = []
        try:
            for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else []:
                if self._is_stale(path, machine, wanted):
                    path.unlink(missing_ok=True)
                    gone.append(path.name)
        except OSError as error:
            raise EngineError(str(self.folder), f"cannot be tidied: {error.strerror or error}") from error
        return gone

    def _is_stale(self, path: Path, machine: Machine, wanted: Callable[[str], bool]) -> bool:
        match path.suffix:
            case durable.PART:
                return durable.is_abandoned(path)
            case ".timing":
                return path.stem != machine.name
            case ".plan":
                try:
                    with path.open("rb") as file:
                        key = json.loads(file.readline(_LONGEST_HEADER))["key"]
                    return _machine(key) != machine or not wanted(key["graph"])
                except (ValueError, KeyError, TypeError):
                    return True
            case ".aside" | ".loading" | ".building" | ".failed":
                return not path.stem.endswith(f"-{machine.name}")
            case _:
                return False

    def _path(self, key: PlanKey, kind: str) -> Path:
        return self.folder / f"{key.name}{kind}"

    def _timing_path(self, machine: Machine) -> Path:
        return self.folder / f"{machine.name}{_TIMING}"

    def _write(self, path: Path, content: bytes) -> None:
        try:
            durable.make_folder(self.folder)
            durable.write_whole(path, content)
        except OSError as error:
            raise EngineError(str(path), f"cannot be written: {error.strerror or error}") from error

    def _set_aside(self, path: Path, reason: str) -> None:
        """Rename a plan out of the way, over the one that was set aside before: one is enough to look at."""
        _LOG.warning("the plan %s is set aside: %s", path.name, reason)
        try:
            path.replace(path.with_suffix(_ASIDE))
        except FileNotFoundError:
            return
        except OSError as error:
            raise EngineError(str(path), f"is unusable ({reason}) and cannot be renamed: {error.strerror}") from error

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:  # a folder that cannot be written holds no such file of ours either
            _LOG.info("%s cannot be removed: %s", path, error.strerror)


def _fault(content: bytes, key: PlanKey) -> str:
    """Say what is wrong with a plan's file; empty: nothing."""
    line, newline, plan = content.partition(b"\n")
    try:
        header: Any = json.loads(line) if newline and len(line) < _LONGEST_HEADER else None
        if header["format"] != _FORMAT or _machine(header["key"]) != key.machine:
            return "it was made for another machine"
        if header["key"] != json.loads(json.dumps(asdict(key))):
            return "it was made of another graph"
        if header["size"] != len(plan):
            return f"it has {len(plan)} bytes of {header['size']}"
        if header["sha256"] != hashlib.sha256(plan).hexdigest():
            return "its bytes have changed since it was built"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "its beginning is damaged"
    return ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _machine(key: Any) -> Machine:  # noqa: ANN401  what JSON holds
    of = key["machine"]
    return Machine(of["tensorrt"], tuple(of["compute_capability"]), of["multiprocessors"])

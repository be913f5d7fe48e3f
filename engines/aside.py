"""Work that may hang, done by a thread that may be left behind.

Whoever touches a file on a network disk whose server is gone waits until that is back, and no signal helps: only a
second thread can have a time-out.
"""

from __future__ import annotations

import errno
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Final, Generic, TypeVar

PATIENCE_S: Final = 1.0
"""For what a disk answers from memory or within some ms, on a busy machine too: a pause that is lost once per hang."""

_T = TypeVar("_T")


class Aside:
    """One thread for one place that may hang: no more than this one is ever stuck there.

    For any threads, which wait for one another. The hop to the thread and back takes 10 us; there is none before the
    first work.
    """

    def __init__(self, name: str) -> None:
        """`name` of the thread."""
        self._name = name
        self._lock = threading.Lock()  # held while work is waited for, which is bounded
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._left: threading.Event | None = None
        """Of what was not waited for any more: set once that is done after all."""
        weakref.finalize(self, self._tasks.put, None)

    def do(self, work: Callable[[], _T], patience_s: float = PATIENCE_S) -> _T:
        """Give what `work` gives, or raise what it raises.

        TimeoutError where it takes longer than `patience_s`, or, at once, where what took too long before still does.
        It is done to its end all the same, and its result lost.
        """
        with self._lock:
            if self._left is not None and not self._left.is_set():
                raise _no_answer()
            if self._thread is None or not self._thread.is_alive():  # as in a process that was forked from its own
                self._thread = threading.Thread(target=_serve, args=(self._tasks,), name=self._name, daemon=True)
                self._thread.start()
            task = _Task(work)
            self._tasks.put(task.run)
            self._left = None if task.done.wait(patience_s) else task.done
            if self._left is not None:
                raise _no_answer()
        return task.result()


class _Task(Generic[_T]):
    """Something to be done, and what came of it."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self.done = threading.Event()
        self._work = work
        self._results: list[_T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it."""
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001  whoever asked decides
            self._error = error
        self.done.set()

    def result(self) -> _T:
        """Give what came of it once it is done, or raise it."""
        if self._error is not None:
            raise self._error
        return self._results[0]


def _serve(tasks: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # with its result, which may be large, before the next one comes


def _no_answer() -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, "it does not answer")

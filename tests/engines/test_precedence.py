from __future__ import annotations

import contextlib
import threading

from engines.precedence import Precedence

TIMEOUT_S = 60
BRIEFLY_S = 0.05


class Patient:
    """A thread that waits for its turn."""

    def __init__(self, precedence: Precedence) -> None:
        self.went = threading.Event()
        self._thread = threading.Thread(target=self._go, args=(precedence,), daemon=True)
        self._thread.start()

    def _go(self, precedence: Precedence) -> None:
        precedence.wait_turn()
        self.went.set()


def test_nobody_urgent_nobody_waits() -> None:
    assert Patient(Precedence()).went.wait(TIMEOUT_S)


def test_the_patient_wait_until_the_last_urgent_one_is_done() -> None:
    precedence = Precedence()
    with precedence.urgent():
        with precedence.urgent():
            patients = [Patient(precedence) for _ in range(3)]
        assert not any(patient.went.wait(BRIEFLY_S) for patient in patients)
    assert all(patient.went.wait(TIMEOUT_S) for patient in patients)


def test_the_patient_go_on_while_the_urgent_one_rests() -> None:
    precedence = Precedence()
    with precedence.urgent():
        with precedence.resting():
            assert Patient(precedence).went.wait(TIMEOUT_S)
        late = Patient(precedence)
        assert not late.went.wait(BRIEFLY_S)
    assert late.went.wait(TIMEOUT_S)


def test_an_urgent_one_that_fails_holds_nobody_back() -> None:
    precedence = Precedence()
    with contextlib.suppress(ZeroDivisionError), precedence.urgent():
        _ = 1 / 0
    assert Patient(precedence).went.wait(TIMEOUT_S)


def test_closing_lets_all_go() -> None:
    precedence = Precedence()
    with precedence.urgent():
        patient = Patient(precedence)
        precedence.close()
        assert patient.went.wait(TIMEOUT_S)
        assert Patient(precedence).went.wait(TIMEOUT_S)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.commands import Priority, Speak
from daemon.errors import PayloadError
from daemon.queue import SpeakQueue

PRIORITIES = list(Priority)


def speak(command_id: str, priority: Priority = Priority.MESSAGE) -> Speak:
    return Speak(id=command_id, text="a", priority=priority)


@given(st.lists(st.sampled_from(PRIORITIES) | st.none(), max_size=40))
def test_order_is_by_priority_then_arrival_and_ahead_says_so(steps: list[Priority | None]) -> None:
    """None takes one out. The model is a list that is sorted anew each time."""
    queue = SpeakQueue(100)
    model: list[tuple[int, int]] = []
    for number, priority in enumerate(steps):
        if priority is None:
            taken = queue.pop()
            wanted = model.pop(0) if model else None
            assert (None if taken is None else taken.command.id) == (None if wanted is None else str(wanted[1]))
        else:
            model.append((PRIORITIES.index(priority), number))
            model.sort()
            assert queue.put(speak(str(number), priority), 0.0) == model.index((PRIORITIES.index(priority), number))
        assert len(queue) == len(model)
        assert [queue.place(str(number)) for _, number in model] == list(range(len(model)))


def test_critical_goes_first_and_progress_last() -> None:
    queue = SpeakQueue(10)
    for name in ("progress", "notification", "message", "important", "critical"):
        queue.put(speak(name, Priority(name)), 0.0)
    order = []
    while (waiting := queue.pop()) is not None:
        order.append(waiting.command.id)
    assert order == ["critical", "important", "message", "notification", "progress"]


def test_a_full_queue_refuses_even_the_most_urgent_and_keeps_what_it_has() -> None:
    queue = SpeakQueue(2)
    queue.put(speak("a"), 0.0)
    queue.put(speak("b"), 0.0)
    with pytest.raises(PayloadError) as caught:
        queue.put(speak("c", Priority.CRITICAL), 0.0)
    assert (caught.value.code, caught.value.command_id) == ("queue_full", "c")
    assert len(queue) == 2
    queue.pop()
    assert queue.put(speak("c", Priority.CRITICAL), 0.0) == 0


def test_a_command_keeps_the_time_it_came_in() -> None:
    queue = SpeakQueue(1)
    queue.put(speak("a"), 12.5)
    waiting = queue.pop()
    assert waiting is not None
    assert (waiting.command.id, waiting.received_at) == ("a", 12.5)


def test_what_does_not_wait_has_no_place() -> None:
    queue = SpeakQueue(1)
    assert queue.place("a") is None
    assert queue.pop() is None

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.commands import Priority, Speak
from daemon.errors import PayloadError
from daemon.queue import SpeakQueue, Waiting

PRIORITIES = list(Priority)


def waiting(number: int, priority: Priority = Priority.MESSAGE, deadline: float = math.inf) -> Waiting:
    return Waiting(Speak(id=str(number), text="abc", priority=priority), 0.0, number, deadline=deadline)


@given(st.lists(st.sampled_from(PRIORITIES) | st.none(), max_size=40))
def test_order_is_by_priority_then_arrival(steps: list[Priority | None]) -> None:
    """None takes one out. The model is a list that is sorted anew each time."""
    queue = SpeakQueue(100, 1000)
    model: list[tuple[int, int]] = []
    for number, priority in enumerate(steps):
        if priority is None:
            taken = queue.pop()
            wanted = model.pop(0) if model else None
            assert (None if taken is None else taken.id) == (None if wanted is None else str(wanted[1]))
        else:
            model.append((PRIORITIES.index(priority), number))
            model.sort()
            queue.put(waiting(number, priority))
        assert [w.id for w in queue] == [str(number) for _, number in model]
        assert [len(queue.ahead_of(w)) for w in queue] == list(range(len(model)))


def test_critical_goes_first_and_progress_last() -> None:
    queue = SpeakQueue(10, 1000)
    for number, priority in enumerate(reversed(PRIORITIES)):
        queue.put(waiting(number, priority))
    assert [w.command.priority for w in queue] == PRIORITIES


def test_only_what_is_critical_may_be_asked_for() -> None:
    queue = SpeakQueue(10, 1000)
    queue.put(waiting(1))
    assert queue.pop(critical_only=True) is None
    queue.put(waiting(2, Priority.CRITICAL))
    taken = queue.pop(critical_only=True)
    assert taken is not None
    assert taken.id == "2"


@pytest.mark.parametrize(("capacity", "size"), [(2, 1000), (100, 8)])
def test_a_full_queue_has_no_room_but_for_what_comes_back(capacity: int, size: int) -> None:
    queue = SpeakQueue(capacity, size)
    for number in (1, 2):
        queue.check_room(waiting(number).command)
        queue.put(waiting(number))
    with pytest.raises(PayloadError) as caught:
        queue.check_room(waiting(3, Priority.CRITICAL).command)
    assert (caught.value.code, caught.value.command_id) == ("queue_full", "3")
    queue.put(waiting(0))
    assert [w.id for w in queue] == ["0", "1", "2"]


def test_what_has_expired_is_taken_out_and_what_was_begun_stays() -> None:
    queue = SpeakQueue(10, 1000)
    begun = Waiting(Speak(id="begun", text="a"), 0.0, 3, deadline=1.0, begun=True)
    for item in (waiting(1, deadline=5.0), waiting(2), begun):
        queue.put(item)
    assert queue.next_deadline == 5.0
    assert queue.take_expired(4.9) == []
    assert [w.id for w in queue.take_expired(5.0)] == ["1"]
    assert math.isinf(queue.next_deadline)
    assert [w.id for w in queue] == ["2", "begun"]

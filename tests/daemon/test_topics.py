from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from daemon.commands import COMMANDS, Cancel, Speak, VolumeSet
from daemon.topics import Topics

NO_TOPIC = {"+", "#", "\ufdd0", "\ufdef", *(chr(plane << 16 | 0xFFFE | odd) for plane in range(17) for odd in (0, 1))}
"""What ends a connection to mosquitto in the topic of a PUBLISH, beside control characters, which no id may have."""

TOPICS = Topics("speakd", "kiosk", ["hall", "east"], renders=True)


@pytest.mark.parametrize("scope", ["kiosk", "all", "group/hall", "group/east"])
def test_every_command_is_heard_in_every_scope(scope: str) -> None:
    for end, kind in COMMANDS.items():
        topic = f"speakd/{scope}/{end}"
        assert TOPICS.command(topic) is kind
        assert any(topic_matches_sub(one, topic) for one in TOPICS.filters)


@pytest.mark.parametrize(
    "topic",
    [
        "speakd/other/speak",
        "speakd/group/west/speak",
        "speakd/kiosk/mood/set",
        "speakd/kiosk",
        "speakd/kiosk/speak/x",
        "",
    ],
)
def test_nothing_else_is_a_command(topic: str) -> None:
    assert TOPICS.command(topic) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128) | st.sampled_from(sorted(NO_TOPIC)))
def test_what_is_published_is_never_heard_as_a_command(command_id: str) -> None:
    for topic in (TOPICS.event, TOPICS.status, TOPICS.settings, TOPICS.audio(command_id)):
        assert not any(topic_matches_sub(one, topic) for one in TOPICS.filters)
        assert not TOPICS.may_answer(topic)
    assert TOPICS.audio(command_id).count("/") == 3
    assert not NO_TOPIC.intersection(TOPICS.audio(command_id))


def test_what_is_to_be_rendered_comes_on_the_topic_that_is_shared() -> None:
    assert "$share/speakd-render/speakd/render" in TOPICS.filters
    assert TOPICS.command("speakd/render") is Speak
    assert TOPICS.is_render("speakd/render")
    assert "$share/speakd-render/speakd/render" not in Topics("speakd", "kiosk").filters


@pytest.mark.parametrize(
    "topic",
    ["answers/+", "#", "$SYS/x", "speakd/kiosk/speak", "speakd/x", "a\0b", "a\n", "a\ufdd0", "\U0001ffff", "/" * 64],
)
def test_answers_do_not_go_just_anywhere(topic: str) -> None:
    assert not TOPICS.may_answer(topic)
    assert TOPICS.may_answer("answers/here")
    assert TOPICS.may_answer("/" * 63)


def test_of_two_devices_each_hears_its_own() -> None:
    assert Topics("speakd", "other").command("speakd/kiosk/cancel") is None
    assert Topics("a/b", "kiosk").command("a/b/kiosk/cancel") is Cancel
    assert Topics("a/b", "kiosk").command("a/b/all/volume/set") is VolumeSet

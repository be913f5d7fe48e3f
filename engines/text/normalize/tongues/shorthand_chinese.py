"""Chinese words for signs and addresses."""

from __future__ import annotations

from typing import Final

from engines.text.normalize.tongues.shorthand_words import Shorthand, relations

CHINESE: Final = Shorthand(
    dot="点",
    at="艾特",
    slash="斜杠",
    dash="杠",
    underscore="下划线",
    colon="冒号",
    spaced=False,
    signs={"&": "和"} | relations("小于等于|大于等于|不等于|约等于|除以|无穷|根号"),
)

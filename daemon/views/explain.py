"""`speakd explain "text"`: how a text is read, for people and for machines."""

from __future__ import annotations

import json
from dataclasses import asdict

from engines.text.explain import Explanation


def as_text(explained: Explanation) -> str:
    """Give it as a table."""
    lines = [f"{step.step:18} {step.text}" for step in explained.steps]
    lines += ["", *(f"{'phonemes':18} {sentence}" for sentence in explained.sentences), ""]
    lines += [f"{word.word:18} {word.phonemes:24} {_SOURCES[word.source]}" for word in explained.words]
    lines += [f"{'warning':18} {warning}" for warning in explained.warnings]
    return "\n".join(lines)


def as_json(explained: Explanation) -> str:
    """Give it as a JSON object."""
    return json.dumps(asdict(explained), ensure_ascii=False, indent=1)


_SOURCES = {"espeak": "espeak-ng", "lexicon": "lexicon", "heteronym": "its neighbours", "ssml": "SSML"}

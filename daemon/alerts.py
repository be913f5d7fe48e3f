"""Alerts: which figures are out of bounds, and for how long. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from daemon.config import AlertsConfig
from daemon.telemetry_messages import Alert, Telemetry

_CLEAR_AT: Final = 0.9
"""Of a threshold: a figure has to come back so far, or it would be raised and cleared by every breath of wind."""

_NEARLY_FULL: Final = "a disk is nearly full: `speakd doctor` tells which, and what may take it"
_MUCH_WRITTEN: Final = "the daemon has written more within 24 hours than flash memory likes: `speakd doctor` tells more"
_WORN: Final = "the eMMC nears the end of its life: copy what matters, and plan to replace it"

_FEWEST_FOR_P95: Final = 20
_FEWEST_FOR_P99: Final = 100
"""Utterances in the last hour. Of fewer, one slow one alone would be the percentile."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What alerts are judged by."""

    figures: Telemetry
    responses: int = 0
    """Of how many utterances the percentiles are."""
    drop_percent: float | None = None
    """Of streams, in the last hour."""
    audio_problem: str = ""


class Hysteresis:
    """Whether a figure is beyond its threshold, slowly: each change of mind must have lasted, and be clear."""

    def __init__(self, threshold: float, *, clear_at: float, raise_after_s: float, clear_after_s: float) -> None:
        """Raise above `threshold`, clear at `clear_at` (no higher) and below; each once it has lasted."""
        self.raised = False
        self._threshold = threshold
        self._clear_at = min(clear_at, threshold)
        self._raise_after_s = raise_after_s
        self._clear_after_s = clear_after_s
        self._since: float | None = None
        """Since when the figure says otherwise than `raised`."""

    def judge(self, value: float | None, now: float) -> bool:
        """Take the figure at this moment (None: there is none, which is nothing to worry about); tell of a change."""
        if self.raised:
            differs = value is None or value <= self._clear_at
        else:
            differs = value is not None and value > self._threshold
        if not differs:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        if now - self._since < (self._clear_after_s if self.raised else self._raise_after_s):
            return False
        self.raised = not self.raised
        self._since = None
        return True


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert."""

    name: str
    severity: Literal["warning", "critical"]
    unit: str
    value: Callable[[Facts], float | None]
    words: Callable[[Facts], str]
    threshold: float | None = None
    """None: about a fact, whose value is 0 or 1."""
    raise_after_s: float = 0.0
    clear_after_s: float = 60.0
    below: bool = False
    """Whether less than the threshold is what is wrong."""

    def hysteresis(self) -> Hysteresis:
        """Make the state that belongs to it."""
        threshold = self.signed(self.threshold or 0.0)
        return Hysteresis(
            threshold,
            clear_at=threshold / _CLEAR_AT if self.below else threshold * _CLEAR_AT,
            raise_after_s=self.raise_after_s,
            clear_after_s=self.clear_after_s,
        )

    def signed(self, value: float) -> float:
        """Give a figure so that more of it is worse."""
        return -value if self.below else value


class Alerts:
    """All rules that are switched on, and which of them are raised."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._states = [(rule, rule.hysteresis()) for rule in rules]

    @property
    def raised(self) -> tuple[str, ...]:
        """The names of those that are raised."""
        return tuple(rule.name for rule, state in self._states if state.raised)

    def judge(self, facts: Facts, now: float) -> list[Alert]:
        """Give what is raised or cleared at this moment, in seconds of `time.monotonic`."""
        changes = []
        for rule, state in self._states:
            value = rule.value(facts)
            if state.judge(None if value is None else rule.signed(value), now):
                changes.append(
                    Alert(
                        alert=rule.name,
                        state="raised" if state.raised else "cleared",
                        severity=rule.severity,
                        value=None if value is None else round(value, 1),
                        threshold=rule.threshold,
                        unit=rule.unit,
                        reason=rule.words(facts) if state.raised else _ended(value),
                    )
                )
        return changes


def rules(config: AlertsConfig) -> list[Rule]:
    """Give those that the configuration asks for."""
    wanted = [
        Rule("ttfa_p95", "warning", "ms", _p95, _slow("one in twenty"), threshold=config.ttfa_p95_ms),
        Rule("ttfa_p99", "critical", "ms", _p99, _slow("one in a hundred"), threshold=config.ttfa_p99_ms),
        Rule("gpu_memory", "warning", "%", _gpu, _words("the GPU's memory is nearly full"), config.gpu_memory_percent),
        # A long text fills the pool by itself, for as long as it takes: that is what it is for.
        Rule("pool", "warning", "%", _pool, _words("nearly all sample buffers are held"), config.pool_percent, 60.0),
        Rule("encoder_drops", "warning", "%", _drops, _words("streams lose packets"), config.encoder_drops_percent),
    ]
    wanted += [
        Rule("disk_full", "warning", "MiB", _free, _words(_NEARLY_FULL), config.disk_free_mb, below=True),
        Rule("disk_written", "warning", "MiB", _written, _words(_MUCH_WRITTEN), config.disk_written_mb),
        Rule("disk_wear", "warning", "%", _wear, _words(_WORN), config.disk_wear_percent),
    ]
    if config.disk_refuses:
        # A card that is busy with itself for a second or two is none that is at its end.
        wanted.append(Rule("disk_refuses", "critical", "", _refuses, _refusal, raise_after_s=3.0, clear_after_s=10.0))
    if config.throttling:
        wanted.append(Rule("throttling", "critical", "", _throttling, _throttled))
    if config.card_lost:
        # A server of sound that restarts is away for a second or two.
        wanted.append(Rule("card_lost", "critical", "", _card, _card_words, raise_after_s=5.0, clear_after_s=5.0))
    if config.self_check:
        wanted.append(Rule("self_check", "critical", "", _bad_voice, _voice_words, clear_after_s=0.0))
    return wanted


def _p95(facts: Facts) -> float | None:
    response = facts.figures.ttfa_ms.response
    return response.p95 if response is not None and facts.responses >= _FEWEST_FOR_P95 else None


def _p99(facts: Facts) -> float | None:
    response = facts.figures.ttfa_ms.response
    return response.p99 if response is not None and facts.responses >= _FEWEST_FOR_P99 else None


def _gpu(facts: Facts) -> float | None:
    return _percent(facts.figures.memory_mb.gpu_used, facts.figures.memory_mb.gpu)


def _pool(facts: Facts) -> float | None:
    return _percent(facts.figures.memory_mb.pool_used, facts.figures.memory_mb.pool)


def _drops(facts: Facts) -> float | None:
    return facts.drop_percent


def _free(facts: Facts) -> float | None:
    return facts.figures.disk.free_mb


def _written(facts: Facts) -> float | None:
    return facts.figures.disk.written_day_mb


def _wear(facts: Facts) -> float | None:
    return facts.figures.disk.wear_percent


def _refuses(facts: Facts) -> float:
    return float(bool(facts.figures.disk.refusal))


def _refusal(facts: Facts) -> str:
    return f"speech goes on, but not all of it is kept: {facts.figures.disk.refusal}"


def _throttling(facts: Facts) -> float:
    return float(bool(facts.figures.throttling))


def _throttled(facts: Facts) -> str:
    return f"the board slows itself down: {', '.join(facts.figures.throttling)}"


def _card(facts: Facts) -> float:
    return float(bool(facts.audio_problem))


def _card_words(facts: Facts) -> str:
    return facts.audio_problem


def _bad_voice(facts: Facts) -> float:
    check = facts.figures.self_check
    return float(check is not None and check.state != "passed")


def _voice_words(facts: Facts) -> str:
    check = facts.figures.self_check
    return f"{check.voice}: {check.reason}" if check is not None else ""


def _ended(value: float | None) -> str:
    return "there is no such figure any more" if value is None else "it is well within bounds again"


def _slow(which: str) -> Callable[[Facts], str]:
    return _words(f"{which} of the last hour's utterances began too late, by no fault of the queue")


def _words(text: str) -> Callable[[Facts], str]:
    return lambda _facts: text


def _percent(part: float | None, whole: float | None) -> float | None:
    return 100 * part / whole if part is not None and whole else None

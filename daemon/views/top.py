"""`speakd top`: one device in a terminal, through the broker alone. The only module that imports textual."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Sequence
from typing import ClassVar, Final

try:
    from textual.app import App, ComposeResult
    from textual.binding import Binding, BindingType
    from textual.containers import Horizontal, Vertical
    from textual.content import Content
    from textual.css.query import NoMatches
    from textual.widgets import Footer, Sparkline, Static
except ModuleNotFoundError as missing:
    from daemon.errors import StartError

    raise StartError("`speakd top` needs textual: pip install 'speakd[view]'; `speakd fleet` does without") from missing

from daemon.config import MqttConfig
from daemon.telemetry_messages import Latency
from daemon.views import panels
from daemon.views.seen import Seen, clean
from daemon.views.watch import Heard, Link, Watch

_LOOK_S: Final = 0.1
"""Between two looks at what has arrived; a person sees no less."""

_ASK_S: Final = 0.5
"""Between two questions for the queue, at least."""


def run(mqtt: MqttConfig, device: str) -> int:
    """Show it until somebody presses q; gives the exit status."""
    with contextlib.closing(Watch(mqtt, device)) as watch:
        Top(watch, device, f"{mqtt.host}:{mqtt.port}").run()
    return 0


class Top(App[None]):
    """What `watch` hears of a device, in panels."""

    CSS = """
    Screen { layout: vertical; }
    #head { height: auto; padding: 0 1; background: $panel; }
    #middle { height: 1fr; }
    .column { width: 1fr; overflow-y: auto; }
    .box { border: round $primary; padding: 0 1; height: auto; }
    #now { height: 1fr; min-height: 6; }
    Sparkline { height: 3; margin: 0 0 1 0; }
    #first { height: auto; border: round $primary; padding: 0 1; }
    #trouble { height: auto; max-height: 8; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("p", "pause", "Pause or go on"),
        Binding("s", "skip", "Skip"),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "speakd top"

    def __init__(self, watch: Watch, device: str, broker: str) -> None:
        super().__init__()
        self._watch = watch
        self._device = device
        self._broker = clean(broker)
        self._link = Link(up=False)
        self.seen: Final = Seen(device)
        self._asked_at = 0.0
        self._wants_queue = True
        self._questions = f"top-{uuid.uuid4().hex[:8]}"

    def compose(self) -> ComposeResult:
        """Make the panels."""
        yield Static(id="head")
        with Horizontal(id="middle"):
            with Vertical(classes="column"):
                yield _box("now", "says")
                with Vertical(id="first"):
                    yield Sparkline([], id="sounds", summary_function=max)
                    yield Static(id="stages")
            with Vertical(classes="column"):
                yield _box("mode", "mode")
                with Vertical(classes="box"):
                    yield Sparkline([], id="warmth", summary_function=max)
                    yield Static(id="zones")
                yield _box("power", "power and load")
                yield _box("memory", "memory and counts")
        yield _box("trouble", "trouble")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        self._show()
        self.set_interval(_LOOK_S, self._look)

    def action_pause(self) -> None:
        """Have it fall silent, or go on."""
        paused = self.seen.settings is not None and self.seen.settings.paused
        self._watch.command(self._device, "resume" if paused else "pause", {})

    def action_skip(self) -> None:
        """Have it go on to the next one."""
        self._watch.command(self._device, "skip", {})

    def _look(self) -> None:
        """Take what has arrived, and show it."""
        now = time.monotonic()
        while (arrived := self._watch.next(0)) is not None:
            if isinstance(arrived, Heard):
                self.seen.take(arrived, now)
                if arrived.kind == "event" and self.seen.last_event.get("event") not in {"word", "queue"}:
                    self._wants_queue = True
            else:
                self._link = arrived
                self._wants_queue |= arrived.up
        if self._wants_queue and self._link.up and now - self._asked_at > _ASK_S:
            self._asked_at, self._wants_queue = now, False
            self._watch.command(self._device, "queue/get", {"request": f"{self._questions}-{now:.3f}"})
        with contextlib.suppress(NoMatches):  # at the end the panels go before the clock that looks
            self._show()

    def _show(self) -> None:
        seen, now = self.seen, time.monotonic()
        figures = seen.telemetry
        problem = None if self._link.up else self._link.problem
        for name, pieces in {
            "head": panels.head(seen, problem, self._broker),
            "now": panels.says(seen),
            "stages": panels.stages(figures.ttfa_ms if figures else Latency()),
            "mode": panels.mode(figures),
            "zones": panels.zones(figures),
            "power": panels.power(figures),
            "memory": panels.memory(figures),
            "trouble": panels.trouble(seen, now),
        }.items():
            self.query_one(f"#{name}", Static).update(Content.assemble(*pieces))
        self._draw("sounds", seen.first_sounds_ms, "time to first audio", "ms")
        self._draw("warmth", seen.temperatures_c, "temperature", "°C")

    def _draw(self, name: str, values: Sequence[float], title: str, unit: str) -> None:
        """Draw a curve from its lowest to its highest value, which stand in the title; of one value there is none."""
        curve = self.query_one(f"#{name}", Sparkline)
        curve.display = len(values) > 1
        curve.data = list(values)
        if isinstance(curve.parent, Vertical):
            span = f", last {len(values)}: {min(values):.0f} to {max(values):.0f} {unit}" if curve.display else ""
            curve.parent.border_title = title + span


def _box(name: str, title: str) -> Static:
    box = Static(id=name, classes="box")
    box.border_title = title
    return box

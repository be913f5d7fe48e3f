"""The owner of all figures: counts what the threads tell the speaker and what becomes of commands. No clock, no I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from daemon.disks import DiskState
from daemon.events import Event, Failed, Finished, Rejected, Started
from daemon.histogram import Ratio, Rolling
from daemon.inbox import Inbox, PlaybackEnded, PlaybackStarted, RenderEnded, SynthesisEnded
from daemon.stages import Stages
from daemon.telemetry_messages import Disk, Latency, Memory, Percentiles, SelfCheck, Telemetry, VoiceLoads
from engines.voice_memory import Loads
from power.mode import Decision
from power.reading import Reading

STAGES: Final = ("whole", "response", "queue", "text", "acoustic", "window", "sink")
"""What durations are of; see `Latency`."""

_SHARES: Final = (0.5, 0.95, 0.99)
_MB: Final = 2**20

_UNDER_WAY: Final = 64
"""Utterances whose stages are not all known yet; there are three at most, but for messages that never come."""

_LONGEST_GAP_S: Final = 60.0
"""Between two readings, over which the power is taken to be between theirs."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """What others know at this moment. None: nobody knows."""

    speaking: bool = False
    queue: int = 0
    rendering: int = 0
    process_bytes: int | None = None
    pool_buffers: int | None = None
    pool_used: int | None = None
    buffer_bytes: int = 0
    gpu_free_bytes: int | None = None
    gpu_total_bytes: int | None = None
    underruns: int | None = None
    encoder_packets: int | None = None
    encoder_drops: int | None = None
    lost: int = 0
    disk: DiskState = field(default_factory=DiskState)
    voices: Mapping[str, Loads] = field(default_factory=dict)
    """Those that were loaded for the loudspeaker so far, by name."""
    missing_phonemes: Mapping[str, int] = field(default_factory=dict)
    """Those that voices lacked so far, by voice."""
    degraded: Mapping[str, str] = field(default_factory=dict)
    """Source of figures -> why it says less than it could."""


@dataclass(slots=True)
class _UnderWay:
    started_at: float | None = None
    ttfa_s: float | None = None
    watermarked: bool = False
    stages: Stages | None = None


class Figures:
    """For the main thread. Times are of `time.monotonic`."""

    def __init__(self, output: str, *, started_at: float, restarts: int = 0) -> None:
        """`output`: what `Started` calls the loudspeaker; `restarts`: how often this began without a clean end."""
        self.durations: Final = {stage: Rolling() for stage in STAGES}
        self.reading: Reading | None = None
        self.decision: Decision | None = None
        self.self_check: SelfCheck | None = None
        self._output = output
        self._started_at = started_at
        self._restarts = restarts
        self._under_way: OrderedDict[str, _UnderWay] = OrderedDict()
        self._rtf = Ratio()
        self._cached = Ratio()
        self._drops = Ratio()
        self._marking = Ratio()
        self._energy = Ratio()
        self._dropped = self._packets = 0
        self._speaking_since: float | None = None
        self._spoke_s = 0.0  # since the last reading
        self._utterances = self._failed = self._rejected = self._hits = self._marked = 0

    def take(self, message: Inbox, now: float) -> None:
        """Count what a thread told."""
        match message:
            case PlaybackStarted(command_id, at, watermarked):
                under_way = self._of(command_id)
                under_way.started_at, under_way.watermarked = at, watermarked
                self._speaking_since = at
            case PlaybackEnded(at=at, audio_s=audio_s):
                self._stop_speaking(at)
                self._energy.add(0.0, audio_s, now)
            case SynthesisEnded():
                self._synthesized(message, now)
            case RenderEnded(error=None, audio_s=audio_s, mark_s=float(mark_s)):
                self._marked += 1
                self._marking.add(mark_s, audio_s, now)
            case _:
                pass

    def hear(self, event: Event, now: float) -> None:
        """Count what became of a command."""
        match event:
            case Started() if event.output == self._output:
                under_way = self._of(event.id)
                under_way.ttfa_s = event.ttfa_ms / 1000
                self.durations["whole"].add(event.ttfa_ms, now)
                self._marked += under_way.watermarked  # now, for it may be interrupted, and be told once
                self._settle(event.id, under_way, now)
            case Finished():
                self._utterances += 1
            case Failed():
                self._failed += 1
            case Rejected():
                self._rejected += 1
            case _:
                pass

    def read(self, reading: Reading, now: float) -> None:
        """Take note of what the sensors say, and of what speech has cost since they were asked last."""
        self._stop_speaking(reading.at_s, goes_on=True)
        before, self.reading = self.reading, reading
        if before is not None and reading.total_power_mw is not None and before.total_power_mw is not None:
            between_s = reading.at_s - before.at_s
            if 0 < between_s <= _LONGEST_GAP_S:
                power_mw = (before.total_power_mw + reading.total_power_mw) / 2
                self._energy.add(power_mw * min(self._spoke_s, between_s), 0.0, now)
        self._spoke_s = 0.0

    def drop_percent(self, vitals: Vitals, now: float) -> float | None:
        """Give what of streams was lost in the last hour, percent."""
        drops, packets = vitals.encoder_drops or 0, vitals.encoder_packets or 0
        if packets > self._packets or drops > self._dropped:
            self._drops.add(100.0 * (drops - self._dropped), packets - self._packets, now)
        self._dropped, self._packets = drops, packets
        return self._drops.value(now)

    def snapshot(self, vitals: Vitals, now: float, interval_s: int) -> Telemetry:
        """Give all figures as they are published every `interval_s`, but for the alerts that follow from them."""
        reading, decision = self.reading, self.decision
        degraded = {**(reading.degraded if reading else {}), **vitals.degraded}
        return Telemetry(
            interval_s=interval_s,
            uptime_s=int(now - self._started_at),
            mode=decision.mode.value if decision else None,
            reason=decision.reason if decision else None,
            power_mode=reading.power_mode if reading else None,
            ttfa_ms=Latency(**{stage: self._percentiles(stage, now) for stage in STAGES}),
            rtf=_rounded(self._rtf.value(now), 3),
            utterances=self._utterances,
            failed=self._failed,
            rejected=self._rejected,
            cache_hits=self._hits,
            cache_share=_rounded(self._cached.value(now), 3),
            underruns=vitals.underruns,
            encoder_packets=vitals.encoder_packets,
            encoder_drops=vitals.encoder_drops,
            watermarked=self._marked,
            watermark_rtf=_rounded(self._marking.value(now), 4),
            queue=vitals.queue,
            rendering=vitals.rendering,
            speaking=vitals.speaking,
            restarts=self._restarts,
            memory_mb=_memory(vitals, reading),
            disk=_disk(vitals.disk),
            missing_phonemes=vitals.missing_phonemes,
            voices={name: _loads(voice) for name, voice in vitals.voices.items()},
            gpu_load=_rounded(reading.loads.get("gpu"), 3) if reading else None,
            cpu_load=_rounded(reading.loads.get("cpu"), 3) if reading else None,
            clocks_mhz=_clocks(reading),
            temperatures_c={zone: round(t / 1000, 1) for zone, t in reading.temperatures.items()} if reading else {},
            rails_mw={r.name: r.power_mw for r in reading.rails if r.power_mw is not None} if reading else {},
            power_mw=reading.total_power_mw if reading else None,
            energy_mj_per_s=_rounded(self._energy.value(now) or None, 0),
            battery_percent=reading.battery.percent if reading and reading.battery else None,
            throttling=reading.throttling if reading else (),
            degraded=degraded,
            self_check=self.self_check,
            lost=vitals.lost,
        )

    def _of(self, command_id: str) -> _UnderWay:
        found = self._under_way.get(command_id)
        if found is None:
            found = self._under_way[command_id] = _UnderWay()
            if len(self._under_way) > _UNDER_WAY:
                self._under_way.popitem(last=False)
        return found

    def _synthesized(self, message: SynthesisEnded, now: float) -> None:
        stages = message.stages
        if stages is None:  # it went on after an interruption, or is a sound and no speech
            return
        self._hits += message.cached
        self._cached.add(float(message.cached), 1.0, now)
        if message.mark_s is not None:
            self._marking.add(message.mark_s, 0.0 if message.cached else message.audio_s, now)
        if not message.cached:
            self._rtf.add(message.compute_s, message.audio_s, now)
        under_way = self._of(message.id)
        under_way.stages = stages
        self._settle(message.id, under_way, now)

    def _settle(self, command_id: str, found: _UnderWay, now: float) -> None:
        """Count the stages once all of them are known."""
        stages, ttfa_s, started_at = found.stages, found.ttfa_s, found.started_at
        if stages is None or ttfa_s is None or started_at is None:
            return
        self._under_way.pop(command_id, None)
        queue_s = max(0.0, ttfa_s - (started_at - stages.begun_at))
        counted: dict[str, float | None] = {
            "response": ttfa_s - queue_s,
            "queue": queue_s,
            "text": stages.text_s,
            "acoustic": stages.acoustic_s,
            "window": stages.window_s,
            "sink": started_at - stages.first_at,
        }
        for stage, value_s in counted.items():
            if value_s is not None:
                self.durations[stage].add(value_s * 1000, now)

    def _stop_speaking(self, at: float, *, goes_on: bool = False) -> None:
        if self._speaking_since is not None:
            self._spoke_s += max(0.0, at - self._speaking_since)
            self._speaking_since = at if goes_on else None

    def _percentiles(self, stage: str, now: float) -> Percentiles | None:
        found = self.durations[stage].percentiles(_SHARES, now)
        if found is None:
            return None
        p50, p95, p99 = (round(value, 1) for value in found)
        return Percentiles(p50=p50, p95=p95, p99=p99)


def _mb(size: float | None) -> float | None:
    return None if size is None else round(size / _MB, 1)


def _memory(vitals: Vitals, reading: Reading | None) -> Memory:
    def buffers(count: int | None) -> float | None:
        return None if count is None else _mb(count * vitals.buffer_bytes)

    free, total = vitals.gpu_free_bytes, vitals.gpu_total_bytes
    return Memory(
        process=_mb(vitals.process_bytes),
        pool_used=buffers(vitals.pool_used),
        pool=buffers(vitals.pool_buffers),
        gpu_used=_mb(total - free) if free is not None and total is not None else None,
        gpu=_mb(total),
        available=_mb(reading.memory_available) if reading else None,
    )


def _disk(state: DiskState) -> Disk:
    return Disk(
        free_mb=_mb(state.free_bytes),
        refusal=state.refusal,
        written_mb=_mb(state.written_bytes),
        written_day_mb=_mb(state.day_bytes),
        written_per_day_mb=_mb(state.bytes_per_day),
        wear_percent=state.wear_percent,
    )


def _loads(voice: Loads) -> VoiceLoads:
    return VoiceLoads(
        loaded=voice.loaded,
        load_s=round(voice.load_s, 3),
        loads=voice.loads,
        releases=voice.releases,
        memory_mb=round(voice.bytes / _MB, 1),
    )


def _clocks(reading: Reading | None) -> dict[str, int]:
    """Give the clocks, and of all processors the fastest: twelve of them would say little more."""
    clocks: dict[str, int] = {}
    for name, clock in reading.clocks.items() if reading else ():
        if clock.current_hz is not None:
            key = "cpu" if name.startswith("cpu") else name
            clocks[key] = max(clocks.get(key, 0), round(clock.current_hz / 1e6))
    return clocks


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)

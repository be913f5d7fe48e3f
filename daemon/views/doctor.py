"""`speakd doctor`: what somebody who gives support asks, in one page, and for each fault what mends it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from daemon.config import DEFAULT_PATH, Config, load
from daemon.errors import ConfigError
from daemon.views import doctor_broker, doctor_cards, doctor_disk, doctor_machine, doctor_service, doctor_voice, support
from daemon.views.finding import Finding
from engines.aside import Aside

_LONGEST_S: Final = 60.0
"""For one thing to look at: on a slow board a voice takes 10 s to load, a disk whose server is gone for ever."""

_MARKS = {"ok": "  ok  ", "note": " note ", "fault": "FAULT "}


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found, and on which configuration; `config` is None where it cannot be used."""

    config: Config | None
    findings: list[Finding] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """How many faults there are."""
        return sum(finding.state == "fault" for finding in self.findings)


def run(path: Path | None, *, as_json: bool = False, tone: bool = False, bundle: Path | None = None) -> int:
    """Examine this machine and print what is found; gives the exit status: 0 where there is no fault, else 1.

    `tone`: play one. `bundle`: write a support archive there. OSError where that cannot be written.
    """
    examination = examine(path, tone=tone)
    print(to_json(examination) if as_json else to_text(examination))
    if bundle is not None:
        support.write(bundle, examination.config, to_text(examination), to_json(examination))
        if not as_json:
            print(f"\nThe support archive is {bundle}; passwords and keys are left out, texts in the log are not.")
    return 1 if examination.faults else 0


def examine(path: Path | None, *, tone: bool = False) -> Examination:
    """Look at everything. Takes some seconds; starts no service and changes nothing."""
    config, findings = _configuration(path)
    findings += _look("versions", doctor_machine.versions)
    findings += _look("machine", doctor_machine.machine)
    findings += _look("temperatures", doctor_machine.temperatures)
    findings += _look("service", doctor_service.service)
    findings += _look("power helper", doctor_service.power_helper)
    findings += _look("last crash", doctor_service.last_crash)
    findings += _look("groups", doctor_service.groups)
    findings += _look("sound", doctor_cards.sleeping_cards)
    if config is None:
        findings += _look("engine", doctor_service.engine_put_aside)
    else:
        known = config
        findings += _look("disk", lambda: doctor_disk.room(known))
        findings += _look("disk", lambda: doctor_disk.wear(known, Path(known.power.root)))
        findings += _look("files", lambda: doctor_service.files(known))
        visit = doctor_broker.visit(known)
        findings += visit.findings
        findings += _look("engine", lambda: doctor_service.engine_put_aside(visit.status))
        findings += _look("disk", lambda: doctor_disk.written(known, visit.telemetry))
        findings += _look("voice", lambda: doctor_voice.voice(known, visit.status))
        findings += _look("watermark", lambda: doctor_voice.watermark(known, visit.status))
        findings += _look("backend", lambda: doctor_voice.backend(known, visit.status))
        findings += _look("sound", lambda: doctor_voice.sound(known, visit.status, tone=tone))
    return Examination(config, findings)


def to_text(examination: Examination) -> str:
    """Write the page for people."""
    return "\n".join(_lines(examination))


def to_json(examination: Examination) -> str:
    """Write it for programs."""
    found = [asdict(finding) for finding in examination.findings]
    return json.dumps({"faults": examination.faults, "findings": found}, indent=2, ensure_ascii=False)


def _lines(examination: Examination) -> Iterator[str]:
    for finding in examination.findings:
        yield f"{_MARKS[finding.state]} {finding.topic}: {finding.text}"
        if finding.mend:
            yield f"         mend: {finding.mend}"
    count = examination.faults
    yield ""
    yield "No fault was found." if not count else f"{count} fault{'s' if count > 1 else ''} found."


def _configuration(path: Path | None) -> tuple[Config | None, list[Finding]]:
    file = path or DEFAULT_PATH
    try:
        config = load(path)
    except ConfigError as error:
        mend = f"edit {file}; `speakd config check` tells more. Then {doctor_service.RESTART}"
        return None, [Finding("configuration", "fault", str(error), mend)]
    except OSError as error:
        return None, [Finding("configuration", "fault", f"{file}: {error.strerror}", f"sudo chmod a+r {file}")]
    return config, [Finding("configuration", "ok", str(file) if file.exists() else f"no {file}: all defaults")]


def _look(topic: str, check: Callable[[], list[Finding]]) -> list[Finding]:
    """Return what a check finds. One that fails, or hangs, must not hide what the others would find."""
    try:
        return Aside(topic).do(check, _LONGEST_S)
    except Exception as error:  # noqa: BLE001  told as a finding, whatever it is
        return [Finding(topic, "fault", f"could not be looked at: {type(error).__name__}: {error}")]

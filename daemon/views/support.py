"""The archive for support: what the doctor found, the configuration, the log, and no secret.

Three nets. Files with secrets are never read into it. Values of configuration keys that may hold one are taken out by
their names. And whatever the files that the configuration names do hold is taken out of every member, wherever it is.
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import time
from importlib import metadata
from pathlib import Path
from typing import Final

from daemon.config import Config
from daemon.config_text import show
from daemon.views.commands_run import output_of
from daemon.views.doctor_service import SERVICE_USER, UNIT

_REMOVED: Final = "(removed)"
_SECRET_KEY: Final = re.compile(
    r"^(?P<key>\s*#?\s*\w*(?:user|pass|secret|token|credential|api_?key|key)\w*)(?<!_file)\s*=.*$",
    re.MULTILINE | re.IGNORECASE,
)
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{1,40}-----.{0,20000}?(?:-----END [A-Z0-9 ]{1,40}-----|\Z)", re.DOTALL)
_IN_URL: Final = (re.compile(r"(?<=://)[^\s\"'<>]{1,400}@"), re.compile(r"(?<=://)[^\s/@]{1,200}@"))
"""Up to the last @: a password may hold one, or a slash; else up to the first, over all but a slash."""
_TOLD: Final = re.compile(
    r"""(?ix)
    (?<!\w)
    ( (?: \w{0,40} (?: passw(?:or)?d | passphrase | secret | token | api_?key ) (?!\w{0,40}_file\b) \w{0,40}
        | \w{0,40}_pass | pass ) \b )
    ( (?:\\?["'])? \s* [=:] \s* )
    ( \\"(?:(?!\\").)*\\" | "(?:[^"\\\n]|\\.)*" | '[^'\n]*' | \S+ )
    """
)
"""What is called so, and its value: bare, in quotes of either kind, or in such as stand in a string of JSON."""
_SHORTEST_SECRET: Final = 4
"""What is shorter would be taken out of every word; passwords of brokers are longer."""
_LOG_LINES: Final = 5000
_LARGEST_SECRET_FILE: Final = 65536


def write(file: Path, config: Config | None, report: str, report_json: str) -> None:
    """Write the archive whole, for its owner only. OSError where it cannot be written."""
    secrets = _secrets(config)
    members = {name: clean(text, secrets) for name, text in _members(config, report, report_json).items()}
    file = file.absolute()
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as raw:
            with tarfile.open(fileobj=raw, mode="w:gz") as archive:
                for name, text in members.items():
                    _add(archive, f"speakd-support/{name}", text)
            raw.flush()
            os.fsync(raw.fileno())
        partial.replace(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def clean(text: str, secrets: list[str]) -> str:
    """Return the text without what is or may be a secret."""
    for secret in secrets:
        for written in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
            text = text.replace(written, _REMOVED)
    text = _PEM.sub(_REMOVED, text)
    for pattern in _IN_URL:
        text = pattern.sub(f"{_REMOVED}@", text)
    return _TOLD.sub(rf"\1\2{_REMOVED}", text)


def redacted(config: Config) -> str:
    """Return the configuration as TOML, without the values of keys that may hold a secret. Names of files stay."""
    return _SECRET_KEY.sub(lambda found: f'{found["key"]} = "{_REMOVED}"', show(config))


def _members(config: Config | None, report: str, report_json: str) -> dict[str, str]:
    packages = sorted(f"{found.metadata['Name']} {found.version}" for found in metadata.distributions())
    files = ("/etc/os-release", "/proc/asound/cards", "/proc/meminfo", "/proc/cpuinfo", "/etc/nv_tegra_release")
    log = output_of(["journalctl", "--no-pager", "-q", "-u", UNIT, "-o", "short-iso", "-n", str(_LOG_LINES)])
    return {
        "report.txt": report + "\n",
        "report.json": report_json + "\n",
        "speakd.toml": redacted(config) if config is not None else "# cannot be used: see the report\n",
        "packages.txt": "\n".join(packages) + "\n",
        "log.txt": log or "systemd keeps no log of speakd here\n",
        **{name.strip("/").replace("/", "-"): _read(Path(name)) for name in files if Path(name).exists()},
    }


def _secrets(config: Config | None) -> list[str]:
    """Return what the configuration's secret files hold, and the user's name, the longest first."""
    if config is None:
        return []
    mqtt = config.mqtt
    # Names that stand in every command and topic are no secret.
    found = {mqtt.username} - {SERVICE_USER, config.device.name}
    for name in (mqtt.username_file, mqtt.password_file, mqtt.tls_key_file):
        if name:
            found.update(line.strip() for line in _read(Path(name))[:_LARGEST_SECRET_FILE].splitlines())
    return sorted((one for one in found if len(one) >= _SHORTEST_SECRET), key=len, reverse=True)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # who asks may not read it, so it is in none of the members either


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode("utf-8", errors="replace")
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o600
    entry.mtime = int(time.time())
    archive.addfile(entry, io.BytesIO(data))

"""An authority of our own, and certificates of it that begin when a test wants. Needs the command `openssl`."""

from __future__ import annotations

import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

_CONFIGURATION = """\
[ca]
default_ca = own
[own]
dir = {folder}
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
default_md = sha256
policy = any
unique_subject = no
x509_extensions = extensions
[any]
commonName = supplied
[extensions]
subjectAltName = IP:127.0.0.1,DNS:localhost
[req]
distinguished_name = name
[name]
"""


class Authority:
    """Its certificate is `ca`, a PEM file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.ca = folder / "ca.pem"
        self._file("config").write_text(_CONFIGURATION.format(folder=folder))
        self._file("index").touch()
        self._file("serial").write_text("01")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                      "-subj", "/CN=authority", "-keyout", folder / "ca.key", "-out", self.ca,
                      "-addext", "keyUsage=keyCertSign", "-config", self._file("config"))  # fmt: skip

    def issue(self, name: str, *, starts_in_s: float = -60.0) -> tuple[Path, Path]:
        """Give a certificate for 127.0.0.1 and its key; `name` is whom it is for."""
        key, request, certificate = (self._file(f"{name}.{kind}") for kind in ("key", "csr", "pem"))
        config = self._file("config")
        starts = datetime.now(timezone.utc) + timedelta(seconds=starts_in_s)
        dates = [f"{moment:%Y%m%d%H%M%SZ}" for moment in (starts, starts + timedelta(days=1))]
        self._openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                      f"/CN={name}", "-keyout", key, "-out", request, "-config", config)  # fmt: skip
        self._openssl("ca", "-batch", "-notext", "-config", config, "-startdate", dates[0], "-enddate", dates[1],
                      "-in", request, "-out", certificate)  # fmt: skip
        return certificate, key

    def _file(self, name: str) -> Path:
        return self._folder / name

    def _openssl(self, *arguments: str | Path) -> None:
        command = [shutil.which("openssl") or "openssl", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

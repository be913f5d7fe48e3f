"""Who we are to the broker, and who may be the broker: names, passwords and certificates from files."""

from __future__ import annotations

import ssl
import time
from pathlib import Path
from typing import Final

from daemon.config import MqttConfig
from daemon.errors import BrokerConfigError

_NOT_YET_VALID: Final = 9
"""OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID."""


def tls_context(config: MqttConfig) -> ssl.SSLContext:
    """Make what encrypts, checks the broker's certificate and name always, and shows ours where there is one.

    BrokerConfigError where a file is of no use.
    """
    try:
        context = ssl.create_default_context(cafile=config.tls_ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise BrokerConfigError(f"mqtt.tls_ca_file {config.tls_ca_file}: {error}") from error
    if config.tls_cert_file:
        try:
            context.load_cert_chain(config.tls_cert_file, config.tls_key_file or None)
        except (OSError, ssl.SSLError) as error:
            files = " and ".join(filter(None, (config.tls_cert_file, config.tls_key_file)))
            raise BrokerConfigError(f"mqtt.tls_cert_file, mqtt.tls_key_file ({files}): {error}") from error
    return context


def first_line(key: str, file: str) -> str | None:
    """Give a file's first line, None where no file is named. BrokerConfigError names the configuration's `key`."""
    if not file:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise BrokerConfigError(f"{key} {file} has nothing usable in its first line: {error}") from error


def explained(error: BaseException | None) -> str:
    """Say why there is no connection, and what to make of it."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code == _NOT_YET_VALID:
        return f"{error} (this device's clock says {time.strftime('%Y-%m-%d %H:%M')}; trying until it is right)"
    return str(error)

"""The manual pages tell of every command, option and key, and are roff that roff's own checker takes."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.config import Config, section_keys

GROFF = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", "-rLL=100n"]


@functools.cache
def page(name: str, home: str = str(Path.home())) -> str:
    command = [sys.executable, "-m", "daemon", "man", name]
    environment = {**os.environ, "HOME": home}
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=environment).stdout


@functools.cache
def shown(roff: str) -> str:
    done = subprocess.run(GROFF, input=roff, check=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("words", ["run", "say", "voice add", "voice build", "config", "bench", "doctor", "man", "try"])
def test_each_command_is_told_with_its_options(words: str) -> None:
    text = shown(page("speakd"))
    assert f"   speakd {words}\n" in text
    command = [sys.executable, "-m", "daemon", *words.split(), "--help"]
    help_text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    options = {word.strip("[],") for word in help_text.split() if word.strip("[],").startswith("--")} - {"--help"}
    own = text.split(f"   speakd {words}\n")[1].split("\n   speakd ")[0]
    assert all(option in own for option in options)


def test_each_key_is_told_with_its_default() -> None:
    text = shown(page("speakd.toml"))
    for name, section in Config():
        assert f"\n[{name}]\n" in text
        own = text.split(f"\n[{name}]\n")[1].split("\n[")[0]
        assert all(f"       {key}" in own for key in section_keys(type(section)))
    assert "TCP port of the broker. Allowed: an integer from 1 to 65535 (port number). Default: 1883." in " ".join(
        text.split()
    )


def test_no_page_depends_on_this_machine() -> None:
    first = page("speakd.toml")
    assert page("speakd.toml", "/nowhere") == first
    assert Config().device.name not in first.split("[device]")[1].split("[mqtt]")[0]


def test_defaults_stand_in_the_page_as_in_the_help() -> None:
    text = " ".join(shown(page("speakd")).split())
    assert "warms the cabinet (default: 20)." in text
    assert "%(" not in text

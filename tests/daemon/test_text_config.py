"""What [text] changes: the words, the name under which a phrase is kept, and what `speakd explain` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulators import tiny_voice

from daemon import cli
from daemon.cache import key_of
from daemon.config import load
from daemon.config_text_section import normalizer_of
from engines import importer, piper
from engines.pack_store import PackStore
from engines.synthesizer import Utterance
from engines.vits import VitsVoice

TEXT = "It is 03/04/2026 😂"

SETTINGS = {
    "": "It is march fourth twenty twenty six",
    "emoji = 'name'": "It is march fourth twenty twenty six face with tears of joy",
    "date_order = 'day-month'": "It is the third of april twenty twenty six",
    "normalize = false": "It is 03/04/2026",
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "speakd.toml"


@pytest.mark.parametrize(("keys", "words"), SETTINGS.items())
def test_texts_are_read_as_configured(config: Path, keys: str, words: str) -> None:
    config.write_text(f"[text]\n{keys}\n")
    assert normalizer_of(load(config).text)("en-us").normalize(TEXT).strip() == words


def test_a_kept_phrase_is_named_by_how_it_is_read(config: Path, tmp_path: Path) -> None:
    model = tiny_voice.write(tmp_path)
    voice = VitsVoice.load(importer.import_voice(piper.find(str(model)), PackStore(tmp_path / "packs")), threads=1)
    keys = set()
    for setting in SETTINGS:
        config.write_text(f"[text]\n{setting}\n")
        reading = normalizer_of(load(config).text)("en-us").fingerprint
        keys.add(key_of(Utterance(TEXT), voice, reading))
    voice.close()
    assert len(keys) == len(SETTINGS)


def test_each_line_of_a_file_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("It costs $5.\n\nDr. Ode\u2028left\n12@\n", encoding="utf-8")
    assert cli.main(["explain", "--lines", str(file)]) == 0
    assert capsys.readouterr().out == "It costs five dollars.\n\ndoctor Ode left\ntwelve at\n"


def test_lines_are_of_the_language_that_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("6.5 V\n03/04/2026", encoding="utf-8")
    for language, words in (("de", "sechs Komma fünf Volt"), ("en-gb", "six point five volts")):
        assert cli.main(["explain", "--lines", str(file), "--language", language]) == 0
        first, second = capsys.readouterr().out.splitlines()
        assert first == words
        assert not any(sign.isdecimal() for sign in second)


def test_a_text_is_explained_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "<b>Room</b> 300"]) == 0
    steps = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert steps[:3] == [
        ["text", "<b>Room</b> 300"],
        ["html", "Room 300"],
        ["whole", "numbers      Room three hundred"],
    ]


@pytest.mark.parametrize(
    ("language", "phonemes"),
    [("zh", "sˈa5n"), ("zh-CN", "sˈa5n"), ("de-AT", "drˈaɪ"), ("en_GB", "θɹˈiː"), ("no", "trˈeː"), ("pt-PT", "tɾˈeʃ")],
)
def test_a_language_may_be_named_as_people_name_it(
    language: str, phonemes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", "--language", language, "3"]) == 0
    assert phonemes in capsys.readouterr().out


def test_a_language_that_nobody_speaks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "--language", "xx-YY", "3"]) == 1
    assert "espeak-ng has no voice 'xx-YY'" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "--lines", str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_lines_take_no_options_of_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--json", "--ssml"):
        with pytest.raises(SystemExit):
            cli.main(["explain", "--lines", str(tmp_path / "lines"), option])
        assert "not for --lines" in capsys.readouterr().err

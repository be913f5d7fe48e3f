"""The page of an audition, in a real browser."""

from __future__ import annotations

import shutil
import wave
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from simulators import tiny_kokoro, tiny_voice
from simulators.random_watermark import random_weights

from daemon.cli import main
from daemon.config import watermark_folder
from engines import importer, piper, watermark_files
from engines.kokoro_import import KokoroSource, import_kokoro
from engines.pack_store import PackStore
from engines.watermark_files import LICENCE_FILE, MARKER_FILE
from engines.watermark_graph import marker_graph

TEXT = "The lift is on the left <b>& behind you</b>. Thank you."


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("voices")
    store = PackStore(folder / "packs")
    styles = {name: tiny_kokoro.style(seed) for seed, name in enumerate(["af_one", "am_two", "bf_three"])}
    import_kokoro(KokoroSource(tiny_kokoro.model(), tiny_kokoro.VOCABULARY, styles, {}), store, list(styles))
    for name in ("tiny", "broken"):
        importer.import_voice(piper.find(str(tiny_voice.write(folder, name))), store)
    (store.folder / "broken" / "vocoder.onnx").write_bytes(b"x")
    (folder / "speakd.toml").write_text(f'[voice]\npacks = "{store.folder}"\n')
    return ["--config", str(folder / "speakd.toml")]


def test_every_voice_is_heard_and_seen(config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "audition"
    assert main([*config, "voice", "audition", TEXT, "--folder", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'index.html'}\n"
    sounds = ["kokoro-en-gb-bf_three.wav", "kokoro-en-us-af_one.wav", "kokoro-en-us-am_two.wav", "tiny.wav"]
    assert sorted(path.name for path in folder.glob("*.wav")) == sounds
    with wave.open(str(folder / "tiny.wav"), "rb") as file:
        assert file.getnframes() > 48_000
    with sync_playwright() as playwright:
        program = shutil.which("chromium")  # None: the one that `playwright install chromium` has brought
        arguments = ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        page = browser.new_page(viewport={"width": 1200, "height": 700})
        complaints: list[str] = []
        expect.set_options(timeout=60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((folder / "index.html").as_uri())
        expect(page.locator("p").first).to_have_text(TEXT)
        expect(page.locator("tr")).to_have_count(1 + len(sounds) + 1)
        expect(page.locator("svg polygon")).to_have_count(len(sounds))
        row = page.locator("tr", has_text="kokoro-en-us am_two")
        expect(row).to_contain_text("LUFS")
        expect(page.locator("tr", has_text="broken")).to_contain_text("has changed since its import")
        for number in range(len(sounds)):
            page.locator("audio").nth(number).evaluate("player => player.play()")
            page.wait_for_function("n => document.querySelectorAll('audio')[n].currentTime > 0.05", arg=number)
        page.screenshot(path=str(tmp_path / "audition.png"))
        browser.close()
    assert not complaints


def test_styles_may_be_chosen_and_what_cannot_be_written_is_told(
    config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "some"
    assert main([*config, "voice", "audition", "Yes.", "--folder", str(folder), "--styles", "am_two"]) == 0
    assert sorted(path.name for path in folder.glob("*.wav")) == ["kokoro-en-us-am_two.wav", "tiny.wav"]
    (tmp_path / "file").write_text("")
    capsys.readouterr()
    assert main([*config, "voice", "audition", "Yes.", "--folder", str(tmp_path / "file/x")]) == 1
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_it_is_marked_and_read_as_by_the_daemon(
    config: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, settings, toml = tmp_path / "words", tmp_path / "speakd.toml", Path(config[1]).read_text()
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))

    def heard(more: str, folder: str) -> tuple[int, bytes]:
        settings.write_text(f"{toml}{more}")
        arguments = ["--config", str(settings), "voice", "audition", "Nginx", "--styles", "af_none"]
        status = main([*arguments, "--folder", str(tmp_path / folder)])
        sound = tmp_path / folder / "tiny.wav"
        return status, sound.read_bytes() if sound.exists() else b""

    status, plain = heard("", "plain")
    assert (status, len(plain) > 0) == (0, True)
    assert "no voice has spoken in the style 'af_none'" in capsys.readouterr().err
    words.mkdir()
    (words / "words.toml").write_text('[[entry]]\nwritten = "Nginx"\nspoken = "engine x"\n')
    assert heard(f'[lexicon]\nfolder = "{words}"\n', "read")[1] not in {b"", plain}
    assert heard("[audio]\nwatermark = true\n", "unmarked") == (1, b"")
    assert "speakd watermark add" in capsys.readouterr().err
    files = {MARKER_FILE: marker_graph(random_weights()), LICENCE_FILE: b"MIT"}
    watermark_files.write(watermark_folder(), files)
    assert heard("[audio]\nwatermark = true\n", "marked")[1] not in {b"", plain}

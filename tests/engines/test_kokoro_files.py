from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from simulators import tiny_kokoro

from daemon.cli import main
from daemon.kokoro_download import fetch
from engines.errors import VoiceError
from engines.kokoro_files import read_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tiny_kokoro.write(tmp_path / "files", "af_one", "bf_two")


def pack_up(folder: Path, target: Path) -> Path:
    """Put the files where the packages have them: the model in four wheels, the styles in an archive."""
    target.mkdir()
    model = (folder / "kokoro.onnx").read_bytes()
    size = -(-len(model) // 4)
    for number in range(4):
        with zipfile.ZipFile(target / f"model_{number + 1}-0.1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"model_{number + 1}/part.bin", model[number * size : (number + 1) * size])
    with zipfile.ZipFile(target / "voice-0.1.1-py3-none-any.whl", "w") as wheel:
        for name in ("vocab.json", "model.sha256"):
            wheel.write(folder / name, f"voice/data/{name}")
    with tarfile.open(target / "styles-1.2.1.tgz", "w:gz") as archive:
        for path in folder.glob("*.bin"):
            archive.add(path, f"package/voices/{path.name}")
    return target


def test_packages_hold_what_the_files_are(folder: Path, tmp_path: Path) -> None:
    bare, packed = read_folder(folder), read_folder(pack_up(folder, tmp_path / "packages"))
    assert packed == bare
    assert sorted(bare.styles) == ["af_one", "bf_two"]
    assert bare.hashes["kokoro.onnx"] == hashlib.sha256(bare.model).hexdigest()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: (folder / "kokoro.onnx").unlink(), "holds no models"),
        (lambda folder: (folder / "vocab.json").unlink(), "holds no vocab.json"),
        (lambda folder: (folder / "vocab.json").write_text("[]"), "is no vocabulary"),
        (lambda folder: (folder / "vocab.json").write_text('{"vocab": {"a": -1}}'), "is no vocabulary"),
        (lambda folder: [path.unlink() for path in folder.glob("*.bin")], "holds no styles"),
        (lambda folder: (folder / "kokoro.onnx").write_bytes(b"x"), "SHA-256 differs"),
        (lambda folder: (folder / "another.onnx").write_bytes(b"x"), "holds 2 models"),
        (lambda folder: (folder / "x.whl").write_bytes(b"<html>"), "x.whl cannot be read"),
        (lambda folder: (folder / "x.tgz").write_bytes(b"<html>"), "x.tgz cannot be read"),
    ],
)
def test_what_is_missing_or_damaged_is_named(spoil: Callable[[Path], object], reason: str, folder: Path) -> None:
    spoil(folder)
    with pytest.raises(VoiceError, match=reason):
        read_folder(folder)


def test_a_part_too_few_is_found(folder: Path, tmp_path: Path) -> None:
    packages = pack_up(folder, tmp_path / "packages")
    (packages / "model_4-0.1.0-py3-none-any.whl").unlink()
    with pytest.raises(VoiceError, match="SHA-256 differs"):
        read_folder(packages)


def test_a_download_is_whole_or_refused(tmp_path: Path) -> None:
    content = io.BytesIO(b"styles").getvalue()
    (tmp_path / "there").write_bytes(content)
    url = (tmp_path / "there").as_uri()
    right = base64.b64encode(hashlib.sha512(content).digest()).decode()
    fetch(url, right, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == content
    with pytest.raises(VoiceError, match=r"SHA-512 differs.*--from FOLDER"):
        fetch(url, right[::-1], tmp_path / "not")
    assert not (tmp_path / "not").exists()
    with pytest.raises(VoiceError, match="cannot be downloaded"):
        fetch((tmp_path / "nowhere").as_uri(), right, tmp_path / "not")


def test_voices_are_added_by_command_listed_calibrated_and_speak(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "speakd.toml").write_text(f'[voice]\npacks = "{tmp_path / "packs"}"\n')
    config = ["--config", str(tmp_path / "speakd.toml")]
    add = [*config, "voice", "add", "kokoro", "--from", str(folder), "--voices"]
    assert main([*add, "af_one, bf_two"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["kokoro-en-us", "kokoro-en-gb"]
    assert main([*config, "voice", "list"]) == 0
    assert "kokoro-en-gb  en-gb-x-rp  24000 Hz  2 styles\n" in capsys.readouterr().out
    assert main([*config, "voice", "calibrate", "kokoro-en-us"]) == 0
    assert " s in fp32 and " in capsys.readouterr().out
    sound = tmp_path / "said.wav"
    said = ["say", "Hello there.", "--voice", "kokoro-en-us", "--speaker", "bf_two", "--output", str(sound)]
    assert main([*config, *said]) == 0
    assert sound.stat().st_size > 20_000
    assert main([*config, "voice", "build", "kokoro-en-us"]) == 1
    assert "kokoro family" in capsys.readouterr().err
    assert main([*add, "jf_x"]) == 1
    assert "is not there" in capsys.readouterr().err

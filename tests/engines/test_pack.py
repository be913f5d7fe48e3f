from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engines.errors import SpeakerError, VoiceError
from engines.importer import import_voice
from engines.pack import INFO_FILE, BrokenPack, Pack
from engines.pack_info import PackInfo
from engines.pack_store import PackStore
from engines.piper import find


@pytest.fixture
def store(tmp_path: Path) -> PackStore:
    return PackStore(tmp_path / "packs")


@pytest.fixture
def stored(store: PackStore, tiny_model: Path) -> PackStore:
    import_voice(find(str(tiny_model)), store)
    return store


def hidden(store: PackStore) -> list[str]:
    return [path.name for path in store.folder.iterdir() if path.name.startswith(".")]


def test_an_empty_store_tells_how_to_fill_it(store: PackStore) -> None:
    assert store.list() == []
    with pytest.raises(VoiceError, match="speakd voice add"):
        store.default_name()


def test_what_was_put_is_found(stored: PackStore) -> None:
    pack = stored.get("tiny")
    assert pack.acoustic.stat().st_size > 0
    assert set(pack.info.sources) == {"tiny.onnx", "tiny.onnx.json"}
    assert [p.info.name for p in stored.list() if isinstance(p, Pack)] == ["tiny"]
    assert stored.default_name() == "tiny"


def test_replacing_leaves_the_new_one_and_no_rest(stored: PackStore) -> None:
    old = stored.get("tiny")
    content = {file: (old.folder / file).read_bytes() for file in old.info.files}
    stored.put("tiny", old.info.model_copy(update={"language": "de"}), content)
    assert stored.get("tiny").info.language == "de"
    assert len(hidden(stored)) == 1


def test_two_who_import_one_voice_at_once_leave_one_that_is_whole(
    stored: PackStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = stored.get("tiny")
    content = {file: (old.folder / file).read_bytes() for file in old.info.files}
    turn = Path.replace
    other: list[threading.Thread] = []

    def put(language: str) -> None:
        PackStore(stored.folder).put("tiny", old.info.model_copy(update={"language": language}), content)

    def meanwhile(source: Path, target: Path) -> None:
        """Before its link is turned the first has the second begin, and gives it time to tidy up."""
        monkeypatch.setattr(Path, "replace", turn)
        other.append(threading.Thread(target=put, args=("fr",)))
        other[0].start()
        other[0].join(1)
        turn(source, target)

    monkeypatch.setattr(Path, "replace", meanwhile)
    put("de")
    other[0].join()
    assert stored.get("tiny").info.language == "fr"
    assert len(hidden(stored)) == 1


def test_a_failed_write_leaves_the_old_one(stored: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    old = stored.get("tiny")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(VoiceError, match="No space left on device"):
        stored.put("tiny", old.info, {"acoustic.onnx": b"x"})
    assert stored.get("tiny").info == old.info
    assert len(hidden(stored)) == 1


def test_power_cut_before_the_link_is_turned(stored: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    old = stored.get("tiny")
    content = {file: (old.folder / file).read_bytes() for file in old.info.files}
    with monkeypatch.context() as patch:

        def cut(self: Path, target: Path) -> None:
            raise KeyboardInterrupt

        patch.setattr(Path, "replace", cut)
        with pytest.raises(KeyboardInterrupt):
            stored.put("tiny", old.info, content)
    assert stored.get("tiny").info == old.info
    stored.put("tiny", old.info, content)
    assert len(hidden(stored)) == 1, "the next import clears what the interrupted one left"


def test_a_folder_that_cannot_be_flushed_costs_no_pack(stored: PackStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems refuse to flush a folder; the new pack is in its place by then."""
    old = stored.get("tiny")
    content = {file: (old.folder / file).read_bytes() for file in old.info.files}
    replaced = False
    replace, fsync = Path.replace, os.fsync

    def noting(self: Path, target: Path) -> Path:
        nonlocal replaced
        replaced = True
        return replace(self, target)

    def refusing(descriptor: int) -> None:
        if replaced:
            raise OSError(22, "Invalid argument")
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", noting)
        patch.setattr(os, "fsync", refusing)
        stored.put("tiny", old.info.model_copy(update={"language": "de"}), content)
    assert stored.get("tiny").info.language == "de"


@pytest.mark.parametrize("name", ["v1.5", "a.b.c"])
def test_names_with_dots_do_not_meet(stored: PackStore, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = stored.get("tiny")
    content = {file: (pack.folder / file).read_bytes() for file in pack.info.files}

    def cut(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", cut)
        with pytest.raises(KeyboardInterrupt):
            stored.put(name, pack.info, content)
    stored.put(name, pack.info, content)
    assert stored.names() == sorted([name, "tiny"])
    assert len(hidden(stored)) == 2


def test_remove(stored: PackStore) -> None:
    stored.remove("tiny")
    assert stored.names() == []
    assert hidden(stored) == []
    with pytest.raises(VoiceError, match="tiny is not among the voices"):
        stored.remove("tiny")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", ".hidden", "a\0b", "x" * 101, "-rf", "ä"])
def test_no_name_leaves_the_folder(stored: PackStore, name: str) -> None:
    for use in (stored.get, stored.remove, lambda n: stored.put(n, stored.get("tiny").info, {})):
        with pytest.raises(VoiceError, match="is no voice name"):
            use(name)


def test_a_name_that_is_not_there_lists_those_that_are(stored: PackStore) -> None:
    with pytest.raises(VoiceError, match=r"Tiny is not among the voices in .*\(tiny\)"):
        stored.get("Tiny")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / INFO_FILE).unlink(), "pack.json is missing"),
        (lambda folder: (folder / INFO_FILE).write_text("{"), "pack.json is not a voice of this speakd"),
        (lambda folder: (folder / INFO_FILE).write_bytes(b"\xff\xfe"), "pack.json is not a voice of this speakd"),
        (lambda folder: (folder / "vocoder.onnx").unlink(), "vocoder.onnx is missing"),
        (lambda folder: _change(folder, format=99), "format"),
        (lambda folder: _change(folder, hop=0), "hop"),
        (lambda folder: _change(folder, length_scale=1e308), "length_scale"),
        (lambda folder: _change(folder, length_scale=-1), "length_scale"),
        (lambda folder: _change(folder, noise_w=float("nan")), "noise_w"),
        (lambda folder: _change(folder, phoneme_ids={"a": [1]}), "phoneme_ids"),
        (
            lambda folder: _change(
                folder, margins={"flow_left": 10**9, "flow_right": 0, "gan_left": 0, "gan_right": 0}
            ),
            "margins",
        ),
    ],
)
def test_a_broken_pack_is_named_and_hides_no_other(
    stored: PackStore, tiny_model: Path, spoil: Callable[[Path], object], said: str
) -> None:
    import_voice(find(str(tiny_model)), stored, name="other")
    spoil(stored.folder / "other")
    broken, whole = stored.list()
    assert isinstance(broken, BrokenPack)
    assert said in broken.reason
    assert isinstance(whole, Pack)
    with pytest.raises(VoiceError, match=said):
        stored.get("other")
    assert stored.get("tiny").info.name == "tiny"


def _change(folder: Path, **values: object) -> None:
    path = folder / INFO_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_changed_graph_is_not_used(stored: PackStore) -> None:
    path = stored.folder / "tiny" / "vocoder.onnx"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(VoiceError, match=r"vocoder\.onnx has changed since its import"):
        stored.get("tiny")


def test_speakers(stored: PackStore) -> None:
    info = stored.get("tiny").info
    several = PackInfo.model_validate({**info.model_dump(), "speaker_count": 2, "speaker_names": {"ann": 0, "bob": 1}})
    assert (several.speaker_id(1), several.speaker_id("bob")) == (1, 1)
    for wrong in (2, -1, "eve"):
        with pytest.raises(SpeakerError, match="it has 0 to 1 or ann, bob"):
            several.speaker_id(wrong)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("de", "german"),
        ("de-de", "german"),  # a voice of no region speaks for all
        ("en", "british"),
        ("en-us", "american"),
        ("EN-US", "american"),
        ("en-gb", "british"),
        ("en-gb-scotland", None),
        ("en-au", None),
        ("it", None),
    ],
)
def test_a_voice_of_a_language(stored: PackStore, wanted: str, found: str | None) -> None:
    pack = stored.get("tiny")
    content = {file: (pack.folder / file).read_bytes() for file in pack.info.files}
    for name, language in (("german", "de"), ("american", "en-us"), ("british", "en-gb")):
        stored.put(name, pack.info.model_copy(update={"name": name, "language": language}), content)
    stored.remove("tiny")
    if found is None:
        with pytest.raises(VoiceError, match=wanted):
            stored.of_language(wanted, ["british"])
    else:
        assert stored.of_language(wanted, ["british"]) == found

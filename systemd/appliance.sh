# shellcheck shell=bash disable=SC2154  # install.sh, which sources this, sets python, version and offline_folder
# The appliance: what `sudo ./install.sh` does on a machine that speakd shall live on. Sourced by install.sh.
#
#   /opt/speakd/versions/VERSION/     one installation: its virtual environment, its units, the file `complete`
#   /opt/speakd/current, previous     links to the one that runs, and to the one that ran before
#   /opt/speakd/switching             while these are changed: what they were
#   /etc/speakd/                      the configuration: written once, never again
#   /var/lib/speakd, /var/cache/speakd  voices, journal; what can be made again
#
# A version is built beside the one that runs. It becomes the current one by a single rename, and only what is complete
# does: whenever the power is cut, the old version or the new one starts. One that does not get ready is undone, by the
# next install.sh where this one cannot.

readonly HOME_FOLDER=/opt/speakd
readonly VERSIONS=$HOME_FOLDER/versions
readonly SWITCHING=$HOME_FOLDER/switching
readonly CONFIG=/etc/speakd/speakd.toml
readonly UNITS=/etc/systemd/system
readonly SERVICE_USER=speakd
readonly RULES=/etc/udev/rules.d/90-speakd.rules
readonly MANUAL=/usr/local/share/man
readonly KEPT_VERSIONS=3 # the one that runs, the one before it, and one more
readonly READY_S=960     # a little more than the unit's TimeoutStartSec
readonly NEEDED_MB=700   # a version takes 490 on x86-64, and pip some more while it works
readonly STILL="What ran before still runs."

scratch=""     # a folder for what is needed while this runs only
unfinished=""  # a version that is being built
cut=""         # what a power cut had ended in mid-switch: install, which is undone now, or rollback
interrupted=no # somebody pressed Ctrl-C, or the connection broke, while the new version started

# What changes the system begins so: as root, alone, and able to write.
begin() { # COMMAND
  local place
  [[ $EUID -eq 0 ]] || die "this changes the system and takes root: sudo ./install.sh $1"
  for place in /etc /opt /usr/local /var/lib; do
    [[ ! -e $place || -w $place ]] || die "nothing can be written to $place: is it mounted read-only?"
  done
  mkdir -p /run/lock
  exec 9>/run/lock/speakd-install
  flock -n 9 || die "another install.sh is at work on this machine"
  umask 022 # under a stricter one the service could not read what is installed
  scratch=$(mktemp -d)
  trap finish EXIT
}

finish() {
  local status=$?
  rm -rf "$scratch" "$unfinished"
  [[ $status -eq 0 || $told == yes ]] ||
    printf 'install.sh: stopped before the end; the reason is above. It can be run again.\n' >&2
}

has_systemd() {
  [[ -d /run/systemd/system ]]
}

# What an installation is made of. The same sources, Python and packages give the same name, and are not built twice.
version_name() {
  local number
  number=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
  printf '%s-%s\n' "$number" "$({
    fingerprint
    find daemon device engines power systemd -name '*.py[co]' -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c -10)"
}

link_to() { # LINK TARGET: at once or not at all
  ln -sfn "$2" "$1.new" && mv -fT "$1.new" "$1"
}

link_or_none() { # LINK VERSION, which may be none
  if [[ -n $2 ]]; then
    link_to "$1" "versions/$2"
  else
    rm -f "$1"
  fi
}

version_of() { # current|previous
  local target
  target=$(readlink "$HOME_FOLDER/$1" 2>/dev/null) || return 0
  basename "$target"
}

# Building a version ---------------------------------------------------------------------------------------------------

pip_install() { # FOLDER ARGUMENTS...
  local venv=$1/venv quiet=() offline=()
  shift
  [[ -t 1 ]] || quiet=(--quiet)
  [[ -z $offline_folder ]] || offline=(--no-index --find-links "$offline_folder/wheels")
  PIP_USE_PEP517=1 "$venv/bin/python" -I -m pip install "${quiet[@]}" "${offline[@]}" --no-input \
    --disable-pip-version-check --no-compile "$@" 9<&- >&2
}

require_room() {
  local free
  free=$(df --output=avail --block-size=1M "$VERSIONS" | tail -n 1)
  free=${free// /}
  [[ $free -ge $NEEDED_MB ]] || die "a version needs $NEEDED_MB MB, and $VERSIONS has $free: make room. $STILL"
}

build_version() { # NAME
  local folder=$VERSIONS/$1 source=$scratch/source list="" options=()
  if [[ -e $folder/complete ]]; then
    say "version $1 is installed already"
    return
  fi
  forget_old_versions # what was given up before this may be what takes the room
  require_room
  say "installing version $1 in $folder"
  unfinished=$folder
  rm -rf "$folder"
  mkdir -p "$folder"
  if is_jetson; then
    list="[jetson]"
    options=(--system-site-packages)
    PATH=$PATH:/usr/local/cuda/bin # pycuda is compiled there
  fi
  "$python" -I -m venv "${options[@]}" "$folder/venv" || die "$python cannot make a virtual environment"
  # pip builds where the sources lie, and would leave root's files in a user's folder.
  mkdir "$source"
  cp -r daemon device engines power pyproject.toml README.md LICENSE "$source"
  pip_install "$folder" "$source$list" "$VOICE" || die "pip could not install them; see above. $STILL"
  cp -r systemd "$folder/systemd"
  "$folder/venv/bin/python" -I -m compileall -q -j 0 "$folder/venv" >/dev/null || true # later nobody may write there
  sync -f "$folder" # all of it is on the disk before the file that says so
  touch "$folder/complete"
  sync -f "$folder"
  unfinished=""
}

forget_old_versions() {
  local folder name current previous kept=0
  current=$(version_of current)
  previous=$(version_of previous)
  while read -r folder; do
    name=$(basename "$folder")
    [[ $name != "$current" && $name != "$previous" ]] || continue
    if [[ -e $folder/complete && $kept -lt $((KEPT_VERSIONS - 2)) ]]; then
      kept=$((kept + 1))
    else
      rm -rf "$folder"
    fi
  done < <(find "$VERSIONS" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | cut -d ' ' -f 2-)
}

# What it needs to speak -----------------------------------------------------------------------------------------------

# Runs a command of an installation as the service does: its user, its folders.
as_service() { # FOLDER ARGUMENTS...
  local folder=$1
  shift
  # 9: our lock, which what we start must not keep.
  runuser -u "$SERVICE_USER" -- env HOME=/var/lib/speakd STATE_DIRECTORY=/var/lib/speakd \
    CACHE_DIRECTORY=/var/cache/speakd ORT_DISABLE_TELEMETRY=1 "$folder/venv/bin/speakd" --config "$CONFIG" "$@" 9<&-
}

write_config() { # FOLDER
  [[ ! -e $CONFIG ]] || return 0
  say "writing $CONFIG: every key with its default, to be changed as you like"
  "$1/venv/bin/speakd" config show | sed 's/^\([^#[]\)/#\1/' >"$CONFIG.new"
  chmod 0644 "$CONFIG.new"
  sync -f "$CONFIG.new"
  mv -f "$CONFIG.new" "$CONFIG"
}

add_voice() { # FOLDER
  local voices
  voices=$(as_service "$1" voice list 2>/dev/null | grep -v ' broken: ' || true)
  if [[ -z $voices ]]; then
    say "importing the voice $VOICE"
    as_service "$1" voice add "$VOICE" >&2 || die "the voice could not be imported; see above"
  fi
  if is_jetson; then
    say "building TensorRT's engines for this GPU (minutes, once)"
    as_service "$1" voice build --backend trt >&2 || say "no engines: the voice speaks on the CPU until that is mended"
  fi
}

# Where the configuration wants speech marked. The service does not start without the mark then.
add_watermark() { # FOLDER
  local wheel=()
  if [[ -n $offline_folder ]]; then
    chmod 0755 "$scratch" # the service's user cannot look into a stick that somebody else has mounted
    install -m 0644 "$offline_folder"/wheels/resemble_perth-*.whl "$scratch" 2>/dev/null || return 0
    wheel=("$scratch"/resemble_perth-*.whl)
  fi
  as_service "$1" watermark add --wanted "${wheel[@]}" >&2 || die "the watermark could not be added; see above. $STILL"
}

# Starting it ----------------------------------------------------------------------------------------------------------

start_current() {
  local helper
  mkdir -p /usr/local/bin && link_to /usr/local/bin/speakd "$HOME_FOLDER/current/venv/bin/speakd" || return 1
  remove_foreign_units "$HOME_FOLDER/current"
  install_units "$HOME_FOLDER/current" || return 1
  # Root's part is started by its socket; versions of before have none.
  helper=speakd-power.socket
  [[ -e $UNITS/$helper ]] || helper=speakd-power.service
  if ! has_systemd; then
    say "systemd does not run here: speakd is installed, and starts with the next boot"
    systemctl --quiet enable speakd.service 2>/dev/null || true
    [[ ! -e $UNITS/$helper ]] || systemctl --quiet enable "$helper" 2>/dev/null || true
    return 0
  fi
  systemctl daemon-reload
  systemctl --quiet enable speakd.service
  [[ ! -e $UNITS/$helper ]] || systemctl --quiet enable --now "$helper" || true
  systemctl --quiet try-restart speakd-power.service 2>/dev/null || true # else root's part stays that of before
  systemctl reset-failed speakd.service 2>/dev/null || true
  say "starting speakd"
  # Not in the foreground: only so does a signal end the waiting.
  timeout "$READY_S" systemctl restart speakd.service 9<&- &
  if [[ $interrupted == no ]] && wait "$!" && systemctl --quiet is-active speakd.service; then
    return 0
  fi
  [[ $interrupted == yes ]] || journalctl --unit speakd.service --lines 20 --no-pager >&2 || true
  return 1
}

# Tells whether it is this version that is ready and runs.
runs() { # VERSION
  local pid
  has_systemd && systemctl --quiet is-active speakd.service || return 1
  pid=$(systemctl show --property=MainPID --value speakd.service)
  grep -qsF "$VERSIONS/$1/" "/proc/$pid/maps"
}

# Where the power was cut before a new version got ready, it was never seen to start: what ran before is current again,
# unless the new one runs now, or is an older one that somebody wanted back.
finish_interrupted_switch() {
  local before="" earlier="" wanted_back="" current
  [[ -e $SWITCHING ]] || return 0
  { read -r before && read -r earlier && read -r wanted_back; } <"$SWITCHING" || true
  current=$(version_of current)
  if [[ $current == "$before" ]]; then
    [[ -z $before ]] || link_or_none "$HOME_FOLDER/previous" "$earlier"
  elif [[ -n $wanted_back ]]; then
    cut=rollback
  elif runs "$current"; then
    say "version $current was not seen to start before the power went, and runs now"
  elif [[ -n $before && -e $VERSIONS/$before/complete ]]; then
    say "version $current was not seen to start before the power went: $before is the current one again"
    link_to "$HOME_FOLDER/current" "versions/$before"
    link_or_none "$HOME_FOLDER/previous" "$earlier"
    install_units "$HOME_FOLDER/current"
    ! has_systemd || systemctl daemon-reload
    cut=install
  fi
  rm -f "$SWITCHING"
}

# Makes a complete version the one that runs. Where it does not get ready, or somebody ends this before, the links of
# before are made again, and what ran before runs on.
switch_to() { # NAME [back]
  local before earlier why="does not start"
  before=$(version_of current)
  earlier=$(version_of previous)
  trap 'interrupted=yes' INT TERM
  trap 'interrupted=yes; exec 2>/dev/null' HUP # nobody is there to read on
  if [[ $before != "$1" ]]; then
    printf '%s\n%s\n%s\n' "$before" "$earlier" "${2:-}" >"$SWITCHING.new"
    sync "$SWITCHING.new"
    mv -f "$SWITCHING.new" "$SWITCHING"
    [[ -z $before ]] || link_to "$HOME_FOLDER/previous" "versions/$before"
    link_to "$HOME_FOLDER/current" "versions/$1"
  fi
  if start_current; then
    rm -f "$SWITCHING"
    trap - INT TERM HUP
    return 0
  fi
  trap '' INT TERM HUP
  if [[ $interrupted == yes ]]; then
    why="was not waited for"
  fi
  if [[ -z $before || $before == "$1" ]]; then
    rm -f "$SWITCHING"
    die "speakd $why; what it said is above, and journalctl -u speakd tells more"
  fi
  say "version $1 $why: going back to $before"
  link_to "$HOME_FOLDER/current" "versions/$before"
  link_or_none "$HOME_FOLDER/previous" "$earlier"
  rm -f "$SWITCHING"
  interrupted=no
  start_current || die "version $before does not start either; what it said is above"
  die "version $1 $why (see above), so $before runs on"
}

# The system's own Python where it is new enough: the service cannot reach one in somebody's home.
choose_service_python() {
  [[ -n ${PYTHON:-} ]] || ! probe_python /usr/bin/python3 || PYTHON=/usr/bin/python3
}

install_appliance() {
  local name folder packages
  begin "${offline_folder:+--offline DIR}"
  if [[ -z $offline_folder ]]; then
    require_debian
    choose_service_python
    choose_python appliance
    mapfile -t packages < <(needed_packages appliance)
    install_packages "${packages[@]}"
  else
    check_bundle "$(uname -m)"
    install_debs
    choose_service_python
    probe_python "${PYTHON:-python3}" || die "there is no Python 3.10 or newer, and $offline_folder brought none"
    check_bundle "$(uname -m), Python $version"
  fi
  case $(readlink -f "$python") in
    /home/* | /root/*) die "the service may not look into homes, where $python is: choose another with PYTHON=" ;;
  esac
  mkdir -p "$VERSIONS"
  finish_interrupted_switch
  name=$(version_name)
  folder=$VERSIONS/$name
  build_version "$name"
  make_user "$folder"
  write_config "$folder"
  as_service "$folder" config check >&2 || die "$CONFIG does not fit this version; mend it and run this again. $STILL"
  add_voice "$folder"
  add_watermark "$folder"
  switch_to "$name"
  forget_old_versions
  say "speakd $name is installed"
  "$folder/venv/bin/speakd" --config "$CONFIG" doctor >&2 || say "speakd doctor found something, above, with what mends it"
}

rollback_appliance() {
  local previous
  begin rollback
  finish_interrupted_switch
  previous=$(version_of previous)
  if [[ -n $cut ]]; then # what is current now is what it shall go back to
    switch_to "$(version_of current)"
    say "speakd $(version_of current) runs"
    return
  fi
  [[ -n $previous && $previous != "$(version_of current)" && -e $VERSIONS/$previous/complete ]] ||
    die "there is no earlier version to go back to"
  "$VERSIONS/$previous/venv/bin/python" -I -c '' 2>/dev/null ||
    die "the Python that $previous was installed with is gone: sudo ./install.sh from its sources installs it anew. $STILL"
  as_service "$VERSIONS/$previous" config check >&2 ||
    die "$CONFIG does not fit $previous; take out what is new and run this again. $STILL"
  say "going back from $(version_of current) to $previous"
  switch_to "$previous" back
  say "speakd $previous runs; ./install.sh rollback goes forward again"
}

uninstall_appliance() { # purge|keep
  begin --uninstall
  if has_systemd; then
    systemctl --quiet disable --now speakd.service speakd-power.service speakd-power.socket 2>/dev/null || true
  else
    systemctl --quiet disable speakd.service speakd-power.service speakd-power.socket 2>/dev/null || true
  fi
  rm -rf "$UNITS"/speakd.service "$UNITS"/speakd-power.service "$UNITS"/speakd-power.socket \
    "$UNITS"/speakd.service.d/{backoff,jtop}.conf /etc/tmpfiles.d/speakd.conf "$RULES" /usr/local/bin/speakd \
    "$HOME_FOLDER" "$MANUAL/man1/speakd.1" "$MANUAL/man5/speakd.toml.5"
  rmdir "$UNITS/speakd.service.d" 2>/dev/null || true # what `systemctl edit` made there is its owner's
  ! command -v udevadm >/dev/null || udevadm control --reload 2>/dev/null || true
  ! has_systemd || systemctl daemon-reload
  if [[ $1 == purge ]]; then
    rm -rf /etc/speakd /var/lib/speakd /var/lib/speakd-power /var/cache/speakd \
      "$UNITS/speakd.service.d" "$UNITS/speakd-power.service.d"
    ! id "$SERVICE_USER" >/dev/null 2>&1 || userdel "$SERVICE_USER" 2>/dev/null || true
    say "speakd, its configuration and its voices are gone"
  else
    say "speakd is gone; /etc/speakd, /var/lib/speakd and /var/cache/speakd stay (--purge removes them)"
  fi
}

# shellcheck shell=bash disable=SC2154  # install.sh, which sources this, sets python, version and offline_folder
# The appliance: what `sudo ./install.sh` does on a machine that speakd shall live on. Sourced by install.sh.
#
#   /opt/speakd/versions/VERSION/     one installation: its virtual environment, its units, the file `complete`
#   /opt/speakd/current, previous     links to the one that runs, and to the one that ran before
#   /etc/speakd/                      the configuration: written once, never again
#   /var/lib/speakd, /var/cache/speakd  voices, journal; what can be made again
#
# A version is built beside the one that runs. It becomes the current one by a single rename, and only what is complete
# does: whenever the power is cut, the old version or the new one starts. One that does not get ready is undone.

readonly HOME_FOLDER=/opt/speakd
readonly VERSIONS=$HOME_FOLDER/versions
readonly CONFIG=/etc/speakd/speakd.toml
readonly UNITS=/etc/systemd/system
readonly SERVICE_USER=speakd
readonly MANUAL=/usr/local/share/man
readonly KEPT_VERSIONS=3 # the one that runs, the one before it, and one more
readonly READY_S=960     # a little more than the unit's TimeoutStartSec

require_root() {
  [[ $EUID -eq 0 ]] || die "this changes the system: sudo ./install.sh $*"
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
  ln -sfn "$2" "$1.new"
  mv -fT "$1.new" "$1"
}

version_of() { # current|previous
  local target
  target=$(readlink "$HOME_FOLDER/$1" 2>/dev/null) || return 0
  basename "$target"
}

appliance_packages() {
  needed_packages try | grep -vx mosquitto
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

build_version() { # NAME
  local folder=$VERSIONS/$1 source list="" options=()
  if [[ -e $folder/complete ]]; then
    say "version $1 is installed already"
    return
  fi
  say "installing version $1 in $folder"
  rm -rf "$folder"
  mkdir -p "$folder"
  if is_jetson; then
    list="[jetson]"
    options=(--system-site-packages)
    PATH=$PATH:/usr/local/cuda/bin # pycuda is compiled there
  fi
  "$python" -I -m venv "${options[@]}" "$folder/venv" || die "$python cannot make a virtual environment"
  # pip builds where the sources lie, and would leave root's files in a user's folder.
  source=$(mktemp -d)
  cp -r daemon device engines power pyproject.toml README.md LICENSE "$source"
  pip_install "$folder" "$source$list" "$VOICE" || {
    rm -rf "$source" "$folder"
    die "pip could not install them; see above. What ran before still runs."
  }
  rm -rf "$source"
  cp -r systemd "$folder/systemd"
  "$folder/venv/bin/python" -I -m compileall -q -j 0 "$folder/venv" >/dev/null || true # later nobody may write there
  sync -f "$folder" # all of it is on the disk before the file that says so
  touch "$folder/complete"
  sync -f "$folder"
}

forget_old_versions() {
  local folder name current previous kept=0
  current=$(version_of current)
  previous=$(version_of previous)
  while read -r folder; do
    name=$(basename "$folder")
    [[ $name != "$current" && $name != "$previous" ]] || continue
    kept=$((kept + 1))
    if [[ ! -e $folder/complete || $kept -gt $((KEPT_VERSIONS - 2)) ]]; then
      rm -rf "$folder"
    fi
  done < <(find "$VERSIONS" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | cut -d ' ' -f 2-)
}

# The system around it -------------------------------------------------------------------------------------------------

make_user() { # FOLDER
  local group
  if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers "$1/systemd/speakd-sysusers.conf"
  else
    id "$SERVICE_USER" >/dev/null 2>&1 ||
      useradd --system --user-group --no-create-home --home-dir /var/lib/speakd --shell /usr/sbin/nologin "$SERVICE_USER"
    for group in audio video render; do # the unit does not start without one of them
      groupadd --force --system "$group"
      usermod -aG "$group" "$SERVICE_USER"
    done
  fi
  if command -v systemd-tmpfiles >/dev/null; then
    systemd-tmpfiles --create "$1/systemd/speakd-tmpfiles.conf"
  else
    install -d -o "$SERVICE_USER" -g "$SERVICE_USER" -m 0750 /var/lib/speakd /var/cache/speakd
    install -d -m 0755 /etc/speakd /etc/speakd/lexicon.d
  fi
}

install_units() { # FOLDER
  local unit
  mkdir -p "$UNITS"
  for unit in "$1"/systemd/*.service "$1"/systemd/*.socket; do
    [[ ! -e $unit ]] || install -m 0644 "$unit" "$UNITS/"
  done
  rm -rf "$UNITS/speakd.service.d/backoff.conf"
  if [[ $(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p') -ge 254 ]]; then
    install -D -m 0644 "$1/systemd/speakd-backoff.conf" "$UNITS/speakd.service.d/backoff.conf"
  fi
  if getent group jtop >/dev/null; then
    mkdir -p "$UNITS/speakd.service.d"
    printf '[Service]\nSupplementaryGroups=jtop\n' >"$UNITS/speakd.service.d/jtop.conf"
  fi
  install -D -m 0644 "$1/systemd/speakd-tmpfiles.conf" /etc/tmpfiles.d/speakd.conf
  mkdir -p "$MANUAL/man1" "$MANUAL/man5"
  "$1/venv/bin/speakd" man speakd >"$MANUAL/man1/speakd.1" || true # a version of before had none
  "$1/venv/bin/speakd" man speakd.toml >"$MANUAL/man5/speakd.toml.5" || true
  if [[ -e $1/systemd/90-speakd.rules ]]; then
    install -D -m 0644 "$1/systemd/90-speakd.rules" /etc/udev/rules.d/90-speakd.rules
    ! command -v udevadm >/dev/null || udevadm control --reload 2>/dev/null || true
  fi
}

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

# Starting it ----------------------------------------------------------------------------------------------------------

# Makes a complete version the one that runs. The names of before are given back where it does not get ready.
activate() { # NAME
  local before
  before=$(version_of current)
  if [[ $before != "$1" ]]; then
    [[ -z $before ]] || link_to "$HOME_FOLDER/previous" "versions/$before"
    link_to "$HOME_FOLDER/current" "versions/$1"
  fi
  mkdir -p /usr/local/bin
  link_to /usr/local/bin/speakd "$HOME_FOLDER/current/venv/bin/speakd"
  install_units "$HOME_FOLDER/current"
  if ! has_systemd; then
    say "systemd does not run here: speakd is installed, and starts with the next boot"
    systemctl --quiet enable speakd.service 2>/dev/null || true
    return 0
  fi
  systemctl daemon-reload
  systemctl --quiet enable speakd.service
  [[ ! -e $UNITS/speakd-power.socket ]] || systemctl --quiet enable --now speakd-power.socket || true
  [[ ! -e $UNITS/speakd-power.service || -e $UNITS/speakd-power.socket ]] ||
    systemctl --quiet enable --now speakd-power.service || true
  systemctl reset-failed speakd.service 2>/dev/null || true
  say "starting speakd"
  if timeout "$READY_S" systemctl restart speakd.service && systemctl --quiet is-active speakd.service; then
    return 0
  fi
  journalctl --unit speakd.service --lines 20 --no-pager >&2 || true
  return 1
}

switch_to() { # NAME
  local before
  before=$(version_of current)
  if activate "$1"; then
    return 0
  fi
  if [[ -z $before || $before == "$1" ]]; then
    die "speakd does not start; what it said is above"
  fi
  say "version $1 does not start: going back to $before"
  activate "$before" || die "version $before does not start either; what it said is above"
  die "version $1 does not start (see above), so $before runs on"
}

install_appliance() {
  local name folder packages
  require_root
  lock_machine
  if [[ -z $offline_folder ]]; then
    require_debian
    choose_python try
    mapfile -t packages < <(appliance_packages)
    install_packages "${packages[@]}"
  else
    [[ -d $offline_folder/wheels ]] || die "$offline_folder holds no wheels/: make it with ./install.sh bundle DIR"
    install_debs
    probe_python "${PYTHON:-python3}" || die "there is no Python 3.10 or newer, and $offline_folder brought none"
  fi
  mkdir -p "$VERSIONS"
  name=$(version_name)
  folder=$VERSIONS/$name
  build_version "$name"
  make_user "$folder"
  write_config "$folder"
  "$folder/venv/bin/speakd" --config "$CONFIG" config check >&2 ||
    die "$CONFIG does not fit this version; mend it and run this again. What ran before still runs."
  add_voice "$folder"
  switch_to "$name"
  forget_old_versions
  say "speakd $name is installed"
  "$folder/venv/bin/speakd" --config "$CONFIG" doctor >&2 || say "speakd doctor found something, above, with what mends it"
}

rollback_appliance() {
  local previous
  require_root rollback
  lock_machine
  previous=$(version_of previous)
  [[ -n $previous && -e $VERSIONS/$previous/complete ]] || die "there is no earlier version to go back to"
  say "going back from $(version_of current) to $previous"
  switch_to "$previous"
  say "speakd $previous runs; ./install.sh rollback goes forward again"
}

uninstall_appliance() { # purge|keep
  require_root --uninstall
  lock_machine
  if has_systemd; then
    systemctl --quiet disable --now speakd.service speakd-power.service speakd-power.socket 2>/dev/null || true
  else
    systemctl --quiet disable speakd.service 2>/dev/null || true
  fi
  rm -rf "$UNITS"/speakd.service "$UNITS"/speakd-power.service "$UNITS"/speakd-power.socket "$UNITS/speakd.service.d" \
    /etc/tmpfiles.d/speakd.conf /etc/udev/rules.d/90-speakd.rules /usr/local/bin/speakd "$HOME_FOLDER" \
    "$MANUAL/man1/speakd.1" "$MANUAL/man5/speakd.toml.5"
  ! has_systemd || systemctl daemon-reload
  if [[ $1 == purge ]]; then
    rm -rf /etc/speakd /var/lib/speakd /var/cache/speakd
    ! id "$SERVICE_USER" >/dev/null 2>&1 || userdel "$SERVICE_USER" 2>/dev/null || true
    say "speakd, its configuration and its voices are gone"
  else
    say "speakd is gone; /etc/speakd, /var/lib/speakd and /var/cache/speakd stay (--purge removes them)"
  fi
}

# Without a network ----------------------------------------------------------------------------------------------------

install_debs() {
  local missing wanted debs lists
  mapfile -t wanted < <(runtime_packages)
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  compgen -G "$offline_folder/debs/*.deb" >/dev/null ||
    die "these Debian packages are missing, and $offline_folder/debs has none: ${missing[*]}"
  say "installing Debian packages from $offline_folder/debs: ${missing[*]}"
  mapfile -t debs < <(newer_debs "$offline_folder"/debs/*.deb)
  lists=$(mktemp -d)
  # The files alone: what apt knows of the network's packages would make it go there, even for those that it was given.
  apt_get -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$lists" \
    -o APT::Sandbox::User=root install -y --no-install-recommends "${debs[@]}" ||
    die "they could not be installed; was the bundle made on the same release of the system?"
  rm -rf "$lists"
}

# Of these files, those that are not installed, or in an older version.
newer_debs() {
  local deb name version installed
  for deb in "$@"; do
    name=$(dpkg-deb -f "$deb" Package)
    version=$(dpkg-deb -f "$deb" Version)
    installed=$(dpkg-query -W -f '${Version}' "$name" 2>/dev/null || true)
    if [[ -z $installed ]] || dpkg --compare-versions "$installed" lt "$version"; then
      printf '%s\n' "$deb"
    fi
  done
}

# What speakd needs once its wheels are built.
runtime_packages() {
  printf '%s\n' libasound2-plugins libopus0
  case ${PYTHON:-/usr/bin/python3} in
    /usr/bin/*) printf '%s\n' python3 python3-venv ;; # the system's own; another one its owner has brought
  esac
}

# Wheels and debs for machines of this kind: the same release, architecture and Python as the one that makes them.
bundle_appliance() { # DIR
  local folder=$1 packages source list=""
  [[ -n $folder ]] || die "say where to: ./install.sh bundle DIR"
  require_debian
  choose_python try
  mapfile -t packages < <(appliance_packages)
  install_packages "${packages[@]}"
  ! is_jetson || list="[jetson]"
  rm -rf "$folder.new"
  mkdir -p "$folder.new/wheels" "$folder.new/debs"
  source=$(mktemp -d)
  cp -r daemon device engines power pyproject.toml README.md LICENSE "$source"
  "$python" -I -m venv "$source/venv"
  say "collecting wheels for Python $version on $(uname -m)"
  PIP_USE_PEP517=1 "$source/venv/bin/python" -I -m pip wheel --quiet --no-input --disable-pip-version-check \
    --wheel-dir "$folder.new/wheels" "$source$list" "$VOICE" 'setuptools>=77' wheel >&2 || die "pip could not; see above"
  rm -rf "$source"
  say "collecting Debian packages"
  fetch_debs "$folder.new/debs"
  printf 'made for: %s, %s, Python %s\n' "$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release)" "$(uname -m)" \
    "$version" >"$folder.new/README"
  rm -rf "$folder"
  mv "$folder.new" "$folder"
  say "$folder is complete: on the kiosk, sudo ./install.sh --offline DIR"
}

# Fetches what speakd needs beyond the base system, whatever is installed here.
fetch_debs() { # FOLDER
  local work base wanted closure=(--no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances)
  # shellcheck disable=SC2016  # dpkg's own placeholders
  mapfile -t base < <(dpkg-query -W -f '${Priority} ${Package}\n' | sed -n 's/^required //p')
  mapfile -t wanted < <(runtime_packages)
  work=$(mktemp -d)
  apt-cache depends --recurse --installed "${closure[@]}" "${base[@]}" |
    sed -n 's/^\([a-z0-9][^: ]*\).*$/\1/p' | sort -u >"$work/names"
  # What dpkg would know of a system that has nothing else.
  awk 'NR == FNR { base[$1]; next } $2 in base' "$work/names" RS= ORS='\n\n' /var/lib/dpkg/status >"$work/status"
  mkdir "$1/partial"
  apt_get -o Dir::State::status="$work/status" -o Dir::Cache::archives="$1" -o APT::Sandbox::User=root \
    -o Debug::NoLocking=1 install --download-only -y --no-install-recommends "${wanted[@]}" ||
    die "the Debian packages could not be fetched; see above"
  rm -rf "$work" "$1/partial"
}

lock_machine() {
  mkdir -p /run/lock
  exec 9>/run/lock/speakd-install
  flock -n 9 || die "another install.sh is at work on this machine"
}

# shellcheck shell=bash disable=SC2154  # install.sh, which sources this, sets python, version and offline_folder
# Without a network: `install.sh bundle` collects wheels and debs, `install.sh --offline` installs them.

# What a bundle is good for: wheels and debs are of one architecture, wheels of one Python too.
made_for() { # FOLDER
  sed -n 's/^made for: //p' "$1/README" 2>/dev/null || true
}

check_bundle() { # WHAT IS HERE
  local told
  [[ -d $offline_folder/wheels ]] || die "$offline_folder holds no wheels/: make it with ./install.sh bundle DIR"
  told=$(made_for "$offline_folder")
  [[ -z $told || ", $told," == *", $1,"* ]] || die "the bundle was made for $told, and this is $1"
}

install_debs() {
  local missing wanted debs
  mapfile -t wanted < <(runtime_packages)
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  compgen -G "$offline_folder/debs/*.deb" >/dev/null ||
    die "these Debian packages are missing, and $offline_folder/debs has none: ${missing[*]}"
  say "installing Debian packages from $offline_folder/debs: ${missing[*]}"
  mapfile -t debs < <(newer_debs "$offline_folder"/debs/*.deb)
  mkdir "$scratch/lists"
  # The files alone: what apt knows of the network's packages would make it go there, even for those that it was given.
  apt_get -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$scratch/lists" \
    -o APT::Sandbox::User=root install -y --no-install-recommends "${debs[@]}" ||
    die "they could not be installed; was the bundle made on the same release of the system?"
}

# Of these files, those that are not installed, or in an older version.
newer_debs() {
  local deb name version installed
  for deb in "$@"; do
    name=$(dpkg-deb -f "$deb" Package)
    version=$(dpkg-deb -f "$deb" Version)
    # Of a package that was removed, its configuration and so its version may be there still.
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$name" 2>/dev/null || true)
    if [[ $installed != "installed "* ]] || dpkg --compare-versions "${installed#* }" lt "$version"; then
      printf '%s\n' "$deb"
    fi
  done
}

# What speakd needs once its wheels are built.
runtime_packages() {
  printf '%s\n' alsa-utils libasound2-plugins libopus0
  case ${PYTHON:-/usr/bin/python3} in
    /usr/bin/*) printf '%s\n' python3 python3-venv ;; # the system's own; another one its owner has brought
  esac
}

# Wheels and debs for machines of this kind: the same release, architecture and Python as the one that makes them.
bundle_appliance() { # DIR
  local folder=$1 packages source new list=""
  # It is replaced as a whole.
  [[ ! -e $folder || -n $(made_for "$folder") ]] || rmdir "$folder" 2>/dev/null ||
    die "$folder holds something else than a bundle: name a new folder"
  require_debian
  choose_service_python
  choose_python appliance
  mapfile -t packages < <(needed_packages appliance)
  install_packages "${packages[@]}"
  update_lists # the debs are fetched by them
  if is_jetson; then
    list="[jetson]"
    PATH=$PATH:/usr/local/cuda/bin # pycuda is compiled there
  fi
  scratch=$(mktemp -d)
  trap finish EXIT
  mkdir -p "$(dirname "$folder")"
  new=$(mktemp -d "$folder.XXXXXX")
  unfinished=$new
  chmod 0755 "$new"
  mkdir "$new/wheels" "$new/debs"
  source=$scratch/source
  mkdir "$source"
  cp -r daemon device engines power pyproject.toml README.md LICENSE "$source"
  "$python" -I -m venv "$scratch/venv"
  say "collecting wheels for Python $version on $(uname -m)"
  collect wheel --wheel-dir "$new/wheels" "$source$list" "$VOICE" 'setuptools>=77' wheel
  # What audio.watermark takes; alone, since it would bring torch.
  collect download --no-deps --only-binary=:all: --dest "$new/wheels" \
    "$(sed -n 's/^PACKAGE: Final = "\(.*\)"$/\1/p' engines/perth.py)"
  say "collecting Debian packages"
  fetch_debs "$new/debs"
  printf 'made for: %s, %s, Python %s\n' "$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release)" "$(uname -m)" \
    "$version" >"$new/README"
  rm -rf "$folder"
  mv "$new" "$folder"
  unfinished=""
  say "$folder is complete: on the kiosk, sudo ./install.sh --offline DIR"
}

collect() { # PIP'S COMMAND AND ARGUMENTS
  PIP_USE_PEP517=1 "$scratch/venv/bin/python" -I -m pip "$1" --quiet --no-input --disable-pip-version-check \
    "${@:2}" >&2 || die "pip could not; see above"
}

# Fetches what speakd needs beyond the base system, whatever is installed here.
fetch_debs() { # FOLDER
  local work base wanted closure=(--no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances)
  # shellcheck disable=SC2016  # dpkg's own placeholders
  mapfile -t base < <(dpkg-query -W -f '${Priority} ${Package}\n' | sed -n 's/^required //p')
  mapfile -t wanted < <(runtime_packages)
  work=$scratch/dpkg
  mkdir "$work"
  apt-cache depends --recurse --installed "${closure[@]}" "${base[@]}" |
    sed -n 's/^\([a-z0-9][^: ]*\).*$/\1/p' | sort -u >"$work/names"
  # What dpkg would know of a system that has nothing else.
  awk 'NR == FNR { base[$1]; next } $2 in base' "$work/names" RS= ORS='\n\n' /var/lib/dpkg/status >"$work/status"
  mkdir "$1/partial"
  apt_get -o Dir::State::status="$work/status" -o Dir::Cache::archives="$1" -o APT::Sandbox::User=root \
    -o Debug::NoLocking=1 install --download-only -y --no-install-recommends "${wanted[@]}" ||
    die "the Debian packages could not be fetched; see above"
  rm -rf "$1/partial"
}

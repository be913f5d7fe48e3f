# shellcheck shell=bash disable=SC2154  # appliance.sh sets the folders and files that are named here, and scratch
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

put_file() { # FROM TO: whole, or what was there before
  mkdir -p "${2%/*}" && install -m 0644 "$1" "$2.new" && sync "$2.new" && mv -f "$2.new" "$2"
}

put_page() { # FOLDER NAME FILE: of the manual; an earlier version may have none
  if "$1/venv/bin/speakd" man "$2" >"$scratch/page" 2>/dev/null; then
    put_file "$scratch/page" "$3"
  else
    rm -f "$3"
  fi
}

# Of a version that is no longer the one that runs, what this one has not.
remove_foreign_units() { # FOLDER
  local unit name
  for unit in "$VERSIONS"/*/systemd/*.service "$VERSIONS"/*/systemd/*.socket; do
    name=${unit##*/}
    if [[ -e $UNITS/$name && ! -e $1/systemd/$name ]]; then
      systemctl --quiet disable --now "$name" 2>/dev/null || true
      rm -f "$UNITS/$name"
    fi
  done
}

install_units() { # FOLDER
  local unit options=$UNITS/speakd.service.d
  for unit in "$1"/systemd/*.service "$1"/systemd/*.socket; do
    [[ ! -e $unit ]] || put_file "$unit" "$UNITS/${unit##*/}" || return 1
  done
  # RestartSteps of versions before: systemd counts every restart since somebody started the unit, so that in the end
  # each crash was followed by a minute of silence.
  rm -f "$options/backoff.conf" "$options/jtop.conf"
  if getent group jtop >/dev/null; then
    printf '[Service]\nSupplementaryGroups=jtop\n' >"$scratch/jtop.conf"
    put_file "$scratch/jtop.conf" "$options/jtop.conf" || return 1
  fi
  put_file "$1/systemd/speakd-tmpfiles.conf" /etc/tmpfiles.d/speakd.conf || return 1
  put_page "$1" speakd "$MANUAL/man1/speakd.1" || return 1
  put_page "$1" speakd.toml "$MANUAL/man5/speakd.toml.5" || return 1
  if [[ -e $1/systemd/90-speakd.rules ]]; then
    put_file "$1/systemd/90-speakd.rules" "$RULES" || return 1
  else
    rm -f "$RULES"
  fi
  wake_cards
}

# Has udev apply the rules to the cards that are there. Containers have no udev, or none that runs.
wake_cards() {
  if ! command -v udevadm >/dev/null || ! udevadm control --reload 2>/dev/null; then
    return 0
  fi
  udevadm trigger --action=change --subsystem-match=usb --property-match='ID_USB_INTERFACES=*:0101*' || true
  udevadm trigger --action=change --type=subsystems --subsystem-match=module --sysname-match='snd_hda_*' || true
}

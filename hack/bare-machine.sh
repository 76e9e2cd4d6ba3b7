#!/bin/sh
# make bare-machine: runs the two commands of the README in a fresh clone on a machine that has only
# what the README requires: Debian with Node 20, npm, make, python3 and git. The machine is a folder
# made by debootstrap. It gets the configuration of package managers of this one: mirrors, proxies,
# certificate authorities. Mounts and processes are in namespaces, so an interruption leaves none.
#
#   --keep-cache   with the programs that this machine has compiled already
set -eu
cd "$(dirname "$0")/.."

node_version=20.20.2
npm_version=10.9.9
say() { printf 'bare-machine: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }

[ "$(uname -s)$(id -u)" = Linux0 ] || fail 'run this as root on Linux: it makes a root folder and mounts'
for program in debootstrap unshare pivot_root npm git; do
  command -v "$program" >/dev/null || fail "$program is missing. Debian: apt-get install debootstrap util-linux git; npm comes with Node"
done
keep_cache=
case ${1:-} in
'') ;;
--keep-cache) keep_cache=yes ;;
*) fail "unknown option '$1': the comment at the top of hack/bare-machine.sh lists all" ;;
esac

folder=$(mktemp -d "${TMPDIR:-/var/tmp}/bare-machine.XXXXXX")
root=$folder/root
# In the machine.
home=/srv
# The process that runs a command in the machine. The others there end with it, and the mounts.
machine=
cleanup() {
  if [ -n "$machine" ]; then
    kill -KILL "$machine" 2>/dev/null || true
    wait "$machine" 2>/dev/null || true
  fi
  rm -rf --one-file-system "$folder"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# copy_settings <path...>: to the same path, where they exist.
copy_settings() {
  for path in "$@"; do
    [ -e "$path" ] || continue
    mkdir -p "$root$(dirname "$path")"
    # Debian has some of them, as links to the same files.
    rm -rf "${root:?}$path"
    cp -aL "$path" "$root$path"
  done
}

# Of the same release as this machine, whose sources of packages it uses.
make_machine() {
  . /etc/os-release
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $VERSION_CODENAME" 2>/dev/null | head -n 1)
  # shellcheck disable=SC2086
  debootstrap --variant=minbase --include=ca-certificates,git,make,python3 "$VERSION_CODENAME" "$root" $mirror >"$folder/log" ||
    { tail -n 30 "$folder/log" >&2; fail 'debootstrap failed'; }
  copy_settings /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/apt/trusted.gpg.d /etc/apt/keyrings \
    /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/local/share/ca-certificates /etc/pip.conf "$(npm config get globalconfig)"
  for path in .npmrc .config/pip .config/go; do
    mkdir -p "$root$home/.config"
    [ ! -e "$HOME/$path" ] || cp -aL "$HOME/$path" "$root$home/$path"
  done
  npm install --prefix "$folder/node" --ignore-scripts --no-save --no-package-lock --no-audit --no-fund --loglevel=error \
    "node-$(node -p 'process.platform + "-" + process.arch')@$node_version" "npm@$npm_version"
  mkdir -p "$root/usr/local/lib/node_modules"
  cp "$folder"/node/node_modules/node-*/bin/node "$root/usr/local/bin/"
  cp -a "$folder/node/node_modules/npm" "$root/usr/local/lib/node_modules/"
  for program in npm npx; do ln -s "../lib/node_modules/npm/bin/$program-cli.js" "$root/usr/local/bin/$program"; done
  git clone -q --no-hardlinks . "$root$home/tollgate"
  # It may be another one here when the tests end.
  commit=$(git -C "$root$home/tollgate" rev-parse --short HEAD)
}

# Proxies, authorities and registries by environment variables.
settings() {
  env | grep -E '^((https?|no|all|HTTPS?|NO|ALL)_(proxy|PROXY)|npm_config_registry|NPM_CONFIG_REGISTRY|PIP_[A-Z_]+|GO(PROXY|SUMDB|NOSUMDB|NOPROXY|PRIVATE|INSECURE)|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|GIT_SSL_CAINFO|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE)=' || true
}

# What becomes of it, in namespaces of mounts and processes. "/" is a mount, as on any machine:
# programs that make namespaces of their own need that.
# shellcheck disable=SC2016
enter='
set -eu
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
if [ -n "$2" ]; then
  mkdir -p "$1$3/.cache/tollgate"
  mount --bind "$2" "$1$3/.cache/tollgate"
fi
cd "$1"
mkdir host
pivot_root . host
umount -l /host
rmdir /host
cd "$3/tollgate"
shift 3
exec env -i "$@"'

# run_command <command...>: prints and returns what it does, and sets $seconds.
run_command() {
  started=$(date +%s)
  status=0
  cache=
  [ -z "$keep_cache" ] || cache=${XDG_CACHE_HOME:-$HOME/.cache}/tollgate
  oldIFS=$IFS
  IFS='
'
  # A setting is a line; words are meant.
  # shellcheck disable=SC2046
  unshare --mount --pid --fork --kill-child --propagation private sh -c "$enter" sh "$root" "$cache" "$home" \
    $(settings) HOME="$home" LANG=C.UTF-8 CI=true PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" </dev/null &
  machine=$!
  IFS=$oldIFS
  # A signal ends the wait, and not the command.
  wait "$machine" || status=$?
  machine=
  seconds=$(($(date +%s) - started))
}

say 'making the machine'
make_machine
say 'make test'
run_command make test
test_status=$status test_seconds=$seconds
say 'make demo ARGS=--once'
run_command make demo ARGS=--once
say "commit $commit${keep_cache:+, with the programs of this machine}"
say "make test: $test_seconds s, exit code $test_status"
say "make demo ARGS=--once: $seconds s, exit code $status"
[ "$test_status" = 0 ] && [ "$status" = 0 ] || fail 'FAILED'
say 'passed'

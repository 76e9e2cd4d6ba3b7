#!/bin/sh
# run.sh <program> [<argument>...]: runs a program of this folder in namespaces of its own. Envoy
# Gateway listens on fixed ports of all addresses, and main.ts mounts /etc/hosts and /certs. All
# processes end with the program.
set -eu
if [ "$(id -u)" != 0 ] || [ "$(uname)" != Linux ]; then
  echo 'make e2e-gateways needs root on Linux, for namespaces of network, mounts and processes' >&2
  exit 1
fi
if [ ! -e /certs ]; then
  mkdir /certs
  trap 'rmdir /certs' EXIT
fi
timeout --kill-after=5 600 unshare --net --mount --pid --fork --kill-child --mount-proc \
  sh -c 'ip link set lo up; exec node "$@"' sh "$@"

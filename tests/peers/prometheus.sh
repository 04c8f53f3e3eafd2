#!/bin/sh
# Unpacks Debian's Prometheus into a build directory, and does not install it: its package starts a service that listens on
# every address of the machine.
# usage: prometheus.sh DIR     exit codes: 0 it is there; 77 it cannot be had here (said why): its test skips
set -eu
dir=${1:?usage: prometheus.sh DIR}/prometheus

if [ -x "$dir/usr/bin/prometheus" ]; then
    exit 0
fi
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
if ! { timeout 180 apt-get -q download prometheus && dpkg-deb -x prometheus_*.deb .; } >log 2>&1 </dev/null; then
    tail -n 5 log >&2
    echo "SKIPPED: no Prometheus for the tests: apt-get download failed (all of it: $dir/log)" >&2
    exit 77
fi
rm -f prometheus_*.deb

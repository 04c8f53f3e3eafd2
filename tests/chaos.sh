#!/bin/sh
# A random black-box test over the documented wire: see tests/README.md. Prints its seed and figures; exit 1 with findings.
# usage: sh tests/chaos.sh [--seconds 60] [--seed N] [--keep] [--without ACT,...]
#   Needs a build (build/dev/bin, or BATON_BIN). As root the daemon gets a small disk of its own, which fills up.
cd "$(dirname "$0")/.." || exit 1
exec python3 -B tests/chaos/chaos.py "$@"

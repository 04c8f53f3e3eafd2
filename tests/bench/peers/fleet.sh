#!/bin/sh
# sh tests/bench/peers/fleet.sh [ARGS of fleet.py]
# Builds, installs DBOS and Restate from npm in build/bench-fleet, and runs fleet.py. Needs postgresql-15 and nodejs with npm.
set -eu
cd "$(dirname "$0")/../../.."

DBOS=5.3.0
RESTATE=1.7.12
RESTATE_SDK=1.17.2

[ -f build/release-tests/build.ninja ] || cmake --preset release-tests >&2
ninja -C build/release-tests batond baton bench_echo_agent bench_ref bench_steps >&2

# Installs exact versions beside the program that uses them: install NAME PACKAGE...
install() {
    at=build/bench-fleet/$1
    mkdir -p "$at"
    cp "tests/bench/peers/$1.mjs" "$at/"
    shift
    (cd "$at" && npm install --no-save --ignore-scripts --no-audit --no-fund "$@") >"$at.log" 2>&1 || {
        echo "left out: $at (npm: $(tail -n 1 "$at.log"))" >&2
        return 1
    }
}

if install dbos "@dbos-inc/dbos-sdk@$DBOS"; then
    set -- "$@" --dbos build/bench-fleet/dbos
fi
if install restate "@restatedev/restate-server@$RESTATE" "@restatedev/restate-sdk@$RESTATE_SDK"; then
    set -- "$@" --restate build/bench-fleet/restate
fi
exec python3 -B tests/bench/fleet.py "$@"

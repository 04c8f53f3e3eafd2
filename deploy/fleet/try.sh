#!/bin/sh
# A fleet on one machine: a PostgreSQL server of its own in a directory, two daemons with one journal, a plan that waits, and
# the leader killed while it does. Needs postgresql-15 or newer and a Baton with PostgreSQL; changes nothing outside the directory.
# usage: sh deploy/fleet/try.sh [BIN]      BIN: the directory of batond and baton; else that of a build, else the PATH
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd -P)
bin=${1:-}
for at in "$here/build/release/bin" "$here/build/dev/bin"; do
    [ -n "$bin" ] || ! [ -x "$at/batond" ] || bin=$at
done
[ -z "$bin" ] || PATH=$(cd "$bin" && pwd -P):$PATH
pg=''
for at in /usr/lib/postgresql/*/bin; do # the newest comes last
    ! [ -x "$at/initdb" ] || ! [ -x "$at/postgres" ] || pg=$at
done
if [ -z "$pg" ] || ! command -v batond >/dev/null; then
    echo "try.sh: needs ${pg:-PostgreSQL (Debian: postgresql-15), }batond and baton" >&2
    exit 2
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/baton-fleet-XXXXXX")
mkdir "$dir/pg"
server=''
one=''
two=''

# PostgreSQL refuses to run as root.
as=''
if [ "$(id -u)" -eq 0 ]; then
    user=postgres
    id postgres >/dev/null 2>&1 || user=nobody
    as="setpriv --reuid=$user --regid=$(id -gn "$user") --clear-groups"
    chown "$user" "$dir/pg"
    chmod 755 "$dir"
fi

finish() {
    code=$?
    trap - EXIT INT TERM
    for pid in $one $two; do
        kill "$pid" 2>/dev/null || continue
        wait "$pid" || true
    done
    if [ -n "$server" ]; then
        kill -INT "$server" 2>/dev/null || true
        wait "$server" || true
    fi
    if [ "$code" -ne 0 ]; then
        tail -n 20 "$dir"/*.log "$dir"/pg/*.log >&2 2>/dev/null || true
    fi
    rm -rf "$dir"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n' "$*"; }

say "PostgreSQL in $dir/pg"
$as "$pg/initdb" -D "$dir/pg/data" -A trust -U fleet --no-sync -E UTF8 --locale=C >"$dir/initdb.log"
$as "$pg/postgres" -D "$dir/pg/data" -k "$dir/pg" -c listen_addresses= -c shared_buffers=32MB >"$dir/postgres.log" 2>&1 &
server=$!
url="postgresql:///postgres?host=$dir/pg&user=fleet"
tries=0
until "$pg/pg_isready" -q -h "$dir/pg" -U fleet -d postgres; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || exit 1
    sleep 0.1
done

# One server has no standby: `power`. A real fleet has `replicated`, the default.
node() { # NAME
    mkdir -m 700 "$dir/$1"
    printf 'fleet: {url: "%s", node: %s, durability: power}\nlog: {level: info}\n' "$url" "$1" >"$dir/$1.yaml"
    # shellcheck disable=SC2016 # the daemon expands it
    printf 'agents:\n  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"]}\n' >>"$dir/$1.yaml"
}
ready() { # NAME
    tries=0
    until baton info --state "$dir/$1" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || exit 1
        sleep 0.1
    done
}
node one
node two
BATON_FLEET_DURABILITY=power baton fleet init "$url"

say "one leads, two waits"
batond --state "$dir/one" --config "$dir/one.yaml" >"$dir/one.log" 2>&1 &
one=$!
ready one
batond --state "$dir/two" --config "$dir/two.yaml" >"$dir/two.log" 2>&1 &
two=$!
until grep -q 'the node "one" leads' "$dir/two.log"; do sleep 0.1; done
grep supervisor.standby "$dir/two.log"

cat >"$dir/plan.yaml" <<'PLAN'
goal: Six times seven, after six seconds
steps:
  - {stepId: pause, wait: {forMs: 6000}}
  - stepId: product
    agentId: calc
    skill: evaluate
    task: Multiply six by seven
    dependsOn: [pause]
    parameters: {expression: "6*7"}
PLAN
say "one accepts a plan that waits"
plan=$(baton run -q --state "$dir/one" --plan "$dir/plan.yaml" --detach)
echo "plan $plan"

say "one is killed"
began=$(date +%s%N)
kill -9 "$one"
wait "$one" 2>/dev/null || true
one=''
ready two
printf 'two leads after %d ms\n' $((($(date +%s%N) - began) / 1000000))
baton fleet status --config "$dir/two.yaml"

say "the plan goes on"
baton status --state "$dir/two" -w "$plan"
baton result --state "$dir/two" "$plan"

#!/bin/sh
# sh tests/bench/peers.sh [--rounds N] [--scenarios "S1 S2 S3"]
#
# Baton beside job servers that it did not write, in the same run, in turns: gearmand (keeps nothing), beanstalkd (in
# memory; and with an fsync per command), BullMQ on a Redis with appendfsync always. Prints one table: microseconds a step,
# the median of the rounds. Needs Debian's gearman-job-server, beanstalkd, redis-server and nodejs with npm; a peer that is
# not installed is named and left out. BATON_BENCH_DIR chooses the disk (default /var/tmp).
set -eu
cd "$(dirname "$0")/../.."

BULLMQ=6.7.0
IOREDIS=6.0.0
rounds=3
scenarios="S1 S2 S3"
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=$2 ;;
    --scenarios) scenarios=$2 ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done

bin=$PWD/build/release-tests/bin
here=$PWD/tests/bench/peers
[ -f build/release-tests/build.ninja ] || cmake --preset release-tests >&2
ninja -C build/release-tests batond bench_echo_agent bench_ref bench_steps peer_queue >&2

dir=$(mktemp -d "${BATON_BENCH_DIR:-/var/tmp}/baton-peers-XXXXXX")
pids=
finish() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# A port of 127.0.0.1 that is free now.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Waits until something listens: listening PORT NAME
listening() {
    python3 - "$@" <<'PY'
import socket, sys, time
for _ in range(100):
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1).close()
        sys.exit(0)
    except OSError:
        time.sleep(0.05)
sys.exit(f"{sys.argv[2]} does not listen on port {sys.argv[1]}")
PY
}

peers=
# Starts a server in the background and adds it to the table: serve NAME PORT COMMAND ...
serve() {
    name=$1
    port=$2
    shift 2
    if ! command -v "$1" >/dev/null; then
        echo "left out: $name ($1 is not installed)" >&2
        return 0
    fi
    (cd "$dir" && exec "$@") >"$dir/$name.log" 2>&1 &
    pids="$pids $!"
    listening "$port" "$name"
    peers="$peers $name:$port"
}

p=$(free_port)
serve gearmand "$p" gearmand -p "$p" -L 127.0.0.1 -l stderr
p=$(free_port)
serve beanstalkd "$p" beanstalkd -l 127.0.0.1 -p "$p"
p=$(free_port)
mkdir "$dir/kept"
serve beanstalkd-fsync "$p" beanstalkd -l 127.0.0.1 -p "$p" -b "$dir/kept" -f 0
if command -v npm >/dev/null && mkdir -p build/bench-peers && cp "$here/bullmq.mjs" build/bench-peers/ &&
    (cd build/bench-peers && npm install --no-save --ignore-scripts --no-audit --no-fund "bullmq@$BULLMQ" "ioredis@$IOREDIS") >"$dir/npm.log" 2>&1; then
    p=$(free_port)
    serve bullmq "$p" redis-server --bind 127.0.0.1 --port "$p" --dir "$dir" --save '' --appendonly yes --appendfsync always
else
    echo "left out: bullmq (npm: $(tail -n 1 "$dir/npm.log" 2>/dev/null || echo "not installed"))" >&2
fi

# Microseconds a step: measure NAME[:PORT] SCENARIO
measure() {
    case $1 in
    baton-*)
        "$bin/bench_steps" "$2" --durability "${1#baton-}" 2>/dev/null |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["per_step_us"])'
        ;;
    bullmq:*) node build/bench-peers/bullmq.mjs "${1#*:}" "$2" ;;
    *) "$bin/peer_queue" "$(echo "${1%:*}" | sed 's/-fsync//')" "${1#*:}" "$2" ;;
    esac
}

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    for scenario in $scenarios; do
        for peer in baton-process baton-power $peers; do
            if us=$(measure "$peer" "$scenario"); then
                echo "${peer%:*} $scenario $us" | tee -a "$dir/figures" >&2
            else
                echo "${peer%:*} $scenario failed" >&2
            fi
        done
    done
done

python3 - "$dir/figures" <<'PY'
import collections, statistics, sys
figures = collections.defaultdict(list)
for line in open(sys.argv[1], encoding="utf-8"):
    name, scenario, us = line.split()
    figures[name, scenario].append(float(us))
scenarios = sorted({s for _, s in figures})
print("| us a step | " + " | ".join(scenarios) + " |")
print("|---|" + "---|" * len(scenarios))
for name in dict.fromkeys(n for n, _ in list(figures)):
    medians = (f"{statistics.median(figures[name, s]):.0f}" if figures[name, s] else "failed" for s in scenarios)
    print(f"| {name} | " + " | ".join(medians) + " |")
PY

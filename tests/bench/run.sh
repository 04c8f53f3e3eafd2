#!/bin/sh
# sh tests/bench/run.sh S1|...|S16|core|condition|all [--durability process|power] [--n N] [...]
#
# Builds the preset release-tests where needed and runs one scenario, or all of them; one line of JSON each on stdout,
# progress on stderr. `all` without --durability measures S1 to S3 in both. BATON_BENCH_DIR chooses the disk
# (default /var/tmp). tests/bench/README.md says what is measured and how.
set -eu
cd "$(dirname "$0")/../.."

usage() {
    sed -n '2,6s/^# \{0,1\}//p' tests/bench/run.sh >&2
    exit 2
}

build() {
    [ -f build/release-tests/build.ninja ] || cmake --preset release-tests >&2
    ninja -C build/release-tests batond bench_echo_agent bench_ref bench_steps bench_wait bench_growth bench_crowd_agents bench_events bench_start \
        bench_core bench_condition bench_credential baton baton-gateway baton-agent-llm baton-agent-calc \
        baton-agent-files baton-agent-sql >&2
}

program_of() {
    case $1 in
    S1 | S2 | S3 | S5) echo bench_steps ;;
    S4) echo bench_wait ;;
    S13 | S14 | S15 | S16) echo bench_growth ;;
    S6) echo bench_events ;;
    S7 | S8) echo bench_start ;;
    S9) echo planning.py ;;
    S10) echo join.py ;;
    S11) echo bench_credential ;;
    S12) echo dashboard.py ;;
    core) echo bench_core ;;
    condition) echo bench_condition ;;
    *) usage ;;
    esac
}

run() {
    scenario=$1
    shift
    program=$(program_of "$scenario")
    echo "== $scenario $*" >&2
    case $program in
    *.py)
        BATON_BIN=$PWD/build/release-tests/bin python3 -B "tests/bench/$program" "$scenario" "$@"
        return
        ;;
    esac
    "build/release-tests/bin/$program" "$scenario" "$@"
}

[ $# -ge 1 ] || usage
scenario=$1
shift
[ "$scenario" = all ] || program_of "$scenario" >/dev/null
build
if [ "$scenario" != all ]; then
    run "$scenario" "$@"
    exit
fi
failed=0
case " $* " in
*" --durability"*) ;;
*)
    for s in S1 S2 S3; do
        run "$s" --durability power "$@" || failed=1
    done
    ;;
esac
for s in S1 S2 S3 S4 S5 S6 S7 S8 S9 S10 S11; do
    run "$s" "$@" || failed=1
done
run core || failed=1
run condition || failed=1
exit "$failed"

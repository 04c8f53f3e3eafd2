#!/bin/sh
# Installs what the tests need, builds, runs every test. The last lines are ctest's own, then how long each part took, and
# which failed.
# usage: sh tests/run.sh [--fast] [-R REGEX]
#   --fast     only the everyday build (ASan and UBSan), and of its tests none with the label slow, package, bench or chaos
#   -R REGEX   only the tests of the everyday build whose name matches
set -eu
cd "$(dirname "$0")/.."
exec </dev/null

fast=
everyday=
regex=
while [ $# -gt 0 ]; do
    case $1 in
    --fast)
        everyday=yes
        fast=yes
        ;;
    -R)
        regex=${2:?-R needs a regular expression}
        everyday=yes
        shift
        ;;
    *)
        sed -n '4,6s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

sh deploy/install.sh "$([ -n "$everyday" ] && echo test || echo full)"

jobs=$(nproc 2>/dev/null || echo 2)
failed=
export CTEST_OUTPUT_ON_FAILURE=1
# A HOME that cannot be written must do, and the caller's own Baton must stay out of it.
unset BATON_STATE BATON_BIN XDG_STATE_HOME XDG_CONFIG_HOME
export PYTHONDONTWRITEBYTECODE=1

# What was compiled before, by an earlier run or for another part of this one, is not compiled again.
if [ -w "${HOME:-}" ] && command -v ccache >/dev/null && objects=$(ccache --get-config cache_dir) &&
    mkdir -p "$objects" 2>/dev/null && [ -w "$objects" ]; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
    # Beside it lie the Debians of tests/package (5 GB), and what was built in them while no file of that has changed.
    export BATON_CHROOTS="${BATON_CHROOTS:-$(dirname "$objects")/baton-chroots}"
fi

# The sanitizers of this compiler fail now and then where the kernel spreads addresses over more than 28 bits.
run=
if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)" -gt 28 ] && setarch -R true 2>/dev/null; then
    run="setarch -R"
fi

headline() {
    printf '\n== %s\n' "$*"
}

# A part begins; how long the one before it took is noted.
began=$(date +%s)
part="preparation"
part_began=$began
times=
part() {
    now=$(date +%s)
    times="$times$(printf '%6d s  %s' $((now - part_began)) "$part")
"
    part=$*
    part_began=$now
    headline "$part"
}

# Configures and builds a preset: all of it, or what the tests of a selection (ctest arguments) need.
build() {
    preset=$1
    shift
    cmake --preset "$preset" >"build/configure-$preset.log" 2>&1 || {
        cat "build/configure-$preset.log"
        return 1
    }
    targets=
    if [ $# -gt 0 ]; then
        targets=$(ctest --test-dir "build/$preset" -N "$@" | sed -n 's/^ *Test *#[0-9]*: [a-z]*\.//p')
    fi
    # shellcheck disable=SC2086 # a list
    ninja -C "build/$preset" --quiet -j "$jobs" $targets
}

# Tests of a preset, chosen by ctest arguments; a failure is remembered.
extra() {
    preset=$1
    shift
    part "preset $preset: ctest $*"
    if ! build "$preset" "$@" || ! $run ctest --preset "$preset" --no-tests=error -j "$jobs" "$@"; then
        failed="$failed $preset"
    fi
}

# The objects of the release build are those of the preset release-tests; only the benchmark is added.
instructions() {
    rc=0
    cmake --preset release -D BATON_TESTS=ON >build/configure-release.log 2>&1 && ninja -C build/release --quiet -j "$jobs" bench_loop &&
        ctest --test-dir build/release --no-tests=error -R '^bench\.bench_loop$' || rc=$?
    cmake --preset release >build/configure-release.log 2>&1
    return "$rc"
}

# Its own threads, those of nng and of libcurl: streams and webhooks over kill -9, beside the programs of the release build.
gateway_under_tsan() {
    ninja -C build/tsan --quiet -j "$jobs" baton-gateway || return 1
    rm -rf build/tsan/door
    mkdir build/tsan/door
    ln -s "$PWD"/build/release/bin/* build/tsan/door/
    ln -sf "$PWD/build/tsan/bin/baton-gateway" build/tsan/door/
    for test in gateway_events webhooks; do
        BATON_BIN=$PWD/build/tsan/door BATON_CUTS=20 TSAN_OPTIONS=suppressions=$PWD/tests/support/tsan.supp \
            $run python3 "tests/e2e/test_$test.py" || return 1
    done
}

tsan_works() {
    dir=$(mktemp -d)
    echo 'int main(void) { return 0; }' >"$dir/t.c"
    works=1
    clang -fsanitize=thread -o "$dir/t" "$dir/t.c" && $run "$dir/t" && works=0
    rm -rf "$dir"
    return $works
}

mkdir -p build
sh tests/peers/install.sh build/peers || headline "tests against models from npm: SKIPPED, see above"
sh tests/peers/prometheus.sh build/peers || headline "test against Prometheus: SKIPPED, see above"
if [ -z "$everyday" ]; then
    part "preset release: build"
    build release || failed="$failed release"
    sh tests/lint/manual.sh build/release/man build/release/bin/baton || failed="$failed manual"
    part "quickstart on the small log"
    if ! sh deploy/quickstart.sh deploy/examples/dpkg.log; then
        failed="$failed quickstart"
    fi
    part "bounded memory: large tables on the release build"
    BATON_BIN=$PWD/build/release/bin python3 tests/e2e/test_artifacts.py Bundled || failed="$failed memory"
    part "limits by cgroup v2: the release build in a kernel of its own"
    BATON_BIN=$PWD/build/release/bin python3 tests/e2e/test_cgroup_v2.py || failed="$failed cgroup_v2"
    if tsan_works >/dev/null 2>&1; then
        extra tsan -R 'test_(link|sdk)'
        part "preset tsan: the gateway"
        if grep -q '^build baton-gateway:' build/tsan/build.ninja; then
            gateway_under_tsan || failed="$failed tsan-gateway"
        fi
    else
        headline "preset tsan: SKIPPED, ThreadSanitizer does not run on this kernel"
    fi
    part "instructions of a step: the release build"
    instructions || failed="$failed instructions"
    extra fuzz -L fuzz
    part "mutants: each must turn a test red"
    sh tests/mutants/run.sh || failed="$failed mutants"
fi

part "preset dev: build"
build dev
# A part of the everyday tests; what failed is a line of ctest's list each.
list=build/dev/Testing/Temporary/LastTestsFailed.log
status=0
lost=
tests() { # JOBS CTEST ARGUMENTS...
    rc=0
    rm -f "$list"
    $run ctest --test-dir build/dev --no-tests=error -j "$@" || rc=$?
    [ "$rc" -eq 0 ] || status=$rc
    [ ! -f "$list" ] || lost="$lost$(sed 's/^[0-9]*://' "$list" | tr '\n' ' ')"
}

part "preset dev: tests"
set --
[ -z "$regex" ] || set -- -R "$regex"
if [ -n "$fast" ]; then
    # Twice as many as there are processors: most tests of whole daemons wait. e2e.chaos runs alone (RUN_SERIAL).
    tests $((2 * jobs)) -LE '^(slow|package|bench|chaos)$' "$@"
elif [ -n "$everyday" ]; then
    tests 1 "$@"
else
    tests "$jobs" -LE '^(e2e|package|bench)$'
    # Daemons wait more than they compute: on two processors one test of them uses a fifth of one. e2e.chaos runs alone (RUN_SERIAL).
    part "preset dev: tests of whole daemons"
    tests $((jobs * 5 / 2)) -L '^e2e$'
    # Two at a time: each waits for the network, then builds with all processors.
    part "preset dev: packages"
    tests 2 -L '^package$'
    part "preset dev: benchmarks"
    tests 1 -L '^bench$'
fi
# Tests of real processes wait for real time, which a busy machine may not give: one more try for those, and for no other.
twice=
if [ "$status" -eq 8 ] && ! printf '%s' "$lost" | tr ' ' '\n' | grep -qvE '^(e2e|edge|package)\.'; then
    twice=$lost
    part "preset dev: once more, what failed: $twice"
    status=0
    tests 1 -R "^($(printf '%s' "${twice% }" | tr ' ' '|'))\$"
fi
part "times"
printf '%s%6d s  in all\n' "$times" $((now - began))
[ -z "$twice" ] || [ "$status" -ne 0 ] || headline "FAILED at first and passed when run again: $twice"
if [ -n "$failed" ]; then
    headline "FAILED outside the everyday build, see above:$failed"
    [ "$status" -ne 0 ] || status=1
fi
exit "$status"

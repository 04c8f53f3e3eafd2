#!/bin/sh
# Each bug of supervisor/core/mutant.h must turn a test red; without one all of them must be green.
# usage: sh tests/mutants/run.sh [--all] [NUMBER...]
#   --all   goes on after the first red test, and prints the rows of the table in tests/mutants/README.md
set -eu
cd "$(dirname "$0")/../.."
exec </dev/null

build=${BATON_MUTANTS_BUILD:-build/mutants}
jobs=$(nproc 2>/dev/null || echo 2)
all=
if [ "${1:-}" = --all ]; then
    all=yes
    shift
fi
units=$(find tests/unit/core tests/unit/schedule tests/unit/api/test_api_reads.c tests/unit/journal/journal_gather.c \( -name 'test_*.c' -o -name journal_gather.c \) | sed 's#.*/##; s/\.c$//' | sort)

mkdir -p "$(dirname "$build")"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O1 -DBATON_MUTANTS=ON \
    >"$build.log" 2>&1 || {
    cat "$build.log"
    exit 1
}
owner=
grep -q 'BATON_HAS_POSTGRES:INTERNAL=\(ON\|1\)$' "$build/CMakeCache.txt" && owner='postgres_owner postgres_errors postgres_ride postgres_shards'
# shellcheck disable=SC2086 # a list
ninja -C "$build" --quiet -j "$jobs" test_explore test_sim $owner $units

# True when the program is red: with a mutant also when it does not end. Without one a busy machine has more time.
red() { # MUTANT PROGRAM ARGS...
    mutant=$1
    program=$2
    seconds=120
    [ "$mutant" -ne 0 ] || seconds=900
    shift 2
    ! BATON_MUTANT=$mutant timeout "$seconds" "$build/tests/$program" "$@" >"$out" 2>&1
}

# What edge.postgres_owner, _errors, _ride and _shards find: the mutants "pg N" of mutant.h. Skipped, in words, without libpq or PostgreSQL.
# They wait for leases most of the time, so several run beside the others. False when a mutant is not found.
POSTGRES_JOBS=3
postgres() { # FROM NUMBER...: every third one
    bad=0
    turn=$1
    out=$build.postgres.out.$1
    shift
    for number in "$@"; do
        turn=$((turn - 1))
        [ "$turn" -eq 0 ] || continue
        turn=$POSTGRES_JOBS
        by=
        programs=$(sed -n "s/^| $number [a-z_]* | \(postgres_[a-z]*\) .*/\1/p" tests/mutants/README.md) # who found it last
        [ -n "$programs" ] || programs=$owner
        for program in $programs; do
            status=0
            BATON_MUTANT=$number timeout 300 "$build/tests/$program" >"$out" 2>&1 || status=$?
            if [ "$status" -eq 77 ]; then
                echo "postgres: $(sed -n '/SKIPPED/p' "$out")"
                return 0
            fi
            if [ "$status" -ne 0 ]; then
                by="$program$(sed -n 's/^\[  FAILED  \] \([a-z_]*\)$/, \1/p' "$out" | sort -u | head -n 1)"
                break
            fi
        done
        if [ "$number" -eq 0 ] && [ -n "$by" ]; then
            echo "red without a mutant: $by"
            bad=1
        elif [ "$number" -gt 0 ] && [ -z "$by" ]; then
            echo "$number: GREEN, no test noticed"
            bad=1
        elif [ "$number" -gt 0 ]; then
            echo "$number: $by"
        fi
    done
    return "$bad"
}

rule_of() { # of the exploration that is in $out
    sed -n 's/^broken[a-z ]*: //p; s/.*assertion failed: /assertion: /p' "$out" | head -n 1
}

# What is red with this mutant, in `found`; with --all everything, as a row of the table, else the first, beginning with who found it last.
hunt() { # MUTANT
    found=
    if [ -z "$all" ]; then
        last=$(sed -n "s/^| $1 [a-z0-9_]* | \([a-z_]\{1,\}\).*/\1/p" tests/mutants/README.md)
        if [ -n "$last" ] && red "$1" "$last"; then
            found=$last
            return 0
        fi
        grep -q "^| $1 [a-z0-9_]* |  | [^ |]" tests/mutants/README.md && red "$1" test_explore --short && found=test_explore && return 0
    fi
    for unit in $units; do
        if red "$1" "$unit"; then
            found="${found:+$found, }$unit"
            [ -n "$all" ] || return 0
        fi
    done
    row="$found | "
    if red "$1" test_explore --short; then
        found="${found:+$found; }test_explore"
        row="$row$(rule_of)"
        [ -n "$all" ] || return 0
    fi
    row="$row | "
    if red "$1" test_sim --seeds 1-400 --no-shrink; then
        found="${found:+$found; }test_sim"
        row="${row}red"
    fi
}

# Every so manieth mutant, from one on. False when one is not found.
worker() { # FROM NUMBER...
    out=$build.out.$1
    turn=$1
    bad=0
    shift
    for number in "$@"; do
        turn=$((turn - 1))
        [ "$turn" -eq 0 ] || continue
        turn=$jobs
        name=$(awk -v at="$number" '/^    MUTANT_NONE/ && at == 0 { print "none" }
            /^    MUTANT_/ && $0 ~ "/\\* " at ":" { sub(/^ *MUTANT_/, ""); sub(/[, ].*/, ""); print tolower($0) }' supervisor/core/mutant.h)
        hunt "$number"
        if [ -n "$all" ]; then
            echo "| $number $name | $row |"
        elif [ "$number" -gt 0 ]; then
            echo "$number $name: ${found:-GREEN, no test noticed}"
        fi
        if [ "$number" -eq 0 ] && [ -n "$found" ]; then
            echo "red without a mutant: $found"
            bad=1
        elif [ "$number" -gt 0 ] && [ -z "$found" ]; then
            bad=1
        fi
    done
    return "$bad"
}

bad=0
numbers=$*
[ -n "$numbers" ] || numbers=$(awk '/^    MUTANT_NONE/ { print 0 } /^    MUTANT_.*\/\* (pg )?[0-9]+:/ { sub(/.*\/\* (pg )?/, ""); sub(/:.*/, ""); print }' supervisor/core/mutant.h)
core=
journal=
for number in $numbers; do
    grep -q "/\* pg $number:" supervisor/core/mutant.h || core="$core $number"
    ! grep -q "/\* pg $number:" supervisor/core/mutant.h || journal="$journal $number"
done
case " $numbers " in *" 0 "*) journal="0$journal" ;; esac
rm -f "$build".worker.* "$build".postgres.worker.*
workers=
if [ -n "$journal" ] && [ -z "$owner" ]; then
    echo "postgres: skipped, there is no libpq"
elif [ -n "$journal" ]; then
    for job in $(seq "$POSTGRES_JOBS"); do
        # shellcheck disable=SC2086 # a list
        postgres "$job" $journal >"$build.postgres.worker.$job" 2>&1 &
        workers="$workers $!"
    done
fi
for job in $(seq "$jobs"); do
    # shellcheck disable=SC2086 # a list
    worker "$job" $core >"$build.worker.$job" 2>&1 &
    workers="$workers $!"
done
for worker in $workers; do
    wait "$worker" || bad=1
done
cat "$build".worker.* | sort -n -k "$([ -n "$all" ] && echo 2 || echo 1)"
cat "$build".postgres.worker.* 2>/dev/null | sort -n || true
exit $bad

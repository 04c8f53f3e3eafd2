#!/bin/sh
# Instructions of the daemon's own code for a step (bench_loop under callgrind), against the figure in instructions.txt: ±3 %.
# usage: sh tests/bench/instructions.sh PROGRAM [--write]
#   PROGRAM   bench_loop of the preset release-tests, or of release with BATON_TESTS
#   --write   puts what was counted into the file: in the commit that changes it, which says why
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")"
bar=instructions.txt
few=96
many=288
steps_a_plan=3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Only what lies within the daemon's rooms counts, not the test around them. The journal is closed with its last connection.
count() {
    mkdir "$work/$1"
    valgrind --tool=callgrind --callgrind-out-file="$work/$1.out" --toggle-collect=engine_begin \
        --toggle-collect=engine_on_link --toggle-collect=api_take_turns --toggle-collect=engine_end "$program" "$work/$1" "$1" >"$work/$1.log" 2>&1 || {
        cat "$work/$1.log" >&2
        exit 1
    }
    sed -n 's/^\(summary\|totals\): //p' "$work/$1.out" | tail -n 1
}

first=$(count $few)
second=$(count $many)
per_step=$(((second - first) / ((many - few) * steps_a_plan)))
if [ "$per_step" -le 0 ]; then
    echo "instructions: counted $first and $second: are the functions of the engine inlined?" >&2
    exit 1
fi
if [ "${2:-}" = --write ]; then
    echo "$per_step" >"$bar"
fi
want=$(cat "$bar")
change=$(((per_step - want) * 1000 / want))
echo "instructions a step: $per_step (instructions.txt: $want, $change per mille)"
if [ "$change" -gt 30 ] || [ "$change" -lt -30 ]; then
    echo "more than 3 % from instructions.txt: find the cause, or write the new figure with --write and say why in the commit" >&2
    exit 1
fi

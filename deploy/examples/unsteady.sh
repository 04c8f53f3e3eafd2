#!/bin/sh
# A program that fails a number of times before it succeeds, and then says how often it was run.
# usage: unsteady.sh FILE FAILURES      FILE counts the runs
set -eu
echo run >>"$1"
runs=$(wc -l <"$1")
if [ "$runs" -le "$2" ]; then
    echo "not yet: run $runs" >&2
    exit 75 # sysexits.h: a temporary failure, worth another attempt
fi
echo "$runs"

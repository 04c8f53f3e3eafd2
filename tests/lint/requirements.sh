#!/bin/sh
# A table that names tests that are not there proves nothing: each name in backticks that reads like one must be that of a
# function, a method or a program of the tests. The tables: the requirements, the faults of a fleet, and the facts about nng and SQLite.
# usage: requirements.sh ROOT
set -eu
cd "$1"
tables="tests/requirements.md tests/FAULTS.md protocol/link/NNG.md supervisor/journal/SQLITE.md"
for table in $tables; do
    [ -s "$table" ] # or there is nothing to check
done
bad=0
known=$(mktemp)
trap 'rm -f "$known"' EXIT
grep -rhoE '(static void |def |bt_test\(|add_executable\()[a-z0-9_]+' tests --include='*.c' --include='*.py' --include=CMakeLists.txt |
    sed 's/.*[ (]//' | sort -u >"$known"
for name in $(grep -h '^|' $tables | grep -o '`[a-z0-9_]*`' | tr -d '`' | grep _ | sort -u); do
    case $name in
    plan_completed | fallback_used | synthesis_gate | link_free | recv_max | _exit) continue ;; # events, words of plans, functions
    esac
    if [ ! -e "tests/e2e/$name.py" ] && ! grep -qx "$name" "$known"; then
        echo "$(grep -l "\`$name\`" $tables): there is no test $name"
        bad=1
    fi
done
exit $bad

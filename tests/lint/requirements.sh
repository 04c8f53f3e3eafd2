#!/bin/sh
# A table that names tests that are not there proves nothing: each name in backticks that reads like one must be that of a
# function, a method or a program of the tests.
# usage: requirements.sh ROOT
set -eu
cd "$1"
[ -s tests/requirements.md ] # or there is nothing to check
bad=0
for name in $(grep '^|' tests/requirements.md | grep -o '`[a-z0-9_]*`' | tr -d '`' | grep _ | sort -u); do
    case $name in
    plan_completed | fallback_used | synthesis_gate) continue ;; # events and words of plans
    esac
    if [ ! -e "tests/e2e/$name.py" ] && ! grep -rqE "(static void |def |bt_test\()$name\b" tests --include='*.c' --include='*.py' --include=CMakeLists.txt; then
        echo "tests/requirements.md: there is no test $name"
        bad=1
    fi
done
exit $bad

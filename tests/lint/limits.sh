#!/bin/sh
# Each cap of protocol/limits.h is used, and a test names it and its next: "LIMIT_X + 1" in tests/unit or tests/edge.
# usage: limits.sh ROOT
set -eu
cd "$1"
# Caps without a next one, with the reason.
other() {
    case $1 in
    LIMIT_EVENT_BYTES) echo "what is longer is cut to fit: record_texts, record_codec" ;;
    LIMIT_PLANS_OPEN | LIMIT_AGENTS | LIMIT_INSTANCES) echo "of the configuration: test_config_refuse" ;;
    esac
}
bad=0
caps=$(sed -n 's/^ *\(LIMIT_[A-Z_]*\) *=.*/\1/p' protocol/limits.h)
[ -n "$caps" ]
for cap in $caps; do
    if ! grep -rqw --include='*.[ch]' --include='*.def' "$cap" protocol/wire protocol/link protocol/client supervisor agents registry; then
        echo "protocol/limits.h: nothing uses $cap"
        bad=1
    fi
    reason=$(other "$cap")
    if [ -n "$reason" ]; then
        if ! grep -rqw --include='*.c' "$cap" tests/unit; then
            echo "protocol/limits.h: no unit test names $cap ($reason)"
            bad=1
        fi
    elif ! grep -rqE --include='*.c' "$cap \+ 1([^0-9]|\$)" tests/unit tests/edge; then
        echo "protocol/limits.h: no test has $cap + 1"
        bad=1
    fi
done
exit $bad

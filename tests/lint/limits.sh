#!/bin/sh
# For each cap of protocol/limits.h a test names it and its next: "LIMIT_X + 1" in tests/unit or tests/edge.
# usage: limits.sh ROOT
set -eu
cd "$1"
# Caps without a next one, with the reason.
other() {
    case $1 in
    LIMIT_EVENT_BYTES) echo "what is longer is cut to fit: record_texts, record_codec" ;;
    LIMIT_TOKEN_BYTES | LIMIT_RESULT_HEAD_BYTES) echo "nothing uses it" ;;
    LIMIT_ARTIFACT_PART) echo "no test: of the wire alone, in test_artifacts.py: test_a_part_and_a_file_have_caps" ;;
    LIMIT_KEYS) echo "no test: in test_keys.py, with 1,024 of them in use and one more" ;;
    LIMIT_PLANS_OPEN | LIMIT_AGENTS | LIMIT_INSTANCES) echo "of the configuration: test_config_refuse" ;;
    esac
}
bad=0
caps=$(sed -n 's/^ *\(LIMIT_[A-Z_]*\) *=.*/\1/p' protocol/limits.h)
[ -n "$caps" ]
for cap in $caps; do
    reason=$(other "$cap")
    if [ "$reason" = "nothing uses it" ]; then
        if grep -rqw --include='*.[ch]' --exclude=limits.h "$cap" protocol supervisor agents registry; then
            echo "protocol/limits.h: $cap is used now: it needs a test with $cap + 1"
            bad=1
        fi
    elif [ "${reason#no test}" != "$reason" ]; then
        :
    elif [ -n "$reason" ]; then
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

#!/bin/sh
# The reviewer's tools: review.sh diff | style | test DIR | merge | judge
set -eu
cd "$(dirname "$0")"

case $1 in
diff)
    diff -u --label current/slug.sh --label proposed/slug.sh current/slug.sh proposed/slug.sh || [ $? -eq 1 ] # 1 = they differ, which is what is reviewed
    ;;
style) # lines over 100 columns, tabs, spaces at the end
    awk 'length($0) > 100 { print FILENAME ":" FNR ": " length($0) " columns"; bad++ }
         /\t/ { print FILENAME ":" FNR ": a tab"; bad++ }
         / $/ { print FILENAME ":" FNR ": a space at the end"; bad++ }
         END { print bad + 0 " remarks" }' proposed/slug.sh
    ;;
test)
    passed=0 failed=0
    while IFS='|' read -r want title; do
        got=$(sh "$2/slug.sh" "$title")
        if [ "$got" = "$want" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "$2: '$title' gives '$got', not '$want'" >&2
        fi
    done <tests.txt
    echo "{\"version\": \"$2\", \"passed\": $passed, \"failed\": $failed}"
    ;;
merge)
    cp proposed/slug.sh current/slug.sh.new
    mv current/slug.sh.new current/slug.sh
    echo "merged"
    ;;
judge) # a gate: standard input is the question with all results so far, as JSON
    question=$(cat)
    case $question in
    *'"version":"proposed"'*'"failed":0'*) ;;
    *)
        echo '{"passed": false, "reason": "the proposed version fails tests; it would be right when all of tests.txt pass"}'
        exit 0
        ;;
    esac
    case $question in
    *'"text":"0 remarks"'*) echo '{"passed": true}' ;;
    *) echo '{"passed": false, "reason": "there are remarks about its style; mend them first"}' ;;
    esac
    ;;
esac

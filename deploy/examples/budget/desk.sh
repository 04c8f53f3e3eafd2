#!/bin/sh
# A service that is paid by the word: desk.sh LETTER prints the first sentence, the number of words, and what it cost, in
# millionths of the currency (400 for a word). With `output: reply` the program reports its own cost.
set -eu
words=$(wc -w <"$1")
first=$(tr '\n' ' ' <"$1" | sed -e 's/^\(To [a-z ]*\|Dear [A-Za-z ]*\)[.,] *//' -e 's/\. .*$/./' -e 's/[\\"]/\\&/g')
echo "{\"outcome\": \"completed\", \"usage\": {\"costMicros\": $((words * 400))},
 \"result\": {\"text\": \"$first\", \"data\": {\"letter\": \"$1\", \"words\": $words}}}"

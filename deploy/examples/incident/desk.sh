#!/bin/sh
# The ticket desk: desk.sh SERVICE ERRORS TOTAL opens a ticket in tickets/ and prints it as JSON.
# BATON_KEY is the same for every attempt of a step: a step that is tried again finds its ticket and opens no second one.
set -eu
mkdir -p tickets
for old in tickets/*.md; do
    if [ -e "$old" ] && grep -qxF "key: $BATON_KEY" "$old"; then
        echo "{\"ticket\": \"$(basename "$old" .md)\", \"severity\": \"$(sed -n 's/^severity: //p' "$old")\"}"
        exit 0
    fi
done

severity=low
[ "$2" -lt 5 ] || severity=medium
[ "$2" -lt 10 ] || severity=high
n=1
while ! (set -C && : >"tickets/T-$(printf %03d "$n").md") 2>/dev/null; do
    n=$((n + 1))
done
id=T-$(printf %03d "$n")
cat >"tickets/$id.md" <<TICKET
# $1: $2 of $3 errors
key: $BATON_KEY
severity: $severity
status: open
TICKET
echo "{\"ticket\": \"$id\", \"severity\": \"$severity\"}"

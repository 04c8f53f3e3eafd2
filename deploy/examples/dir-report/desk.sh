#!/bin/sh
# The ticket desk: desk.sh LOG ERRORS writes a ticket to tickets.csv and prints it as JSON.
# BATON_KEY is the same for every attempt of a step: a step that is tried again finds its ticket and opens no second one.
set -eu
[ -e tickets.csv ] || echo "ticket,log,errors,key" >tickets.csv
if ! grep -qF ",$BATON_KEY" tickets.csv; then
    echo "T-$(printf %03d "$(wc -l <tickets.csv)"),$1,$2,$BATON_KEY" >>tickets.csv
fi
echo "{\"ticket\": \"$(grep -F ",$BATON_KEY" tickets.csv | cut -d, -f1)\"}"

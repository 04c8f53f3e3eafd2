#!/bin/sh
# A service whose jobs take four looks. service.sh start | look JOB
set -eu
if [ "$1" = start ]; then
    : >job-1
    echo '{"job": "job-1"}'
else
    echo look >>"$2"
    looks=$(wc -l <"$2")
    [ "$looks" -ge 4 ] && state=done || state=running
    echo "{\"state\": \"$state\", \"percent\": $((looks * 25))}"
fi

#!/bin/sh
# Adds up the counts in the results of all logs, which come as JSON.
grep -o '"count":[0-9]*' | awk -F: '{ n += $2 } END { printf "{\"errors\": %d, \"logs\": %d}\n", n, NR }'

#!/bin/sh
# What cron runs: nightly.sh [DAY] reports on the sales of a day (yesterday). For the crontab, with the directory of baton
# on the PATH:
#
#   5 1 * * *  /path/to/this/directory/nightly.sh
#
# The key makes it safe to run twice: the same key is the same plan, and a plan that has ended is only read.
set -eu
cd "$(dirname "$0")"
day=${1:-$(date -d yesterday +%F)}
baton up
baton run --plan plan.yaml --input day="$day" --key "nightly-$day" --result report --quiet

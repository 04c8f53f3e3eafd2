#!/bin/sh
# Puts the schedule: a report on the sales of each day, five minutes before it ends. Run again it changes nothing.
#
#   baton schedule next nightly                                  # when it comes
#   baton schedule backfill nightly 2026-11-20 2026-11-21        # the reports of days that have passed, each made once
set -eu
cd "$(dirname "$0")"
baton up
baton schedule put nightly --cron "55 23 * * *" --tz "${TZ:-UTC}" --plan plan.yaml --input day="{{schedule.date}}" \
    --overlap queue --catch-up 12h --max-failures 3

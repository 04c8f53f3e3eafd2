/* Verbs: plans that begin by the clock. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option schedule_options[] = {
    {"cron", "LINE", "five fields or @daily: '0 3 * * *' (put)"},
    {"every", "TIME", "the multiples of it since 1970: 6h, 15m (put)"},
    {"at", "MOMENT", "once: 2026-11-30T03:00, in the time zone of --tz (put)"},
    {"tz", "ZONE", "a time zone of tzdata: Europe/Berlin (put; UTC)"},
    {"plan", "FILE", "the plan, or a recipe (put)"},
    {"recipe", "RECIPE", "a recipe: a file, or a name of `baton recipes` (put)"},
    {"goal", "TEXT", "a goal in words, planned at each time (put)"},
    {"input", "NAME=VALUE...", "the value of {{inputs.NAME}}; may be repeated (put)"},
    {"inputs", "JSON", "all inputs as one object (put)"},
    {"planner", "PLANNER", "who plans the goal (put)"},
    {"overlap", "skip|queue|cancel|allow", "while a plan of it is open (put; skip)"},
    {"catch-up", "TIME", "how late a time may still begin its plan (put; 1h)"},
    {"jitter", "TIME", "begin up to so much later, the same for the same time (put)"},
    {"end", "MOMENT", "no time after it (put)"},
    {"max-failures", "N", "pause it after so many failed plans in a row (put)"},
    {"key", "KEY", "the same key is the same request (put, trigger)"},
    {"reason", "TEXT", "why it is paused (pause)"},
    {"document", NULL, "with what was put (get)"},
    {NULL, NULL, NULL},
};

const struct cli_verb schedule_verbs[] = {
    {.name = "schedule",
     .args = "list | put|get|pause|resume|trigger|delete SCHEDULE | next SCHEDULE [N] | backfill "
             "SCHEDULE FROM TO",
     .brief = "plans that begin by the clock: make, list and order schedules",
     .text = "Each time of a schedule makes one plan, once, also over a crash. Put replaces the "
             "schedule of that name. In texts of the inputs of a recipe {{schedule.date}} is the "
             "day of the time, 2026-11-30, and {{schedule.time}} the time.\n"
             "A time that the clock skips, because it is put forward, comes at that change; one "
             "that it shows twice comes once. A line of every hour (hours *) goes by real time.\n"
             "When both the day of the month and the day of the week are given, one of them is "
             "enough.\n"
             "A daemon that was away makes up for times of the last --catch-up: with the overlap "
             "skip or cancel for the newest, with queue or allow for each. Trigger makes a plan "
             "now. Backfill makes those of times that have passed, and never the same time twice.",
     .options = schedule_options,
     .examples = {{"baton schedule put nightly --cron '0 3 * * *' --tz Europe/Berlin --recipe "
                   "log-report --input dir=/var/log --catch-up 6h",
                   "a report each night at three"},
                  {"baton schedule next nightly 10", "its next ten times"},
                  {"baton schedule backfill nightly 2026-11-01 2026-11-08",
                   "the nights of a week"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 32, /* an unquoted * is all the files of a directory */
     .run = verb_schedule},
    {.name = NULL},
};

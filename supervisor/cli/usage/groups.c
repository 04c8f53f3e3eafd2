/* The groups of verbs, the letters of short options, the exit codes. */
#include <stddef.h>
#include <string.h>

#include "supervisor/cli/usage/usage.h"

const struct usage_group usage_groups[] = {
    {"Run goals and plans", run_verbs},
    {"Watch plans, get results", watch_verbs},
    {"Run plans by the clock", schedule_verbs},
    {"Decide what waits for a person", decide_verbs},
    {"Change plans, run them again", change_verbs},
    {"The daemon and its agents", daemon_verbs},
    {"What is kept, and copies of it", storage_verbs},
    {"Other hosts", remote_verbs},
    {"Help", help_verbs},
    {NULL, NULL},
};

const struct usage_letter usage_letters[] = {
    {'f', "follow", "go on with what comes"},
    {'f', "plan", "the file of a plan"},
    {'h', "help", "help of Baton or of a verb"},
    {'n', "limit", "at most this number"},
    {'o', "output", "form of the data"},
    {'q', "quiet", "no progress on stderr"},
    {'v', "verbose", "say more"},
    {'w', "watch", "again and again"},
    {'w', "wait", "until it has ended, or is up"},
    {0, NULL, NULL},
};

const struct usage_exit usage_exits[] = {
    {CLI_OK, "done, or the plan succeeded"},
    {CLI_INTERNAL, "internal error or I/O"},
    {CLI_USAGE, "usage or invalid input"},
    {CLI_FAILED, "the plan failed"},
    {CLI_NEEDS_HUMAN, "a person must decide"},
    {CLI_CANCELLED, "cancelled"},
    {CLI_UNREACHABLE, "no daemon, or it rejects the client"},
    {CLI_NOT_FOUND, "no such thing"},
    {CLI_PARTIAL, "the plan is partial: not all of it was done"},
    {CLI_TIMEOUT, "not in time"},
    {CLI_INTERRUPTED, "interrupted"},
    {CLI_OK, NULL},
};

char usage_letter_of(const char *option)
{
    for (const struct usage_letter *l = usage_letters; l->option != NULL; l++) {
        if (strcmp(l->option, option) == 0) {
            return l->letter;
        }
    }
    return 0;
}

const struct cli_verb *usage_next(const struct cli_verb *v)
{
    bool found = v == NULL;

    for (const struct usage_group *g = usage_groups; g->title != NULL; g++) {
        for (const struct cli_verb *row = g->verbs; row->name != NULL; row++) {
            if (found) {
                return row;
            }
            found = row == v;
        }
    }
    return NULL;
}

const struct cli_verb *usage_find(const char *name)
{
    const struct cli_verb *v = NULL;

    while ((v = usage_next(v)) != NULL && strcmp(v->name, name) != 0) {
    }
    return v;
}

const char *usage_exit_meaning(enum cli_exit code)
{
    const struct usage_exit *e = usage_exits;

    while (e->meaning != NULL && e->code != code) {
        e++;
    }
    return e->meaning != NULL ? e->meaning : "internal error";
}

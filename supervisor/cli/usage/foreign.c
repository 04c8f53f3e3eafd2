/* Verbs and options of docker, kubectl, systemctl and Airflow, and what does the same here. */
#include <stddef.h>
#include <string.h>

#include "supervisor/cli/usage/usage.h"

const struct usage_foreign usage_foreign[] = {
    {"apply", "to run a plan: baton run -f FILE"},
    {"attach", "to follow a plan: baton events -f PLAN_ID"},
    {"backfill", "runs of a schedule in the past: baton schedule backfill"},
    {"check", "to check a plan: baton plan check FILE; its worst case: baton lint FILE"},
    {"create", "to run a plan: baton run -f FILE"},
    {"daemon", "the daemon: baton up; in the foreground: baton up --foreground"},
    {"dags", "plans: baton status; plans with inputs: baton recipes; by the clock: baton schedule"},
    {"describe", "plans: baton status PLAN_ID; agents: baton agents AGENT_ID"},
    {"exec", "to give agents work: baton run GOAL, or baton run -f FILE"},
    {"get", "plans: baton status [PLAN_ID]; agents: baton agents [AGENT_ID]"},
    {"inspect", "plans: baton status PLAN_ID --json; agents: baton agents AGENT_ID --json"},
    {"kill", "to end a plan: baton cancel PLAN_ID; the daemon: baton down"},
    {"list", "plans: baton status; agents: baton agents"},
    {"ls", "plans: baton status; agents: baton agents"},
    {"man", "the same page: man baton-VERB; its text: baton help VERB"},
    {"plans", "plans: baton status; to make one of a goal: baton plan GOAL"},
    {"ps", "plans: baton status; agents: baton agents"},
    {"remove", "to end a plan: baton cancel PLAN_ID; to delete an ended one: baton delete PLAN_ID"},
    {"rerun", "what failed: baton retry PLAN_ID; from a step on: baton fork PLAN_ID --from STEP"},
    {"restart", "plans: baton retry PLAN_ID; the daemon: baton down, then baton up"},
    {"rm", "to end a plan: baton cancel PLAN_ID; to delete an ended one: baton delete PLAN_ID"},
    {"scheduler", "plans by the clock: baton schedule; the daemon begins them: baton up"},
    {"serve", "the daemon: baton up; in the foreground: baton up --foreground"},
    {"server", "the daemon: baton up; in the foreground: baton up --foreground"},
    {"show", "plans: baton status PLAN_ID; results: baton result PLAN_ID"},
    {"start", "the daemon: baton up; plans: baton run; a paused plan: baton resume PLAN_ID"},
    {"stop", "to end a plan: baton cancel PLAN_ID; to hold it: baton pause PLAN_ID; the daemon: "
             "baton down"},
    {"submit", "to run a plan: baton run -f FILE; without waiting: baton run --detach -f FILE"},
    {"tail", "to follow events: baton events -f [PLAN_ID]; logs: baton logs -f PLAN_ID"},
    {"tasks", "the steps of a plan: baton status PLAN_ID; what agents can do: baton agents"},
    {"trigger",
     "to run a plan: baton run -f FILE; a schedule, now: baton schedule trigger SCHEDULE"},
    {"validate", "to check a plan: baton plan check FILE; its worst case: baton lint FILE"},
    {"wait", "to wait for a plan: baton status -w PLAN_ID"},
    {"watch", "to watch plans: baton status -w [PLAN_ID]; events: baton events -f [PLAN_ID]"},
    {NULL, NULL},
};

const char *usage_foreign_hint(const char *word)
{
    const struct usage_foreign *f = usage_foreign;

    while (f->word != NULL && strcmp(f->word, word) != 0) {
        f++;
    }
    return f->hint;
}

/* verb NULL: of any, where the option is unknown. */
static const struct {
    const char *verb, *word, *hint;
} foreign_options[] = {
    {"run", "-d", "to go on without waiting: --detach"},
    {"run", "-i", "an input of the plan: --input NAME=VALUE"},
    {"run", "file", "the plan's file: --plan FILE, or -f FILE"},
    {"run", "filename", "the plan's file: --plan FILE, or -f FILE"},
    {"status", "-f", "to watch: -w, or --watch"},
    {"status", "follow", "to watch: -w, or --watch"},
    {"status", "-a", "all states are listed; more plans: -n N"},
    {"status", "all", "all states are listed; more plans: -n N"},
    {"logs", "-n", "the last lines: --tail N"},
    {"logs", "lines", "the last lines: --tail N"},
    {NULL, "format", "the form of the output: -o json|jsonl|table|yaml"},
};

const char *usage_foreign_option(const char *verb, const char *word)
{
    for (size_t i = 0; i < sizeof foreign_options / sizeof foreign_options[0]; i++) {
        const char *of = foreign_options[i].verb;
        if ((of == NULL || (verb != NULL && strcmp(of, verb) == 0)) &&
            strcmp(foreign_options[i].word, word) == 0) {
            return foreign_options[i].hint;
        }
    }
    return NULL;
}

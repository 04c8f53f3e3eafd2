/* Verbs of docker, kubectl and systemctl, and what does the same here. */
#include <stddef.h>
#include <string.h>

#include "supervisor/cli/usage/usage.h"

const struct usage_foreign usage_foreign[] = {
    {"apply", "to run a plan: baton run -f FILE"},
    {"attach", "to follow a plan: baton events -f PLAN_ID"},
    {"check", "to check a plan: baton plan check FILE; its worst case: baton lint FILE"},
    {"create", "to run a plan: baton run -f FILE"},
    {"describe", "plans: baton status PLAN_ID; agents: baton agents AGENT_ID"},
    {"exec", "to give agents work: baton run GOAL, or baton run -f FILE"},
    {"get", "plans: baton status [PLAN_ID]; agents: baton agents [AGENT_ID]"},
    {"inspect", "plans: baton status PLAN_ID --json; agents: baton agents AGENT_ID --json"},
    {"kill", "to end a plan: baton cancel PLAN_ID; the daemon: baton down"},
    {"list", "plans: baton status; agents: baton agents"},
    {"ls", "plans: baton status; agents: baton agents"},
    {"ps", "plans: baton status; agents: baton agents"},
    {"remove", "to end a plan: baton cancel PLAN_ID; to delete an ended one: baton delete PLAN_ID"},
    {"restart", "plans: baton retry PLAN_ID; the daemon: baton down, then baton up"},
    {"rm", "to end a plan: baton cancel PLAN_ID; to delete an ended one: baton delete PLAN_ID"},
    {"show", "plans: baton status PLAN_ID; results: baton result PLAN_ID"},
    {"start", "the daemon: baton up; plans: baton run; a paused plan: baton resume PLAN_ID"},
    {"stop", "to end a plan: baton cancel PLAN_ID; to hold it: baton pause PLAN_ID; the daemon: "
             "baton down"},
    {"submit", "to run a plan: baton run -f FILE; without waiting: baton run --detach -f FILE"},
    {"tail", "to follow events: baton events -f [PLAN_ID]; logs: baton logs -f PLAN_ID"},
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

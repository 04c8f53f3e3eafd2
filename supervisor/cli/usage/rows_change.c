/* Verbs: changes of plans. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option pause_options[] = {
    {"reason", "TEXT", "stored in the journal"},
    {NULL, NULL, NULL},
};

static const struct cli_option signal_options[] = {
    {"data", "JSON", "the data: the result of the step that takes the signal"},
    {"text", "TEXT", "the data as a text"},
    {"key", "KEY", "idempotency key: the same key is the same signal"},
    {NULL, NULL, NULL},
};

static const struct cli_option skip_options[] = {
    {"to", "STEP", "skip all steps before this one that have not begun"},
    {"reason", "TEXT", "stored in the plan's history"},
    {"expect-revision", "N", "only if the plan has not been changed since"},
    {NULL, NULL, NULL},
};

static const struct cli_option modify_options[] = {
    {"insert", "FILE", "new steps (YAML or JSON: a step, a list, a plan; - = stdin)"},
    {"after", "STEP", "where --insert puts them"},
    {"before", "STEP", "where --insert puts them"},
    {"replace", "STEP", "replace this step by the steps of FILE"},
    {"cancel-step", "STEP", "cancel only this step"},
    {"note", "TEXT", "store a note in the plan's history, change no step"},
    {"reasoning", "TEXT", "the reason, stored in the plan's history"},
    {"expect-revision", "N", "only if the plan has not been changed since"},
    {NULL, NULL, NULL},
};

static const struct cli_option retry_options[] = {
    {"from", "STEP", "also run this step and all that depend on it again"},
    {"allow-partial", NULL, "exit with 0, not 8, when not all of the plan was done"},
    {"all", NULL, "with --wait: print the results of all steps"},
    {"wait", NULL, "follow the plan to its end, as run does"},
    {"session", "SESSION", "session that the new plan belongs to"},
    {"key", "KEY", "idempotency key: the same key returns the same plan"},
    {NULL, NULL, NULL},
};

static const struct cli_option fork_options[] = {
    {"from", "STEP", "run this step and all that depend on it again"},
    {"policy", "FILE|JSON", "policy fields of the new plan"},
    {"allow-partial", NULL, "exit with 0, not 8, when not all of the plan was done"},
    {"all", NULL, "with --wait: print the results of all steps"},
    {"wait", NULL, "follow the plan to its end, as run does"},
    {"session", "SESSION", "session that the new plan belongs to"},
    {"key", "KEY", "idempotency key: the same key returns the same plan"},
    {NULL, NULL, NULL},
};

const struct cli_verb change_verbs[] = {
    {.name = "cancel",
     .args = "PLAN_ID...",
     .brief = "cancel plans",
     .options = pause_options,
     .examples = {{"baton cancel last", "cancel the newest plan"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = -1,
     .run = verb_cancel},
    {.name = "pause",
     .args = "PLAN_ID...",
     .brief = "start no further steps; running ones continue",
     .options = pause_options,
     .examples = {{"baton pause last --reason 'until the backup is done'",
                   "pause the newest plan"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = -1,
     .run = verb_pause},
    {.name = "resume",
     .args = "PLAN_ID...",
     .brief = "continue paused plans",
     .options = pause_options,
     .examples = {{"baton resume last", "continue the newest plan"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = -1,
     .run = verb_resume},
    {.name = "signal",
     .args = "PLAN_ID SIGNAL",
     .brief = "send a signal to a plan that waits for it",
     .text = "A step with wait: {signal: NAME} takes it, and has the data as its result. One that "
             "comes early is kept.",
     .options = signal_options,
     .examples = {{"baton signal last paid --data '{\"amount\": 12}'", "with data"},
                  {"baton signal last approve --text yes --key a-17",
                   "may be sent again: the key makes it one signal"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 2,
     .args_max = 3,
     .run = verb_signal},
    {.name = "skip",
     .args = "PLAN_ID STEP... | PLAN_ID --to STEP",
     .brief = "skip steps that have not begun",
     .text = "A STEP is its id or its number, from 1 on. Steps that depend on a skipped one run.",
     .options = skip_options,
     .examples = {{"baton skip last 2 notify", "skip two steps"},
                  {"baton skip last --to report", "skip all before this one"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = -1,
     .run = verb_skip},
    {.name = "modify",
     .args = "PLAN_ID [FILE]",
     .brief = "change the steps of a plan while it runs",
     .text = "One of:\n  baton modify PLAN_ID --insert FILE --after|--before STEP --reasoning "
             "TEXT\n  baton modify PLAN_ID --replace STEP FILE --reasoning TEXT\n  baton modify "
             "PLAN_ID --cancel-step STEP --reasoning TEXT\n  baton modify PLAN_ID --note TEXT",
     .options = modify_options,
     .examples = {{"baton modify last --insert steps.yaml --after load --reasoning 'also count'",
                   "add steps after load"},
                  {"baton modify last --note 'seen, goes on'", "only a note"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 2,
     .run = verb_modify},
    {.name = "retry",
     .args = "PLAN_ID",
     .brief = "run what failed again, in a new plan",
     .text =
         "Every completed result is reused; the old plan stays as it is. Prints the new plan's id.",
     .options = retry_options,
     .examples = {{"baton retry last -w", "run what failed again and wait"}},
     .exits = {CLI_FAILED, CLI_NEEDS_HUMAN, CLI_CANCELLED, CLI_UNREACHABLE, CLI_NOT_FOUND,
               CLI_PARTIAL, CLI_TIMEOUT, CLI_INTERRUPTED},
     .args_min = 1,
     .args_max = 1,
     .run = verb_retry},
    {.name = "fork",
     .args = "PLAN_ID --from STEP",
     .brief = "run a plan again from a step on, as a new plan",
     .text =
         "The results of all steps that do not depend on it are reused. Prints the new plan's id.",
     .options = fork_options,
     .examples = {{"baton fork last --from report", "make the report again"}},
     .exits = {CLI_FAILED, CLI_NEEDS_HUMAN, CLI_CANCELLED, CLI_UNREACHABLE, CLI_NOT_FOUND,
               CLI_PARTIAL, CLI_TIMEOUT, CLI_INTERRUPTED},
     .args_min = 1,
     .args_max = 1,
     .run = verb_fork},
    {.name = NULL},
};

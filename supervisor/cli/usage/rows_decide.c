/* Verbs: decisions of people. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option reviews_options[] = {
    {"all", NULL, "also what was decided: by whom, when and from where"},
    {NULL, NULL, NULL},
};

static const struct cli_option review_options[] = {
    {"as", "text|diff|table|json", "how to show it (text)"},
    {NULL, NULL, NULL},
};

static const struct cli_option decide_options[] = {
    {"comment", "TEXT", "stored in the journal; the text that an agent asked for"},
    {"edit", "FILE|JSON", "with approve: other parameters, or the data that was asked for"},
    {"plan", "FILE", "with approve: the plan to run when none could be made"},
    {NULL, NULL, NULL},
};

static const struct cli_option reject_options[] = {
    {"comment", "TEXT", "stored in the journal"},
    {NULL, NULL, NULL},
};

const struct cli_verb decide_verbs[] = {
    {.name = "reviews",
     .args = "[PLAN_ID]",
     .brief = "list what waits for a person, with what is needed to decide it",
     .options = reviews_options,
     .examples = {{"baton reviews", "list what waits"},
                  {"baton reviews --all", "also what was decided, by whom"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_max = 1,
     .paged = true,
     .run = verb_reviews},
    {.name = "review",
     .args = "show REVIEW_ID",
     .brief = "show all that a person needs to decide one review",
     .text = "Nothing is cut. Tables are for lists of objects; a diff is of the members before and "
             "after of its values, or of a plan's revision and the one before.",
     .options = review_options,
     .examples = {{"baton review show last", "the only open review of the newest plan"},
                  {"baton review show last/pay --as table", "that of its step pay, as a table"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 2,
     .args_max = 2,
     .paged = true,
     .run = verb_review},
    {.name = "approve",
     .args = "REVIEW_ID | PLAN_ID [STEP_ID]",
     .brief = "approve a waiting step or plan",
     .text = "A plan's id, or PLAN_ID/STEP_ID, stands for the only open review there.",
     .options = decide_options,
     .examples = {{"baton approve last", "approve what waits in the newest plan"},
                  {"baton approve last pay --comment 'seen by Ada'", "a step, with a comment"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 2,
     .run = verb_approve},
    {.name = "reject",
     .args = "REVIEW_ID | PLAN_ID [STEP_ID]",
     .brief = "reject a waiting step or plan",
     .text = "A plan's id, or PLAN_ID/STEP_ID, stands for the only open review there.",
     .options = reject_options,
     .examples = {{"baton reject last --comment 'wrong account'",
                   "reject what waits, with the reason"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 2,
     .run = verb_reject},
    {.name = "decide",
     .args = "REVIEW_ID approve|reject|skip",
     .brief = "decide a waiting step, by the review's id",
     .options = decide_options,
     .examples = {{"baton decide last/pay skip", "skip the step that waits"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 2,
     .args_max = 2,
     .run = verb_decide},
    {.name = NULL},
};

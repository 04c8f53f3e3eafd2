/* Verbs: running goals and plans, chats. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option run_options[] = {
    {"plan", "FILE", "run this plan (YAML or JSON, - = stdin) instead of a goal"},
    {"plans", "FILE",
     "submit each line, a plan as JSON (- = stdin), and print the ids; with --key not twice"},
    {"recipe", "RECIPE", "run this recipe: a file, or a name of `baton recipes`"},
    {"input", "NAME=VALUE...", "the value of {{inputs.NAME}}; may be repeated"},
    {"inputs", "JSON", "all inputs as one object: '{\"NAME\": VALUE, ...}'"},
    {"planner", "PLANNER", "for the goal: keyword, llm, agent, agent:AGENT_ID"},
    {"constraint", "TEXT...", "a constraint for a model planner; may be repeated"},
    {"on-invalid-plan", "fail|synthesize|interrupt", "when a model planner makes no valid plan"},
    {"synthesis", "HOW", "who writes the answer: concat, llm, agent, agent:AGENT_ID, JSON"},
    {"policy", "JSON", "policy fields, as in a plan; they win over the plan's"},
    {"wait-for-agents", NULL, "agents that nobody knows yet are waited for: policy.waitForAgents"},
    {"dry-run", NULL, "make the plan, print it, run nothing"},
    {"lenient", NULL, "unknown fields of the plan are warnings, except for safety words"},
    {"verbose", NULL, "for a goal: also the scores by which agents were chosen"},
    {"detach", NULL, "print the plan id and exit"},
    {"session", "SESSION", "session of the plan; the same plan, open there already, goes on"},
    {"key", "KEY", "idempotency key: the same key returns the same plan"},
    {"all", NULL, "print the results of all steps, not only of those that no other took up"},
    {"result", "STEP", "print this step's result instead of the plan's"},
    {"allow-partial", NULL, "exit with 0, not 8, when not all of the plan was done"},
    {NULL, NULL, NULL},
};

static const struct cli_option plan_options[] = {
    {"inputs", "JSON", "with check: the values of {{inputs.NAME}} as one object"},
    {"input", "NAME=VALUE...", "with check: one value; may be repeated"},
    {"lenient", NULL, "with check: unknown fields are warnings, except safety words"},
    {"planner", "PLANNER", "for the goal: keyword, llm, agent, agent:AGENT_ID"},
    {"constraint", "TEXT...", "a constraint for a model planner; may be repeated"},
    {"on-invalid-plan", "fail|interrupt", "when a model planner makes no valid plan"},
    {"policy", "JSON", "policy fields, as in a plan; they win over the plan's"},
    {"session", "SESSION", "session whose messages the planner sees"},
    {"full", NULL, "also print what is a default"},
    {"verbose", NULL, "also the scores by which agents were chosen"},
    {NULL, NULL, NULL},
};

static const struct cli_option lint_options[] = {
    {"inputs", "JSON", "the values of {{inputs.NAME}} as one object"},
    {"input", "NAME=VALUE...", "one value; may be repeated"},
    {"planner", "PLANNER", "planner for the goal"},
    {"lenient", NULL, "unknown fields of the plan are warnings, except for safety words"},
    {"policy", "JSON", "policy fields, as in a plan; they win over the plan's"},
    {"verbose", NULL, "for a goal: also the scores by which agents were chosen"},
    {NULL, NULL, NULL},
};

static const struct cli_option recipes_options[] = {
    {"dir", "DIR...", "also search this folder"},
    {NULL, NULL, NULL},
};

static const struct cli_option chat_options[] = {
    {"session", "SESSION_ID", "continue this session, one of `baton sessions`"},
    {"new", NULL, "with --session: create the session when there is none"},
    {"planner", "PLANNER", "for new plans: keyword, llm, agent, agent:AGENT_ID"},
    {"policy", "JSON", "policy fields of the plans, as in a plan"},
    {"allow-partial", NULL, "exit with 0, not 8, when not all of the plan was done"},
    {NULL, NULL, NULL},
};

static const struct cli_option sessions_options[] = {
    {"limit", "N", "at most so many sessions (20), or messages of one (100)"},
    {NULL, NULL, NULL},
};

const struct cli_verb run_verbs[] = {
    {.name = "run",
     .args = "[GOAL]",
     .brief = "run a goal or a plan and follow it to its end",
     .text = "The live tree goes to stderr, the result to stdout, on a terminal while it is "
             "written. Ctrl-C leaves the plan running; a second Ctrl-C cancels it.",
     .options = run_options,
     .examples = {{"baton run 'compute 6 * 7'", "make a plan for a goal and run it"},
                  {"baton run -f plan.yaml", "run a plan"},
                  {"baton run --recipe compare-files --input first=a.log --input second=b.log",
                   "run a recipe with its inputs"}},
     .exits = {CLI_FAILED, CLI_NEEDS_HUMAN, CLI_CANCELLED, CLI_UNREACHABLE, CLI_NOT_FOUND,
               CLI_PARTIAL, CLI_TIMEOUT, CLI_INTERRUPTED},
     .args_max = 1,
     .run = verb_run},
    {.name = "plan",
     .args = "GOAL | check FILE | diff A B",
     .brief = "make a plan, check one, or compare two; run nothing",
     .text = "Prints the plan as YAML on stdout, without what is a default, and the agent of "
             "each step or how it is planned on stderr; the plan can be edited and run. `plan "
             "check` lists every problem. "
             "`plan diff` takes files, plans' ids, and PLAN_ID@REVISION.",
     .options = plan_options,
     .examples = {{"baton plan 'compute 6 * 7' > plan.yaml", "make a plan, to edit it and run it"},
                  {"baton plan check plan.yaml", "list every problem of a file"},
                  {"baton plan diff old.yaml new.yaml", "compare two plans"}},
     .exits = {CLI_FAILED, CLI_NEEDS_HUMAN, CLI_CANCELLED, CLI_UNREACHABLE, CLI_NOT_FOUND,
               CLI_PARTIAL, CLI_TIMEOUT, CLI_INTERRUPTED},
     .args_min = 1,
     .args_max = 3,
     .run = verb_plan},
    {.name = "lint",
     .args = "FILE | GOAL",
     .brief = "show the worst case of a plan and its problems",
     .text = "Runs nothing. Time, tokens and cost are those of every step taking every attempt; * "
             "marks the critical path.",
     .options = lint_options,
     .examples = {{"baton lint plan.yaml", "the worst case of a plan"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 1,
     .paged = true,
     .run = verb_lint},
    {.name = "recipes",
     .args = "[DIR|FILE]... | check FILE",
     .brief = "list recipes and their inputs",
     .text = "Looks in $XDG_CONFIG_HOME/baton/recipes and in the installed examples. `recipes "
             "check` lists every problem.",
     .options = recipes_options,
     .examples = {{"baton recipes", "list what can be run by name"},
                  {"baton recipes check mine.yaml", "list every problem of a recipe"}},
     .args_max = -1,
     .paged = true,
     .run = verb_recipes},
    {.name = "chat",
     .brief = "talk with Baton: each line is a message; plans run meanwhile",
     .text = "/help lists the commands. When stdin is no terminal, each line waits for the turn "
             "before it, and the exit code is that of the last turn: of its plan; 2 when it made "
             "no plan or was no message; 4 when it waits for a person; 8 when its plan is partial. "
             "Sessions survive the daemon.",
     .options = chat_options,
     .examples = {{"baton chat", "begin a session"},
                  {"baton chat --session 2b7e", "continue one of `baton sessions`"},
                  {"echo 'compute 6 * 7' | baton chat", "one message from a script"}},
     .exits = {CLI_FAILED, CLI_NEEDS_HUMAN, CLI_CANCELLED, CLI_UNREACHABLE, CLI_PARTIAL,
               CLI_TIMEOUT, CLI_INTERRUPTED},
     .run = verb_chat},
    {.name = "sessions",
     .args = "[SESSION_ID]",
     .brief = "list sessions, or show the messages and plans of one",
     .text = "The newest session comes first.",
     .options = sessions_options,
     .examples = {{"baton sessions", "list the newest"},
                  {"baton sessions last", "show the newest"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_max = 1,
     .paged = true,
     .run = verb_sessions},
    {.name = NULL},
};

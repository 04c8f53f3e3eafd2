/* The table of verbs. To add one: a row here, a function in its group's file, a line in the e2e
 * test of the CLI. */
#include <stddef.h>

#include "supervisor/cli/cli.h"

const struct cli_option cli_global_options[] = {
    {"state", "DIR", "state directory (else BATON_STATE, else ~/.local/state/baton)"},
    {"json", NULL, "machine-readable output on stdout"},
    {"no-color", NULL, "no colours (also: NO_COLOR, or stderr is no terminal)"},
    {"help", NULL, "this text"},
    {NULL, NULL, NULL},
};

static const struct cli_option none[] = {{NULL, NULL, NULL}};

static const struct cli_option up_options[] = {
    {"config", "FILE", "configuration, instead of the user's file"},
    {"listen-control", "URL", "where clients and agents ask"},
    {"listen-events", "URL", "where events are published"},
    {"durability", "power|process", "what an acknowledged plan survives"},
    {"log-level", "LEVEL", "of the daemon: err, warn, info, debug"},
    {"foreground", NULL, "stay in the foreground: become the daemon"},
    {"timeout", "TIME", "how long to wait for the daemon and its agents (20s)"},
    {NULL, NULL, NULL},
};

static const struct cli_option down_options[] = {
    {"timeout", "TIME", "how long to wait for the daemon to drain (15s)"},
    {NULL, NULL, NULL},
};

static const struct cli_option run_options[] = {
    {"plan", "FILE", "run this plan (YAML or JSON, - = stdin) instead of a goal"},
    {"inputs", "JSON", "what the plan's {{inputs.NAME}} stand for: '{\"NAME\": VALUE, ...}'"},
    {"detach", NULL, "print the plan id and leave"},
    {"timeout", "TIME", "stop waiting after this long (the plan goes on): exit 124"},
    {"session", "ID", "session that the plan belongs to"},
    {"planner", "NAME", "planner for the goal"},
    {"key", "KEY", "idempotency key: the same key is the same plan"},
    {"policy", "JSON", "policy numbers, as in a plan"},
    {"quiet", NULL, "no live tree on stderr"},
    {NULL, NULL, NULL},
};

static const struct cli_option plan_options[] = {
    {"inputs", "JSON", "with check: what the plan's {{inputs.NAME}} stand for"},
    {"planner", "NAME", "planner for the goal"},
    {"policy", "JSON", "policy numbers, as in a plan"},
    {NULL, NULL, NULL},
};

static const struct cli_option status_options[] = {
    {"status", "STATUS", "only plans with this status"},
    {"session", "ID", "only plans of this session"},
    {"limit", "N", "at most so many plans (20)"},
    {NULL, NULL, NULL},
};

static const struct cli_option events_options[] = {
    {"follow", NULL, "go on with live events"},
    {"after", "SEQ", "only events with a higher sequence number"},
    {"type", "TYPE[,TYPE]", "only these types"},
    {"limit", "N", "stop after so many events"},
    {"timeout", "TIME", "with --follow: stop when nothing came for this long"},
    {NULL, NULL, NULL},
};

static const struct cli_option cancel_options[] = {
    {"reason", "TEXT", "kept in the journal"},
    {NULL, NULL, NULL},
};

static const struct cli_option decide_options[] = {
    {"comment", "TEXT", "kept in the journal"},
    {NULL, NULL, NULL},
};

static const struct cli_option config_options[] = {
    {"config", "FILE", "configuration, instead of the user's file"},
    {"origin", NULL, "where each value comes from"},
    {NULL, NULL, NULL},
};

static const struct cli_option doctor_options[] = {
    {"config", "FILE", "configuration, instead of the user's file"},
    {NULL, NULL, NULL},
};

const struct cli_verb cli_verbs[] = {
    {"up", "", "start the daemon and its agents, wait until they are ready", NULL, up_options, 0, 0,
     verb_up},
    {"down", "", "drain and stop the daemon and its agents", NULL, down_options, 0, 0, verb_down},
    {"run", "[GOAL]", "run a goal or a plan and follow it to its end",
     "The live tree goes to stderr, the result to stdout. Ctrl-C leaves the plan running and says "
     "so; a second Ctrl-C\n"
     "cancels it.\n",
     run_options, 0, 1, verb_run},
    {"plan", "GOAL | check FILE", "make a plan for a goal, or check a plan file, and run nothing",
     "Prints the plan as JSON on stdout and why each agent was chosen on stderr. `plan check` "
     "lists every problem.\n",
     plan_options, 1, 2, verb_plan},
    {"status", "[PLAN_ID]", "list plans, or show one as a tree", NULL, status_options, 0, 1,
     verb_status},
    {"events", "[PLAN_ID]", "the story: every event, of one plan or of all",
     "With --json one JSON object per line. Gaps of the live bus are filled from the journal.\n",
     events_options, 0, 1, verb_events},
    {"agents", "[AGENT_ID]", "who is registered, and how they are",
     "`baton agents drain ID` and `baton agents enable ID` take an agent out of service and "
     "back.\n",
     none, 0, 2, verb_agents},
    {"result", "PLAN_ID [STEP_ID]", "the result of a plan or of one step", NULL, none, 1, 2,
     verb_result},
    {"cancel", "PLAN_ID", "cancel a plan", NULL, cancel_options, 1, 1, verb_cancel},
    {"reviews", "", "steps that wait for a decision", NULL, none, 0, 0, verb_reviews},
    {"decide", "REVIEW_ID approve|reject", "decide a waiting step", NULL, decide_options, 2, 2,
     verb_decide},
    {"info", "", "the daemon: version, addresses, durability", NULL, none, 0, 0, verb_info},
    {"config", "show", "the configuration as the daemon would read it", NULL, config_options, 1, 1,
     verb_config},
    {"doctor", "", "check the daemon, its token, port, journal and agents, and say what is wrong",
     NULL, doctor_options, 0, 0, verb_doctor},
    {"completion", "bash", "print a completion script", "Use: eval \"$(baton completion bash)\"\n",
     none, 1, 1, verb_completion},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, NULL},
};

/* The table of verbs. See the recipe in README.md. */
#include <stddef.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option none[] = {{NULL, NULL, NULL}};

static const struct cli_option up_options[] = {
    {"config", "FILE", "configuration, instead of the user's file"},
    {"listen-control", "URL", "address for clients and agents"},
    {"listen-events", "URL", "address of the published events"},
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
    {"recipe", "NAME", "run this recipe: a file, or a name of `baton recipes`"},
    {"input", "NAME=VALUE...", "the value of {{inputs.NAME}}; may be repeated"},
    {"inputs", "JSON", "all inputs as one object: '{\"NAME\": VALUE, ...}'"},
    {"planner", "NAME", "for the goal: keyword, llm, agent, agent:AGENT_ID"},
    {"constraint", "TEXT...", "a constraint for a model planner; may be repeated"},
    {"on-invalid-plan", "WHAT", "without a valid plan: fail, synthesize, interrupt"},
    {"synthesis", "HOW", "who writes the answer: concat, llm, agent, agent:AGENT_ID, JSON"},
    {"policy", "JSON", "policy fields, as in a plan; they win over the plan's"},
    {"dry-run", NULL, "make the plan, print it, run nothing"},
    {"detach", NULL, "print the plan id and exit"},
    {"timeout", "TIME", "stop waiting after this time (the plan continues): exit 124"},
    {"session", "ID", "session that the plan belongs to"},
    {"key", "KEY", "idempotency key: the same key returns the same plan"},
    {"result", "STEP", "print this step's result instead of the plan's"},
    {"quiet", NULL, "no live tree on stderr"},
    {NULL, NULL, NULL},
};

static const struct cli_option plan_options[] = {
    {"inputs", "JSON", "with check: the values of {{inputs.NAME}} as one object"},
    {"input", "NAME=VALUE...", "with check: one value; may be repeated"},
    {"planner", "NAME", "for the goal: keyword, llm, agent, agent:AGENT_ID"},
    {"constraint", "TEXT...", "a constraint for a model planner; may be repeated"},
    {"on-invalid-plan", "WHAT", "without a valid plan: fail, interrupt"},
    {"policy", "JSON", "policy fields, as in a plan; they win over the plan's"},
    {"session", "ID", "session whose messages the planner sees"},
    {"timeout", "TIME", "stop waiting for a planner after this time: exit 124"},
    {"quiet", NULL, "no progress of the planning on stderr"},
    {NULL, NULL, NULL},
};

static const struct cli_option status_options[] = {
    {"status", "STATUS", "only plans with this status"},
    {"session", "ID", "only plans of this session"},
    {"limit", "N", "at most so many plans (20)"},
    {NULL, NULL, NULL},
};

static const struct cli_option events_options[] = {
    {"follow", NULL, "continue with live events"},
    {"after", "SEQ", "only events with a higher sequence number"},
    {"type", "TYPE[,TYPE]", "only these types"},
    {"limit", "N", "stop after so many events"},
    {"timeout", "TIME", "with --follow: stop after this time without an event"},
    {"vocabulary", "NAME", "translate to the vocabulary NAME (listed below); prints JSON"},
    {"sse", NULL, "each event as a server-sent event: data: {...} and an empty line"},
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

static const struct cli_option pause_options[] = {
    {"reason", "TEXT", "stored in the journal"},
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
    {"wait", NULL, "follow the plan to its end, as run does"},
    {"timeout", "TIME", "with --wait: stop waiting after this time (the plan continues): exit 124"},
    {"quiet", NULL, "no live tree on stderr"},
    {"session", "ID", "session that the new plan belongs to"},
    {"key", "KEY", "idempotency key: the same key returns the same plan"},
    {NULL, NULL, NULL},
};

static const struct cli_option fork_options[] = {
    {"from", "STEP", "run this step and all that depend on it again"},
    {"policy", "FILE|JSON", "policy fields of the new plan"},
    {"wait", NULL, "follow the plan to its end, as run does"},
    {"timeout", "TIME", "with --wait: stop waiting after this time (the plan continues): exit 124"},
    {"quiet", NULL, "no live tree on stderr"},
    {"session", "ID", "session that the new plan belongs to"},
    {"key", "KEY", "idempotency key: the same key returns the same plan"},
    {NULL, NULL, NULL},
};

static const struct cli_option lint_options[] = {
    {"inputs", "JSON", "the values of {{inputs.NAME}} as one object"},
    {"input", "NAME=VALUE...", "one value; may be repeated"},
    {"planner", "NAME", "planner for the goal"},
    {"policy", "JSON", "policy fields, as in a plan; they win over the plan's"},
    {NULL, NULL, NULL},
};

static const struct cli_option top_options[] = {
    {"once", NULL, "print once and exit"},
    {"interval", "TIME", "time between two updates (1s)"},
    {NULL, NULL, NULL},
};

static const struct cli_option cost_options[] = {
    {"session", "ID", "only plans of this session"},
    {"since", "TIME", "only plans that were made within this time (24h)"},
    {"limit", "N", "at most so many plans"},
    {NULL, NULL, NULL},
};

static const struct cli_option recipes_options[] = {
    {"dir", "DIR...", "also search this folder"},
    {NULL, NULL, NULL},
};

static const struct cli_option chat_options[] = {
    {"session", "ID", "continue this session, one of `baton sessions`"},
    {"new", NULL, "with --session: create the session when there is none"},
    {"planner", "NAME", "for new plans: keyword, llm, agent, agent:AGENT_ID"},
    {"policy", "JSON", "policy fields of the plans, as in a plan"},
    {NULL, NULL, NULL},
};

static const struct cli_option sessions_options[] = {
    {"limit", "N", "at most so many sessions (20), or messages of one (100)"},
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
     "The live tree goes to stderr, the result to stdout, on a terminal while it is written. "
     "Ctrl-C leaves the plan\nrunning; a second Ctrl-C cancels it.\n",
     run_options, 0, 1, verb_run},
    {"plan", "GOAL | check FILE | diff A B", "make a plan, check one, or compare two; run nothing",
     "Prints the plan as JSON on stdout, and why each agent was chosen or how it is planned on "
     "stderr; the plan can be\n"
     "edited and run: baton plan GOAL > plan.json; baton run --plan plan.json. `plan check` lists "
     "every problem.\n"
     "`plan diff` takes files, plans' ids, and PLAN_ID@REVISION.\n",
     plan_options, 1, 3, verb_plan},
    {"chat", "", "talk with Baton: each line is a message; plans run meanwhile",
     "/help lists the commands. When stdin is no terminal, each line waits for the turn before it, "
     "and the exit code is\nthat of the last turn: of its plan; 2 when it made no plan or was no "
     "message; 4 when it waits for a person.\nSessions survive the daemon: baton sessions lists "
     "them, baton chat --session ID continues one.\n",
     chat_options, 0, 0, verb_chat},
    {"sessions", "[SESSION_ID]", "list sessions, or show the messages and plans of one",
     "The newest session comes first. To continue one: baton chat --session ID.\n",
     sessions_options, 0, 1, verb_sessions},
    {"status", "[PLAN_ID]", "list plans, or show one as a tree", NULL, status_options, 0, 1,
     verb_status},
    {"events", "[PLAN_ID]", "print the events of one plan or of all",
     "With --json one JSON object per line. Gaps of the live events are filled from the "
     "journal.\nWith --vocabulary always JSON; --type and --limit then apply to its events. NAME "
     "is one of:\n"
     "ai-sdk, plan-executor, agent-turn, ptc-runner, ptc-runner-telemetry, orchestrator-log.\n"
     "--sse prints only the body of a stream: a server in front adds the headers\n"
     "(text/event-stream, no-cache).\n",
     events_options, 0, 1, verb_events},
    {"agents", "[AGENT_ID]", "list the agents and their state",
     "`baton agents drain ID` and `baton agents enable ID` take an agent out of service and "
     "back.\n",
     none, 0, 2, verb_agents},
    {"result", "PLAN_ID [STEP_ID]", "the result of a plan or of one step", NULL, none, 1, 2,
     verb_result},
    {"cancel", "PLAN_ID", "cancel a plan", NULL, pause_options, 1, 1, verb_cancel},
    {"reviews", "[PLAN_ID]", "list what waits for a person, with what is needed to decide it", NULL,
     none, 0, 1, verb_reviews},
    {"approve", "REVIEW_ID | PLAN_ID [STEP_ID]", "approve a waiting step or plan",
     "A plan's id stands for its only open review.\n", decide_options, 1, 2, verb_approve},
    {"reject", "REVIEW_ID | PLAN_ID [STEP_ID]", "reject a waiting step or plan",
     "A plan's id stands for its only open review.\n", reject_options, 1, 2, verb_reject},
    {"decide", "REVIEW_ID approve|reject|skip", "decide a waiting step, by the review's id", NULL,
     decide_options, 2, 2, verb_decide},
    {"pause", "PLAN_ID", "start no further steps; running ones continue", NULL, pause_options, 1, 1,
     verb_pause},
    {"resume", "PLAN_ID", "continue a paused plan", NULL, pause_options, 1, 1, verb_resume},
    {"skip", "PLAN_ID STEP... | PLAN_ID --to STEP", "skip steps that have not begun",
     "A STEP is its id or its number, from 1 on. Steps that depend on a skipped one run.\n",
     skip_options, 1, -1, verb_skip},
    {"modify", "PLAN_ID [FILE]", "change the steps of a plan while it runs",
     "One of:\n"
     "  baton modify PLAN_ID --insert FILE --after|--before STEP --reasoning TEXT\n"
     "  baton modify PLAN_ID --replace STEP FILE --reasoning TEXT\n"
     "  baton modify PLAN_ID --cancel-step STEP --reasoning TEXT\n"
     "  baton modify PLAN_ID --note TEXT\n",
     modify_options, 1, 2, verb_modify},
    {"retry", "PLAN_ID", "run what failed again, in a new plan",
     "Every completed result is reused; the old plan stays as it is. Prints the new plan's id.\n",
     retry_options, 1, 1, verb_retry},
    {"fork", "PLAN_ID --from STEP", "run a plan again from a step on, as a new plan",
     "The results of all steps that do not depend on it are reused. Prints the new plan's id.\n",
     fork_options, 1, 1, verb_fork},
    {"lint", "FILE | GOAL", "show the worst case of a plan and its problems",
     "Runs nothing. Time, tokens and cost are those of every step taking every attempt; * marks "
     "the critical path.\n",
     lint_options, 1, 1, verb_lint},
    {"history", "PLAN_ID", "show a plan's history: phases, revisions, handoffs, replans, reviews",
     NULL, none, 1, 1, verb_history},
    {"stats", "PLAN_ID", "show the time and cost of each step and agent", NULL, none, 1, 1,
     verb_stats},
    {"cost", "[PLAN_ID]", "show tokens and cost by phase, with the estimates",
     "Of one plan, of the plans of a session, or of recent plans.\n", cost_options, 0, 1,
     verb_cost},
    {"recipes", "[DIR|FILE]... | check FILE", "list recipes and their inputs",
     "Looks in $XDG_CONFIG_HOME/baton/recipes and in the installed examples. `recipes check` lists "
     "every problem.\n",
     recipes_options, 0, -1, verb_recipes},
    {"top", "", "show agents, queues and plans, updated every second",
     "On a terminal a screen that `q` ends; elsewhere a table each second.\n", top_options, 0, 0,
     verb_top},
    {"info", "", "show the daemon's version, addresses and durability", NULL, none, 0, 0,
     verb_info},
    {"config", "show", "show the configuration as the daemon would read it", NULL, config_options,
     1, 1, verb_config},
    {"doctor", "", "check the daemon, its token, ports, journal and agents, and name what is wrong",
     NULL, doctor_options, 0, 0, verb_doctor},
    {"completion", "bash", "print a completion script", "Use: eval \"$(baton completion bash)\"\n",
     none, 1, 1, verb_completion},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, NULL},
};

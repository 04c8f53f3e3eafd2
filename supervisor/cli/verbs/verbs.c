/* The table of verbs. See the recipe in README.md. */
#include <stddef.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/verbs/verbs.h"

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
    {"recipe", "NAME", "run this recipe: a file, or a name out of `baton recipes`"},
    {"input", "NAME=VALUE...", "what a recipe's {{inputs.NAME}} stands for; once for each"},
    {"inputs", "JSON", "the same for all of them: '{\"NAME\": VALUE, ...}'"},
    {"planner", "NAME", "for the goal: keyword, llm, agent, agent:AGENT_ID"},
    {"constraint", "TEXT...", "what a model planner has to keep to; once for each"},
    {"on-invalid-plan", "WHAT", "when a model planner makes none: fail, synthesize, interrupt"},
    {"synthesis", "HOW", "the answer: concat, llm, agent, agent:AGENT_ID, JSON"},
    {"policy", "JSON", "policy numbers, as in a plan"},
    {"dry-run", NULL, "make the plan, print it, run nothing"},
    {"detach", NULL, "print the plan id and leave"},
    {"timeout", "TIME", "stop waiting after this long (the plan goes on): exit 124"},
    {"session", "ID", "session that the plan belongs to"},
    {"key", "KEY", "idempotency key: the same key is the same plan"},
    {"result", "STEP", "print this step's result instead of the plan's"},
    {"quiet", NULL, "no live tree on stderr"},
    {NULL, NULL, NULL},
};

static const struct cli_option plan_options[] = {
    {"inputs", "JSON", "with check: what the plan's {{inputs.NAME}} stand for"},
    {"input", "NAME=VALUE...", "with check: one of them"},
    {"planner", "NAME", "for the goal: keyword, llm, agent, agent:AGENT_ID"},
    {"constraint", "TEXT...", "what a model planner has to keep to; once for each"},
    {"on-invalid-plan", "WHAT", "when a model planner makes none: fail, interrupt"},
    {"policy", "JSON", "policy numbers, as in a plan"},
    {"session", "ID", "session whose messages the planner sees"},
    {"timeout", "TIME", "stop waiting for a planner after this long: exit 124"},
    {"quiet", NULL, "nothing of how it is planned on stderr"},
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
    {"vocabulary", "NAME", "in the words of another system: s000 to s004, s003-telemetry"},
    {"sse", NULL, "each event as server-sent events have it: data: {...} and an empty line"},
    {NULL, NULL, NULL},
};

static const struct cli_option decide_options[] = {
    {"comment", "TEXT", "kept in the journal; the words that an agent asked for"},
    {"edit", "FILE|JSON", "with approve: other parameters, or the data that was asked for"},
    {"plan", "FILE", "with approve: where no plan could be made, this one"},
    {NULL, NULL, NULL},
};

static const struct cli_option reject_options[] = {
    {"comment", "TEXT", "kept in the journal"},
    {NULL, NULL, NULL},
};

static const struct cli_option pause_options[] = {
    {"reason", "TEXT", "kept in the journal"},
    {NULL, NULL, NULL},
};

static const struct cli_option skip_options[] = {
    {"to", "STEP", "everything before this step that has not begun is skipped"},
    {"reason", "TEXT", "kept in the plan's history"},
    {"expect-revision", "N", "only if the plan has not been changed since"},
    {NULL, NULL, NULL},
};

static const struct cli_option modify_options[] = {
    {"insert", "FILE", "new steps (YAML or JSON: a step, a list, a plan; - = stdin)"},
    {"after", "STEP", "where --insert puts them"},
    {"before", "STEP", "where --insert puts them"},
    {"replace", "STEP", "this step by those of FILE"},
    {"cancel-step", "STEP", "this step alone"},
    {"note", "TEXT", "changes no step, is kept in the plan's history"},
    {"reasoning", "TEXT", "why; kept in the plan's history"},
    {"expect-revision", "N", "only if the plan has not been changed since"},
    {NULL, NULL, NULL},
};

static const struct cli_option retry_options[] = {
    {"from", "STEP", "this step and all that depend on it run again, too"},
    {"wait", NULL, "follow it to its end, as run does"},
    {"timeout", "TIME", "with --wait: stop waiting after this long (the plan goes on): exit 124"},
    {"quiet", NULL, "no live tree on stderr"},
    {"session", "ID", "session that the new plan belongs to"},
    {"key", "KEY", "idempotency key: the same key is the same plan"},
    {NULL, NULL, NULL},
};

static const struct cli_option fork_options[] = {
    {"from", "STEP", "this step and all that depend on it run again"},
    {"policy", "FILE|JSON", "policy numbers of the new plan"},
    {"wait", NULL, "follow it to its end, as run does"},
    {"timeout", "TIME", "with --wait: stop waiting after this long (the plan goes on): exit 124"},
    {"quiet", NULL, "no live tree on stderr"},
    {"session", "ID", "session that the new plan belongs to"},
    {"key", "KEY", "idempotency key: the same key is the same plan"},
    {NULL, NULL, NULL},
};

static const struct cli_option lint_options[] = {
    {"inputs", "JSON", "what the plan's {{inputs.NAME}} stand for"},
    {"input", "NAME=VALUE...", "one of them"},
    {"planner", "NAME", "planner for the goal"},
    {"policy", "JSON", "policy numbers, as in a plan"},
    {NULL, NULL, NULL},
};

static const struct cli_option top_options[] = {
    {"once", NULL, "print it once and leave"},
    {"interval", "TIME", "how often to look (1s)"},
    {NULL, NULL, NULL},
};

static const struct cli_option cost_options[] = {
    {"session", "ID", "the plans of this session"},
    {"since", "TIME", "the plans that were made within this time (24h)"},
    {"limit", "N", "at most so many plans"},
    {NULL, NULL, NULL},
};

static const struct cli_option recipes_options[] = {
    {"dir", "DIR...", "look here, too"},
    {NULL, NULL, NULL},
};

static const struct cli_option chat_options[] = {
    {"session", "ID", "go on with this session, one of `baton sessions`"},
    {"new", NULL, "with --session: begin a session of that id when there is none"},
    {"planner", "NAME", "for what leads to a plan: keyword, llm, agent, agent:AGENT_ID"},
    {"policy", "JSON", "policy numbers of the plans, as in a plan"},
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
     "The live tree goes to stderr, the result to stdout: on a terminal as it is being written. "
     "Ctrl-C leaves the plan\n"
     "running and says so; a second Ctrl-C cancels it.\n",
     run_options, 0, 1, verb_run},
    {"plan", "GOAL | check FILE | diff A B", "make a plan, check one, or compare two; run nothing",
     "Prints the plan as JSON on stdout, and why each agent was chosen or how it is planned on "
     "stderr; the plan can be\n"
     "edited and run: baton plan GOAL > plan.json; baton run --plan plan.json. `plan check` lists "
     "every problem.\n"
     "`plan diff` takes files, plans' ids, and PLAN_ID@REVISION.\n",
     plan_options, 1, 3, verb_plan},
    {"chat", "", "talk: each line a message, plans run and answer while you go on",
     "/help lists what is not a message. When stdin is no terminal each line is a turn, and the "
     "exit code is that of the\n"
     "last one: of its plan; 2 when no plan could be made of it, or it was no message; 4 when it "
     "waits for a person. The\n"
     "session outlives the daemon: baton chat --session ID goes on, baton sessions lists them.\n",
     chat_options, 0, 0, verb_chat},
    {"sessions", "[SESSION_ID]", "who talked: the sessions, or the messages and plans of one",
     "The one that was spoken in last comes first. To go on with one: baton chat --session ID.\n",
     sessions_options, 0, 1, verb_sessions},
    {"status", "[PLAN_ID]", "list plans, or show one as a tree", NULL, status_options, 0, 1,
     verb_status},
    {"events", "[PLAN_ID]", "the story: every event, of one plan or of all",
     "With --json one JSON object per line. Gaps of the live bus are filled from the journal.\n"
     "With --vocabulary always JSON; --type and --limit are then about its events. --sse prints "
     "the\n"
     "body of a stream only: the headers (text/event-stream, no-cache) are the server's in "
     "front.\n",
     events_options, 0, 1, verb_events},
    {"agents", "[AGENT_ID]", "who is registered, and how they are",
     "`baton agents drain ID` and `baton agents enable ID` take an agent out of service and "
     "back.\n",
     none, 0, 2, verb_agents},
    {"result", "PLAN_ID [STEP_ID]", "the result of a plan or of one step", NULL, none, 1, 2,
     verb_result},
    {"cancel", "PLAN_ID", "cancel a plan", NULL, pause_options, 1, 1, verb_cancel},
    {"reviews", "[PLAN_ID]", "what waits for a person, and what must be seen to decide it", NULL,
     none, 0, 1, verb_reviews},
    {"approve", "REVIEW_ID | PLAN_ID [STEP_ID]", "let a waiting step or plan go on",
     "A plan's id stands for its only open review.\n", decide_options, 1, 2, verb_approve},
    {"reject", "REVIEW_ID | PLAN_ID [STEP_ID]", "say no to a waiting step or plan",
     "A plan's id stands for its only open review.\n", reject_options, 1, 2, verb_reject},
    {"decide", "REVIEW_ID approve|reject|skip", "decide a waiting step, by the review's id", NULL,
     decide_options, 2, 2, verb_decide},
    {"pause", "PLAN_ID", "begin nothing new; what is under way goes on", NULL, pause_options, 1, 1,
     verb_pause},
    {"resume", "PLAN_ID", "go on after a pause", NULL, pause_options, 1, 1, verb_resume},
    {"skip", "PLAN_ID STEP... | PLAN_ID --to STEP", "skip steps that have not begun",
     "A STEP is its id or its number, from 1 on. What depends on a skipped step goes on.\n",
     skip_options, 1, -1, verb_skip},
    {"modify", "PLAN_ID [FILE]", "change the steps of a plan while it runs",
     "One of:\n"
     "  baton modify PLAN_ID --insert FILE --after|--before STEP --reasoning TEXT\n"
     "  baton modify PLAN_ID --replace STEP FILE --reasoning TEXT\n"
     "  baton modify PLAN_ID --cancel-step STEP --reasoning TEXT\n"
     "  baton modify PLAN_ID --note TEXT\n",
     modify_options, 1, 2, verb_modify},
    {"retry", "PLAN_ID", "run what failed again, in a new plan",
     "Every completed result is taken over; the old plan stays as it is. Prints the new plan's "
     "id.\n",
     retry_options, 1, 1, verb_retry},
    {"fork", "PLAN_ID --from STEP", "run a plan again from a step on, as a new plan",
     "The results of all that does not depend on the step are taken over. Prints the new plan's "
     "id.\n",
     fork_options, 1, 1, verb_fork},
    {"lint", "FILE | GOAL", "what a plan would take at worst, and what is wrong with it",
     "Runs nothing. Time, tokens and cost are those of every step taking every attempt; * marks "
     "the critical path.\n",
     lint_options, 1, 1, verb_lint},
    {"history", "PLAN_ID", "the story of a plan: phases, revisions, handoffs, replans, reviews",
     NULL, none, 1, 1, verb_history},
    {"stats", "PLAN_ID", "what each step and agent of a plan took", NULL, none, 1, 1, verb_stats},
    {"cost", "[PLAN_ID]", "tokens and money by phase, and what was estimated",
     "Of one plan, of the plans of a session, or of those that were made lately.\n", cost_options,
     0, 1, verb_cost},
    {"recipes", "[DIR|FILE]... | check FILE", "what can be run by name, and what it takes",
     "Looks in $XDG_CONFIG_HOME/baton/recipes and in the installed examples. `recipes check` lists "
     "every problem.\n",
     recipes_options, 0, -1, verb_recipes},
    {"top", "", "what is going on now: agents, queues, plans",
     "On a terminal a screen that `q` ends; elsewhere a table each second.\n", top_options, 0, 0,
     verb_top},
    {"info", "", "the daemon: version, addresses, durability", NULL, none, 0, 0, verb_info},
    {"config", "show", "the configuration as the daemon would read it", NULL, config_options, 1, 1,
     verb_config},
    {"doctor", "", "check the daemon, its token, port, journal and agents, and say what is wrong",
     NULL, doctor_options, 0, 0, verb_doctor},
    {"completion", "bash", "print a completion script", "Use: eval \"$(baton completion bash)\"\n",
     none, 1, 1, verb_completion},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, NULL},
};

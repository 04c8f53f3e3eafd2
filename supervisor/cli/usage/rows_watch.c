/* Verbs: watching plans. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option status_options[] = {
    {"status", "STATUS", "only plans with this status"},
    {"session", "SESSION", "only plans of this session"},
    {"agent", "AGENT_ID", "only plans with a step of this agent"},
    {"schedule", "SCHEDULE", "only plans that this schedule made"},
    {"limit", "N", "at most so many plans (20)"},
    {"watch", NULL, "show it again every second; one plan until it has ended"},
    {NULL, NULL, NULL},
};

static const struct cli_option result_options[] = {
    {"all", NULL, "the results of all steps, not only of those that no other step took up"},
    {"artifact", "NAME", "print the bytes of this file of the result instead"},
    {"allow-partial", NULL, "exit with 0, not 8, when not all of the plan was done"},
    {NULL, NULL, NULL},
};

static const struct cli_option events_options[] = {
    {"follow", NULL, "continue with live events; of a plan until it has ended"},
    {"tail", "N", "of what has happened only the last N"},
    {"since", "TIME", "only from this time on: 5m ago, 14:30, 2026-01-31T13:30:00Z"},
    {"after", "SEQ", "only events with a higher number, or SEQ:EVENTID; of a fleet, S0=SEQ;S1=SEQ"},
    {"type", "TYPE[,TYPE]", "only these types"},
    {"limit", "N", "stop after so many events"},
    {"vocabulary", "VOCABULARY", "translate to this vocabulary (listed below); prints JSON"},
    {"sse", NULL, "each event as a server-sent event: data: {...} and an empty line"},
    {NULL, NULL, NULL},
};

static const struct cli_option graph_options[] = {
    {"inputs", "JSON", "of a FILE: the values of {{inputs.NAME}} as one object"},
    {"input", "NAME=VALUE...", "of a FILE: one value; may be repeated"},
    {NULL, NULL, NULL},
};

static const struct cli_option logs_options[] = {
    {"follow", NULL, "continue with what comes; of a plan until it has ended"},
    {"tail", "N", "only the last N lines"},
    {"all", NULL, "also the lines of earlier daemons"},
    {NULL, NULL, NULL},
};

static const struct cli_option cost_options[] = {
    {"session", "SESSION", "only plans of this session"},
    {"since", "TIME", "only plans that were made within this time (24h)"},
    {"limit", "N", "at most so many plans"},
    {NULL, NULL, NULL},
};

static const struct cli_option top_options[] = {
    {"once", NULL, "print once and exit, also on a terminal"},
    {"interval", "TIME", "time between two updates (1s)"},
    {NULL, NULL, NULL},
};

const struct cli_verb watch_verbs[] = {
    {.name = "status",
     .args = "[PLAN_ID...]",
     .brief = "list plans, or show each one as a tree",
     .text = "PLAN_ID/STEP_ID is the plan that does a step with forEach, repeat or plan; events, "
             "history, graph, timeline and stats take it, too.",
     .options = status_options,
     .examples = {{"baton status", "list the newest plans"},
                  {"baton status -w last", "watch the newest as a tree"},
                  {"baton status --status failed -n 5", "list the newest five that failed"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT, CLI_INTERRUPTED},
     .args_max = -1,
     .paged = true,
     .into_steps = true,
     .run = verb_status},
    {.name = "result",
     .args = "PLAN_ID [STEP_ID] | PLAN_ID...",
     .brief = "the result of plans or of one step",
     .text = "The second of two arguments is a step, unless it is `last` or a whole plan's id; "
             "PLAN_ID/STEP_ID names a step, too. Of a plan it prints what `run` prints. "
             "Files of the result are listed with their size and path. With --json also the plan, "
             "the result of each step, and its handoffs.",
     .options = result_options,
     .examples = {{"baton result last", "the result of the newest plan"},
                  {"baton result last load", "the result of its step load"}},
     .exits = {CLI_FAILED, CLI_CANCELLED, CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_PARTIAL, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = -1,
     .paged = true,
     .run = verb_result},
    {.name = "events",
     .args = "[PLAN_ID]",
     .brief = "print the events of one plan or of all",
     .text = "With --json one JSON object per line. Gaps of the live events are filled from the "
             "journal.\nWith --vocabulary always JSON; --type and --limit then apply to its "
             "events. VOCABULARY is one of: ai-sdk, plan-executor, agent-turn, ptc-runner, "
             "ptc-runner-telemetry, orchestrator-log.\n--sse prints only the body of a stream: a "
             "server in front adds the headers (text/event-stream, no-cache).",
     .options = events_options,
     .examples = {{"baton events last", "what happened in the newest plan"},
                  {"baton events --tail 20 -f", "the last 20, then what comes"},
                  {"baton events -f --type plan_completed", "each plan that ends, as it ends"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT, CLI_INTERRUPTED},
     .args_max = 1,
     .paged = true,
     .into_steps = true,
     .run = verb_events},
    {.name = "logs",
     .args = "PLAN [STEP] | [AGENT_ID]",
     .brief = "what an agent, the steps of a plan or the daemon wrote to their logs",
     .text = "Of a plan: the lines of all agents and of the daemon that name it, in the order of "
             "time. Of an agent: what its processes printed. Without an argument: the daemon's "
             "log.\nAn agent that was started by hand writes to its own terminal.",
     .options = logs_options,
     .examples = {{"baton logs last", "what was said about the newest plan"},
                  {"baton logs last load", "about its step load"},
                  {"baton logs calc -f", "what an agent prints, as it comes"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT, CLI_INTERRUPTED},
     .args_max = 2,
     .local = "it reads log files of the state directory",
     .run = verb_logs},
    {.name = "history",
     .args = "PLAN_ID...",
     .brief = "show the history of plans: phases, revisions, handoffs, replans, reviews",
     .examples = {{"baton history last", "how the newest plan came to its end"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = -1,
     .paged = true,
     .into_steps = true,
     .run = verb_history},
    {.name = "graph",
     .args = "PLAN_ID | FILE",
     .brief = "draw the steps of a plan, and which depends on which",
     .text = "A plan is drawn with the state of its steps. A FILE is a plan in YAML or JSON (- = "
             "stdin) and needs no daemon.\nA drawing that is wider than the terminal (or COLUMNS) "
             "is a list instead, and says so.\n--output also takes dot, svg and mermaid.",
     .options = graph_options,
     .forms = "dot|svg|mermaid",
     .examples = {{"baton graph last", "the newest plan and how far it is"},
                  {"baton graph plan.yaml", "a plan before it runs"},
                  {"baton graph last -o svg > plan.svg", "a picture for a browser"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 1,
     .into_steps = true,
     .run = verb_graph},
    {.name = "timeline",
     .args = "PLAN_ID",
     .brief = "draw when each step waited and ran",
     .text =
         "A row per step, also of a plan that still runs. An attempt after the first is drawn "
         "from the end of its backoff on: no event marks when its agent got it.\n"
         "adopted: the agent went on while the daemon was started again.\n--output also takes svg.",
     .forms = "svg",
     .examples = {{"baton timeline last", "where the time of the newest plan went"},
                  {"baton timeline last -o svg > times.svg", "a picture for a browser"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 1,
     .into_steps = true,
     .run = verb_timeline},
    {.name = "stats",
     .args = "PLAN_ID...",
     .brief = "show the time and cost of each step and agent",
     .examples = {{"baton stats last", "where the time of the newest plan went"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = -1,
     .paged = true,
     .into_steps = true,
     .run = verb_stats},
    {.name = "cost",
     .args = "[PLAN_ID]",
     .brief = "show tokens and cost by phase, with the estimates",
     .text = "Of one plan, of the plans of a session, or of recent plans.",
     .options = cost_options,
     .examples = {{"baton cost", "of the plans of the last day"},
                  {"baton cost --since 7d", "of a week"},
                  {"baton cost last", "of the newest plan"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_max = 1,
     .paged = true,
     .run = verb_cost},
    {.name = "top",
     .brief = "show agents, queues and plans, updated every second",
     .text = "On a terminal a screen that `q` ends, with lines of the last minutes: load of the "
             "agents, "
             "steps per second, waiting plans. Elsewhere one table, or with --interval one after "
             "the other.",
     .options = top_options,
     .examples = {{"baton top", "watch the agents"}, {"baton top --once", "print one table"}},
     .exits = {CLI_UNREACHABLE, CLI_TIMEOUT, CLI_INTERRUPTED},
     .run = verb_top},
    {.name = "ui",
     .brief = "open the dashboard in a browser",
     .text = "Prints its address, and on a desktop opens it. When no baton-gateway runs (`gateway` "
             "in baton.yaml), this program runs one until it is interrupted.",
     .examples = {{"baton ui", "open the dashboard"}},
     .exits = {CLI_UNREACHABLE, CLI_TIMEOUT, CLI_INTERRUPTED},
     .local = "the gateway listens on the machine of its daemon",
     .run = verb_ui},
    {.name = "mcp",
     .brief = "serve plans and agents as tools of MCP, over stdin and stdout",
     .text = "For programs that speak the Model Context Protocol: they start this command. It uses "
             "the gateway of the state directory, or runs one until stdin ends.",
     .examples = {{"baton mcp", "the command of a server in a client's settings"}},
     .exits = {CLI_INTERRUPTED},
     .local = "it acts with the token of the state directory",
     .run = verb_mcp},
    {.name = NULL},
};

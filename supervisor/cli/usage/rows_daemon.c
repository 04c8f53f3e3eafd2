/* Verbs: the daemon and its agents. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option up_options[] = {
    {"config", "FILE", "configuration, instead of the user's file"},
    {"listen-control", "URL", "address for clients and agents"},
    {"listen-events", "URL", "address of the published events"},
    {"durability", "power|process", "what an acknowledged plan survives"},
    {"log-level", "err|warn|info|debug", "of the daemon"},
    {"foreground", NULL, "stay in the foreground: become the daemon"},
    {NULL, NULL, NULL},
};

static const struct cli_option reload_options[] = {
    {"config", "FILE", "read this file instead of the one of the start"},
    {"check", NULL, "only print what differs"},
    {NULL, NULL, NULL},
};

static const struct cli_option agents_options[] = {
    {"wait", NULL, "first wait until the agent is up, at most 60 s or --timeout"},
    {"remembered", NULL, "those that are not there, and that plans may wait for"},
    {"param", "NAME=VALUE...", "a parameter of the skill (try); may be repeated"},
    {"task", "TEXT", "the task of the step (try)"},
    {"process", "NAME", "only this process, calc#2 (start, stop, restart)"},
    {"now", NULL, "do not wait for the work that it has (stop, restart)"},
    {"version-of", "VERSION", "only the instances whose card has this version (drain)"},
    {"follow", NULL, "go on with what comes (logs)"},
    {"tail", "N", "only the last N lines (logs)"},
    {"all", NULL, "also lines of earlier daemons (logs)"},
    {"dry-run", NULL, "show the skills and the entry, and write nothing (add)"},
    {"config", "FILE", "the file that gets the entry, in place of the configuration (add)"},
    {"skill", "NAME", "the name of the skill, AGENT_ID otherwise (add exec, add http)"},
    {"description", "TEXT", "what the skill does, for people and planners (add exec, add http)"},
    {"effects", "none|idempotent|unsafe", "whether a step may run again (add)"},
    {"stdin", "text|json|none", "what the command reads (add exec)"},
    {"result", "text|json|auto|reply", "how its output is read (add exec)"},
    {"request", "METHOD /PATH", "the request, with {name} for parameters (add http)"},
    {"body", "FILE|JSON", "its body, with {name} for parameters (add http)"},
    {"base-url", "URL", "where the operations are (add openapi)"},
    {"only", "GLOB...", "these operations, tools or skills (add openapi, mcp, a2a)"},
    {"bearer-env", "NAME", "the variable with the key that is sent along (add)"},
    {"allow-private", "ADDRESS...", "a private address that may be called (add)"},
    {NULL, NULL, NULL},
};

static const struct cli_option agent_options[] = {
    {"skill", "NAME", "the skill that the command is"},
    {"id", "ID", "the agent's id (that of the skill)"},
    {"description", "TEXT", "what it does, for people and planners"},
    {"effects", "none|idempotent|unsafe", "whether a step may run again (unsafe)"},
    {"stdin", "text|json|none", "what the command reads: the parameter input, or the step (text)"},
    {"result", "text|json|auto|reply", "how its output is read (text)"},
    {"capacity", "N", "steps at a time, 1 to 64"},
    {"dry-run", NULL, "print the card that it would have, and end"},
    {NULL, NULL, NULL},
};

static const struct cli_option info_options[] = {
    {"field", "NAME", "only this value: address, token, state, version, pid, log, ..."},
    {NULL, NULL, NULL},
};

static const struct cli_option config_options[] = {
    {"config", "FILE", "configuration, instead of the user's file"},
    {"origin", NULL, "where each value comes from"},
    {NULL, NULL, NULL},
};

static const struct cli_option credential_options[] = {
    {"role", "observer|submitter|reviewer|agent|admin", "what it may do (add)"},
    {"agents", "GLOB...", "the agents that it may be, role agent (add)"},
    {"expires", "TIME", "it ends after so long: 30d, 12h (add)"},
    {"grace", "TIME", "the old key stays valid for so long (rotate; 24h)"},
    {"file", "FILE", "write a copy for the client (add, rotate)"},
    {NULL, NULL, NULL},
};

static const struct cli_option audit_options[] = {
    {"since", "TIME", "only what was since then: 5m ago, or 14:30"},
    {"follow", NULL, "go on with what comes"},
    {NULL, NULL, NULL},
};

static const struct cli_option doctor_options[] = {
    {"config", "FILE", "configuration, instead of the user's file"},
    {NULL, NULL, NULL},
};

static const struct cli_option init_options[] = {
    {"example", "EXAMPLE", "the example to begin with, one of --list (hello)"},
    {"list", NULL, "list the examples, one line each"},
    {NULL, NULL, NULL},
};

const struct cli_verb daemon_verbs[] = {
    {.name = "init",
     .args = "[DIR]",
     .brief = "make a directory with a configuration, a plan and an agent",
     .text = "DIR (the current one) gets the files of an example, and .baton, the state directory "
             "of this project: in DIR `baton up` reads baton.yaml there, and the other verbs find "
             "its daemon. Nothing is overwritten.",
     .options = init_options,
     .examples = {{"baton init x", "make x; then: cd x; baton up; baton run -f plan.yaml"},
                  {"baton init --list", "list the examples"},
                  {"baton init --example etl-join shop", "begin with another one"}},
     .exits = {CLI_NOT_FOUND},
     .args_max = 1,
     .run = verb_init},
    {.name = "up",
     .brief = "start the daemon and its agents, wait until they are ready",
     .text = "Waits at most 20 s, or --timeout.",
     .options = up_options,
     .examples = {{"baton up", "start the daemon with your configuration"},
                  {"baton up --config baton.yaml", "start it with the agents of the tour"},
                  {"baton up --foreground", "become the daemon, for a service manager"}},
     .exits = {CLI_UNREACHABLE, CLI_TIMEOUT},
     .local = "it starts a daemon",
     .run = verb_up},
    {.name = "down",
     .brief = "drain and stop the daemon and its agents",
     .text = "Waits at most 15 s, or --timeout, for running steps.",
     .examples = {{"baton down", "let running steps end, then stop"},
                  {"baton down --timeout 2m", "give them two minutes"}},
     .exits = {CLI_UNREACHABLE, CLI_TIMEOUT},
     .local = "it waits for the end of the process",
     .run = verb_down},
    {.name = "reload",
     .brief = "read the configuration again and apply what needs no restart",
     .text = "Applied are the agents and groups, rates and keys, prices, the planner, the log's "
             "level, and what plans get when they are made. An agent that changed is started again "
             "after its steps; the others go on. The rest is named: it needs a restart of the "
             "daemon. A file with a mistake changes nothing. A schedule of the file that cannot be "
             "put is printed with its mistake, and the exit code is 1. SIGHUP does the same.",
     .options = reload_options,
     .examples = {{"baton reload", "read the configuration again"},
                  {"baton reload --check --config new.yaml", "what another file would change"}},
     .exits = {CLI_UNREACHABLE, CLI_TIMEOUT},
     .run = verb_reload},
    {.name = "agents",
     .args = "[AGENT_ID [SKILL]] | start|stop|restart|drain|enable|forget|test|logs AGENT_ID | "
             "try AGENT_ID [SKILL] | add KIND AGENT_ID URL|FILE|-- COMMAND",
     .brief = "list the agents, their state and processes; start, stop, restart them",
     .text =
         "With a skill: the parameters that a step may give it. Drain takes an agent out of "
         "service: it gets no further steps. Enable takes it back. Forget drops an agent that has "
         "left: plans that wait for agents know it no more. Start, stop and restart are "
         "about the processes of the configuration, and return at once: a process first ends the "
         "work that it has (policy.drainMs at most); of two or more, one is up at any time of a "
         "restart; what was stopped stays so until start, or the next start of the daemon. Test "
         "tells whether the agent can take a step now. Logs is `baton logs` of it. Try runs one "
         "skill as a plan "
         "of one step, once, and prints its result; the skill may be left out when the agent "
         "has no other. Add starts an agent once for its skills, then writes its entry into the "
         "configuration, whose other lines stay; KIND is exec (a command), http (one request), "
         "openapi (a document, JSON or YAML), mcp (a server: its URL or command) or a2a (an "
         "agent's "
         "URL). `baton reload` takes it into the running daemon.",
     .options = agents_options,
     .examples = {{"baton agents calc evaluate", "what a step may give this skill"},
                  {"baton agents add exec shout -- tr a-z A-Z", "a command becomes an agent"},
                  {"baton agents try calc evaluate --param expression=6*7", "run it once"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT, CLI_FAILED, CLI_NEEDS_HUMAN},
     .args_max = -1,
     .paged = true,
     .run = verb_agents},
    {.name = "agent",
     .args = "serve --skill NAME -- COMMAND [ARGUMENT]...",
     .brief = "make a command an agent, in the foreground",
     .text =
         "Each step of the skill runs the command once, without a shell. It reads the parameter "
         "`input`, or what the step before returned, and prints the result; `{name}` in an "
         "argument is the parameter of that name. Ends with Ctrl-C, when running steps are over. "
         "It is baton-agent-exec with one command; a configuration has more settings.",
     .options = agent_options,
     .examples = {{"baton agent serve --skill shout -- tr a-z A-Z", "an agent `shout`, at once"},
                  {"baton agent serve --skill head --effects none -- head -n '{lines}'",
                   "with a parameter, and may run again"},
                  {"baton agent serve --skill shout --dry-run -- tr a-z A-Z",
                   "only show its card"}},
     .args_min = 1,
     .args_max = -1,
     .run = verb_agent},
    {.name = "info",
     .brief = "show the daemon's version, addresses and durability",
     .options = info_options,
     .examples = {{"baton info", "show them"},
                  {"baton info --field address", "print where clients and agents connect"},
                  {"baton info --field token", "print the path of the token"}},
     .exits = {CLI_UNREACHABLE, CLI_TIMEOUT},
     .run = verb_info},
    {.name = "config",
     .args = "show",
     .brief = "show the configuration as the daemon would read it",
     .options = config_options,
     .examples = {{"baton config show --origin", "each value, and where it comes from"}},
     .args_min = 1,
     .args_max = 1,
     .paged = true,
     .run = verb_config},
    {.name = "credential",
     .args = "add ID | list | show|rotate|revoke CREDENTIAL | grant|withdraw CREDENTIAL "
             "CREDENTIAL... | "
             "quota CREDENTIAL QUOTA=N...",
     .brief = "who may use the daemon: add, list, rotate and revoke credentials",
     .text =
         "A credential is a file with an id, a role and a key: STATE/credentials/ID. A client "
         "proves that it has the key, and the daemon does, too; the key is never sent. Give it "
         "to a client by --credential FILE or BATON_CREDENTIAL. Works without a daemon; a "
         "running one notices at once. A revoked credential ends its open connections. A "
         "submitter sees what is its own; grant shows it the plans and sessions of others. "
         "Quotas: connections and open plans at a time, requests, bytes and events of its plans "
         "a minute.",
     .options = credential_options,
     .examples = {{"baton credential add ci --role submitter --file ci.json",
                   "a key for a program"},
                  {"baton credential grant ci ann", "ci sees what ann submitted"},
                  {"baton credential quota ci plans=20 requests=600", "what it may use"}},
     .exits = {CLI_NOT_FOUND},
     .args_min = 1,
     .args_max = 18,
     .local = "it changes files of the state directory",
     .run = verb_credential},
    {.name = "audit",
     .brief = "who was refused, who decided, who administered",
     .text = "Reads STATE/audit, also without a daemon: handshakes and requests that were refused, "
             "decisions, what admins did, changes of credentials. 64 MiB of it are kept, for at "
             "most 90 days.",
     .options = audit_options,
     .examples = {{"baton audit --since 1d", "what happened today"},
                  {"baton audit --follow --json", "as it comes, for a program"}},
     .exits = {CLI_NOT_FOUND},
     .paged = true,
     .run = verb_audit},
    {.name = "doctor",
     .brief = "check the daemon, its token, ports, journal and agents, and name what is wrong",
     .options = doctor_options,
     .examples = {{"baton doctor", "check this machine"},
                  {"baton doctor --config new.yaml", "check a configuration before it is used"}},
     .exits = {CLI_UNREACHABLE},
     .local = "it checks files and ports of this host",
     .run = verb_doctor},
    {.name = NULL},
};

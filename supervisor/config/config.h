/*
 * The configuration of the daemon: plain values, read once. Precedence: flag, environment, user's
 * file, system's file, default. config.schema.json checks the files. All problems are reported at
 * once, each with its file, line and column. Opens no sockets and starts nothing.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/log.h"
#include "protocol/base/msec.h"
#include "supervisor/core/plan/plan.h"
#include "supervisor/journal/journal.h"
#include "supervisor/spawn/group.h"

struct cJSON;

enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JOURNAL, CONFIG_LOG_FORMAT_COUNT };

/* What proves a sender: the token or a credential, or a credential alone. */
enum config_auth { CONFIG_AUTH_TOKEN, CONFIG_AUTH_REQUIRED, CONFIG_AUTH_COUNT };

struct config_restart {
    uint32_t intensity;
    msec period_ms;
    msec backoff_min_ms;
    msec backoff_max_ms;
    uint32_t jitter_permille;
};

/* When an instance, or a whole agent, is excluded after repeated failures, and for how long. */
struct config_breaker {
    uint32_t failures; /* of an instance in a row; of an agent twice as many; 0 = never */
    msec cooldown_ms;
    msec cooldown_max_ms;
};

struct config_replan {
    uint32_t max_step, max_total;
    msec cooldown_ms, timeout_ms;
};

/* Defaults of plans and steps, and the daemon's intervals. */
struct config_policy {
    uint32_t max_retries;
    struct backoff backoff;
    msec step_timeout_ms;
    msec plan_timeout_ms; /* 0 = off */
    uint32_t max_concurrency;
    enum on_failure on_failure;
    enum on_failure on_verify;
    msec idle_timeout_ms; /* these are off at 0 */
    msec queue_timeout_ms;
    msec step_limit_ms;
    msec approval_timeout_ms;
    msec check_timeout_ms;
    uint32_t max_fallbacks;
    uint32_t max_handoffs;
    uint32_t max_pause_ms;
    struct config_replan replan;
    msec planner_timeout_ms;
    enum on_invalid on_invalid;
    const char *synthesis; /* the author of a plan's answer: concat, llm, agent, agent:<id> */
    msec cancel_grace_ms;  /* for the running steps of a cancelled plan */
    msec heartbeat_ms;
    msec lease_ms;
    msec agent_wait_ms; /* how long a ready step waits for an agent that has no live instance */
    uint32_t context_budget_bytes;
    uint32_t context_result_bytes;
    msec shutdown_grace_ms;
    msec drain_ms; /* how long a process that is to end may finish its steps */
    struct config_restart restart;
    struct config_breaker breaker;
};

/* May be lower than in protocol/limits.h, never higher. */
struct config_limits {
    uint32_t max_open_plans;
    uint32_t max_agents;
    uint32_t max_instances;
    uint32_t max_result_bytes;
    /* Attempts and questions in flight; 0 = no limit. */
    uint32_t in_flight, in_flight_agent, in_flight_session;
    uint32_t inbox; /* messages between the transport's threads and the loop */
};

/* Files of results of plans that have ended. */
struct config_artifacts {
    msec keep_ms;
    uint64_t max_bytes; /* together; 0 = no limit */
};

/* How long what has ended is kept; 0 = for ever. */
struct config_retention {
    msec completed_ms, failed_ms, sessions_ms, events_ms;
    uint64_t max_bytes; /* of the journal; 0 = no limit */
};

/* The listener for other hosts. */
struct config_remote {
    const char *url;  /* tls+tcp://HOST:PORT; "" = there is none */
    const char *cert; /* absolute paths; ca: who must have signed the certificates of clients */
    const char *ca;
    const char *lanes; /* "7450-7499", ports of agents' lanes; "" = any */
    uint16_t lane_first, lane_last;
};

/* The HTTP API, in a process of its own (supervisor/gateway). */
struct config_gateway {
    const char *listen;         /* HOST:PORT; "" = it is not started; `gateway: {}`: any port */
    const char *tls;            /* absolute; certificate and key; "" = plain HTTP */
    const char *host;           /* a further name that requests may have in Host; "" = none */
    const char *otlp;           /* the URL of a collector of traces; "" = none */
    const char *private_;       /* private addresses that webhooks may reach; "" = none */
    const char *recipes;        /* absolute; the directory of recipes for MCP; "" = none */
    const char *hooks;          /* absolute; the file of incoming hooks; "" = none */
    const char *url;            /* as people reach it, for links; "" = as it listens */
    const char *const *command; /* NULL-terminated; NULL = it is not started */
};

struct config_log {
    enum log_level level;
    enum config_log_format format;
    uint64_t agent_bytes; /* of the log of an agent process, then it is rotated */
    uint32_t agent_files; /* older ones that are kept */
};

/* How many processes an agent has: min = max is a fixed number. */
struct config_instances {
    uint32_t min, max;
    uint32_t queue; /* one more when so many steps wait, */
    msec up_ms;     /* for so long; */
    msec down_ms;   /* one less when one could be spared for so long */
};

/* Agents that are supervised together. */
struct config_group {
    const char *name;
    enum group_strategy strategy;
    uint32_t intensity;
    msec period_ms;
    bool fatal; /* the daemon ends when the group gives up */
};

struct config_agent {
    const char *agent_id;
    const char *const *command; /* NULL-terminated; the variables are replaced */
    const char *const *env;     /* NULL-terminated: NAME (the daemon's own value) or NAME=VALUE */
    const char *cwd;            /* absolute, or NULL */
    struct config_instances instances;
    uint32_t capacity;
    msec start_ms;     /* from its start to its registration */
    const char *group; /* NULL = none */
    enum policy_restart restart;
    msec grace_ms;
    const struct cJSON *settings; /* an object; never NULL */
    const char *settings_json;    /* the same as compact text; the variables are replaced */
    const char *held_back;        /* why it must not be started; NULL = start it */
    const char *const *handover;  /* NULL-terminated: "secret:NAME=value" */
    const char *const *apart;     /* NULL-terminated: spawn/apart.h */
};

/* The price of tokens for agents that report no cost: millionths of the currency per token, which
 * equals the currency per million tokens. */
struct config_price {
    const char *agent_id; /* "*" = every agent without a price of its own */
    double input, output, cached;
};

/* Places of a concurrency key, and how often it may be taken. */
struct config_key {
    const char *key;
    uint32_t max; /* 0 = no limit */
    uint32_t n;   /* starts in per_ms; 0 = no rate */
    msec per_ms;
};
/* How often an agent may be asked for something. */
struct config_rate {
    const char *agent_id;
    uint32_t n;
    msec per_ms;
};

/* A schedule that the operator declares. */
struct config_schedule {
    const char *name;
    const char *json; /* the body of a schedule.put */
};

/* A journal on PostgreSQL that several daemons share. */
struct config_fleet {
    const char *url;  /* "" = the journal is in the state directory */
    const char *node; /* the name of this daemon in it; "" = the host's */
    enum durability durability;
    msec lease_ms;
};

struct config {
    const char *state_dir; /* absolute; may not exist yet */
    const char *listen_control;
    const char *listen_events;
    struct config_remote remote;
    struct config_gateway gateway;
    const char *planner;
    enum config_auth auth;
    enum durability durability;
    struct config_fleet fleet;
    struct config_policy policy;
    struct config_limits limits;
    struct config_artifacts artifacts;
    struct config_retention retention;
    struct config_log log;
    const struct config_agent *agents;
    uint32_t n_agents; /* with `llm`, the orchestrator is the last one */
    const struct config_group *groups;
    uint32_t n_groups;
    const struct config_key *keys;
    uint32_t n_keys;
    const struct config_rate *rates;
    uint32_t n_rates;
    const struct config_schedule *schedules;
    uint32_t n_schedules;
    const struct config_price *prices;
    uint32_t n_prices;
    const uint32_t *allow_uids; /* users whose processes may connect, beside ours and root's */
    uint32_t n_allow_uids;
    const char *const
        *allow_endpoints; /* of agents, beside tcp://LOOPBACK:PORT; "*" ends a prefix */
    uint32_t n_allow_endpoints;
};

/* A setting from the command line: "listen.control", "tcp://127.0.0.1:0". */
struct config_flag {
    const char *key;
    const char *value;
};

struct config_request {
    const char *state_dir; /* --state; NULL = by the rule of protocol/client/state.h */
    /* --config, instead of the user's file; must exist. NULL = the user's file, if it exists */
    const char *file;
    const char *system_file; /* NULL = /etc/baton/baton.yaml, if it exists */
    /* the value of ${BATON_BIN}; NULL = the directory of the running program */
    const char *bin_dir;
    const struct config_flag *flags;
    uint32_t n_flags;
    /* only checks: warnings use "would", because a running daemon may have another environment */
    bool check_only;
    /* Whether an entry can be set apart here (apart_available); NULL = that is not asked */
    bool (*can_set_apart)(const char *const *apart, const char *state_dir, char why[]);
};

/*
 * Reads and checks everything. notes (initialised, may be NULL) gets one line per problem
 * ("FILE:LINE:COL: path: message") and per warning ("... warning: ..."), also when the result is
 * BT_OK. BT_INVALID: there are problems; err has the first and their number. The caller frees *ret
 * with config_free.
 */
BT_MUST_CHECK enum bt_code config_load(const struct config_request *request, struct config **ret,
                                       struct buf *notes, struct bt_error *err);
void config_free(struct config *c);

/* The path of the user's file: baton.yaml of the project, else by the XDG rule; it need not exist.
 * False without a home directory. state_flag as in struct config_request. */
bool config_user_file(const char *state_flag, char *ret, size_t cap);

/* A setting with its value and origin. Agents are "agents.0.command" and so on. Values of env
 * entries are hidden. */
struct config_entry {
    const char *key;
    const char *value;  /* as JSON */
    const char *origin; /* "flag", "env BATON_PLANNER", "/etc/baton/baton.yaml:3:1", "default" */
};

/* All settings in the order of the documentation; valid as long as the configuration. */
const struct config_entry *config_entries(const struct config *c, uint32_t *ret_n);
/* A hash of what the hosts of a fleet should have alike, in hexadecimal digits: all settings but
 * the names, addresses, paths and logs of the host. */
enum { CONFIG_HASH_LEN = 16 };
void config_hash(const struct config *c, char ret[CONFIG_HASH_LEN + 1]);
/* Writes the output of `baton config show`, one line per setting: key = value; with_origin: and its
 * origin. */
void config_show(const struct config *c, bool with_origin, struct buf *out);
#endif

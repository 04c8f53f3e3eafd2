/* Many configurations, and all that becomes of each, in configs_told.txt: the problems with their
 * places, or what it sets. BATON_WRITE=1 writes the file anew: read the difference. */
#include "tests/unit/config/config_test.h"

#include <inttypes.h>

#include "tests/support/golden.h"

/* A line that begins with "flag KEY VALUE", "env NAME VALUE" or "system TEXT" is no line of the
 * user's file. */
static const char *const configs[] = {
    "",
    "agents: []",
    "agents: {}",
    "agents: [{agentId: a, command: [x]}]",
    "agents: [{agentId: a, command: [x, 1]}]",
    "agents: [{agentId: a}]",
    "agents: [1]",
    "agents: [{agentId: supervisor, command: [x]}]",
    "agents: [{agentId: baton-gateway, command: [x]}]",
    "agents: [{agentId: orchestrator, command: [x]}]",
    "agents: [{agentId: a, command: [x]}, {agentId: b, command: [x]}, {agentId: a, command: [x]}, "
    "{agentId: a, command: [x]}]",
    "agents: [{agentId: a, command: ['${BATON_BIN}', '${CONFIG_DIR}/y', '$z', '${', 'a$']}]",
    "agents: [{agentId: a, command: ['${HOME}/x']}]",
    "agents: [{agentId: a, command: [x, '${HOME}', '${BIN}']}]",
    "agents: [{agentId: a, command: [x], cwd: '${HOME}/x'}]",
    "agents: [{agentId: a, command: [x], cwd: relative}]",
    "agents: [{agentId: a, command: [x], cwd: '${CONFIG_DIR}'}]",
    "agents: [{agentId: a, command: [x], env: [A, 'B=c', 'D=']}]",
    "agents: [{agentId: a, command: [x], env: ['${HOME}=1', 7]}]",
    "agents: [{agentId: a, command: [x], instances: 0}]",
    "agents: [{agentId: a, command: [x], instances: 1}]",
    "agents: [{agentId: a, command: [x], instances: 5}]",
    "agents: [{agentId: a, command: [x], instances: 1024}]",
    "agents: [{agentId: a, command: [x], instances: 1025}]",
    "agents: [{agentId: a, command: [x], instances: 1000}, {agentId: b, command: [x], instances: "
    "25}]",
    "agents: [{agentId: a, command: [x], instances: 3}]\nlimits: {maxInstances: 3}",
    "agents: [{agentId: a, command: [x], instances: 4}]\nlimits: {maxInstances: 3}",
    "agents: [{agentId: a, command: [x]}, {agentId: b, command: [x]}]\nlimits: {maxAgents: 2}",
    "agents: [{agentId: a, command: [x]}, {agentId: b, command: [x]}]\nlimits: {maxAgents: 1}",
    "agents: [{agentId: a, command: [x], instances: {}}]",
    "agents: [{agentId: a, command: [x], instances: {min: 0, max: 0}}]",
    "agents: [{agentId: a, command: [x], instances: {min: 2, max: 2}}]",
    "agents: [{agentId: a, command: [x], instances: {min: 3, max: 2}}]",
    "agents: [{agentId: a, command: [x], instances: {min: 1, max: 4, queue: 3, upMs: 5, downMs: "
    "6}}]",
    "agents: [{agentId: a, command: [x], capacity: 0}]",
    "agents: [{agentId: a, command: [x], capacity: 64}]",
    "agents: [{agentId: a, command: [x], capacity: 65}]",
    "agents: [{agentId: a, command: [x], capacity: -1}]",
    "agents: [{agentId: a, command: [x], capacity: 1e300}]",
    "agents: [{agentId: a, command: [x], startMs: 1}]",
    "agents: [{agentId: a, command: [x], startMs: 4294967295}]",
    "agents: [{agentId: a, command: [x], startMs: 4294967296}]",
    "agents: [{agentId: a, command: [x], graceMs: 0}]",
    "agents: [{agentId: a, command: [x], restart: never}]",
    "agents: [{agentId: a, command: [x], restart: temporary}]",
    "agents: [{agentId: a, command: [x], settings: 7}]",
    "agents: [{agentId: a, command: [x], settings: {a: '${BATON_BIN}/${CONFIG_DIR}${HOME}'}}]",
    "agents: [{agentId: a, command: [x], settings: {a: '${BATON_BIN}${BATON_BIN}'}}]",
    "agents: [{agentId: a, command: [x], user: root, network: none, seccomp: default, paths: "
    "{read: [/r, '${CONFIG_DIR}/s'], write: [/w]}, limits: {memoryBytes: 16777216, processes: 1, "
    "cpuPercent: 1}}]",
    "agents: [{agentId: a, command: [x], user: nobody-has-this-name}]",
    "agents: [{agentId: a, command: [x], user: 7}]",
    "agents: [{agentId: a, command: [x], paths: {read: [relative, '${HOME}/x'], write: ['/w']}}]",
    "agents: [{agentId: a, command: [x], paths: {}}]",
    "agents: [{agentId: a, command: [x], paths: 7}]",
    "agents: [{agentId: a, command: [x], limits: {processes: 0}}]",
    "agents: [{agentId: a, command: [x], limits: {memoryBytes: 1, cpuPercent: 0}}]",
    "agents: [{agentId: a, command: [x], limits: {processes: 4000000}}]",
    "agents: [{agentId: a, command: [x], network: some}]",
    "agents: [{agentId: a, command: [x], secrets: [TOLD_A]}]",
    "env TOLD_A s3cret\nagents: [{agentId: a, command: [x], secrets: [TOLD_A, TOLD_B]}]",
    "env TOLD_A s3cret\nagents: [{agentId: a, command: [x], secrets: [TOLD_B, TOLD_A]}]",
    "agents: [{agentId: a, command: [x], secrets: ['A=${CONFIG_DIR}/none']}]",
    "agents: [{agentId: a, command: [x], secrets: ['A=${HOME}/none', TOLD_A]}]",
    "agents: [{agentId: a, command: [x], secrets: ['', 7]}]",
    "check\nagents: [{agentId: a, command: [x], secrets: [TOLD_A]}]",
    "groups: [{name: g}, {name: h, strategy: rest_for_one, intensity: 7, periodMs: 9000, escalate: "
    "daemon}]\nagents: [{agentId: a, command: [x], group: g}]",
    "groups: [{name: g, escalate: notice}]\npolicy: {restart: {intensity: 3, periodMs: 4000}}",
    "groups: [{name: g, strategy: some}, {}, {name: ''}]",
    "groups: [{name: g, intensity: -1, periodMs: 1e300}]",
    "groups: [{name: g}, {name: h}, {name: g}, {name: h}]",
    "groups: {name: g}",
    "groups: []",
    "agents: [{agentId: a, command: [x], group: g}]",
    "groups: [{name: g}]\nagents: [{agentId: b, command: [x]}, {agentId: a, command: [x], group: "
    "g, instances: {min: 1, max: 2}}]",
    "groups: [{name: g}]\nagents: [{agentId: a, command: [x], group: g, instances: {min: 2, max: "
    "2}}]",
    "keys: [{key: a}, {key: b, max: 0}, {key: c, max: 7, rate: {n: 8, perMs: 9}}]",
    "keys: [{key: a}, {key: b}, {key: a}, {key: a}]",
    "keys: [{key: a, max: -1}, {max: 3}]",
    "keys: {key: a}",
    "rates: [{agentId: a, n: 1, perMs: 2}, {agentId: b, n: 3, perMs: 4}]",
    "rates: [{agentId: a, n: 1, perMs: 2}, {agentId: b, n: 1, perMs: 2}, {agentId: a, n: 1, perMs: "
    "2}]",
    "rates: [{agentId: a}]",
    "rates: 7",
    "prices: [{agentId: a, input: 1, output: 4}, {agentId: b, input: 1.5, output: 2, cached: 0.5}, "
    "{agentId: '*', output: 3, input: 0, cached: 0}]",
    "prices: [{agentId: a, input: -1}]",
    "prices: [{input: 1}]",
    "prices: {}",
    "schedules: [{name: s, cron: '@daily', plan: {steps: []}}, {name: t, everyMs: 1000, plan: {}}]",
    "schedules: [{name: s, cron: '61 * * * *', plan: {}}]",
    "schedules: [{name: s, cron: '@daily', recipe: '${CONFIG_DIR}/recipe.yaml'}]",
    "schedules: [{name: s, cron: '@daily', recipe: '${CONFIG_DIR}/list.yaml'}]",
    "schedules: [{name: s, cron: '@daily', recipe: '${CONFIG_DIR}/none.yaml'}]",
    "schedules: [{name: s, cron: '@daily', recipe: x.yaml}]",
    "schedules: [{name: s, cron: '@daily', recipe: '${HOME}'}]",
    "schedules: [{name: s, cron: '@daily', recipe: /x, plan: {}}]",
    "schedules: [{name: s, cron: '@daily', plan: {}}, {name: t, cron: '@daily', plan: {}}, {name: "
    "s, cron: '@daily', plan: {}}]",
    "schedules: 7",
    "allowUids: [0, 1000, 4294967294]",
    "allowUids: [4294967295]",
    "allowUids: [-1, x]",
    "allowEndpoints: ['tcp://192.0.2.5:*', 'tls+tcp://a:1']",
    "allowEndpoints: [7]",
    "listen: {control: 'tcp://127.0.0.1:0'}",
    "listen: {control: 'tcp://127.0.0.1:9', events: 'tcp://127.0.0.1:9'}",
    "listen: {control: 'tcp://127.0.0.1:9', events: 'tcp://localhost:9'}",
    "listen: {control: 'tcp://127.0.0.1:65535', events: 'tcp://127.0.0.1:65534'}",
    "listen: {control: 'tcp://127.0.0.1:65536', events: 'tcp://127.0.0.1:'}",
    "listen: {control: 'tcp://:9', events: 'udp://127.0.0.1:9'}",
    "listen: {control: 'tcp://127.0.0.1:9a', events: 'tcp://127.0.0.1:/9'}",
    "listen: {control: 'tcp://127.0.0.1:099999', events: 'tcp://127.0.0.1:00009'}",
    "listen: {control: 'tcp://0.0.0.0:9', events: 'tcp://[::]:9'}",
    "listen: {control: 'tcp://126.255.255.255:9', events: 'tcp://128.0.0.1:9'}",
    "listen: {control: 'tcp://[::1]:9', events: 'tcp://127.255.255.255:9'}",
    "listen: {control: 'tcp://localhost:auto', events: 'tcp://127.0.0.1:autox'}",
    "listen: {lanes: '7450-7499'}",
    "listen: {lanes: '7450-7450'}",
    "listen: {lanes: '1-65535'}",
    "listen: {lanes: '0-1'}",
    "listen: {lanes: '7450-65536'}",
    "listen: {lanes: '7451-7450'}",
    "listen: {lanes: '7450'}",
    "listen: {lanes: '7450:7499'}",
    "listen: {lanes: ''}",
    "auth: required\nlisten: {remote: 'tls+tcp://192.0.2.5:7443', cert: /c, ca: '${CONFIG_DIR}/d'}",
    "auth: required\nlisten: {remote: 'tls+tcp://192.0.2.5:0', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://192.0.2.5:65535', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://192.0.2.5:65536', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://192.0.2.5:', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://192.0.2.5:7x', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://192.0.2.5:/', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://:7443', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://h', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://*:7443', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://0.0.0.0:7443', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://[::]:7443', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tcp://h:7443', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tcp:/h:7443', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://h:1', cert: c, ca: '${HOME}'}",
    "listen: {remote: 'tls+tcp://h:1'}",
    "auth: required\nlisten: {remote: 'tls+tcp://h:9', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://h:0', cert: /c, ca: /d}",
    "auth: required\nlisten: {remote: 'tls+tcp://h:x', cert: /c, ca: /d}",
    "listen: {cert: c, ca: '${HOME}'}",
    "listen: {cert: '', ca: /d}",
    "gateway: {}",
    "gateway: {listen: ''}",
    "gateway: {listen: '127.0.0.1:7180', host: h, otlp: 'http://o', private: '198.51.100.0/24', "
    "url: "
    "'http://u', hooks: '${CONFIG_DIR}/h.yaml', recipes: /r, tls: /t.pem}",
    "gateway: {listen: '0.0.0.0:7180'}",
    "gateway: {listen: '0.0.0.0:7180', tls: /t}",
    "gateway: {listen: 'localhost:1'}",
    "gateway: {listen: 'localhosts:1'}",
    "gateway: {listen: '[::1]:1'}",
    "gateway: {listen: '[::2]:1'}",
    "gateway: {listen: '128.0.0.1:1'}",
    "gateway: {listen: '127.0.0.1:1', tls: t, hooks: '${HOME}', recipes: r}",
    "flag gateway.listen 127.0.0.1:5\n",
    "fleet: {url: 'postgresql://h/d', node: n}",
    "fleet: {url: 'postgres://h/d'}",
    "fleet: {url: 'postgresql:/h/d'}",
    "fleet: {url: 'postgresql://u:p@h/d'}",
    "fleet: {url: 'postgresql://u@h:5432/d'}",
    "fleet: {url: 'postgresql://h/d?password=p'}",
    "fleet: {url: 'postgresql://h:5432/d@e'}",
    "fleet: {url: 'postgresql://:@h/d'}",
    "fleet: {url: 'host=h password=p'}",
    "durability: process\nfleet: {url: 'postgresql://h/d'}",
    "durability: process\nfleet: {url: ''}",
    "fleet: {durability: replicated}",
    "flag durability process\nfleet: {url: 'postgresql://h/d'}",
    "policy: {heartbeatMs: 1000, leaseMs: 2000}",
    "policy: {heartbeatMs: 1000, leaseMs: 1999}",
    "policy: {heartbeatMs: 1501}",
    "policy: {backoff: {initialMs: 10, maxMs: 10}}",
    "policy: {backoff: {initialMs: 11, maxMs: 10}}",
    "policy: {backoff: {initialMs: 30001}}",
    "policy: {restart: {backoffMinMs: 10, backoffMaxMs: 10}}",
    "policy: {restart: {backoffMinMs: 11, backoffMaxMs: 10}}",
    "policy: {breaker: {cooldownMs: 10, cooldownMaxMs: 10}}",
    "policy: {breaker: {cooldownMs: 11, cooldownMaxMs: 10}}",
    "policy: {backoff: {kind: exponential, multiplier: 1.5, jitter: 0.25}}",
    "policy: {onFailure: ask, planner: {onInvalid: interrupt}}",
    "policy: {maxRetries: many}",
    "policy: []",
    "planner: llm",
    "planner: ''",
    "retention: {maxBytes: 9007199254740991}",
    "retention: {maxBytes: 9007199254740992}",
    "log: {level: debug, format: journal, agentFiles: 2}",
    "log: {level: loud}",
    "flag log.level warn\nlog: {level: debug}",
    "flag log.level warn\nflag log.level err",
    "flag log.level loud",
    "flag log.levle warn",
    "flag nonsense 1",
    "flag policy.maxRetries 0x1",
    "flag policy.maxRetries 017",
    "flag policy.maxRetries .inf",
    "flag planner 7",
    "env BATON_LOG_LEVEL debug\nlog: {level: err}",
    "env BATON_LOG_LEVEL \nlog: {level: err}",
    "env BATON_POLICY_MAX_RETRIES 017",
    "env BATON_POLICY_MAX_RETRIES x",
    "env BATON_POLICY_BACKOFF_JITTER 0.5",
    "env BATON_POLICY_BACKOFF_INITIAL_MS 40000",
    "env BATON_GATEWAY_LISTEN 127.0.0.1:6",
    "flag gateway.tls ${CONFIG_DIR}/x\ngateway: {listen: '127.0.0.1:6'}",
    "system planner: agent\nlog: {level: err}",
    "system agents: [{agentId: s, command: ['${CONFIG_DIR}']}]\nplanner: llm",
    "system agents: [{agentId: s, command: [x]}]\nagents: []",
    "system log: [\nplanner: llm",
    "a/b: {c~d: 1}",
    "policy: {a/b: 1, 'c~d': 2}",
    "7",
    "[]",
    "x",
    "a: [",
    "\ta: 1",
    "llm: {}",
    "llm: {providers: []}",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1'}]}",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1'}], capacity: 64, "
    "env: [A, 'B=c', A], agentId: other}\nplanner: keyword",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1'}], capacity: 64, "
    "env: [A, 'B=c', A]}\nplanner: keyword",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1'}], capacity: 65}",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1'}], capacity: 1}",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1'}], capacity: 0}",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1'}]}\nagents: "
    "[{agentId: orchestrator, command: [x]}]",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1', keyEnv: "
    "TOLD_A}]}",
    "check\nllm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1', keyEnv: "
    "TOLD_A}]}",
    "env TOLD_A key\nllm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1', "
    "keyEnv: TOLD_A}, {api: openai, model: n, baseUrl: 'http://127.0.0.1:2/v1', keyEnv: TOLD_A}]}",
    "llm: {providers: [{api: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1', keyCredential: "
    "k}]}",
    "llm: {providers: [{api: nonsense, model: m}]}",
    "llm: 7",
    "agents: [{agentId: a, command: [x]}]\nllm: {providers: [{api: openai, model: m, baseUrl: "
    "'http://127.0.0.1:1/v1'}]}",
};

static void say_list(struct buf *out, const char *name, const char *const *list)
{
    buf_printf(out, " %s", name);
    for (; list != NULL && *list != NULL; list++) {
        buf_printf(out, " '%s'", *list);
    }
}

static void say_agents(struct buf *out, const struct config *c)
{
    for (uint32_t i = 0; i < c->n_agents; i++) {
        const struct config_agent *a = &c->agents[i];
        buf_printf(out, "  agent %s:", a->agent_id);
        say_list(out, "command", a->command);
        say_list(out, "env", a->env);
        say_list(out, "handover", a->handover);
        say_list(out, "apart", a->apart);
        buf_printf(out,
                   " cwd %s instances %u-%u queue %u up %" PRIu64 " down %" PRIu64
                   " capacity %u start %" PRIu64 " group %s restart %d grace %" PRIu64
                   " settings %s held %s\n",
                   a->cwd != NULL ? a->cwd : "-", a->instances.min, a->instances.max,
                   a->instances.queue, a->instances.up_ms, a->instances.down_ms, a->capacity,
                   a->start_ms, a->group != NULL ? a->group : "-", (int)a->restart, a->grace_ms,
                   a->settings_json, a->held_back != NULL ? a->held_back : "-");
    }
}

static void say_lists(struct buf *out, const struct config *c)
{
    for (uint32_t i = 0; i < c->n_groups; i++) {
        buf_printf(out, "  group %s %d %u/%" PRIu64 " fatal %d\n", c->groups[i].name,
                   (int)c->groups[i].strategy, c->groups[i].intensity, c->groups[i].period_ms,
                   c->groups[i].fatal);
    }
    for (uint32_t i = 0; i < c->n_keys; i++) {
        buf_printf(out, "  key %s max %u, %u/%" PRIu64 "\n", c->keys[i].key, c->keys[i].max,
                   c->keys[i].n, c->keys[i].per_ms);
    }
    for (uint32_t i = 0; i < c->n_rates; i++) {
        buf_printf(out, "  rate %s %u/%" PRIu64 "\n", c->rates[i].agent_id, c->rates[i].n,
                   c->rates[i].per_ms);
    }
    for (uint32_t i = 0; i < c->n_prices; i++) {
        buf_printf(out, "  price %s %g %g %g\n", c->prices[i].agent_id, c->prices[i].input,
                   c->prices[i].output, c->prices[i].cached);
    }
    for (uint32_t i = 0; i < c->n_schedules; i++) {
        buf_printf(out, "  schedule %s %s\n", c->schedules[i].name, c->schedules[i].json);
    }
    for (uint32_t i = 0; i < c->n_allow_uids; i++) {
        buf_printf(out, "  uid %u\n", c->allow_uids[i]);
    }
    for (uint32_t i = 0; i < c->n_allow_endpoints; i++) {
        buf_printf(out, "  endpoint %s\n", c->allow_endpoints[i]);
    }
}

/* What is set, and what is read of it. */
static void say_config(struct buf *out, const struct config *c)
{
    uint32_t n;
    const struct config_entry *entries = config_entries(c, &n);

    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(entries[i].origin, "default") != 0 || strncmp(entries[i].key, "ag", 2) == 0 ||
            strcmp(entries[i].key, "planner") == 0) {
            buf_printf(out, "  %s = %s # %s\n", entries[i].key, entries[i].value,
                       entries[i].origin);
        }
    }
    say_agents(out, c);
    say_lists(out, c);
    if (c->gateway.command != NULL) {
        buf_add_cstr(out, "  gateway");
        say_list(out, c->gateway.listen, c->gateway.command);
        buf_add_cstr(out, "\n");
    }
    buf_printf(out, "  remote '%s' '%s' '%s' %u-%u, planner %s, log %d, durability %d\n",
               c->remote.url, c->remote.cert, c->remote.ca, c->remote.lane_first,
               c->remote.lane_last, c->planner, (int)c->log.level, (int)c->durability);
}

/* Puts the lines that are none of the file where they belong; returns the rest. */
static const char *prepare(struct home *h, const char *text, struct config_flag *flags)
{
    static char lines[8][200];
    int n = 0;

    h->request.flags = flags;
    h->request.n_flags = 0;
    h->request.check_only = false;
    (void)unlink(h->system);
    (void)unsetenv("TOLD_A");
    forget_environment();
    for (;; n++) {
        const size_t len = strcspn(text, "\n");
        char *line = lines[n];
        char *value;
        if (strncmp(text, "flag ", 5) != 0 && strncmp(text, "env ", 4) != 0 &&
            strncmp(text, "system ", 7) != 0 && strcmp(text, "check") != 0 &&
            strncmp(text, "check\n", 6) != 0) {
            return text;
        }
        (void)snprintf(line, sizeof lines[0], "%.*s", (int)len, text);
        text += len + (text[len] != 0);
        value = strchr(line, ' ');
        if (value == NULL) {
            h->request.check_only = true;
        } else if (line[0] == 's') {
            write_text(h->system, value + 1);
        } else {
            char *second = strchr(value + 1, ' ');
            *second = 0;
            if (line[0] == 'e') {
                assert_int_equal(setenv(value + 1, second + 1, 1), 0);
            } else {
                flags[h->request.n_flags++] = (struct config_flag){value + 1, second + 1};
            }
        }
    }
}

static void every_configuration_is_told_as_it_was(void **state)
{
    struct home *h = *state;
    char *was = golden_read(TOLD);
    struct buf out;
    char path[128];

    (void)snprintf(path, sizeof path, "%s/baton/recipe.yaml", h->dir);
    write_text(path, "name: r\nsteps: [{agentId: a, task: t}]\n");
    (void)snprintf(path, sizeof path, "%s/baton/list.yaml", h->dir);
    write_text(path, "- [\n");
    (void)unsetenv("TOLD_B");
    buf_init(&out, GOLDEN_MAX);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct config_flag flags[4];
        const char *file = prepare(h, configs[i], flags);
        struct buf one;
        enum bt_code code;
        write_text(h->user, file);
        code = load(h);
        buf_init(&one, GOLDEN_MAX);
        buf_printf(&one, "=== %s\n%s%s%s", configs[i], code == BT_OK ? "" : bt_code_name(code),
                   code == BT_OK ? "" : " ", code == BT_OK ? "" : h->err.msg);
        buf_printf(&one, "%s%s", code == BT_OK ? "" : "\n", buf_cstr(&h->notes));
        if (code == BT_OK) {
            say_config(&one, h->config);
        }
        for (const char *at = buf_cstr(&one); *at != 0; at++) { /* the directory as DIR */
            if (strncmp(at, h->dir, strlen(h->dir)) == 0) {
                buf_add_cstr(&out, "DIR");
                at += strlen(h->dir) - 1;
            } else {
                buf_add_byte(&out, (uint8_t)*at);
            }
        }
        buf_done(&one);
    }
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
    free(was);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/baton/recipe.yaml", h->dir);
    (void)unlink(path);
    (void)unsetenv("TOLD_A");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        every_configuration_is_told_as_it_was, home_open, home_close)};

    (void)setenv("HOME", "/home-of-nobody", 1);
    (void)unsetenv("CREDENTIALS_DIRECTORY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

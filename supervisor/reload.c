#include "supervisor/reload.h"

#include "protocol/base/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/children.h"
#include "supervisor/roster.h"
#include "supervisor/schedule/schedules.h"

enum { FILE_BYTES = 4097, KEY_BYTES = 192, VALUE_BYTES = 1024, CHANGES_LOGGED = 64 };

/* The schema of the configuration has checked the name. */
static struct synthesis_choice synthesis_of(const char *name)
{
    struct synthesis_choice choice = plan_defaults_builtin().synthesis;

    (void)synthesis_choice_named(str_from(name), &choice);
    return choice;
}

struct plan_defaults reload_defaults(const struct config_policy *p)
{
    return (struct plan_defaults){
        .step = {.max_retries = p->max_retries,
                 .backoff = p->backoff,
                 .timeout_ms = p->step_timeout_ms,
                 .idle_ms = p->idle_timeout_ms,
                 .queue_timeout_ms = p->queue_timeout_ms,
                 .limit_ms = p->step_limit_ms,
                 .approval_timeout_ms = p->approval_timeout_ms,
                 .check_timeout_ms = p->check_timeout_ms,
                 .on_failure = p->on_failure,
                 .on_verify = p->on_verify,
                 .effects = EFFECTS_IDEMPOTENT},
        .plan_timeout_ms = p->plan_timeout_ms,
        .max_concurrency = p->max_concurrency,
        .context_budget = p->context_budget_bytes,
        .context_result = p->context_result_bytes,
        .max_fallbacks = p->max_fallbacks,
        .max_handoffs = p->max_handoffs,
        .max_pause_ms = p->max_pause_ms,
        .replan = {.max_step = p->replan.max_step,
                   .max_total = p->replan.max_total,
                   .cooldown_ms = p->replan.cooldown_ms,
                   .timeout_ms = p->replan.timeout_ms},
        .planner_timeout_ms = p->planner_timeout_ms,
        .on_invalid = p->on_invalid,
        .synthesis = synthesis_of(p->synthesis),
    };
}

/* ---- what differs ---- */

struct changes {
    struct engine *engine;
    struct msg_setting_change *at;
    uint32_t n, max;
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Settings that count without a restart. Those of the breaker order lists by the cooldown. */
static bool is_live(const char *key)
{
    return (begins(key, "policy.") && !begins(key, "policy.breaker.")) || begins(key, "agents.") ||
           begins(key, "schedules.") || strcmp(key, "keys") == 0 || strcmp(key, "rates") == 0 ||
           strcmp(key, "groups") == 0 || strcmp(key, "prices") == 0 ||
           strcmp(key, "allowEndpoints") == 0 || strcmp(key, "planner") == 0 ||
           strcmp(key, "log.level") == 0 || begins(key, "log.agent");
}

/* Copies of the texts last as long as the cycle. */
static void add_change(struct changes *c, const char *key, const char *running, const char *file)
{
    struct str old = str_from(running);
    struct str new = str_from(file);

    if (c->n == c->max) {
        return;
    }
    old.len = old.len > VALUE_BYTES ? 0 : old.len; /* too long to be shown */
    new.len = new.len > VALUE_BYTES ? 0 : new.len;
    c->at[c->n] = (struct msg_setting_change){.key = engine_cycle_text(c->engine, str_from(key)),
                                              .running = engine_cycle_text(c->engine, old),
                                              .file = engine_cycle_text(c->engine, new),
                                              .live = is_live(key)};
    c->n++;
}

static const char *value_of(const struct config *c, const char *key)
{
    uint32_t n;
    const struct config_entry *e = config_entries(c, &n);

    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(e[i].key, key) == 0) {
            return e[i].value;
        }
    }
    return "";
}

static void compare_settings(const struct reload *r, const struct config *new, struct changes *c)
{
    uint32_t n;
    const struct config_entry *e = config_entries(new, &n);

    for (uint32_t i = 0; i < n; i++) {
        const char *running = value_of(is_live(e[i].key) ? r->live : r->started, e[i].key);
        if (!begins(e[i].key, "agents.") && strcmp(e[i].key, "state") != 0 &&
            strcmp(running, e[i].value) != 0) {
            add_change(c, e[i].key, running, e[i].value);
        }
    }
    if (r->live->n_groups > 0 && new->n_groups == 0) {
        add_change(c, "groups", value_of(r->live, "groups"), "");
    }
}

static const struct config_agent *agent_of(const struct config *c, const char *agent_id)
{
    for (uint32_t i = 0; i < c->n_agents; i++) {
        if (strcmp(c->agents[i].agent_id, agent_id) == 0) {
            return &c->agents[i];
        }
    }
    return NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* NULL is an empty list. */
static bool same_list(const char *const *a, const char *const *b)
{
    static const char *const none[] = {NULL};

    a = a != NULL ? a : none;
    b = b != NULL ? b : none;
    for (; *a != NULL && *b != NULL; a++, b++) {
        if (strcmp(*a, *b) != 0) {
            return false;
        }
    }
    return *a == *b;
}

static void compare_agent(const struct config_agent *a, const struct config_agent *b,
                          struct changes *c)
{
    const struct {
        const char *member;
        bool same;
        bool restarts;
    } members[] = {{"command", same_list(a->command, b->command), true},
                   {"env", same_list(a->env, b->env), true},
                   {"cwd", same_text(a->cwd, b->cwd), true},
                   {"instances", a->instances.min == b->instances.min &&
                                     a->instances.max == b->instances.max &&
                                     a->instances.queue == b->instances.queue &&
                                     a->instances.up_ms == b->instances.up_ms &&
                                     a->instances.down_ms == b->instances.down_ms},
                   {"group", same_text(a->group, b->group)},
                   {"startMs", a->start_ms == b->start_ms},
                   {"secrets", same_list(a->handover, b->handover), true},
                   {"limits", same_list(a->apart, b->apart), true},
                   {"capacity", a->capacity == b->capacity, true},
                   {"restart", a->restart == b->restart},
                   {"graceMs", a->grace_ms == b->grace_ms},
                   {"settings", same_text(a->settings_json, b->settings_json), true},
                   {"key", same_text(a->held_back, b->held_back)}};
    char key[KEY_BYTES];

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (!members[i].same) {
            (void)snprintf(key, sizeof key, "agents.%s.%s", a->agent_id, members[i].member);
            add_change(c, key, "",
                       members[i].restarts ? "changed; its processes are restarted" : "changed");
        }
    }
}

static void compare_agents(const struct config *old, const struct config *new, struct changes *c)
{
    char key[KEY_BYTES];

    for (uint32_t i = 0; i < new->n_agents; i++) {
        const struct config_agent *was = agent_of(old, new->agents[i].agent_id);
        if (was != NULL) {
            compare_agent(was, &new->agents[i], c);
            continue;
        }
        (void)snprintf(key, sizeof key, "agents.%s", new->agents[i].agent_id);
        add_change(c, key, "", "added");
    }
    for (uint32_t i = 0; i < old->n_agents; i++) {
        if (agent_of(new, old->agents[i].agent_id) == NULL) {
            (void)snprintf(key, sizeof key, "agents.%s", old->agents[i].agent_id);
            add_change(c, key, "", "removed");
        }
    }
}

static void compare_prices(const struct config *old, const struct config *new, struct changes *c)
{
    bool same = old->n_prices == new->n_prices;

    for (uint32_t i = 0; same && i < new->n_prices; i++) {
        const struct config_price *a = &old->prices[i];
        const struct config_price *b = &new->prices[i];
        same = strcmp(a->agent_id, b->agent_id) == 0 && a->input == b->input &&
               a->output == b->output && a->cached == b->cached;
    }
    if (!same) {
        add_change(c, "prices", "", "");
    }
}

static void compare_rules(const struct config *old, const struct config *new, struct changes *c)
{
    bool keys = old->n_keys == new->n_keys;
    bool rates = old->n_rates == new->n_rates;

    for (uint32_t i = 0; keys && i < new->n_keys; i++) {
        const struct config_key *a = &old->keys[i];
        const struct config_key *b = &new->keys[i];
        keys = strcmp(a->key, b->key) == 0 && a->max == b->max && a->n == b->n &&
               a->per_ms == b->per_ms;
    }
    for (uint32_t i = 0; rates && i < new->n_rates; i++) {
        const struct config_rate *a = &old->rates[i];
        const struct config_rate *b = &new->rates[i];
        rates = strcmp(a->agent_id, b->agent_id) == 0 && a->n == b->n && a->per_ms == b->per_ms;
    }
    if (!keys) {
        add_change(c, "keys", "", "");
    }
    if (!rates) {
        add_change(c, "rates", "", "");
    }
}

static void compare_peers(const struct reload *r, const struct config *new, struct changes *c)
{
    const struct config *old = r->started;
    bool same = r->live->n_allow_endpoints == new->n_allow_endpoints;

    if (old->n_allow_uids != new->n_allow_uids ||
        memcmp(old->allow_uids, new->allow_uids, new->n_allow_uids * sizeof(uint32_t)) != 0) {
        add_change(c, "allowUids", "", "");
    }
    for (uint32_t i = 0; same && i < new->n_allow_endpoints; i++) {
        same = strcmp(r->live->allow_endpoints[i], new->allow_endpoints[i]) == 0;
    }
    if (!same) {
        add_change(c, "allowEndpoints", "", "");
    }
}

static const struct config_schedule *schedule_of(const struct config *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_schedules; i++) {
        if (strcmp(c->schedules[i].name, name) == 0) {
            return &c->schedules[i];
        }
    }
    return NULL;
}

static void compare_schedules(const struct config *old, const struct config *new, struct changes *c)
{
    char key[KEY_BYTES];

    for (uint32_t i = 0; i < new->n_schedules; i++) {
        const struct config_schedule *was = schedule_of(old, new->schedules[i].name);
        (void)snprintf(key, sizeof key, "schedules.%s", new->schedules[i].name);
        if (was == NULL || strcmp(was->json, new->schedules[i].json) != 0) {
            add_change(c, key, "", was == NULL ? "added" : "changed");
        }
    }
    for (uint32_t i = 0; i < old->n_schedules; i++) {
        (void)snprintf(key, sizeof key, "schedules.%s", old->schedules[i].name);
        if (schedule_of(new, old->schedules[i].name) == NULL) {
            add_change(c, key, "", "removed");
        }
    }
}

/* Of several shards, each has the schedules whose names hash to it. */
static bool is_here(const struct engine *engine, const char *name)
{
    const struct engine_options *opt = engine_options(engine);

    return opt->shards < 2 || shard_of_key(str_from(name), opt->shards) == opt->shard;
}

enum bt_code reload_schedules(const struct engine *engine, struct schedules *schedules,
                              const struct config *c, struct bt_error *err)
{
    struct schedule_declared *list = calloc(c->n_schedules + 1, sizeof *list);
    uint32_t n = 0;
    enum bt_code code;

    if (list == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for schedules");
    }
    for (uint32_t i = 0; i < c->n_schedules; i++) {
        if (is_here(engine, c->schedules[i].name)) {
            list[n++] = (struct schedule_declared){c->schedules[i].name, c->schedules[i].json};
        }
    }
    code = schedules_declare(schedules, list, n, err);
    free(list);
    return code;
}

/* ---- the hook ---- */

static enum bt_code apply(struct engine *engine, struct reload *r, const struct config *new,
                          struct bt_error *err)
{
    const struct plan_defaults defaults = reload_defaults(&new->policy);
    struct engine_tuning tuning = {.heartbeat_ms = new->policy.heartbeat_ms,
                                   .lease_ms = new->policy.lease_ms,
                                   .agent_wait_ms = new->policy.agent_wait_ms,
                                   .cancel_grace_ms = new->policy.cancel_grace_ms,
                                   .n_prices = new->n_prices,
                                   .agent_endpoints = new->allow_endpoints,
                                   .n_agent_endpoints = new->n_allow_endpoints};
    struct token_price *prices = NULL;
    struct engine_rule *rules = NULL;

    if (children_prices(new, &prices, err) != BT_OK) {
        return err->code;
    }
    if (children_rules(new, &rules, &tuning.n_rules, err) != BT_OK) {
        free(prices);
        return err->code;
    }
    tuning.prices = prices;
    tuning.rules = rules;
    engine_set_defaults(engine, &defaults, new->planner);
    if (engine_retune(engine, &tuning, err) != BT_OK ||
        reload_schedules(engine, engine_hooks(engine)->schedules, new, err) != BT_OK) {
        return err->code;
    }
    log_setup(new->log.level, NULL, NULL);
    /* The one before is kept: plans that are being made, and agents, name its texts. */
    r->live = new;
    roster_reload(r->roster, new);
    log_info("supervisor.reloaded", "settings that need no restart were applied");
    return BT_OK;
}

enum bt_code reload_config(struct engine *engine, struct str file, bool check,
                           struct msg_setting_change *ret, uint32_t max, uint32_t *ret_n,
                           struct bt_error *err)
{
    struct reload *r = engine_hooks(engine)->reload_of;
    struct config_request request = *r->request;
    struct changes c = {.engine = engine, .at = ret, .max = max};
    struct config *new = NULL;
    char path[FILE_BYTES];
    enum bt_code code;

    if (file.len > 0) {
        (void)snprintf(path, sizeof path, "%.*s", STR_ARG(file));
        request.file = path;
    }
    code = config_load(&request, &new, NULL, err);
    if (code != BT_OK) {
        return code;
    }
    compare_settings(r, new, &c);
    compare_agents(r->live, new, &c);
    compare_prices(r->live, new, &c);
    compare_rules(r->live, new, &c);
    compare_schedules(r->live, new, &c);
    compare_peers(r, new, &c);
    *ret_n = c.n;
    if (!check) {
        return apply(engine, r, new, err);
    }
    config_free(new);
    return BT_OK;
}

void reload_on_signal(struct engine *engine)
{
    struct msg_setting_change changes[CHANGES_LOGGED];
    struct bt_error err;
    uint32_t n = 0;

    if (reload_config(engine, STR_LIT(""), false, changes, CHANGES_LOGGED, &n, &err) != BT_OK) {
        log_err("supervisor.hup", "%s; nothing was changed", err.msg);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        log_info("supervisor.hup", "setting=%.*s %s", STR_ARG(changes[i].key),
                 changes[i].live ? "applied" : "needs a restart");
    }
}

#include "supervisor/children.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STABLE_MS = 30000, GATEWAY_FILES = 4096 /* 2,048 connections, and lanes */ };

void child_name(const char *agent_id, uint32_t number, char ret[SPAWN_NAME_MAX + 1])
{
    (void)snprintf(ret, SPAWN_NAME_MAX + 1, "%s#%u", agent_id, number);
}

uint32_t child_number(const char *name, const char *agent_id)
{
    const size_t n = strlen(agent_id);
    unsigned long number;
    char *end = NULL;

    if (strncmp(name, agent_id, n) != 0 || name[n] != '#') {
        return 0;
    }
    number = strtoul(name + n + 1, &end, 10);
    return *end == 0 && number >= 1 && number <= CHILDREN_PER_AGENT ? (uint32_t)number : 0;
}

static uint64_t seed(void)
{
    const struct uuid id = uuid_new();
    uint64_t n;

    memcpy(&n, id.b + 8, sizeof n);
    return n;
}

static struct policy_settings policy_of(const struct config *c, const struct config_agent *a)
{
    struct policy_settings policy = policy_defaults();

    policy.restart = a->restart;
    policy.intensity = c->policy.restart.intensity;
    policy.period_ms = c->policy.restart.period_ms;
    policy.backoff_min_ms = c->policy.restart.backoff_min_ms;
    policy.backoff_max_ms = c->policy.restart.backoff_max_ms;
    policy.jitter_permille = c->policy.restart.jitter_permille;
    policy.seed = seed();
    policy.stable_ms = STABLE_MS;
    policy.grace_ms = a->grace_ms;
    policy.start_deadline_ms = a->start_ms;
    return policy;
}

struct spawn_spec child_spec(const struct config *c, uint32_t agent, uint32_t number,
                             const char *name)
{
    const struct config_agent *a = &c->agents[agent];

    return (struct spawn_spec){.name = name,
                               .agent_id = a->agent_id,
                               .argv = a->command,
                               .env = a->env,
                               .settings = a->settings_json,
                               .capacity = a->capacity,
                               .cwd = a->cwd,
                               .handover = a->handover,
                               .apart = a->apart,
                               .policy = policy_of(c, a),
                               .group = a->group,
                               .place = agent * CHILDREN_PER_AGENT + number,
                               .log_bytes = c->log.agent_bytes,
                               .log_files = c->log.agent_files};
}

struct spawn_spec child_gateway_spec(const struct config *c)
{
    const struct config_agent like = {.restart = POLICY_PERMANENT,
                                      .grace_ms = c->policy.shutdown_grace_ms,
                                      .start_ms = c->policy.shutdown_grace_ms};

    return (struct spawn_spec){.name = CHILD_GATEWAY,
                               .agent_id = CHILD_GATEWAY,
                               .argv = c->gateway.command,
                               .nofile = GATEWAY_FILES,
                               .policy = policy_of(c, &like),
                               .log_bytes = c->log.agent_bytes,
                               .log_files = c->log.agent_files};
}

size_t child_groups(const struct config *c, struct spawn_group_spec ret[SPAWN_GROUPS_MAX])
{
    for (uint32_t i = 0; i < c->n_groups; i++) {
        const struct config_group *g = &c->groups[i];
        ret[i] =
            (struct spawn_group_spec){.name = g->name,
                                      .set = {.strategy = g->strategy,
                                              .intensity = g->intensity,
                                              .period_ms = g->period_ms,
                                              .backoff_min_ms = c->policy.restart.backoff_min_ms,
                                              .backoff_max_ms = c->policy.restart.backoff_max_ms,
                                              .jitter_permille = c->policy.restart.jitter_permille,
                                              .seed = seed(),
                                              .stable_ms = STABLE_MS}};
    }
    return c->n_groups;
}

static void add_user(uint32_t *users, uint32_t *n, uint32_t uid)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (users[i] == uid) {
            return;
        }
    }
    users[(*n)++] = uid;
}

/* Users who may connect: those of allowUids, who may also follow the bus, and those that agents run
 * as. */
static bool add_users(const struct config *c, struct daemon_options *opt)
{
    uint32_t *users = calloc((size_t)c->n_allow_uids + c->n_agents + 1, sizeof *users);
    uint32_t n = 0;

    if (users == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < c->n_allow_uids; i++) {
        add_user(users, &n, c->allow_uids[i]);
    }
    opt->n_followers = n;
    for (uint32_t i = 0; i < c->n_agents; i++) {
        for (const char *const *at = c->agents[i].apart; at != NULL && *at != NULL; at++) {
            unsigned uid;
            if (sscanf(*at, "user=%u:", &uid) == 1) {
                add_user(users, &n, uid);
            }
        }
    }
    opt->allow_uids = users;
    opt->n_allow_uids = n;
    return true;
}

enum bt_code children_prices(const struct config *c, struct token_price **ret, struct bt_error *err)
{
    struct token_price *prices = calloc(c->n_prices + 1, sizeof *prices);

    if (prices == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %u prices", c->n_prices);
    }
    for (uint32_t i = 0; i < c->n_prices; i++) {
        prices[i] = (struct token_price){c->prices[i].agent_id, c->prices[i].input,
                                         c->prices[i].output, c->prices[i].cached};
    }
    *ret = prices;
    return BT_OK;
}

enum bt_code children_rules(const struct config *c, struct engine_rule **ret, uint32_t *ret_n,
                            struct bt_error *err)
{
    struct engine_rule *rules = calloc(c->n_keys + c->n_rates + 1, sizeof *rules);

    if (rules == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %u keys", c->n_keys);
    }
    *ret_n = 0;
    for (uint32_t i = 0; i < c->n_keys; i++) {
        const struct config_key *k = &c->keys[i];
        rules[(*ret_n)++] = (struct engine_rule){
            .name = k->key, .of_key = true, .max = k->max, .n = k->n, .per_ms = k->per_ms};
    }
    for (uint32_t i = 0; i < c->n_rates; i++) {
        const struct config_rate *r = &c->rates[i];
        rules[(*ret_n)++] =
            (struct engine_rule){.name = r->agent_id, .n = r->n, .per_ms = r->per_ms};
    }
    *ret = rules;
    return BT_OK;
}

enum bt_code children_of_config(const struct config *c, struct daemon_options *opt,
                                struct bt_error *err)
{
    struct token_price *prices = NULL;
    struct engine_rule *rules = NULL;

    opt->engine.agent_endpoints = c->allow_endpoints;
    opt->engine.n_agent_endpoints = c->n_allow_endpoints;
    if (!add_users(c, opt)) {
        return err_set(err, BT_NOMEM, "out of memory for %u users", c->n_agents);
    }
    if (children_prices(c, &prices, err) != BT_OK) {
        return err->code;
    }
    opt->engine.prices = prices;
    if (children_rules(c, &rules, &opt->engine.n_rules, err) != BT_OK) {
        return err->code;
    }
    opt->engine.rules = rules;
    opt->engine.n_prices = c->n_prices;
    opt->config = c;
    return BT_OK;
}

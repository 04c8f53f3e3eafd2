#include "supervisor/children.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool add_instances(const struct config *c, const struct config_agent *a,
                          struct spawn_spec *specs, size_t *n)
{
    for (uint32_t i = 0; i < a->instances; i++) {
        struct policy_settings policy = policy_defaults();
        char name[SPAWN_NAME_MAX + 1];
        char *kept;
        (void)snprintf(name, sizeof name, "%s#%u", a->agent_id, i + 1);
        kept = strdup(name);
        if (kept == NULL) {
            return false;
        }
        policy.restart = a->restart;
        policy.intensity = c->policy.restart.intensity;
        policy.period_ms = c->policy.restart.period_ms;
        policy.backoff_min_ms = c->policy.restart.backoff_min_ms;
        policy.backoff_max_ms = c->policy.restart.backoff_max_ms;
        policy.grace_ms = a->grace_ms;
        specs[(*n)++] = (struct spawn_spec){.name = kept,
                                            .agent_id = a->agent_id,
                                            .argv = a->command,
                                            .env = a->env,
                                            .settings = a->settings_json,
                                            .capacity = a->capacity,
                                            .cwd = a->cwd,
                                            .handover = a->handover,
                                            .apart = a->apart,
                                            .policy = policy};
    }
    return true;
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

/* Users who may connect: those of allowUids, and those that agents run as. */
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

enum bt_code children_of_config(const struct config *c, struct daemon_options *opt,
                                struct bt_error *err)
{
    struct spawn_spec *specs;
    struct token_price *prices;
    const char **ids = calloc(c->n_agents + 1, sizeof *ids);
    struct held_back *held = calloc(c->n_agents + 1, sizeof *held);
    size_t total = 0;

    for (uint32_t i = 0; i < c->n_agents; i++) {
        total += c->agents[i].instances;
    }
    specs = calloc(total + 1, sizeof *specs);
    if (specs == NULL || ids == NULL || held == NULL) {
        free(specs);
        free(ids);
        free(held);
        return err_set(err, BT_NOMEM, "out of memory for %zu agent processes", total);
    }
    for (uint32_t i = 0; i < c->n_agents; i++) {
        ids[i] = c->agents[i].agent_id;
        if (c->agents[i].held_back != NULL) {
            held[opt->n_held_back++] =
                (struct held_back){c->agents[i].agent_id, c->agents[i].held_back};
        } else if (!add_instances(c, &c->agents[i], specs, &opt->n_specs)) {
            return err_set(err, BT_NOMEM, "out of memory for %zu agent processes", total);
        }
    }
    prices = calloc(c->n_prices + 1, sizeof *prices);
    if (prices == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %u prices", c->n_prices);
    }
    for (uint32_t i = 0; i < c->n_prices; i++) {
        prices[i] = (struct token_price){c->prices[i].agent_id, c->prices[i].input,
                                         c->prices[i].output, c->prices[i].cached};
    }
    opt->engine.agent_endpoints = c->allow_endpoints;
    opt->engine.n_agent_endpoints = c->n_allow_endpoints;
    if (!add_users(c, opt)) {
        return err_set(err, BT_NOMEM, "out of memory for %u users", c->n_agents);
    }
    opt->engine.prices = prices;
    opt->engine.n_prices = c->n_prices;
    opt->specs = specs;
    opt->agent_ids = ids;
    opt->held_back = held;
    opt->n_agent_ids = c->n_agents;
    return BT_OK;
}

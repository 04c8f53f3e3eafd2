/* What others ask of the engine, and set in it. */
#include "protocol/base/shard.h"
#include "supervisor/engine/engine_internal.h"

enum { UNKNOWN_WAIT_MS = 2000 };

struct uuid engine_new_id(const struct engine *engine)
{
    return engine->opt.shards == 0 ? uuid_new() : shard_put(uuid_new(), engine->opt.shard);
}

msec engine_now(const struct engine *engine)
{
    return engine->now;
}

msec engine_wall(const struct engine *engine)
{
    return engine->wall;
}

msec engine_started(const struct engine *engine)
{
    return engine->started_mono;
}

msec engine_started_wall(const struct engine *engine)
{
    return engine->started_wall;
}

struct core *engine_core(const struct engine *engine)
{
    return engine->core;
}

struct registry *engine_registry(const struct engine *engine)
{
    return engine->registry;
}

struct journal *engine_journal(const struct engine *engine)
{
    return engine->journal;
}

const struct engine_options *engine_options(const struct engine *engine)
{
    return &engine->opt;
}

const struct engine_hooks *engine_hooks(const struct engine *engine)
{
    return &engine->hooks;
}

const struct engine_stats *engine_stats(const struct engine *engine)
{
    return &engine->stats;
}

struct arena *engine_cycle_arena(struct engine *engine)
{
    return &engine->cycle;
}

const char *engine_control_url(const struct engine *engine)
{
    return link_server_url(engine->server);
}

const char *engine_remote_url(const struct engine *engine)
{
    return engine->remote != NULL ? link_server_url(engine->remote) : "";
}

const char *engine_events_url(const struct engine *engine)
{
    return engine->pub != NULL ? link_pub_url(engine->pub) : "";
}

uint32_t engine_plans_open(const struct engine *engine)
{
    return core_runs_open(engine->core) - engine->jobs - engine->children;
}

void engine_drain(struct engine *engine)
{
    engine->draining = true;
}

bool engine_is_draining(const struct engine *engine)
{
    return engine->draining;
}

/* What a reload of the configuration changes while the daemon runs. */
void engine_set_defaults(struct engine *engine, const struct plan_defaults *defaults,
                         const char *planner)
{
    engine->opt.defaults = *defaults;
    engine->opt.planner = planner;
}

enum bt_code engine_retune(struct engine *engine, const struct engine_tuning *to,
                           struct bt_error *err)
{
    const struct core_tuning core = {.agent_wait_ms = to->agent_wait_ms,
                                     .unknown_wait_ms = to->lease_ms + UNKNOWN_WAIT_MS,
                                     .cancel_grace_ms = to->cancel_grace_ms,
                                     .lease_ms = to->lease_ms,
                                     .suspect_ms = to->lease_ms / 2};

    engine->opt.heartbeat_ms = to->heartbeat_ms;
    engine->opt.lease_ms = to->lease_ms;
    engine->opt.agent_wait_ms = to->agent_wait_ms;
    engine->opt.cancel_grace_ms = to->cancel_grace_ms;
    engine->opt.prices = to->prices;
    engine->opt.n_prices = to->n_prices;
    engine->opt.agent_endpoints = to->agent_endpoints;
    engine->opt.n_agent_endpoints = to->n_agent_endpoints;
    core_retune(engine->core, &core);
    return rates_set(engine, to->rules, to->n_rules, err);
}

/* What a reload of the configuration changes while the daemon runs. */
#include "supervisor/engine/engine_internal.h"

enum { UNKNOWN_WAIT_MS = 2000 };

void engine_set_defaults(struct engine *engine, const struct plan_defaults *defaults,
                         const char *planner)
{
    engine->opt.defaults = *defaults;
    engine->opt.planner = planner;
}

void engine_retune(struct engine *engine, const struct engine_tuning *to)
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
}

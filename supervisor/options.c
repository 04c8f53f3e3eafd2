#include "supervisor/options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/node/node.h"
#include "supervisor/reload.h"

enum { BALLAST_BYTES = 16 * 1024 * 1024 };

const char *options_artifact_root(const struct config *c, struct buf *path)
{
    size_t n = strlen(c->state_dir);

    while (n > 1 && c->state_dir[n - 1] == '/') {
        n--;
    }
    buf_add(path, c->state_dir, n);
    buf_add_cstr(path, "/" ARTIFACT_DIR);
    if (path->bad == BT_OK && utf8_valid((const char *)path->at, path->len)) {
        return buf_cstr(path);
    }
    log_warn("artifacts.off",
             "agents cannot write artifacts: the path of the state directory is not UTF-8, or has "
             "more than %d bytes",
             OPTIONS_ARTIFACT_BYTES);
    return NULL;
}

void options_node(const struct config *c, char ret[JOURNAL_NODE_MAX + 1])
{
    (void)snprintf(ret, JOURNAL_NODE_MAX + 1, "%s", c->fleet.node);
    if (ret[0] == 0 && gethostname(ret, JOURNAL_NODE_MAX + 1) != 0) {
        (void)snprintf(ret, JOURNAL_NODE_MAX + 1, "unknown");
    }
}

/* The state directory of a shard is STATE/shards/N of its node. */
static void apply_shard(const struct arguments *a, const struct config *c, struct shard_places *p,
                        struct daemon_options *opt)
{
    const uint32_t lanes = c->remote.lane_last - (uint32_t)c->remote.lane_first + 1;
    const uint16_t each = (uint16_t)(lanes / (a->shards == 0 ? 1 : a->shards));
    char *cut;

    config_hash(c, p->hash);
    opt->fleet.config = p->hash;
    opt->engine.shards = c->fleet.url[0] == 0 ? 0 : 1;
    if (a->shards < 2) {
        return;
    }
    node_url(c->listen_control, a->shard, p->control, sizeof p->control);
    node_url(c->listen_events, a->shard, p->events, sizeof p->events);
    node_url(c->remote.url, a->shard, p->remote, sizeof p->remote);
    options_node(c, p->node);
    (void)snprintf(p->node_dir, sizeof p->node_dir, "%s", c->state_dir);
    for (int i = 0; i < 2 && (cut = strrchr(p->node_dir, '/')) != NULL; i++) {
        *cut = 0;
    }
    (void)snprintf(p->map, sizeof p->map, "%.4000s/fleet.json", p->node_dir);
    opt->engine.control_url = p->control;
    opt->engine.events_url = p->events;
    opt->engine.remote_url = p->remote;
    if (c->remote.lane_first != 0) {
        opt->engine.lane_first = (uint16_t)(c->remote.lane_first + a->shard * each);
        opt->engine.lane_last = (uint16_t)(opt->engine.lane_first + each - 1);
    }
    opt->engine.shard = a->shard;
    opt->engine.shards = a->shards;
    opt->engine.fleet_map = p->map;
    opt->fleet.shard = a->shard;
    opt->fleet.shards = a->shards;
    opt->fleet.node = p->node;
    opt->fleet.node_dir = p->node_dir;
}

void options_of(const struct config *c, const struct arguments *a, const char *artifacts,
                const char *token, struct reload *reload, struct shard_places *places,
                struct daemon_options *ret)
{
    *ret = (struct daemon_options){
        .engine = {.token = str_from(token),
                   .auth_required = c->auth == CONFIG_AUTH_REQUIRED,
                   .state_dir = c->state_dir,
                   .artifact_root = artifacts,
                   .artifact_max_bytes = c->artifacts.max_bytes,
                   .control_url = c->listen_control,
                   .events_url = c->listen_events,
                   .remote_url = c->remote.url,
                   .remote_cert = c->remote.cert,
                   .remote_ca = c->remote.ca,
                   .lane_first = c->remote.lane_first,
                   .lane_last = c->remote.lane_last,
                   .durability = c->fleet.url[0] != 0 ? c->fleet.durability : c->durability,
                   .defaults = reload_defaults(&c->policy),
                   .planner = c->planner,
                   .heartbeat_ms = c->policy.heartbeat_ms,
                   .lease_ms = c->policy.lease_ms,
                   .agent_wait_ms = c->policy.agent_wait_ms,
                   .cancel_grace_ms = c->policy.cancel_grace_ms,
                   .plans_max = c->limits.max_open_plans,
                   .agents_max = c->limits.max_agents,
                   .instances_max = c->limits.max_instances,
                   .in_flight = c->limits.in_flight,
                   .in_flight_agent = c->limits.in_flight_agent,
                   .in_flight_session = c->limits.in_flight_session,
                   .breaker_failures = c->policy.breaker.failures,
                   .breaker_cooldown_ms = c->policy.breaker.cooldown_ms,
                   .breaker_cooldown_max_ms = c->policy.breaker.cooldown_max_ms,
                   .result_max = c->limits.max_result_bytes},
        .fleet = {c->fleet.url, c->fleet.node, (uint32_t)c->fleet.lease_ms},
        .artifacts = {.root = artifacts,
                      .keep_ms = c->artifacts.keep_ms,
                      .max_bytes = c->artifacts.max_bytes},
        .retention = {.completed_ms = c->retention.completed_ms,
                      .failed_ms = c->retention.failed_ms,
                      .sessions_ms = c->retention.sessions_ms,
                      .events_ms = c->retention.events_ms,
                      .gone_ms =
                          retention_gone_age(c->retention.completed_ms, c->retention.failed_ms),
                      .max_bytes = c->retention.max_bytes},
        .inbox = c->limits.inbox,
        .ballast_bytes = BALLAST_BYTES,
        .was_full = a->was_full,
        .ready_fd = a->ready_fd,
        .reload = reload,
    };
    apply_shard(a, c, places, ret);
}

const struct config *options_config(const struct arguments *a, const struct config *c,
                                    struct shard_places *places)
{
    if (a->shards < 2) {
        return c;
    }
    places->config = *c;
    places->config.gateway.command = NULL;
    return &places->config;
}

const char *options_not_with_shards(const struct config *c)
{
    const char *colon = strrchr(c->remote.url, ':');

    if (c->remote.url[0] != 0 && (colon == NULL || strcmp(colon, ":0") == 0)) {
        return "listen.remote: with several shards it needs a port; shard N has the port that is N "
               "higher";
    }
    return NULL;
}

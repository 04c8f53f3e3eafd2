/* Between the engine, which knows instances, and the spawner, which knows processes. */
#include "supervisor/processes.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "protocol/base/shard.h"
#include "protocol/base/utf8.h"
#include "protocol/client/state.h"
#include "supervisor/children.h"
#include "supervisor/engine/ports.h"
#include "supervisor/node/node.h"

/* Texts for the core and for people: cut between characters, and a byte that is no UTF-8, as a path
 * may have, becomes '?'. */
static void put_text(char *ret, size_t cap, const char *fmt, ...) BT_PRINTF(3, 4);
static void put_text(char *ret, size_t cap, const char *fmt, ...)
{
    va_list args;
    size_t len;
    int n;

    va_start(args, fmt);
    n = vsnprintf(ret, cap, fmt, args);
    va_end(args);
    ret[n < 0 ? 0 : cap - 1] = 0;
    len = strlen(ret);
    if (n > 0 && (size_t)n >= cap) {
        while (len > 0 && ((unsigned char)ret[len - 1] & 0xc0) == 0x80) {
            len--;
        }
        len -= len > 0 && (unsigned char)ret[len - 1] >= 0xc0;
        ret[len] = 0;
    }
    for (size_t at = utf8_prefix(ret, len); at < len; at += utf8_prefix(ret + at, len - at)) {
        ret[at++] = '?';
    }
}

/* An instance id as the spawner writes it; "" when it is none. */
static struct str as_spawned(struct str instance_id, char text[UUID_TEXT_LEN + 1])
{
    struct uuid id;

    if (!uuid_parse(instance_id, &id)) {
        return (struct str){"", 0};
    }
    uuid_format(id, text);
    return str_from(text);
}

static bool process_is_ours(void *of, struct str instance_id)
{
    const struct processes *p = of;
    char text[UUID_TEXT_LEN + 1];

    return spawn_owns(p->spawn, as_spawned(instance_id, text));
}

static void process_kill(void *of, struct str instance_id)
{
    struct processes *p = of;
    char text[UUID_TEXT_LEN + 1];

    (void)spawn_kill_instance(p->spawn, as_spawned(instance_id, text), "did not stop its work",
                              engine_now(p->engine));
}

enum { SETTLED_MS = 2000 }; /* after the lease: then its attempts are given up, too */

static void process_lost(void *of, struct str instance_id)
{
    struct processes *p = of;
    char text[UUID_TEXT_LEN + 1];

    spawn_lost(p->spawn, as_spawned(instance_id, text),
               engine_options(p->engine)->lease_ms + SETTLED_MS, engine_now(p->engine));
}

static enum bt_code process_order(void *of, const struct process_order *order,
                                  struct process_names *ret, struct bt_error *err)
{
    return roster_order(((struct processes *)of)->roster, order, ret, err);
}

static bool process_view(void *of, struct str agent_id, uint32_t ix, struct process_view *ret)
{
    return roster_view(((struct processes *)of)->roster, agent_id, ix, ret);
}

static bool process_about(void *of, struct str agent_id, struct agent_process *ret)
{
    const struct processes *p = of;
    const char *held_back = roster_held_back(p->roster, agent_id);
    bool found = held_back != NULL;

    *ret = (struct agent_process){.why = ""};
    if (found) {
        put_text(ret->why, sizeof ret->why, "not started: %s", held_back);
    }
    for (size_t i = 0; i < spawn_count(p->spawn); i++) {
        struct spawn_info info;
        spawn_describe(p->spawn, i, &info);
        if (str_is(agent_id, info.agent_id) && (!found || info.reason[0] != 0)) {
            found = true;
            /* The one place where a line of its output is shown: to the client, kept nowhere. */
            put_text(ret->why, sizeof ret->why, "%s%s%s%s",
                     info.parked ? "stopped by an operator; " : "", info.reason,
                     info.last_line[0] != 0 ? ": " : "", info.last_line);
            (void)snprintf(ret->log, sizeof ret->log, "%s", info.log);
        }
    }
    return found;
}

struct process_hooks processes_hooks(struct processes *p)
{
    return (struct process_hooks){
        .of = p,
        .is_ours = process_is_ours,
        .kill = process_kill,
        .lost = process_lost,
        .about = process_about,
        .view = process_view,
        .order = process_order,
    };
}

/* ---- agents that do not come any more ---- */

static void feed_gave_up(struct processes *p, struct str agent_id, const char *why)
{
    const uint32_t agent =
        registry_agent_add(engine_registry(p->engine), agent_id, engine_now(p->engine));
    struct core_event ev = {CORE_EV_INIT(GAVE_UP, process, .agent = agent), .text = str_from(why)};

    if (agent != REGISTRY_NONE) {
        engine_tell(p->engine, &ev);
    }
}

static bool prove(void *self, struct str instance_id, struct str agent_id,
                  char ret_id[SPAWN_CREDENTIAL_BYTES], char ret_key[SPAWN_CREDENTIAL_BYTES])
{
    struct processes *p = self;

    keeper_add(p->keeper, instance_id, agent_id);
    return process_prove(&p->keys, instance_id, agent_id, ret_id, ret_key);
}

enum bt_code processes_open(struct processes *p, struct bt_error *err)
{
    const char *dir = p->keeper->dir;

    return process_keys_open(dir != NULL ? dir : engine_options(p->engine)->state_dir, &p->keys,
                             err);
}

/* Where a shard of this node listens when it is led here; "" = at any port. */
static void address_of(const struct processes *p, uint32_t shard, char ret[STATE_URL_MAX + 1])
{
    char url[STATE_URL_MAX + 1];
    char dir[PATH_MAX];

    (void)snprintf(dir, sizeof dir, "%.4000s/shards/%u", p->keeper->dir, shard);
    node_url(roster_config(p->roster)->listen_control, shard, url, sizeof url);
    ports_url(url, ports_of(dir), ret, STATE_URL_MAX + 1);
    if (strcmp(strrchr(ret, ':'), ":0") == 0) {
        ret[0] = 0;
    }
}

enum bt_code processes_start(struct processes *p, struct bt_error *err)
{
    const struct spawn_prover prover = {p, prove};
    const uint32_t shards = engine_options(p->engine)->shards;
    char urls[SHARDS_MAX][STATE_URL_MAX + 1];
    const char *at[SHARDS_MAX];
    enum bt_code code;

    for (uint32_t i = 0; p->keeper->dir != NULL && i < shards; i++) {
        at[i] = urls[i];
        address_of(p, i, urls[i]);
        if (i == engine_options(p->engine)->shard) {
            at[i] = engine_control_url(p->engine);
        }
    }
    code = spawn_introduce(p->spawn, engine_control_url(p->engine),
                           p->keeper->dir != NULL ? at : NULL, &prover, err);

    return code == BT_OK ? roster_start(p->roster, err) : code;
}

void processes_adopted(struct processes *p)
{
    for (uint32_t i = 0; i < registry_instances(engine_registry(p->engine)); i++) {
        struct instance_view view;
        char id[UUID_TEXT_LEN + 1];
        if (registry_instance_view(engine_registry(p->engine), i, &view)) {
            uuid_format(view.id, id);
            (void)spawn_registered(p->spawn, str_from(id), engine_now(p->engine));
        }
    }
}

/* Another shard of the node starts them. */
static void credentials_of_others(struct processes *p, struct auth_store *store)
{
    const struct session_time time = {engine_now(p->engine), engine_wall(p->engine)};
    struct credential *at = NULL;
    uint32_t n = 0;

    if (keeper_read(p->keeper, &p->keys, &at, &n)) {
        auth_store_processes(store, at, n, time);
    }
}

static void tell_others(const struct processes *p)
{
    struct buf lines;

    buf_init(&lines, LIMIT_INSTANCES * (size_t)(UUID_TEXT_LEN + LIMIT_ID_BYTES + 2));
    for (size_t i = 0; i < spawn_count(p->spawn); i++) {
        struct spawn_info info;
        spawn_describe(p->spawn, i, &info);
        if (info.instance_id[0] != 0) {
            buf_printf(&lines, "%s %s\n", info.instance_id, info.agent_id);
        }
    }
    keeper_write(p->keeper, buf_str(&lines));
    buf_done(&lines);
}

void processes_credentials(struct processes *p, struct auth_store *store)
{
    const struct session_time time = {engine_now(p->engine), engine_wall(p->engine)};
    const size_t n = spawn_count(p->spawn);
    struct credential *at;
    uint32_t live = 0;

    if (!keeper_has(p->keeper)) {
        credentials_of_others(p, store);
        return;
    }
    if (p->known == spawn_changes(p->spawn)) {
        return;
    }
    at = calloc(n + 1, sizeof *at);
    for (size_t i = 0; i < n && at != NULL; i++) {
        struct spawn_info info;
        spawn_describe(p->spawn, i, &info);
        live += info.instance_id[0] != 0 && process_credential(&p->keys, str_from(info.instance_id),
                                                               str_from(info.agent_id), &at[live]);
    }
    if (at == NULL) {
        log_warn("auth.processes", "out of memory for the credentials of processes");
        return;
    }
    p->known = spawn_changes(p->spawn);
    tell_others(p);
    auth_store_processes(store, at, live, time);
}

void processes_hold_back(struct processes *p)
{
    const struct config *c = roster_config(p->roster);
    char why[REGISTRY_FAILURE_BYTES];
    char held[512];

    for (uint32_t i = 0; i < c->n_agents; i++) {
        if (c->agents[i].held_back != NULL) {
            put_text(held, sizeof held, "%s", c->agents[i].held_back);
            put_text(why, sizeof why,
                     "it was not started: %.*s; correct it, then start the daemon again "
                     "(see also: baton doctor)",
                     (int)utf8_cut(held, strlen(held), 400), held);
            feed_gave_up(p, str_from(c->agents[i].agent_id), why);
        }
    }
}

/* The children of one agent. */
struct siblings {
    bool others;              /* one but the named is there, or will be started */
    struct spawn_info named;  /* the child of the name; no name = none is */
    struct spawn_info failed; /* one that gave up */
};

static void siblings_of(const struct processes *p, const char *name, const char *agent_id,
                        struct siblings *ret)
{
    *ret = (struct siblings){.others = false};
    for (size_t i = 0; i < spawn_count(p->spawn); i++) {
        struct spawn_info info;
        spawn_describe(p->spawn, i, &info);
        if (strcmp(info.agent_id, agent_id) != 0) {
            continue;
        }
        if (info.state == POLICY_FAILED) {
            ret->failed = info;
        }
        if (strcmp(info.name, name) == 0) {
            ret->named = info;
        } else {
            ret->others =
                ret->others || (info.state != POLICY_FAILED && info.state != POLICY_STOPPED);
        }
    }
}

/* The core keeps it, and plans and the journal do for good: never a line of the agent's output,
 * which may have secrets in it. */
static void feed_failed(struct processes *p, const struct spawn_info *last, const char *reason)
{
    char why[REGISTRY_FAILURE_BYTES];
    const size_t log = strlen(last->log);
    const size_t rest = strlen(reason) + strlen(last->agent_id) + 64;
    const bool fits = log + rest < sizeof why && utf8_valid(last->log, log);

    put_text(why, sizeof why, "it gave up after %s; see %s%sbaton agents %s", reason,
             fits ? last->log : "", fits ? "; or: " : "", last->agent_id);
    feed_gave_up(p, str_from(last->agent_id), why);
}

static void child_gave_up(struct processes *p, const struct spawn_event *ev)
{
    struct siblings of;

    siblings_of(p, ev->name, ev->agent_id, &of);
    if (!of.others && of.named.name != NULL) {
        feed_failed(p, &of.named, ev->reason);
    }
}

/* A child that may end and did was perhaps the last hope: the others gave up before. One that we
 * stop comes again with the next daemon. */
static void child_ended(struct processes *p, const struct spawn_event *ev)
{
    char reason[SPAWN_REASON_MAX + 64];
    struct siblings of;

    siblings_of(p, ev->name, ev->agent_id, &of);
    if (engine_is_draining(p->engine) || of.others || of.failed.name == NULL ||
        of.named.name == NULL || of.named.state != POLICY_STOPPED) {
        return;
    }
    put_text(reason, sizeof reason, "crashes of %s; the last: %s", of.failed.name,
             of.failed.reason);
    feed_failed(p, &of.failed, reason);
}

static void instance_gone(struct processes *p, const struct spawn_event *ev)
{
    struct core_event gone = {.type = CORE_GONE, .text = str_from(ev->reason)};
    struct instance_view view;

    if (!uuid_parse(str_from(ev->instance_id), &gone.instance)) {
        return;
    }
    gone.slot = registry_instance(engine_registry(p->engine), gone.instance);
    if (gone.slot == REGISTRY_NONE ||
        !registry_instance_view(engine_registry(p->engine), gone.slot, &view)) {
        return;
    }
    gone.epoch = view.epoch;
    engine_tell(p->engine, &gone);
}

static void instance_restarted(struct processes *p, const struct spawn_event *ev)
{
    const uint32_t agent = registry_agent_add(engine_registry(p->engine), str_from(ev->agent_id),
                                              engine_now(p->engine));
    struct core_event again = {
        CORE_EV_INIT(RESTARTED, process, .agent = agent, .pid = (uint32_t)ev->pid),
        .text = str_from(ev->reason)};

    (void)uuid_parse(str_from(ev->instance_id), &again.instance);
    if (agent != REGISTRY_NONE) {
        engine_tell(p->engine, &again);
    }
}

/* The gateway is no agent and registers nowhere: it is up when it runs. */
static void gateway_event(struct processes *p, const struct spawn_event *ev)
{
    if (ev->type == SPAWN_STARTED || ev->type == SPAWN_RESTARTED || ev->type == SPAWN_ADOPTED) {
        (void)spawn_registered(p->spawn, str_from(ev->instance_id), engine_now(p->engine));
    } else if (ev->type == SPAWN_GAVE_UP) {
        log_err("gateway.gave_up",
                "the HTTP API is not started again: %s; its log is "
                "log/" CHILD_GATEWAY ".log of the state directory",
                ev->reason);
    }
}

void processes_cycle(struct processes *p, bool readable)
{
    struct spawn_event ev;

    if (readable) {
        spawn_handle(p->spawn, engine_now(p->engine));
    }
    if (spawn_deadline(p->spawn) <= engine_now(p->engine)) {
        spawn_tick(p->spawn, engine_now(p->engine));
    }
    while (spawn_next_event(p->spawn, &ev)) {
        enum log_level level = ev.type == SPAWN_GAVE_UP || ev.type == SPAWN_GROUP_GAVE_UP ||
                                       (ev.type == SPAWN_EXITED && !ev.expected)
                                   ? LOG_WARN
                                   : LOG_INFO;
        log_event(level, "agent.process", "event=%s name=%s pid=%d instance=%s %s",
                  spawn_event_name(ev.type), ev.name, (int)ev.pid, ev.instance_id, ev.reason);
        if (strcmp(ev.name, CHILD_GATEWAY) == 0) {
            gateway_event(p, &ev);
        } else if (ev.type == SPAWN_EXITED) {
            instance_gone(p, &ev);
            child_ended(p, &ev);
        } else if (ev.type == SPAWN_RESTARTED) {
            instance_restarted(p, &ev);
        } else if (ev.type == SPAWN_GAVE_UP) {
            child_gave_up(p, &ev);
        } else if (ev.type == SPAWN_GROUP_GAVE_UP && roster_group_gave_up(p->roster, ev.name)) {
            put_text(p->escalated, sizeof p->escalated, "%s", ev.reason);
        }
    }
}

uint32_t processes_outstanding(const struct processes *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < registry_instances(engine_registry(p->engine)); i++) {
        struct instance_view view;
        n += registry_instance_view(engine_registry(p->engine), i, &view) ? view.outstanding : 0;
    }
    return n;
}

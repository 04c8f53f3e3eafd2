#include "supervisor/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/children.h"
#include "supervisor/roster_internal.h"

enum { LOOK_MS = 50 };

enum bt_code roster_new(struct engine *engine, struct spawn *spawn, const struct config *c,
                        struct roster **ret, struct bt_error *err)
{
    struct roster *f = calloc(1, sizeof *f);

    *ret = f;
    if (f == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the agents of the configuration");
    }
    f->engine = engine;
    f->spawn = spawn;
    f->config = c;
    f->look_at = MSEC_NEVER;
    return BT_OK;
}

const struct config *roster_config(const struct roster *f)
{
    return f->config;
}

const struct config_agent *roster_config_agent(const struct config *c, struct str agent_id,
                                               uint32_t *ret_ix)
{
    for (uint32_t i = 0; i < c->n_agents; i++) {
        if (str_is(agent_id, c->agents[i].agent_id)) {
            if (ret_ix != NULL) {
                *ret_ix = i;
            }
            return &c->agents[i];
        }
    }
    return NULL;
}

const char *roster_held_back(const struct roster *f, struct str agent_id)
{
    const struct config_agent *a = roster_config_agent(f->config, agent_id, NULL);

    return a != NULL ? a->held_back : NULL;
}

bool roster_group_gave_up(const struct roster *f, const char *group)
{
    for (uint32_t i = 0; i < f->config->n_groups; i++) {
        if (strcmp(f->config->groups[i].name, group) == 0) {
            return f->config->groups[i].fatal;
        }
    }
    return false;
}

/* ---- the agents and their processes ---- */

struct roster_agent *roster_agent_find(struct roster *f, const char *agent_id)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (strcmp(f->agents[i]->id, agent_id) == 0) {
            return f->agents[i];
        }
    }
    return NULL;
}

struct roster_agent *roster_agent_add(struct roster *f, const char *agent_id)
{
    struct roster_agent *a = roster_agent_find(f, agent_id);

    if (a != NULL) {
        return a;
    }
    a = f->n < LIMIT_AGENTS ? calloc(1, sizeof *a) : NULL;
    if (a == NULL) {
        log_err("roster.memory", "agent=%s is not watched over: out of memory", agent_id);
        return NULL;
    }
    (void)snprintf(a->id, sizeof a->id, "%s", agent_id);
    a->scale = (struct scale){.busy_since = MSEC_NEVER, .idle_since = MSEC_NEVER};
    f->agents[f->n++] = a;
    return a;
}

static void agent_drop(struct roster *f, struct roster_agent *a)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->agents[i] == a) {
            f->agents[i] = f->agents[--f->n];
            free(a);
            return;
        }
    }
}

void roster_introduce(struct roster *f)
{
    for (uint32_t i = 0; i < f->config->n_agents; i++) {
        (void)registry_agent_configure(engine_registry(f->engine),
                                       str_from(f->config->agents[i].agent_id),
                                       engine_now(f->engine));
        (void)roster_agent_add(f, f->config->agents[i].agent_id);
    }
}

enum bt_code roster_start(struct roster *f, struct bt_error *err)
{
    struct spawn_spec *specs = calloc(LIMIT_PROCESSES + 1, sizeof *specs);
    char(*names)[SPAWN_NAME_MAX + 1] = calloc(LIMIT_PROCESSES + 1, sizeof *names);
    struct spawn_group_spec groups[SPAWN_GROUPS_MAX];
    const struct config *c = f->config;
    size_t n = 0;
    enum bt_code code = BT_OK;

    if (specs == NULL || names == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for the agent processes");
    }
    for (uint32_t i = 0; code == BT_OK && i < c->n_agents; i++) {
        for (uint32_t k = 1; k <= c->agents[i].instances.min && n < LIMIT_PROCESSES; k++) {
            if (c->agents[i].held_back == NULL) {
                child_name(c->agents[i].agent_id, k, names[n]);
                specs[n] = child_spec(c, i, k, names[n]);
                n++;
            }
        }
    }
    if (code == BT_OK && c->gateway.command != NULL) {
        specs[n++] = child_gateway_spec(c);
    }
    if (code == BT_OK) {
        code = spawn_set_groups(f->spawn, groups, child_groups(c, groups), err);
    }
    if (code == BT_OK) {
        code = spawn_set_children(f->spawn, specs, n, clock_mono_ms(), err);
    }
    free(specs);
    free(names);
    f->started = code == BT_OK;
    f->look_at = 0;
    return code;
}

/* A process by the place of its number. False: there is none of this number. */
static bool look(struct roster *f, const char *name, struct spawn_info *info,
                 struct roll_process *ret)
{
    const size_t ix = spawn_index(f->spawn, str_from(name));
    const struct registry *registry = engine_registry(f->engine);
    struct instance_view view;
    struct uuid id;
    uint32_t slot;

    if (ix == spawn_count(f->spawn)) {
        return false;
    }
    spawn_describe(f->spawn, ix, info);
    ret->live = info->state == POLICY_STARTING || info->state == POLICY_UP ||
                info->state == POLICY_STOPPING;
    ret->failed = info->state == POLICY_FAILED;
    slot = uuid_parse(str_from(info->instance_id), &id) ? registry_instance(registry, id)
                                                        : REGISTRY_NONE;
    if (slot != REGISTRY_NONE && registry_instance_view(registry, slot, &view)) {
        ret->busy = view.outstanding;
        ret->up = info->state == POLICY_UP && view.lanes_up > 0 && !view.draining;
    }
    return true;
}

/* All processes of an agent; returns how many. */
uint32_t roster_processes(struct roster *f, struct roster_agent *a,
                          struct roster_process ret[CHILDREN_PER_AGENT])
{
    uint32_t n = 0;

    for (size_t i = 0; i < spawn_count(f->spawn) && n < CHILDREN_PER_AGENT; i++) {
        struct spawn_info info;
        uint32_t number;

        spawn_describe(f->spawn, i, &info);
        number = strcmp(info.agent_id, a->id) == 0 ? child_number(info.name, a->id) : 0;
        if (number == 0) {
            continue;
        }
        ret[n] = (struct roster_process){.number = number};
        (void)snprintf(ret[n].name, sizeof ret[n].name, "%s", info.name);
        ret[n].is.roll = &a->rolls[number - 1];
        if (look(f, ret[n].name, &info, &ret[n].is)) {
            ret[n].parked = info.parked;
            ret[n].stale = info.stale;
            n++;
        }
    }
    return n;
}

/* ---- orders of roll.h ---- */

static void drain_instance(struct roster *f, const char *name)
{
    const size_t ix = spawn_index(f->spawn, str_from(name));
    struct core_event ev = {.type = CORE_DRAIN, .text = STR_LIT("its process is to end")};
    struct instance_view view;
    struct spawn_info info;
    struct uuid id;

    if (ix == spawn_count(f->spawn)) {
        return;
    }
    spawn_describe(f->spawn, ix, &info);
    if (!uuid_parse(str_from(info.instance_id), &id)) {
        return;
    }
    ev.slot = registry_instance(engine_registry(f->engine), id);
    if (ev.slot != REGISTRY_NONE &&
        registry_instance_view(engine_registry(f->engine), ev.slot, &view)) {
        ev.epoch = view.epoch;
        engine_tell(f->engine, &ev);
    }
}

static void carry_out(struct roster *f, struct roster_agent *a, const struct roster_process *p,
                      enum roll_order_type type)
{
    const struct str name = str_from(p->name);
    const msec now = engine_now(f->engine);
    const msec drain = a->at_once ? 0 : f->config->policy.drain_ms;
    enum bt_code code = BT_OK;
    struct bt_error err;

    switch (type) {
    case ROLL_ORDER_DRAIN:
        drain_instance(f, p->name);
        code = spawn_drain_child(f->spawn, name, drain, now, &err);
        break;
    case ROLL_ORDER_STOP:
        code = spawn_stop_child(f->spawn, name, now, &err);
        break;
    case ROLL_ORDER_START:
        code = spawn_start_child(f->spawn, name, now, &err);
        break;
    case ROLL_ORDER_REMOVE:
        code = spawn_remove_child(f->spawn, name, now, &err);
        log_info("agent.process", "event=removed name=%s", p->name);
        break;
    case ROLL_ORDER_DONE:
        log_info("agent.process", "event=%s name=%s", p->is.up ? "renewed" : "at rest", p->name);
        break;
    case ROLL_ORDER_HALTED:
        log_warn("agent.process",
                 "event=halted name=%s its new process was given up; the other processes of the "
                 "agent keep what they run",
                 p->name);
        break;
    }
    if (code != BT_OK) {
        log_warn("agent.process", "event=lost name=%s %s", p->name, err.msg);
    }
}

/* True: something is still to be done for the agent. */
static bool roll(struct roster *f, struct roster_agent *a)
{
    struct roster_process processes[CHILDREN_PER_AGENT];
    struct roll_process of[CHILDREN_PER_AGENT];
    struct roll_order order;
    bool active = false;

    for (int turn = 0; turn < 4 * CHILDREN_PER_AGENT; turn++) {
        const uint32_t n = roster_processes(f, a, processes);
        for (uint32_t i = 0; i < n; i++) {
            of[i] = processes[i].is;
        }
        if (!roll_next(of, n, &order)) {
            for (uint32_t i = 0; i < n; i++) {
                active = active || of[i].roll->intent != ROLL_KEEP;
            }
            a->at_once = a->at_once && active;
            return active;
        }
        carry_out(f, a, &processes[order.ix], order.type);
    }
    return true;
}

/* ---- how many ---- */

/* The one to take away: with the least work, the last one of these. */
static void spare_one(const struct roster_process *of, uint32_t n)
{
    const struct roster_process *best = NULL;

    for (uint32_t i = 0; i < n; i++) {
        if (of[i].is.roll->intent == ROLL_KEEP && !of[i].parked &&
            (best == NULL || of[i].is.busy < best->is.busy ||
             (of[i].is.busy == best->is.busy && of[i].number > best->number))) {
            best = &of[i];
        }
    }
    if (best != NULL) {
        *best->is.roll = (struct roll){.intent = ROLL_REMOVE};
    }
}

enum spawn_put roster_put(struct roster *f, uint32_t agent, uint32_t number)
{
    char name[SPAWN_NAME_MAX + 1];
    enum spawn_put put = SPAWN_PUT_SAME;
    struct spawn_spec spec;
    struct bt_error err;

    child_name(f->config->agents[agent].agent_id, number, name);
    spec = child_spec(f->config, agent, number, name);
    if (spawn_put(f->spawn, &spec, engine_now(f->engine), &put, &err) != BT_OK) {
        log_err("agent.process", "event=not started name=%s %s", name, err.msg);
    }
    return put;
}

static void add_one(struct roster *f, uint32_t agent, const struct roster_process *of, uint32_t n)
{
    bool taken[CHILDREN_PER_AGENT + 1] = {false};

    for (uint32_t i = 0; i < n; i++) {
        taken[of[i].number] = true;
    }
    for (uint32_t k = 1; k <= CHILDREN_PER_AGENT; k++) {
        if (!taken[k]) {
            (void)roster_put(f, agent, k);
            return;
        }
    }
}

static void scale(struct roster *f, struct roster_agent *a, uint32_t agent)
{
    const struct config_agent *c = &f->config->agents[agent];
    const struct config_instances *want = &c->instances;
    const struct scale_settings set = {want->min, want->max, want->queue, want->up_ms,
                                       want->down_ms};
    struct roster_process of[CHILDREN_PER_AGENT];
    const uint32_t n = roster_processes(f, a, of);
    const uint32_t known = registry_agent(engine_registry(f->engine), str_from(a->id));
    struct scale_now is = {
        .all_up = true,
        .queued = known != REGISTRY_NONE ? core_agent_queued(engine_core(f->engine), known) : 0,
        .capacity = c->capacity};
    int step;

    for (uint32_t i = 0; i < n; i++) {
        if (of[i].parked || of[i].is.failed || of[i].is.roll->intent != ROLL_KEEP) {
            return; /* somebody or something else decides about this agent now */
        }
        is.processes++;
        is.busy += of[i].is.busy;
        is.all_up = is.all_up && of[i].is.up;
    }
    step = scale_step(&a->scale, &set, &is, engine_now(f->engine));
    if (step != 0) {
        log_info("agent.scale", "agent=%s processes=%u more=%d queued=%u busy=%u", a->id,
                 is.processes, step, is.queued, is.busy);
    }
    if (step > 0) {
        add_one(f, agent, of, n);
    } else if (step < 0) {
        spare_one(of, n);
    }
}

/* ---- the cycle ---- */

/* An agent that the configuration does not name any more. False: it has a process. */
static bool forget_when_gone(struct roster *f, struct roster_agent *a)
{
    struct roster_process of[CHILDREN_PER_AGENT];

    if (roster_processes(f, a, of) > 0) {
        return false;
    }
    registry_agent_unconfigure(engine_registry(f->engine), str_from(a->id));
    agent_drop(f, a);
    return true;
}

void roster_cycle(struct roster *f)
{
    const msec now = engine_now(f->engine);
    bool active = false;

    if (!f->started || now < f->look_at || engine_is_draining(f->engine)) {
        return;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        struct roster_agent *a = f->agents[i];
        uint32_t ix = 0;
        const struct config_agent *c = roster_config_agent(f->config, str_from(a->id), &ix);
        const bool scales =
            c != NULL && c->held_back == NULL && c->instances.min < c->instances.max;

        if (scales) {
            scale(f, a, ix);
        }
        active = roll(f, a) || scales || active;
        if (c == NULL && forget_when_gone(f, a)) {
            i--;
        }
    }
    f->look_at = active ? msec_add(now, LOOK_MS) : MSEC_NEVER;
}

msec roster_deadline(const struct roster *f)
{
    return f->started ? f->look_at : MSEC_NEVER;
}

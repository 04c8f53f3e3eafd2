/* What operators want of agents and their processes: drain, enable, start, stop, restart. */
#include "supervisor/api/api_internal.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/dispatch/lanes.h"

/* ---- drain, enable ---- */

static bool is_meant(struct engine *engine, const struct msg_agents_drain *m, uint32_t slot,
                     const struct instance_view *v)
{
    const struct lane_instance *in = lanes_instance(engine, slot, v->epoch);
    struct uuid wanted = {{0}};

    if (m->instance_id.len > 0 &&
        (!uuid_parse(m->instance_id, &wanted) || !uuid_eq(wanted, v->id))) {
        return false;
    }
    return m->version.len == 0 || (in != NULL && str_is(m->version, in->version));
}

static void refuse_drain(struct engine *engine, struct request *rq,
                         const struct msg_agents_drain *m)
{
    if (m->version.len > 0) {
        request_refuse_text(engine, rq, BT_NOT_FOUND,
                            "agent '%.*s' has no instance of version '%.*s'; agents.get shows the "
                            "version of each",
                            STR_ARG(m->agent_id), STR_ARG(m->version));
    } else {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "agent '%.*s' has no such instance",
                            STR_ARG(m->agent_id));
    }
}

void on_agents_drain(struct engine *engine, struct request *rq)
{
    struct msg_agents_drain m;
    struct bt_error err;
    uint32_t agent;
    uint32_t found = 0;
    bool all;

    if (!request_read(engine, rq, MSG_agents_drain, &m)) {
        return;
    }
    agent = request_agent(engine, rq, m.agent_id);
    if (agent == REGISTRY_NONE) {
        return;
    }
    all = m.instance_id.len == 0 && m.version.len == 0;
    if (all) { /* also those that register later: until agents.enable */
        registry_agent_enable(engine_registry(engine), agent, false);
    }
    for (uint32_t i = 0; i < registry_instances(engine_registry(engine)); i++) {
        struct core_event ev = {
            .type = CORE_DRAIN, .slot = i, .text = STR_LIT("an operator asked for it")};
        struct instance_view v;
        if (!registry_instance_view(engine_registry(engine), i, &v) || v.agent != agent ||
            !is_meant(engine, &m, i, &v)) {
            continue;
        }
        ev.epoch = v.epoch;
        found++;
        if (engine_feed(engine, &ev, NULL, &err) != BT_OK) {
            engine_fail(engine, &err);
            return;
        }
    }
    if (found == 0 && !all) {
        refuse_drain(engine, rq, &m);
    } else {
        request_answer(engine, rq, MSG_empty, NULL);
    }
}

/* Steps that waited while the agent was out of service go to the instances that are there. */
static void wake(struct engine *engine, uint32_t agent)
{
    for (uint32_t i = 0; i < registry_instances(engine_registry(engine)); i++) {
        struct instance_view v;
        struct lane_instance *in =
            registry_instance_view(engine_registry(engine), i, &v) && v.agent == agent
                ? lanes_instance(engine, i, v.epoch)
                : NULL;
        for (uint32_t k = 0; in != NULL && k < in->capacity; k++) {
            struct core_event up = {.type = CORE_LANE_UP, .slot = i, .epoch = v.epoch, .lane = k};
            struct bt_error err;
            if (in->lanes[k].state == LANE_READY && engine_feed(engine, &up, NULL, &err) != BT_OK) {
                engine_fail(engine, &err);
                return;
            }
        }
    }
}

void on_agents_enable(struct engine *engine, struct request *rq)
{
    struct msg_agents_enable m;
    struct bt_error err;
    uint32_t agent;

    if (msg_read(&rq->reader, MSG_agents_enable, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    agent = request_agent(engine, rq, m.agent_id);
    if (agent == REGISTRY_NONE) {
        return;
    }
    registry_agent_enable(engine_registry(engine), agent, true);
    wake(engine, agent);
    request_answer(engine, rq, MSG_empty, NULL);
}

/* ---- agents that are remembered ---- */

void on_agents_forget(struct engine *engine, struct request *rq)
{
    struct msg_agents_forget m;
    struct bt_error err;
    struct agent_view view = {.instances = 0};
    bool found;
    uint32_t agent;

    if (!request_read(engine, rq, MSG_agents_forget, &m)) {
        return;
    }
    agent = registry_agent(engine_registry(engine), m.agent_id);
    if (agent != REGISTRY_NONE) {
        view = registry_agent_view(engine_registry(engine), agent);
    }
    if (view.instances > 0 || view.configured) {
        request_refuse_text(engine, rq, BT_CONFLICT, "agent '%.*s' %s", STR_ARG(m.agent_id),
                            view.instances > 0 ? "is there; it can be forgotten when it has left"
                                               : "is one of the configuration's");
        return;
    }
    if (journal_agent_drop(engine_journal(engine), m.agent_id, &found, &err) != BT_OK) {
        engine_fail(engine, &err);
    } else if (!found) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "no agent '%.*s' is remembered",
                            STR_ARG(m.agent_id));
    } else {
        if (agent != REGISTRY_NONE) {
            core_agent_forget(engine_core(engine), agent);
        }
        request_answer(engine, rq, MSG_empty, NULL);
    }
}

/* ---- processes ---- */

/* The processes of an order; their names stand in `names`. */
struct ordered {
    struct process_names found;
    struct str names[PROCESS_NAMES_MAX];
};

/* False after refusing. */
static bool order(struct engine *engine, struct request *rq, const struct process_order *o,
                  struct ordered *ret)
{
    const struct process_hooks *processes = dispatch_processes(engine);
    struct bt_error err;

    if (processes->order == NULL) {
        request_refuse_text(engine, rq, BT_UNAVAILABLE, "this supervisor starts no processes");
        return false;
    }
    if (processes->order(processes->of, o, &ret->found, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return false;
    }
    for (uint32_t i = 0; i < ret->found.n; i++) {
        ret->names[i] = str_from(ret->found.at[i]);
    }
    return true;
}

void on_agents_start(struct engine *engine, struct request *rq)
{
    struct msg_agents_start_ok ok = {.processes_n = 0};
    struct msg_agents_start m;
    struct ordered done;

    if (request_read(engine, rq, MSG_agents_start, &m) &&
        order(engine, rq,
              &(struct process_order){
                  .verb = PROCESS_START, .agent_id = m.agent_id, .process = m.process},
              &done)) {
        ok.processes = done.names;
        ok.processes_n = done.found.n;
        request_answer(engine, rq, MSG_agents_start_ok, &ok);
    }
}

void on_agents_stop(struct engine *engine, struct request *rq)
{
    struct msg_agents_stop_ok ok = {.processes_n = 0};
    struct msg_agents_stop m;
    struct ordered done;

    if (request_read(engine, rq, MSG_agents_stop, &m) &&
        order(engine, rq,
              &(struct process_order){.verb = PROCESS_STOP,
                                      .agent_id = m.agent_id,
                                      .process = m.process,
                                      .at_once = m.now},
              &done)) {
        ok.processes = done.names;
        ok.processes_n = done.found.n;
        request_answer(engine, rq, MSG_agents_stop_ok, &ok);
    }
}

void on_agents_restart(struct engine *engine, struct request *rq)
{
    struct msg_agents_restart_ok ok = {.processes_n = 0};
    struct msg_agents_restart m;
    struct ordered done;

    if (request_read(engine, rq, MSG_agents_restart, &m) &&
        order(engine, rq,
              &(struct process_order){.verb = PROCESS_RESTART,
                                      .agent_id = m.agent_id,
                                      .process = m.process,
                                      .at_once = m.now},
              &done)) {
        ok.processes = done.names;
        ok.processes_n = done.found.n;
        request_answer(engine, rq, MSG_agents_restart_ok, &ok);
    }
}

/* What operators want of processes: start, stop, restart; and how these are. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/roster_internal.h"

/* Why there is no process of ours. */
static enum bt_code refuse(const struct roster *f, const struct process_order *o,
                           struct bt_error *err)
{
    const char *why = roster_held_back(f, o->agent_id);

    if (why != NULL) {
        return err_set(err, BT_CONFLICT,
                       "agent '%.*s' is not started: %.300s; correct it, then: baton reload",
                       STR_ARG(o->agent_id), why);
    }
    if (roster_config_agent(f->config, o->agent_id, NULL) == NULL) {
        return err_set(err, BT_NOT_FOUND,
                       "agent '%.*s' is not in the configuration: its processes are started and "
                       "stopped where they come from",
                       STR_ARG(o->agent_id));
    }
    return err_set(err, BT_NOT_FOUND,
                   "process: agent '%.*s' has no process '%.*s'; see: baton "
                   "agents %.*s",
                   STR_ARG(o->agent_id), STR_ARG(o->process), STR_ARG(o->agent_id));
}

static void start(struct roster *f, const struct roster_process *p)
{
    struct bt_error err;

    *p->is.roll = (struct roll){.intent = ROLL_KEEP};
    /* One that ends starts again after it. */
    if ((!p->is.live || p->parked) &&
        spawn_start_child(f->spawn, str_from(p->name), engine_now(f->engine), &err) != BT_OK) {
        log_warn("agent.process", "event=not started name=%s %s", p->name, err.msg);
    }
}

enum bt_code roster_order(void *of, const struct process_order *o, struct process_names *ret,
                          struct bt_error *err)
{
    static const enum roll_intent intents[] = {
        [PROCESS_STOP] = ROLL_STOP, [PROCESS_RESTART] = ROLL_RESTART};
    struct roster_process processes[CHILDREN_PER_AGENT];
    struct roster *f = of;
    char id[LIMIT_ID_BYTES + 1];
    struct roster_agent *a;
    uint32_t n;

    *ret = (struct process_names){.n = 0};
    (void)snprintf(id, sizeof id, "%.*s", STR_ARG(o->agent_id));
    a = roster_agent_find(f, id);
    n = a != NULL ? roster_processes(f, a, processes) : 0;
    if (engine_is_draining(f->engine)) {
        return err_set(err, BT_UNAVAILABLE, "the supervisor is stopping");
    }
    if (!f->started) {
        return err_set(err, BT_CONFLICT,
                       "another shard of this node starts its agents: ask that one (the log of the "
                       "node says agents.kept)");
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct roster_process *p = &processes[i];

        if (o->process.len > 0 && !str_is(o->process, p->name)) {
            continue;
        }
        (void)snprintf(ret->at[ret->n++], PROCESS_NAME_BYTES, "%s", p->name);
        if (o->verb == PROCESS_START) {
            start(f, p);
        } else if (p->is.roll->intent != ROLL_REMOVE) {
            *p->is.roll = (struct roll){.intent = intents[o->verb]};
            a->at_once = a->at_once || o->at_once;
        }
    }
    f->look_at = 0;
    return ret->n > 0 ? BT_OK : refuse(f, o, err);
}

bool roster_view(void *of, struct str agent_id, uint32_t ix, struct process_view *ret)
{
    struct roster *f = of;

    for (size_t i = 0; i < spawn_count(f->spawn); i++) {
        static struct spawn_info info; /* its texts are borrowed until the next call */
        const struct roster_agent *a;
        uint32_t number;

        spawn_describe(f->spawn, i, &info);
        if (!str_is(agent_id, info.agent_id) || ix-- > 0) {
            continue;
        }
        a = roster_agent_find(f, info.agent_id);
        number = child_number(info.name, info.agent_id);
        *ret = (struct process_view){
            .name = info.name,
            .state = policy_state_name(info.state),
            .group = info.group != NULL ? info.group : "",
            .doing = a != NULL && number > 0 ? roll_phase_name(&a->rolls[number - 1]) : "",
            .reason = info.reason,
            .pid = (uint32_t)info.pid,
            .restarts = info.restarts,
            .stale = info.stale};
        return true;
    }
    return false;
}

/* Between the bus, which knows instances, and the spawner, which knows processes. */
#include "supervisor/processes.h"

#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"

/* An instance id as the spawner writes it; "" when it is none. */
static struct str as_spawned(struct str instance_id, char text[UUID_TEXT_LEN + 1])
{
    struct uuid id;

    text[0] = 0;
    if (uuid_parse(instance_id, &id)) {
        uuid_format(id, text);
    }
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
                              p->bus->now);
}

/* "exit code 2: settings: keyEnv: ..." */
static void why_it_ended(const struct spawn_info *info, char *ret, size_t cap)
{
    (void)snprintf(ret, cap, "%s%s%s", info->reason, info->last_line[0] != 0 ? ": " : "",
                   info->last_line);
}

static bool process_about(void *of, struct str agent_id, struct bus_process *ret)
{
    const struct processes *p = of;
    bool found = false;

    *ret = (struct bus_process){.why = ""};
    for (size_t i = 0; i < p->n_held_back && !found; i++) {
        found = str_is(agent_id, p->held_back[i].agent_id);
        if (found) {
            (void)snprintf(ret->why, sizeof ret->why, "not started: %.480s", p->held_back[i].why);
        }
    }
    for (size_t i = 0; i < spawn_count(p->spawn); i++) {
        struct spawn_info info;
        spawn_describe(p->spawn, i, &info);
        if (str_is(agent_id, info.agent_id) && (!found || info.reason[0] != 0)) {
            found = true;
            why_it_ended(&info, ret->why, sizeof ret->why);
            (void)snprintf(ret->log, sizeof ret->log, "%s", info.log);
        }
    }
    return found;
}

struct bus_processes processes_for_bus(struct processes *p)
{
    return (struct bus_processes){
        .of = p, .is_ours = process_is_ours, .kill = process_kill, .about = process_about};
}

/* ---- agents that do not come any more ---- */

static void tell_gave_up(struct processes *p, struct str agent_id, const char *why)
{
    struct core_event ev = {.type = CORE_GAVE_UP,
                            .agent = registry_agent_add(p->bus->registry, agent_id, p->bus->now),
                            .text = str_from(why)};
    struct bt_error err;

    if (ev.agent != REGISTRY_NONE && bus_feed(p->bus, &ev, NULL, NULL, &err) != BT_OK) {
        bus_fail(p->bus, &err);
    }
}

void processes_hold_back(struct processes *p)
{
    char why[REGISTRY_FAILURE_BYTES];

    for (size_t i = 0; i < p->n_held_back; i++) {
        (void)snprintf(why, sizeof why,
                       "it was not started: %.400s; correct it, then start the daemon again "
                       "(see also: baton doctor)",
                       p->held_back[i].why);
        tell_gave_up(p, str_from(p->held_back[i].agent_id), why);
    }
}

/* True while a process of the agent is there or will be started. *ret_last: the child of this name.
 */
static bool has_others(const struct processes *p, const struct spawn_event *ev,
                       struct spawn_info *ret_last)
{
    bool others = false;

    for (size_t i = 0; i < spawn_count(p->spawn); i++) {
        struct spawn_info info;
        spawn_describe(p->spawn, i, &info);
        if (strcmp(info.name, ev->name) == 0) {
            *ret_last = info;
        } else if (strcmp(info.agent_id, ev->agent_id) == 0) {
            others = others || (info.state != POLICY_FAILED && info.state != POLICY_STOPPED);
        }
    }
    return others;
}

static void child_gave_up(struct processes *p, const struct spawn_event *ev)
{
    struct spawn_info last = {.reason = "", .last_line = ""};
    char why[REGISTRY_FAILURE_BYTES];
    int n;

    if (has_others(p, ev, &last)) {
        return;
    }
    n = snprintf(why, sizeof why, "it gave up after %s%s%s", ev->reason,
                 last.last_line[0] != 0 ? ": " : "", last.last_line);
    if (n > 0 && (size_t)n < sizeof why) {
        (void)snprintf(why + n, sizeof why - (size_t)n, "%s%s%s",
                       (size_t)n + strlen(last.log) + 24 < sizeof why ? "; see " : "",
                       (size_t)n + strlen(last.log) + 24 < sizeof why ? last.log : "",
                       "; or: baton doctor");
    }
    tell_gave_up(p, str_from(ev->agent_id), why);
}

static void instance_gone(struct processes *p, const struct spawn_event *ev)
{
    struct core_event gone = {.type = CORE_GONE, .text = str_from(ev->reason)};
    struct instance_view view;
    struct bt_error err;

    if (!uuid_parse(str_from(ev->instance_id), &gone.instance)) {
        return;
    }
    gone.slot = registry_instance(p->bus->registry, gone.instance);
    if (gone.slot == REGISTRY_NONE || !registry_instance_view(p->bus->registry, gone.slot, &view)) {
        return;
    }
    gone.epoch = view.epoch;
    gone.agent = view.agent;
    if (bus_feed(p->bus, &gone, NULL, NULL, &err) != BT_OK) {
        bus_fail(p->bus, &err);
    }
}

static void instance_restarted(struct processes *p, const struct spawn_event *ev)
{
    struct core_event again = {
        .type = CORE_RESTARTED, .pid = (uint32_t)ev->pid, .text = str_from(ev->reason)};
    struct bt_error err;

    again.agent = registry_agent_add(p->bus->registry, str_from(ev->agent_id), p->bus->now);
    (void)uuid_parse(str_from(ev->instance_id), &again.instance);
    if (again.agent != REGISTRY_NONE && bus_feed(p->bus, &again, NULL, NULL, &err) != BT_OK) {
        bus_fail(p->bus, &err);
    }
}

void processes_turn(struct processes *p, bool readable)
{
    struct spawn_event ev;

    if (readable) {
        spawn_handle(p->spawn, p->bus->now);
    }
    if (spawn_deadline(p->spawn) <= p->bus->now) {
        spawn_tick(p->spawn, p->bus->now);
    }
    while (spawn_next_event(p->spawn, &ev)) {
        enum log_level level = ev.type == SPAWN_GAVE_UP || (ev.type == SPAWN_EXITED && !ev.expected)
                                   ? LOG_WARN
                                   : LOG_INFO;
        log_event(level, "agent.process", "event=%s name=%s pid=%d instance=%s %s",
                  spawn_event_name(ev.type), ev.name, (int)ev.pid, ev.instance_id, ev.reason);
        if (ev.type == SPAWN_EXITED) {
            instance_gone(p, &ev);
        } else if (ev.type == SPAWN_RESTARTED) {
            instance_restarted(p, &ev);
        } else if (ev.type == SPAWN_GAVE_UP) {
            child_gave_up(p, &ev);
        }
    }
}

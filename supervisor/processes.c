/* Between the bus, which knows instances, and the spawner, which knows processes. */
#include "supervisor/processes.h"

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

struct bus_processes processes_for_bus(struct processes *p)
{
    return (struct bus_processes){.of = p, .is_ours = process_is_ours, .kill = process_kill};
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
        }
    }
}

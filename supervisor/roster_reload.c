/* Another configuration: agents come, change and go; the others are not touched. */
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/roster_internal.h"

static void feed_gave_up(struct roster *f, const char *agent_id, const char *why)
{
    const uint32_t agent = registry_agent_configure(engine_registry(f->engine), str_from(agent_id),
                                                    engine_now(f->engine));
    struct core_event ev = {CORE_EV_INIT(GAVE_UP, process, .agent = agent), .text = str_from(why)};

    if (agent != REGISTRY_NONE) {
        engine_tell(f->engine, &ev);
    }
}

/* Processes beyond the number that is wanted; 0 = all. */
static void remove_from(struct roster *f, struct roster_agent *a, uint32_t keep)
{
    struct roster_process of[CHILDREN_PER_AGENT];
    const uint32_t n = roster_processes(f, a, of);

    for (uint32_t i = 0; i < n; i++) {
        if (of[i].number > keep) {
            *of[i].is.roll = (struct roll){.intent = ROLL_REMOVE};
        }
    }
}

/* False: there is none of this number. *ret_stale: its process runs with an earlier spec. */
static bool exists(struct roster *f, const char *agent_id, uint32_t number, bool *ret_stale)
{
    char name[SPAWN_NAME_MAX + 1];
    struct spawn_info info;
    size_t ix;

    child_name(agent_id, number, name);
    ix = spawn_index(f->spawn, str_from(name));
    if (ix == spawn_count(f->spawn)) {
        return false;
    }
    spawn_describe(f->spawn, ix, &info);
    *ret_stale = info.stale;
    return true;
}

/* Those that exist get the spec; those below the minimum are added; those above the maximum go. */
static void put_agent(struct roster *f, struct roster_agent *a, uint32_t ix)
{
    const struct config_agent *c = &f->config->agents[ix];

    for (uint32_t k = 1; k <= c->instances.max; k++) {
        struct roll *roll = &a->rolls[k - 1];
        enum spawn_put put;
        bool stale = false;

        if (k > c->instances.min && !exists(f, a->id, k, &stale)) {
            continue;
        }
        put = roster_put(f, ix, k);
        (void)exists(f, a->id, k, &stale); /* false: it could not be added */
        if (roll->intent == ROLL_REMOVE && roll->phase == ROLL_WAITS) {
            *roll = (struct roll){.intent = ROLL_KEEP};
        } else if (roll->intent == ROLL_REMOVE) {
            roll->intent = ROLL_RESTART; /* it is on its way out: it comes back */
        } else if (stale && (roll->intent == ROLL_KEEP ||
                             (roll->intent == ROLL_RESTART && roll->phase == ROLL_STARTS))) {
            /* also when its new process has just been started: from the spec before this one */
            *roll = (struct roll){.intent = ROLL_RESTART};
        }
        if (put != SPAWN_PUT_SAME) {
            log_info("agent.reload", "process=%s#%u %s", a->id, k,
                     put == SPAWN_PUT_ADDED      ? "added"
                     : put == SPAWN_PUT_SETTINGS ? "rules of restarting changed"
                     : stale                     ? "changed: its process is restarted"
                                                 : "changed");
        }
    }
    remove_from(f, a, c->instances.max);
}

void roster_reload(struct roster *f, const struct config *c)
{
    const struct config *before = f->config;
    struct spawn_group_spec groups[SPAWN_GROUPS_MAX];
    struct bt_error err;

    f->config = c;
    f->look_at = 0;
    if (!f->started || engine_is_draining(f->engine)) {
        roster_introduce(f);
        return;
    }
    if (spawn_set_groups(f->spawn, groups, child_groups(c, groups), &err) != BT_OK) {
        log_err("agent.reload", "%s", err.msg);
        f->config = before;
        return;
    }
    for (uint32_t i = 0; i < c->n_agents; i++) {
        struct roster_agent *a = roster_agent_add(f, c->agents[i].agent_id);
        const struct config_agent *was =
            roster_config_agent(before, str_from(c->agents[i].agent_id), NULL);

        if (a == NULL) {
            continue;
        }
        if (c->agents[i].held_back != NULL) {
            feed_gave_up(f, a->id, c->agents[i].held_back);
            remove_from(f, a, 0);
            continue;
        }
        if (was == NULL || was->held_back != NULL) {
            feed_gave_up(f, a->id, ""); /* its processes are started again */
        }
        put_agent(f, a, i);
    }
    for (uint32_t i = 0; i < f->n; i++) {
        if (roster_config_agent(c, str_from(f->agents[i]->id), NULL) == NULL) {
            remove_from(f, f->agents[i], 0);
        }
    }
}

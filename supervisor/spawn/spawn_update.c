/* Children that are added, changed and removed while others run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/spawn/spawn_internal.h"

static bool same_settings(const struct policy_settings *a, const struct policy_settings *b)
{
    return a->restart == b->restart && a->intensity == b->intensity &&
           a->period_ms == b->period_ms && a->backoff_min_ms == b->backoff_min_ms &&
           a->backoff_max_ms == b->backoff_max_ms && a->stable_ms == b->stable_ms &&
           a->grace_ms == b->grace_ms && a->start_deadline_ms == b->start_deadline_ms &&
           a->jitter_permille == b->jitter_permille;
}

/* c takes the spec of the other, which gets what c had; its process goes on as it was started. */
static void exchange_spec(struct child *c, struct child *with)
{
    struct child old = *c;

    c->arena = with->arena;
    c->name = with->name;
    c->agent_id = with->agent_id;
    c->cwd = with->cwd;
    c->argv = with->argv;
    c->env = with->env;
    c->env[0] = c->instance_env;
    c->handover = with->handover;
    c->apart = with->apart;
    c->nofile = with->nofile;
    c->memory_bytes = with->memory_bytes;
    c->hash = with->hash;
    with->arena = old.arena;
}

/* Another group: a member that its group held back goes on by its own rule, and the other way. */
static enum bt_code change_group(struct spawn *s, struct child *c, struct spawn_group *to, msec now,
                                 struct bt_error *err)
{
    enum bt_code code;

    if (c->group == to) {
        return spawn_groups_gather(s, err); /* its place may be another */
    }
    c->group = to;
    c->policy.set.grouped = to != NULL;
    code = spawn_groups_gather(s, err);
    if (code == BT_OK && to == NULL && c->policy.state == POLICY_HELD) {
        spawn_apply(s, c, &(struct policy_event){.type = POLICY_ON_START, .now = now});
    }
    return code;
}

static enum bt_code change(struct spawn *s, struct child *c, struct child *fresh, msec now,
                           enum spawn_put *ret, struct bt_error *err)
{
    const bool again = c->removed;
    const bool other = c->hash != fresh->hash;
    const bool settings = !same_settings(&c->policy.set, &fresh->policy.set) ||
                          c->group != fresh->group || c->place != fresh->place ||
                          c->log_bytes != fresh->log_bytes || c->log_files != fresh->log_files;
    enum bt_code code = BT_OK;

    *ret = other ? SPAWN_PUT_STALE : settings ? SPAWN_PUT_SETTINGS : SPAWN_PUT_SAME;
    c->removed = false;
    if (settings) {
        policy_change(&c->policy, &fresh->policy.set);
        c->place = fresh->place;
        c->log_bytes = fresh->log_bytes;
        c->log_files = fresh->log_files;
        code = change_group(s, c, fresh->group, now, err);
    }
    if (other) {
        exchange_spec(c, fresh);
        c->stale = policy_is_live(&c->policy) && (c->send & SEND_START) == 0;
    }
    /* What was wrong with one that does not run may be right now. */
    return code == BT_OK && (again || (other && !policy_is_live(&c->policy) && !c->parked))
               ? spawn_start_child(s, str_from(c->name), now, err)
               : code;
}

static enum bt_code add(struct spawn *s, struct child *fresh, msec now, struct bt_error *err)
{
    enum bt_code code;

    if (s->children_n == LIMIT_PROCESSES) {
        return err_set(err, BT_LIMIT, "agent process '%s': there are %d already", fresh->name,
                       LIMIT_PROCESSES);
    }
    if (s->stopping) {
        return err_set(err, BT_UNAVAILABLE, "agent process '%s': the supervisor is stopping",
                       fresh->name);
    }
    code = spawn_events_room(s, err);
    if (code != BT_OK) {
        return code;
    }
    s->children[s->children_n++] = fresh;
    code = spawn_groups_gather(s, err);
    if (code != BT_OK) {
        s->children_n--;
        return code;
    }
    if (fresh->group != NULL) {
        spawn_group_run(s, fresh->group, now);
    } else {
        spawn_apply(s, fresh, &(struct policy_event){.type = POLICY_ON_START, .now = now});
    }
    return BT_OK;
}

enum bt_code spawn_put(struct spawn *s, const struct spawn_spec *spec, msec now,
                       enum spawn_put *ret, struct bt_error *err)
{
    struct child *fresh = NULL;
    enum bt_code code = child_new(s, spec, &fresh, err);
    size_t ix;

    if (code != BT_OK) {
        return code;
    }
    ix = spawn_index(s, str_from(spec->name));
    if (ix < s->children_n) {
        code = change(s, s->children[ix], fresh, now, ret, err);
        child_free(fresh);
    } else {
        *ret = SPAWN_PUT_ADDED;
        code = add(s, fresh, now, err);
        if (code != BT_OK) {
            child_free(fresh);
        }
    }
    spawn_flush(s);
    return code;
}

enum bt_code spawn_remove_child(struct spawn *s, struct str name, msec now, struct bt_error *err)
{
    const size_t ix = spawn_index(s, name);
    enum bt_code code;

    if (ix == s->children_n) {
        return err_set(err, BT_NOT_FOUND, "no agent process is called '%.*s'", STR_ARG(name));
    }
    s->children[ix]->removed = true;
    code = spawn_stop_child(s, name, now, err);
    spawn_sweep_removed(s);
    return code;
}

void spawn_sweep_removed(struct spawn *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->children_n; i++) {
        struct child *c = s->children[i];

        if (c->removed && !policy_is_live(&c->policy)) {
            if (c->group != NULL) {
                spawn_group_leave(c);
            }
            child_free(c);
        } else {
            s->children[kept++] = c;
        }
    }
    s->children_n = kept;
}

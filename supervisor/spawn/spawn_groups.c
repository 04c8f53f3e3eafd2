/* Groups: who their members are, and what they order. The rules are group.h's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/spawn/spawn_internal.h"

struct spawn_group *spawn_group_find(const struct spawn *s, const char *name)
{
    for (size_t i = 0; i < s->groups_n; i++) {
        if (strcmp(s->groups[i]->name, name) == 0) {
            return s->groups[i];
        }
    }
    return NULL;
}

static void group_free(struct spawn_group *g)
{
    free(g->members);
    free(g->of);
    free(g);
}

void spawn_groups_free(struct spawn *s)
{
    for (size_t i = 0; i < s->groups_n; i++) {
        group_free(s->groups[i]);
    }
    s->groups_n = 0;
}

/* Leaves its group: from now on it stands alone. */
static void let_go(struct child *c)
{
    c->group = NULL;
    c->policy.set.grouped = false;
}

static void drop_others(struct spawn *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->children_n; i++) {
        if (s->children[i]->group != NULL && !s->children[i]->group->kept) {
            let_go(s->children[i]);
        }
    }
    for (size_t i = 0; i < s->groups_n; i++) {
        if (s->groups[i]->kept) {
            s->groups[kept++] = s->groups[i];
        } else {
            group_free(s->groups[i]);
        }
    }
    s->groups_n = kept;
}

enum bt_code spawn_set_groups(struct spawn *s, const struct spawn_group_spec *specs, size_t n,
                              struct bt_error *err)
{
    for (size_t i = 0; i < s->groups_n; i++) {
        s->groups[i]->kept = false;
    }
    for (size_t i = 0; i < n; i++) {
        struct spawn_group *g = spawn_group_find(s, specs[i].name);

        if (g == NULL && s->groups_n == SPAWN_GROUPS_MAX) {
            return err_set(err, BT_LIMIT, "more than %d groups of agents", SPAWN_GROUPS_MAX);
        }
        if (g == NULL) {
            g = calloc(1, sizeof *g);
            if (g == NULL) {
                return err_set(err, BT_NOMEM, "out of memory for a group of agents");
            }
            (void)snprintf(g->name, sizeof g->name, "%s", specs[i].name);
            group_init(&g->group, &specs[i].set);
            s->groups[s->groups_n++] = g;
        } else {
            group_change(&g->group, &specs[i].set);
        }
        g->kept = true;
    }
    drop_others(s);
    return BT_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct child *x = *(struct child *const *)a;
    const struct child *y = *(struct child *const *)b;

    return x->place != y->place ? (x->place < y->place ? -1 : 1) : strverscmp(x->name, y->name);
}

static enum bt_code gather(struct spawn *s, struct spawn_group *g, struct bt_error *err)
{
    struct group_member *members = calloc(s->children_n + 1, sizeof *members);
    struct child **of = calloc(s->children_n + 1, sizeof(struct child *));
    uint32_t n = 0;

    if (members == NULL || of == NULL) {
        free(members);
        free(of);
        return err_set(err, BT_NOMEM, "out of memory for the members of a group of agents");
    }
    for (size_t i = 0; i < s->children_n; i++) {
        if (s->children[i]->group == g) {
            of[n++] = s->children[i];
        }
    }
    qsort(of, n, sizeof(struct child *), by_place);
    for (uint32_t i = 0; i < n; i++) {
        struct child *c = of[i];
        const bool known = c->ix < g->n && g->of[c->ix] == c;

        members[i] = known ? g->members[c->ix] : (struct group_member){.child = &c->policy};
        members[i].parked = c->parked || c->removed;
        members[i].ready = known ? members[i].ready : c->policy.state == POLICY_UP;
    }
    for (uint32_t i = 0; i < n; i++) {
        of[i]->ix = i;
    }
    free(g->members);
    free(g->of);
    g->members = members;
    g->of = of;
    g->n = n;
    return BT_OK;
}

enum bt_code spawn_groups_gather(struct spawn *s, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (size_t i = 0; i < s->groups_n && code == BT_OK; i++) {
        code = gather(s, s->groups[i], err);
    }
    return code;
}

void spawn_group_leave(struct child *c)
{
    struct spawn_group *g = c->group;

    for (uint32_t i = c->ix; i + 1 < g->n; i++) {
        g->members[i] = g->members[i + 1];
        g->of[i] = g->of[i + 1];
        g->of[i]->ix = i;
    }
    g->n--;
    c->group = NULL;
}

void spawn_group_run(struct spawn *s, struct spawn_group *g, msec now)
{
    struct group_order order;

    if (g->running) {
        return; /* the call that is under way asks again */
    }
    g->running = true;
    while (group_next(&g->group, g->members, g->n, now, &order)) {
        spawn_apply(s, g->of[order.ix],
                    &(struct policy_event){.type = order.type == GROUP_ORDER_START ? POLICY_ON_START
                                                                                   : POLICY_ON_STOP,
                                           .now = now,
                                           .grace_ms = order.grace_ms});
    }
    g->running = false;
}

static void gave_up(struct spawn *s, const struct spawn_group *g, const struct child *last)
{
    char reason[2 * SPAWN_REASON_MAX];

    (void)snprintf(reason, sizeof reason,
                   "the group %s had %u crashes within %" PRIu64 " ms; the last: %s: %s", g->name,
                   g->group.set.intensity, g->group.set.period_ms, last->name, last->reason);
    spawn_emit(s, last, SPAWN_GROUP_GAVE_UP, reason);
    (void)snprintf(s->events[(s->events_at + s->events_n - 1) % s->events_cap].name,
                   SPAWN_NAME_MAX + 1, "%s", g->name);
    for (uint32_t i = 0; i < g->n; i++) {
        spawn_emit(s, g->of[i], SPAWN_GAVE_UP, reason);
    }
}

void spawn_group_note(struct spawn *s, struct child *c, enum policy_command what, msec now)
{
    struct spawn_group *g = c->group;

    if (g == NULL) {
        return;
    }
    if (what == POLICY_CAME_UP) {
        group_came_up(g->members, c->ix);
    } else if (what == POLICY_ENDED) {
        group_ended(g->members, c->ix);
    } else if (s->blameless) {
        group_again(g->members, c->ix, now);
    } else if (group_crashed(&g->group, g->members, g->n, c->ix, now)) {
        gave_up(s, g, c);
    }
}

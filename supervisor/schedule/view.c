/* How schedules are shown, and what people do with them. */
#include <stdio.h>

#include "protocol/base/utf8.h"
#include "protocol/zone/stamp.h"
#include "supervisor/engine/access.h"
#include "supervisor/schedule/schedule_internal.h"

struct schedule *schedules_find(struct schedules *s, struct str name)
{
    const struct identity *who = engine_who(s->engine);
    char own[ACCESS_NAME_MAX + 1];
    struct schedule *p;

    access_own_name(who, name, own);
    p = own[0] != 0 ? table_find(s, str_from(own)) : NULL;
    p = p == NULL ? table_find(s, name) : p;
    return p != NULL && access_sees(who, str_from(p->owner)) ? p : NULL;
}

struct str schedule_name(const struct schedule *p)
{
    return str_from(p->name);
}

struct str schedule_owner(const struct schedule *p)
{
    return str_from(p->owner);
}

uint64_t schedule_number(const struct schedule *p)
{
    return p->ix;
}

uint32_t schedule_open_plans(const struct schedule *p)
{
    return p->open;
}

uint32_t schedules_page(struct schedules *s, uint64_t after, struct schedule **ret, uint32_t max)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) { /* mostly in their order */
        struct schedule *p = s->at[i];
        uint32_t at = n;
        if (p->ix <= after || (n == max && p->ix > ret[n - 1]->ix) ||
            !access_sees(engine_who(s->engine), str_from(p->owner))) {
            continue;
        }
        while (at > 0 && ret[at - 1]->ix > p->ix) {
            at--;
        }
        n -= n == max ? 1 : 0;
        memmove(ret + at + 1, ret + at, (n - at) * sizeof(struct schedule *));
        ret[at] = p;
        n++;
    }
    return n;
}

static struct str stamp(const struct schedules *s, const struct schedule *p, msec at,
                        struct arena *arena)
{
    char text[STAMP_MAX] = "";

    if (at != 0) {
        stamp_write(zones_at(s->zones, p->zone), at, text);
    }
    return arena_str(arena, str_from(text));
}

static enum bt_code put_times(struct schedules *s, const struct schedule *p, uint32_t n,
                              struct arena *arena, struct msg_schedule_view *ret,
                              struct bt_error *err)
{
    const struct zone *zone = zones_at(s->zones, p->zone);
    msec at = engine_wall(s->engine);

    at = p->cursor > at ? p->cursor : at;
    ret->next = arena_alloc(arena, (n + 1) * sizeof *ret->next);
    if (ret->next == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for times");
    }
    while (p->life != SCHEDULE_ENDED && ret->next_n < n && schedule_next(&p->rule, zone, at, &at)) {
        ret->next[ret->next_n++] = stamp(s, p, at, arena);
    }
    return BT_OK;
}

static void put_rule(const struct msg_rec_schedule_rule *rule, struct msg_schedule_view *ret)
{
    ret->cron = rule->cron;
    ret->every_ms = rule->every_ms;
    ret->at = rule->at;
    ret->tz = rule->tz;
    ret->overlap = rule->overlap;
    ret->catch_up_ms = rule->catch_up_ms;
    ret->jitter_ms = rule->jitter_ms;
    ret->end_at = rule->end_at;
    ret->max_failures = rule->max_failures;
}

static void put_document(const struct msg_rec_schedule_document *doc, struct msg_schedule_view *ret)
{
    ret->plan = doc->plan;
    ret->inputs = doc->inputs;
    ret->goal = doc->goal;
    ret->planner = doc->planner;
    ret->policy = doc->policy;
}

static enum bt_code read_copy(struct arena *arena, struct str bytes, enum msg_type type, void *ret,
                              struct bt_error *err)
{
    const struct doc copy = doc_copy(arena, (struct doc){(const uint8_t *)bytes.ptr, bytes.len});

    return copy.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for a schedule")
                            : msg_read_doc(arena, copy, type, ret, err);
}

static void put_state(const struct schedules *s, const struct schedule *p, struct arena *arena,
                      struct msg_schedule_view *ret)
{
    char id[UUID_TEXT_LEN + 1];

    ret->name = arena_str(arena, str_from(p->name));
    ret->owner = arena_str(arena, access_owner_shown(str_from(p->owner)));
    ret->status = str_from(schedule_status(p));
    ret->reason = arena_str(arena, str_from(p->reason != NULL ? p->reason : ""));
    ret->last_time = stamp(s, p, p->last_time, arena);
    if (!uuid_is_nil(p->last_plan)) {
        uuid_format(p->last_plan, id);
        ret->last_plan_id = arena_str(arena, str_from(id));
    }
    ret->open_plans = p->open;
    ret->fired = p->fired;
    ret->skipped = p->skipped;
    ret->failures = p->failures;
    if (p->back_cursor < p->back_to) {
        ret->backfill_from = stamp(s, p, p->back_cursor + 1, arena);
        ret->backfill_to = stamp(s, p, p->back_to, arena);
    }
    ret->created_at = stamp(s, p, p->created, arena);
}

enum bt_code schedules_view(struct schedules *s, const struct schedule *p, uint32_t next,
                            bool document, struct arena *arena, struct msg_schedule_view *ret,
                            struct bt_error *err)
{
    struct msg_rec_schedule_document doc;
    struct msg_rec_schedule_rule rule;
    struct journal_schedule row;
    enum bt_code code =
        journal_schedule_by_name(engine_journal(s->engine), str_from(p->name), &row, err);

    *ret = (struct msg_schedule_view){.has = 0};
    if (code == BT_OK) {
        code = read_copy(arena, row.rule, MSG_rec_schedule_rule, &rule, err);
    }
    if (code == BT_OK && document) {
        code = read_copy(arena, row.doc, MSG_rec_schedule_document, &doc, err);
    }
    if (code != BT_OK) {
        return code;
    }
    put_rule(&rule, ret);
    put_state(s, p, arena, ret);
    if (document) {
        put_document(&doc, ret);
    }
    return put_times(s, p, next, arena, ret, err);
}

/* ---- orders ---- */

enum bt_code schedules_pause(struct schedules *s, struct schedule *p, struct str reason,
                             struct bt_error *err)
{
    char by[SCHEDULE_REASON_MAX];
    const struct identity *who = engine_who(s->engine);

    if (p->life == SCHEDULE_PAUSED) {
        return BT_OK;
    }
    (void)snprintf(by, sizeof by, "paused by %s", who != NULL ? who->id : "the supervisor");
    return fire_paused(s, p, "person", reason.len > 0 ? reason : str_from(by), err);
}

enum bt_code schedules_resume(struct schedules *s, struct schedule *p, struct bt_error *err)
{
    enum bt_code code;

    if (p->life != SCHEDULE_PAUSED) {
        return BT_OK;
    }
    p->life = SCHEDULE_ACTIVE;
    p->failures = 0;
    p->cursor = engine_wall(s->engine) > p->cursor ? engine_wall(s->engine) : p->cursor;
    store_set_reason(p, (struct str){"", 0});
    code = store_state(s, p, err);
    fire_look_again(s, p);
    return code;
}

enum bt_code schedules_delete(struct schedules *s, struct schedule *p, struct bt_error *err)
{
    enum bt_code code;

    if (schedule_is_declared(p) && !s->declaring) {
        return err_set(err, BT_CONFLICT,
                       "the configuration declares the schedule '%s': take it out there and run "
                       "baton reload, or pause it",
                       p->name);
    }
    code = journal_schedule_delete(engine_journal(s->engine), p->ix, err);

    if (code == BT_OK) {
        table_remove(s, p);
    }
    return code;
}

enum bt_code schedules_trigger(struct schedules *s, struct schedule *p, struct str client_key,
                               struct submission *d, char ret_id[UUID_TEXT_LEN + 1],
                               bool *ret_existing, struct bt_error *err)
{
    char key[SCHEDULE_KEY_MAX];
    char fresh[UUID_TEXT_LEN + 1];
    char open[UUID_TEXT_LEN + 1];
    enum bt_code code = BT_OK;
    enum fired fired;

    uuid_format(uuid_new(), fresh);
    client_key = client_key.len > 0 ? client_key : str_from(fresh);
    (void)snprintf(key, sizeof key, SCHEDULE_KEYS "%s/trigger/%.*s", p->name, STR_ARG(client_key));
    *ret_existing = fire_known(s, p, str_from(key), ret_id, err);
    if (*ret_existing) {
        return BT_OK;
    }
    if (p->open > 0 && p->overlap != OVERLAP_ALLOW) {
        uuid_format(p->last_plan, open);
        return err_set(err, BT_CONFLICT,
                       "the schedule '%s' has the open plan %s, and its overlap is %s: wait for "
                       "it, or cancel it (baton cancel)",
                       p->name, open, store_overlap_name(p->overlap));
    }
    fired = fire_plan(s, p, 0, str_from(key), STR_LIT("trigger"), d, ret_id, err);
    if (fired == FIRED) {
        code = store_state(s, p, err);
    } else {
        *ret_existing = fired == FIRED_BEFORE;
        code = *ret_existing ? BT_OK : err->code;
    }
    return code;
}

static enum bt_code read_range(struct schedules *s, const struct schedule *p,
                               const struct msg_schedule_backfill *m, msec *ret_from, msec *ret_to,
                               struct bt_error *err)
{
    const struct zone *zone = zones_at(s->zones, p->zone);

    if (stamp_read(m->from, zone, ret_from, err) != BT_OK) {
        return err_wrap(err, "from");
    }
    if (stamp_read(m->to, zone, ret_to, err) != BT_OK) {
        return err_wrap(err, "to");
    }
    if (*ret_to < *ret_from) {
        return err_set(err, BT_INVALID, "to: it is before from: expected the later time");
    }
    return *ret_to <= engine_wall(s->engine)
               ? BT_OK
               : err_set(err, BT_INVALID,
                         "to: it is still to come: expected a time that has passed, because the "
                         "schedule itself makes the plans of the times to come");
}

enum bt_code schedules_backfill(struct schedules *s, struct schedule *p,
                                const struct msg_schedule_backfill *m,
                                struct msg_schedule_backfill_ok *ret, struct arena *arena,
                                struct bt_error *err)
{
    const struct zone *zone = zones_at(s->zones, p->zone);
    msec from = 0;
    msec to = 0;
    msec at;
    enum bt_code code;

    if (p->back_cursor < p->back_to) {
        return err_set(err, BT_CONFLICT,
                       "another backfill of the schedule '%s' is not over: wait for it (baton "
                       "schedule get)",
                       p->name);
    }
    if (p->life == SCHEDULE_PAUSED) {
        return err_set(err, BT_CONFLICT, "the schedule '%s' is paused: resume it first", p->name);
    }
    code = read_range(s, p, m, &from, &to, err);
    if (code != BT_OK) {
        return code;
    }
    at = from > 0 ? from - 1 : 0;
    while (ret->times <= SCHEDULE_BACKFILL_MAX && schedule_next(&p->rule, zone, at, &at) &&
           at <= to) {
        ret->first = ret->times++ == 0 ? stamp(s, p, at, arena) : ret->first;
        ret->last = stamp(s, p, at, arena);
    }
    if (ret->times > SCHEDULE_BACKFILL_MAX) {
        return err_set(err, BT_LIMIT,
                       "the range has more than %d times of the schedule: expected a shorter one",
                       SCHEDULE_BACKFILL_MAX);
    }
    if (ret->times == 0) {
        return err_set(err, BT_INVALID, "the range has no time of the schedule '%s'", p->name);
    }
    p->back_cursor = from > 0 ? from - 1 : 0;
    p->back_to = to;
    p->life = SCHEDULE_ACTIVE;
    code = store_state(s, p, err);
    fire_look_again(s, p);
    return code;
}

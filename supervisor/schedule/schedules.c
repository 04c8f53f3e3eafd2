/* The room's state: made, read from the journal, freed. */
#include "supervisor/schedule/schedules.h"

#include <stdlib.h>

#include "protocol/base/log.h"
#include "protocol/zone/stamp.h"
#include "supervisor/schedule/schedule_internal.h"

enum bt_code schedules_new(struct engine *engine, struct schedules **ret, struct bt_error *err)
{
    struct schedules *s = calloc(1, sizeof *s);
    enum bt_code code;

    *ret = NULL;
    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for schedules");
    }
    s->engine = engine;
    s->declared_at = MSEC_NEVER;
    buf_init(&s->bytes, LIMIT_CONTROL_BYTES);
    buf_init(&s->document, LIMIT_STEP_BYTES);
    code = zones_new(&s->zones, err);
    if (code != BT_OK) {
        schedules_free(s);
        return code;
    }
    *ret = s;
    return BT_OK;
}

void schedules_free(struct schedules *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        schedule_free(s->at[i]);
    }
    for (uint32_t i = 0; i < s->open_n; i++) {
        free(s->open[i]);
    }
    free(s->at);
    free(s->heap);
    free(s->open);
    declared_done(s);
    map_done(&s->by_name);
    map_done(&s->by_plan);
    buf_done(&s->bytes);
    buf_done(&s->document);
    zones_free(s->zones);
    free(s);
}

/* ---- the journal ---- */

struct loading {
    struct schedules *s;
    struct bt_error why;
    enum bt_code code;
};

static enum bt_code read_one(struct loading *l, const struct journal_schedule *row,
                             struct schedule *p)
{
    const struct doc rule = {(const uint8_t *)row->rule.ptr, row->rule.len};
    const struct doc state = {(const uint8_t *)row->state.ptr, row->state.len};
    enum bt_code code = store_read_state(state, p, &l->why);

    return code == BT_OK ? store_read_rule(l->s, rule, p, &l->why) : code;
}

/* A schedule that cannot be read, or whose time zone is gone, is there and does nothing. */
static bool load_one(const struct journal_schedule *row, void *self)
{
    struct loading *l = self;
    struct schedule *p = NULL;

    if (row->damaged) {
        return true; /* the journal has logged it */
    }
    l->code = schedule_new(row->name, row->owner, &p, &l->why);
    if (l->code != BT_OK) {
        return false;
    }
    p->ix = row->ix;
    p->body_hash = row->body_hash;
    p->created = row->created_wall;
    if (read_one(l, row, p) != BT_OK) {
        log_err("schedule.unreadable", "schedule=%s %s; it is paused", p->name, l->why.msg);
        p->life = SCHEDULE_PAUSED;
        p->rule = (struct schedule_rule){.kind = SCHEDULE_AT, .end_ms = MSEC_NEVER};
        store_set_reason(p, str_from(l->why.msg));
    }
    l->code = table_add(l->s, p, &l->why);
    return l->code == BT_OK;
}

/* The plans of schedules that are open. */
static enum bt_code find_open(struct schedules *s, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (const struct open_plan *o = NULL;
         code == BT_OK && (o = open_plan_next(s->engine, o)) != NULL;) {
        struct journal_plan row;
        struct bt_error why;
        struct str name;
        struct str time;
        struct uuid id;
        struct schedule *p;
        if (o->job != NULL || plan_is_final(core_block_run(o->block)->status) ||
            !uuid_parse(str_from(o->id), &id) ||
            journal_plan_by_id(engine_journal(s->engine), id, &row, &why) != BT_OK ||
            !schedule_of_key(row.client_key, &name, &time)) {
            continue;
        }
        p = table_find(s, name);
        if (p != NULL) {
            code = table_open(s, p, o->id, err);
        }
    }
    return code;
}

enum bt_code schedules_load(struct schedules *s, struct bt_error *err)
{
    struct loading l = {.s = s, .code = BT_OK};
    enum bt_code code = journal_schedules(engine_journal(s->engine), 0, load_one, &l, err);

    if (code == BT_OK && l.code != BT_OK) {
        *err = l.why;
        code = l.code;
    }
    if (code == BT_OK && s->n > 0) {
        code = find_open(s, err);
    }
    for (uint32_t i = 0; code == BT_OK && i < s->n; i++) {
        fire_look_again(s, s->at[i]);
    }
    s->loaded = code == BT_OK;
    if (s->n > 0) {
        log_info("schedule.loaded", "schedules=%u open_plans=%u", s->n, s->open_n);
    }
    return code;
}

enum bt_code schedules_adopt(struct schedules *s, struct str name, struct bt_error *err)
{
    struct loading l = {.s = s, .code = BT_OK};
    struct journal_schedule row;
    enum bt_code code = journal_schedule_by_name(engine_journal(s->engine), name, &row, err);

    if (code == BT_OK && table_find(s, name) == NULL) {
        (void)load_one(&row, &l);
        code = l.code;
        *err = l.why;
    }
    return code;
}

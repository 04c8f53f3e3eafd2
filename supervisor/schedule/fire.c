/* What is due: verdicts are carried out. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "protocol/zone/stamp.h"
#include "supervisor/core/mutant.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/schedule/schedule_internal.h"

enum {
    FIRES_A_CYCLE = 64,
    VERDICTS_A_CYCLE = 1024,
    AGAIN_MS = 1000,        /* for want of room or agents */
    AGENTS_WAIT_MS = 60000, /* a fire waits for missing agents, at most the catch-up window */
    SET_BACK_MS = 3 * 3600 * 1000, /* the wall clock: less is a correction */
    ZONES_MS = 3600 * 1000
};

static const char *const WHYS[WHY_COUNT] = {
    [WHY_MISSED] = "missed",         [WHY_SUPERSEDED] = "superseded", [WHY_OVERLAP] = "overlap",
    [WHY_QUEUE_FULL] = "queue_full", [WHY_INVALID] = "invalid",
};

/* ---- events ---- */

enum bt_code fire_emit(struct schedules *s, enum record_type type, struct str text,
                       struct record_extra *x, struct bt_error *err)
{
    struct record rec = {
        .type = type, .now = engine_now(s->engine), .wall = engine_wall(s->engine)};

    rec.text = (struct str){text.ptr, utf8_cut(text.ptr, text.len, 500)};
    return engine_write_record(s->engine, &rec, x, err);
}

static enum bt_code emit_skipped(struct schedules *s, const struct schedule *p,
                                 const struct schedule_verdict *v, struct str text,
                                 struct bt_error *err)
{
    struct record_extra x = {
        .schedule = {.name = str_from(p->name), .kind = str_from(WHYS[v->why]), .count = v->count}};
    char first[STAMP_MAX];
    char last[STAMP_MAX];

    stamp_write(&ZONE_UTC, v->at, first);
    stamp_write(&ZONE_UTC, v->last, last);
    x.schedule.scheduled_for = str_from(first);
    if (v->count > 1) {
        x.schedule.until = str_from(last);
    }
    log_info("schedule.skipped", "schedule=%s time=%s kind=%s count=%u", p->name, first,
             WHYS[v->why], v->count);
    return fire_emit(s, REC_SCHEDULE_SKIPPED, text, &x, err);
}

enum bt_code fire_paused(struct schedules *s, struct schedule *p, const char *kind,
                         struct str reason, struct bt_error *err)
{
    struct record_extra x = {.schedule = {.name = str_from(p->name), .kind = str_from(kind)}};
    enum bt_code code;

    reason.len = utf8_cut(reason.ptr, reason.len, SCHEDULE_REASON_MAX - 1);
    p->life = SCHEDULE_PAUSED;
    p->queued_from = 0;
    p->held_since = 0;
    store_set_reason(p, reason);
    log_warn("schedule.paused", "schedule=%s %.*s", p->name, STR_ARG(reason));
    code = fire_emit(s, REC_SCHEDULE_PAUSED, reason, &x, err);
    code = code == BT_OK ? store_state(s, p, err) : code;
    table_due(s, p, MSEC_NEVER);
    return code;
}

/* ---- verdicts ---- */

struct schedule_case fire_case(const struct schedules *s, const struct schedule *p)
{
    return (struct schedule_case){.rule = &p->rule,
                                  .zone = zones_at(s->zones, p->zone),
                                  .seed = p->seed,
                                  .jitter_ms = p->jitter_ms,
                                  .catch_up_ms = p->catch_up_ms,
                                  .overlap = (enum schedule_overlap)p->overlap,
                                  .cursor = p->cursor,
                                  .queued_from = p->queued_from,
                                  .back_cursor = p->back_cursor,
                                  .back_to = p->back_to,
                                  .open = p->open > 0,
                                  .now = engine_wall(s->engine)};
}

void fire_look_again(struct schedules *s, struct schedule *p)
{
    struct schedule_case c = fire_case(s, p);
    struct schedule_verdict v;

    if (p->life != SCHEDULE_ACTIVE) {
        table_due(s, p, MSEC_NEVER);
        return;
    }
    schedule_decide(&c, &v);
    table_due(s, p, v.what == SCHEDULE_WAIT ? v.until : c.now);
}

static void accept(struct schedule *p, const struct schedule_verdict *v)
{
    p->cursor = v->cursor;
    p->queued_from = v->queued_from;
    p->back_cursor = v->back_cursor;
    if (p->back_cursor >= p->back_to) {
        p->back_cursor = p->back_to = 0;
    }
    p->held_since = 0;
}

static enum bt_code skip(struct schedules *s, struct schedule *p, const struct schedule_verdict *v,
                         struct str text, struct bt_error *err)
{
    enum bt_code code = emit_skipped(s, p, v, text, err);

    accept(p, v);
    p->skipped += v->count;
    return code == BT_OK ? store_state(s, p, err) : code;
}

/* One failure more; too many in a row pause the schedule. */
static enum bt_code count_failure(struct schedules *s, struct schedule *p, const char *last,
                                  struct bt_error *err)
{
    char reason[SCHEDULE_REASON_MAX];

    p->failures++;
    if (p->max_failures == 0 || p->failures < p->max_failures || p->life != SCHEDULE_ACTIVE) {
        return store_state(s, p, err);
    }
    (void)snprintf(reason, sizeof reason, "%u plan%s failed in a row, the limit; the last: %.180s",
                   p->failures, p->failures == 1 ? "" : "s", last);
    return fire_paused(s, p, "failures", str_from(reason), err);
}

/* The plan cannot be made, and waiting would not help. */
static enum bt_code skip_invalid(struct schedules *s, struct schedule *p,
                                 const struct schedule_verdict *v, const struct bt_error *why,
                                 struct bt_error *err)
{
    struct schedule_verdict never = *v;
    struct bt_error kept = *why;
    enum bt_code code;

    if (why->code == BT_UNAUTHORIZED) {
        return fire_paused(s, p, "owner", str_from(kept.msg), err);
    }
    never.why = WHY_INVALID;
    never.last = v->at;
    never.count = 1;
    code = skip(s, p, &never, str_from(kept.msg), err);
    return code == BT_OK ? count_failure(s, p, kept.msg, err) : code;
}

static void fire(struct schedules *s, struct schedule *p, const struct schedule_verdict *v)
{
    const msec now = engine_wall(s->engine);
    const msec patience = p->catch_up_ms < AGENTS_WAIT_MS ? p->catch_up_ms : AGENTS_WAIT_MS;
    char id[UUID_TEXT_LEN + 1] = "";
    char key[SCHEDULE_KEY_MAX];
    char time[STAMP_MAX];
    struct submission d;
    struct bt_error why;
    struct bt_error err;
    enum fired fired = FIRED_NOT_YET;
    enum bt_code code = BT_OK;

    stamp_write(&ZONE_UTC, v->at, time);
    (void)snprintf(key, sizeof key, SCHEDULE_KEYS "%s/%s", p->name, time);
    if (submission_init(&d, &why) == BT_OK) {
        fired = fire_plan(s, p, v->at, str_from(key),
                          v->backfill ? STR_LIT("backfill") : STR_LIT("time"), &d, id, &why);
    }
    submission_done(&d);
    if (engine_has_failed(s->engine)) {
        return;
    }
    if (fired == FIRED_NOT_YET) {
        p->held_since = p->held_since == 0 ? now : p->held_since;
        /* Room comes, and the catch-up window is for that; agents have less time. */
        if (why.code == BT_BUSY || why.code == BT_UNAVAILABLE || why.code == BT_NOMEM ||
            now - p->held_since <= patience) {
            table_due(s, p, now + AGAIN_MS);
            return;
        }
        fired = FIRED_NEVER;
    }
    if (fired == FIRED_NEVER) {
        code = skip_invalid(s, p, v, &why, &err);
    } else {
        accept(p, v);
        code = MUTANT(CURSOR_FORGOTTEN) ? BT_OK : store_state(s, p, &err);
    }
    if (code != BT_OK) {
        engine_fail(s->engine, &err);
    }
}

static void cancel_open(struct schedules *s, const struct schedule *p)
{
    char text[160];
    struct core_event ev = {.type = CORE_CANCEL};
    struct bt_error err;

    (void)snprintf(text, sizeof text, "the next time of the schedule '%s' has come", p->name);
    ev.text = str_from(text);
    for (uint32_t i = 0; i < s->open_n; i++) {
        const struct schedule_open *o = s->open[i];
        const struct open_plan *plan =
            o->ix == p->ix ? open_plan_by_id(s->engine, str_from(o->id)) : NULL;
        const uint32_t n = s->open_n;
        if (plan == NULL || core_block_run(plan->block)->cancelling) {
            continue;
        }
        ev.run = plan->run;
        if (engine_feed(s->engine, &ev, NULL, &err) != BT_OK) {
            engine_fail(s->engine, &err);
            return;
        }
        i -= s->open_n < n ? 1 : 0; /* it ended at once, and another one is in its place */
    }
}

/* After a fire or a skip the schedule stays due, and is asked again. */
static void act(struct schedules *s, struct schedule *p, const struct schedule_verdict *v)
{
    const bool changed = v->queued_from != p->queued_from || v->back_cursor != p->back_cursor;
    struct bt_error err;
    enum bt_code code = BT_OK;

    switch (v->what) {
    case SCHEDULE_FIRE:
        fire(s, p, v);
        break;
    case SCHEDULE_SKIP:
        code = skip(s, p, v, (struct str){"", 0}, &err);
        break;
    case SCHEDULE_CANCEL:
        cancel_open(s, p);
        table_due(s, p, v->until);
        break;
    case SCHEDULE_END:
        p->life = SCHEDULE_ENDED;
        accept(p, v);
        code = store_state(s, p, &err);
        table_due(s, p, MSEC_NEVER);
        break;
    case SCHEDULE_HOLD:
    case SCHEDULE_WAIT:
    default:
        if (changed) {
            accept(p, v);
            code = store_state(s, p, &err);
        }
        table_due(s, p, v->until);
        break;
    }
    if (code != BT_OK) {
        engine_fail(s->engine, &err);
    }
}

/* The wall clock was set back by more than a correction: the times from now on come again, as new
 * ones; the key of a time that has fired is known. */
static void notice_set_back(struct schedules *s, msec now)
{
    if (now + SET_BACK_MS < s->wall_seen) {
        log_warn("schedule.clock", "the clock was set back by %" PRIu64 " s",
                 (s->wall_seen - now) / 1000);
        for (uint32_t i = 0; i < s->n; i++) {
            struct schedule *p = s->at[i];
            if (p->life == SCHEDULE_ACTIVE && p->cursor > now + SET_BACK_MS) {
                p->cursor = now;
            }
            fire_look_again(s, p);
        }
        s->wall_seen = now;
    }
    s->wall_seen = now > s->wall_seen ? now : s->wall_seen;
}

static void notice_zones(struct schedules *s, msec now)
{
    if (now < s->zones_at && now + ZONES_MS >= s->zones_at) {
        return;
    }
    s->zones_at = now + ZONES_MS;
    if (s->n > 0 && zones_refresh(s->zones)) {
        for (uint32_t i = 0; i < s->n; i++) {
            fire_look_again(s, s->at[i]);
        }
    }
}

/* Not while the daemon stops, and not without room: every fire writes. */
static bool may_fire(const struct schedules *s)
{
    return s->loaded && (s->n > 0 || s->declared_at != MSEC_NEVER) &&
           !engine_is_draining(s->engine) && !engine_is_stalled(s->engine) &&
           !journal_storage_low(engine_journal(s->engine));
}

void schedules_cycle(struct schedules *s)
{
    const msec now = engine_wall(s->engine);
    uint32_t fires = 0;

    if (!may_fire(s)) {
        return;
    }
    declared_cycle(s);
    notice_set_back(s, now);
    notice_zones(s, now);
    for (int i = 0; i < VERDICTS_A_CYCLE && fires < FIRES_A_CYCLE && s->n > 0; i++) {
        struct schedule *p = s->at[s->heap[0]];
        struct schedule_case c;
        struct schedule_verdict v;
        if (p->due > now || engine_has_failed(s->engine)) {
            break;
        }
        c = fire_case(s, p);
        schedule_decide(&c, &v);
        fires += v.what == SCHEDULE_FIRE;
        act(s, p, &v);
    }
}

msec schedules_deadline(const struct schedules *s, msec mono, msec wall)
{
    const msec first = s->n > 0 ? s->at[s->heap[0]]->due : MSEC_NEVER;
    const msec due = s->declared_at < first ? s->declared_at : first;

    if (due == MSEC_NEVER || due > wall) {
        return due == MSEC_NEVER ? MSEC_NEVER : msec_add(mono, due - wall);
    }
    return may_fire(s) ? mono : msec_add(mono, AGAIN_MS);
}

enum bt_code schedules_plan_ended(struct schedules *s, struct str plan_id, enum plan_status status,
                                  struct bt_error *err)
{
    struct schedule *p = s->by_plan.used > 0 ? table_close(s, plan_id) : NULL;
    enum bt_code code = BT_OK;
    char last[UUID_TEXT_LEN + 8];

    if (p == NULL) {
        return BT_OK;
    }
    if (status == PLAN_FAILED) {
        (void)snprintf(last, sizeof last, "plan %.*s", STR_ARG(plan_id));
        code = count_failure(s, p, last, err);
    } else if (status == PLAN_COMPLETED && p->failures > 0) {
        p->failures = 0;
        code = store_state(s, p, err);
    }
    if (p->life == SCHEDULE_ACTIVE && p->due > engine_wall(s->engine)) {
        fire_look_again(s, p);
    }
    return code;
}

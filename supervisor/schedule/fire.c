/* What is due: plans are made, times are skipped. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/auth/sessions.h"
#include "supervisor/engine/access.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/plan/recipe.h"
#include "supervisor/schedule/schedule_internal.h"
#include "supervisor/schedule/stamp.h"

enum {
    FIRES_A_CYCLE = 64,
    VERDICTS_MAX = 32,      /* of one schedule in a cycle */
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

static enum bt_code emit(struct schedules *s, enum record_type type, struct str text,
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
    return emit(s, REC_SCHEDULE_SKIPPED, text, &x, err);
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
    code = emit(s, REC_SCHEDULE_PAUSED, reason, &x, err);
    code = code == BT_OK ? store_state(s, p, err) : code;
    table_due(s, p, MSEC_NEVER);
    return code;
}

/* ---- a plan ---- */

static bool declares(struct doc recipe, const char *input)
{
    const struct doc properties =
        doc_get(doc_get(recipe, STR_LIT("inputs")), STR_LIT("properties"));

    return doc_get(properties, str_from(input)).ptr != NULL;
}

/* The inputs, with the time that the plan is for when the recipe has an input for it. */
static enum bt_code put_values(struct schedules *s, const struct schedule *p, struct doc recipe,
                               struct doc inputs, msec at, struct buf *out, struct bt_error *err)
{
    static const char TIME[] = "scheduledTime";
    const bool timed = declares(recipe, TIME) && doc_get(inputs, str_from(TIME)).ptr == NULL;
    struct doc_cursor c = doc_cursor(inputs);
    struct doc_head map = {.kind = DOC_MAP};
    char text[STAMP_MAX];

    if (inputs.ptr != NULL && (!doc_next(&c, &map) || map.kind != DOC_MAP)) {
        return err_set(err, BT_INVALID, "inputs: expected a map of names and values");
    }
    doc_put_map(out, map.n + (timed ? 1 : 0));
    for (uint32_t i = 0; i < map.n * 2; i++) {
        doc_put_doc(out, doc_skip(&c));
    }
    if (timed) {
        stamp_write(zones_at(s->zones, p->zone), at, text);
        doc_put_cstr(out, TIME);
        doc_put_cstr(out, text);
    }
    return buf_check(out, err);
}

enum bt_code fire_make(struct schedules *s, const struct schedule *p,
                       const struct msg_rec_schedule_document *doc, msec at, struct submission *d,
                       struct bt_error *err)
{
    struct submit_request w = {
        .goal = doc->goal, .planner = doc->planner, .plan = doc->plan, .policy = doc->policy};
    struct buf values;
    enum bt_code code = BT_OK;

    if (doc->plan.ptr != NULL && recipe_is(doc->plan)) {
        buf_init(&values, LIMIT_CONTROL_BYTES);
        buf_clear(&s->document);
        code = put_values(s, p, doc->plan, doc->inputs, at, &values, err);
        if (code == BT_OK) {
            code = recipe_fill(doc->plan, doc_from_buf(&values), &s->document, err);
        }
        buf_done(&values);
        w.plan = doc_from_buf(&s->document);
    } else if (doc->inputs.ptr != NULL && doc_head(doc->inputs).n > 0) {
        code = err_set(err, BT_INVALID, "inputs: they are for a recipe, and this is none");
    }
    if (code == BT_OK) {
        code = submission_make(s->engine, &w, d, err);
    }
    if (code == BT_OK && d->made->session_id.len > 0) {
        code = err_set(err, BT_INVALID,
                       "sessionId: the plans of a schedule belong to no session; leave it out");
    }
    return code;
}

/* Of what a plan lacks now and may have soon. */
static bool only_agents_missing(const struct submission *d)
{
    uint32_t missing = d->planned.n_unrouted;

    for (uint32_t i = 0; i < d->problems.n; i++) {
        const struct problem *q = &d->problems.at[i];
        if (!q->warning && q->category != PROBLEM_MISSING_AGENT &&
            q->category != PROBLEM_MISSING_SKILL) {
            return false;
        }
        missing += !q->warning;
    }
    return missing > 0;
}

static uint64_t hash_of_time(const struct schedule *p, msec at)
{
    return (p->seed ^ (at * UINT64_C(0x9E3779B97F4A7C15))) >> 1;
}

/* The key was used: its plan is there, or was deleted. */
static enum bt_code find_before(struct schedules *s, const struct schedule *p, struct str key,
                                char ret_id[UUID_TEXT_LEN + 1], struct bt_error *err)
{
    struct identity owner = {.role = ROLE_SUBMITTER};
    struct journal *j = engine_journal(s->engine);
    struct journal_plan row;
    struct journal_gone gone;
    struct buf stored;
    enum bt_code code;

    buf_init(&stored, SCHEDULE_KEY_MAX + LIMIT_ID_BYTES + 2);
    (void)snprintf(owner.id, sizeof owner.id, "%s", p->owner);
    access_client_key(&owner, key, &stored);
    code = buf_check(&stored, err);
    if (code == BT_OK) {
        code = journal_plan_by_key(j, buf_str(&stored), &row, err);
        if (code == BT_OK) {
            uuid_format(row.plan_id, ret_id);
        } else if (code == BT_NOT_FOUND) {
            code = journal_gone_by_key(j, buf_str(&stored), &gone, err);
            if (code == BT_OK) {
                uuid_format(gone.plan_id, ret_id);
            }
        }
    }
    buf_done(&stored);
    return code;
}

bool fire_known(struct schedules *s, const struct schedule *p, struct str key,
                char ret_id[UUID_TEXT_LEN + 1], struct bt_error *err)
{
    return find_before(s, p, key, ret_id, err) == BT_OK;
}

static enum fired begin(struct schedules *s, struct schedule *p, msec at, struct str key,
                        struct str kind, struct submission *d, char *ret_id, struct bt_error *err)
{
    struct submission_start how = {.client_key = key, .body_hash = hash_of_time(p, at)};
    struct record_extra x = {.schedule = {.name = str_from(p->name), .kind = kind}};
    const struct open_plan *plan;
    char time[STAMP_MAX];
    enum bt_code code = submission_start(s->engine, &how, d, ret_id, err);

    if (code != BT_OK) {
        return FIRED_NEVER; /* the journal's failures are the engine's already */
    }
    p->fired++;
    (void)uuid_parse(str_from(ret_id), &p->last_plan);
    if (at != 0) {
        stamp_write(&ZONE_UTC, at, time);
        x.schedule.scheduled_for = str_from(time);
        p->last_time = at;
    }
    x.schedule.plan_id = str_from(ret_id);
    plan = open_plan_by_id(s->engine, str_from(ret_id));
    /* A plan may end in the cycle that begins it: then plan_ended did not know it. */
    if (plan != NULL && !plan_is_final(core_block_run(plan->block)->status)) {
        code = table_open(s, p, ret_id, err);
    }
    if (code == BT_OK) {
        code = emit(s, REC_SCHEDULE_FIRED, (struct str){"", 0}, &x, err);
    }
    if (code != BT_OK) {
        engine_fail(s->engine, err);
    }
    log_info("schedule.fired", "schedule=%s kind=%.*s plan=%s", p->name, STR_ARG(kind), ret_id);
    return code == BT_OK ? FIRED : FIRED_NEVER;
}

static enum fired make_and_begin(struct schedules *s, struct schedule *p, msec at, struct str key,
                                 struct str kind, struct submission *d, char *ret_id,
                                 struct bt_error *err)
{
    struct msg_rec_schedule_document doc;
    struct journal_schedule row;
    uint64_t limit;
    enum bt_code code = find_before(s, p, key, ret_id, err);

    if (code == BT_OK) {
        return FIRED_BEFORE;
    }
    if (code != BT_NOT_FOUND) {
        engine_fail(s->engine, err);
        return FIRED_NEVER;
    }
    if (submission_room(s->engine, err) != BT_OK ||
        access_plans_left(s->engine, str_from(p->owner), &limit, err) != BT_OK) {
        return FIRED_NOT_YET;
    }
    code = journal_schedule_by_name(engine_journal(s->engine), str_from(p->name), &row, err);
    if (code == BT_OK) {
        code = msg_read_doc(&d->arena, (struct doc){(const uint8_t *)row.doc.ptr, row.doc.len},
                            MSG_rec_schedule_document, &doc, err);
    }
    if (code == BT_OK) {
        code = fire_make(s, p, &doc, at != 0 ? at : engine_wall(s->engine), d, err);
    }
    return code == BT_OK            ? begin(s, p, at, key, kind, d, ret_id, err)
           : only_agents_missing(d) ? FIRED_NOT_YET
                                    : FIRED_NEVER;
}

/* Acts for the owner while the plan is made: it is the owner's. */
enum fired fire_plan(struct schedules *s, struct schedule *p, msec at, struct str key,
                     struct str kind, struct submission *d, char ret_id[UUID_TEXT_LEN + 1],
                     struct bt_error *err)
{
    const struct identity *before = engine_who(s->engine);
    const struct identity *owner =
        p->owner[0] == 0 ? identity_local()
                         : sessions_identity(engine_options(s->engine)->sessions,
                                             str_from(p->owner), engine_wall(s->engine));
    enum fired fired = FIRED_NEVER;

    if (owner == NULL) {
        (void)err_set(err, BT_UNAUTHORIZED,
                      "its owner, the credential '%s', is revoked, expired or gone: put it as "
                      "another credential",
                      p->owner);
        return fired;
    }
    engine_act_for(s->engine, owner);
    fired = make_and_begin(s, p, at, key, kind, d, ret_id, err);
    engine_act_for(s->engine, before);
    return fired;
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

/* False: it is looked at later. */
static bool fire(struct schedules *s, struct schedule *p, const struct schedule_verdict *v)
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
        return false;
    }
    if (fired == FIRED_NOT_YET) {
        p->held_since = p->held_since == 0 ? now : p->held_since;
        /* Room comes, and the catch-up window is for that; agents have less time. */
        if (why.code == BT_BUSY || why.code == BT_UNAVAILABLE || why.code == BT_NOMEM ||
            now - p->held_since <= patience) {
            table_due(s, p, now + AGAIN_MS);
            return false;
        }
        fired = FIRED_NEVER;
    }
    if (fired == FIRED_NEVER) {
        code = skip_invalid(s, p, v, &why, &err);
    } else {
        accept(p, v);
        code = store_state(s, p, &err);
    }
    if (code != BT_OK) {
        engine_fail(s->engine, &err);
    }
    return code == BT_OK && p->life == SCHEDULE_ACTIVE;
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

/* True: another verdict may follow at once. */
static bool act(struct schedules *s, struct schedule *p, const struct schedule_verdict *v,
                uint32_t *io_fires)
{
    const bool changed = v->queued_from != p->queued_from || v->back_cursor != p->back_cursor;
    struct bt_error err;
    enum bt_code code = BT_OK;
    bool again = false;

    switch (v->what) {
    case SCHEDULE_FIRE:
        (*io_fires)--;
        return fire(s, p, v);
    case SCHEDULE_SKIP:
        code = skip(s, p, v, (struct str){"", 0}, &err);
        again = true;
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
    return again && code == BT_OK;
}

static void look_at(struct schedules *s, struct schedule *p, uint32_t *io_fires)
{
    struct schedule_verdict v;

    for (int i = 0; i<VERDICTS_MAX && * io_fires> 0; i++) {
        const struct schedule_case c = fire_case(s, p);
        schedule_decide(&c, &v);
        if (!act(s, p, &v, io_fires)) {
            return;
        }
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
    return s->loaded && s->n > 0 && !engine_is_draining(s->engine) &&
           !engine_is_stalled(s->engine) && !journal_storage_low(engine_journal(s->engine));
}

void schedules_cycle(struct schedules *s)
{
    const msec now = engine_wall(s->engine);
    uint32_t fires = FIRES_A_CYCLE;

    if (!may_fire(s)) {
        return;
    }
    notice_set_back(s, now);
    notice_zones(s, now);
    for (int i = 0; i < FIRES_A_CYCLE && fires > 0 && s->heap_n > 0; i++) {
        struct schedule *p = s->at[s->heap[0]];
        if (p->due > now || engine_has_failed(s->engine)) {
            break;
        }
        look_at(s, p, &fires);
    }
}

msec schedules_deadline(const struct schedules *s, msec mono, msec wall)
{
    const msec due = s->heap_n > 0 ? s->at[s->heap[0]]->due : MSEC_NEVER;

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

/* Schedules that people make, and how they are shown. */
#include <stdlib.h>

#include "protocol/zone/stamp.h"
#include "supervisor/engine/access.h"
#include "supervisor/plan/recipe.h"
#include "supervisor/schedule/cron_text.h"
#include "supervisor/schedule/rules/name.h"
#include "supervisor/schedule/schedule_internal.h"

enum {
    EVERY_MIN_MS = 1000,
    CATCH_UP_MIN_MS = 10000,
    TIMES_LOOKED_AT = 200, /* for the shortest time between two */
    NEXT_SHOWN = 5
};

/* ---- the rule ---- */

static enum bt_code read_kind(const struct msg_schedule_put *m, struct schedule *p, msec now,
                              const struct zone *zone, struct bt_error *err)
{
    struct cron_problem why;
    const int given = (m->cron.len > 0) + msg_has(m, schedule_put, every_ms) + (m->at.len > 0);
    enum bt_code code;

    if (given != 1) {
        return err_set(err, BT_INVALID, "expected one of cron, everyMs and at, got %s",
                       given == 0   ? "none"
                       : given == 2 ? "two of them"
                                    : "all three");
    }
    if (m->cron.len > 0) {
        p->rule.kind = SCHEDULE_CRON;
        return cron_parse(m->cron, &p->rule.cron, &why) ? BT_OK : cron_error(m->cron, &why, err);
    }
    if (m->at.len == 0) {
        p->rule.kind = SCHEDULE_EVERY;
        p->rule.every_ms = m->every_ms;
        return m->every_ms >= EVERY_MIN_MS
                   ? BT_OK
                   : err_set(err, BT_INVALID, "everyMs: %llu is too short: expected %d or more",
                             (unsigned long long)m->every_ms, EVERY_MIN_MS);
    }
    p->rule.kind = SCHEDULE_AT;
    code = stamp_read(m->at, zone, &p->rule.at_ms, err);
    if (code != BT_OK) {
        return err_wrap(err, "at");
    }
    return p->rule.at_ms > now ? BT_OK
                               : err_set(err, BT_INVALID,
                                         "at: '%.*s' has passed: expected a time to come, or "
                                         "submit the plan itself",
                                         STR_ARG(m->at));
}

/* The jitter must not be longer than the time from one fire to the next, or they would change
 * their order. */
static enum bt_code check_jitter(const struct schedule *p, const struct zone *zone, msec now,
                                 struct bt_error *err)
{
    msec at = now;
    msec next = 0;

    for (int i = 0; i < TIMES_LOOKED_AT && schedule_next(&p->rule, zone, at, &next); i++) {
        if (i > 0 && next - at <= p->jitter_ms) {
            char first[STAMP_MAX];
            char second[STAMP_MAX];
            stamp_write(zone, at, first);
            stamp_write(zone, next, second);
            return err_set(err, BT_INVALID,
                           "jitterMs: %llu is not shorter than the time from %s to %s: expected "
                           "less than %llu",
                           (unsigned long long)p->jitter_ms, first, second,
                           (unsigned long long)(next - at));
        }
        at = next;
    }
    return BT_OK;
}

static enum bt_code read_rule(struct schedules *s, const struct msg_schedule_put *m,
                              struct schedule *p, struct bt_error *err)
{
    const msec now = engine_wall(s->engine);
    const struct zone *zone;
    msec first = 0;
    enum bt_code code = zones_find(s->zones, m->tz, &p->zone, err);

    if (code != BT_OK) {
        (void)err_wrap(err, "tz");
        err->code = code == BT_NOT_FOUND ? BT_INVALID : code;
        return err->code;
    }
    zone = zones_at(s->zones, p->zone);
    code = read_kind(m, p, now, zone, err);
    if (code != BT_OK) {
        return code;
    }
    if (m->overlap.len > 0 && !store_overlap_parse(m->overlap, &p->overlap)) {
        return err_set(err, BT_INVALID,
                       "overlap: '%.*s' is not known: expected skip, queue, cancel or allow",
                       STR_ARG(m->overlap));
    }
    p->catch_up_ms =
        msg_has(m, schedule_put, catch_up_ms) ? m->catch_up_ms : (msec)SCHEDULE_CATCH_UP_MS;
    p->jitter_ms = m->jitter_ms;
    p->max_failures = (uint32_t)m->max_failures;
    if (p->catch_up_ms < CATCH_UP_MIN_MS) {
        return err_set(err, BT_INVALID,
                       "catchUpMs: %llu is too short: expected %d or more, because a daemon that "
                       "is busy may be some seconds late",
                       (unsigned long long)p->catch_up_ms, CATCH_UP_MIN_MS);
    }
    if (m->end_at.len > 0) {
        code = stamp_read(m->end_at, zone, &p->rule.end_ms, err);
        if (code != BT_OK) {
            return err_wrap(err, "endAt");
        }
    }
    if (!schedule_next(&p->rule, zone, now, &first)) {
        return err_set(err, BT_INVALID, "endAt: no time of the schedule comes before it");
    }
    return p->jitter_ms > 0 ? check_jitter(p, zone, now, err) : BT_OK;
}

static void put_rule(const struct schedules *s, const struct msg_schedule_put *m,
                     const struct schedule *p, struct buf *out)
{
    const struct msg_rec_schedule_rule rule = {
        .cron = m->cron,
        .every_ms = p->rule.every_ms,
        .at = m->at,
        .at_ms = p->rule.at_ms,
        .tz = str_from(zones_name(s->zones, p->zone)),
        .overlap = str_from(store_overlap_name(p->overlap)),
        .catch_up_ms = p->catch_up_ms,
        .jitter_ms = p->jitter_ms,
        .end_at = m->end_at,
        .end_ms = p->rule.end_ms == MSEC_NEVER ? 0 : p->rule.end_ms,
        .max_failures = p->max_failures};
    const struct msg_part part = {MSG_rec_schedule_rule, &rule};

    if (msg_write(out, WIRE_MSGPACK, &part, 1, NULL) != BT_OK) {
        out->bad = BT_NOMEM; /* every member was read with the same cap */
    }
}

/* ---- the same request again ---- */

static uint64_t hash_doc(uint64_t h, struct doc d)
{
    return h * 31 + str_hash((struct str){(const char *)d.ptr, d.ptr != NULL ? d.len : 0});
}

static uint64_t hash_put(const struct msg_schedule_put *m)
{
    uint64_t h = str_hash(m->cron);
    const struct str texts[] = {m->at, m->tz, m->overlap, m->end_at, m->goal, m->planner};

    h = h * 31 + m->every_ms;
    h = h * 31 + m->jitter_ms;
    h = h * 31 + m->max_failures;
    h = h * 31 + (msg_has(m, schedule_put, catch_up_ms) ? m->catch_up_ms + 1 : 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        h = h * 31 + str_hash(texts[i]);
    }
    h = hash_doc(hash_doc(hash_doc(h, m->plan), m->inputs), m->policy);
    return h >> 1; /* SQLite's integers are signed */
}

/* Of the puts that are remembered: BT_OK: this one is among them. BT_NOT_FOUND. BT_CONFLICT: the
 * key was another's. */
static enum bt_code find_key(const struct msg_rec_schedule_document *doc, struct str key,
                             uint64_t hash, struct bt_error *err)
{
    for (uint32_t i = 0; key.len > 0 && i < doc->keys_n; i++) {
        if (str_eq(doc->keys[i].key, key)) {
            return doc->keys[i].hash == hash
                       ? BT_OK
                       : err_set(err, BT_CONFLICT,
                                 "clientKey '%.*s' was used for another schedule.put",
                                 STR_ARG(key));
        }
    }
    return err_set(err, BT_NOT_FOUND, "a new put");
}

static enum bt_code read_document(struct schedules *s, const struct schedule *p,
                                  struct arena *arena, struct msg_rec_schedule_document *ret,
                                  struct journal_schedule *ret_row, struct bt_error *err)
{
    enum bt_code code =
        journal_schedule_by_name(engine_journal(s->engine), str_from(p->name), ret_row, err);

    return code != BT_OK
               ? code
               : msg_read_doc(arena,
                              (struct doc){(const uint8_t *)ret_row->doc.ptr, ret_row->doc.len},
                              MSG_rec_schedule_document, ret, err);
}

/* ---- put ---- */

static enum bt_code put_next(struct schedules *s, const struct schedule *p, uint32_t n,
                             struct arena *arena, struct str **ret, uint32_t *ret_n,
                             struct bt_error *err)
{
    const struct zone *zone = zones_at(s->zones, p->zone);
    msec at = engine_wall(s->engine);

    at = p->cursor > at ? p->cursor : at;
    *ret = arena_alloc(arena, (n + 1) * sizeof **ret);
    for (*ret_n = 0; *ret != NULL && *ret_n < n && schedule_next(&p->rule, zone, at, &at);) {
        char text[STAMP_MAX];
        stamp_write(zone, at, text);
        (*ret)[*ret_n] = arena_str(arena, str_from(text));
        if ((*ret)[(*ret_n)++].ptr == NULL) {
            *ret = NULL;
        }
    }
    return *ret != NULL ? BT_OK : err_set(err, BT_NOMEM, "out of memory for times");
}

static enum bt_code fill_ok(struct schedules *s, const struct schedule *p, struct arena *arena,
                            struct msg_schedule_put_ok *ret, struct bt_error *err)
{
    ret->name = str_from(p->name);
    ret->status = str_from(schedule_status(p));
    ret->tz = str_from(zones_name(s->zones, p->zone));
    return p->life == SCHEDULE_ACTIVE
               ? put_next(s, p, NEXT_SHOWN, arena, &ret->next, &ret->next_n, err)
               : BT_OK;
}

/* The document with the keys of the last puts. */
static enum bt_code put_document(const struct msg_schedule_put *m, uint64_t hash,
                                 const struct msg_rec_schedule_document *before, struct buf *out,
                                 struct bt_error *err)
{
    struct msg_rec_schedule_key keys[SCHEDULE_KEYS_KEPT];
    struct msg_rec_schedule_document doc = {.plan = m->plan,
                                            .inputs = m->inputs,
                                            .goal = m->goal,
                                            .planner = m->planner,
                                            .policy = m->policy,
                                            .keys = keys};
    const struct msg_part part = {MSG_rec_schedule_document, &doc};

    if (m->client_key.len > 0) {
        keys[doc.keys_n++] = (struct msg_rec_schedule_key){.key = m->client_key, .hash = hash};
    }
    for (uint32_t i = 0; i < before->keys_n && doc.keys_n < SCHEDULE_KEYS_KEPT; i++) {
        keys[doc.keys_n++] = before->keys[i];
    }
    return msg_write(out, WIRE_MSGPACK, &part, 1, err);
}

/* What goes on from the schedule that is replaced. */
static void take_over(struct schedule *p, const struct schedule *before, bool same_rule)
{
    p->ix = before->ix;
    p->created = before->created;
    p->fired = before->fired;
    p->skipped = before->skipped;
    p->last_plan = before->last_plan;
    p->last_time = before->last_time;
    p->open = before->open;
    p->life = before->life == SCHEDULE_PAUSED ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE;
    store_set_reason(p, str_from(before->reason != NULL ? before->reason : ""));
    if (same_rule) {
        p->cursor = before->cursor;
        p->queued_from = before->queued_from;
        p->back_cursor = before->back_cursor;
        p->back_to = before->back_to;
    }
}

static enum bt_code store(struct schedules *s, struct schedule *p, struct schedule *before,
                          struct str rule, struct str doc, struct bt_error *err)
{
    struct journal_schedule row = {.name = str_from(p->name),
                                   .owner = str_from(p->owner),
                                   .body_hash = p->body_hash,
                                   .created_wall = p->created,
                                   .rule = rule,
                                   .doc = doc};
    enum bt_code code;

    store_state_bytes(p, &s->bytes);
    code = buf_check(&s->bytes, err);
    row.state = buf_str(&s->bytes);
    if (code == BT_OK) {
        code = journal_schedule_put(engine_journal(s->engine), &row, &p->ix, err);
    }
    if (code != BT_OK) {
        engine_fail(s->engine, err);
        schedule_free(p);
        return BT_IO;
    }
    if (before != NULL) {
        p->due = before->due;
        table_replace(s, before, p);
    } else if (table_add(s, p, err) != BT_OK) {
        engine_fail(s->engine, err);
        return BT_IO;
    }
    fire_look_again(s, p);
    return BT_OK;
}

static enum bt_code check_plan(struct schedules *s, const struct msg_schedule_put *m,
                               const struct schedule *p, struct submission *d, struct bt_error *err)
{
    const struct msg_rec_schedule_document doc = {.plan = m->plan,
                                                  .inputs = m->inputs,
                                                  .goal = m->goal,
                                                  .planner = m->planner,
                                                  .policy = m->policy};

    if ((m->plan.ptr != NULL) == (m->goal.len > 0)) {
        return err_set(err, BT_INVALID, "expected a plan (or a recipe), or a goal; got %s",
                       m->plan.ptr != NULL ? "both" : "neither");
    }
    return fire_make(s, p, &doc, engine_wall(s->engine), d, err);
}

static enum bt_code check_put(struct schedules *s, const struct msg_schedule_put *m,
                              const struct schedule *before, struct schedule *p,
                              struct submission *d, struct bt_error *err)
{
    enum bt_code code = before != NULL || schedule_name_fits(m->name)
                            ? BT_OK
                            : err_set(err, BT_INVALID, SCHEDULE_NAME_RULE);

    if (code == BT_OK && strlen(p->name) > SCHEDULE_NAME_MAX) {
        return err_set(err, BT_LIMIT,
                       "name: a schedule of the credential '%s' has its id in front, so it has at "
                       "most %zu characters, got %zu",
                       p->owner, SCHEDULE_NAME_MAX - 1 - strlen(p->owner), m->name.len);
    }
    if (code == BT_OK && before == NULL && table_find(s, str_from(p->name)) != NULL) {
        return err_set(err, BT_CONFLICT,
                       "name: '%.*s' is a schedule of another credential; use another name",
                       STR_ARG(m->name));
    }
    if (code == BT_OK && before == NULL && s->n >= SCHEDULES_MAX) {
        return err_set(err, BT_LIMIT, "there are %d schedules, the limit: delete one before",
                       SCHEDULES_MAX);
    }
    code = code == BT_OK ? read_rule(s, m, p, err) : code;
    return code == BT_OK ? check_plan(s, m, p, d, err) : code;
}

/* BT_OK: the same was put before. BT_NOT_FOUND: this is new. */
static enum bt_code was_put(struct schedules *s, const struct schedule *before,
                            const struct msg_schedule_put *m, uint64_t hash, struct arena *arena,
                            struct msg_rec_schedule_document *ret, struct str *ret_rule,
                            struct bt_error *err)
{
    struct journal_schedule row = {.ix = 0};
    enum bt_code code = read_document(s, before, arena, ret, &row, err);

    if (code != BT_OK) {
        engine_fail(s->engine, err);
        return BT_IO;
    }
    *ret_rule = arena_str(arena, row.rule);
    code = find_key(ret, m->client_key, hash, err);
    return code == BT_NOT_FOUND && m->client_key.len == 0 && before->body_hash == hash ? BT_OK
                                                                                       : code;
}

/* The configuration and clients leave each other's schedules alone. */
static enum bt_code declared_error(const struct schedule *p, struct bt_error *err)
{
    return schedule_is_declared(p)
               ? err_set(err, BT_CONFLICT,
                         "the configuration declares the schedule '%s': change it there and run "
                         "baton reload; pause, resume and trigger work",
                         p->name)
               : err_set(err, BT_CONFLICT,
                         "a client has put a schedule '%s': use another name, or delete it",
                         p->name);
}

enum bt_code schedules_put(struct schedules *s, const struct msg_schedule_put *m,
                           struct submission *d, struct msg_schedule_put_ok *ret,
                           struct arena *arena, struct bt_error *err)
{
    struct schedule *before = schedules_find(s, m->name);
    struct msg_rec_schedule_document doc = {.keys_n = 0};
    const uint64_t hash = hash_put(m);
    struct str rule_before = {NULL, 0};
    struct schedule *p = NULL;
    char own[ACCESS_NAME_MAX + 1];
    struct buf rule;
    struct buf bytes;
    enum bt_code code = BT_NOT_FOUND;

    if (before != NULL && schedule_is_declared(before) != s->declaring) {
        return declared_error(before, err);
    }
    if (before != NULL) {
        code = was_put(s, before, m, hash, arena, &doc, &rule_before, err);
        ret->existing = code == BT_OK;
    }
    if (code != BT_NOT_FOUND) {
        return code == BT_OK ? fill_ok(s, before, arena, ret, err) : code;
    }
    buf_init(&rule, LIMIT_CONTROL_BYTES);
    buf_init(&bytes, LIMIT_STEP_BYTES);
    access_own_name(engine_who(s->engine), m->name, own);
    code = schedule_new(before != NULL ? str_from(before->name)
                        : own[0] != 0  ? str_from(own)
                                       : m->name,
                        before != NULL ? str_from(before->owner)
                        : s->declaring ? STR_LIT(SCHEDULE_DECLARED)
                                       : access_owner(engine_who(s->engine)),
                        &p, err);
    code = code == BT_OK ? check_put(s, m, before, p, d, err) : code;
    if (code == BT_OK) {
        put_rule(s, m, p, &rule);
        code = buf_check(&rule, err);
    }
    code = code == BT_OK ? put_document(m, hash, &doc, &bytes, err) : code;
    if (code == BT_OK) {
        p->body_hash = hash;
        p->created = p->cursor = engine_wall(s->engine);
        if (before != NULL) {
            take_over(p, before, str_eq(rule_before, buf_str(&rule)));
        }
        ret->replaced = before != NULL;
        code = store(s, p, before, buf_str(&rule), buf_str(&bytes), err);
        code = code == BT_OK ? fill_ok(s, p, arena, ret, err) : code;
    } else {
        schedule_free(p);
    }
    buf_done(&rule);
    buf_done(&bytes);
    return code;
}

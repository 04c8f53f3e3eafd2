/* The plan of a time: the document filled in, checked, and begun as its owner's. */
#include <stdio.h>

#include "protocol/base/log.h"
#include "protocol/zone/stamp.h"
#include "supervisor/auth/sessions.h"
#include "supervisor/engine/access.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/plan/recipe.h"
#include "supervisor/schedule/schedule_internal.h"

/* A text with the time that the plan is for in the place of {{schedule.time}} and
 * {{schedule.date}}. */
static void put_text(struct str text, struct str time, struct buf *out)
{
    static const struct {
        const char *word;
        size_t len; /* of the time */
    } WORDS[] = {{"{{schedule.time}}", STAMP_MAX}, {"{{schedule.date}}", 10}};
    struct buf made;
    size_t at = 0;

    buf_init(&made, LIMIT_CONTROL_BYTES);
    while (at < text.len) {
        size_t used = 0;
        for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0] && used == 0; i++) {
            const size_t n = strlen(WORDS[i].word);
            if (text.len - at >= n && memcmp(text.ptr + at, WORDS[i].word, n) == 0) {
                buf_add(&made, time.ptr, time.len < WORDS[i].len ? time.len : WORDS[i].len);
                used = n;
            }
        }
        if (used == 0) {
            buf_add_byte(&made, (uint8_t)text.ptr[at]);
            used = 1;
        }
        at += used;
    }
    doc_put_str(out, buf_str(&made));
    out->bad = made.bad != BT_OK ? made.bad : out->bad;
    buf_done(&made);
}

static enum bt_code put_values(struct schedules *s, const struct schedule *p, struct doc inputs,
                               msec at, struct buf *out, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(inputs);
    struct doc_head map = {.kind = DOC_MAP};
    char time[STAMP_MAX];

    if (inputs.ptr != NULL && (!doc_next(&c, &map) || map.kind != DOC_MAP)) {
        return err_set(err, BT_INVALID, "inputs: expected a map of names and values");
    }
    stamp_write(zones_at(s->zones, p->zone), at, time);
    doc_put_map(out, map.n);
    for (uint32_t i = 0; i < map.n; i++) {
        struct doc value;
        doc_put_doc(out, doc_skip(&c));
        value = doc_skip(&c);
        if (doc_string(value).ptr != NULL) {
            put_text(doc_string(value), str_from(time), out);
        } else {
            doc_put_doc(out, value);
        }
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
        code = put_values(s, p, doc->inputs, at, &values, err);
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
    struct buf stored;
    enum bt_code code;

    buf_init(&stored, SCHEDULE_KEY_MAX + LIMIT_ID_BYTES + 2);
    (void)snprintf(owner.id, sizeof owner.id, "%s", schedule_plan_owner(p));
    access_client_key(&owner, key, &stored);
    code = buf_check(&stored, err);
    if (code == BT_OK) {
        code = journal_plan_by_key(j, buf_str(&stored), &row, err);
        if (code == BT_OK || code == BT_CONFLICT) {
            uuid_format(row.plan_id, ret_id);
            code = BT_OK;
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
        code = fire_emit(s, REC_SCHEDULE_FIRED, (struct str){"", 0}, &x, err);
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
    struct quota_over over;
    enum bt_code code = find_before(s, p, key, ret_id, err);

    if (code == BT_OK) {
        return FIRED_BEFORE;
    }
    if (code != BT_NOT_FOUND) {
        engine_fail(s->engine, err);
        return FIRED_NEVER;
    }
    if (submission_room(s->engine, err) != BT_OK ||
        access_plans_left(s->engine, str_from(schedule_plan_owner(p)), &over, err) != BT_OK) {
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
    return code == BT_OK                     ? begin(s, p, at, key, kind, d, ret_id, err)
           : submission_lacks_only_agents(d) ? FIRED_NOT_YET
                                             : FIRED_NEVER;
}

/* Acts for the owner while the plan is made: it is the owner's. */
enum fired fire_plan(struct schedules *s, struct schedule *p, msec at, struct str key,
                     struct str kind, struct submission *d, char ret_id[UUID_TEXT_LEN + 1],
                     struct bt_error *err)
{
    const struct identity *before = engine_who(s->engine);
    const struct identity *owner =
        schedule_plan_owner(p)[0] == 0
            ? identity_local()
            : sessions_identity(engine_options(s->engine)->sessions, str_from(p->owner),
                                engine_wall(s->engine));
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

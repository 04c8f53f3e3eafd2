/* From a record to the bytes that are stored, published and read again: one map that always fits a
 * frame. */
#include "supervisor/events/record_internal.h"

struct base_texts {
    char event_id[UUID_TEXT_LEN + 1];
    char plan_id[UUID_TEXT_LEN + 1];
    char stamp[CLOCK_ISO_LEN + 1];
};

static void put_base(const struct encoding *e, struct base_texts *t, struct msg_event *ret)
{
    const struct record_extra *x = e->x;

    uuid_format(x->event_id, t->event_id);
    clock_iso(e->rec->wall, t->stamp);
    *ret = (struct msg_event){
        .seq = x->seq,
        .plan_seq = x->plan_seq,
        .event_id = {t->event_id, UUID_TEXT_LEN},
        .type = str_from(record_wire_type(e->rec->type)),
        .timestamp = {t->stamp, CLOCK_ISO_LEN},
        .ts_ms = e->rec->wall,
    };
    if (x->plan == NULL) {
        ret->session_id = x->session_id;
    } else {
        uuid_format(x->plan_id, t->plan_id);
        ret->session_id = x->plan->session_id;
        ret->plan_id = (struct str){t->plan_id, UUID_TEXT_LEN};
    }
}

/* Encodes with the current room for texts. */
static enum bt_code try_encode(struct encoding *e, size_t max, struct buf *out,
                               struct bt_error *err)
{
    union payload payload;
    struct base_texts texts;
    struct msg_event base;
    struct msg_part parts[2];
    uint32_t n = 0;
    enum bt_code code;
    enum msg_type type;

    buf_clear(&e->made);
    buf_clear(&e->hint);
    buf_clear(&e->review);
    type = record_payload(e, &payload);

    if (type == MSG_TYPE_COUNT) {
        return err_set(err, BT_INTERNAL, "record %u does not fit its plan", (unsigned)e->rec->type);
    }
    if (record_row_is_public(e->rec, e->x->plan)) {
        put_base(e, &texts, &base);
        parts[n++] = (struct msg_part){MSG_event, &base};
    }
    parts[n++] = (struct msg_part){type, &payload};
    buf_clear(out);
    code = msg_write(out, WIRE_MSGPACK, parts, n, err);
    if (code == BT_OK && out->len > max) {
        return err_set(err, BT_LIMIT, "%s: %zu bytes, at most %zu", record_wire_type(e->rec->type),
                       out->len, max);
    }
    return code;
}

bool record_row_is_public(const struct record *rec, const struct plan *plan)
{
    return record_is_public(rec->type) && (plan == NULL || plan->job == JOB_NONE);
}

static bool lists_steps(const struct record *rec)
{
    return rec->type == REC_PLAN_GENERATED || record_revises(rec);
}

enum bt_code record_encode(const struct record *rec, const struct record_extra *x,
                           const struct registry *reg, struct buf *out, struct buf *topic,
                           struct bt_error *err)
{
    struct encoding e = {
        .rec = rec, .x = x, .reg = reg, .room = TEXT_ROOM, .steps_room = STEPS_SHOWN};
    struct str from = no_text;
    struct str to = no_text;
    size_t max;
    enum bt_code code;

    if (record_about(rec->type) == ABOUT_PLAN && x->plan == NULL) {
        return err_set(err, BT_INTERNAL, "a record about a plan, without it");
    }
    buf_clear(topic);
    buf_init(&e.made, LIMIT_STEP_BYTES);
    buf_init(&e.hint, LIMIT_EVENT_BYTES);
    buf_init(&e.review, LIMIT_EVENT_BYTES);
    if (rec->type == REC_HANDOFF) {
        from = record_from_id(&e);
        to = record_agent_id(&e, rec->agent);
    }
    record_topic(rec, x, from, to, topic);
    max = LIMIT_EVENT_BYTES - topic->len - 1; /* a frame is the topic, a zero byte and the body */
    code = try_encode(&e, max, out, err);
    while (code == BT_LIMIT && e.room > 0) { /* of no steps there is no list */
        if (lists_steps(rec) && e.steps_room > 0) {
            e.steps_room = e.steps_room * 3 / 4;
        } else {
            e.room /= 2;
        }
        code = try_encode(&e, max, out, err);
    }
    const struct buf *made[] = {topic, &e.made, &e.hint, &e.review};
    for (size_t i = 0; i < sizeof made / sizeof made[0] && code == BT_OK; i++) {
        code = buf_check(made[i], err);
    }
    arena_done(&e.repaired);
    buf_done(&e.made);
    buf_done(&e.hint);
    buf_done(&e.review);
    return code;
}

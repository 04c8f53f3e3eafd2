/* Rules and states as the journal has them. */
#include <stdlib.h>

#include "protocol/wire/msg.h"
#include "supervisor/schedule/cron_text.h"
#include "supervisor/schedule/schedule_internal.h"

static const char *const OVERLAPS[] = {
    [OVERLAP_SKIP] = "skip",
    [OVERLAP_QUEUE] = "queue",
    [OVERLAP_CANCEL] = "cancel",
    [OVERLAP_ALLOW] = "allow",
};

static const char *const LIVES[] = {
    [SCHEDULE_ACTIVE] = "active",
    [SCHEDULE_PAUSED] = "paused",
    [SCHEDULE_ENDED] = "ended",
};

const char *store_overlap_name(uint8_t overlap)
{
    return OVERLAPS[overlap];
}

bool store_overlap_parse(struct str text, uint8_t *ret)
{
    for (uint8_t i = 0; i < sizeof OVERLAPS / sizeof OVERLAPS[0]; i++) {
        if (str_is(text, OVERLAPS[i])) {
            *ret = i;
            return true;
        }
    }
    return false;
}

const char *schedule_status(const struct schedule *p)
{
    return LIVES[p->life];
}

void store_set_reason(struct schedule *p, struct str reason)
{
    free(p->reason);
    p->reason = reason.len > 0 ? calloc(1, reason.len + 1) : NULL;
    if (p->reason != NULL) { /* without memory it is paused for no reason */
        memcpy(p->reason, reason.ptr, reason.len);
    }
}

void store_state_bytes(const struct schedule *p, struct buf *out)
{
    char plan[UUID_TEXT_LEN + 1] = "";
    struct msg_rec_schedule_state m = {.cursor = p->cursor,
                                       .queued_from = p->queued_from,
                                       .back_cursor = p->back_cursor,
                                       .back_to = p->back_to,
                                       .status = str_from(LIVES[p->life]),
                                       .reason = str_from(p->reason != NULL ? p->reason : ""),
                                       .last_time = p->last_time,
                                       .fired = p->fired,
                                       .skipped = p->skipped,
                                       .failures = p->failures};
    const struct msg_part part = {MSG_rec_schedule_state, &m};

    if (!uuid_is_nil(p->last_plan)) {
        uuid_format(p->last_plan, plan);
        m.last_plan = str_from(plan);
    }
    buf_clear(out);
    if (msg_write(out, WIRE_MSGPACK, &part, 1, NULL) != BT_OK) {
        out->bad = BT_NOMEM; /* every member is within its cap */
    }
}

enum bt_code store_state(struct schedules *s, const struct schedule *p, struct bt_error *err)
{
    enum bt_code code;

    store_state_bytes(p, &s->bytes);
    code = buf_check(&s->bytes, err);
    return code == BT_OK
               ? journal_schedule_state(engine_journal(s->engine), p->ix, buf_str(&s->bytes), err)
               : code;
}

enum bt_code store_read_rule(struct schedules *s, struct doc rule, struct schedule *io,
                             struct bt_error *err)
{
    struct msg_rec_schedule_rule m;
    struct cron_problem why;
    struct arena arena = {0};
    enum bt_code code = msg_read_doc(&arena, rule, MSG_rec_schedule_rule, &m, err);

    if (code == BT_OK) {
        io->rule = (struct schedule_rule){
            .kind = m.cron.len > 0   ? SCHEDULE_CRON
                    : m.every_ms > 0 ? SCHEDULE_EVERY
                                     : SCHEDULE_AT,
            .every_ms = m.every_ms,
            .at_ms = m.at_ms,
            .end_ms = m.end_ms != 0 ? m.end_ms : MSEC_NEVER,
        };
        io->jitter_ms = m.jitter_ms;
        io->catch_up_ms = m.catch_up_ms;
        io->max_failures = (uint32_t)m.max_failures;
        if (m.cron.len > 0 && !cron_parse(m.cron, &io->rule.cron, &why)) {
            code = cron_error(m.cron, &why, err);
        } else if (!store_overlap_parse(m.overlap, &io->overlap)) {
            code = err_set(err, BT_IO, "the rule of the schedule '%s' cannot be read", io->name);
        }
    }
    if (code == BT_OK) {
        code = zones_find(s->zones, m.tz, &io->zone, err);
        code = code == BT_OK ? BT_OK : err_wrap(err, "tz");
    }
    arena_done(&arena);
    return code;
}

enum bt_code store_read_state(struct doc state, struct schedule *io, struct bt_error *err)
{
    struct msg_rec_schedule_state m;
    struct arena arena = {0};
    enum bt_code code = msg_read_doc(&arena, state, MSG_rec_schedule_state, &m, err);

    if (code == BT_OK) {
        io->cursor = m.cursor;
        io->queued_from = m.queued_from;
        io->back_cursor = m.back_cursor;
        io->back_to = m.back_to;
        io->last_time = m.last_time;
        io->fired = m.fired;
        io->skipped = m.skipped;
        io->failures = (uint32_t)m.failures;
        io->life = str_is(m.status, LIVES[SCHEDULE_PAUSED])  ? SCHEDULE_PAUSED
                   : str_is(m.status, LIVES[SCHEDULE_ENDED]) ? SCHEDULE_ENDED
                                                             : SCHEDULE_ACTIVE;
        store_set_reason(io, m.reason);
        if (m.last_plan.len > 0 && !uuid_parse(m.last_plan, &io->last_plan)) {
            code = err_set(err, BT_IO, "the state of the schedule '%s' cannot be read", io->name);
        }
    }
    arena_done(&arena);
    return code;
}

/* Records as a restart finds them: encoded to the journal's bytes and decoded again. A member that
 * the codec loses makes the replayed run differ from the live one. */
#include <string.h>

#include "protocol/base/assert.h"
#include "supervisor/events/record_codec.h"
#include "tests/sim/sim.h"

bool sim_through_journal(struct sim *s, const struct sim_plan *p, const struct record *rec,
                         struct record *ret)
{
    struct bt_error err = {0};
    const bool is_public = record_row_is_public(rec, sim_plan_now(p));
    const struct record_extra x = {.seq = ++s->journal_seq,
                                   .plan_seq = is_public ? p->shadow->plan_seq + 1 : 0,
                                   .event_id = {{1}},
                                   .handoff_id = {{2}},
                                   .plan = sim_plan_now(p),
                                   .plan_id = {{(uint8_t)(p - s->plans), 7}},
                                   .revised =
                                       record_revises(rec) ? p->revisions[p->n_revisions] : NULL,
                                   .run = p->shadow};
    if (record_encode(rec, &x, s->core->registry, &s->body, &s->topic, &err) != BT_OK) {
        sim_fail(s, err.msg, (uint32_t)(p - s->plans), rec->step);
        return false;
    }
    const struct journal_row row = {.seq = x.seq,
                                    .is_public = is_public,
                                    .plan_ix = 1,
                                    .plan_seq = x.plan_seq,
                                    .type = str_from(record_wire_type(rec->type)),
                                    .topic = buf_str(&s->topic),
                                    .wall = rec->wall,
                                    .body = s->body.at,
                                    .body_len = s->body.len};
    arena_reset(&s->arena);
    if (record_decode(&row, x.plan, x.plan_id, s->now, s->now, &s->arena, ret, &err) != BT_OK) {
        sim_fail(s, err.msg, (uint32_t)(p - s->plans), rec->step);
        return false;
    }
    ret->run = rec->run;
    return true;
}

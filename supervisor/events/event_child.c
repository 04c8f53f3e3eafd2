/* Records about the child plans of steps. */
#include "supervisor/events/record_internal.h"

enum msg_type event_encode_child(struct encoding *e, union payload *p)
{
    p->child = (struct msg_rec_child){
        .step_index = e->rec->step, .attempt = e->rec->attempt, .round = REC(e->rec, child)->round};
    return MSG_rec_child;
}

void event_decode_child(struct decoding *d, const union payload *p)
{
    event_decode_step(d, p->child.step_index, no_text);
    d->rec->attempt = (uint32_t)p->child.attempt;
    REC(d->rec, child)->round = (uint32_t)p->child.round;
}

enum msg_type event_encode_round(struct encoding *e, union payload *p)
{
    const struct rec_round *round = REC(e->rec, round);

    p->round = (struct msg_ev_plan_step_round){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .rounds = round->n,
        .delay_ms = round->delay_ms,
        .until = record_until(e, round->delay_ms),
        .condition = record_cut(e, e->rec->text, LONG_ROOM),
        .result_ref = round->result.id,
        .result_len = round->result.len,
        .truncated = round->result.truncated != 0,
        .result_text_len = round->result.text_len,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_plan_step_round;
}

void event_decode_round(struct decoding *d, const union payload *p)
{
    const struct msg_ev_plan_step_round *m = &p->round;
    struct rec_round *round = REC(d->rec, round);

    event_decode_step(d, m->step_index, m->step_id);
    d->rec->attempt = (uint32_t)m->attempt;
    d->rec->text = m->condition;
    round->n = (uint32_t)m->rounds;
    round->delay_ms = m->delay_ms;
    round->result =
        (struct blob_ref){m->result_ref, m->result_len, m->truncated, (uint32_t)m->result_text_len};
    event_decode_usage(d, &m->usage);
}

enum msg_type event_encode_turn(struct encoding *e, union payload *p)
{
    const struct rec_turn *turn = REC(e->rec, turn);

    p->turn = (struct msg_ev_calls){
        .step_id = record_step(e)->step_id,
        .step_index = e->rec->step,
        .attempt = e->rec->attempt,
        .turn = turn->n,
        .calls = turn->calls,
        .agent_id = record_agent_id(e, e->rec->agent),
        .result_ref = turn->result.id,
        .result_len = turn->result.len,
        .usage = record_usage(&e->rec->usage),
    };
    return MSG_ev_calls;
}

void event_decode_turn(struct decoding *d, const union payload *p)
{
    const struct msg_ev_calls *m = &p->turn;
    struct rec_turn *turn = REC(d->rec, turn);

    event_decode_step(d, m->step_index, m->step_id);
    event_decode_agent(d, m->agent_id);
    d->rec->attempt = (uint32_t)m->attempt;
    turn->n = (uint32_t)m->turn;
    turn->calls = (uint32_t)m->calls;
    turn->result = (struct blob_ref){.id = m->result_ref, .len = m->result_len};
    event_decode_usage(d, &m->usage);
}

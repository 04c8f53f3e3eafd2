/* Records about steps that wait, and about signals: to the fields of their messages, and back. */
#include "supervisor/events/record_internal.h"

enum { CLIENT_KEY_BYTES = 128 }; /* as of plan.signal in messages.def */

static struct str ends_at(struct encoding *e, const struct plan_wait *wait, msec delay_ms)
{
    if (wait->what == WAIT_FOR_DATE) {
        clock_iso(wait->until, e->until);
        return str_from(e->until);
    }
    return wait->what == WAIT_FOR_SIGNAL && delay_ms == 0 ? no_text : record_until(e, delay_ms);
}

enum msg_type event_encode_wait_started(struct encoding *e, union payload *p)
{
    static const struct plan_wait none = {.what = WAIT_FOR_TIME};
    const struct plan_step *s = record_step(e);
    const struct plan_wait *wait = s->wait != NULL ? s->wait : &none;
    const msec delay = REC(e->rec, timed)->delay_ms;

    p->wait_started = (struct msg_ev_wait_started){
        .step_id = s->step_id,
        .step_index = e->rec->step,
        .kind = str_from(wait_for_name(wait->what)),
        .signal = wait->signal,
        .delay_ms = delay,
        .until = ends_at(e, wait, delay),
    };
    return MSG_ev_wait_started;
}

void event_decode_wait_started(struct decoding *d, const union payload *p)
{
    event_decode_step(d, p->wait_started.step_index, p->wait_started.step_id);
    REC(d->rec, timed)->delay_ms = p->wait_started.delay_ms;
}

enum msg_type event_encode_signal(struct encoding *e, union payload *p)
{
    const struct rec_signal *signal = REC(e->rec, signal);

    p->signal = (struct msg_ev_signal_received){
        .name = record_cut(e, e->rec->text, LIMIT_ID_BYTES),
        .signal = signal->serial,
        .client_key = record_cut(e, signal->key, CLIENT_KEY_BYTES),
        .result_ref = signal->result.id,
        .result_len = signal->result.len,
        .result_text_len = signal->result.text_len,
        .digest = signal->digest,
        .by = {.id = record_cut(e, e->x->by, LIMIT_ID_BYTES)},
    };
    return MSG_ev_signal_received;
}

void event_decode_signal(struct decoding *d, const union payload *p)
{
    const struct msg_ev_signal_received *m = &p->signal;

    d->rec->text = m->name;
    *REC(d->rec, signal) = (struct rec_signal){
        .serial = (uint32_t)m->signal,
        .digest = m->digest,
        .key = m->client_key,
        .result = {m->result_ref, m->result_len, 0, (uint32_t)m->result_text_len}};
}

/* From a row back to the record: what run_apply needs, checked against the plan. What all types of
 * records share; the types themselves are in event_*.c. */
#include <inttypes.h>

#include "protocol/wire/mp_validate.h"
#include "supervisor/events/record_internal.h"

void record_expect(struct decoding *d, bool ok)
{
    d->fits = d->fits && ok;
}

void event_decode_step(struct decoding *d, uint64_t ix, struct str step_id)
{
    record_expect(d, ix < d->plan->n_steps);
    if (!d->fits) {
        return;
    }
    d->rec->step = (uint32_t)ix;
    d->rec->agent = d->plan->steps[ix].agent;
    record_expect(d, step_id.ptr == NULL || str_eq(step_id, d->plan->steps[ix].step_id));
}

/* AGENT_NONE when the plan has no agent of that id. */
static uint32_t agent_of(const struct plan *plan, struct str id)
{
    for (uint32_t i = 0; i < plan->agents.n; i++) {
        if (str_eq(id, plan->agents.ids[i])) {
            return plan->agents.at[i];
        }
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (str_eq(id, plan->steps[i].agent_id)) {
            return plan->steps[i].agent;
        }
    }
    return AGENT_NONE;
}

void event_decode_agent(struct decoding *d, struct str agent_id)
{
    if (agent_id.len == 0) {
        return;
    }
    d->rec->agent = agent_of(d->plan, agent_id);
    record_expect(d, d->rec->agent != AGENT_NONE);
}

uint32_t event_decode_from(const struct decoding *d, struct str from)
{
    const uint32_t agent = agent_of(d->plan, from);

    return agent == AGENT_NONE ? AGENT_SUPERVISOR : agent;
}

uint32_t event_decode_review(struct decoding *d, struct str review_id)
{
    const uint32_t step = d->rec->step;
    struct review_id id;

    record_expect(d, review_id_parse(review_id, &id) && uuid_eq(id.plan_id, d->plan_id) &&
                         str_eq(id.step_id,
                                step < d->plan->n_steps ? d->plan->steps[step].step_id : no_text));
    return id.serial;
}

struct uuid event_decode_instance(struct decoding *d, struct str id)
{
    struct uuid instance = {{0}};

    record_expect(d, id.len == 0 || uuid_parse(id, &instance));
    return instance;
}

enum err_class event_decode_class(struct decoding *d, struct str name)
{
    enum err_class class = CLASS_NONE;

    if (name.len > 0) {
        class = err_class_from_name(name.ptr, name.len);
        record_expect(d, str_is(name, err_class_name(class)));
    }
    return class;
}

enum step_phase event_decode_phase(struct decoding *d, struct str name)
{
    const enum step_phase phase = name.len == 0 ? PHASE_EXECUTE : step_phase_from_name(name);

    record_expect(d, phase != STEP_PHASE_COUNT);
    return phase;
}

void event_decode_usage(struct decoding *d, const struct msg_usage *u)
{
    d->rec->usage =
        (struct usage){u->input_tokens, u->output_tokens, u->cached_tokens, u->cost_micros};
}

/* ---- all ---- */

static const struct {
    enum msg_type type;
    record_get *get; /* NULL: no record about a plan */
} GETS[REC_COUNT] = {
#define GET_PLAN_ONLY(codec) event_decode_##codec
#define GET_STEP_ONLY(codec) event_decode_##codec
#define GET_EITHER(codec) event_decode_##codec
#define GET_NO_RUN(codec) NULL
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    [REC_##name] = {MSG_##message, GET_##scope(codec)},
#include "supervisor/core/run/record.def"
};

static enum bt_code wrong(const struct journal_row *row, const char *what, struct bt_error *err)
{
    return err_set(err, BT_PROTOCOL, "row of seq %" PRIu64 " (%.*s): %.350s", row->seq,
                   STR_ARG(row->type), what);
}

/* Sequence and type are in the row and in the body; they must be equal. */
static bool base_agrees(const struct journal_row *row, struct doc body)
{
    return !row->is_public || (doc_head(doc_get(body, STR_LIT("seq"))).u == row->seq &&
                               str_eq(doc_string(doc_get(body, STR_LIT("type"))), row->type));
}

enum bt_code record_decode(const struct journal_row *row, const struct plan *plan,
                           struct uuid plan_id, msec now_mono, msec now_wall, struct arena *arena,
                           struct record *ret, struct bt_error *err)
{
    enum record_type type = record_type_from_wire(row->type);
    msec age = now_wall > row->wall ? now_wall - row->wall : 0;
    struct doc body = {row->body, row->body_len};
    struct decoding d = {row, plan, plan_id, ret, true};
    union {
        union payload payload;
        struct msg_event base;
    } m;
    struct bt_error why;

    if (type == REC_COUNT || GETS[type].get == NULL ||
        (record_is_public(type) && plan->job == JOB_NONE) != row->is_public) {
        return wrong(row, "no record about a plan", err);
    }
    if (mp_validate(row->body, row->body_len, NULL, &why) != BT_OK ||
        msg_read_doc(arena, body, GETS[type].type, &m, &why) != BT_OK) {
        return wrong(row, why.msg, err);
    }
    *ret = (struct record){
        .type = type,
        .now = now_mono > age ? now_mono - age : 0,
        .wall = row->wall,
        .step = STEP_NONE,
        .agent = REGISTRY_NONE,
    };
    GETS[type].get(&d, &m.payload);
    if (!d.fits || !base_agrees(row, body)) {
        return wrong(row, "does not fit its plan", err);
    }
    return BT_OK;
}

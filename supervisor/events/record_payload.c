/* From the record to the fields of its message: what all types of records share. The types
 * themselves are in event_*.c. */
#include "protocol/base/utf8.h"
#include "supervisor/events/record_internal.h"

enum { STEP_TASK_ROOM = 120, FEW_STEPS = 6, FEW_TASK_ROOM = 320 };

struct str record_cut(struct encoding *e, struct str s, size_t cap)
{
    char *at;
    size_t max = cap < e->room ? cap : e->room;

    s.len = utf8_cut(s.ptr, s.len, max);
    if (s.len == 0 || (utf8_valid(s.ptr, s.len) && memchr(s.ptr, 0, s.len) == NULL)) {
        return s;
    }
    at = arena_alloc(&e->repaired, s.len);
    if (at == NULL) {
        return STR_LIT("(unreadable)");
    }
    for (size_t i = 0; i < s.len; i++) {
        at[i] = s.ptr[i] == 0 || ((uint8_t)s.ptr[i] & 0x80) != 0 ? '?' : s.ptr[i];
    }
    return (struct str){at, s.len};
}

struct str record_text(struct encoding *e, struct str s)
{
    return record_cut(e, s, TEXT_ROOM);
}

const struct plan_step *record_step(const struct encoding *e)
{
    return &e->x->plan->steps[e->rec->step];
}

struct str record_agent_id(const struct encoding *e, uint32_t agent)
{
    const struct plan *plan = e->x->plan;
    uint32_t at = plan_agent_find(plan, agent);

    if (e->rec->step < plan->n_steps && record_step(e)->agent == agent) {
        return record_step(e)->agent_id;
    }
    if (at < plan->agents.n) {
        return plan->agents.ids[at];
    }
    if (e->reg != NULL && agent < registry_agents(e->reg)) {
        return registry_agent_view(e->reg, agent).id;
    }
    return no_text;
}

struct str record_agent_name(const struct encoding *e, uint32_t agent, struct str id)
{
    if (e->reg != NULL && agent < registry_agents(e->reg)) {
        const struct msg_card *card = registry_agent_view(e->reg, agent).card;
        if (card != NULL && card->name.len > 0) {
            return card->name;
        }
    }
    return id;
}

struct str record_from_id(const struct encoding *e)
{
    const uint32_t from = REC(e->rec, handoff)->from_agent;
    struct str id;

    if (from == AGENT_SUPERVISOR) {
        return STR_LIT("supervisor");
    }
    id = record_agent_id(e, from);
    return id.len > 0 ? id : STR_LIT("unknown");
}

struct str record_instance(struct encoding *e, struct uuid instance)
{
    if (uuid_is_nil(instance)) {
        return no_text;
    }
    uuid_format(instance, e->instance);
    return (struct str){e->instance, UUID_TEXT_LEN};
}

struct str record_process(struct encoding *e, struct uuid process)
{
    if (uuid_is_nil(process)) {
        return no_text;
    }
    uuid_format(process, e->process);
    return (struct str){e->process, UUID_TEXT_LEN};
}

struct str record_class(enum err_class class)
{
    return class == CLASS_NONE ? no_text : str_from(err_class_name(class));
}

struct str record_timeout_hint(struct encoding *e, const struct plan_step *step)
{
    plan_timeout_hint(&step->rules->policy, e->rec->text, &e->hint);
    return record_text(e, buf_str(&e->hint));
}

struct str record_review(struct encoding *e, uint32_t serial)
{
    const bool step = e->rec->step < e->x->plan->n_steps;

    review_id_format(e->x->plan_id, step ? record_step(e)->step_id : no_text, serial, &e->review);
    return buf_str(&e->review);
}

struct str record_until(struct encoding *e, msec delay_ms)
{
    clock_iso(msec_add(e->rec->wall, delay_ms), e->until);
    return (struct str){e->until, CLOCK_ISO_LEN};
}

struct msg_usage record_usage(const struct usage *u)
{
    return (struct msg_usage){.input_tokens = u->input_tokens,
                              .output_tokens = u->output_tokens,
                              .cached_tokens = u->cached_tokens,
                              .cost_micros = u->cost_micros};
}

uint32_t record_list_steps(struct encoding *e, const struct plan *plan, uint32_t since,
                           uint32_t *ret_all, bool *ret_cut)
{
    uint32_t all = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_steps; i++) {
        all += plan->steps[i].revision >= since ? 1 : 0;
    }
    const size_t room = all <= FEW_STEPS ? FEW_TASK_ROOM : STEP_TASK_ROOM;
    const uint32_t most = all < e->steps_room ? all : e->steps_room;

    *ret_all = all;
    *ret_cut = most < all;
    for (uint32_t i = 0; i < plan->n_steps && n < most; i++) {
        const struct plan_step *s = &plan->steps[i];
        if (s->revision < since) {
            continue;
        }
        e->steps[n] = (struct msg_ev_step_summary){
            .step_id = s->step_id,
            .step_index = i,
            .agent_id = s->agent_id,
            .agent_name = record_agent_name(e, s->agent, s->agent_id),
            .task = record_cut(e, s->task, room),
        };
        *ret_cut |= e->steps[n].task.len < s->task.len;
        n++;
    }
    return n;
}

/* ---- all ---- */

static const struct {
    record_put *put;
    bool about_step;
} PUTS[REC_COUNT] = {
#define ABOUT_STEP_PLAN_ONLY false
#define ABOUT_STEP_STEP_ONLY true
#define ABOUT_STEP_EITHER false
#define ABOUT_STEP_NO_RUN false
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    [REC_##name] = {event_encode_##codec, ABOUT_STEP_##scope},
#include "supervisor/core/run/record.def"
};

enum msg_type record_payload(struct encoding *e, union payload *p)
{
    if (PUTS[e->rec->type].about_step && e->rec->step >= e->x->plan->n_steps) {
        return MSG_TYPE_COUNT;
    }
    return PUTS[e->rec->type].put(e, p);
}

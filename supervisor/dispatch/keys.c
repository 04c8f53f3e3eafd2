#include "supervisor/dispatch/keys.h"

#include <stdio.h>

#include "supervisor/engine/open_plan.h"

void step_key(const struct plan *plan, struct uuid plan_id, uint32_t step, enum step_phase phase,
              uint32_t turns, char ret[LIMIT_KEY_BYTES + 1])
{
    const struct plan_step *s = &plan->steps[step];
    char id[UUID_TEXT_LEN + 1];

    uuid_format(plan_id, id);
    int n = snprintf(ret, LIMIT_KEY_BYTES + 1, "%s/%u/%.*s", id, s->revision, STR_ARG(s->step_id));
    if (phase != PHASE_EXECUTE) {
        (void)snprintf(ret + n, LIMIT_KEY_BYTES + 1 - (size_t)n, "/%s", step_phase_name(phase));
    } else if (turns > 0) {
        (void)snprintf(ret + n, LIMIT_KEY_BYTES + 1 - (size_t)n, "/turn%u", turns + 1);
    }
}

/* The same id may have come again with a later revision: the key names the revision. */
static bool is_step(const struct plan *plan, uint32_t step, uint32_t revision, struct str id)
{
    return step < plan->n_steps && plan->steps[step].revision == revision &&
           str_eq(plan->steps[step].step_id, id);
}

/* What an instance speaks of is mostly what one of its lanes has: a plan may have 10,000 steps. */
static uint32_t find_step(const struct open_plan *p, const struct lane_instance *by,
                          uint32_t revision, struct str id)
{
    for (uint32_t i = 0; i < by->capacity; i++) {
        const struct control_item *item = &by->lanes[i].item;
        if (item->run == p->run && is_step(p->plan, item->step, revision, id)) {
            return item->step;
        }
    }
    for (uint32_t i = 0; i < p->plan->n_steps; i++) {
        if (is_step(p->plan, i, revision, id)) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* "turn2" and more: without a leading zero, which would give one turn two keys. */
static bool is_turn(struct str name)
{
    uint32_t n = 0;

    if (name.len < 5 || name.len > 8 || memcmp(name.ptr, "turn", 4) != 0 || name.ptr[4] == '0') {
        return false;
    }
    for (size_t i = 4; i < name.len; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9') {
            return false;
        }
        n = n * 10 + (uint32_t)(name.ptr[i] - '0');
    }
    return n >= 2;
}

static bool split_phase(struct str *io_id, enum step_phase *ret)
{
    const char *slash = memchr(io_id->ptr, '/', io_id->len);
    struct str name;

    *ret = PHASE_EXECUTE;
    if (slash == NULL) {
        return true;
    }
    name.ptr = slash + 1;
    name.len = io_id->len - (size_t)(name.ptr - io_id->ptr);
    io_id->len = (size_t)(slash - io_id->ptr);
    if (is_turn(name)) {
        return true;
    }
    *ret = step_phase_from_name(name);
    return *ret != STEP_PHASE_COUNT && *ret != PHASE_EXECUTE;
}

bool key_find(struct engine *engine, const struct lane_instance *by, struct str key,
              uint64_t *ret_run, uint32_t *ret_step, enum step_phase *ret_phase)
{
    struct open_plan *p;
    struct str id;
    size_t at = UUID_TEXT_LEN + 1;
    uint32_t revision = 0;

    if (key.len < UUID_TEXT_LEN + 4 || key.ptr[UUID_TEXT_LEN] != '/') {
        return false;
    }
    p = open_plan_by_id(engine, (struct str){key.ptr, UUID_TEXT_LEN});
    /* The key is the only spelling: a leading zero would give one step two keys. */
    while (at < key.len && key.ptr[at] >= '0' && key.ptr[at] <= '9' && revision < 1000000) {
        revision = revision * 10 + (uint32_t)(key.ptr[at++] - '0');
    }
    if (p == NULL || at >= key.len || key.ptr[at] != '/' || key.ptr[UUID_TEXT_LEN + 1] == '0' ||
        memcmp(key.ptr, p->id, UUID_TEXT_LEN) != 0) {
        return false;
    }
    id = (struct str){key.ptr + at + 1, key.len - at - 1};
    if (!split_phase(&id, ret_phase)) {
        return false;
    }
    *ret_run = p->run;
    *ret_step = find_step(p, by, revision, id);
    return *ret_step != UINT32_MAX;
}

void step_traceparent(const struct open_plan *p, uint32_t step, enum step_phase phase,
                      uint32_t attempt, char ret[TRACEPARENT_LEN + 1])
{
    const struct str id = {p->id, UUID_TEXT_LEN};
    const bool in_attempt = phase != PHASE_GATE && phase != PHASE_REPLAN;
    struct trace t = open_plan_more(p)->origin.trace;

    if (t.span == 0) {
        trace_of_plan(p->plan_id, &t);
    }
    t.span = in_attempt ? trace_span(id, TRACE_ATTEMPT, step, attempt)
                        : trace_span(id, TRACE_STEP, step, 0);
    trace_write(&t, ret);
}

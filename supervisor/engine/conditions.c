#include "supervisor/engine/conditions.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "supervisor/core/plan/template.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/scope.h"
#include "supervisor/plan/expand.h"
#include "supervisor/plan/flow/condition.h"

enum { CYCLE_MAX = 1024, STATUS_BYTES = 32 };

void engine_condition_asked(struct engine *engine, const struct core_cmd *cmd)
{
    if (engine->conditions_n == engine->conditions_cap) {
        const uint32_t cap = engine->conditions_cap == 0 ? 64 : engine->conditions_cap * 2;
        struct condition_asked *at = realloc(engine->conditions, cap * sizeof *at);
        ASSERT(at != NULL); /* forgetting it would lose a step */
        engine->conditions = at;
        engine->conditions_cap = cap;
    }
    engine->conditions[engine->conditions_n++] =
        (struct condition_asked){cmd->run, cmd->step, cmd->attempt, cmd->type == CMD_SIGNAL};
}

bool engine_conditions_wait(const struct engine *engine)
{
    return engine->conditions_n > 0;
}

void engine_conditions_done(struct engine *engine)
{
    free(engine->conditions);
}

/* ---- values ---- */

struct values {
    struct engine *engine;
    const struct open_plan *p;
    uint32_t step;
    struct str own;         /* of a loop: its step, whose result is that of the round */
    struct blob_ref result; /* of the round */
    struct buf status;
};

static enum bt_code no_step(const struct condition_ref *ref, struct bt_error *err)
{
    return err_set(err, BT_INVALID, "%.*s names no step of the plan", STR_ARG(ref->text));
}

/* Of a step that has not completed there is no result. */
static enum bt_code result_value(struct values *v, const struct condition_ref *ref, struct doc *ret,
                                 struct bt_error *err)
{
    struct str id = {NULL, 0};
    struct str path;
    while (template_split(ref->name, &id, &path)) {
        const struct open_plan *of;
        struct doc result = {NULL, 0};
        struct blob_ref stored = v->result;
        if (v->own.len == 0 || !str_eq(id, v->own)) {
            const uint32_t ix = scope_find(v->engine, v->p, v->step, id, &of);
            if (ix == UINT32_MAX) {
                continue;
            }
            if (core_block_run(of->block)->steps[ix].status != STEP_COMPLETED) {
                return BT_OK;
            }
            stored = core_block_run(of->block)->steps[ix].result;
        }
        const enum bt_code code = engine_result_doc(v->engine, stored, &result, err);
        *ret = code == BT_OK ? expand_pick(result, path) : *ret;
        return code;
    }
    return no_step(ref, err);
}

/* item.a, index, iteration, previous.a */
static enum bt_code word_value(struct values *v, const struct condition_ref *ref, struct doc *ret,
                               struct bt_error *err)
{
    const char *dot = memchr(ref->text.ptr, '.', ref->text.len);
    const size_t n = dot == NULL ? ref->text.len : (size_t)(dot - ref->text.ptr);
    const struct str word = {ref->text.ptr, n};
    const struct str path = {ref->text.ptr + n + (dot != NULL ? 1 : 0),
                             ref->text.len - n - (dot != NULL ? 1 : 0)};
    struct doc value = {NULL, 0};
    const enum bt_code code = scope_value(v->engine, v->p, v->step, word, &value, err);
    if (code != BT_OK || value.ptr == NULL) {
        return code;
    }
    *ret = str_is(word, "previous") ? expand_pick(value, path)
           : path.len > 0           ? doc_path(value, path)
                                    : value;
    return BT_OK;
}

static enum bt_code value_of(void *self, const struct condition_ref *ref, struct doc *ret,
                             struct bt_error *err)
{
    struct values *v = self;
    struct doc state = {NULL, 0};
    const struct open_plan *of;
    uint32_t ix;
    enum bt_code code = BT_OK;
    *ret = (struct doc){NULL, 0};
    switch (ref->kind) {
    case CONDITION_RESULT:
        return result_value(v, ref, ret, err);
    case CONDITION_STATUS:
        ix = scope_find(v->engine, v->p, v->step, ref->name, &of);
        if (ix == UINT32_MAX) {
            return no_step(ref, err);
        }
        buf_clear(&v->status);
        doc_put_cstr(&v->status, step_status_name(core_block_run(of->block)->steps[ix].status));
        *ret = doc_from_buf(&v->status);
        return buf_check(&v->status, err);
    case CONDITION_STATE:
        code = engine_result_doc(v->engine, open_plan_more(v->p)->state, &state, err);
        *ret = code == BT_OK && state.ptr != NULL ? doc_path(state, ref->name) : *ret;
        return code;
    case CONDITION_SCOPE:
        return word_value(v, ref, ret, err);
    case CONDITION_INPUT: /* stands in the condition */
        break;
    }
    return BT_OK;
}

/* ---- verdicts ---- */

enum bt_code engine_round_holds(struct engine *engine, const struct open_plan *child,
                                struct str own, struct blob_ref result, struct doc condition,
                                bool *ret, struct buf *tested, struct bt_error *err)
{
    struct values v = {.engine = engine, .p = child, .own = own, .result = result};
    buf_init(&v.status, STATUS_BYTES);
    const enum bt_code code = condition_evaluate(condition, value_of, &v, ret, tested, err);
    buf_done(&v.status);
    return code;
}

/* Whatever is wrong with a value or a result is the step's failure. */
static void evaluate(struct engine *engine, const struct condition_asked *asked,
                     const struct open_plan *p)
{
    struct values v = {.engine = engine, .p = p, .step = asked->step};
    struct core_event ev = {CORE_EV_INIT(CONDITION, condition, .verdict = CONDITION_FAILED),
                            .run = asked->run, .step = asked->step, .attempt = asked->revision};
    struct bt_error err;
    struct buf tested;
    bool holds = false;
    buf_init(&v.status, STATUS_BYTES);
    buf_init(&tested, 2 * CONDITION_TESTED_MAX);
    if (condition_evaluate(p->plan->steps[asked->step].rules->when, value_of, &v, &holds, &tested,
                           &err) == BT_OK) {
        CORE_EV(&ev, condition)->verdict = holds ? CONDITION_TRUE : CONDITION_FALSE;
        ev.text = buf_str(&tested);
    } else {
        ev.text = str_from(err.msg);
    }
    engine_tell(engine, &ev);
    buf_done(&tested);
    buf_done(&v.status);
}

/* The oldest signal that fits, if one is kept. */
static void bring_signal(struct engine *engine, const struct condition_asked *asked,
                         const struct open_plan *p)
{
    const struct plan_wait *wait = p->plan->steps[asked->step].wait;
    const struct signal_known *kept =
        wait == NULL ? NULL : signals_kept(&open_plan_more(p)->signals, wait->signal);

    if (kept != NULL) {
        struct core_event ev = {
            CORE_EV_INIT(SIGNAL, signal, .serial = kept->serial, .result = kept->result),
            .run = asked->run, .step = asked->step, .text = kept->name};
        engine_tell(engine, &ev);
    }
}

void engine_conditions_answer(struct engine *engine)
{
    uint32_t n = 0;
    while (n < engine->conditions_n && n < CYCLE_MAX && !engine->failed) {
        const struct condition_asked asked = engine->conditions[n++];
        const struct open_plan *p = open_plan_of_run(engine, asked.run);
        if (p != NULL && asked.step < p->plan->n_steps) {
            const uint64_t before = engine_applies(engine, asked.run);
            (asked.signal ? bring_signal : evaluate)(engine, &asked, p);
            (void)engine_applies(engine, before);
        }
    }
    if (n > 0) {
        engine->conditions_n -= n;
        memmove(engine->conditions, engine->conditions + n,
                engine->conditions_n * sizeof *engine->conditions);
    }
}

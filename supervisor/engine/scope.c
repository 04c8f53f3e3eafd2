#include "supervisor/engine/scope.h"

#include <stdio.h>

#include "protocol/base/assert.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/step_context.h"

/* The plan and step that the step of a map or a loop is done for. NULL: what is outside cannot be
 * seen. */
static const struct open_plan *outer(struct engine *engine, const struct open_plan *p,
                                     uint32_t *io_step)
{
    const struct child_of *child = &p->plan->child;
    const struct open_plan *of = open_plan_more(p)->within;

    if (child->kind != CHILD_OF_MAP && child->kind != CHILD_OF_LOOP) {
        return NULL;
    }
    of = of != NULL ? of : open_plan_by_id(engine, child->of);
    *io_step = child->step;
    return of != NULL && child->step < of->plan->n_steps ? of : NULL;
}

uint32_t scope_find(struct engine *engine, const struct open_plan *p, uint32_t step, struct str id,
                    const struct open_plan **ret)
{
    char name[LIMIT_ID_BYTES + 16];

    for (; p != NULL; p = outer(engine, p, &step)) {
        const struct plan_step *s = step < p->plan->n_steps ? &p->plan->steps[step] : NULL;
        uint32_t ix = UINT32_MAX;
        *ret = p;
        if (s != NULL && s->item.ptr != NULL && id.len <= LIMIT_ID_BYTES) {
            (void)snprintf(name, sizeof name, "%.*s[%u]", STR_ARG(id), s->index);
            ix = plan_step_find(p->plan, str_from(name));
        }
        ix = ix == UINT32_MAX ? plan_step_find(p->plan, id) : ix;
        if (ix != UINT32_MAX) {
            return ix;
        }
    }
    return UINT32_MAX;
}

enum bt_code scope_result(struct engine *engine, const struct open_plan *p, uint32_t step,
                          struct str id, struct doc *ret, struct bt_error *err)
{
    const struct open_plan *of = p;
    const uint32_t ix = scope_find(engine, p, step, id, &of);
    const struct run *run = core_block_run(of->block);

    if (ix == UINT32_MAX || run->steps[ix].status != STEP_COMPLETED) {
        return err_set(err, BT_INVALID, "step '%.*s' has no result", STR_ARG(id));
    }
    return engine_result_doc(engine, run->steps[ix].result, ret, err);
}

uint32_t scope_words(struct engine *engine, const struct open_plan *p, uint32_t step,
                     struct scope_words *ret)
{
    uint32_t n = 0;

    for (; p != NULL; p = outer(engine, p, &step)) {
        const struct child_of *child = &p->plan->child;
        ASSERT(n + 3 <= sizeof ret->at / sizeof ret->at[0]); /* it does not begin any deeper */
        if (child->kind == CHILD_OF_MAP) {
            ret->at[n++] = STR_LIT("item");
            ret->at[n++] = STR_LIT("index");
            if (child->name.len > 0) {
                ret->at[n++] = child->name;
            }
        } else if (child->kind == CHILD_OF_LOOP) {
            ret->at[n++] = STR_LIT("iteration");
            ret->at[n++] = STR_LIT("previous");
        }
    }
    return n;
}

static struct doc number(struct engine *engine, uint32_t value)
{
    struct buf out;
    struct doc kept;

    buf_init(&out, 16);
    doc_put_u64(&out, value);
    kept = doc_copy(&engine->cycle, doc_from_buf(&out));
    buf_done(&out);
    return kept;
}

enum bt_code scope_value(struct engine *engine, const struct open_plan *p, uint32_t step,
                         struct str word, struct doc *ret, struct bt_error *err)
{
    *ret = (struct doc){NULL, 0};
    for (; p != NULL; p = outer(engine, p, &step)) {
        const struct child_of *child = &p->plan->child;
        const struct plan_step *s = &p->plan->steps[step];
        if (!child_gives(child, word)) {
            continue;
        }
        if (str_is(word, "index")) {
            *ret = number(engine, s->index);
        } else if (str_is(word, "iteration")) {
            *ret = number(engine, child->round);
        } else if (str_is(word, "previous")) {
            *ret = child->previous;
        } else {
            *ret = s->item;
        }
        if (ret->ptr == NULL && child->kind == CHILD_OF_MAP) {
            break; /* a step that a person added belongs to no item */
        }
        return BT_OK;
    }
    return err_set(err, BT_INVALID, "there is no %.*s here", STR_ARG(word));
}

/* ---- the results that a step is given ---- */

enum { PICKS_MAX = 4096 };

struct measuring {
    struct engine *engine;
    enum bt_code code;
    struct bt_error *err;
};

/* Results of an older version's journal do not have the length: they are read. */
static uint64_t text_bytes(void *self, struct blob_ref result)
{
    struct measuring *m = self;
    uint64_t n = result.text_len;

    if (n == 0 && m->code == BT_OK) {
        m->code = engine_result_length(m->engine, result, &n, m->err);
    }
    return n;
}

enum bt_code step_context_choose(struct engine *engine, const struct plan *plan,
                                 const struct run *run, uint32_t step, struct arena *arena,
                                 struct step_context *ret, struct bt_error *err)
{
    struct measuring m = {engine, BT_OK, err};
    const struct context_measure measure = {text_bytes, &m};
    const uint32_t cap = plan->n_steps < PICKS_MAX ? plan->n_steps : PICKS_MAX;

    *ret = (struct step_context){.picks = arena_alloc(arena, cap * sizeof *ret->picks)};
    if (ret->picks == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a context");
    }
    ret->choice = context_choose(plan, run, step, &measure, ret->picks, cap);
    return m.code;
}

#include "supervisor/engine/step_context.h"

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

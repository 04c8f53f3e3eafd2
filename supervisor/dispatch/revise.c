#include "supervisor/dispatch/revise.h"

#include <stdlib.h>

#include "supervisor/dispatch/cards.h"
#include "supervisor/engine/revision.h"
#include "supervisor/plan/permit.h"
#include "supervisor/plan/problem_add.h"

/* The agents that are away count for a plan that waits for them. */
static enum bt_code recall(struct engine *engine, const struct open_plan *p, struct arena *arena,
                           struct bt_error *err)
{
    struct doc document;
    const enum bt_code code = revision_document(engine, p, arena, &document, err);

    return code == BT_OK && plan_waits_for_agents(document) ? agents_recall(engine, err) : code;
}

enum bt_code revise_make(struct engine *engine, const struct open_plan *p,
                         const struct revise_change *change, struct problems *problems,
                         struct new_revision *ret, struct blob_ref *ret_document,
                         struct bt_error *err)
{
    const struct run *run = core_block_run(p->block);
    struct plan_revise_request request = {.kind = change->kind,
                                          .change = change->steps,
                                          .after = change->after,
                                          .before = change->before,
                                          .step = change->step,
                                          .rerun = change->again,
                                          .run = run,
                                          .registry = engine_registry(engine),
                                          .revision = run->revision + 1};
    struct arena reading = {.chunks = NULL};
    struct plan *plan = NULL;
    struct buf document;
    enum bt_code code;

    *ret = (struct new_revision){0};
    if (run->revision >= LIMIT_REVISIONS) {
        return err_set(err, BT_LIMIT, "the plan was changed %u times, the limit", run->revision);
    }
    buf_init(&document, LIMIT_STEP_BYTES);
    code = revision_plan(engine, p, &reading, &plan, err);
    code = code == BT_IO ? BT_INTERNAL
                         : code; /* of this plan; the journal's own failure is revision_keep's */
    if (code == BT_OK) {
        code = recall(engine, p, &reading, err);
    }
    if (code == BT_OK) {
        request.plan = plan;
        code = plan_revise(&request, &reading, &plan, problems, &document, err);
    }
    if (code == BT_OK) {
        code = plan_resolve(plan, engine_registry(engine), engine_now(engine), err);
    }
    if (code == BT_OK) {
        code = revision_keep(engine, plan, &document, ret, err);
        *ret_document = ret->document;
    }
    buf_done(&document);
    arena_done(&reading);
    return code;
}

static void list_problems(const struct problems *p, bool warnings, uint32_t most, struct buf *text)
{
    char line[720];
    uint32_t told = 0;
    uint32_t all = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        const struct problem *one = &p->at[i];
        if (one->warning != warnings || ++all > most) {
            continue;
        }
        problem_text(one, line, sizeof line);
        buf_printf(text, "%s%s", told++ > 0 ? "; " : "", line);
    }
    all = warnings ? all : p->errors;
    if (all > told && told > 0) {
        buf_printf(text, "; and %u more", all - told);
    }
}

void revise_problems(const struct problems *p, uint32_t most, struct buf *text)
{
    list_problems(p, false, most, text);
}

void revise_remarks(const struct problems *p, uint32_t most, struct buf *text)
{
    list_problems(p, true, most, text);
}

static enum bt_code read_planned(struct engine *engine, const struct open_plan *p,
                                 struct doc answer, bool trusted, struct arena *arena,
                                 struct plan **ret, struct problems *problems, struct buf *document,
                                 struct bt_error *err)
{
    struct plan_request request = {.plan = answer,
                                   .defaults = &engine_options(engine)->defaults,
                                   .registry = engine_registry(engine),
                                   .trusted = trusted};
    enum bt_code code = revision_document(engine, p, arena, &request.pending, err);

    code = code == BT_IO ? BT_INTERNAL : code;
    if (code == BT_OK) {
        code = plan_read_request(&request, arena, ret, problems, document, err);
    }
    if (code == BT_OK) {
        (*ret)->session = p->plan->session;
        code = plan_resolve(*ret, engine_registry(engine), engine_now(engine), err);
    }
    return code;
}

enum bt_code revise_planned(struct engine *engine, const struct open_plan *p, struct doc answer,
                            bool trusted, struct problems *problems, struct new_revision *ret,
                            struct blob_ref *ret_document, struct bt_error *err)
{
    struct arena reading = {.chunks = NULL};
    struct plan *plan = NULL;
    struct buf document;
    enum bt_code code;

    *ret = (struct new_revision){0};
    buf_init(&document, LIMIT_STEP_BYTES);
    code = read_planned(engine, p, answer, trusted, &reading, &plan, problems, &document, err);
    if (code == BT_OK) {
        code = revision_keep(engine, plan, &document, ret, err);
        *ret_document = ret->document;
    }
    buf_done(&document);
    arena_done(&reading);
    return code;
}

enum bt_code revise_again(struct engine *engine, const struct open_plan *p, const uint8_t *again,
                          uint32_t n, revise_compose_fn *compose, struct problems *problems,
                          struct new_revision *ret, struct blob_ref *ret_document,
                          struct bt_error *err)
{
    struct revise_change change = {.kind = REVISE_RERUN, .again = again};
    struct arena reading = {.chunks = NULL};
    struct doc document;
    struct buf steps;
    enum bt_code code = revision_document(engine, p, &reading, &document, err);

    *ret = (struct new_revision){0};
    buf_init(&steps, LIMIT_STEP_BYTES);
    code = code == BT_IO ? BT_INTERNAL : code;
    if (code == BT_OK) {
        compose(p, again, n, document, &steps);
        code = buf_check(&steps, err);
    }
    if (code == BT_OK) {
        change.steps = doc_from_buf(&steps);
        code = revise_make(engine, p, &change, problems, ret, ret_document, err);
    }
    buf_done(&steps);
    arena_done(&reading);
    return code;
}

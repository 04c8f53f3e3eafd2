#include "supervisor/dispatch/revise.h"

#include <stdlib.h>

#include "supervisor/plan/pack.h"

/* What the engine keeps of a revision that has been read. */
static enum bt_code keep(const struct plan *plan, struct new_revision *ret, struct bt_error *err)
{
    ret->plan = plan_pack(plan);
    ret->block = open_plan_block(plan);
    return ret->plan != NULL && ret->block != NULL
               ? BT_OK
               : err_set(err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
}

/* The document of a revision, or (id 0) that of the plan's row, in the arena. */
static enum bt_code load(struct engine *engine, const struct plan *plan, struct blob_ref document,
                         struct arena *arena, struct doc *ret, struct bt_error *err)
{
    struct journal_plan row = {.doc = NULL};
    struct buf bytes;
    enum bt_code code;

    buf_init(&bytes, LIMIT_STEP_BYTES);
    if (document.id != 0) {
        code = journal_blob_get(engine->journal, document.id, &bytes, err);
        *ret = doc_from_buf(&bytes);
    } else {
        code = journal_plan_by_id(engine->journal, plan->plan_id, &row, err);
        *ret = (struct doc){row.doc, row.doc_len};
    }
    if (code == BT_OK) {
        *ret = doc_copy(arena, *ret);
        code = ret->ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan") : BT_OK;
    }
    buf_done(&bytes);
    return code;
}

/* A revision of `plan` out of its document, with the policy, which a packed plan has not. */
static enum bt_code read_document(struct engine *engine, const struct plan *plan,
                                  struct blob_ref document, struct arena *arena, struct plan **ret,
                                  struct bt_error *err)
{
    struct doc doc;
    enum bt_code code = load(engine, plan, document, arena, &doc, err);

    if (code == BT_OK) {
        code = plan_read_canonical(doc, &engine->opt.defaults, engine->registry, arena, ret, err);
    }
    if (code == BT_OK) {
        (*ret)->plan_id = plan->plan_id;
        (*ret)->session = plan->session;
        code = plan_resolve(*ret, engine->registry, engine->now, err);
    }
    return code;
}

/* The plan, packed, in the revision, and its document in the journal. */
static enum bt_code keep_and_store(struct engine *engine, const struct plan *plan,
                                   const struct buf *document, struct new_revision *ret,
                                   struct blob_ref *ret_document, struct bt_error *err)
{
    enum bt_code code = keep(plan, ret, err);

    if (code != BT_OK) {
        return code;
    }
    code = journal_blob_add(engine->journal, document->at, document->len, &ret->document.id, err);
    ret->document.len = document->len;
    *ret_document = ret->document;
    if (code != BT_OK) {
        engine_fail(engine, err);
        code = BT_IO;
    }
    return code;
}

enum bt_code revise_make(struct engine *engine, const struct open_plan *p,
                         const struct revise_wish *wish, struct problems *problems,
                         struct new_revision *ret, struct blob_ref *ret_document,
                         struct bt_error *err)
{
    const struct run *run = core_block_run(p->block);
    struct plan_revise_request request = {.kind = wish->kind,
                                          .change = wish->change,
                                          .after = wish->after,
                                          .before = wish->before,
                                          .step = wish->step,
                                          .rerun = wish->again,
                                          .run = run,
                                          .registry = engine->registry,
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
    code = read_document(engine, p->plan, p->document, &reading, &plan, err);
    code = code == BT_IO ? BT_INTERNAL
                         : code; /* of this plan; the journal's own end is keep_and_store's */
    if (code == BT_OK) {
        request.plan = plan;
        code = plan_revise(&request, &reading, &plan, problems, &document, err);
    }
    if (code == BT_OK) {
        code = plan_resolve(plan, engine->registry, engine->now, err);
    }
    if (code == BT_OK) {
        code = keep_and_store(engine, plan, &document, ret, ret_document, err);
    }
    buf_done(&document);
    arena_done(&reading);
    return code;
}

static void tell(const struct problems *p, bool warnings, uint32_t most, struct buf *text)
{
    uint32_t told = 0;
    uint32_t all = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        const struct problem *one = &p->at[i];
        if (one->warning != warnings || ++all > most) {
            continue;
        }
        buf_add_cstr(text, told++ > 0 ? "; " : "");
        if (one->step_id[0] != 0) {
            buf_printf(text, "step '%s': ", one->step_id);
        }
        buf_printf(text, "%s%s%s", one->field, one->field[0] != 0 ? ": " : "", one->message);
    }
    all = warnings ? all : p->errors;
    if (all > told && told > 0) {
        buf_printf(text, "; and %u more", all - told);
    }
}

void revise_problems(const struct problems *p, uint32_t most, struct buf *text)
{
    tell(p, false, most, text);
}

void revise_remarks(const struct problems *p, uint32_t most, struct buf *text)
{
    tell(p, true, most, text);
}

static enum bt_code read_planned(struct engine *engine, const struct open_plan *p,
                                 struct doc answer, bool trusted, struct arena *arena,
                                 struct plan **ret, struct problems *problems, struct buf *document,
                                 struct bt_error *err)
{
    struct plan_request request = {.plan = answer,
                                   .defaults = &engine->opt.defaults,
                                   .registry = engine->registry,
                                   .trusted = trusted};
    enum bt_code code = load(engine, p->plan, p->document, arena, &request.pending, err);

    code = code == BT_IO ? BT_INTERNAL : code;
    if (code == BT_OK) {
        code = plan_read_request(&request, arena, ret, problems, document, err);
    }
    if (code == BT_OK) {
        (*ret)->plan_id = p->plan->plan_id;
        (*ret)->session = p->plan->session;
        code = plan_resolve(*ret, engine->registry, engine->now, err);
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
        code = keep_and_store(engine, plan, &document, ret, ret_document, err);
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
    struct revise_wish wish = {.kind = REVISE_RERUN, .again = again};
    struct arena reading = {.chunks = NULL};
    struct doc document;
    struct buf change;
    enum bt_code code = load(engine, p->plan, p->document, &reading, &document, err);

    *ret = (struct new_revision){0};
    buf_init(&change, LIMIT_STEP_BYTES);
    code = code == BT_IO ? BT_INTERNAL : code;
    if (code == BT_OK) {
        compose(p, again, n, document, &change);
        code = buf_check(&change, err);
    }
    if (code == BT_OK) {
        wish.change = doc_from_buf(&change);
        code = revise_make(engine, p, &wish, problems, ret, ret_document, err);
    }
    buf_done(&change);
    arena_done(&reading);
    return code;
}

enum bt_code revise_read(struct engine *engine, const struct open_plan *p, struct blob_ref document,
                         struct new_revision *ret, struct bt_error *err)
{
    struct arena reading = {.chunks = NULL};
    struct plan *plan = NULL;
    enum bt_code code = read_document(engine, p->plan, document, &reading, &plan, err);

    *ret = (struct new_revision){.document = document};
    if (code == BT_OK) {
        code = keep(plan, ret, err);
    }
    arena_done(&reading);
    return code;
}

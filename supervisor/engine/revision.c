#include "supervisor/engine/revision.h"

#include "supervisor/engine/engine_internal.h"
#include "supervisor/plan/pack.h"

static enum bt_code pack(struct engine *engine, const struct plan *plan, struct new_revision *ret,
                         struct bt_error *err)
{
    ret->plan = plan_pack(plan, &engine->shelf);
    ret->block = open_plan_block(plan);
    return ret->plan != NULL && ret->block != NULL
               ? BT_OK
               : err_set(err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
}

/* The document of a revision, or (id 0) that of the plan's row, in the arena. */
static enum bt_code load(struct engine *engine, const struct open_plan *p, struct blob_ref document,
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
        code = journal_plan_by_id(engine->journal, p->plan_id, &row, err);
        *ret = (struct doc){row.doc, row.doc_len};
    }
    if (code == BT_OK) {
        *ret = doc_copy(arena, *ret);
        code = ret->ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan") : BT_OK;
    }
    buf_done(&bytes);
    return code;
}

/* A revision of `plan` out of its document. */
static enum bt_code read_document(struct engine *engine, const struct open_plan *p,
                                  struct blob_ref document, struct arena *arena, struct plan **ret,
                                  struct bt_error *err)
{
    struct doc doc;
    enum bt_code code = load(engine, p, document, arena, &doc, err);

    if (code == BT_OK) {
        code = plan_read_canonical(doc, &engine->opt.defaults, engine->registry, arena, ret, err);
    }
    if (code == BT_OK) {
        (*ret)->session = p->plan->session;
        code = plan_resolve(*ret, engine->registry, engine->now, err);
    }
    return code;
}

enum bt_code revision_document(struct engine *engine, const struct open_plan *p,
                               struct arena *arena, struct doc *ret, struct bt_error *err)
{
    return load(engine, p, open_plan_more(p)->document, arena, ret, err);
}

enum bt_code revision_plan(struct engine *engine, const struct open_plan *p, struct arena *arena,
                           struct plan **ret, struct bt_error *err)
{
    return read_document(engine, p, open_plan_more(p)->document, arena, ret, err);
}

enum bt_code revision_keep(struct engine *engine, const struct plan *plan, struct buf *document,
                           struct new_revision *ret, struct bt_error *err)
{
    enum bt_code code = pack(engine, plan, ret, err);

    if (code != BT_OK) {
        return code;
    }
    code = journal_blob_add(engine->journal, document->at, document->len, &ret->document.id, err);
    ret->document.len = document->len;
    ret->text = *document;
    buf_init(document, document->max);
    if (code != BT_OK) {
        engine_fail(engine, err);
        code = BT_IO;
    }
    return code;
}

enum bt_code revision_read(struct engine *engine, const struct open_plan *p,
                           struct blob_ref document, struct new_revision *ret, struct bt_error *err)
{
    struct arena reading = {.chunks = NULL};
    struct plan *plan = NULL;
    enum bt_code code = read_document(engine, p, document, &reading, &plan, err);

    *ret = (struct new_revision){.document = document};
    if (code == BT_OK) {
        code = pack(engine, plan, ret, err);
    }
    arena_done(&reading);
    return code;
}

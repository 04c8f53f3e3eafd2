#include "supervisor/bus/revise.h"

#include <stdlib.h>

#include "supervisor/planner/plan_pack.h"

/* What the bus keeps of a revision that has been read. */
static enum bt_code keep(const struct plan *plan, struct bus_revision *ret, struct bt_error *err)
{
    ret->plan = plan_pack(plan);
    ret->block = bus_plan_block(plan);
    return ret->plan != NULL && ret->block != NULL
               ? BT_OK
               : err_set(err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
}

/* The document of a revision, or (id 0) that of the plan's row, in the arena. */
static enum bt_code load(struct bus *b, const struct plan *plan, struct blob_ref document,
                         struct arena *arena, struct doc *ret, struct bt_error *err)
{
    struct journal_plan row = {.doc = NULL};
    struct buf bytes;
    enum bt_code code;

    buf_init(&bytes, LIMIT_STEP_BYTES);
    if (document.id != 0) {
        code = journal_blob_get(b->journal, document.id, &bytes, err);
        *ret = doc_from_buf(&bytes);
    } else {
        code = journal_plan_by_id(b->journal, plan->plan_id, &row, err);
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
static enum bt_code read_document(struct bus *b, const struct plan *plan, struct blob_ref document,
                                  struct arena *arena, struct plan **ret, struct bt_error *err)
{
    struct doc doc;
    enum bt_code code = load(b, plan, document, arena, &doc, err);

    if (code == BT_OK) {
        code = plan_read_again(doc, &b->opt.defaults, b->registry, arena, ret, err);
    }
    if (code == BT_OK) {
        (*ret)->plan_id = plan->plan_id;
        (*ret)->session = plan->session;
        code = plan_resolve(*ret, b->registry, b->now, err);
    }
    return code;
}

static enum bt_code store(struct bus *b, const struct buf *document, struct blob_ref *ret,
                          struct bt_error *err)
{
    enum bt_code code = journal_blob_add(b->journal, document->at, document->len, &ret->id, err);

    ret->len = document->len;
    if (code != BT_OK) {
        bus_fail(b, err);
        code = BT_IO;
    }
    return code;
}

enum bt_code revise_make(struct bus *b, const struct bus_plan *p, const struct revise_wish *wish,
                         struct problems *problems, struct bus_revision *ret,
                         struct blob_ref *ret_document, struct bt_error *err)
{
    const struct run *run = core_block_run(p->block);
    struct plan_revise_request request = {.kind = wish->kind,
                                          .change = wish->change,
                                          .after = wish->after,
                                          .before = wish->before,
                                          .step = wish->step,
                                          .run = run,
                                          .registry = b->registry,
                                          .revision = run->revision + 1};
    struct arena reading = {.chunks = NULL};
    struct plan *plan = NULL;
    struct buf document;
    enum bt_code code;

    *ret = (struct bus_revision){0};
    if (run->revision >= LIMIT_REVISIONS) {
        return err_set(err, BT_LIMIT, "the plan was changed %u times, the limit", run->revision);
    }
    buf_init(&document, LIMIT_STEP_BYTES);
    code = read_document(b, p->plan, p->document, &reading, &plan, err);
    code = code == BT_IO ? BT_INTERNAL : code; /* of this plan; the journal's own end is store's */
    if (code == BT_OK) {
        request.plan = plan;
        code = plan_revise(&request, &reading, &plan, problems, &document, err);
    }
    if (code == BT_OK) {
        code = plan_resolve(plan, b->registry, b->now, err);
    }
    if (code == BT_OK) {
        code = keep(plan, ret, err);
    }
    if (code == BT_OK) {
        code = store(b, &document, &ret->document, err);
        *ret_document = ret->document;
    }
    buf_done(&document);
    arena_done(&reading);
    return code;
}

enum bt_code revise_read(struct bus *b, const struct bus_plan *p, struct blob_ref document,
                         struct bus_revision *ret, struct bt_error *err)
{
    struct arena reading = {.chunks = NULL};
    struct plan *plan = NULL;
    enum bt_code code = read_document(b, p->plan, document, &reading, &plan, err);

    *ret = (struct bus_revision){.document = document};
    if (code == BT_OK) {
        code = keep(plan, ret, err);
    }
    arena_done(&reading);
    return code;
}

#include "supervisor/bus/revise.h"

static enum bt_code with_block(struct bus_revision *r, struct bt_error *err)
{
    r->block = bus_plan_block(r->plan);
    return r->block != NULL
               ? BT_OK
               : err_set(err, BT_NOMEM, "out of memory for a run of %u steps", r->plan->n_steps);
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
                                          .plan = p->plan,
                                          .run = run,
                                          .registry = b->registry,
                                          .revision = run->revision + 1};
    struct buf document;
    enum bt_code code;

    *ret = (struct bus_revision){0};
    if (run->revision >= LIMIT_REVISIONS) {
        return err_set(err, BT_LIMIT, "the plan was changed %u times, the limit", run->revision);
    }
    buf_init(&document, LIMIT_STEP_BYTES);
    code = plan_revise(&request, &ret->arena, &ret->plan, problems, &document, err);
    if (code == BT_OK) {
        code = plan_resolve(ret->plan, b->registry, b->now, err);
    }
    if (code == BT_OK) {
        code = with_block(ret, err);
    }
    if (code == BT_OK) {
        code = journal_blob_add(b->journal, document.at, document.len, &ret_document->id, err);
        ret_document->len = document.len;
        if (code != BT_OK) {
            bus_fail(b, err);
            code = BT_IO;
        }
    }
    buf_done(&document);
    return code;
}

enum bt_code revise_read(struct bus *b, const struct bus_plan *p, struct blob_ref document,
                         struct bus_revision *ret, struct bt_error *err)
{
    struct buf bytes;
    struct doc doc;
    enum bt_code code;

    *ret = (struct bus_revision){0};
    buf_init(&bytes, LIMIT_STEP_BYTES);
    code = journal_blob_get(b->journal, document.id, &bytes, err);
    if (code == BT_OK) {
        doc = doc_copy(&ret->arena, doc_from_buf(&bytes));
        code = doc.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan")
                               : plan_read_again(doc, &b->opt.defaults, b->registry, &ret->arena,
                                                 &ret->plan, err);
    }
    if (code == BT_OK) {
        ret->plan->plan_id = p->plan->plan_id;
        ret->plan->session = p->plan->session;
        code = plan_resolve(ret->plan, b->registry, b->now, err);
    }
    if (code == BT_OK) {
        code = with_block(ret, err);
    }
    buf_done(&bytes);
    return code;
}

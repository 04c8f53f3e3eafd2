/* plan.get with document: the plan itself, of the newest or of an earlier revision. */
#include "supervisor/api/api.h"
#include "supervisor/query/projection.h"

struct at_revision {
    uint64_t wanted;
    struct blob_ref
        document; /* of the newest revision up to that one; none = as it was submitted */
};

static bool look(struct projection *s, const struct journal_row *row, void *self)
{
    struct at_revision *at = self;

    (void)row;
    if (s->view.revision <= at->wanted) {
        at->document = s->revised;
    }
    return true;
}

static enum bt_code load(struct engine *engine, struct str plan_id, struct blob_ref ref,
                         struct arena *arena, struct doc *ret, struct bt_error *err)
{
    struct journal_plan row;
    struct buf bytes;
    enum bt_code code;

    buf_init(&bytes, LIMIT_STEP_BYTES);
    if (ref.id != 0) {
        code = journal_blob_get(engine_journal(engine), ref.id, &bytes, err);
        *ret = code == BT_OK ? doc_copy(arena, doc_from_buf(&bytes)) : *ret;
    } else {
        code = request_plan_row(engine, plan_id, &row, err);
        *ret = code == BT_OK ? doc_copy(arena, (struct doc){row.doc, row.doc_len}) : *ret;
    }
    buf_done(&bytes);
    return code == BT_OK && ret->ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan")
                                             : code;
}

enum bt_code request_document(struct engine *engine, struct str plan_id, uint64_t revision,
                              struct arena *arena, struct doc *ret, struct bt_error *err)
{
    struct at_revision at = {.wanted = revision};
    struct projection s;
    enum bt_code code = projection_read_also(engine, plan_id, &s, look, &at, err);

    *ret = (struct doc){NULL, 0};
    if (code == BT_OK && (revision == 0 || revision > s.view.revision)) {
        code = err_set(err, BT_NOT_FOUND, "the plan has no revision %llu; its newest is %llu",
                       (unsigned long long)revision, (unsigned long long)s.view.revision);
    }
    if (code == BT_OK) {
        code = load(engine, plan_id, at.document, arena, ret, err);
    }
    projection_done(&s);
    return code;
}

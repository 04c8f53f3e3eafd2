/* plan.get with document: the plan itself, of the newest or of an earlier revision. */
#include "supervisor/api/api.h"
#include "supervisor/query/projection.h"

/* Of the newest revision up to that one; none = as it was submitted. */
static struct blob_ref document_at(const struct projection *s, uint64_t revision)
{
    struct blob_ref found = {.id = 0};

    for (uint32_t i = 0; i < s->revisions_n && s->revisions[i].revision <= revision; i++) {
        found = s->revisions[i].document;
    }
    return found;
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
    struct projection s;
    enum bt_code code = projection_read(engine, plan_id, &s, err);

    *ret = (struct doc){NULL, 0};
    if (code == BT_OK && (revision == 0 || revision > s.view.revision)) {
        code = err_set(err, BT_NOT_FOUND, "the plan has no revision %llu; its newest is %llu",
                       (unsigned long long)revision, (unsigned long long)s.view.revision);
    }
    if (code == BT_OK) {
        code = load(engine, plan_id, document_at(&s, revision), arena, ret, err);
    }
    projection_done(&s);
    return code;
}

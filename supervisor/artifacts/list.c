#include "supervisor/artifacts/list.h"

#include "protocol/artifact/artifact.h"
#include "supervisor/engine/engine.h"

struct listing {
    struct projection *p;
    struct msg_plan_artifact *at;
    uint32_t n;
    bool cut;
};

static struct str text_of(struct listing *l, struct doc entry, const char *name)
{
    return projection_keep(l->p, doc_string(doc_get(entry, str_from(name))));
}

static void add(struct listing *l, struct str step_id, struct doc entry)
{
    const struct doc bytes = doc_get(entry, STR_LIT("bytes"));
    struct msg_plan_artifact *a;

    if (l->n == ARTIFACTS_LISTED) {
        l->cut = true;
        return;
    }
    a = &l->at[l->n++];
    *a = (struct msg_plan_artifact){.step_id = step_id,
                                    .name = text_of(l, entry, "name"),
                                    .media_type = text_of(l, entry, "mediaType"),
                                    .uri = text_of(l, entry, "uri"),
                                    .sha256 = text_of(l, entry, "sha256")};
    if (bytes.ptr != NULL) {
        a->bytes = doc_head(bytes).u;
        msg_set(a, plan_artifact, bytes);
    }
}

static void add_all(struct listing *l, struct str step_id, struct doc list)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;

    if (!doc_next(&c, &head)) {
        return; /* there is no list */
    }
    for (uint32_t i = 0; i < head.n; i++) {
        add(l, step_id, doc_skip(&c));
    }
}

enum bt_code artifacts_list(struct engine *engine, struct projection *p, uint32_t from, uint32_t to,
                            struct msg_plan_artifact **ret, uint32_t *ret_n, bool *ret_cut,
                            struct bt_error *err)
{
    const char *root = engine_options(engine)->artifact_root;
    struct listing l = {.p = p};
    enum bt_code code = BT_OK;

    *ret_n = 0;
    if (root == NULL || (to - from > 1 && !artifact_plan_has_files(root, p->view.plan_id))) {
        return BT_OK;
    }
    l.at = arena_alloc(&p->arena, ARTIFACTS_LISTED * sizeof *l.at);
    if (l.at == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a list");
    }
    for (uint32_t i = from; i < to && code == BT_OK; i++) {
        struct doc result = {NULL, 0};
        if (p->steps[i].result.id != 0) {
            code = engine_result_doc(engine, p->steps[i].result, &result, err);
        }
        if (code == BT_OK && result.ptr != NULL) {
            add_all(&l, p->view.steps[i].step_id, doc_get(result, STR_LIT("artifacts")));
        }
    }
    *ret = l.at;
    *ret_n = l.n;
    *ret_cut = l.cut;
    return code;
}

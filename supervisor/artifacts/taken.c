#include "supervisor/artifacts/taken.h"

#include "protocol/artifact/artifact.h"
#include "supervisor/query/projection.h"

/* The arena holds names of files only: so many fit, of the longest. */
enum { NAMES_BYTES = 256 * 1024 * 1024 };

static enum bt_code take_name(struct taken *t, const char *root, struct str plan_id, struct str uri,
                              struct bt_error *err)
{
    struct artifact_place at;
    struct str name;

    if (!artifact_is_below(root, uri) || artifact_locate(root, uri, &at, err) != BT_OK ||
        !str_is(plan_id, at.plan)) {
        return BT_OK;
    }
    name = arena_str(&t->arena, str_from(at.file));
    return name.ptr == NULL || map_put(&t->names, name, 1) != BT_OK
               ? err_set(err, BT_NOMEM, "out of memory for the files of a plan")
               : BT_OK;
}

static enum bt_code take_names(struct taken *t, const char *root, struct str plan_id,
                               struct doc result, struct bt_error *err)
{
    const struct doc list = doc_get(result, STR_LIT("artifacts"));
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    enum bt_code code = BT_OK;

    if (!doc_next(&c, &head)) {
        return BT_OK; /* there is no list */
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        const struct str uri = doc_string(doc_get(doc_skip(&c), STR_LIT("uri")));
        code = uri.len > 0 ? take_name(t, root, plan_id, uri, err) : BT_OK;
    }
    return code;
}

enum bt_code taken_read(struct engine *engine, const char *root, struct str plan_id,
                        struct taken *ret, struct bt_error *err)
{
    struct projection p;
    enum bt_code code = projection_read(engine, plan_id, &p, err);

    *ret = (struct taken){.arena = {.max = NAMES_BYTES}};
    for (uint32_t i = 0; code == BT_OK && i < p.view.steps_n; i++) {
        struct doc result = {NULL, 0};
        if (p.steps[i].result.id != 0) {
            code = engine_result_doc(engine, p.steps[i].result, &result, err);
        }
        if (code == BT_OK && result.ptr != NULL) {
            code = take_names(ret, root, plan_id, result, err);
        }
    }
    projection_done(&p);
    return code;
}

void taken_done(struct taken *t)
{
    map_done(&t->names);
    arena_done(&t->arena);
}

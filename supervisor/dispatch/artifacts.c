#include "supervisor/dispatch/artifacts.h"

#include <stdio.h>
#include <string.h>

#include "protocol/artifact/artifact.h"

/* ---- what a step is given ---- */

void artifacts_put_dir(struct assignment *q)
{
    const char *root = engine_options(q->engine)->artifact_root;
    int n;

    if (root == NULL || q->plan->job != NULL) {
        return;
    }
    n = snprintf(q->artifact_dir, sizeof q->artifact_dir, "%s/%s", root, q->plan_id);
    if (n > 0 && (size_t)n < sizeof q->artifact_dir) {
        q->m.artifact_dir = str_from(q->artifact_dir);
    }
}

static bool is_given(const struct assignment *q, struct str uri)
{
    for (uint32_t i = 0; i < q->m.artifacts_n; i++) {
        if (str_eq(q->m.artifacts[i].uri, uri)) {
            return true;
        }
    }
    return false;
}

static struct str text_of(struct assignment *q, struct doc entry, const char *name)
{
    const struct doc d = doc_get(entry, str_from(name));

    return d.ptr != NULL && doc_head(d).kind == DOC_STR ? arena_str(q->arena, doc_string(d))
                                                        : (struct str){"", 0};
}

static enum bt_code give_one(struct assignment *q, struct doc entry, struct bt_error *err)
{
    const struct doc bytes = doc_get(entry, STR_LIT("bytes"));
    struct msg_artifact *a;

    if (q->m.artifacts == NULL) {
        q->m.artifacts = arena_alloc(q->arena, LIMIT_ARTIFACTS * sizeof *q->m.artifacts);
    }
    if (q->m.artifacts == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a context");
    }
    if (q->m.artifacts_n == LIMIT_ARTIFACTS) {
        return err_set(err, BT_LIMIT,
                       "the results before this step have more than %d artifacts; name fewer of "
                       "them, or set contextScope",
                       LIMIT_ARTIFACTS);
    }
    a = &q->m.artifacts[q->m.artifacts_n];
    *a = (struct msg_artifact){.name = text_of(q, entry, "name"),
                               .media_type = text_of(q, entry, "mediaType"),
                               .uri = text_of(q, entry, "uri"),
                               .sha256 = text_of(q, entry, "sha256")};
    if (bytes.ptr != NULL && doc_head(bytes).kind == DOC_UINT) {
        a->bytes = doc_head(bytes).u;
        msg_set(a, artifact, bytes);
    }
    if (a->uri.ptr == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a context");
    }
    q->m.artifacts_n++;
    return BT_OK;
}

enum bt_code artifacts_give(struct assignment *q, struct doc result, struct bt_error *err)
{
    const char *root = engine_options(q->engine)->artifact_root;
    struct doc list = root == NULL || result.ptr == NULL || doc_head(result).kind != DOC_MAP
                          ? (struct doc){NULL, 0}
                          : doc_get(result, STR_LIT("artifacts"));
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head = {.kind = DOC_NIL};
    enum bt_code code = BT_OK;

    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return BT_OK;
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        const struct doc entry = doc_skip(&c);
        const struct doc uri = doc_get(entry, STR_LIT("uri"));
        const bool text = uri.ptr != NULL && doc_head(uri).kind == DOC_STR;
        if (text && artifact_is_below(root, doc_string(uri)) && !is_given(q, doc_string(uri))) {
            code = give_one(q, entry, err);
        }
    }
    return code;
}

bool artifacts_are_given(struct engine *engine, const struct lane_instance *in,
                         const struct core_cmd *asked, struct str uri)
{
    const struct open_plan *p = open_plan_of_run(engine, asked->run);
    struct assignment q;
    struct bt_error ignored;
    bool given;

    if (p == NULL) {
        return false;
    }
    assignment_init(&q, engine, p, asked);
    given = assignment_make(&q, in, asked->attempt, &ignored) == BT_OK && is_given(&q, uri);
    assignment_done(&q);
    return given;
}

/* ---- what a result names ---- */

static bool is_sum(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (strchr("0123456789abcdefABCDEF", s.ptr[i]) == NULL || s.ptr[i] == 0) {
            return false;
        }
    }
    return s.len == ARTIFACT_SHA256_LEN;
}

static enum bt_code check_file(const char *root, const char *plan_id, const struct msg_artifact *a,
                               struct bt_error *err)
{
    struct artifact_place at;
    uint64_t bytes = 0;
    enum bt_code code = artifact_locate(root, a->uri, &at, err);

    if (code == BT_OK && strcmp(at.plan, plan_id) != 0) {
        code = err_set(err, BT_UNAUTHORIZED, "is a file of another plan; write it to artifactDir");
    }
    if (code == BT_OK && (!msg_has(a, artifact, bytes) || !is_sum(a->sha256))) {
        code = err_set(err, BT_INVALID,
                       "a file in artifactDir needs `bytes` and `sha256`, 64 hexadecimal digits");
    }
    if (code == BT_OK) {
        code = artifact_stat(root, &at, &bytes, err);
        code = code == BT_GONE ? err_set(err, BT_INVALID, "the file is missing") : code;
    }
    if (code == BT_OK && bytes != a->bytes) {
        code = err_set(err, BT_INVALID, "the file has %llu bytes, the result says %llu",
                       (unsigned long long)bytes, (unsigned long long)a->bytes);
    }
    return code;
}

bool artifacts_fit(struct engine *engine, const struct open_plan *p, const struct msg_result *r,
                   struct buf *why)
{
    const char *root = engine_options(engine)->artifact_root;
    struct bt_error err;

    for (uint32_t i = 0; root != NULL && p != NULL && i < r->artifacts_n; i++) {
        const struct msg_artifact *a = &r->artifacts[i];
        if (artifact_is_below(root, a->uri) && check_file(root, p->id, a, &err) != BT_OK) {
            buf_printf(why, "artifacts[%u] '%.*s': %s", i,
                       a->name.len > 100 ? 100 : (int)a->name.len,
                       a->name.len > 0 ? a->name.ptr : "", err.msg);
            return false;
        }
    }
    return true;
}

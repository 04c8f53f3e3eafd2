#include "protocol/artifact/here.h"

#include <stdio.h>
#include <string.h>

#include "protocol/artifact/artifact.h"
#include "protocol/limits.h"

struct walk {
    const char *root;
    struct buf *out;
    bool moved, absent;
    enum bt_code code; /* of making the URIs */
    struct bt_error *err;
};

/* Whether the map is a file {uri, bytes, sha256, ...} of another state directory that is here. */
static bool is_moved(struct walk *w, struct doc map, struct artifact_place *ret)
{
    const struct doc bytes = doc_get(map, STR_LIT("bytes"));
    const struct str uri = doc_string(doc_get(map, STR_LIT("uri")));
    const struct str sum = doc_string(doc_get(map, STR_LIT("sha256")));
    uint64_t here = 0;
    bool is;

    if (sum.len != ARTIFACT_SHA256_LEN || doc_head(bytes).kind != DOC_UINT ||
        artifact_is_below(w->root, uri) || !artifact_was(uri, ret)) {
        return false;
    }
    is = artifact_stat(w->root, ret, &here, NULL) == BT_OK && here == doc_head(bytes).u;
    w->absent = w->absent || !is;
    return is;
}

static void put_uri(struct walk *w, const struct artifact_place *at)
{
    char file[sizeof at->plan + sizeof at->file];
    struct buf uri;

    buf_init(&uri, LIMIT_STEP_BYTES);
    (void)snprintf(file, sizeof file, "%s/%s", at->plan, at->file);
    artifact_uri(w->root, file, &uri);
    w->code = w->code == BT_OK ? buf_check(&uri, w->err) : w->code;
    doc_put_str(w->out, buf_str(&uri));
    buf_done(&uri);
}

/* Copies the value at the cursor, but for such URIs. */
static void walk_value(struct walk *w, struct doc d, uint32_t depth)
{
    struct doc_cursor c = doc_cursor(d);
    struct doc_head head;
    struct artifact_place at;
    bool moved;

    if (depth > LIMIT_DEPTH || !doc_next(&c, &head) ||
        (head.kind != DOC_MAP && head.kind != DOC_ARRAY)) {
        doc_put_doc(w->out, d);
        return;
    }
    if (head.kind == DOC_ARRAY) {
        doc_put_array(w->out, head.n);
        for (uint32_t i = 0; i < head.n; i++) {
            walk_value(w, doc_skip(&c), depth + 1);
        }
        return;
    }
    moved = is_moved(w, d, &at);
    w->moved = w->moved || moved;
    doc_put_map(w->out, head.n);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc key = doc_skip(&c);
        const struct doc value = doc_skip(&c);
        doc_put_doc(w->out, key);
        if (moved && str_is(doc_string(key), "uri")) {
            put_uri(w, &at);
        } else {
            walk_value(w, value, depth + 1);
        }
    }
}

/* Most results name no file, and most files were written here: the bytes are looked at once. */
static bool may_name_files(const char *root, struct doc result)
{
    static const char dir[] = "/" ARTIFACT_DIR "/";
    static const char scheme[] = "file://";
    const size_t root_n = strlen(root);
    const size_t n = sizeof scheme - 1 + root_n;
    const char *start = (const char *)result.ptr;
    const char *end = start + result.len;
    const char *from = start;

    while ((from = memmem(from, (size_t)(end - from), dir, sizeof dir - 1)) != NULL) {
        from += sizeof dir - 2; /* where our root would end */
        if ((size_t)(from - start) < n || memcmp(from - n, scheme, sizeof scheme - 1) != 0 ||
            memcmp(from - root_n, root, root_n) != 0) {
            return true;
        }
    }
    return false;
}

enum bt_code artifact_here(const char *root, struct doc result, struct buf *out, bool *ret_absent,
                           struct bt_error *err)
{
    struct walk w = {.root = root, .out = out, .err = err};

    *ret_absent = false;
    if (root == NULL || result.ptr == NULL || !may_name_files(root, result)) {
        return BT_OK;
    }
    walk_value(&w, result, 0);
    *ret_absent = w.absent;
    if (!w.moved) {
        buf_clear(out);
        return BT_OK;
    }
    return w.code == BT_OK ? buf_check(out, err) : w.code;
}

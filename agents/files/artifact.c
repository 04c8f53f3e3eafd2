#include "agents/files/artifact.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { BLOCK = 256 * 1024, NAME_MAX_BYTES = 100 };

bool files_wants_artifact(struct bt_step *step)
{
    return bt_step_param_bool(step, "artifact", false);
}

const char *files_artifact_name(struct bt_step *step, struct str path, const char *fallback)
{
    const char *kept;
    size_t from = path.len;

    while (from > 0 && path.ptr[from - 1] != '/') {
        from--;
    }
    path = (struct str){path.ptr + from, path.len - from};
    if (path.len == 0 || path.len > NAME_MAX_BYTES || path.ptr[0] == '.') {
        return fallback;
    }
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] == 0 || strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789_.-",
                                       path.ptr[i]) == NULL) {
            return fallback;
        }
    }
    kept = step_copy_text(step, path);
    return kept != NULL ? kept : fallback;
}

const char *files_media_type(const char *name)
{
    static const struct {
        const char *ending;
        const char *type;
    } known[] = {{".csv", "text/csv"},     {".json", "application/json"},
                 {".txt", "text/plain"},   {".log", "text/plain"},
                 {".md", "text/markdown"}, {".ndjson", "application/x-ndjson"},
                 {".html", "text/html"},   {".xml", "application/xml"}};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot != NULL && i < sizeof known / sizeof known[0]; i++) {
        if (strcasecmp(dot, known[i].ending) == 0) {
            return known[i].type;
        }
    }
    return "application/octet-stream";
}

static enum bt_code copy_all(struct bt_step *step, int fd, struct bt_artifact *to, uint8_t *block,
                             uint64_t *ret_bytes, struct bt_error *err)
{
    for (;;) {
        ssize_t n = read(fd, block, BLOCK);
        enum bt_code code;
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? err_errno(err, errno, "reading") : BT_OK;
        }
        if (bt_step_cancelled(step)) {
            return err_set(err, BT_CANCELLED, "cancelled after %llu bytes",
                           (unsigned long long)*ret_bytes);
        }
        code = bt_artifact_write(to, block, (size_t)n, err);
        if (code != BT_OK) {
            return code;
        }
        *ret_bytes += (uint64_t)n;
    }
}

enum bt_code files_copy(struct bt_step *step, int fd, const char *name, uint64_t *ret_bytes,
                        struct bt_error *err)
{
    struct bt_artifact *to = NULL;
    uint8_t *block = malloc(BLOCK);
    enum bt_code code = block == NULL
                            ? err_set(err, BT_NOMEM, "out of memory for a block of the file")
                            : bt_artifact_create(step, name, files_media_type(name), &to, err);

    *ret_bytes = 0;
    if (code == BT_OK) {
        code = copy_all(step, fd, to, block, ret_bytes, err);
        if (code == BT_OK) {
            code = bt_artifact_commit(to, err);
        } else {
            bt_artifact_abort(to);
        }
    }
    free(block);
    return code;
}

#include "supervisor/artifacts/arriving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { OPEN_MAX = 32, IDLE_MS = 60 * 1000 };

struct arrival {
    char dir[ARTIFACT_PATH_MAX + 1]; /* "" = free */
    char file[ARTIFACT_FILE_MAX + 1];
    struct artifact_part *part; /* NULL: it is whole */
    uint64_t bytes;             /* of the whole file */
    char sha256[ARTIFACT_SHA256_LEN + 1];
    msec used;
};

struct arriving {
    struct arrival at[OPEN_MAX];
};

enum bt_code arriving_new(struct arriving **ret, struct bt_error *err)
{
    *ret = calloc(1, sizeof **ret);
    return *ret != NULL ? BT_OK : err_set(err, BT_NOMEM, "out of memory for files that arrive");
}

static void drop(struct arrival *x)
{
    artifact_part_close(x->part);
    *x = (struct arrival){.dir = ""};
}

void arriving_tidy(struct arriving *a, msec now)
{
    for (int i = 0; i < OPEN_MAX; i++) {
        if (a->at[i].dir[0] != 0 && now >= msec_add(a->at[i].used, IDLE_MS)) {
            drop(&a->at[i]);
        }
    }
}

/* The place of the file; when it has none, that of the one that waited longest, emptied. */
static struct arrival *find(struct arriving *a, const char *dir, const char *file)
{
    struct arrival *best = &a->at[0];

    for (int i = 0; i < OPEN_MAX; i++) {
        struct arrival *x = &a->at[i];
        if (strcmp(x->dir, dir) == 0 && strcmp(x->file, file) == 0) {
            return x;
        }
        if (x->used < best->used) { /* 0: it is free */
            best = x;
        }
    }
    drop(best);
    return best;
}

static enum bt_code open_part(struct arriving *a, const char *dir, const char *file, msec now,
                              struct arrival **ret, struct bt_error *err)
{
    struct arrival *x = find(a, dir, file);
    enum bt_code code = BT_OK;

    if (x->part == NULL) {
        drop(x);
        code = artifact_part_open(dir, file, &x->part, err);
    }
    if (code == BT_OK) {
        (void)snprintf(x->dir, sizeof x->dir, "%s", dir);
        (void)snprintf(x->file, sizeof x->file, "%s", file);
        x->used = now;
        *ret = x;
    }
    return code;
}

enum bt_code arriving_add(struct arriving *a, const char *dir, const char *file, uint64_t offset,
                          struct str bytes, msec now, uint64_t *ret_bytes, struct bt_error *err)
{
    struct arrival *x = NULL;
    enum bt_code code = open_part(a, dir, file, now, &x, err);

    if (code == BT_OK && artifact_part_bytes(x->part) == offset) {
        code = artifact_part_add(x->part, bytes.ptr, bytes.len, err);
        if (code != BT_OK) {
            drop(x);
            return code;
        }
    }
    *ret_bytes = code == BT_OK ? artifact_part_bytes(x->part) : 0;
    return code;
}

enum bt_code arriving_end(struct arriving *a, const char *dir, const char *file, uint64_t len,
                          struct str sha256, msec now, uint64_t *ret_bytes, bool *ret_done,
                          struct bt_error *err)
{
    struct arrival *x = find(a, dir, file);
    enum bt_code code = BT_OK;

    *ret_done = x->part == NULL && x->bytes == len && sha256.len == ARTIFACT_SHA256_LEN &&
                strncasecmp(x->sha256, sha256.ptr, sha256.len) == 0;
    if (*ret_done) { /* its answer was lost */
        *ret_bytes = len;
        return BT_OK;
    }
    code = open_part(a, dir, file, now, &x, err);
    *ret_bytes = code == BT_OK ? artifact_part_bytes(x->part) : 0;
    if (code != BT_OK || *ret_bytes != len) {
        return code;
    }
    code = artifact_part_commit(x->part, sha256, ret_done, err);
    if (code != BT_OK) {
        drop(x);
    } else if (*ret_done) {
        artifact_part_close(x->part);
        x->part = NULL;
        x->bytes = len;
        (void)snprintf(x->sha256, sizeof x->sha256, "%.*s", STR_ARG(sha256));
    }
    return code;
}

/* Artifacts of a step: what it writes, and what it was given. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/sdk/step.h"
#include "protocol/artifact/artifact.h"

struct bt_artifact {
    struct bt_step *step;
    struct bt_artifact *next; /* of the step */
    struct artifact_writer *writer;
    struct msg_artifact *to; /* the entry that the reply gets */
    struct msg_artifact entry;
    char file[ARTIFACT_FILE_MAX + 1];
};

/* ---- writing ---- */

static enum bt_code check_new(struct bt_step *s, const char *name, struct bt_error *err)
{
    if (s->req.artifact_dir.len == 0) {
        return err_set(err, BT_UNAVAILABLE,
                       "artifact '%.100s': the supervisor gave this step no directory for files "
                       "(artifactDir)",
                       name);
    }
    if (strcmp(s->purpose, "execute") != 0 && strcmp(s->purpose, "search") != 0) {
        return err_set(err, BT_INVALID, "artifact '%.100s': an answer to a question has no files",
                       name);
    }
    if (s->reply.artifacts_n == REPLY_ARTIFACTS_MAX) {
        return err_set(err, BT_LIMIT, "a result has at most %d artifacts", REPLY_ARTIFACTS_MAX);
    }
    for (uint32_t i = 0; i < s->reply.artifacts_n; i++) {
        if (str_is(s->reply.artifacts[i].name, name)) {
            return err_set(err, BT_CONFLICT, "artifact '%.100s': the result has one of this name",
                           name);
        }
    }
    return BT_OK;
}

/* Its uri, when that is known before it is written. */
static enum bt_code fill_entry(struct bt_artifact *a, const char *name, const char *media_type,
                               const char *dir, struct bt_error *err)
{
    struct arena *arena = &a->step->reply.arena;
    struct buf uri;
    enum bt_code code;

    buf_init(&uri, (size_t)ARTIFACT_PATH_MAX * 3);
    if (a->step->files == NULL) {
        artifact_uri(dir, a->file, &uri);
    }
    code = buf_check(&uri, err);
    if (code == BT_OK && uri.len > ARTIFACT_PATH_MAX) {
        code = err_set(err, BT_LIMIT, "artifact '%s': its uri would have more than %d bytes", name,
                       ARTIFACT_PATH_MAX);
    }
    if (code == BT_OK) {
        a->entry = (struct msg_artifact){.name = arena_str(arena, str_from(name)),
                                         .media_type = arena_str(arena, str_from(media_type)),
                                         .uri = arena_str(arena, buf_str(&uri))};
        code =
            a->entry.name.ptr == NULL || a->entry.media_type.ptr == NULL || a->entry.uri.ptr == NULL
                ? err_set(err, BT_NOMEM, "out of memory for an artifact")
                : BT_OK;
    }
    buf_done(&uri);
    return code;
}

enum bt_code bt_artifact_create(struct bt_step *s, const char *name, const char *media_type,
                                struct bt_artifact **ret, struct bt_error *err)
{
    struct bt_artifact *a = calloc(1, sizeof *a);
    char dir[ARTIFACT_PATH_MAX + 1];
    enum bt_code code = a == NULL ? err_set(err, BT_NOMEM, "out of memory for an artifact")
                                  : check_new(s, name, err);

    if (code == BT_OK) {
        a->step = s;
        (void)snprintf(dir, sizeof dir, "%.*s", STR_ARG(s->req.artifact_dir));
        code = artifact_file_name(s->req.step_id, s->req.revision, s->req.attempt, str_from(name),
                                  a->file, err);
    }
    if (code == BT_OK) {
        code = fill_entry(a, name, media_type, dir, err);
    }
    if (code == BT_OK) {
        code = s->files != NULL ? artifact_spool(&a->writer, err)
                                : artifact_create(dir, a->file, &a->writer, err);
        code = code == BT_OK ? BT_OK : err_wrap(err, "artifact '%s'", name);
    }
    if (code != BT_OK) {
        free(a);
        return code;
    }
    a->next = s->artifacts;
    s->artifacts = a;
    *ret = a;
    return BT_OK;
}

enum bt_code bt_artifact_write(struct bt_artifact *a, const void *bytes, size_t len,
                               struct bt_error *err)
{
    enum bt_code code = artifact_write(a->writer, bytes, len, err);

    return code == BT_OK ? BT_OK : err_wrap(err, "artifact '%.*s'", STR_ARG(a->entry.name));
}

/* Takes it from the step's list and frees it. */
static void let_go(struct bt_artifact *a)
{
    struct bt_artifact **at = &a->step->artifacts;

    while (*at != a) {
        at = &(*at)->next;
    }
    *at = a->next;
    free(a);
}

/* What was written goes to the supervisor. */
static enum bt_code send_off(struct bt_artifact *a, struct artifact_writer *writer,
                             uint64_t *ret_bytes, char ret_sum[ARTIFACT_SHA256_LEN + 1],
                             struct bt_error *err)
{
    struct msg_artifact entry = a->entry;
    struct buf uri;
    int fd = -1;
    enum bt_code code = artifact_unspool(writer, &fd, ret_bytes, ret_sum, err);

    if (code != BT_OK) {
        return code;
    }
    buf_init(&uri, ARTIFACT_PATH_MAX);
    entry.bytes = *ret_bytes;
    entry.sha256 = str_from(ret_sum);
    code = a->step->files->put(a->step, &entry, fd, &uri, err);
    (void)close(fd);
    if (code == BT_OK) {
        a->entry.uri = arena_str(&a->step->reply.arena, buf_str(&uri));
        code = a->entry.uri.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory") : BT_OK;
    }
    buf_done(&uri);
    return code;
}

enum bt_code bt_artifact_commit(struct bt_artifact *a, struct bt_error *err)
{
    struct reply *r = &a->step->reply;
    struct artifact_writer *writer = a->writer;
    char sum[ARTIFACT_SHA256_LEN + 1];
    uint64_t bytes = 0;
    enum bt_code code = BT_OK;

    a->writer = NULL;
    if (bt_step_cancelled(a->step)) {
        /* The supervisor has given the attempt up: its file would be nobody's. */
        artifact_abort(writer);
        code = bt_step_time_left_ms(a->step) == 0
                   ? err_set(err, BT_TIMEOUT, "the deadline passed before the artifact was done")
                   : err_set(err, BT_CANCELLED, "cancelled");
    } else {
        code = a->step->files != NULL ? send_off(a, writer, &bytes, sum, err)
                                      : artifact_commit(writer, &bytes, sum, err);
    }
    if (code == BT_OK) {
        a->entry.bytes = bytes;
        msg_set(&a->entry, artifact, bytes);
        a->entry.sha256 = arena_str(&r->arena, str_from(sum));
        code = a->entry.sha256.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory") : BT_OK;
    }
    if (code == BT_OK) {
        code = check_new(a->step, a->entry.name.ptr, err);
    }
    if (code == BT_OK && step_reply_adds(a->step)) {
        r->artifacts[r->artifacts_n++] = a->entry;
    } else if (code != BT_OK) {
        (void)err_wrap(err, "artifact '%.*s'", STR_ARG(a->entry.name));
    }
    let_go(a);
    return code;
}

static ssize_t read_part(int fd, bool whole, off_t at, char *chunk, size_t n)
{
    ssize_t got;

    do {
        got = whole ? pread(fd, chunk, n, at) : read(fd, chunk, n);
    } while (got < 0 && errno == EINTR);
    return got;
}

static enum bt_code copy_fd(struct bt_artifact *a, int fd, struct bt_error *err)
{
    const off_t at = lseek(fd, 0, SEEK_CUR); /* fails for a pipe */
    enum bt_code code = BT_OK;
    char chunk[32768];
    off_t from = 0;
    ssize_t got = 1;

    while (code == BT_OK && got > 0 && !bt_step_cancelled(a->step)) {
        got = read_part(fd, at >= 0, from, chunk, sizeof chunk);
        code = got < 0 ? err_errno(err, errno, "reading the file descriptor %d of artifact '%s'",
                                   fd, a->entry.name.ptr)
                       : bt_artifact_write(a, chunk, (size_t)got, err);
        from += got;
    }
    return code; /* of a cancelled step the commit says so */
}

enum bt_code bt_artifact_add_fd(struct bt_step *s, const char *name, const char *media_type, int fd,
                                struct bt_error *err)
{
    struct bt_artifact *a = NULL;
    enum bt_code code = bt_artifact_create(s, name, media_type, &a, err);

    if (code == BT_OK) {
        code = copy_fd(a, fd, err);
        if (code == BT_OK) {
            return bt_artifact_commit(a, err);
        }
        bt_artifact_abort(a);
    }
    return code;
}

void bt_artifact_abort(struct bt_artifact *a)
{
    if (a != NULL) {
        artifact_abort(a->writer);
        let_go(a);
    }
}

void step_abort_artifacts(struct bt_step *s)
{
    while (s->artifacts != NULL) {
        bt_artifact_abort(s->artifacts);
    }
}

/* ---- reading ---- */

static const struct msg_artifact *given(const struct bt_step *s, const char *uri)
{
    for (uint32_t i = 0; i < s->req.artifacts_n; i++) {
        if (str_is(s->req.artifacts[i].uri, uri)) {
            return &s->req.artifacts[i];
        }
    }
    return NULL;
}

/* The directory of all plans, above the one of this plan. */
static enum bt_code root_of(const struct bt_step *s, char ret[ARTIFACT_PATH_MAX + 1],
                            struct bt_error *err)
{
    size_t n = s->req.artifact_dir.len;

    while (n > 0 && s->req.artifact_dir.ptr[n - 1] != '/') {
        n--;
    }
    if (n < 2 || n > ARTIFACT_PATH_MAX) {
        return err_set(err, BT_UNAVAILABLE,
                       "the supervisor gave this step no directory for files (artifactDir)");
    }
    memcpy(ret, s->req.artifact_dir.ptr, n - 1);
    ret[n - 1] = 0;
    return BT_OK;
}

static bool is_stopped(const void *step)
{
    return bt_step_cancelled(step);
}

enum bt_code bt_artifact_open(struct bt_step *s, const char *uri, int *ret_fd, uint64_t *ret_bytes,
                              struct bt_error *err)
{
    const struct msg_artifact *a = given(s, uri);
    struct artifact_place at;
    char root[ARTIFACT_PATH_MAX + 1];
    enum bt_code code;

    if (a == NULL) {
        return err_set(err, BT_UNAUTHORIZED,
                       "'%.200s': this step was given no such artifact; name the result of an "
                       "earlier step: {{results.STEP.artifact}}",
                       uri);
    }
    code = s->files != NULL ? s->files->get(s, a, ret_fd, err) : root_of(s, root, err);
    if (code == BT_OK && s->files == NULL) {
        code = artifact_locate(root, a->uri, &at, err);
    }
    if (code == BT_OK && s->files == NULL) {
        const struct artifact_claim claim = {.bytes = a->bytes, .sha256 = a->sha256};
        code = artifact_open(root, &at, &claim, is_stopped, s, ret_fd, err);
    }
    if (code == BT_OK && ret_bytes != NULL) {
        *ret_bytes = a->bytes;
    }
    return code;
}

const char *bt_artifact_media_type(struct bt_step *s, const char *uri)
{
    const struct msg_artifact *a = given(s, uri);
    const char *kept = a == NULL ? NULL : step_copy_text(s, a->media_type);

    return kept != NULL ? kept : "";
}

const char *bt_step_dependency_artifact(struct bt_step *s, size_t ix)
{
    struct doc result = ix < s->req.context.dependencies_n ? s->req.context.dependencies[ix].result
                                                           : (struct doc){NULL, 0};
    struct doc uri = result.ptr != NULL && doc_head(result).kind == DOC_MAP
                         ? doc_path(result, STR_LIT("artifacts.0.uri"))
                         : (struct doc){NULL, 0};

    return uri.ptr != NULL && doc_head(uri).kind == DOC_STR ? step_copy_text(s, doc_string(uri))
                                                            : NULL;
}

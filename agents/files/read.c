/* read: a file, or a part of it, as text. */
#include <errno.h>
#include <unistd.h>

#include "agents/files/artifact.h"
#include "agents/files/files.h"
#include "agents/sdk/whole.h"

enum { BLOCK = 256 * 1024 };

enum bt_code files_read_bytes(int fd, uint64_t offset, size_t want, struct buf *out,
                              struct bt_error *err)
{
    while (out->len < want) {
        size_t n = want - out->len < BLOCK ? want - out->len : BLOCK;
        uint8_t *at = buf_reserve(out, n);
        ssize_t got;
        if (at == NULL) {
            return buf_check(out, err);
        }
        got = pread(fd, at, n, (off_t)(offset + out->len));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_errno(err, errno, "reading");
        }
        if (got == 0) {
            break;
        }
        out->len += (size_t)got;
    }
    return BT_OK;
}

/* Leaves a character that the limit cut in two to the next read, so that parts can be joined. */
static void leave_cut_character(struct buf *bytes)
{
    for (size_t back = 1; back <= 3 && back <= bytes->len; back++) {
        uint8_t b = bytes->at[bytes->len - back];
        size_t width = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : b >= 0xc2 ? 2 : 1;
        if ((b & 0xc0) == 0x80) {
            continue;
        }
        if (width > back && bytes->len > back) {
            buf_truncate(bytes, bytes->len - back);
        }
        return;
    }
}

struct part {
    uint64_t offset;
    size_t limit;
    bool whole; /* without a limit the whole file must fit */
};

static enum bt_code read_part(const struct files *f, int fd, const struct stat *st,
                              struct part *part, struct buf *bytes, bool *ret_truncated,
                              struct bt_error *err)
{
    enum bt_code code = files_read_bytes(fd, part->offset, part->limit + 1, bytes, err);

    *ret_truncated = bytes->len > part->limit;
    if (code == BT_OK && *ret_truncated && part->whole) {
        return err_set(
            err, BT_LIMIT,
            "result_too_large: the file has %lld bytes, at most %zu are read at once; use "
            "artifact: true, set `offset` and `limit` to get a part, or use grep or csv",
            (long long)st->st_size, f->max_bytes);
    }
    if (code == BT_OK && *ret_truncated) {
        buf_truncate(bytes, part->limit);
        leave_cut_character(bytes);
    }
    if (code == BT_OK && bytes->len > 0 && memchr(bytes->at, 0, bytes->len) != NULL) {
        return err_set(err, BT_INVALID, "it is a binary file (it has zero bytes); expected text");
    }
    return code;
}

static void reply_part(struct bt_step *step, struct str path, const struct stat *st,
                       const struct part *part, const struct buf *bytes, bool truncated)
{
    struct buf text;
    struct buf data;
    size_t replaced;

    buf_init(&text, LIMIT_RESULT_BYTES);
    buf_init(&data, LIMIT_CONTROL_BYTES);
    replaced = buf_add_repaired(&text, buf_str(bytes));
    doc_put_map(&data, 6);
    files_put_text(&data, "path", path);
    files_put_count(&data, "bytes", bytes->len);
    files_put_count(&data, "size", st->st_size > 0 ? (uint64_t)st->st_size : 0);
    files_put_count(&data, "offset", part->offset);
    files_put_bool(&data, "truncated", truncated);
    files_put_count(&data, "replaced", replaced);
    if (truncated) {
        whole_mark(step, &text, "bytes %llu to %llu of %llu; the next part has the offset %llu",
                   (unsigned long long)part->offset,
                   (unsigned long long)(part->offset + bytes->len),
                   (unsigned long long)(st->st_size > 0 ? st->st_size : 0),
                   (unsigned long long)(part->offset + bytes->len));
    }
    files_reply(step, &data, &text);
    buf_done(&text);
    buf_done(&data);
}

/* The file as it is, whatever its size and its bytes. */
static enum bt_code read_artifact(struct bt_step *step, struct str path, int fd,
                                  struct bt_error *err)
{
    const char *name = files_artifact_name(step, path, "file");
    struct buf text;
    struct buf data;
    uint64_t bytes;
    enum bt_code code;

    if (bt_step_has_param(step, "offset") || bt_step_has_param(step, "limit")) {
        return err_set(err, BT_INVALID, "artifact: true is the whole file; leave offset and limit");
    }
    code = files_copy(step, fd, name, &bytes, err);
    if (code != BT_OK) {
        return code;
    }
    buf_init(&text, LIMIT_CONTROL_BYTES);
    buf_init(&data, LIMIT_CONTROL_BYTES);
    doc_put_map(&data, 4);
    files_put_text(&data, "path", path);
    files_put_count(&data, "bytes", bytes);
    files_put_count(&data, "size", bytes);
    files_put_bool(&data, "truncated", false);
    buf_printf(&text, "Copied %llu bytes", (unsigned long long)bytes);
    files_reply(step, &data, &text);
    buf_done(&text);
    buf_done(&data);
    return BT_OK;
}

void files_read(struct bt_step *step, void *self)
{
    const struct files *f = self;
    const double offset = bt_step_param_number(step, "offset", 0.0);
    struct str path = files_param(step, "path");
    struct part part = {.whole = !bt_step_has_param(step, "limit")};
    struct stat st;
    struct buf bytes;
    struct bt_error err;
    const bool artifact = files_wants_artifact(step);
    bool truncated = false;
    int fd = -1;
    enum bt_code code = confine_open(&f->read, path, CONFINE_FILE, &fd, &st, &err);

    part.offset = offset > 0.0 && offset < 9e15 ? (uint64_t)offset : 0;
    part.limit = files_param_count(step, "limit", (uint32_t)f->max_bytes, (uint32_t)f->max_bytes);
    buf_init(&bytes, f->max_bytes + BLOCK);
    if (code == BT_OK) {
        code = artifact ? read_artifact(step, path, fd, &err)
                        : read_part(f, fd, &st, &part, &bytes, &truncated, &err);
        if (code != BT_OK) {
            (void)err_wrap(&err, "'%.*s'", path.len > 200 ? 200 : (int)path.len, path.ptr);
        }
        (void)close(fd);
    }
    if (code == BT_OK && !artifact) {
        reply_part(step, path, &st, &part, &bytes, truncated);
    } else if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    buf_done(&bytes);
}

#include "protocol/client/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"

enum {
    QUIET_MS = 30000,  /* nothing moved for so long */
    REFUSED_MS = 5000, /* the daemon itself refused for so long: its disk is full */
    QUOTA_MS = 90000,  /* a quota of bytes is counted by the minute */
    WAIT_MS = 250
};

struct transfer {
    struct bt_client *c;
    const struct transfer_file *f;
    msec since; /* of the first failure in a row; 0 = none */
    uint8_t *block;
};

static enum bt_code begin(struct transfer *t, struct bt_client *c, const struct transfer_file *f,
                          struct bt_error *err)
{
    *t = (struct transfer){.c = c, .f = f, .block = malloc(LIMIT_ARTIFACT_PART)};
    return t->block != NULL ? BT_OK : err_set(err, BT_NOMEM, "out of memory for an artifact");
}

static bool is_stopped(const struct transfer *t)
{
    return t->f->stop != NULL && t->f->stop(t->f->self);
}

/* One request and its answer, which the reader owns. *ret_heard: the daemon answered. */
static enum bt_code once(struct transfer *t, enum msg_type type, const void *body,
                         enum msg_type answer, void *ret, struct msg_reader *r,
                         struct link_msg **msg, bool *ret_heard, struct bt_error *err)
{
    struct bt_client *c = t->c;
    struct str bytes = {"", 0};
    char id[CLIENT_ID_BYTES];
    struct buf request;
    enum bt_code code;

    buf_init(&request, LIMIT_CONTROL_BYTES);
    code = msg_request(&request, WIRE_MSGPACK, client_next_id(c, id), str_from(c->token), type,
                       body, err);
    if (code == BT_OK) {
        code = client_exchange(c, &request, c->timeout_ms, msg, &bytes, err);
    }
    if (code == BT_OK) {
        *ret_heard = true;
        code = msg_reader_init(r, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, err);
    }
    if (code == BT_OK) {
        code = msg_read_answer(r, answer, ret, NULL, err);
    }
    buf_done(&request);
    return code;
}

/* Whether the same request may succeed in a moment. An agent that registers again is not known
 * until it has. */
static bool is_worth_waiting(struct transfer *t, enum bt_code code, bool heard)
{
    const msec now = clock_mono_ms();
    msec patience = QUIET_MS;

    if (t->since == 0) {
        t->since = now;
    }
    if (code == BT_BUSY) {
        patience = QUOTA_MS;
    } else if (heard && code == BT_UNAVAILABLE) {
        patience = REFUSED_MS;
    } else if (heard && code == BT_NOT_FOUND && t->f->instance_id.len > 0) {
        patience = QUIET_MS;
    } else if (heard || (code != BT_UNAVAILABLE && code != BT_TIMEOUT)) {
        return false;
    }
    return now < msec_add(t->since, patience);
}

/* Repeats it. On success the caller ends r and *msg. */
static enum bt_code ask(struct transfer *t, enum msg_type type, const void *body,
                        enum msg_type answer, void *ret, struct msg_reader *r,
                        struct link_msg **msg, struct bt_error *err)
{
    for (;;) {
        bool heard = false;
        enum bt_code code;
        *msg = NULL;
        *r = (struct msg_reader){0};
        code = is_stopped(t) ? err_set(err, BT_CANCELLED, "stopped")
                             : once(t, type, body, answer, ret, r, msg, &heard, err);
        if (code == BT_OK) {
            t->since = 0;
            return BT_OK;
        }
        msg_reader_done(r);
        if (*msg != NULL) {
            link_msg_free(*msg);
        }
        if (code == BT_CANCELLED || !is_worth_waiting(t, code, heard)) {
            return code;
        }
        client_pause(t->c, clock_mono_ms() + WAIT_MS);
    }
}

/* ---- getting ---- */

/* What an earlier call has brought. Leaves fd at its end. */
static enum bt_code hash_known(struct transfer *t, int fd, struct artifact_digest *d,
                               uint64_t *ret_bytes, struct bt_error *err)
{
    *ret_bytes = 0;
    if (lseek(fd, 0, SEEK_SET) < 0) {
        return err_errno(err, errno, "the file for the artifact");
    }
    for (;;) {
        const ssize_t n = read(fd, t->block, LIMIT_ARTIFACT_PART);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_errno(err, errno, "reading the file for the artifact");
        }
        if (n == 0) {
            return BT_OK;
        }
        artifact_digest_add(d, t->block, (size_t)n);
        *ret_bytes += (uint64_t)n;
    }
}

/* The next bytes, into fd and the digest. */
static enum bt_code get_some(struct transfer *t, int fd, struct artifact_digest *d,
                             uint64_t *io_bytes, struct bt_error *err)
{
    const struct transfer_file *f = t->f;
    const struct msg_artifact_read read = {.uri = f->uri, .offset = *io_bytes};
    const struct msg_artifact_fetch fetch = {.instance_id = f->instance_id,
                                             .key = f->key,
                                             .attempt = f->attempt,
                                             .uri = f->uri,
                                             .offset = *io_bytes};
    const bool agent = f->instance_id.len > 0;
    struct msg_artifact_fetch_ok fetched;
    struct msg_artifact_read_ok got;
    struct link_msg *msg;
    struct msg_reader r;
    struct doc_head head;
    enum bt_code code = ask(t, agent ? MSG_artifact_fetch : MSG_artifact_read,
                            agent ? (const void *)&fetch : (const void *)&read,
                            agent ? MSG_artifact_fetch_ok : MSG_artifact_read_ok,
                            agent ? (void *)&fetched : (void *)&got, &r, &msg, err);

    if (code != BT_OK) {
        return code;
    }
    if (agent) {
        got = (struct msg_artifact_read_ok){.len = fetched.len, .bytes = fetched.bytes};
    }
    head = doc_head(got.bytes);
    if (got.len != f->bytes || head.kind != DOC_BIN || head.str.len == 0 ||
        head.str.len > f->bytes - *io_bytes) {
        code = err_set(err, BT_INVALID,
                       "the file has %llu bytes, its result says %llu: it was changed",
                       (unsigned long long)got.len, (unsigned long long)f->bytes);
    } else {
        code = artifact_write_all(fd, head.str.ptr, head.str.len, err);
        code = code == BT_OK ? BT_OK : err_wrap(err, "on this host");
    }
    if (code == BT_OK) {
        artifact_digest_add(d, head.str.ptr, head.str.len);
        *io_bytes += head.str.len;
    }
    msg_reader_done(&r);
    link_msg_free(msg);
    return code;
}

static enum bt_code check_sum(const struct transfer_file *f, struct artifact_digest *d,
                              struct bt_error *err)
{
    char sum[ARTIFACT_SHA256_LEN + 1];

    return artifact_digest_is(d, f->sha256, sum)
               ? BT_OK
               : err_set(err, BT_INVALID,
                         "its SHA-256 is %s, not that of its result: it was changed", sum);
}

enum bt_code transfer_get(struct bt_client *c, const struct transfer_file *f, int fd,
                          struct bt_error *err)
{
    struct artifact_digest *d = artifact_digest_new();
    uint64_t have = 0;
    struct transfer t;
    enum bt_code code = begin(&t, c, f, err);

    if (code == BT_OK && d == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for an artifact");
    }
    code = code == BT_OK ? hash_known(&t, fd, d, &have, err) : code;
    while (code == BT_OK && have < f->bytes) {
        code = get_some(&t, fd, d, &have, err);
    }
    code = code == BT_OK ? check_sum(f, d, err) : code;
    if (code == BT_INVALID) {
        (void)!ftruncate(fd, 0);
    }
    if (code == BT_OK && lseek(fd, 0, SEEK_SET) < 0) {
        code = err_errno(err, errno, "the file for the artifact");
    }
    artifact_digest_free(d);
    free(t.block);
    return code;
}

enum bt_code bt_client_artifact(struct bt_client *c, const char *uri, uint64_t bytes,
                                const char *sha256, int fd, struct bt_error *err)
{
    const struct transfer_file f = {
        .uri = str_from(uri), .bytes = bytes, .sha256 = str_from(sha256)};

    return transfer_get(c, &f, fd, err);
}

/* ---- putting ---- */

static enum bt_code read_block(struct transfer *t, int fd, uint64_t offset, size_t *ret,
                               struct bt_error *err)
{
    const uint64_t left = t->f->bytes - offset;
    const size_t want = left < LIMIT_ARTIFACT_PART ? (size_t)left : LIMIT_ARTIFACT_PART;

    *ret = 0;
    while (*ret < want) {
        const ssize_t n = pread(fd, t->block + *ret, want - *ret, (off_t)(offset + *ret));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_errno(err, n < 0 ? errno : EIO, "reading the artifact on this host");
        }
        *ret += (size_t)n;
    }
    return BT_OK;
}

/* One part from *io_offset on, or the end. *io_offset: where the daemon wants to go on. */
static enum bt_code put_some(struct transfer *t, int fd, uint64_t *io_offset, struct buf *ret_uri,
                             struct bt_error *err)
{
    const struct transfer_file *f = t->f;
    struct msg_artifact_store m = {
        .instance_id = f->instance_id, .key = f->key, .attempt = f->attempt, .name = f->name};
    struct msg_artifact_store_ok ok;
    struct link_msg *msg;
    struct msg_reader r;
    struct buf bin;
    size_t n = 0;
    enum bt_code code = BT_OK;

    buf_init(&bin, LIMIT_CONTROL_BYTES);
    if (*io_offset < f->bytes) {
        code = read_block(t, fd, *io_offset, &n, err);
        doc_put_bin(&bin, t->block, n);
        m.offset = *io_offset;
        msg_set(&m, artifact_store, offset);
        m.bytes = doc_from_buf(&bin);
    } else { /* more than there is: the wrong checksum makes the daemon throw it away */
        m.len = *io_offset;
        msg_set(&m, artifact_store, len);
        m.sha256 = f->sha256;
    }
    code = code == BT_OK ? buf_check(&bin, err) : code;
    if (code == BT_OK) {
        code = ask(t, MSG_artifact_store, &m, MSG_artifact_store_ok, &ok, &r, &msg, err);
    }
    if (code == BT_OK) {
        *io_offset = ok.offset;
        buf_clear(ret_uri);
        buf_add_str(ret_uri, ok.uri);
        code = buf_check(ret_uri, err);
        msg_reader_done(&r);
        link_msg_free(msg);
    }
    buf_done(&bin);
    return code;
}

enum bt_code transfer_put(struct bt_client *c, const struct transfer_file *f, int fd,
                          struct buf *ret_uri, struct bt_error *err)
{
    uint64_t offset = 0;
    bool again = false;
    struct transfer t;
    enum bt_code code = begin(&t, c, f, err);

    buf_clear(ret_uri);
    while (code == BT_OK && ret_uri->len == 0) {
        const bool at_end = offset >= f->bytes;
        code = put_some(&t, fd, &offset, ret_uri, err);
        /* What was there before may have been something else: once from the beginning. */
        if (code == BT_INVALID && at_end && !again) {
            again = true;
            offset = 0;
            code = BT_OK;
        }
    }
    free(t.block);
    return code;
}

/*
 * What the rows of a plan leave beside them: which blobs they name, and the chain of their hashes.
 * The chain of a plan begins with the hash of its record and document; each row makes the next
 * link: SHA-256 over the link before, the row, and the blobs that it names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/artifact/artifact.h"
#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sql.h"

enum { BLOB_TEXT_MAX = 32 * 1024 * 1024 };

/* ---- the hash ---- */

static void add_u64(struct artifact_digest *d, uint64_t v)
{
    uint8_t b[8];

    for (int i = 0; i < 8; i++) {
        b[i] = (uint8_t)(v >> (56 - 8 * i));
    }
    artifact_digest_add(d, b, sizeof b);
}

/* With its length, so that no two sequences of texts have the same bytes. */
static void add_bytes(struct artifact_digest *d, const void *bytes, size_t len)
{
    add_u64(d, len);
    if (len > 0) {
        artifact_digest_add(d, bytes, len);
    }
}

static enum bt_code digest_end(struct artifact_digest *d, char ret[CHAIN_HEAD_LEN + 1])
{
    artifact_digest_end(d, ret);
    artifact_digest_free(d);
    return BT_OK;
}

static enum bt_code no_digest(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the hash of a row");
}

enum bt_code chain_begin(const struct journal_plan *p, char ret[CHAIN_HEAD_LEN + 1],
                         struct bt_error *err)
{
    struct artifact_digest *d = artifact_digest_new();

    if (d == NULL) {
        return no_digest(err);
    }
    add_bytes(d, "baton plan 1", 12);
    add_bytes(d, p->plan_id.b, sizeof p->plan_id.b);
    add_bytes(d, p->session_id.ptr, p->session_id.len);
    add_bytes(d, p->client_key.ptr, p->client_key.len);
    add_u64(d, p->body_hash);
    add_bytes(d, p->goal.ptr, p->goal.len);
    add_u64(d, p->created_wall);
    add_bytes(d, p->job.ptr, p->job.len);
    add_bytes(d, p->doc, p->doc_len);
    if (p->owner.len > 0) { /* without one it is the hash of the versions before */
        add_bytes(d, p->owner.ptr, p->owner.len);
    }
    return digest_end(d, ret);
}

enum bt_code chain_blob(const void *bytes, size_t len, char ret[CHAIN_HEAD_LEN + 1],
                        struct bt_error *err)
{
    struct artifact_digest *d = artifact_digest_new();

    if (d == NULL) {
        return no_digest(err);
    }
    if (len > 0) {
        artifact_digest_add(d, bytes, len);
    }
    return digest_end(d, ret);
}

enum bt_code chain_link(char io_head[CHAIN_HEAD_LEN + 1], const struct journal_row *row,
                        char (*blobs)[CHAIN_HEAD_LEN + 1], struct bt_error *err)
{
    struct artifact_digest *d = artifact_digest_new();

    if (d == NULL) {
        return no_digest(err);
    }
    add_bytes(d, io_head, strlen(io_head));
    add_u64(d, row->seq);
    add_u64(d, row->is_public);
    add_u64(d, row->plan_seq);
    add_u64(d, row->wall);
    add_bytes(d, row->type.ptr, row->type.len);
    add_bytes(d, row->topic.ptr, row->topic.len);
    add_bytes(d, row->body, row->body_len);
    for (uint32_t i = 0; i < row->blobs_n; i++) {
        add_u64(d, row->blobs[i]);
        add_bytes(d, blobs[i], strlen(blobs[i]));
    }
    return digest_end(d, io_head);
}

/* ---- stored chains ---- */

static uint32_t chain_crc(uint64_t ix, uint64_t rows, struct str head)
{
    uint32_t crc = crc32c_u64(crc32c_u64(0, ix), rows);
    return crc32c_bytes(crc, head.ptr, head.len);
}

bool sql_chain_read(struct stmt *st, struct sql_chain *ret)
{
    struct str head = sql_col_str(st, 2);

    ret->ix = sql_col_u64(st, 0);
    ret->rows = sql_col_u64(st, 1);
    if (head.len > CHAIN_HEAD_LEN || sql_col_u64(st, 3) != chain_crc(ret->ix, ret->rows, head)) {
        return false;
    }
    memcpy(ret->head, head.ptr, head.len);
    ret->head[head.len] = 0;
    return true;
}

static enum bt_code chain_put(struct sql_journal *s, struct sql_chain *c, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_CHAIN_PUT];

    stmt_bind_i64(st, 1, (int64_t)c->ix);
    stmt_bind_i64(st, 2, (int64_t)c->rows);
    sql_bind_str(st, 3, str_from(c->head));
    stmt_bind_i64(st, 4, chain_crc(c->ix, c->rows, str_from(c->head)));
    c->dirty = false;
    return sql_run(s, SQL_CHAIN_PUT, "cannot store the hash of a plan", err);
}

enum bt_code sql_chain_flush(struct sql_journal *s, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < s->chains_dirty_n && code == BT_OK; i++) {
        struct sql_chain *c = &s->chains[s->chains_dirty[i]];
        if (c->dirty) {
            code = chain_put(s, c, err);
        }
    }
    s->chains_dirty_n = 0;
    return code;
}

static void chain_forget(struct sql_journal *s)
{
    memset(s->chains, 0, sizeof s->chains);
    s->chains_dirty_n = 0;
    memset(s->hashes, 0, sizeof s->hashes);
}

void sql_batch_forget(struct sql_journal *s)
{
    s->now = s->committed;
    s->batch_bytes = 0;
    s->base.dirty = false;
    s->base.pos = s->base.committed_pos;
    chain_forget(s);
}

void sql_chain_drop(struct sql_journal *s, uint64_t ix)
{
    struct sql_chain *c = &s->chains[ix % CHAINS_CACHED];

    if (c->ix == ix) {
        *c = (struct sql_chain){0};
    }
}

/* The place of the plan's chain in the cache, empty when another plan had it. *ret_known: it has
 * the chain. */
static enum bt_code place_of(struct sql_journal *s, uint64_t ix, struct sql_chain **ret,
                             bool *ret_known, struct bt_error *err)
{
    struct sql_chain *c = &s->chains[ix % CHAINS_CACHED];
    enum bt_code code = BT_OK;

    *ret = c;
    *ret_known = c->ix == ix;
    if (!*ret_known) {
        code = c->dirty ? chain_put(s, c, err) : BT_OK;
        *c = (struct sql_chain){.ix = ix};
    }
    return code;
}

/* The chain of the plan in its place of the cache; a new one is empty. */
static enum bt_code chain_of(struct sql_journal *s, uint64_t ix, struct sql_chain **ret,
                             struct bt_error *err)
{
    struct sql_chain *c;
    struct stmt *st = &s->stmt[SQL_CHAIN_GET];
    bool known;
    enum bt_code code = place_of(s, ix, &c, &known, err);
    int rc;

    *ret = c;
    if (code != BT_OK || known) {
        return code;
    }
    stmt_bind_i64(st, 1, (int64_t)ix);
    rc = stmt_step(st);
    if (rc == STMT_ROW && !sql_chain_read(st, c)) {
        /* The chain is broken: verify finds it. The plan goes on. */
        log_warn("journal.chain_damaged", "number=%" PRIu64, ix);
        *c = (struct sql_chain){.ix = ix};
    } else if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_write_error(s, "cannot read the hash of a plan", err);
    }
    stmt_reset(st);
    return code;
}

static void mark_dirty(struct sql_journal *s, struct sql_chain *c)
{
    if (!c->dirty) {
        if (s->chains_dirty_n == CHAINS_CACHED) { /* leftovers of evicted entries */
            s->chains_dirty_n = 0;
            for (uint32_t i = 0; i < CHAINS_CACHED; i++) {
                if (s->chains[i].dirty) {
                    s->chains_dirty[s->chains_dirty_n++] = (uint16_t)i;
                }
            }
        }
        c->dirty = true;
        s->chains_dirty[s->chains_dirty_n++] = (uint16_t)(c - s->chains);
    }
}

enum bt_code sql_chain_begin(struct sql_journal *s, uint64_t ix, const struct journal_plan *p,
                             struct bt_error *err)
{
    struct sql_chain *c;
    bool known;
    enum bt_code code = place_of(s, ix, &c, &known, err);

    if (code == BT_OK) {
        code = chain_begin(p, c->head, err);
        c->rows = 0;
        mark_dirty(s, c);
    }
    return code;
}

enum bt_code sql_chain_now(struct sql_journal *s, uint64_t ix, struct sql_chain *ret,
                           struct bt_error *err)
{
    struct sql_chain *c;
    enum bt_code code = chain_of(s, ix, &c, err);

    *ret = *c;
    return code;
}

/* The hash of a blob: of one that was just added it is known. */
static enum bt_code hash_of_blob(struct sql_journal *s, uint64_t id, char ret[CHAIN_HEAD_LEN + 1],
                                 struct bt_error *err)
{
    const struct sql_blob_hash *known = &s->hashes[id % HASHES_CACHED];
    struct buf bytes;
    enum bt_code code;

    if (known->id == id) {
        memcpy(ret, known->hash, sizeof known->hash);
        return BT_OK;
    }
    buf_init(&bytes, BLOB_TEXT_MAX);
    code = sql_blob_get(&s->base, id, &bytes, err);
    if (code == BT_OK) {
        code = chain_blob(bytes.at, bytes.len, ret, err);
    } else if (code != BT_NOMEM) {
        ret[0] = 0; /* a row may name a damaged blob */
        code = BT_OK;
    }
    buf_done(&bytes);
    return code;
}

enum bt_code sql_blob_hashed(struct sql_journal *s, uint64_t id, const void *bytes, size_t len,
                             struct bt_error *err)
{
    struct sql_blob_hash *to = &s->hashes[id % HASHES_CACHED];
    enum bt_code code = chain_blob(bytes, len, to->hash, err);

    to->id = code == BT_OK ? id : 0;
    return code;
}

enum bt_code sql_chain_row(struct sql_journal *s, const struct journal_row *row,
                           struct bt_error *err)
{
    char blobs[JOURNAL_ROW_BLOBS][CHAIN_HEAD_LEN + 1];
    struct sql_chain *c;
    enum bt_code code;

    if (row->plan_ix == 0) {
        return BT_OK;
    }
    code = chain_of(s, row->plan_ix, &c, err);
    for (uint32_t i = 0; i < row->blobs_n && code == BT_OK; i++) {
        struct stmt *st = &s->stmt[SQL_REF_ADD];
        stmt_bind_i64(st, 1, (int64_t)row->plan_ix);
        stmt_bind_i64(st, 2, (int64_t)row->blobs[i]);
        code = sql_run(s, SQL_REF_ADD, "cannot note a result", err);
        if (code == BT_OK) {
            code = hash_of_blob(s, row->blobs[i], blobs[i], err);
        }
    }
    if (code == BT_OK) {
        code = chain_link(c->head, row, blobs, err);
        c->rows++;
        mark_dirty(s, c);
    }
    return code;
}

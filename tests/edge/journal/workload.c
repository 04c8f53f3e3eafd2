#include "tests/edge/journal/workload.h"

#include "tests/support/cmocka.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/buf.h"

enum { BLOB_BYTES = 3000 };

void work_dir(char *ret)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(ret, 64, "%s/baton-edge-XXXXXX", base);
    assert_non_null(mkdtemp(ret));
}

/* The blob of an event: its bytes follow from the seq. */
static void blob_of(uint64_t seq, uint8_t *ret)
{
    for (size_t i = 0; i < BLOB_BYTES; i++) {
        ret[i] = (uint8_t)(seq * 31 + i * 7);
    }
}

static enum bt_code write_event(struct journal *j, struct bt_error *err)
{
    uint8_t blob[BLOB_BYTES];
    char body[128];
    uint64_t seq = journal_next_seq(j);
    uint64_t id = 0;
    struct journal_row row = {.seq = seq,
                              .is_public = true,
                              .plan_ix = 1 + seq % 3,
                              .plan_seq = seq / 3 + (seq % 3 == 0 ? 0 : 1),
                              .type = STR_LIT("plan_step_completed"),
                              .topic = STR_LIT("plan/-/x/y"),
                              .wall = seq * 10};
    enum bt_code code = BT_OK;

    blob_of(seq, blob);
    if (seq % 4 == 1) {
        code = journal_blob_add(j, blob, sizeof blob, &id, err);
    }
    if (code == BT_OK) {
        row.body_len = (size_t)snprintf(body, sizeof body, "event %llu blob %llu",
                                        (unsigned long long)seq, (unsigned long long)id);
        row.body = body;
        code = journal_append(j, &row, err);
    }
    row = (struct journal_row){.plan_ix = 1 + seq % 3,
                               .type = STR_LIT("step_assigned"),
                               .body = "internal",
                               .body_len = 8};
    return code == BT_OK && seq % 2 == 0 ? journal_append(j, &row, err) : code;
}

static enum bt_code write_batch(struct journal *j, uint32_t n, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    uint64_t ix;
    char key[48];
    /* Rows are of the first three: a row of a plan that is not there yet would be in no chain. */
    const uint32_t plans = n == 0 ? 3 : n % 4 == 0 ? 1 : 0;

    for (uint32_t i = 0; i < plans && code == BT_OK; i++) {
        struct journal_plan p = {.plan_id = uuid_new(),
                                 .client_key = {key, 0},
                                 .goal = STR_LIT("g"),
                                 .doc = key,
                                 .status = STR_LIT("running")};
        p.client_key.len = (size_t)snprintf(key, sizeof key, "key-%u-%u-%llu", n, i,
                                            (unsigned long long)journal_boot(j));
        p.doc_len = p.client_key.len;
        code = journal_plan_add(j, &p, &ix, err);
    }
    for (uint32_t i = 0; i < 2 + n % 3 && code == BT_OK; i++) {
        code = write_event(j, err);
    }
    return code;
}

/* A server that was killed, or whose owner was, needs a moment. */
static enum bt_code open_at(const char *dir, const struct journal_options *opt,
                            struct journal **ret, struct bt_error *err)
{
    enum bt_code code = journal_open(dir, opt, ret, err);

    for (int i = 0; i < 400 && strstr(dir, "://") != NULL &&
                    (code == BT_CONFLICT || code == BT_UNAVAILABLE || code == BT_IO);
         i++) {
        (void)poll(NULL, 0, 50);
        code = journal_open(dir, opt, ret, err);
    }
    return code;
}

struct told work(const char *dir, const struct journal_options *opt, uint32_t batches,
                 void (*after_commit)(uint64_t seq, void *self), void *self)
{
    struct told told = {0};
    struct journal *j = NULL;
    struct bt_error err;

    if (open_at(dir, opt, &j, &err) != BT_OK) {
        assert_true(strlen(err.msg) > 10);
        told.open_failed = 1;
        return told;
    }
    told.acked = journal_committed_seq(j);
    for (uint32_t n = 0; n < batches; n++) {
        enum bt_code code = write_batch(j, n, &err);
        uint64_t seq = journal_last_seq(j);
        if (code == BT_OK) {
            code = journal_commit(j, &err);
            if (code != BT_OK && code != BT_UNAVAILABLE) {
                told.unknown = seq;
            }
        }
        if (code == BT_OK) {
            told.acked = seq;
            if (after_commit != NULL) {
                after_commit(seq, self);
            }
            if (n % 3 != 0) { /* else the next commit copies */
                journal_copy_log(j);
            }
        } else if (code == BT_UNAVAILABLE) {
            assert_non_null(strstr(err.msg, "storage is full"));
            assert_int_equal(journal_last_seq(j), told.acked);
        } else {
            assert_true(code == BT_IO || code == BT_NOMEM);
            assert_true(code == BT_NOMEM ||
                        journal_commit(j, &err) == BT_IO); /* dead from now on */
            break;
        }
    }
    journal_close(j);
    return told;
}

struct checking {
    struct journal *j;
    struct buf blob;
    uint64_t seq;
};

static bool check_event(const struct journal_row *row, void *self)
{
    struct checking *c = self;
    uint8_t want[BLOB_BYTES];
    unsigned long long seq = 0;
    unsigned long long id = 0;
    struct bt_error err = {.msg = ""};
    char body[128];

    assert_int_equal(row->seq, c->seq + 1);
    c->seq = row->seq;
    assert_true(row->body_len < sizeof body);
    memcpy(body, row->body, row->body_len);
    body[row->body_len] = 0;
    assert_int_equal(sscanf(body, "event %llu blob %llu", &seq, &id), 2);
    assert_int_equal(seq, row->seq);
    assert_int_equal(row->wall, seq * 10);
    if (id != 0) {
        buf_clear(&c->blob);
        if (journal_blob_get(c->j, id, &c->blob, &err) != BT_OK) {
            fail_msg("blob of seq %llu: %s", seq, err.msg);
        }
        blob_of(seq, want);
        assert_int_equal(c->blob.len, BLOB_BYTES);
        assert_memory_equal(c->blob.at, want, BLOB_BYTES);
    }
    return true;
}

static bool count_row(const struct journal_row *row, void *self)
{
    *(uint64_t *)self += row->is_public;
    return true;
}

uint64_t work_check(const char *dir, const struct told *told, uint32_t *may_lose)
{
    struct journal_options opt = {.durability = strstr(dir, "://") != NULL ? DURABILITY_POWER
                                                                           : DURABILITY_PROCESS};
    struct checking c = {0};
    struct bt_error err;
    uint64_t of_plans = 0;
    uint64_t most = told->unknown > told->acked ? told->unknown : told->acked;

    buf_init(&c.blob, BLOB_BYTES * 2);
    if (open_at(dir, &opt, &c.j, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    if (journal_events(c.j, 1, 0, UINT32_MAX, check_event, &c, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    for (uint64_t ix = 1; ix <= 3; ix++) { /* the index agrees; the planSeqs have no gap */
        if (journal_replay(c.j, ix, count_row, &of_plans, &err) != BT_OK) {
            fail_msg("%s", err.msg);
        }
    }
    assert_int_equal(of_plans, c.seq);
    assert_int_equal(journal_committed_seq(c.j), c.seq);
    if (may_lose != NULL) {
        *may_lose += c.seq < told->acked;
    } else if (c.seq < told->acked) {
        fail_msg("lost: acked up to %llu, stored up to %llu", (unsigned long long)told->acked,
                 (unsigned long long)c.seq);
    }
    if (c.seq > most) {
        fail_msg("stored up to %llu, which nobody may have committed (%llu)",
                 (unsigned long long)c.seq, (unsigned long long)most);
    }
    journal_close(c.j);
    buf_done(&c.blob);
    return c.seq;
}

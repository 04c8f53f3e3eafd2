/* The journal of the rig: what each call tells, and what it answers. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "protocol/wire/doc.h"
#include "tests/unit/retention/rig.h"

struct said said;

static const struct journal_ops *real;
static struct journal_ops odd;

static void tell(const char *what, uint64_t a, uint64_t b)
{
    const int n = snprintf(said.text + said.len, sizeof said.text - said.len, "%s(%llu,%llu) ",
                           what, (unsigned long long)a, (unsigned long long)b);
    said.len += n > 0 && said.len + (size_t)n < sizeof said.text ? (size_t)n : 0;
}

static enum bt_code imports(struct journal *j, uint64_t *ret, uint32_t max, uint32_t *ret_n,
                            struct bt_error *err)
{
    (void)j;
    (void)err;
    tell("imports", max, 0);
    memcpy(ret, said.imports, said.imports_n * sizeof *ret);
    *ret_n = said.imports_n;
    return BT_OK;
}

static enum bt_code plan_delete(struct journal *j, uint64_t ix, struct str why, msec wall,
                                struct bt_error *err)
{
    tell("delete", ix, wall);
    if (said.deletes != BT_OK) {
        return err_set(err, said.deletes, "the disk does not answer");
    }
    return said.deletes_nothing ? BT_OK : real->plan_delete(j, ix, why, wall, err);
}

static enum bt_code plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err)
{
    if (said.by_id != BT_OK) {
        return err_set(err, said.by_id, "the disk does not answer");
    }
    return real->plan_by_id(j, id, ret, err);
}

static enum bt_code plans_ended(struct journal *j, msec after, uint64_t after_ix, uint32_t limit,
                                journal_plan_fn fn, void *self, struct bt_error *err)
{
    if (limit == 16 || said.looks_inside) {
        tell(limit == 16 ? "ended" : "inside", after, limit == 16 ? limit : after_ix);
    }
    return real->plans_ended(j, after, after_ix, limit, fn, self, err);
}

static enum bt_code sweep(struct journal *j, uint32_t budget, bool *ret_more, struct bt_error *err)
{
    tell("sweep", budget, 0);
    return real->sweep(j, budget, ret_more, err);
}

static enum bt_code sessions_idle(struct journal *j, msec before, uint32_t limit,
                                  journal_session_fn fn, void *self, struct bt_error *err)
{
    tell("idle", before, limit);
    return real->sessions_idle(j, before, limit, fn, self, err);
}

static enum bt_code rows_delete(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err)
{
    tell("rows", before, limit);
    if (!said.counts) {
        return real->rows_delete(j, before, limit, ret_n, err);
    }
    *ret_n = said.rows;
    said.rows = 0;
    return BT_OK;
}

static enum bt_code agents_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    (void)j;
    (void)err;
    tell("agents", before, 0);
    return BT_OK;
}

static enum bt_code gone_expire(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err)
{
    tell("gone", before, limit);
    if (!said.counts) {
        return real->gone_expire(j, before, limit, ret_n, err);
    }
    *ret_n = said.gone;
    said.gone = 0;
    return BT_OK;
}

static enum bt_code blobs_unused(struct journal *j, uint64_t *io_after, uint64_t last,
                                 uint32_t limit, struct bt_error *err)
{
    (void)j;
    (void)err;
    assert_int_equal(limit, 200);
    tell("blobs", *io_after, last);
    *io_after = said.blobs_at > 0 ? said.blobs_at : last;
    said.blobs_at = 0;
    return BT_OK;
}

static uint64_t last_blob(const struct journal *j)
{
    (void)j;
    return said.last_blob;
}

static enum bt_code size(struct journal *j, struct journal_size *ret, struct bt_error *err)
{
    tell("size", said.sized ? said.used : 0, 0);
    if (!said.sized) {
        return real->size(j, ret, err);
    }
    *ret = (struct journal_size){.used = said.used};
    return BT_OK;
}

/* Refused: nothing of the batch has happened. */
static enum bt_code commit_told(struct journal *j, struct bt_error *err)
{
    const enum bt_code code = said.commits;

    if (code == BT_OK) {
        return real->commit(j, err);
    }
    said.commits = BT_OK;
    j->ops = real;
    memory_journal_restart(j);
    j->ops = &odd;
    return err_set(err, code, "the disk is full");
}

/* ---- the room ---- */

static bool is_open(void *self, struct uuid id)
{
    const struct world *w = self;
    return uuid_eq(w->open, id);
}

static void on_deleted(void *self, struct uuid id)
{
    struct world *w = self;
    (void)id;
    w->deleted++;
}

static void keep_log(enum log_level level, const char *event, const char *text, void *self)
{
    struct world *w = self;
    const int n = snprintf(w->log + w->log_len, sizeof w->log - w->log_len, "%s%s %s\n",
                           level == LOG_WARN ? "warn " : "", event, text);
    w->log_len += n > 0 && w->log_len + (size_t)n < sizeof w->log ? (size_t)n : 0;
}

void new_retention(struct world *w, const struct retention_options *opt)
{
    const struct retention_hooks hooks = {w, is_open, NULL, on_deleted};
    struct bt_error err;

    assert_ok(retention_new(opt, &hooks, w->journal, &w->retention, &err), err);
}

void open_world(struct world *w, const struct retention_options *opt)
{
    struct bt_error err;

    *w = (struct world){.deleted = 0};
    memset(&said, 0, sizeof said);
    assert_ok(memory_journal_open(&w->journal, &err), err);
    real = w->journal->ops;
    odd = *real;
    odd.imports = imports;
    odd.plan_delete = plan_delete;
    odd.plan_by_id = plan_by_id;
    odd.plans_ended = plans_ended;
    odd.sweep = sweep;
    odd.sessions_idle = sessions_idle;
    odd.rows_delete = rows_delete;
    odd.agents_drop = agents_drop;
    odd.gone_expire = gone_expire;
    odd.blobs_unused = blobs_unused;
    odd.last_blob = last_blob;
    odd.size = size;
    odd.commit = commit_told;
    w->journal->ops = &odd;
    log_setup(LOG_INFO, keep_log, w);
    new_retention(w, opt);
}

void close_world(struct world *w)
{
    log_setup(LOG_INFO, NULL, NULL);
    retention_free(w->retention);
    journal_close(w->journal);
}

/* One cycle, and what it asked of the journal. */
void expect_cycle(struct world *w, msec now, const char *calls)
{
    struct bt_error err;

    said.len = 0;
    said.text[0] = 0;
    assert_true(retention_deadline(w->retention) <= now);
    assert_ok(retention_cycle(w->retention, now, now, &err), err);
    assert_string_equal(said.text, calls);
}

/* All that is due. */
void run_at(struct world *w, msec now)
{
    struct bt_error err;

    for (int i = 0; retention_deadline(w->retention) <= now; i++) {
        assert_true(i < 10000);
        said.len = 0;
        assert_ok(retention_cycle(w->retention, now, now, &err), err);
    }
}

struct uuid add_at(struct world *w, const char *status, msec created, msec ended,
                   const struct uuid *of)
{
    char text[UUID_TEXT_LEN + 1] = "";
    struct journal_plan p = {.plan_id = uuid_new(),
                             .goal = STR_LIT("goal"),
                             .created_wall = created,
                             .status = STR_LIT("running"),
                             .job = str_from(of != NULL ? "child" : "")};
    struct bt_error err;
    struct buf doc;
    uint64_t ix;

    if (of != NULL) {
        uuid_format(*of, text);
    }
    buf_init(&doc, 1000);
    doc_put_map(&doc, 1);
    doc_put_cstr(&doc, "child");
    doc_put_map(&doc, 1);
    doc_put_cstr(&doc, "of");
    doc_put_cstr(&doc, text);
    p.doc = doc.at;
    p.doc_len = doc.len;
    assert_ok(journal_plan_add(w->journal, &p, &ix, &err), err);
    (void)add_event(w->journal, ix, 1, "0123456789");
    assert_ok(journal_plan_status(w->journal, ix, str_from(status), ended, &err), err);
    commit(w->journal);
    buf_done(&doc);
    return p.plan_id;
}

struct uuid add(struct world *w, const char *status, msec ended)
{
    return add_at(w, status, ended - 5, ended, NULL);
}

struct journal_plan head_of(struct world *w, struct uuid id)
{
    struct journal_plan p;
    struct bt_error err;

    assert_ok(real->plan_by_id(w->journal, id, &p, &err), err);
    return p;
}

bool has(struct world *w, struct uuid id)
{
    struct journal_plan p;
    struct bt_error err;
    return real->plan_by_id(w->journal, id, &p, &err) == BT_OK;
}

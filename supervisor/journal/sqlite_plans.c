/* Plans on SQLite: the immutable part, the state, and lists of plans and jobs. */
#include <inttypes.h>

#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sqlite_internal.h"

enum { PLAN_OVERHEAD = 512 }; /* of a plan in tables and indexes, for the estimate of space */

static uint32_t plan_crc(uint64_t ix, const struct journal_plan *p)
{
    uint32_t crc = crc32c_u64(0, ix);
    crc = crc32c(crc, p->plan_id.b, sizeof p->plan_id.b);
    crc = crc32c_bytes(crc, p->session_id.ptr, p->session_id.len);
    crc = crc32c_bytes(crc, p->client_key.ptr, p->client_key.len);
    crc = crc32c_u64(crc, p->body_hash);
    crc = crc32c_bytes(crc, p->goal.ptr, p->goal.len);
    crc = crc32c_u64(crc, p->created_wall);
    /* A plan's checksum is that of the versions without jobs and owners: only what is there is
     * added. */
    crc = p->job.len > 0 ? crc32c_bytes(crc, p->job.ptr, p->job.len) : crc;
    return p->owner.len > 0 ? crc32c_bytes(crc32c_bytes(crc, "o", 1), p->owner.ptr, p->owner.len)
                            : crc;
}

static uint32_t state_crc(uint64_t ix, const struct plan_state *st)
{
    uint32_t crc = crc32c_u64(0, ix);
    crc = crc32c_bytes(crc, st->status.ptr, st->status.len);
    crc = crc32c_u64(crc, st->ended);
    crc = crc32c_u64(crc, st->recoveries);
    return crc32c_bytes(crc, st->note.ptr, st->note.len);
}

static enum bt_code damaged(uint64_t ix, const char *what, struct bt_error *err)
{
    return err_set(err, BT_IO, "%s of plan number %" PRIu64 " in the journal is damaged", what, ix);
}

/* The number of the plan with the id; 0 = none. */
static enum bt_code find_id(struct sqlite_journal *s, const struct uuid *id, uint64_t *ret,
                            struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_PLAN_IX_BY_ID];
    enum bt_code code = BT_OK;
    int rc;

    (void)sqlite3_bind_blob(st, 1, id->b, sizeof id->b, SQLITE_STATIC);
    rc = sqlite3_step(st);
    *ret = rc == SQLITE_ROW ? sqlite_col_u64(st, 0) : 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot look up a plan", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

/* The same for the key; *ret_gone: a plan that was deleted had it. */
static enum bt_code find_key(struct sqlite_journal *s, struct str key, uint64_t *ret,
                             bool *ret_gone, struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_PLAN_IX_BY_KEY];
    enum bt_code code = BT_OK;
    int rc;

    sqlite_bind_str(st, 1, key);
    rc = sqlite3_step(st);
    *ret = rc == SQLITE_ROW ? sqlite_col_u64(st, 0) : 0;
    *ret_gone = rc == SQLITE_ROW && *ret == 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot look up a clientKey", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

/* Runs a write that may find nothing to do, in the batch. BT_NOT_FOUND: nothing has changed. */
static enum bt_code run_if(struct sqlite_journal *s, enum sql which, size_t bytes, const char *what,
                           struct bt_error *err)
{
    const bool first = !s->base.dirty;
    enum bt_code code = sqlite_batch(s, bytes, err);

    if (code == BT_OK) {
        code = sqlite_run(s, which, what, err);
    }
    if (code != BT_OK || sqlite3_changes(s->db) > 0) {
        s->base.dirty = code == BT_OK; /* for the next write; journal.c sets it too */
        return code;
    }
    s->batch_bytes -= bytes;
    code = first ? sqlite_run(s, SQL_ROLLBACK, "cannot end an empty batch", err) : BT_OK;
    return code == BT_OK ? err_set(err, BT_NOT_FOUND, "nothing to change") : code;
}

static void bind_state(sqlite3_stmt *st, uint64_t ix, const struct plan_state *state)
{
    (void)sqlite3_bind_int64(st, 1, (int64_t)ix);
    sqlite_bind_str(st, 2, state->status);
    (void)sqlite3_bind_int64(st, 3, (int64_t)state->ended);
    (void)sqlite3_bind_int64(st, 4, state->recoveries);
    sqlite_bind_str(st, 5, state->note);
    (void)sqlite3_bind_int64(st, 6, state_crc(ix, state));
}

enum bt_code sqlite_state_put(struct sqlite_journal *s, uint64_t ix, const struct plan_state *state,
                              struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_STATE_PUT];
    enum bt_code code = sqlite_batch(s, PLAN_OVERHEAD, err);

    if (code != BT_OK) {
        return code;
    }
    bind_state(st, ix, state);
    return sqlite_run(s, SQL_STATE_PUT, "cannot store the state of a plan", err);
}

enum bt_code sqlite_state_read(sqlite3_stmt *st, int at, uint64_t ix, struct plan_state *ret,
                               struct bt_error *err)
{
    uint64_t recoveries = sqlite_col_u64(st, at + 2);

    *ret = (struct plan_state){
        .status = sqlite_col_str(st, at),
        .ended = sqlite_col_u64(st, at + 1),
        .recoveries = (uint32_t)recoveries,
        .note = sqlite_col_str(st, at + 3),
    };
    if (recoveries > UINT32_MAX || sqlite_col_u64(st, at + 4) != state_crc(ix, ret)) {
        return damaged(ix, "the state", err);
    }
    return BT_OK;
}

enum bt_code sqlite_state_get(struct sqlite_journal *s, uint64_t ix, struct plan_state *ret,
                              struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_STATE_GET];
    int rc;

    (void)sqlite3_bind_int64(st, 1, (int64_t)ix);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        return sqlite_state_read(st, 0, ix, ret, err);
    }
    if (rc == SQLITE_DONE) {
        return err_set(err, BT_NOT_FOUND, "no plan number %" PRIu64 " in the journal", ix);
    }
    return sqlite_error(s->db, "cannot read the state of a plan", err);
}

void sqlite_state_done(struct sqlite_journal *s)
{
    (void)sqlite3_reset(s->stmt[SQL_STATE_GET]);
}

/* BT_CONFLICT with the reason why a plan was not added. */
static enum bt_code explain_conflict(struct sqlite_journal *s, const struct journal_plan *p,
                                     struct bt_error *err)
{
    uint64_t other = 0;
    bool gone = false;
    enum bt_code code =
        p->client_key.len > 0 ? find_key(s, p->client_key, &other, &gone, err) : BT_OK;

    if (code == BT_OK && (other != 0 || gone)) {
        return err_set(err, BT_CONFLICT, "clientKey \"%.*s\" was used %s", STR_ARG(p->client_key),
                       gone ? "by a plan that was deleted" : "before");
    }
    return code != BT_OK ? code
                         : err_set(err, BT_CONFLICT, "a plan with this planId exists or existed");
}

static enum bt_code put_head(struct sqlite_journal *s, uint64_t ix, const struct journal_plan *p,
                             struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_PLAN_ADD];

    (void)sqlite3_bind_int64(st, 1, (int64_t)ix);
    (void)sqlite3_bind_blob(st, 2, p->plan_id.b, sizeof p->plan_id.b, SQLITE_STATIC);
    sqlite_bind_str(st, 3, p->session_id);
    if (p->client_key.len > 0) {
        sqlite_bind_str(st, 4, p->client_key);
    } else {
        (void)sqlite3_bind_null(st, 4);
    }
    (void)sqlite3_bind_int64(st, 5, (int64_t)p->body_hash);
    sqlite_bind_str(st, 6, p->goal);
    (void)sqlite3_bind_int64(st, 7, (int64_t)p->created_wall);
    (void)sqlite3_bind_int64(st, 8, plan_crc(ix, p));
    (void)sqlite3_bind_int64(st, 9, crc32c_bytes(crc32c_u64(0, ix), p->doc, p->doc_len));
    (void)sqlite3_bind_blob64(st, 10, p->doc == NULL ? "" : p->doc, p->doc_len, SQLITE_STATIC);
    return run_if(s, SQL_PLAN_ADD, p->doc_len + p->goal.len + PLAN_OVERHEAD,
                  "cannot store the plan", err);
}

static enum bt_code put_job(struct sqlite_journal *s, uint64_t ix, struct str kind,
                            struct bt_error *err)
{
    (void)sqlite3_bind_int64(s->stmt[SQL_JOB_ADD], 1, (int64_t)ix);
    sqlite_bind_str(s->stmt[SQL_JOB_ADD], 2, kind);
    return sqlite_run(s, SQL_JOB_ADD, "cannot store an errand", err);
}

static enum bt_code put_owner(struct sqlite_journal *s, uint64_t ix, struct str owner,
                              struct bt_error *err)
{
    (void)sqlite3_bind_int64(s->stmt[SQL_OWNER_ADD], 1, (int64_t)ix);
    sqlite_bind_str(s->stmt[SQL_OWNER_ADD], 2, owner);
    return sqlite_run(s, SQL_OWNER_ADD, "cannot store the owner of a plan", err);
}

enum bt_code sqlite_plan_add(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                             struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    struct plan_state state = {.status = p->status, .ended = p->ended_wall};
    uint64_t ix = s->now.plans + 1;
    enum bt_code code = put_head(s, ix, p, err);

    if (code == BT_NOT_FOUND) {
        return explain_conflict(s, p, err);
    }
    if (code == BT_OK && p->job.len > 0) {
        code = put_job(s, ix, p->job, err);
    }
    if (code == BT_OK && p->owner.len > 0) {
        code = put_owner(s, ix, p->owner, err);
    }
    if (code == BT_OK) {
        code = sqlite_state_put(s, ix, &state, err);
    }
    if (code == BT_OK) {
        code = sqlite_chain_begin(s, ix, p, err);
    }
    if (code == BT_OK) {
        s->now.plans = ix;
        *ret_ix = ix;
    }
    return code;
}

enum bt_code sqlite_plan_status(struct journal *j, uint64_t ix, struct str status, msec ended,
                                struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    /* only plans in quarantine have a note, and their state is final */
    const struct plan_state state = {.status = status, .ended = ended};
    enum bt_code code;

    bind_state(s->stmt[SQL_STATE_SET], ix, &state);
    code = run_if(s, SQL_STATE_SET, PLAN_OVERHEAD, "cannot store the state of a plan", err);
    return code == BT_NOT_FOUND
               ? err_set(err, code, "no plan number %" PRIu64 " in the journal", ix)
               : code;
}

/* Appends the strings to text. text may move until the last one is in, so the pointers are set
 * after. */
static void load_strings(struct buf *text, struct journal_plan *ret)
{
    struct str *const all[] = {&ret->session_id, &ret->client_key, &ret->goal, &ret->status,
                               &ret->note,       &ret->job,        &ret->owner};
    size_t at = text->len;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        buf_add_str(text, *all[i]);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0] && text->bad == BT_OK; i++) {
        all[i]->ptr = buf_cstr(text) + at;
        at += all[i]->len;
    }
}

enum bt_code sqlite_plan_read(sqlite3_stmt *st, struct journal_plan *ret, struct bt_error *err)
{
    uint64_t ix = sqlite_col_u64(st, 0);

    ret->ix = ix;
    if (sqlite3_column_bytes(st, 1) == (int)sizeof ret->plan_id.b) {
        memcpy(ret->plan_id.b, sqlite3_column_blob(st, 1), sizeof ret->plan_id.b);
    }
    ret->session_id = sqlite_col_str(st, 2);
    ret->client_key = sqlite_col_str(st, 3);
    ret->body_hash = sqlite_col_u64(st, 4);
    ret->goal = sqlite_col_str(st, 5);
    ret->created_wall = sqlite_col_u64(st, 6);
    ret->job = sqlite_col_str(st, 8);
    ret->owner = sqlite_col_str(st, 9);
    if (sqlite_col_u64(st, 7) != plan_crc(ix, ret)) {
        return damaged(ix, "the record", err);
    }
    return BT_OK;
}

enum bt_code sqlite_doc_read(sqlite3_stmt *st, struct journal_plan *ret, struct bt_error *err)
{
    uint64_t ix = sqlite_col_u64(st, 0);

    ret->doc = sqlite3_column_blob(st, 2);
    ret->doc_len = (size_t)sqlite3_column_bytes(st, 2);
    if (sqlite_col_u64(st, 1) != crc32c_bytes(crc32c_u64(0, ix), ret->doc, ret->doc_len)) {
        return damaged(ix, "the document", err);
    }
    return BT_OK;
}

static enum bt_code load_head(struct sqlite_journal *s, uint64_t ix, struct buf *text,
                              struct journal_plan *ret, struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_PLAN_GET];
    struct plan_state state;
    enum bt_code code;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (int64_t)ix);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        code = sqlite_plan_read(st, ret, err);
    } else if (rc == SQLITE_DONE) {
        code = err_set(err, BT_NOT_FOUND, "no plan number %" PRIu64 " in the journal", ix);
    } else {
        code = sqlite_error(s->db, "cannot read a plan", err);
    }
    if (code != BT_OK) {
        goto out;
    }
    code = sqlite_state_get(s, ix, &state, err);
    if (code == BT_OK) {
        ret->status = state.status;
        ret->ended_wall = state.ended;
        ret->note = state.note;
        load_strings(text, ret);
        code = buf_check(text, err);
    } else if (code == BT_NOT_FOUND) {
        code = damaged(ix, "the state", err);
    }
out:
    (void)sqlite3_reset(st);
    sqlite_state_done(s);
    return code;
}

static enum bt_code load_doc(struct sqlite_journal *s, uint64_t ix, struct buf *text,
                             struct journal_plan *ret, struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[SQL_PLAN_DOC];
    enum bt_code code;
    int rc;

    (void)sqlite3_bind_int64(st, 1, (int64_t)ix);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        code = sqlite_doc_read(st, ret, err);
        if (code == BT_OK) {
            buf_add(text, ret->doc, ret->doc_len);
            code = buf_check(text, err);
        }
    } else if (rc == SQLITE_DONE) {
        code = damaged(ix, "the document", err);
    } else {
        code = sqlite_error(s->db, "cannot read a plan", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_plan_load(struct sqlite_journal *s, uint64_t ix, bool with_doc,
                              struct buf *text, struct journal_plan *ret, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    *ret = (struct journal_plan){0};
    buf_clear(text);
    if (with_doc) {
        code = load_doc(s, ix, text, ret, err);
    }
    if (code == BT_OK) {
        code = load_head(s, ix, text, ret, err);
    }
    if (code == BT_OK && with_doc) {
        ret->doc = text->at; /* the doc is at its beginning */
    }
    return code;
}

static enum bt_code plan_of_id(struct sqlite_journal *s, struct uuid id, bool with_doc,
                               struct journal_plan *ret, struct bt_error *err)
{
    char text[UUID_TEXT_LEN + 1];
    uint64_t ix;
    enum bt_code code = find_id(s, &id, &ix, err);

    if (code == BT_OK && ix == 0) {
        uuid_format(id, text);
        return err_set(err, BT_NOT_FOUND, "no plan %s", text);
    }
    if (code == BT_OK) {
        code = sqlite_plan_load(s, ix, with_doc, &s->plan_text, ret, err);
    }
    if (code == BT_OK && !uuid_eq(ret->plan_id, id)) {
        code = damaged(ix, "the index entry", err);
    }
    return code;
}

enum bt_code sqlite_plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err)
{
    return plan_of_id(sqlite_of(j), id, true, ret, err);
}

enum bt_code sqlite_plan_head(struct journal *j, struct uuid id, struct journal_plan *ret,
                              struct bt_error *err)
{
    return plan_of_id(sqlite_of(j), id, false, ret, err);
}

enum bt_code sqlite_plan_by_key(struct journal *j, struct str key, struct journal_plan *ret,
                                struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    struct journal_gone was;
    bool gone = false;
    uint64_t ix = 0;
    enum bt_code code = key.len > 0 ? find_key(s, key, &ix, &gone, err) : BT_OK;

    if (code == BT_OK && gone) {
        code = sqlite_gone_by_key(s, key, &was, err);
        if (code != BT_OK) {
            return code;
        }
        ret->plan_id = was.plan_id;
        return err_set(err, BT_CONFLICT, "the plan of this clientKey was deleted");
    }
    if (code == BT_OK && ix == 0) {
        return err_set(err, BT_NOT_FOUND, "no plan with clientKey \"%.*s\"", STR_ARG(key));
    }
    if (code == BT_OK) {
        code = sqlite_plan_load(s, ix, true, &s->plan_text, ret, err);
    }
    if (code == BT_OK && !str_eq(ret->client_key, key)) {
        code = damaged(ix, "the index entry", err);
    }
    return code;
}

/* ---- lists, newest first ---- */

/* Lists the plans whose numbers the statement returns; all its parameters but the first are
 * bound. */
static enum bt_code list_plans(struct sqlite_journal *s, enum sql which, struct str status,
                               uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self,
                               struct bt_error *err)
{
    sqlite3_stmt *st = s->stmt[which];
    enum bt_code code = BT_OK;
    uint32_t given = 0;
    int rc = SQLITE_DONE;

    (void)sqlite3_bind_int64(
        st, 1, before_ix == 0 || before_ix > INT64_MAX ? INT64_MAX : (int64_t)before_ix);
    while (given < limit && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct journal_plan p;
        struct bt_error why;
        enum bt_code one =
            sqlite_plan_load(s, sqlite_col_u64(st, 0), false, &s->plan_text, &p, &why);
        if (one != BT_OK) {
            /* One damaged plan must not hide the others. */
            log_warn("journal.plan_unreadable", "%s", why.msg);
            continue;
        }
        if (status.len > 0 && !str_eq(status, p.status)) {
            continue;
        }
        given++;
        if (!fn(&p, self)) {
            break;
        }
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        code = sqlite_error(s->db, "cannot list plans", err);
    }
    (void)sqlite3_reset(st);
    return code;
}

enum bt_code sqlite_plans(struct journal *j, struct str status, struct str session,
                          uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self,
                          struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    enum sql which = session.len > 0 ? SQL_IX_SESSION : status.len > 0 ? SQL_IX_STATUS : SQL_IX_ALL;

    if (which != SQL_IX_ALL) {
        sqlite_bind_str(s->stmt[which], 2, session.len > 0 ? session : status);
    }
    return list_plans(s, which, status, before_ix, limit, fn, self, err);
}

enum bt_code sqlite_plans_between(struct journal *j, struct uuid first, struct uuid last,
                                  uint32_t limit, journal_plan_fn fn, void *self,
                                  struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    sqlite3_stmt *st = s->stmt[SQL_IX_BETWEEN];

    (void)sqlite3_bind_blob(st, 2, first.b, sizeof first.b, SQLITE_STATIC);
    (void)sqlite3_bind_blob(st, 3, last.b, sizeof last.b, SQLITE_STATIC);
    return list_plans(s, SQL_IX_BETWEEN, (struct str){"", 0}, 0, limit, fn, self, err);
}

enum bt_code sqlite_jobs(struct journal *j, struct str session, uint64_t before_ix, uint32_t limit,
                         journal_plan_fn fn, void *self, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    enum sql which = session.len > 0 ? SQL_IX_JOBS : SQL_IX_JOBS_ALL;

    if (session.len > 0) {
        sqlite_bind_str(s->stmt[which], 2, session);
    }
    return list_plans(s, which, (struct str){"", 0}, before_ix, limit, fn, self, err);
}

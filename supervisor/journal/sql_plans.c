/* Plans on SQLite: the immutable part, the state, and lists of plans and jobs. */
#include <inttypes.h>

#include "protocol/base/log.h"
#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/sql.h"

enum { PLAN_TEXT_MAX = 8 * 1024 * 1024, TURN_TEXT_MAX = 64 * 1024 };
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

void sql_texts_init(struct sql_journal *s)
{
    buf_init(&s->plan_text, PLAN_TEXT_MAX);
    buf_init(&s->turn_text, TURN_TEXT_MAX);
    buf_init(&s->schedule_text, PLAN_TEXT_MAX);
}

void sql_texts_done(struct sql_journal *s)
{
    buf_done(&s->plan_text);
    buf_done(&s->turn_text);
    buf_done(&s->schedule_text);
}

/* The number of the plan with the id; 0 = none. */
static enum bt_code find_id(struct sql_journal *s, const struct uuid *id, uint64_t *ret,
                            struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_PLAN_IX_BY_ID];
    enum bt_code code = BT_OK;
    int rc;

    sql_bind_uuid(st, 1, id);
    rc = stmt_step(st);
    *ret = rc == STMT_ROW ? sql_col_u64(st, 0) : 0;
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot look up a plan", err);
    }
    stmt_reset(st);
    return code;
}

/* The same for the key; *ret_gone: a plan that was deleted had it. */
static enum bt_code find_key(struct sql_journal *s, struct str key, uint64_t *ret, bool *ret_gone,
                             struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_PLAN_IX_BY_KEY];
    enum bt_code code = BT_OK;
    int rc;

    sql_bind_str(st, 1, key);
    rc = stmt_step(st);
    *ret = rc == STMT_ROW ? sql_col_u64(st, 0) : 0;
    *ret_gone = rc == STMT_ROW && *ret == 0;
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot look up a clientKey", err);
    }
    stmt_reset(st);
    return code;
}

/* Runs a write that may find nothing to do, in the batch. BT_NOT_FOUND: nothing has changed. */
static enum bt_code run_if(struct sql_journal *s, enum sql which, size_t bytes, const char *what,
                           struct bt_error *err)
{
    const bool first = !s->base.dirty;
    uint64_t changed = 0;
    enum bt_code code = sql_batch(s, bytes, err);

    if (code == BT_OK) {
        code = sql_run_counted(s, which, what, &changed, err);
    }
    if (code != BT_OK || changed > 0) {
        s->base.dirty = code == BT_OK; /* for the next write; journal.c sets it too */
        return code;
    }
    s->batch_bytes -= bytes;
    code = first ? s->engine->undo(s, err) : BT_OK;
    return code == BT_OK ? err_set(err, BT_NOT_FOUND, "nothing to change") : code;
}

static void bind_state(struct stmt *st, uint64_t ix, const struct plan_state *state)
{
    stmt_bind_i64(st, 1, (int64_t)ix);
    sql_bind_str(st, 2, state->status);
    stmt_bind_i64(st, 3, (int64_t)state->ended);
    stmt_bind_i64(st, 4, state->recoveries);
    sql_bind_str(st, 5, state->note);
    stmt_bind_i64(st, 6, state_crc(ix, state));
}

enum bt_code sql_state_put(struct sql_journal *s, uint64_t ix, const struct plan_state *state,
                           struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_STATE_PUT];
    enum bt_code code = sql_batch(s, PLAN_OVERHEAD, err);

    if (code != BT_OK) {
        return code;
    }
    bind_state(st, ix, state);
    return sql_run(s, SQL_STATE_PUT, "cannot store the state of a plan", err);
}

enum bt_code sql_state_read(struct stmt *st, int at, uint64_t ix, struct plan_state *ret,
                            struct bt_error *err)
{
    uint64_t recoveries = sql_col_u64(st, at + 2);

    *ret = (struct plan_state){
        .status = sql_col_str(st, at),
        .ended = sql_col_u64(st, at + 1),
        .recoveries = (uint32_t)recoveries,
        .note = sql_col_str(st, at + 3),
    };
    if (recoveries > UINT32_MAX || sql_col_u64(st, at + 4) != state_crc(ix, ret)) {
        return damaged(ix, "the state", err);
    }
    return BT_OK;
}

enum bt_code sql_state_get(struct sql_journal *s, uint64_t ix, struct plan_state *ret,
                           struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_STATE_GET];
    int rc;

    stmt_bind_i64(st, 1, (int64_t)ix);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        return sql_state_read(st, 0, ix, ret, err);
    }
    if (rc == STMT_DONE) {
        return err_set(err, BT_NOT_FOUND, "no plan number %" PRIu64 " in the journal", ix);
    }
    return sql_error(s, "cannot read the state of a plan", err);
}

void sql_state_done(struct sql_journal *s)
{
    stmt_reset(&s->stmt[SQL_STATE_GET]);
}

/* BT_CONFLICT with the reason why a plan was not added. */
static enum bt_code explain_conflict(struct sql_journal *s, const struct journal_plan *p,
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

static enum bt_code put_head(struct sql_journal *s, uint64_t ix, const struct journal_plan *p,
                             struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_PLAN_ADD];

    stmt_bind_i64(st, 1, (int64_t)ix);
    sql_bind_uuid(st, 2, &p->plan_id);
    sql_bind_str(st, 3, p->session_id);
    if (p->client_key.len > 0) {
        sql_bind_str(st, 4, p->client_key);
    } else {
        stmt_bind_null(st, 4);
    }
    stmt_bind_i64(st, 5, (int64_t)p->body_hash);
    sql_bind_str(st, 6, p->goal);
    stmt_bind_i64(st, 7, (int64_t)p->created_wall);
    stmt_bind_i64(st, 8, plan_crc(ix, p));
    stmt_bind_i64(st, 9, crc32c_bytes(crc32c_u64(0, ix), p->doc, p->doc_len));
    stmt_bind_blob(st, 10, p->doc == NULL ? "" : p->doc, p->doc_len);
    return run_if(s, SQL_PLAN_ADD, p->doc_len + p->goal.len + PLAN_OVERHEAD,
                  "cannot store the plan", err);
}

static enum bt_code put_job(struct sql_journal *s, uint64_t ix, struct str kind,
                            struct bt_error *err)
{
    stmt_bind_i64(&s->stmt[SQL_JOB_ADD], 1, (int64_t)ix);
    sql_bind_str(&s->stmt[SQL_JOB_ADD], 2, kind);
    return sql_run(s, SQL_JOB_ADD, "cannot store an errand", err);
}

static enum bt_code put_owner(struct sql_journal *s, uint64_t ix, struct str owner,
                              struct bt_error *err)
{
    stmt_bind_i64(&s->stmt[SQL_OWNER_ADD], 1, (int64_t)ix);
    sql_bind_str(&s->stmt[SQL_OWNER_ADD], 2, owner);
    return sql_run(s, SQL_OWNER_ADD, "cannot store the owner of a plan", err);
}

enum bt_code sql_plan_add(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                          struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
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
        code = sql_state_put(s, ix, &state, err);
    }
    if (code == BT_OK) {
        code = sql_chain_begin(s, ix, p, err);
    }
    if (code == BT_OK) {
        s->now.plans = ix;
        *ret_ix = ix;
    }
    return code;
}

enum bt_code sql_plan_status(struct journal *j, uint64_t ix, struct str status, msec ended,
                             struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    /* only plans in quarantine have a note, and their state is final */
    const struct plan_state state = {.status = status, .ended = ended};
    enum bt_code code;

    bind_state(&s->stmt[SQL_STATE_SET], ix, &state);
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

enum bt_code sql_plan_read(struct stmt *st, struct journal_plan *ret, struct bt_error *err)
{
    uint64_t ix = sql_col_u64(st, 0);

    ret->ix = ix;
    ret->plan_id = sql_col_uuid(st, 1);
    ret->session_id = sql_col_str(st, 2);
    ret->client_key = sql_col_str(st, 3);
    ret->body_hash = sql_col_u64(st, 4);
    ret->goal = sql_col_str(st, 5);
    ret->created_wall = sql_col_u64(st, 6);
    ret->job = sql_col_str(st, 8);
    ret->owner = sql_col_str(st, 9);
    if (sql_col_u64(st, 7) != plan_crc(ix, ret)) {
        return damaged(ix, "the record", err);
    }
    return BT_OK;
}

enum bt_code sql_doc_read(struct stmt *st, struct journal_plan *ret, struct bt_error *err)
{
    uint64_t ix = sql_col_u64(st, 0);
    const struct str doc = stmt_col_blob(st, 2);

    ret->doc = doc.ptr;
    ret->doc_len = doc.len;
    if (sql_col_u64(st, 1) != crc32c_bytes(crc32c_u64(0, ix), ret->doc, ret->doc_len)) {
        return damaged(ix, "the document", err);
    }
    return BT_OK;
}

static enum bt_code load_head(struct sql_journal *s, uint64_t ix, struct buf *text,
                              struct journal_plan *ret, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_PLAN_GET];
    struct plan_state state;
    enum bt_code code;
    int rc;

    stmt_bind_i64(st, 1, (int64_t)ix);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        code = sql_plan_read(st, ret, err);
    } else if (rc == STMT_DONE) {
        code = err_set(err, BT_NOT_FOUND, "no plan number %" PRIu64 " in the journal", ix);
    } else {
        code = sql_error(s, "cannot read a plan", err);
    }
    if (code != BT_OK) {
        goto out;
    }
    code = sql_state_get(s, ix, &state, err);
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
    stmt_reset(st);
    sql_state_done(s);
    return code;
}

static enum bt_code load_doc(struct sql_journal *s, uint64_t ix, struct buf *text,
                             struct journal_plan *ret, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_PLAN_DOC];
    enum bt_code code;
    int rc;

    stmt_bind_i64(st, 1, (int64_t)ix);
    rc = stmt_step(st);
    if (rc == STMT_ROW) {
        code = sql_doc_read(st, ret, err);
        if (code == BT_OK) {
            buf_add(text, ret->doc, ret->doc_len);
            code = buf_check(text, err);
        }
    } else if (rc == STMT_DONE) {
        code = damaged(ix, "the document", err);
    } else {
        code = sql_error(s, "cannot read a plan", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_plan_load(struct sql_journal *s, uint64_t ix, bool with_doc, struct buf *text,
                           struct journal_plan *ret, struct bt_error *err)
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

static enum bt_code plan_of_id(struct sql_journal *s, struct uuid id, bool with_doc,
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
        code = sql_plan_load(s, ix, with_doc, &s->plan_text, ret, err);
    }
    if (code == BT_OK && !uuid_eq(ret->plan_id, id)) {
        code = damaged(ix, "the index entry", err);
    }
    return code;
}

enum bt_code sql_plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                            struct bt_error *err)
{
    return plan_of_id(sql_of(j), id, true, ret, err);
}

enum bt_code sql_plan_head(struct journal *j, struct uuid id, struct journal_plan *ret,
                           struct bt_error *err)
{
    return plan_of_id(sql_of(j), id, false, ret, err);
}

enum bt_code sql_plan_by_key(struct journal *j, struct str key, struct journal_plan *ret,
                             struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct journal_gone was;
    bool gone = false;
    uint64_t ix = 0;
    enum bt_code code = key.len > 0 ? find_key(s, key, &ix, &gone, err) : BT_OK;

    if (code == BT_OK && gone) {
        code = sql_gone_by_key(s, key, &was, err);
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
        code = sql_plan_load(s, ix, true, &s->plan_text, ret, err);
    }
    if (code == BT_OK && !str_eq(ret->client_key, key)) {
        code = damaged(ix, "the index entry", err);
    }
    return code;
}

/* ---- lists, newest first ---- */

/* Lists the plans whose numbers the statement returns; all its parameters but the first are
 * bound. */
static enum bt_code list_plans(struct sql_journal *s, enum sql which, struct str status,
                               uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self,
                               struct bt_error *err)
{
    struct stmt *st = &s->stmt[which];
    enum bt_code code = BT_OK;
    uint32_t given = 0;
    int rc = STMT_DONE;

    stmt_bind_i64(st, 1, before_ix == 0 || before_ix > INT64_MAX ? INT64_MAX : (int64_t)before_ix);
    while (given < limit && (rc = stmt_step(st)) == STMT_ROW) {
        struct journal_plan p;
        struct bt_error why;
        enum bt_code one = sql_plan_load(s, sql_col_u64(st, 0), false, &s->plan_text, &p, &why);
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
    if (rc != STMT_ROW && rc != STMT_DONE) {
        code = sql_error(s, "cannot list plans", err);
    }
    stmt_reset(st);
    return code;
}

enum bt_code sql_plans(struct journal *j, struct str status, struct str session, uint64_t before_ix,
                       uint32_t limit, journal_plan_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    enum sql which = session.len > 0 ? SQL_IX_SESSION : status.len > 0 ? SQL_IX_STATUS : SQL_IX_ALL;

    if (which != SQL_IX_ALL) {
        sql_bind_str(&s->stmt[which], 2, session.len > 0 ? session : status);
    }
    return list_plans(s, which, status, before_ix, limit, fn, self, err);
}

enum bt_code sql_plans_between(struct journal *j, struct uuid first, struct uuid last,
                               uint32_t limit, journal_plan_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct stmt *st = &s->stmt[SQL_IX_BETWEEN];

    sql_bind_uuid(st, 2, &first);
    sql_bind_uuid(st, 3, &last);
    return list_plans(s, SQL_IX_BETWEEN, (struct str){"", 0}, 0, limit, fn, self, err);
}

enum bt_code sql_jobs(struct journal *j, struct str session, uint64_t before_ix, uint32_t limit,
                      journal_plan_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    enum sql which = session.len > 0 ? SQL_IX_JOBS : SQL_IX_JOBS_ALL;

    if (session.len > 0) {
        sql_bind_str(&s->stmt[which], 2, session);
    }
    return list_plans(s, which, (struct str){"", 0}, before_ix, limit, fn, self, err);
}

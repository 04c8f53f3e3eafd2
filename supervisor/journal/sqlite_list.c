/* Lists of plans and jobs on SQLite, newest first. */
#include "protocol/base/log.h"
#include "supervisor/journal/sqlite_internal.h"

/* Lists the plans whose numbers the statement returns; all its parameters but the first are
 * bound. */
static enum bt_code list(struct sqlite_journal *s, enum sql which, struct str status,
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
    return list(s, which, status, before_ix, limit, fn, self, err);
}

enum bt_code sqlite_jobs(struct journal *j, struct str session, uint64_t before_ix, uint32_t limit,
                         journal_plan_fn fn, void *self, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    enum sql which = session.len > 0 ? SQL_IX_JOBS : SQL_IX_JOBS_ALL;

    if (session.len > 0) {
        sqlite_bind_str(s->stmt[which], 2, session);
    }
    return list(s, which, (struct str){"", 0}, before_ix, limit, fn, self, err);
}

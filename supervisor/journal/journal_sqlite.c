/* The journal on SQLite: open, the open batch, commit. One connection, one thread. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "supervisor/journal/sqlite_internal.h"

static const char *const STATEMENTS[SQL_COUNT] = {
#define SQL(name, text) [SQL_##name] = text,
    SQLITE_STATEMENTS(SQL)
#undef SQL
};

enum {
    PLAN_TEXT_MAX = 8 * 1024 * 1024,
    TURN_TEXT_MAX = 64 * 1024,
    LOOKASIDE_SLOT = 512,
    LOOKASIDE_SLOTS = 256
};

enum bt_code sqlite_error(sqlite3 *db, const char *what, struct bt_error *err)
{
    int rc = sqlite3_extended_errcode(db);
    int sys = sqlite3_system_errno(db);

    switch (rc & 0xff) {
    case SQLITE_FULL:
        return err_set(err, BT_UNAVAILABLE, "%s: storage is full", what);
    case SQLITE_IOERR:
        if (sys == EDQUOT || sys == ENOSPC) {
            return err_set(err, BT_UNAVAILABLE, "%s: storage is full (%s)", what, strerror(sys));
        }
        return err_set(err, BT_IO, "%s: %s (SQLite %d%s%s)", what, sqlite3_errmsg(db), rc,
                       sys != 0 ? ", " : "", sys != 0 ? strerror(sys) : "");
    case SQLITE_NOMEM:
        return err_set(err, BT_NOMEM, "%s: out of memory", what);
    case SQLITE_BUSY:
        return err_set(err, BT_CONFLICT, "%s: another program has the database open", what);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(err, BT_IO, "%s: the journal is damaged: %s", what, sqlite3_errmsg(db));
    default:
        return err_set(err, BT_IO, "%s: %s (SQLite %d%s%s)", what, sqlite3_errmsg(db), rc,
                       sys != 0 ? ", " : "", sys != 0 ? strerror(sys) : "");
    }
}

static void batch_forget(struct sqlite_journal *s)
{
    s->now = s->committed;
    s->batch_bytes = 0;
    s->base.dirty = false;
    s->base.pos = s->base.committed_pos;
    sqlite_chain_forget(s);
}

enum bt_code sqlite_write_error(struct sqlite_journal *s, const char *what, struct bt_error *err)
{
    enum bt_code code = sqlite_error(s->db, what, err);

    if (code == BT_CONFLICT) {
        code = err_set(err, BT_IO, "%s: another program has the database locked", what);
    }
    if (sqlite3_get_autocommit(s->db) == 0) {
        (void)sqlite3_step(s->stmt[SQL_ROLLBACK]);
        (void)sqlite3_reset(s->stmt[SQL_ROLLBACK]);
    }
    if (sqlite3_get_autocommit(s->db) == 0 && code == BT_UNAVAILABLE) {
        code =
            err_set(err, BT_IO, "%s: storage is full, and the batch cannot be rolled back", what);
    }
    batch_forget(s);
    if (code != BT_UNAVAILABLE) {
        journal_die(&s->base, err);
    }
    return code;
}

enum bt_code sqlite_run(struct sqlite_journal *s, enum sql which, const char *what,
                        struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (sqlite3_step(s->stmt[which]) != SQLITE_DONE) {
        code = sqlite_write_error(s, what, err);
    }
    (void)sqlite3_reset(s->stmt[which]);
    return code;
}

enum bt_code sqlite_batch(struct sqlite_journal *s, size_t bytes, struct bt_error *err)
{
    s->batch_bytes += bytes;
    if (s->base.dirty) {
        return BT_OK;
    }
    return sqlite_run(s, SQL_BEGIN, "cannot open a batch", err);
}

void sqlite_bind_str(sqlite3_stmt *st, int at, struct str v)
{
    (void)sqlite3_bind_text64(st, at, v.ptr == NULL ? "" : v.ptr, v.len, SQLITE_STATIC,
                              SQLITE_UTF8);
}

struct str sqlite_col_str(sqlite3_stmt *st, int at)
{
    const char *text = (const char *)sqlite3_column_text(st, at);
    if (text == NULL) {
        return STR_LIT("");
    }
    return (struct str){text, (size_t)sqlite3_column_bytes(st, at)};
}

/*
 * Runs after a commit, never within one, so its failure does not concern the commit (Q3). On a full
 * disk the log keeps growing; any other failure stops the journal before the next write.
 */
bool sqlite_checkpoint(struct sqlite_journal *s)
{
    struct bt_error why;
    int in_log = 0;
    int copied = 0;
    int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);

    s->wal_frames = in_log > 0 ? in_log : s->wal_frames;
    s->checkpoint_at = s->checkpoint_every + (rc == SQLITE_OK ? 0 : s->wal_frames);
    if (rc == SQLITE_OK) {
        s->behind = false;
        s->wal_frames = in_log == copied ? 0 : s->wal_frames; /* the next write begins it again */
        return in_log == copied;
    }
    if ((rc & 0xff) == SQLITE_LOCKED) {
        /* the callback of a read has committed (Q10); the next commit checkpoints */
        return false;
    }
    if (sqlite_error(s->db, "cannot copy the write-ahead log", &why) == BT_UNAVAILABLE) {
        s->base.storage_low = true;
        s->behind = true;
        return false;
    }
    journal_die(&s->base, &why);
    log_err("journal.checkpoint_failed", "%s", why.msg);
    return false;
}

static int wal_hook(void *self, sqlite3 *db, const char *name, int frames)
{
    struct sqlite_journal *s = self;

    (void)db;
    (void)name;
    s->wal_frames = frames;
    return SQLITE_OK;
}

/* A large batch has been a pause already: the next commit copies, so that the log has at most one
 * more batch. On a disk that fills up the log is copied at once. */
static void copy_log_when_due(struct sqlite_journal *s, bool large)
{
    if (s->wal_frames < s->checkpoint_at) {
        return;
    }
    if (large && !s->copy_put_off && !s->base.storage_low) {
        s->copy_put_off = true;
        return;
    }
    s->copy_put_off = false;
    (void)sqlite_checkpoint(s);
}

static enum bt_code sqlite_commit(struct journal *j, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    enum bt_code code;

    sqlite_space_check(j);
    code = sqlite_chain_flush(s, err);
    if (code == BT_OK) {
        code = sqlite_run(s, SQL_COMMIT, "cannot commit", err);
    }
    if (code != BT_OK) {
        return code;
    }
    s->committed = s->now;
    copy_log_when_due(s, s->batch_bytes > LARGE_BATCH_BYTES);
    s->batch_bytes = 0;
    return BT_OK;
}

static void sqlite_done(struct journal *j)
{
    struct sqlite_journal *s = sqlite_of(j);
    bool empty = false; /* all of the log is in the file */

    if (s->db != NULL && sqlite3_get_autocommit(s->db) == 0 && s->stmt[SQL_ROLLBACK] != NULL) {
        (void)sqlite3_step(s->stmt[SQL_ROLLBACK]);
        (void)sqlite3_reset(s->stmt[SQL_ROLLBACK]);
    }
    sqlite_backup_cancel(s);
    if (s->db != NULL && !j->dead && s->ballast_bytes > 0) {
        empty = sqlite_checkpoint(s);
    }
    for (int i = 0; i < SQL_COUNT; i++) {
        (void)sqlite3_finalize(s->stmt[i]);
    }
    if (s->db != NULL) {
        /* After an error the files stay as they are: the next start reads what was really stored
         * (Q11, Q4). A log with reserved room is kept, too. */
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
                                s->base.dead || s->ballast_bytes > 0 ? 1 : 0, NULL);
        int rc = sqlite3_close(s->db);
        ASSERT(rc == SQLITE_OK);
    }
    if (empty && !s->base.dead) {
        sqlite_space_park(s);
    }
    if (s->lock_fd >= 0) {
        /* releases the lock; the file stays, or two daemons could lock two files */
        close(s->lock_fd);
    }
    buf_done(&s->plan_text);
    buf_done(&s->turn_text);
    buf_done(&s->schedule_text);
    free(s);
}

static void sqlite_space(struct journal *j);

static const struct journal_ops SQLITE_OPS = {
    .close = sqlite_done,
    .plan_add = sqlite_plan_add,
    .plan_status = sqlite_plan_status,
    .plan_by_id = sqlite_plan_by_id,
    .plan_head = sqlite_plan_head,
    .plan_by_key = sqlite_plan_by_key,
    .plan_owner = sqlite_plan_owner,
    .blob_owned = sqlite_blob_owned,
    .plans = sqlite_plans,
    .plans_between = sqlite_plans_between,
    .jobs = sqlite_jobs,
    .plans_open = sqlite_plans_open,
    .quarantine = sqlite_quarantine,
    .session = sqlite_session,
    .session_put = sqlite_session_put,
    .sessions = sqlite_sessions,
    .message_add = sqlite_message_add,
    .messages = sqlite_messages,
    .turn_put = sqlite_turn_put,
    .turn = sqlite_turn,
    .turn_key = sqlite_turn_key,
    .turn_by_key = sqlite_turn_by_key,
    .turn_of_plan = sqlite_turn_of_plan,
    .turns_open = sqlite_turns_open,
    .schedule_put = sqlite_schedule_put,
    .schedule_state = sqlite_schedule_state,
    .schedule_delete = sqlite_schedule_delete,
    .schedule_by_name = sqlite_schedule_by_name,
    .schedules = sqlite_schedules,
    .start_put = sqlite_start_put,
    .starts = sqlite_starts,
    .starts_drop = sqlite_starts_drop,
    .agent_put = sqlite_agent_put,
    .agent_drop = sqlite_agent_drop,
    .agents_drop = sqlite_agents_drop,
    .agents = sqlite_agents,
    .append = sqlite_append,
    .blob_add = sqlite_blob_add,
    .blob_get = sqlite_blob_get,
    .commit = sqlite_commit,
    .space = sqlite_space,
    .events = sqlite_events,
    .last_row = sqlite_last_row,
    .replay = sqlite_replay,
    .scrub = sqlite_scrub,
    .plan_delete = sqlite_plan_delete,
    .gone_by_id = sqlite_gone_by_id,
    .plans_ended = sqlite_plans_ended,
    .session_delete = sqlite_session_delete,
    .sessions_idle = sqlite_sessions_idle,
    .gone_expire = sqlite_gone_expire,
    .rows_delete = sqlite_rows_delete,
    .sweep = sqlite_sweep,
    .blobs_unused = sqlite_blobs_unused,
    .last_blob = sqlite_last_blob,
    .size = sqlite_size,
    .plan_blobs = sqlite_plan_blobs,
    .plan_heirs = sqlite_plan_heirs,
    .plan_state = sqlite_plan_state,
    .gone_forget = sqlite_gone_forget,
    .imports = sqlite_imports,
    .backup_begin = sqlite_backup_begin,
    .backup_step = sqlite_backup_step,
};

static enum bt_code prepare_all(struct sqlite_journal *s, struct bt_error *err)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        if (sqlite3_prepare_v3(s->db, STATEMENTS[i], -1, SQLITE_PREPARE_PERSISTENT, &s->stmt[i],
                               NULL) != SQLITE_OK) {
            return sqlite_error(s->db, "cannot prepare the journal's statements", err);
        }
    }
    return BT_OK;
}

/* Stores the number of this daemon, at once or when there is room. Until then no epoch may be
 * given, because the next daemon would give it again. */
static enum bt_code count_boot(struct sqlite_journal *s, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code;

    if (!s->boot_due || s->base.storage_full) {
        return BT_OK;
    }
    code = sqlite_exec(s->db, "UPDATE meta SET value = value + 1 WHERE key = 'boot'", &why);
    if (code == BT_UNAVAILABLE) {
        s->base.storage_low = s->base.storage_full = true;
        return BT_OK;
    }
    s->boot_due = code != BT_OK;
    return code == BT_OK ? BT_OK : err_set(err, code, "%s", why.msg);
}

/* Checks again; what waits for room is done. */
static void sqlite_space(struct journal *j)
{
    struct sqlite_journal *s = sqlite_of(j);
    struct bt_error why;

    sqlite_space_check(j);
    if (!j->dead && !j->dirty && count_boot(s, &why) != BT_OK) {
        journal_die(j, &why);
    }
}

/* Reads the last position and counts this daemon's boot. */
static enum bt_code load(struct sqlite_journal *s, struct bt_error *err)
{
    static const char *const MAXIMA[] = {
        /* What was deleted counts, too: no number is used again. */
        "SELECT coalesce(max(pos), 0) FROM rows",
        ("SELECT max((SELECT coalesce(max(ix), 0) FROM plans),"
         " (SELECT coalesce(max(ix), 0) FROM plan_state),"
         " (SELECT coalesce(max(ix), 0) FROM gone))"),
        ("SELECT max((SELECT coalesce(max(id), 0) FROM blobs),"
         " (SELECT value FROM meta WHERE key = 'blobs'))"),
        "SELECT value FROM meta WHERE key = 'boot'",
        "SELECT count(*) FROM gone",
    };
    int64_t v[5];
    uint64_t seqs = 0;
    uint64_t plans = 0;
    enum bt_code code = BT_OK;

    for (int i = 0; i < 5 && code == BT_OK; i++) {
        code = sqlite_number(s->db, MAXIMA[i], &v[i], err);
        if (code == BT_OK && v[i] < 0) {
            code = err_set(err, BT_IO, "the journal is damaged: %s is negative", MAXIMA[i]);
        }
    }
    if (code == BT_OK) {
        code = sqlite_gaps_top(s, GAP_SEQ, &seqs, err);
    }
    if (code == BT_OK) {
        code = sqlite_gaps_top(s, GAP_PLAN, &plans, err);
    }
    if (code == BT_OK) {
        s->base.pos = seqs << POS_K_BITS > (uint64_t)v[0] ? seqs << POS_K_BITS : (uint64_t)v[0];
        s->base.committed_pos = s->base.pos;
        s->now.plans = plans > (uint64_t)v[1] ? plans : (uint64_t)v[1];
        s->now.blobs = (uint64_t)v[2];
        s->now.gone = (uint64_t)v[4];
        s->committed = s->now;
        s->base.boot = (uint64_t)v[3] + 1;
        s->boot_due = true;
        code = count_boot(s, err);
    }
    return code;
}

static enum bt_code open_db(struct sqlite_journal *s, const struct journal_options *opt,
                            struct bt_error *err)
{
    char path[PATH_TEXT_MAX];
    int version;
    enum bt_code code = sqlite_path(s->dir, "journal.db", path, err);

    if (code == BT_OK) {
        code = sqlite_connect(path, &s->db, err);
    }
    if (code == BT_OK) {
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_LOOKASIDE, NULL, LOOKASIDE_SLOT,
                                LOOKASIDE_SLOTS);
        code = sqlite_version_check(s->db, &version, err);
    }
    if (code == BT_OK) {
        code = sqlite_keep_copy(s, version, err);
    }
    if (code == BT_OK) {
        sqlite_drop_copies(s);
        code = sqlite_migrate(s->db, err);
    }
    if (code == BT_OK) {
        code = sqlite_pragmas(s->db, opt, err);
    }
    if (code == BT_OK) {
        sqlite_space_open(s);
        code = s->base.dead ? err_set(err, BT_IO, "%s", s->base.why.msg) : BT_OK;
    }
    if (code == BT_OK) {
        code = prepare_all(s, err);
    }
    if (code == BT_OK) {
        (void)sqlite3_wal_hook(s->db, wal_hook, s);
        code = load(s, err);
    }
    if (code == BT_OK) {
        code = sqlite_adopt(s, opt, err);
    }
    return code;
}

enum bt_code journal_open_sqlite(const char *dir, const struct journal_options *opt,
                                 struct journal **ret, struct bt_error *err)
{
    struct sqlite_journal *s = NULL;
    enum bt_code code;

    *ret = NULL;
    if (strlen(dir) == 0 || strlen(dir) >= PATH_TEXT_MAX - 32) {
        return err_set(err, BT_INVALID, "the state directory must have a path of 1 to %d bytes",
                       PATH_TEXT_MAX - 32);
    }
    s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the journal");
    }
    s->base.ops = &SQLITE_OPS;
    s->lock_fd = -1;
    s->checkpoint_every = opt->checkpoint_pages != 0 && opt->checkpoint_pages < INT_MAX / 2
                              ? (int)opt->checkpoint_pages
                              : CHECKPOINT_PAGES;
    s->checkpoint_at = s->checkpoint_every;
    s->ballast_bytes = opt->ballast_bytes;
    buf_init(&s->plan_text, PLAN_TEXT_MAX);
    buf_init(&s->turn_text, TURN_TEXT_MAX);
    buf_init(&s->schedule_text, PLAN_TEXT_MAX);
    memcpy(s->dir, dir, strlen(dir) + 1);
    code = sqlite_lock_dir(dir, true, &s->lock_fd, err);
    if (code == BT_OK) {
        code = sqlite_check_file(dir, true, err);
    }
    if (code == BT_OK) {
        sqlite_space_take(s);
        code = open_db(s, opt, err);
    }
    if (code != BT_OK) {
        s->base.dead = true; /* leaves the files as they are */
        sqlite_done(&s->base);
        return code;
    }
    *ret = &s->base;
    return BT_OK;
}

const char *journal_sqlite_version(void)
{
    return sqlite3_libversion();
}

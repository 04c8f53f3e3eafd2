/* The journal on SQLite: open, the open batch, commit. One connection, one thread. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "supervisor/journal/log/sqlite_gather.h"
#include "supervisor/journal/sqlite_internal.h"

static const char *const STATEMENTS[SQL_COUNT] = {
#define SQL(name, text) [SQL_##name] = text,
    SQL_STATEMENTS(SQL)
#undef SQL
};

enum { LOOKASIDE_SLOT = 512, LOOKASIDE_SLOTS = 256 };

/* ---- statements ---- */

static int stmt_step_sqlite(struct stmt *st)
{
    const int rc = sqlite3_step(st->at);

    switch (rc & 0xff) {
    case SQLITE_ROW:
        return STMT_ROW;
    case SQLITE_DONE:
        return STMT_DONE;
    case SQLITE_CORRUPT:
    case SQLITE_IOERR:
        return STMT_DAMAGED;
    default:
        return STMT_ERROR;
    }
}

static void stmt_reset_sqlite(struct stmt *st)
{
    (void)sqlite3_reset(st->at);
}

static void stmt_bind_i64_sqlite(struct stmt *st, int at, int64_t v)
{
    (void)sqlite3_bind_int64(st->at, at, v);
}

static void stmt_bind_bytes_sqlite(struct stmt *st, int at, const void *bytes, size_t len,
                                   enum stmt_bytes kind)
{
    if (kind == STMT_TEXT) {
        (void)sqlite3_bind_text64(st->at, at, bytes, len, SQLITE_STATIC, SQLITE_UTF8);
    } else {
        (void)sqlite3_bind_blob64(st->at, at, bytes, len, SQLITE_STATIC);
    }
}

static void stmt_bind_null_sqlite(struct stmt *st, int at)
{
    (void)sqlite3_bind_null(st->at, at);
}

static int64_t stmt_col_i64_sqlite(struct stmt *st, int at)
{
    return sqlite3_column_int64(st->at, at);
}

static struct str stmt_col_bytes_sqlite(struct stmt *st, int at, enum stmt_bytes kind)
{
    const void *bytes = kind == STMT_TEXT ? (const void *)sqlite3_column_text(st->at, at)
                                          : sqlite3_column_blob(st->at, at);

    return bytes == NULL ? STR_LIT("")
                         : (struct str){bytes, (size_t)sqlite3_column_bytes(st->at, at)};
}

static bool stmt_nomem_sqlite(const struct stmt *st)
{
    return sqlite3_errcode(sqlite3_db_handle(st->at)) == SQLITE_NOMEM;
}

struct stmt sqlite_stmt(sqlite3_stmt *st)
{
    static const struct stmt_ops OPS = {
        .step = stmt_step_sqlite,
        .reset = stmt_reset_sqlite,
        .bind_i64 = stmt_bind_i64_sqlite,
        .bind_bytes = stmt_bind_bytes_sqlite,
        .bind_null = stmt_bind_null_sqlite,
        .col_i64 = stmt_col_i64_sqlite,
        .col_bytes = stmt_col_bytes_sqlite,
        .nomem = stmt_nomem_sqlite,
    };

    return (struct stmt){&OPS, st};
}

static sqlite3_stmt *raw(const struct sqlite_journal *s, enum sql which)
{
    return s->sql.stmt[which].at;
}

/* ---- the open batch ---- */

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

enum bt_code sqlite_write_error(struct sqlite_journal *s, const char *what, struct bt_error *err)
{
    enum bt_code code = sqlite_error(s->db, what, err);

    if (code == BT_CONFLICT) {
        code = err_set(err, BT_IO, "%s: another program has the database locked", what);
    }
    if (sqlite3_get_autocommit(s->db) == 0) {
        (void)sqlite3_step(raw(s, SQL_ROLLBACK));
        (void)sqlite3_reset(raw(s, SQL_ROLLBACK));
    }
    if (sqlite3_get_autocommit(s->db) == 0 && code == BT_UNAVAILABLE) {
        code =
            err_set(err, BT_IO, "%s: storage is full, and the batch cannot be rolled back", what);
    }
    sql_batch_forget(&s->sql);
    if (code != BT_UNAVAILABLE) {
        journal_die(&s->sql.base, err);
    }
    return code;
}

enum bt_code sqlite_run(struct sqlite_journal *s, enum sql which, const char *what,
                        struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (sqlite3_step(raw(s, which)) != SQLITE_DONE) {
        code = sqlite_write_error(s, what, err);
    }
    (void)sqlite3_reset(raw(s, which));
    return code;
}

enum bt_code sqlite_batch(struct sqlite_journal *s, size_t bytes, struct bt_error *err)
{
    s->sql.batch_bytes += bytes;
    if (s->sql.base.dirty) {
        return BT_OK;
    }
    return sqlite_run(s, SQL_BEGIN, "cannot open a batch", err);
}

static enum bt_code engine_batch(struct sql_journal *s, size_t bytes, struct bt_error *err)
{
    return sqlite_batch(sqlite_of(&s->base), bytes, err);
}

static enum bt_code engine_run(struct sql_journal *s, enum sql which, const char *what,
                               uint64_t *ret_changes, struct bt_error *err)
{
    struct sqlite_journal *of = sqlite_of(&s->base);
    const enum bt_code code = sqlite_run(of, which, what, err);

    if (ret_changes != NULL) {
        *ret_changes = code == BT_OK ? (uint64_t)sqlite3_changes(of->db) : 0;
    }
    return code;
}

static enum bt_code engine_undo(struct sql_journal *s, struct bt_error *err)
{
    return sqlite_run(sqlite_of(&s->base), SQL_ROLLBACK, "cannot end an empty batch", err);
}

static enum bt_code engine_error(struct sql_journal *s, const char *what, struct bt_error *err)
{
    return sqlite_error(sqlite_of(&s->base)->db, what, err);
}

static enum bt_code engine_write_error(struct sql_journal *s, const char *what,
                                       struct bt_error *err)
{
    return sqlite_write_error(sqlite_of(&s->base), what, err);
}

static const struct sql_engine SQLITE_ENGINE = {
    .batch = engine_batch,
    .run = engine_run,
    .undo = engine_undo,
    .error = engine_error,
    .write_error = engine_write_error,
};

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
        s->sql.base.storage_low = true;
        s->behind = true;
        return false;
    }
    journal_die(&s->sql.base, &why);
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

/* Agents and clients do not wait for the copy: sqlite_copy_log makes it when the effects of the
 * commit were performed. A large batch has been a pause already: the next commit copies, so that
 * the log has at most one more batch. On a disk that fills up the log is copied at once. */
static void copy_log_when_due(struct sqlite_journal *s, bool large)
{
    if (s->wal_frames < s->checkpoint_at) {
        return;
    }
    if (!s->copy_put_off && !s->sql.base.storage_low) {
        s->copy_put_off = true;
        s->copy_was_large = large;
        return;
    }
    s->copy_put_off = false;
    (void)sqlite_checkpoint(s);
}

static void sqlite_copy_log(struct journal *j)
{
    struct sqlite_journal *s = sqlite_of(j);

    if (s->copy_put_off && !s->copy_was_large) {
        s->copy_put_off = false;
        (void)sqlite_checkpoint(s);
    }
}

static enum bt_code sqlite_commit(struct journal *j, struct bt_error *err)
{
    struct sqlite_journal *s = sqlite_of(j);
    enum bt_code code;

    sqlite_space_check(j);
    code = sql_chain_flush(&s->sql, err);
    if (code == BT_OK) {
        code = sqlite_run(s, SQL_COMMIT, "cannot commit", err);
    }
    if (code != BT_OK) {
        return code;
    }
    ASSERT(!sqlite_gather_holds(s->db));
    s->sql.committed = s->sql.now;
    copy_log_when_due(s, s->sql.batch_bytes > LARGE_BATCH_BYTES);
    s->sql.batch_bytes = 0;
    return BT_OK;
}

static void sqlite_done(struct journal *j)
{
    struct sqlite_journal *s = sqlite_of(j);
    bool empty = false; /* all of the log is in the file */

    if (s->db != NULL && sqlite3_get_autocommit(s->db) == 0 && raw(s, SQL_ROLLBACK) != NULL) {
        (void)sqlite3_step(raw(s, SQL_ROLLBACK));
        (void)sqlite3_reset(raw(s, SQL_ROLLBACK));
    }
    sqlite_backup_cancel(s);
    if (s->db != NULL && !j->dead && s->ballast_bytes > 0) {
        empty = sqlite_checkpoint(s);
    }
    for (int i = 0; i < SQL_COUNT; i++) {
        (void)sqlite3_finalize(raw(s, i));
    }
    if (s->db != NULL) {
        /* After an error the files stay as they are: the next start reads what was really stored
         * (Q11, Q4). A log with reserved room is kept, too. */
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
                                s->sql.base.dead || s->ballast_bytes > 0 ? 1 : 0, NULL);
        int rc = sqlite3_close(s->db);
        ASSERT(rc == SQLITE_OK);
    }
    if (empty && !s->sql.base.dead) {
        sqlite_space_park(s);
    }
    if (s->lock_fd >= 0) {
        /* releases the lock; the file stays, or two daemons could lock two files */
        close(s->lock_fd);
    }
    sql_texts_done(&s->sql);
    free(s);
}

static void sqlite_space(struct journal *j);

static const struct journal_ops SQLITE_OPS = {
    SQL_OPS,
    .close = sqlite_done,
    .commit = sqlite_commit,
    .space = sqlite_space,
    .copy_log = sqlite_copy_log,
    .scrub = sqlite_scrub,
    .size = sqlite_size,
    .backup_begin = sqlite_backup_begin,
    .backup_step = sqlite_backup_step,
};

static enum bt_code prepare_all(struct sqlite_journal *s, struct bt_error *err)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_stmt *st = NULL;
        const int rc =
            sqlite3_prepare_v3(s->db, STATEMENTS[i], -1, SQLITE_PREPARE_PERSISTENT, &st, NULL);
        s->sql.stmt[i] = sqlite_stmt(st);
        if (rc != SQLITE_OK) {
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

    if (!s->boot_due || s->sql.base.storage_full) {
        return BT_OK;
    }
    code = sqlite_exec(s->db, "UPDATE meta SET value = value + 1 WHERE key = 'boot'", &why);
    if (code == BT_UNAVAILABLE) {
        s->sql.base.storage_low = s->sql.base.storage_full = true;
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
        code = sql_gaps_top(&s->sql, GAP_SEQ, &seqs, err);
    }
    if (code == BT_OK) {
        code = sql_gaps_top(&s->sql, GAP_PLAN, &plans, err);
    }
    if (code == BT_OK) {
        s->sql.base.pos = seqs << POS_K_BITS > (uint64_t)v[0] ? seqs << POS_K_BITS : (uint64_t)v[0];
        s->sql.base.committed_pos = s->sql.base.pos;
        s->sql.now.plans = plans > (uint64_t)v[1] ? plans : (uint64_t)v[1];
        s->sql.now.blobs = (uint64_t)v[2];
        s->sql.now.gone = (uint64_t)v[4];
        s->sql.committed = s->sql.now;
        s->sql.base.boot = (uint64_t)v[3] + 1;
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
        code = s->sql.base.dead ? err_set(err, BT_IO, "%s", s->sql.base.why.msg) : BT_OK;
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
    s->sql.base.ops = &SQLITE_OPS;
    s->sql.engine = &SQLITE_ENGINE;
    s->lock_fd = -1;
    s->checkpoint_every = opt->checkpoint_pages != 0 && opt->checkpoint_pages < INT_MAX / 2
                              ? (int)opt->checkpoint_pages
                              : CHECKPOINT_PAGES;
    s->checkpoint_at = s->checkpoint_every;
    s->ballast_bytes = opt->ballast_bytes;
    sql_texts_init(&s->sql);
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
        s->sql.base.dead = true; /* leaves the files as they are */
        sqlite_done(&s->sql.base);
        return code;
    }
    *ret = &s->sql.base;
    return BT_OK;
}

const char *journal_sqlite_version(void)
{
    return sqlite3_libversion();
}

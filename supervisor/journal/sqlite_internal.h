/* Shared by journal_sqlite.c and sqlite_*.c. */
#ifndef JOURNAL_SQLITE_INTERNAL_H
#define JOURNAL_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "supervisor/journal/sql.h"

enum {
    SCHEMA_VERSION = 8,
    APPLICATION_ID = 0x4261746F, /* "Bato" */
    PATH_TEXT_MAX = 4096,
    CHECKPOINT_PAGES = 1000, /* of the log: 4 MB, a pause of some ms; see README */
    /* rows go to the ends of tables; the kernel caches what is read again */
    LARGE_BATCH_BYTES = 1024 * 1024, /* its commit takes some 10 ms */
    CACHE_KIB = 2 * 1024,
    WAL_LIMIT_BYTES = 16 * 1024 * 1024
};

struct sqlite_copy;

struct sqlite_journal {
    struct sql_journal sql;
    sqlite3 *db;
    int lock_fd;
    int wal_frames;           /* after the last commit */
    int checkpoint_every;     /* frames */
    int checkpoint_at;        /* the same, or more after a checkpoint that failed */
    bool copy_put_off;        /* the commit before has left the log as it is */
    bool copy_was_large;      /* and was large: the next commit copies */
    uint64_t ballast_bytes;   /* of the log, to be allocated in advance; 0 = none */
    uint64_t reserved;        /* of them allocated */
    msec space_due;           /* when the file system is asked for its room; 0 = at every commit */
    bool behind;              /* the log could not be copied, because the disk is full */
    bool boot_due;            /* the number of this daemon is not stored yet */
    struct sqlite_copy *copy; /* that is being made; NULL = none */
    char dir[PATH_TEXT_MAX];
};

static inline struct sqlite_journal *sqlite_of(struct journal *j)
{
    return (struct sqlite_journal *)j;
}

/* A statement of SQLite as those of sql_*.c; the caller finalizes it. */
struct stmt sqlite_stmt(sqlite3_stmt *st);

/* ---- sqlite_open.c: files ---- */
/* Makes DIR (0700, parents too) and locks DIR/lock. *ret_fd is -1 on failure. */
enum bt_code sqlite_lock_dir(const char *dir, bool create, int *ret_fd, struct bt_error *err);
/* Checks that DIR/journal.db is a journal of Baton. Without one, makes it when `create`;
 * BT_NOT_FOUND otherwise. */
enum bt_code sqlite_check_file(const char *dir, bool create, struct bt_error *err);
/* Makes the name of a new file or directory survive a power cut. */
enum bt_code sqlite_sync_dir(const char *dir, struct bt_error *err);
/* Whether the file is a journal of Baton, by its first bytes (Q6). */
enum bt_code sqlite_check_header(const char *path, struct bt_error *err);
/* DIR/name into ret (PATH_TEXT_MAX). */
enum bt_code sqlite_path(const char *dir, const char *name, char *ret, struct bt_error *err);

/* ---- sqlite_schema.c: the open database ---- */
enum bt_code sqlite_connect(const char *path, sqlite3 **ret, struct bt_error *err);
enum bt_code sqlite_pragmas(sqlite3 *db, const struct journal_options *opt, struct bt_error *err);
/* Rejects newer versions, migrates older ones. */
enum bt_code sqlite_migrate(sqlite3 *db, struct bt_error *err);
enum bt_code sqlite_version_check(sqlite3 *db, int *ret_version, struct bt_error *err);
/* Runs an SQL text that returns one number. */
enum bt_code sqlite_number(sqlite3 *db, const char *sql, int64_t *ret, struct bt_error *err);
enum bt_code sqlite_exec(sqlite3 *db, const char *sql, struct bt_error *err);

/* ---- sqlite_space.c: room on the disk (Q13, Q18, G20) ---- */
/* Before the database is opened: the room that the last daemon kept becomes the log's. */
void sqlite_space_take(struct sqlite_journal *s);
/* Allocates the log; then the first check. */
void sqlite_space_open(struct sqlite_journal *s);
/* After the database was closed with an empty log: keeps the log's room for the next start. */
void sqlite_space_park(const struct sqlite_journal *s);
/* Sets storage_low and storage_full; called before a commit, and by the port while storage is low.
 * Between batches it copies a log that had no room. */
void sqlite_space_check(struct journal *j);
/* Free bytes on the disk; UINT64_MAX when that is not known. */
uint64_t sqlite_space_room(const struct sqlite_journal *s);

/* ---- journal_sqlite.c ---- */
/* Fills *err from the connection: SQLITE_FULL is BT_UNAVAILABLE, SQLITE_NOMEM BT_NOMEM, the rest
 * BT_IO. */
enum bt_code sqlite_error(sqlite3 *db, const char *what, struct bt_error *err);
/* The same for a failed write: rolls the batch back. BT_UNAVAILABLE only when that has succeeded
 * (Q2). */
enum bt_code sqlite_write_error(struct sqlite_journal *s, const char *what, struct bt_error *err);
/* Copies the log into the file, not while a batch is open. False: not all of it (Q3). */
bool sqlite_checkpoint(struct sqlite_journal *s);
/* Begins a batch when none is open; adds bytes to its estimate. */
enum bt_code sqlite_batch(struct sqlite_journal *s, size_t bytes, struct bt_error *err);
/* Steps a writing statement to its end and resets it. */
enum bt_code sqlite_run(struct sqlite_journal *s, enum sql which, const char *what,
                        struct bt_error *err);

/* ---- sqlite_copy.c ---- */
/* Before a migration: DIR/journal.db.v<version> has the journal as it is. BT_UNAVAILABLE: no room.
 */
enum bt_code sqlite_keep_copy(struct sqlite_journal *s, int version, struct bt_error *err);
/* Removes copies that are older than 30 days. */
void sqlite_drop_copies(const struct sqlite_journal *s);

/* ---- sqlite_scrub.c ---- */
enum bt_code sqlite_scrub(struct journal *j, struct journal_scrub *io, uint64_t max_bytes,
                          journal_problem_fn fn, void *self, struct bt_error *err);
/* The same for a database of that version. */
void sqlite_scrub_db(sqlite3 *db, int version, struct journal_scrub *io, uint64_t max_bytes,
                     journal_problem_fn fn, void *self);

/* ---- sqlite_backup.c, sqlite_verify.c ---- */
enum bt_code sqlite_backup_begin(struct journal *j, const char *path, struct bt_error *err);
enum bt_code sqlite_backup_step(struct journal *j, uint32_t pages, struct journal_backup *ret,
                                struct bt_error *err);
void sqlite_backup_cancel(struct sqlite_journal *s);
/* A file without a log, for reading; closed by the caller also after a failure. BT_INVALID: it is
 * no journal, or of a version without hashes. */
enum bt_code sqlite_open_copy(const char *path, sqlite3 **ret, struct bt_error *err);
/* Notes blobs and chains of the plans of a journal that was migrated; goes on where an earlier
 * start was interrupted. */
enum bt_code sqlite_adopt(struct sqlite_journal *s, const struct journal_options *opt,
                          struct bt_error *err);
enum bt_code sqlite_size(struct journal *j, struct journal_size *ret, struct bt_error *err);
#endif

/* The VFS that holds the frames of a commit: what reaches the file, and when. The disk is a fake in
 * memory, and SQLite runs on it, too. */
#include "tests/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "supervisor/journal/crc32c.h"
#include "supervisor/journal/log/sqlite_gather.h"
#include "tests/support/random.h"

/* ---- a disk in memory: one database and its log ---- */

enum { PAGE = 4096, HEADER = 24, FRAME = HEADER + PAGE, LOG_HEADER = 32, ROUNDS = 40 };

struct bytes {
    uint8_t *at;
    size_t n;
    size_t cap;
};

struct disk_file {
    sqlite3_file base;
    struct bytes *of;
};

static struct {
    sqlite3_vfs vfs;
    struct bytes db;
    struct bytes log;
    uint32_t writes; /* of the log */
    uint32_t syncs;
    int device;
    int fails;  /* the code that a write of the log returns; SQLITE_OK = it succeeds */
    bool halve; /* a write that fails has written its first half */
    bool open_fails;
} disk;

static struct bytes *of(sqlite3_file *f)
{
    return ((struct disk_file *)(void *)f)->of;
}

static int disk_close(sqlite3_file *f)
{
    (void)f;
    return SQLITE_OK;
}

static int disk_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    const struct bytes *b = of(f);
    const size_t have = (size_t)at < b->n ? b->n - (size_t)at : 0;
    const size_t take = have < (size_t)n ? have : (size_t)n;

    memset(to, 0, (size_t)n);
    if (take > 0) {
        memcpy(to, b->at + at, take);
    }
    return take == (size_t)n ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static void resize(struct bytes *b, size_t n)
{
    if (n > b->cap) {
        b->cap = n * 2;
        b->at = realloc(b->at, b->cap);
        assert_non_null(b->at);
    }
    if (n > b->n) {
        memset(b->at + b->n, 0, n - b->n);
    }
    b->n = n;
}

static int disk_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    struct bytes *b = of(f);
    const bool fails = b == &disk.log && disk.fails != SQLITE_OK;
    const size_t take = !fails ? (size_t)n : disk.halve ? (size_t)n / 2 : 0;

    disk.writes += b == &disk.log ? 1u : 0u;
    if (take > 0 && (size_t)at + take > b->n) {
        resize(b, (size_t)at + take);
    }
    if (take > 0) {
        memcpy(b->at + at, from, take);
    }
    return fails ? disk.fails : SQLITE_OK;
}

static int disk_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    resize(of(f), (size_t)size);
    return SQLITE_OK;
}

static int disk_sync(sqlite3_file *f, int flags)
{
    (void)flags;
    disk.syncs += of(f) == &disk.log ? 1u : 0u;
    return SQLITE_OK;
}

static int disk_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)of(f)->n;
    return SQLITE_OK;
}

static int disk_lock(sqlite3_file *f, int level)
{
    (void)f;
    (void)level;
    return SQLITE_OK;
}

static int disk_reserved(sqlite3_file *f, int *ret)
{
    (void)f;
    *ret = 0;
    return SQLITE_OK;
}

static int disk_control(sqlite3_file *f, int op, void *arg)
{
    (void)f;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int disk_sector(sqlite3_file *f)
{
    (void)f;
    return PAGE;
}

static int disk_device(sqlite3_file *f)
{
    (void)f;
    return disk.device;
}

static const sqlite3_io_methods DISK_METHODS = {.iVersion = 1,
                                                .xClose = disk_close,
                                                .xRead = disk_read,
                                                .xWrite = disk_write,
                                                .xTruncate = disk_truncate,
                                                .xSync = disk_sync,
                                                .xFileSize = disk_size,
                                                .xLock = disk_lock,
                                                .xUnlock = disk_lock,
                                                .xCheckReservedLock = disk_reserved,
                                                .xFileControl = disk_control,
                                                .xSectorSize = disk_sector,
                                                .xDeviceCharacteristics = disk_device};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct disk_file *file = (struct disk_file *)(void *)f;

    (void)vfs;
    (void)name;
    file->base.pMethods = NULL;
    if (disk.open_fails) {
        return SQLITE_CANTOPEN;
    }
    file->of = (flags & SQLITE_OPEN_WAL) != 0 ? &disk.log : &disk.db;
    file->base.pMethods = &DISK_METHODS;
    if (ret_flags != NULL) {
        *ret_flags = flags;
    }
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    (void)vfs;
    (void)sync_dir;
    if (strstr(name, "-wal") != NULL) {
        disk.log.n = 0;
    }
    return SQLITE_OK;
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    (void)flags;
    *ret = strstr(name, "-wal") != NULL ? disk.log.n > 0 : strstr(name, "-journal") == NULL;
    return SQLITE_OK;
}

static int disk_path(sqlite3_vfs *vfs, const char *name, int n, char *ret)
{
    (void)vfs;
    (void)sqlite3_snprintf(n, ret, "%s", name);
    return SQLITE_OK;
}

/* The default VFS before sqlite_gather_vfs is called the first time. */
static int install(void **state)
{
    (void)state;
    disk.vfs = *sqlite3_vfs_find(NULL);
    disk.vfs.pNext = NULL;
    disk.vfs.zName = "disk";
    disk.vfs.szOsFile = (int)sizeof(struct disk_file);
    disk.vfs.xOpen = disk_open;
    disk.vfs.xDelete = disk_delete;
    disk.vfs.xAccess = disk_access;
    disk.vfs.xFullPathname = disk_path;
    return sqlite3_vfs_register(&disk.vfs, 1) == SQLITE_OK && sqlite_gather_vfs() != NULL ? 0 : -1;
}

static void forget(void)
{
    free(disk.db.at);
    free(disk.log.at);
    disk.db = disk.log = (struct bytes){0};
    disk.writes = disk.syncs = 0;
    disk.device = SQLITE_IOCAP_POWERSAFE_OVERWRITE;
    disk.fails = SQLITE_OK;
    disk.halve = disk.open_fails = false;
}

static int fresh(void **state)
{
    (void)state;
    forget();
    return 0;
}

static int gone(void **state)
{
    (void)state;
    forget();
    return 0;
}

/* ---- the file by itself ---- */

static sqlite3_file *open_file(int flags)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(sqlite_gather_vfs());
    sqlite3_file *f = calloc(1, (size_t)vfs->szOsFile);

    assert_non_null(f);
    assert_int_equal(vfs->xOpen(vfs, "x", f, SQLITE_OPEN_READWRITE | flags, NULL), SQLITE_OK);
    return f;
}

static sqlite3_file *open_log(void)
{
    return open_file(SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL);
}

static int close_file(sqlite3_file *f)
{
    const int rc = f->pMethods->xClose(f);

    free(f);
    return rc;
}

static sqlite3_int64 place(int frame)
{
    return LOG_HEADER + (sqlite3_int64)frame * FRAME;
}

static int write_header(sqlite3_file *f, int frame, bool commit)
{
    uint8_t header[HEADER] = {(uint8_t)(frame + 1)};

    header[7] = commit ? 9 : 0;
    return f->pMethods->xWrite(f, header, HEADER, place(frame));
}

static int write_page(sqlite3_file *f, int frame)
{
    uint8_t page[PAGE];

    memset(page, frame + 1, sizeof page);
    return f->pMethods->xWrite(f, page, PAGE, place(frame) + HEADER);
}

/* The first error of the two. */
static int write_frame(sqlite3_file *f, int frame, bool commit)
{
    const int rc = write_header(f, frame, commit);

    return rc != SQLITE_OK ? rc : write_page(f, frame);
}

static void frames_are_in(int n)
{
    assert_int_equal(disk.log.n, n == 0 ? 0 : place(n));
    for (int i = 0; i < n; i++) {
        assert_int_equal(disk.log.at[place(i)], i + 1);
        assert_int_equal(disk.log.at[place(i) + HEADER], i + 1);
        assert_int_equal(disk.log.at[place(i) + FRAME - 1], i + 1);
    }
}

static void the_frames_of_a_commit_are_one_write(void **state)
{
    sqlite3_file *f = open_log();

    (void)state;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(write_frame(f, i, false), SQLITE_OK);
    }
    assert_int_equal(disk.writes, 0);
    assert_int_equal(write_header(f, 6, true), SQLITE_OK);
    assert_int_equal(disk.writes, 0);
    assert_int_equal(write_page(f, 6), SQLITE_OK);
    assert_int_equal(disk.writes, 1);
    frames_are_in(7);
    assert_int_equal(close_file(f), SQLITE_OK);
    assert_int_equal(disk.writes, 1);
}

static void a_commit_of_one_frame_is_in_the_file_when_its_page_was_written(void **state)
{
    sqlite3_file *f = open_log();

    (void)state;
    assert_int_equal(write_frame(f, 0, true), SQLITE_OK);
    frames_are_in(1);
    assert_int_equal(close_file(f), SQLITE_OK);
}

/* SQLite computes checksums anew when it has overwritten a frame: it reads each frame, then writes
 * its header alone. */
static void a_commits_header_that_is_written_alone_goes_through(void **state)
{
    static uint8_t frame[FRAME];
    sqlite3_file *f = open_log();

    (void)state;
    assert_int_equal(write_frame(f, 0, false), SQLITE_OK);
    assert_int_equal(write_frame(f, 1, true), SQLITE_OK);
    disk.writes = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f->pMethods->xRead(f, frame, FRAME, place(i)), SQLITE_OK);
        assert_int_equal(write_header(f, i, i == 1), SQLITE_OK);
    }
    assert_int_equal(disk.writes, 2);
    frames_are_in(2);
    assert_int_equal(close_file(f), SQLITE_OK);
    assert_int_equal(disk.writes, 2);
}

static void what_begins_no_frame_goes_through(void **state)
{
    static const uint8_t header[LOG_HEADER] = {1};
    sqlite3_file *f = open_log();

    (void)state;
    assert_int_equal(f->pMethods->xWrite(f, header, LOG_HEADER, 0), SQLITE_OK);
    assert_int_equal(disk.writes, 1);
    assert_int_equal(write_page(f, 3), SQLITE_OK); /* in place of an older one */
    assert_int_equal(disk.writes, 2);
    assert_int_equal(close_file(f), SQLITE_OK);
}

static int sync_file(sqlite3_file *f)
{
    return f->pMethods->xSync(f, SQLITE_SYNC_NORMAL);
}

static int size_file(sqlite3_file *f)
{
    sqlite3_int64 size = 0;
    const int rc = f->pMethods->xFileSize(f, &size);

    assert_true(rc != SQLITE_OK || size == place(1));
    return rc;
}

static int truncate_file(sqlite3_file *f)
{
    return f->pMethods->xTruncate(f, place(1));
}

static int unlock_file(sqlite3_file *f)
{
    return f->pMethods->xUnlock(f, SQLITE_LOCK_NONE);
}

static int write_elsewhere(sqlite3_file *f)
{
    return write_header(f, 0, false);
}

static int read_across(sqlite3_file *f)
{
    uint8_t bytes[LOG_HEADER + HEADER];

    return f->pMethods->xRead(f, bytes, (int)sizeof bytes, 0);
}

typedef int (*act_fn)(sqlite3_file *f);

static const act_fn ACTS[] = {sync_file,   size_file,       truncate_file,
                              unlock_file, write_elsewhere, read_across};

static void what_is_held_is_written_before_anything_else_happens(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ACTS / sizeof ACTS[0]; i++) {
        sqlite3_file *f = open_log();
        assert_int_equal(write_frame(f, 0, false), SQLITE_OK);
        assert_int_equal(disk.writes, 0);
        assert_int_equal(ACTS[i](f), SQLITE_OK);
        frames_are_in(1);
        assert_int_equal(close_file(f), SQLITE_OK);
        forget();
    }
}

static void a_close_writes_what_is_held_and_says_when_it_cannot(void **state)
{
    sqlite3_file *f = open_log();

    (void)state;
    assert_int_equal(write_frame(f, 0, false), SQLITE_OK);
    assert_int_equal(close_file(f), SQLITE_OK);
    frames_are_in(1);
    f = open_log();
    assert_int_equal(write_frame(f, 1, false), SQLITE_OK);
    disk.fails = SQLITE_IOERR_WRITE;
    assert_int_equal(close_file(f), SQLITE_IOERR_WRITE);
}

static void a_read_of_what_is_held_is_answered_from_memory(void **state)
{
    uint8_t page[PAGE];
    sqlite3_file *f = open_log();

    (void)state;
    assert_int_equal(write_frame(f, 0, false), SQLITE_OK);
    assert_int_equal(write_frame(f, 1, false), SQLITE_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f->pMethods->xRead(f, page, PAGE, place(i) + HEADER), SQLITE_OK);
        assert_int_equal(page[0], i + 1);
        assert_int_equal(page[PAGE - 1], i + 1);
    }
    assert_int_equal(disk.writes, 0);
    assert_int_equal(close_file(f), SQLITE_OK);
}

static void no_more_is_held_than_the_bound(void **state)
{
    enum { FIT = GATHER_BYTES / FRAME };
    sqlite3_file *f = open_log();

    (void)state;
    for (int i = 0; i < FIT; i++) {
        assert_int_equal(write_frame(f, i, false), SQLITE_OK);
    }
    assert_int_equal(disk.writes, 0);
    assert_int_equal(write_frame(f, FIT, false), SQLITE_OK);
    assert_true(disk.writes > 0);
    assert_true(disk.log.n >= (size_t)place(FIT));
    assert_int_equal(write_frame(f, FIT + 1, true), SQLITE_OK);
    frames_are_in(FIT + 2);
    assert_int_equal(close_file(f), SQLITE_OK);
}

/* ---- a write that fails ---- */

static void the_call_that_needed_the_write_returns_its_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ACTS / sizeof ACTS[0]; i++) {
        sqlite3_file *f = open_log();
        assert_int_equal(write_frame(f, 0, false), SQLITE_OK);
        disk.fails = SQLITE_FULL;
        assert_int_equal(ACTS[i](f), SQLITE_FULL);
        disk.fails = SQLITE_OK;
        assert_int_equal(close_file(f), SQLITE_OK);
        forget();
    }
}

static void the_last_page_of_a_commit_returns_the_error_of_its_frames(void **state)
{
    static const int CODES[] = {SQLITE_FULL, SQLITE_IOERR_WRITE};

    (void)state;
    for (int i = 0; i < 4; i++) {
        sqlite3_file *f = open_log();
        assert_int_equal(write_frame(f, 0, false), SQLITE_OK);
        assert_int_equal(write_header(f, 1, true), SQLITE_OK);
        disk.fails = CODES[i / 2];
        disk.halve = i % 2 != 0;
        assert_int_equal(write_page(f, 1), CODES[i / 2]);
        disk.fails = SQLITE_OK;
        assert_int_equal(close_file(f), SQLITE_OK);
        assert_true(disk.log.n < (size_t)place(2));
        forget();
    }
}

/* A commit that was refused cannot appear later. */
static void what_was_lost_is_not_written_a_second_time(void **state)
{
    sqlite3_file *f = open_log();

    (void)state;
    assert_int_equal(write_frame(f, 0, false), SQLITE_OK);
    disk.fails = SQLITE_FULL;
    assert_int_equal(write_frame(f, 1, true), SQLITE_FULL);
    disk.fails = SQLITE_OK;
    for (size_t i = 0; i < sizeof ACTS / sizeof ACTS[0]; i++) {
        if (ACTS[i] != truncate_file && ACTS[i] != size_file && ACTS[i] != read_across) {
            assert_int_equal(ACTS[i](f), SQLITE_OK);
        }
    }
    assert_true(disk.log.n <= (size_t)place(0) + HEADER);
    assert_int_equal(close_file(f), SQLITE_OK);
    assert_true(disk.log.n <= (size_t)place(0) + HEADER);
}

/* Else a transaction that goes on could be committed without them. */
static void a_transaction_whose_frames_were_lost_cannot_go_on(void **state)
{
    uint8_t page[PAGE];
    sqlite3_file *f = open_log();

    (void)state;
    assert_int_equal(write_frame(f, 0, true), SQLITE_OK);
    assert_int_equal(write_frame(f, 1, false), SQLITE_OK);
    disk.fails = SQLITE_FULL;
    assert_int_equal(sync_file(f), SQLITE_FULL);
    disk.fails = SQLITE_OK;
    assert_int_equal(write_frame(f, 2, true), SQLITE_FULL);
    assert_int_equal(write_page(f, 1), SQLITE_FULL);
    assert_int_equal(f->pMethods->xRead(f, page, PAGE, place(1) + HEADER), SQLITE_FULL);
    assert_int_equal(f->pMethods->xRead(f, page, PAGE, place(0) + HEADER), SQLITE_OK);
    assert_int_equal(write_page(f, 0), SQLITE_OK); /* an older frame in place: it is no new begin */
    assert_int_equal(write_frame(f, 2, true), SQLITE_FULL);
    assert_int_equal(write_frame(f, 1, true), SQLITE_OK);
    assert_int_equal(write_frame(f, 2, true), SQLITE_OK);
    frames_are_in(3);
    assert_int_equal(close_file(f), SQLITE_OK);
}

static void a_log_that_is_begun_again_forgets_what_was_lost(void **state)
{
    static const uint8_t header[LOG_HEADER] = {1};
    sqlite3_file *f = open_log();

    (void)state;
    assert_int_equal(write_frame(f, 0, true), SQLITE_OK);
    assert_int_equal(write_frame(f, 1, false), SQLITE_OK);
    disk.fails = SQLITE_IOERR_WRITE;
    assert_int_equal(sync_file(f), SQLITE_IOERR_WRITE);
    disk.fails = SQLITE_OK;
    assert_int_equal(f->pMethods->xWrite(f, header, LOG_HEADER, 0), SQLITE_OK);
    assert_int_equal(write_frame(f, 2, true), SQLITE_OK);
    assert_int_equal(close_file(f), SQLITE_OK);
}

/* ---- other files and devices ---- */

static void other_files_are_those_of_the_default(void **state)
{
    sqlite3_file *f = open_file(SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB);

    (void)state;
    assert_ptr_equal(f->pMethods, &DISK_METHODS);
    assert_int_equal(close_file(f), SQLITE_OK);
}

static void a_device_whose_sectors_a_write_may_damage_gets_every_write(void **state)
{
    sqlite3_file *f;

    (void)state;
    disk.device = 0;
    f = open_log();
    assert_int_equal(write_frame(f, 0, false), SQLITE_OK);
    assert_int_equal(disk.writes, 2);
    assert_int_equal(close_file(f), SQLITE_OK);
}

static void a_log_that_cannot_be_opened_needs_no_close(void **state)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(sqlite_gather_vfs());
    sqlite3_file *f = calloc(1, (size_t)vfs->szOsFile);

    (void)state;
    assert_non_null(f);
    disk.open_fails = true;
    assert_int_equal(vfs->xOpen(vfs, "x", f, SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL, NULL),
                     SQLITE_CANTOPEN);
    assert_null(f->pMethods);
    free(f);
}

/* ---- SQLite on it ---- */

static void run(sqlite3 *db, const char *sql)
{
    char *why = NULL;

    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s: %s", sql, why);
    }
}

static sqlite3 *open_db(const char *vfs, const char *synchronous)
{
    char sql[256];
    sqlite3 *db;

    assert_int_equal(sqlite3_open_v2("x", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs),
                     SQLITE_OK);
    (void)sqlite3_snprintf((int)sizeof sql, sql,
                           "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                           "PRAGMA synchronous = %s; PRAGMA wal_autocheckpoint = 0;"
                           "PRAGMA cache_size = 10; PRAGMA temp_store = MEMORY;",
                           synchronous);
    run(db, sql);
    return db;
}

static void a_commit_of_sqlite_is_one_write_before_its_sync(void **state)
{
    static const char *const SYNCHRONOUS[] = {"NORMAL", "FULL"};

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        sqlite3 *db = open_db(sqlite_gather_vfs(), SYNCHRONOUS[i]);
        run(db, "CREATE TABLE a(x); CREATE TABLE b(x); CREATE TABLE c(x);");
        run(db, "INSERT INTO a VALUES(1)");
        disk.writes = disk.syncs = 0;
        run(db, "BEGIN; INSERT INTO a VALUES(2); INSERT INTO b VALUES(2);"
                "INSERT INTO c VALUES(zeroblob(9000)); COMMIT");
        assert_int_equal(disk.writes, 1);
        assert_int_equal(disk.syncs, i);
        assert_false(sqlite_gather_holds(db));
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        forget();
    }
}

/* One of the next things a writer may do; the same for both. */
static void do_next(sqlite3 *db, struct rng *r)
{
    char sql[256];
    const uint32_t x = rng_below(r, 1000000);
    const uint32_t bytes = rng_below(r, 3) == 0 ? rng_below(r, 60000) : rng_below(r, 300);

    switch (rng_below(r, 12)) {
    case 0:
        run(db, "SAVEPOINT s");
        (void)sqlite3_snprintf((int)sizeof sql, sql, "UPDATE t SET y = zeroblob(%u) WHERE x > %u",
                               bytes / 8, x);
        run(db, sql);
        run(db, rng_below(r, 2) == 0 ? "ROLLBACK TO s; RELEASE s" : "RELEASE s");
        return;
    case 1:
        (void)sqlite3_snprintf((int)sizeof sql, sql, "DELETE FROM t WHERE x %% 7 = %u", x % 7);
        break;
    case 2:
        (void)sqlite3_snprintf((int)sizeof sql, sql, "SELECT sum(length(y)) FROM t WHERE x > %u",
                               x);
        break;
    default:
        (void)sqlite3_snprintf((int)sizeof sql, sql,
                               "INSERT OR REPLACE INTO t VALUES(%u, zeroblob(%u))", x, bytes);
        break;
    }
    run(db, sql);
}

/* Checksums of all files after each commit; SQLite's random numbers begin the same. */
static uint32_t history(const char *vfs, uint64_t seed, const char *synchronous, uint32_t *ret)
{
    struct rng r = {seed};
    uint32_t n = 0;
    sqlite3 *db;

    (void)sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, (int)(seed & 0xFFFF) + 1, NULL);
    db = open_db(vfs, synchronous);
    run(db, "CREATE TABLE t(x INTEGER PRIMARY KEY, y); CREATE INDEX i ON t(length(y));");
    for (int i = 0; i < ROUNDS; i++) {
        run(db, "BEGIN IMMEDIATE; INSERT OR REPLACE INTO t VALUES(-1, random())");
        for (uint32_t k = 1 + rng_below(&r, 12); k > 0; k--) {
            do_next(db, &r);
        }
        if (rng_below(&r, 5) == 0) {
            run(db, "ROLLBACK"); /* its spilled frames may be held, and need not be in the file */
            continue;
        }
        run(db, "COMMIT");
        ret[n++] = crc32c_bytes(crc32c_bytes(0, disk.db.at, disk.db.n), disk.log.at, disk.log.n);
        if (rng_below(&r, 6) == 0) {
            run(db, "PRAGMA wal_checkpoint(PASSIVE)");
        }
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return n;
}

/* Spilled pages, savepoints, rollbacks, frames that are overwritten: a log that is read by another
 * program, or after a kill, is the one that SQLite writes alone. */
static void after_each_commit_the_files_are_those_without_it(void **state)
{
    struct rng r = rng_seeded(__func__);

    (void)state;
    for (int i = 0; i < 20; i++) {
        const uint64_t seed = rng_next(&r);
        const char *synchronous = i % 2 == 0 ? "NORMAL" : "FULL";
        uint32_t with[ROUNDS];
        uint32_t without[ROUNDS];
        const uint32_t n = history("disk", seed, synchronous, without);
        const uint32_t writes = disk.writes;
        forget();
        assert_int_equal(history(sqlite_gather_vfs(), seed, synchronous, with), n);
        assert_memory_equal(with, without, n * sizeof with[0]);
        assert_true(disk.writes * 2 < writes);
        forget();
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, gone)
    const struct CMUnitTest tests[] = {
        TEST(the_frames_of_a_commit_are_one_write),
        TEST(a_commit_of_one_frame_is_in_the_file_when_its_page_was_written),
        TEST(a_commits_header_that_is_written_alone_goes_through),
        TEST(what_begins_no_frame_goes_through),
        TEST(what_is_held_is_written_before_anything_else_happens),
        TEST(a_close_writes_what_is_held_and_says_when_it_cannot),
        TEST(a_read_of_what_is_held_is_answered_from_memory),
        TEST(no_more_is_held_than_the_bound),
        TEST(the_call_that_needed_the_write_returns_its_error),
        TEST(the_last_page_of_a_commit_returns_the_error_of_its_frames),
        TEST(what_was_lost_is_not_written_a_second_time),
        TEST(a_transaction_whose_frames_were_lost_cannot_go_on),
        TEST(a_log_that_is_begun_again_forgets_what_was_lost),
        TEST(other_files_are_those_of_the_default),
        TEST(a_device_whose_sectors_a_write_may_damage_gets_every_write),
        TEST(a_log_that_cannot_be_opened_needs_no_close),
        TEST(a_commit_of_sqlite_is_one_write_before_its_sync),
        TEST(after_each_commit_the_files_are_those_without_it),
    };
    return cmocka_run_group_tests(tests, install, NULL);
}

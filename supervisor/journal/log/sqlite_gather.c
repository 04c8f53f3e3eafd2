#include "supervisor/journal/log/sqlite_gather.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "supervisor/core/mutant.h"

enum { FRAME_HEADER = 24, HEADER_SIZE_AT = 4, LOG_HEADER = 32 };

/* A write-ahead log; the file of the VFS below lies behind it. */
struct gather {
    sqlite3_file base;
    uint8_t *bytes;   /* GATHER_BYTES; NULL = nothing is ever held */
    sqlite3_int64 at; /* the place of what is held, or of what was lost */
    int held;         /* bytes */
    bool ends;        /* the last header that is held is a commit's */
    int lost;         /* SQLITE_OK, or the error of the write that failed */
};

enum { GATHER_ROOM = (sizeof(struct gather) + 15) / 16 * 16 };

static sqlite3_vfs ours;
static sqlite3_vfs *below; /* NULL = not registered */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct gather *gather_of(sqlite3_file *file)
{
    return (struct gather *)(void *)file;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((char *)file + GATHER_ROOM);
}

/* Writes what is held. */
static int flush(sqlite3_file *file)
{
    struct gather *g = gather_of(file);
    const int n = g->held;
    int rc;

    if (n == 0) {
        return SQLITE_OK;
    }
    g->held = 0;
    g->ends = false;
    rc = real_of(file)->pMethods->xWrite(real_of(file), g->bytes, n, g->at);
    g->lost = rc;
    return MUTANT(GATHER_ERROR_LOST) ? SQLITE_OK : rc;
}

static bool is_commit(const uint8_t *header)
{
    uint8_t any = 0;

    for (int i = 0; i < 4; i++) {
        any |= header[HEADER_SIZE_AT + i];
    }
    return any != 0;
}

/* Whether the frames that were lost are written anew. */
static bool begins_anew(const struct gather *g, int n, sqlite3_int64 at)
{
    return (n == FRAME_HEADER && at <= g->at) || (n == LOG_HEADER && at == 0);
}

static int on_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
    struct gather *g = gather_of(file);
    const bool commit = n == FRAME_HEADER && is_commit(from);
    int rc = SQLITE_OK;

    if (g->lost != SQLITE_OK && begins_anew(g, n, at)) {
        g->lost = SQLITE_OK;
    }
    if (g->lost != SQLITE_OK && at + n > g->at && !MUTANT(GATHER_ERROR_LOST)) {
        return g->lost;
    }
    if (at != g->at + g->held || n > GATHER_BYTES - g->held) {
        rc = flush(file);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (g->held == 0 && (n != FRAME_HEADER || commit || g->bytes == NULL)) {
        return real_of(file)->pMethods->xWrite(real_of(file), from, n, at);
    }
    g->at = g->held == 0 ? at : g->at;
    memcpy(g->bytes + g->held, from, (size_t)n);
    g->held += n;
    if (!g->ends || MUTANT(GATHER_COMMIT_HELD)) {
        g->ends = commit;
        return SQLITE_OK;
    }
    return flush(file); /* the page of the last frame */
}

static int on_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    struct gather *g = gather_of(file);
    const sqlite3_int64 end = g->at + g->held;
    const bool held = at + n > g->at && at < end && !MUTANT(GATHER_READ_BEHIND);
    int rc = SQLITE_OK;

    if (held && at >= g->at && at + n <= end) {
        memcpy(to, g->bytes + (at - g->at), (size_t)n);
        return SQLITE_OK;
    }
    if (held) {
        rc = flush(file);
    }
    if (rc == SQLITE_OK && at + n > g->at) {
        rc = g->lost;
    }
    return rc != SQLITE_OK ? rc : real_of(file)->pMethods->xRead(real_of(file), to, n, at);
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    const int rc = flush(file);

    return rc != SQLITE_OK ? rc : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int on_sync(sqlite3_file *file, int flags)
{
    const int rc = flush(file);

    return rc != SQLITE_OK ? rc : real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int on_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    const int rc = flush(file);

    return rc != SQLITE_OK ? rc : real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int on_close(sqlite3_file *file)
{
    const int written = flush(file);
    const int rc = real_of(file)->pMethods->xClose(real_of(file));

    sqlite3_free(gather_of(file)->bytes);
    return written != SQLITE_OK ? written : rc;
}

static int on_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int on_unlock(sqlite3_file *file, int level)
{
    const int written = flush(file);
    const int rc = real_of(file)->pMethods->xUnlock(real_of(file), level);

    return written != SQLITE_OK ? written : rc;
}

static int on_reserved(sqlite3_file *file, int *ret)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int on_control(sqlite3_file *file, int what, void *with)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), what, with);
}

static int on_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int on_device(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

/* Version 1: a log has no shared memory of its own, and is not mapped. */
static const sqlite3_io_methods METHODS = {.iVersion = 1,
                                           .xClose = on_close,
                                           .xRead = on_read,
                                           .xWrite = on_write,
                                           .xTruncate = on_truncate,
                                           .xSync = on_sync,
                                           .xFileSize = on_size,
                                           .xLock = on_lock,
                                           .xUnlock = on_unlock,
                                           .xCheckReservedLock = on_reserved,
                                           .xFileControl = on_control,
                                           .xSectorSize = on_sector,
                                           .xDeviceCharacteristics = on_device};

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                   int *ret_flags)
{
    struct gather *g = gather_of(file);
    int rc;

    (void)vfs;
    if ((flags & SQLITE_OPEN_WAL) == 0) {
        return below->xOpen(below, name, file, flags, ret_flags);
    }
    *g = (struct gather){.lost = SQLITE_OK};
    rc = below->xOpen(below, name, real_of(file), flags, ret_flags);
    /* SQLite closes a file that has methods, also after a failure. */
    g->base.pMethods = real_of(file)->pMethods != NULL ? &METHODS : NULL;
    /* Where a write may damage its sector, SQLite pads a commit with more frames and splits their
     * pages at the sync: a piece of a page would be taken for a header. */
    if (rc == SQLITE_OK && (on_device(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE) != 0) {
        g->bytes = sqlite3_malloc(GATHER_BYTES); /* without it all goes through */
    }
    return rc;
}

static void make(void)
{
    sqlite3_vfs *found = sqlite3_initialize() == SQLITE_OK ? sqlite3_vfs_find(NULL) : NULL;

    if (found == NULL) {
        return;
    }
    ours = *found;
    ours.zName = "baton-log";
    ours.pNext = NULL;
    ours.szOsFile = found->szOsFile + (int)GATHER_ROOM;
    ours.xOpen = on_open;
    if (sqlite3_vfs_register(&ours, 0) == SQLITE_OK) {
        below = found;
    }
}

const char *sqlite_gather_vfs(void)
{
    (void)pthread_once(&once, make);
    return below != NULL ? ours.zName : NULL;
}

bool sqlite_gather_holds(sqlite3 *db)
{
    sqlite3_file *file = NULL;

    return sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK &&
           file != NULL && file->pMethods == &METHODS && gather_of(file)->held > 0;
}

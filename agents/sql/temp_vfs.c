#include "agents/sql/temp_vfs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include <sqlite3.h>

/* A temporary file; the file of the default VFS lies behind it. */
struct temp_file {
    sqlite3_file base;
    sqlite3_int64 size; /* that is counted */
};

static sqlite3_vfs ours;
static sqlite3_vfs *below; /* NULL = not registered */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint_fast64_t limit;
static atomic_uint_fast64_t used;
static _Thread_local bool was_full;

enum { FILE_ROOM = (sizeof(struct temp_file) + 15) / 16 * 16 };

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((char *)file + FILE_ROOM);
}

/* Counts the file as that long. False: it would be over the limit. */
static bool take_size(struct temp_file *t, sqlite3_int64 size)
{
    if (size <= t->size) {
        atomic_fetch_sub(&used, (uint64_t)(t->size - size));
    } else {
        const uint64_t more = (uint64_t)(size - t->size);
        if (atomic_fetch_add(&used, more) + more > atomic_load(&limit)) {
            atomic_fetch_sub(&used, more);
            was_full = true;
            return false;
        }
    }
    t->size = size;
    return true;
}

static int on_close(sqlite3_file *file)
{
    (void)take_size((struct temp_file *)file, 0);
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int on_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xRead(real_of(file), to, n, at);
}

static int on_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
    struct temp_file *t = (struct temp_file *)file;

    if (at + n > t->size && !take_size(t, at + n)) {
        return SQLITE_FULL;
    }
    return real_of(file)->pMethods->xWrite(real_of(file), from, n, at);
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (!take_size((struct temp_file *)file, size)) {
        return SQLITE_FULL;
    }
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int on_sync(sqlite3_file *file, int flags)
{
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int on_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int on_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int on_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
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

/* Version 1: without shared memory and memory-mapped pages, whose writes could not be counted. */
static const sqlite3_io_methods methods = {.iVersion = 1,
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
    struct temp_file *t = (struct temp_file *)file;
    int rc;

    (void)vfs;
    if (name != NULL) {
        return below->xOpen(below, name, file, flags, ret_flags);
    }
    *t = (struct temp_file){.size = 0};
    rc = below->xOpen(below, NULL, real_of(file), flags, ret_flags);
    /* SQLite closes a file that has methods, also after a failure. */
    t->base.pMethods = real_of(file)->pMethods != NULL ? &methods : NULL;
    return rc;
}

static void make(void)
{
    sqlite3_vfs *found = sqlite3_initialize() == SQLITE_OK ? sqlite3_vfs_find(NULL) : NULL;

    if (found == NULL) {
        return;
    }
    ours = *found;
    ours.zName = "baton";
    ours.pNext = NULL;
    ours.szOsFile = found->szOsFile + (int)FILE_ROOM;
    ours.xOpen = on_open;
    if (sqlite3_vfs_register(&ours, 0) == SQLITE_OK) {
        below = found;
    }
}

const char *temp_vfs_use(uint64_t max_bytes)
{
    (void)pthread_once(&once, make);
    atomic_store(&limit, max_bytes);
    was_full = false;
    return below != NULL ? ours.zName : NULL;
}

bool temp_vfs_was_full(void)
{
    return was_full;
}

#include "tests/edge/journal/vfs_shim.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct shim_file {
    sqlite3_file base;
    int id; /* enum shim_file_id, or -1 */
    sqlite3_file *real;
};

static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    bool on;
    bool persistent;
    enum shim_fault fault;
    uint32_t fail_at;
    uint32_t calls;
    bool logging;
    struct shim_op *log;
    size_t log_n;
    size_t log_cap;
} shim;

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct shim_file *)f)->real;
}

static bool fails_now(void)
{
    if (!shim.on) {
        return false;
    }
    shim.calls++;
    return shim.fail_at != 0 &&
           (shim.calls == shim.fail_at || (shim.persistent && shim.calls > shim.fail_at));
}

static void log_op(int file, enum shim_op_kind kind, uint64_t at, const void *bytes, size_t len)
{
    struct shim_op *op;

    if (!shim.logging || file < 0) {
        return;
    }
    if (shim.log_n == shim.log_cap) {
        shim.log_cap = shim.log_cap == 0 ? 1024 : shim.log_cap * 2;
        shim.log = realloc(shim.log, shim.log_cap * sizeof *shim.log);
        if (shim.log == NULL) {
            abort();
        }
    }
    op = &shim.log[shim.log_n++];
    *op = (struct shim_op){kind, (enum shim_file_id)file, at, len, NULL};
    if (len > 0) {
        op->bytes = malloc(len);
        if (op->bytes == NULL) {
            abort();
        }
        memcpy(op->bytes, bytes, len);
    }
}

static int shim_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 at)
{
    if (fails_now()) {
        if (shim.fault == SHIM_SHORT && n > 1) {
            (void)real_of(f)->pMethods->xWrite(real_of(f), bytes, n / 2, at);
        }
        return shim.fault == SHIM_EIO ? SQLITE_IOERR_WRITE : SQLITE_FULL;
    }
    log_op(((struct shim_file *)f)->id, SHIM_WRITE, (uint64_t)at, bytes, (size_t)n);
    return real_of(f)->pMethods->xWrite(real_of(f), bytes, n, at);
}

static int shim_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    if (fails_now()) {
        return SQLITE_IOERR_TRUNCATE;
    }
    log_op(((struct shim_file *)f)->id, SHIM_TRUNCATE, (uint64_t)size, NULL, 0);
    return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int shim_sync(sqlite3_file *f, int flags)
{
    if (fails_now()) {
        return SQLITE_IOERR_FSYNC;
    }
    log_op(((struct shim_file *)f)->id, SHIM_SYNC, 0, NULL, 0);
    return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int shim_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int shim_read(sqlite3_file *f, void *bytes, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), bytes, n, at);
}

static int shim_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int shim_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int shim_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int shim_check_lock(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int shim_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int shim_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int shim_character(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

/* Version 1: no shared memory, which the journal does not need, and no mapping. */
static const sqlite3_io_methods METHODS = {
    .iVersion = 1,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_check_lock,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector,
    .xDeviceCharacteristics = shim_character,
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct shim_file *file = (struct shim_file *)f;
    int rc;

    (void)vfs;
    file->real = (sqlite3_file *)(file + 1);
    file->id = -1;
    if (name != NULL && ends_with(name, "/journal.db")) {
        file->id = SHIM_DB;
    } else if (name != NULL && ends_with(name, "/journal.db-wal")) {
        file->id = SHIM_WAL;
    }
    rc = shim.real->xOpen(shim.real, name, file->real, flags, ret_flags);
    f->pMethods = file->real->pMethods != NULL ? &METHODS : NULL;
    return rc;
}

void shim_install(void)
{
    if (shim.real != NULL) {
        return;
    }
    shim.real = sqlite3_vfs_find(NULL);
    shim.vfs = *shim.real;
    shim.vfs.pNext = NULL;
    shim.vfs.zName = "baton-shim";
    shim.vfs.szOsFile = (int)sizeof(struct shim_file) + shim.real->szOsFile;
    shim.vfs.xOpen = shim_open;
    if (sqlite3_vfs_register(&shim.vfs, 1) != SQLITE_OK) {
        abort();
    }
}

void shim_faults(enum shim_fault fault, uint32_t fail_at, bool persistent)
{
    shim.on = true;
    shim.fault = fault;
    shim.fail_at = fail_at;
    shim.persistent = persistent;
    shim.calls = 0;
}

void shim_faults_off(void)
{
    shim.on = false;
}

uint32_t shim_calls(void)
{
    return shim.calls;
}

void shim_log_start(void)
{
    shim_log_free();
    shim.logging = true;
}

void shim_log_ack(uint64_t seq)
{
    log_op(SHIM_DB, SHIM_ACK, seq, NULL, 0);
}

const struct shim_op *shim_log(size_t *ret_n)
{
    shim.logging = false;
    *ret_n = shim.log_n;
    return shim.log;
}

void shim_log_free(void)
{
    for (size_t i = 0; i < shim.log_n; i++) {
        free(shim.log[i].bytes);
    }
    free(shim.log);
    shim.log = NULL;
    shim.log_n = 0;
    shim.log_cap = 0;
    shim.logging = false;
}

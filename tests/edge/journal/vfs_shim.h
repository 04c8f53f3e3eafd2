/*
 * A VFS between SQLite and the disk, for tests. It fails the i-th call, and keeps a log of writes
 * from which the disk after a power cut can be built. Registered as the default VFS, once per
 * process. One thread. See https://sqlite.org/vfs.html
 */
#ifndef TESTS_VFS_SHIM_H
#define TESTS_VFS_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shim_fault { SHIM_EIO, SHIM_ENOSPC, SHIM_SHORT, SHIM_FAULT_COUNT };

void shim_install(void);
/* Counts write, sync and truncate calls from now on. The fail_at-th (1, 2, ...; 0 = none) fails,
 * and with `persistent` all after it. */
void shim_faults(enum shim_fault fault, uint32_t fail_at, bool persistent);
void shim_faults_off(void);
/* Calls counted since shim_faults. */
uint32_t shim_calls(void);

enum shim_file_id { SHIM_DB, SHIM_WAL, SHIM_FILES };
enum shim_op_kind { SHIM_WRITE, SHIM_TRUNCATE, SHIM_SYNC, SHIM_ACK };

struct shim_op {
    enum shim_op_kind kind;
    enum shim_file_id file;
    uint64_t at; /* offset, size or acknowledged seq */
    size_t len;
    uint8_t *bytes;
};

/* Starts a log of the operations on journal.db and journal.db-wal. */
void shim_log_start(void);
void shim_log_ack(uint64_t seq);
const struct shim_op *shim_log(size_t *ret_n);
void shim_log_free(void);
#endif

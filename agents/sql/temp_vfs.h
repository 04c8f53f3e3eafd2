/*
 * SQLite's temporary files, bounded. Sorting and grouping spill into files without a name; this
 * VFS counts their bytes, for all connections of the process together, and refuses a write over
 * the limit with SQLITE_FULL. Databases, their journals and everything else are the default VFS's.
 */
#ifndef SQL_TEMP_VFS_H
#define SQL_TEMP_VFS_H

#include <stdbool.h>
#include <stdint.h>

/* The name for sqlite3_open_v2; registers the VFS the first time. Sets the limit, and forgets the
 * refusals of this thread. NULL when out of memory. Thread-safe. */
const char *temp_vfs_use(uint64_t max_bytes);
/* Whether a write of this thread was refused since temp_vfs_use. */
bool temp_vfs_was_full(void);
#endif

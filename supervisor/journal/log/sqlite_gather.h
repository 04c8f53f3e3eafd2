/*
 * A VFS of SQLite around the write-ahead log: the frames of a commit become one write.
 *
 * SQLite writes each frame with two calls, its header of 24 bytes and its page. This VFS holds them
 * and writes them with one call: before the write of a commit's last frame returns, so before
 * SQLite puts the commit into the index of the log, syncs it, or reports it. The header says which
 * frame is the last one: its bytes 4 to 7 are the size of the database after the commit, in pages,
 * and zero in every other frame (https://sqlite.org/fileformat.html 4.1, the format of the log;
 * https://sqlite.org/vfs.html).
 *
 * - Only the header of a frame that is not a commit's begins to be held. Everything else that
 *   continues nothing goes through: a header of the log, a frame that is rewritten in place, a
 *   commit of one frame.
 * - What is held is written before anything else happens to the file: a write elsewhere, a sync, a
 *   truncation, a look at its size, an unlock, a close. A read of what is held is answered from
 *   memory, because SQLite would undo a batch whose read fails, and the journal would not know.
 * - At most GATHER_BYTES are held. A longer transaction is written in parts, in its order.
 * - When that write fails, the call that caused it returns the error. Until SQLite writes a frame's
 *   header at that place or before it, so begins the transaction anew, reads and writes from that
 *   place on return the same error: a transaction whose frames were lost cannot be committed.
 *   Nothing is written a second time: a commit that was refused cannot appear later.
 *
 * All other files, the database too, are those of the VFS that was the default.
 */
#ifndef JOURNAL_SQLITE_GATHER_H
#define JOURNAL_SQLITE_GATHER_H

#include <stdbool.h>

#include <sqlite3.h>

enum { GATHER_BYTES = 128 * 1024 };

/* The name of the VFS for sqlite3_open_v2; registered by the first call over the VFS that is the
 * default then, for as long as the process runs. NULL, which is the default VFS, when SQLite cannot
 * be initialized. Any thread. */
const char *sqlite_gather_vfs(void);
/* Whether frames of the connection's log are held that are not in the file yet. Never after a
 * commit. By the thread of the connection. */
bool sqlite_gather_holds(sqlite3 *db);
#endif

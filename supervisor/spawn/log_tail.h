/* The last line that a process wrote before it ended: its own account of the reason. */
#ifndef SPAWN_LOG_TAIL_H
#define SPAWN_LOG_TAIL_H

#include <stddef.h>
#include <stdint.h>

/* The length of the file; 0 when it is missing. */
uint64_t log_tail_begin(const char *path);
/* The last non-empty line after offset `from`, cut to cap - 1 bytes; "" when there is none. A file
 * that is shorter than `from` was rotated and is read from its start. The line is printable UTF-8,
 * whatever the process wrote. Reads at most 4 KiB; redacts what looks like a secret
 * (redact_patterns.h). */
void log_tail(const char *path, uint64_t from, char *ret, size_t cap);
#endif

/* The last line that a process wrote before it ended: why it did, in its own words. */
#ifndef SPAWN_LOG_TAIL_H
#define SPAWN_LOG_TAIL_H

#include <stddef.h>
#include <stdint.h>

/* How long the file is now; 0 when there is none. */
uint64_t log_tail_begin(const char *path);
/* The last line with anything in it that stands behind `from` (a file that is shorter by now was
 * begun anew), cut to cap - 1 bytes: printable UTF-8, whatever the process wrote; "" when there is
 * none. Reads at most 4 KiB; what looks like a secret is hidden (key_like.h). */
void log_tail(const char *path, uint64_t from, char *ret, size_t cap);
#endif

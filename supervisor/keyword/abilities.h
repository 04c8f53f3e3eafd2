/* What the registered agents can do, in a few words, for a goal that none of them can. Private to
 * this folder. */
#ifndef PLANNER_ABILITIES_H
#define PLANNER_ABILITIES_H

#include "protocol/base/buf.h"
#include "registry/registry.h"

/* Appends "files: read (Read a file), list (...); sql: ...", at most cap bytes. */
void abilities_put(const struct registry *registry, size_t cap, struct buf *out);
/* Appends "files (read, list), sql (query)", at most cap bytes; nothing when there are none. */
void abilities_put_short(const struct registry *registry, size_t cap, struct buf *out);
#endif

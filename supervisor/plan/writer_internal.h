/* Writes the members of one map. Private to this folder. */
#ifndef PLAN_WRITER_INTERNAL_H
#define PLAN_WRITER_INTERNAL_H

#include "supervisor/plan/reader_internal.h"

/* The number of members comes first in msgpack, so members are written to a buffer and counted. */
struct writer {
    struct buf *out;
    uint32_t n;
};

static inline void put_key(struct writer *w, const char *key)
{
    doc_put_cstr(w->out, key);
    w->n++;
}

static inline void put_str(struct writer *w, const char *key, struct str v)
{
    put_key(w, key);
    doc_put_str(w->out, v);
}

static inline void put_name(struct writer *w, const char *key, const char *v)
{
    put_key(w, key);
    doc_put_cstr(w->out, v);
}

static inline void put_u64(struct writer *w, const char *key, uint64_t v)
{
    put_key(w, key);
    doc_put_u64(w->out, v);
}

static inline void put_bool(struct writer *w, const char *key, bool v)
{
    put_key(w, key);
    doc_put_bool(w->out, v);
}

/* `planning`, `job`, `dryRun`; and the policy fields of planning and synthesis. */
void plan_write_phases(struct writer *w, const struct plan *plan);
void plan_write_phases_policy(struct writer *w, const struct plan *plan);
void plan_about_write(struct writer *w, const struct plan_about *about);
#endif

/* A prepared statement of a store in SQL: bind, step to rows or to the end, read, reset. What is
 * bound and what was read belong to the caller and to the statement until it is reset. */
#ifndef JOURNAL_STATEMENT_H
#define JOURNAL_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/base/str.h"

/* What a step came to. DAMAGED: a part of the storage cannot be read. */
enum { STMT_DONE, STMT_ROW, STMT_ERROR, STMT_DAMAGED };
enum stmt_bytes { STMT_TEXT, STMT_BLOB, STMT_UUID };

struct stmt;
struct stmt_ops {
    int (*step)(struct stmt *st);
    void (*reset)(struct stmt *st);
    void (*bind_i64)(struct stmt *st, int at, int64_t v); /* parameters: 1, 2, ... */
    void (*bind_bytes)(struct stmt *st, int at, const void *bytes, size_t len,
                       enum stmt_bytes kind);
    void (*bind_null)(struct stmt *st, int at);
    int64_t (*col_i64)(struct stmt *st, int at); /* columns: 0, 1, ...; NULL = 0 */
    struct str (*col_bytes)(struct stmt *st, int at, enum stmt_bytes kind);
    bool (*nomem)(const struct stmt *st); /* the last column could not be read for want of memory */
};

struct stmt {
    const struct stmt_ops *ops;
    void *at; /* of the store */
};

static inline int stmt_step(struct stmt *st)
{
    return st->ops->step(st);
}

static inline void stmt_reset(struct stmt *st)
{
    st->ops->reset(st);
}

static inline void stmt_bind_i64(struct stmt *st, int at, int64_t v)
{
    st->ops->bind_i64(st, at, v);
}

static inline void stmt_bind_null(struct stmt *st, int at)
{
    st->ops->bind_null(st, at);
}

static inline void stmt_bind_blob(struct stmt *st, int at, const void *bytes, size_t len)
{
    st->ops->bind_bytes(st, at, bytes == NULL ? "" : bytes, len, STMT_BLOB);
}

static inline void stmt_bind_uuid(struct stmt *st, int at, const uint8_t bytes[16])
{
    st->ops->bind_bytes(st, at, bytes, 16, STMT_UUID);
}

static inline struct str stmt_col_blob(struct stmt *st, int at)
{
    return st->ops->col_bytes(st, at, STMT_BLOB);
}

static inline bool stmt_nomem(const struct stmt *st)
{
    return st->ops->nomem(st);
}
#endif

/* How much the journal holds. PostgreSQL uses what was deleted again, but its files do not shrink:
 * what is held is counted, in a sample when there is much. */
#include <inttypes.h>
#include <stdio.h>

#include "supervisor/journal/postgres/postgres_internal.h"

enum { ROW_BYTES = 128 /* of a row beside its largest column */, SQL_LEN = 600 };
static const int64_t SAMPLE_BYTES = INT64_C(32) * 1024 * 1024;

static enum bt_code held(struct pg_journal *p, int64_t heap, int64_t *ret, struct bt_error *err)
{
    const double percent =
        heap <= SAMPLE_BYTES ? 100.0 : 100.0 * (double)SAMPLE_BYTES / (double)heap;
    int64_t bytes = 0;
    char sql[SQL_LEN];
    enum bt_code code;

    (void)snprintf(
        sql, sizeof sql,
        "SELECT (coalesce((SELECT sum(octet_length(body) + %d) FROM rows TABLESAMPLE SYSTEM (%f)), "
        "0) + coalesce((SELECT sum(octet_length(bytes) + %d) FROM blobs TABLESAMPLE SYSTEM (%f)), "
        "0) + coalesce((SELECT sum(octet_length(doc) + %d) FROM plans TABLESAMPLE SYSTEM (%f)), "
        "0))::int8",
        ROW_BYTES, percent, ROW_BYTES, percent, ROW_BYTES, percent);
    code = pg_number(p, sql, &bytes, err);
    *ret = (int64_t)((double)bytes * 100.0 / percent);
    return code;
}

enum bt_code pg_size(struct journal *j, struct journal_size *ret, struct bt_error *err)
{
    char sql[SQL_LEN];
    int64_t file;
    int64_t heap;
    int64_t used = 0;
    enum bt_code code;

    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::int8 FROM pg_class c "
                   "WHERE c.relnamespace = 'baton_s%" PRIu32 "'::regnamespace AND c.relkind = 'r'",
                   pg_of(j)->shard);
    code = pg_number(pg_of(j), sql, &file, err);
    if (code == BT_OK) {
        code = pg_number(pg_of(j),
                         "SELECT pg_relation_size('rows') + pg_relation_size('blobs') + "
                         "pg_relation_size('plans')",
                         &heap, err);
    }
    if (code == BT_OK) {
        code = held(pg_of(j), heap, &used, err);
    }
    ret->file = (uint64_t)file;
    ret->used = (uint64_t)(used < file ? used : file);
    return code;
}

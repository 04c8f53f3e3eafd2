/*
 * The rows of a file, one after the other, in bounded memory: CSV with a header line, or rows as
 * NDJSON (README.md). A file is read twice: once for the types of its columns, once for its values.
 */
#ifndef SQL_SOURCE_H
#define SQL_SOURCE_H

#include "agents/cells/cells.h"
#include "agents/cells/csv.h"
#include "protocol/base/arena.h"
#include "protocol/wire/doc.h"

enum source_form { SOURCE_CSV, SOURCE_NDJSON };

struct source {
    int fd;
    enum source_form form;
    uint8_t *block;
    struct str left; /* bytes of the block that are not read yet */
    bool eof;
    struct csv csv;
    struct buf line; /* NDJSON: the line that is read */
    struct buf doc;  /* NDJSON: its value */
    bool line_done;
    struct buf repaired;
    struct arena names;
    struct str columns[CSV_FIELDS_MAX];
    uint32_t n;
    uint64_t row;      /* of the row that was read last; 1 is the first */
    uint64_t replaced; /* bytes that were not UTF-8 */
    /* NDJSON: the last line has the types, and so the file was whole */
    bool typed;
    enum cell_type types[CSV_FIELDS_MAX];
    struct cell_value {
        struct str text;  /* CSV; .ptr NULL: the record is shorter */
        struct doc value; /* NDJSON */
    } cells[CSV_FIELDS_MAX];
};

/* Reads the names of the columns. fd is at its beginning, and stays the caller's. source_done in
 * every case. */
BT_MUST_CHECK enum bt_code source_open(struct source *s, int fd, enum source_form form,
                                       char delimiter, struct bt_error *err);
/* The next row, in s->cells, valid until the next call; *ret_more false: there is none. */
BT_MUST_CHECK enum bt_code source_next(struct source *s, bool *ret_more, struct bt_error *err);
/* Back to the first row. */
BT_MUST_CHECK enum bt_code source_again(struct source *s, char delimiter, struct bt_error *err);
void source_done(struct source *s);
#endif

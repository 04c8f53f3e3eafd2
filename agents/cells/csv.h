/*
 * Reads CSV as RFC 4180 defines it, from blocks of any size: memory is bounded by one record.
 *
 *     struct csv c;
 *     csv_init(&c, ',');
 *     for each block (last = true for the last one, which may be empty):
 *         while (csv_next(&c, &block, last, &record, &err) == BT_OK && record)
 *             use csv_cell(&c, 0) to csv_cell(&c, c.n - 1)
 *     csv_done(&c);
 *
 * A record ends with "\r\n", "\n" or "\r". A quoted field may contain all of these and the
 * delimiter; "" in it is one quote. A quote inside a field that does not begin with one is an
 * ordinary character. A byte order mark before the first record is skipped, and so are lines
 * without any character. BT_INVALID names the line for: characters after a closing quote, a quoted
 * field without its end, a zero byte. BT_LIMIT: more than CSV_FIELDS_MAX fields, or a record over
 * CSV_RECORD_MAX. Bytes that are not UTF-8 are passed on as they are. After a failure only csv_done
 * may follow.
 */
#ifndef AGENTS_CSV_H
#define AGENTS_CSV_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum {
    CSV_FIELDS_MAX = 256,            /* columns of a table */
    CSV_RECORD_MAX = 4 * 1024 * 1024 /* a step's body: a longer record fits in no result */
};

struct csv {
    char delimiter;
    enum csv_state {
        CSV_BETWEEN, /* before a record: blank lines are skipped */
        CSV_FIELD,   /* at the first byte of a field */
        CSV_PLAIN,
        CSV_QUOTED,
        CSV_QUOTE /* after a quote in a quoted field: its end, or the first of two */
    } state;
    bool after_cr;   /* the record ended with "\r": an "\n" belongs to it */
    uint8_t bom;     /* bytes of the mark that were seen; past 3 = the text has begun */
    uint64_t line;   /* of the text, from 1 */
    uint64_t opened; /* the line of the last opening quote */
    uint64_t blank;  /* lines without any character */
    struct buf text; /* the fields of the record, one after the other */
    size_t end[CSV_FIELDS_MAX];
    uint32_t n; /* number of fields of the record */
    bool done;  /* the record was handed out: the next call begins another one */
};

void csv_init(struct csv *c, char delimiter);
void csv_done(struct csv *c); /* accepts zeroed; idempotent */
/*
 * Takes bytes off the front of *in until a record is complete (*ret_record) or none are left. last:
 * no block follows, so the bytes left are a record without its line end. The record is valid until
 * the next call.
 */
BT_MUST_CHECK enum bt_code csv_next(struct csv *c, struct str *in, bool last, bool *ret_record,
                                    struct bt_error *err);
/* A field of the record, without its quotes; .ptr is never NULL. */
struct str csv_cell(const struct csv *c, uint32_t ix);
/* The delimiter that a person wrote: one ASCII character, "\t" or "tab"; {NULL, 0} is a comma. */
BT_MUST_CHECK enum bt_code csv_delimiter(struct str given, char *ret, struct bt_error *err);
/* Of a text with one column, when nobody gave a delimiter: BT_INVALID when its name has another
 * usual delimiter, because the text has more columns then. */
BT_MUST_CHECK enum bt_code csv_check_only_name(struct str name, struct bt_error *err);
#endif

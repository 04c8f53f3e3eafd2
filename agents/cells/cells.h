/*
 * The rule for the type of a cell, the same in every agent that reads cells. README.md is the rule
 * for people.
 *
 * A reader asks row by row: cell_column_see() widens a column by one more text, and
 * cell_column_type() answers at any time for the cells so far. After the last row, cell_read()
 * makes the value of each text. No function keeps a pointer or allocates.
 */
#ifndef AGENTS_CELLS_H
#define AGENTS_CELLS_H

#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum cell_type { CELL_TEXT, CELL_INTEGER, CELL_REAL, CELL_BOOLEAN, CELL_DATE, CELL_TYPE_COUNT };

/* What one text alone looks like. CELL_KIND_BIG is an integer that a double does not hold: beyond
 * 2^53. */
enum cell_kind {
    CELL_KIND_NULL,
    CELL_KIND_TEXT,
    CELL_KIND_INTEGER,
    CELL_KIND_BIG,
    CELL_KIND_REAL,
    CELL_KIND_BOOLEAN,
    CELL_KIND_DATE
};

/* A number has at most this many bytes; a longer one is a text. */
enum { CELL_NUMBER_MAX = 64 };

/* 2^53: a double holds every integer up to it. Larger ones travel as texts between agents. */
#define CELL_SAFE_INTEGER (INT64_C(1) << 53)

struct cell {
    bool null;
    enum cell_type type;
    int64_t integer;
    double real;
    bool boolean;
    struct str text; /* CELL_TEXT and CELL_DATE: borrowed from the caller */
};

/* A column so far; zeroed = no cell yet. */
struct cell_column {
    unsigned seen; /* a bit per enum cell_kind */
};

/* "integer", "real", "boolean", "date", "text". */
const char *cell_type_name(enum cell_type type);
/* The type of that name; false when there is none. */
bool cell_type_from_name(struct str name, enum cell_type *ret);

/* An empty text is CELL_KIND_NULL. */
enum cell_kind cell_kind_of(struct str text);
void cell_column_see(struct cell_column *c, struct str text);
/* For values that have a type already, such as JSON numbers. */
void cell_column_see_kind(struct cell_column *c, enum cell_kind kind);
/* The kind of a number that came as a double. */
enum cell_kind cell_kind_of_number(double v);
/* CELL_TEXT for a column without values. */
enum cell_type cell_column_type(const struct cell_column *c);

/*
 * Reads a text as the type that its column has. With `declared` a person set the type: then an
 * empty text of type text stays an empty text, and a number may have a sign "+", leading zeros, and
 * more digits than a double holds. False when the text is not of the type; never for an empty text,
 * which is null.
 */
bool cell_read(enum cell_type type, bool declared, struct str text, struct cell *ret);
/* What cell_read expects, for error messages: "a whole number of 64 bits". */
const char *cell_type_expects(enum cell_type type);

/* -?(0|[1-9][0-9]*) that fits into 64 bits. */
bool cell_integer(struct str text, int64_t *ret);
/* Whether the type is CELL_INTEGER or CELL_REAL. */
bool cell_type_is_number(enum cell_type type);
#endif

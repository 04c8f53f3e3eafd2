/*
 * Reads the members of a map by a table of names. Aliases, wrong types and unknown names are
 * reported with the step and the field. Private to this folder.
 */
#ifndef PLAN_FIELDS_INTERNAL_H
#define PLAN_FIELDS_INTERNAL_H

#include "protocol/base/arena.h"
#include "protocol/wire/doc.h"
#include "supervisor/core/plan/plan_check.h"

/*
 * The location of a problem: in a step (NULL = the plan), below `prefix` ("policy.backoff"; "" =
 * the top level).
 */
struct location {
    struct problems *problems;
    const struct plan_step *step;
    uint32_t ix;
    const char *prefix;
    bool warn_only; /* a value of the wrong type is left out with a warning */
};

void location_report(const struct location *at, enum problem_category c, bool warning,
                     const char *field, const char *fmt, ...) BT_PRINTF(5, 6);

/*
 * One name of a field. The first entry of a field is its canonical name. An earlier entry wins over
 * a later one.
 */
enum field_how {
    FIELD_PROPER,
    FIELD_SEED, /* another name that is read in silence */
    FIELD_ALIAS /* another name that is read with a warning */
};
struct field_name {
    const char *name;
    uint8_t field;
    enum field_how how;
};

/* The names of a member of a map. */
struct field_names {
    const struct field_name *at;
    uint32_t n;
    const char *in; /* the member */
};

/* A name that is known and has no meaning: it is neither read nor reported. */
#define FIELD_IGNORED 255u

enum { FIELD_NAMES_MAX = 128, FIELD_UNKNOWN_MAX = 20, FIELD_UNKNOWN_LENIENT_MAX = 1000 };

/* Entries of a table that were reported as an alias; once per plan is enough. */
struct fields_reported {
    uint64_t entries[FIELD_NAMES_MAX / 64];
};

/* What a reading makes of names that it does not know. Zero: each is an error. */
struct fields_unknown {
    bool silent;    /* a stored document: nothing is reported */
    bool lenient;   /* a warning, except for words of words_internal.h */
    uint32_t found; /* the first FIELD_UNKNOWN_MAX of a plan are named */
};

struct field_table {
    const struct field_name *names;
    uint32_t n;
    struct fields_reported *reported;
    struct fields_unknown *unknown;
    const struct field_names *below; /* names that belong into a member of this map; often NULL */
};

/* values[field] = the value of the member, absent when it is missing or nil. The map must be a map.
 */
void fields_read(const struct field_table *t, struct doc map, const struct location *at,
                 struct doc *values);
const char *field_canonical(const struct field_table *t, uint8_t field);
/* Counts a name that is not known. Whether it is worth a look: not in a stored document, nor after
 * so many that the plan is refused anyway. */
bool field_unknown_counts(const struct location *at, struct fields_unknown *unknown);
/* Reports a name that is not known and counted. what: "field", "parameter". best: the guess; empty
 * = none; about_best stands after it, such as ", which is missing". */
void field_report_unknown(const struct location *at, struct fields_unknown *unknown,
                          const char *what, struct str name, struct str best,
                          const char *about_best);

/* ---- one value; false and a problem when it is of the wrong kind. An absent value is false
 * without a problem. ---- */
bool value_string(const struct location *at, const char *field, struct doc v, struct str *ret);
/* A string, or an integer as text in the arena (numeric ids). *oom is set when out of memory. */
bool value_id(const struct location *at, const char *field, struct doc v, struct arena *arena,
              struct str *ret, bool *oom);
/* A whole number from min to max; 5.0 is 5. */
bool value_u64(const struct location *at, const char *field, struct doc v, uint64_t min,
               uint64_t max, uint64_t *ret);
/* A number from min to max, in thousandths. */
bool value_permille(const struct location *at, const char *field, struct doc v, double min,
                    double max, uint32_t *ret);
bool value_bool(const struct location *at, const char *field, struct doc v, bool *ret);
bool value_map(const struct location *at, const char *field, struct doc v);
/* One of names[0..n-1]; *ret is its index. */
bool value_choice(const struct location *at, const char *field, struct doc v,
                  const char *const *names, uint32_t n, uint32_t *ret);
/* Text for messages: "7", "\"abc\"", "a list". At most cap bytes. */
void value_describe(struct doc v, char *ret, size_t cap);
#endif

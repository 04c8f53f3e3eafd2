/* The checker: what rules may call. Private to this room. */
#ifndef JSONSCHEMA_CHECK_INTERNAL_H
#define JSONSCHEMA_CHECK_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/jsonschema/node_internal.h"

/* The path into the instance, as a list on the C stack. It becomes text only for a problem. */
struct instance_path {
    const struct instance_path *parent; /* NULL for the root */
    const char *key;                    /* NULL: use ix */
    uint32_t ix;
};

/* Collects problems. Checks without a list only need the verdict. */
struct problem_list {
    struct schema_problem *at;
    uint32_t max;
    uint32_t n;
};

struct checker {
    const struct schema *s;
    uint64_t budget;         /* units of work left */
    uint32_t depth;          /* nested nodes */
    enum bt_code abort_code; /* not BT_OK: the check is aborted, and no verdict counts */
    struct bt_error *err;
    struct pattern_matcher *matcher; /* created at the first match */
};

/* The value that a node or rule checks, with its path. */
struct check_target {
    const cJSON *item;
    const struct instance_path *path;
    struct problem_list *problems;
};

/* Charges n units of work. Returns false and aborts with BT_LIMIT when fewer are left. */
bool check_charge(struct checker *c, uint64_t n);
/* Aborts the check: nothing is left to charge. Returns false, which is no verdict. */
bool check_abort(struct checker *c, enum bt_code code, const char *fmt, ...) BT_PRINTF(3, 4);
/* Adds a problem at the path of a. Returns false, the verdict. */
bool check_report(const struct check_target *a, const char *fmt, ...) BT_PRINTF(2, 3);
/* True when the check is aborted or no further problem is needed. */
bool check_is_done(const struct checker *c, const struct problem_list *problems);

bool node_check(struct checker *c, uint32_t node, const struct check_target *a);

/* One function per rule. The item has a type that the rule applies to. False: broken, or aborted.
 */
#define RULE(name)                                                                                 \
    bool rule_##name(struct checker *c, const struct rule *r, const struct check_target *a)
RULE(type);
RULE(const);
RULE(enum);
RULE(number);
RULE(length);
RULE(pattern);
RULE(item_count);
RULE(unique_items);
RULE(property_count);
RULE(required);
RULE(dependencies);
RULE(property_names);
RULE(members);
RULE(items);
RULE(contains);
RULE(all_of);
RULE(any_of);
RULE(one_of);
RULE(not );
RULE(if);
#undef RULE

/* JSON equality: numbers by value, objects in any order. False also when the check is aborted. */
bool value_equal(struct checker *c, const cJSON *a, const cJSON *b);
/* Equal values have equal hashes. */
uint64_t value_hash(struct checker *c, const cJSON *v);

/* Whether the pattern matches anywhere in the text. */
bool pattern_match(struct checker *c, const pcre2_code *code, const char *text);
void pattern_matcher_free(struct pattern_matcher *m);

/* Appends a short description for people: "abc", 7, an array, an empty object. */
void describe_value(struct buf *out, const cJSON *v);
/* Appends the names of types: "a string or null". */
void describe_types(struct buf *out, uint32_t types);
enum { DESCRIBE_MAX = 256 };
#endif

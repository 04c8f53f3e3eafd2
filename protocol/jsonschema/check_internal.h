/* The checker's inside: what the rules may call. Private to this room. */
#ifndef JSONSCHEMA_CHECK_INTERNAL_H
#define JSONSCHEMA_CHECK_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/jsonschema/node_internal.h"

/* Where in the instance: a list on the C stack, written out only when there is something to report.
 */
struct instance_path {
    const struct instance_path *parent; /* NULL for the root */
    const char *key;                    /* NULL: ix counts */
    uint32_t ix;
};

/* Where problems go. A NULL sink asks for the verdict only. */
struct problem_list {
    struct schema_problem *at;
    uint32_t max;
    uint32_t n;
};

struct checker {
    const struct schema *s;
    uint64_t budget; /* units left */
    uint32_t depth;  /* of nodes */
    enum bt_code
        abort_code; /* not BT_OK: the check is being given up, verdicts mean nothing any more */
    struct bt_error *err;
    struct pattern_matcher *matcher; /* made at the first match */
};

/* One question: does `item`, which stands at `place`, obey this node or rule? */
struct check_target {
    const cJSON *item;
    const struct instance_path *path;
    struct problem_list *problems;
};

/* Takes n units; false (and bad = BT_LIMIT) when they are not there. */
bool check_charge(struct checker *c, uint64_t n);
/* Gives the check up. Returns false. */
bool check_abort(struct checker *c, enum bt_code code, const char *fmt, ...) BT_PRINTF(3, 4);
/* Adds a problem at the place of a. Returns false: the verdict. */
bool check_report(const struct check_target *a, const char *fmt, ...) BT_PRINTF(2, 3);
/* True when nobody wants to hear of more problems. */
bool check_is_done(const struct checker *c, const struct problem_list *problems);

bool node_check(struct checker *c, uint32_t node, const struct check_target *a);

/* One rule each; the item has a type to which the rule applies. False: broken, or given up. */
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

/* Equal as JSON: numbers by value, objects in any order. False also when given up. */
bool value_equal(struct checker *c, const cJSON *a, const cJSON *b);
/* Equal values have equal hashes. */
uint64_t value_hash(struct checker *c, const cJSON *v);

/* Whether the pattern matches anywhere in text. */
bool pattern_match(struct checker *c, const pcre2_code *code, const char *text);
void pattern_matcher_free(struct pattern_matcher *m);

/* Appends a value for people, shortened: "abc", 7, an array of 3, an object. */
void describe_value(struct buf *out, const cJSON *v);
/* Appends the names of the types: "a string or null". */
void describe_types(struct buf *out, uint32_t types);
enum { DESCRIBE_MAX = 256 };
#endif

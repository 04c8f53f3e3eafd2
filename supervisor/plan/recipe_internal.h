/* Iteration over maps, and what recipe.c and recipe_check.c share. Private to this folder. */
#ifndef PLAN_RECIPE_INTERNAL_H
#define PLAN_RECIPE_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

/* An iteration over the members of a map; empty when it is no map. */
struct pairs {
    struct doc_cursor c;
    uint32_t left;
};

static inline struct pairs pairs_of(struct doc map)
{
    struct pairs p = {.c = doc_cursor(map)};
    struct doc_head head;
    p.left = doc_next(&p.c, &head) && head.kind == DOC_MAP ? head.n : 0;
    return p;
}

static inline bool next_pair(struct pairs *p, struct str *ret_key, struct doc *ret_value)
{
    struct doc_head key;
    if (p->left == 0 || !doc_next(&p->c, &key)) {
        return false;
    }
    p->left--;
    *ret_key = key.str;
    *ret_value = doc_skip(&p->c);
    return ret_value->ptr != NULL;
}

/* A string member of a map; "" when it is missing. */
struct str recipe_text(struct doc map, const char *key);
/* Whether `required` of the schema has the name. */
bool recipe_requires(struct doc schema, struct str name);
/* Appends a map: the given values, then the schema's defaults of the missing ones. */
BT_MUST_CHECK enum bt_code recipe_with_defaults(struct doc schema, struct doc values,
                                                struct buf *out, struct bt_error *err);
#endif

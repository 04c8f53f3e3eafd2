/* Rules for arrays. */
#include <stdlib.h>

#include "protocol/jsonschema/check_internal.h"

bool rule_item_count(struct checker *c, const struct rule *r, const struct check_target *a)
{
    uint64_t n = (uint64_t)cJSON_GetArraySize(a->item);

    (void)check_charge(c, n / 16);
    if (r->kind == RULE_MIN_ITEMS) {
        return n >= r->u.count ||
               check_report(a, "must have at least %llu items, has %llu",
                            (unsigned long long)r->u.count, (unsigned long long)n);
    }
    return n <= r->u.count || check_report(a, "must have at most %llu items, has %llu",
                                           (unsigned long long)r->u.count, (unsigned long long)n);
}

struct hashed_item {
    uint64_t hash;
    const cJSON *item;
    uint32_t ix;
};

static int by_hash(const void *a, const void *b)
{
    const struct hashed_item *x = a;
    const struct hashed_item *y = b;

    const int hash = (x->hash > y->hash) - (x->hash < y->hash);

    return hash != 0 ? hash : (x->ix > y->ix) - (x->ix < y->ix);
}

/* Equal items have equal hashes, so only runs of equal hashes are compared. */
static bool find_duplicates(struct checker *c, const struct hashed_item *items, uint32_t n,
                            const struct check_target *a)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n && items[j].hash == items[i].hash; j++) {
            if (value_equal(c, items[i].item, items[j].item)) {
                (void)check_report(a, "items must differ, but %u and %u are the same", items[i].ix,
                                   items[j].ix);
                return true;
            }
        }
    }
    return false;
}

bool rule_unique_items(struct checker *c, const struct rule *r, const struct check_target *a)
{
    uint32_t n = (uint32_t)cJSON_GetArraySize(a->item);
    const cJSON *item = a->item->child;
    struct hashed_item *items;
    bool found;

    (void)r;
    if (n < 2 || !check_charge(c, n)) {
        return n < 2;
    }
    items = calloc(n, sizeof *items);
    if (items == NULL) {
        return check_abort(c, BT_NOMEM, "out of memory for a check of %u items", n);
    }
    for (uint32_t i = 0; i < n; i++, item = item->next) {
        items[i] = (struct hashed_item){value_hash(c, item), item, i};
    }
    qsort(items, n, sizeof *items, by_hash);
    found = c->abort_code != BT_OK || find_duplicates(c, items, n, a);
    free(items);
    return !found;
}

bool rule_items(struct checker *c, const struct rule *r, const struct check_target *a)
{
    const struct items *items = &r->u.items;
    bool ok = true;
    uint32_t i = 0;

    for (const cJSON *item = a->item->child; item != NULL; item = item->next, i++) {
        uint32_t node = i < items->tuple.n ? items->tuple.at[i] : items->rest;
        struct instance_path path = {.parent = a->path, .ix = i};
        struct check_target one = {.item = item, .path = &path, .problems = a->problems};
        if (node == NODE_NONE) {
            break;
        }
        if (!node_check(c, node, &one)) {
            ok = false;
            if (check_is_done(c, a->problems)) {
                break;
            }
        }
    }
    return ok;
}

bool rule_contains(struct checker *c, const struct rule *r, const struct check_target *a)
{
    for (const cJSON *item = a->item->child; item != NULL; item = item->next) {
        struct check_target one = {.item = item};
        if (node_check(c, r->u.node, &one)) {
            return true;
        }
    }
    return check_report(a, "must have an item that matches \"contains\", none does");
}

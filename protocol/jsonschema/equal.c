/* Equality and hashes of JSON values. Both charge units of work. */
#include <string.h>

#include "protocol/jsonschema/check_internal.h"

static bool objects_equal(struct checker *c, const cJSON *a, const cJSON *b)
{
    int n = cJSON_GetArraySize(a);

    if (n != cJSON_GetArraySize(b) || !check_charge(c, (uint64_t)n / 4)) {
        return false;
    }
    for (const cJSON *member = a->child; member != NULL; member = member->next) {
        const cJSON *other = cJSON_GetObjectItemCaseSensitive(b, member->string);
        if (!check_charge(c, (uint64_t)n / 16) || other == NULL || !value_equal(c, member, other)) {
            return false;
        }
    }
    return true;
}

static bool arrays_equal(struct checker *c, const cJSON *a, const cJSON *b)
{
    const cJSON *x = a->child;
    const cJSON *y = b->child;

    while (x != NULL && y != NULL) {
        if (!value_equal(c, x, y)) {
            return false;
        }
        x = x->next;
        y = y->next;
    }
    return x == y;
}

/* Recursion is as deep as the shallower value. Enums and consts are at most SCHEMA_DEPTH deep, and
 * hash_at checks the depth of items. */
bool value_equal(struct checker *c, const cJSON *a, const cJSON *b)
{
    if (!check_charge(c, 1) || node_type(a) != node_type(b)) {
        return false;
    }
    switch (node_type(a)) {
    case TYPE_NULL:
        return true;
    case TYPE_BOOLEAN:
        return cJSON_IsTrue(a) == cJSON_IsTrue(b);
    case TYPE_NUMBER:
        return a->valuedouble == b->valuedouble;
    case TYPE_STRING:
        return strcmp(a->valuestring, b->valuestring) == 0;
    case TYPE_ARRAY:
        return arrays_equal(c, a, b);
    default:
        return objects_equal(c, a, b);
    }
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    const struct {
        uint64_t h, v;
    } both = {h, v};

    return str_hash((struct str){(const char *)&both, sizeof both});
}

static uint64_t hash_at(struct checker *c, const cJSON *v, uint32_t depth)
{
    uint64_t h = node_type(v);
    double number = v->valuedouble + 0.0; /* -0 becomes 0: they are equal */
    uint64_t bits;

    if (depth > SCHEMA_CHECK_DEPTH) {
        (void)check_abort(c, BT_LIMIT, "the value nests deeper than %d levels", SCHEMA_CHECK_DEPTH);
    }
    if (!check_charge(c, 1)) {
        return 0;
    }
    switch (node_type(v)) {
    case TYPE_BOOLEAN:
        return mix(h, (uint64_t)cJSON_IsTrue(v));
    case TYPE_NUMBER:
        memcpy(&bits, &number, sizeof bits);
        return mix(h, bits);
    case TYPE_STRING:
        return mix(h, str_hash(str_from(v->valuestring)));
    case TYPE_ARRAY:
        for (const cJSON *child = v->child; child != NULL; child = child->next) {
            h = mix(h, hash_at(c, child, depth + 1));
        }
        return h;
    case TYPE_OBJECT: /* a sum, because the order of members does not count */
        for (const cJSON *child = v->child; child != NULL; child = child->next) {
            h += mix(str_hash(str_from(child->string)), hash_at(c, child, depth + 1));
        }
        return h;
    default:
        return h;
    }
}

uint64_t value_hash(struct checker *c, const cJSON *v)
{
    return hash_at(c, v, 1);
}

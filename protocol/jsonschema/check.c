#include "protocol/jsonschema/check_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/assert.h"

enum { ABORT_TEXT = 160, INDEX_TEXT = 16 };

bool check_charge(struct checker *c, uint64_t n)
{
    if (n <= c->budget) {
        c->budget -= n;
        return true;
    }
    return check_abort(c, BT_LIMIT, "checking this value against its schema needs too much work");
}

bool check_abort(struct checker *c, enum bt_code code, const char *fmt, ...)
{
    char text[ABORT_TEXT];
    va_list args;

    if (c->abort_code == BT_OK) {
        va_start(args, fmt);
        (void)vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        c->abort_code = err_set(c->err, code, "%s", text);
    }
    c->budget = 0; /* no rule starts any more */
    return false;
}

bool check_is_done(const struct checker *c, const struct problem_list *problems)
{
    return c->abort_code != BT_OK || problems == NULL || problems->n == problems->max;
}

enum { PATH_MAX_BYTES = sizeof((struct schema_problem *)0)->path };

/* A path that is written; it needs no memory of its own, because its place decides whether a value
 * is checked at all. */
struct written {
    char *at;
    size_t n; /* bytes that it has, or would have */
};

static void put_char(struct written *w, char c)
{
    if (w->n < PATH_MAX_BYTES) {
        w->at[w->n] = c;
    }
    w->n++;
}

static void put_text(struct written *w, const char *text)
{
    for (; *text != '\0'; text++) {
        put_char(w, *text);
    }
}

/* Recursion is bounded by SCHEMA_CHECK_DEPTH. */
static void write_path(const struct instance_path *p, struct written *w)
{
    char number[INDEX_TEXT];

    if (p == NULL) {
        return;
    }
    write_path(p->parent, w);
    put_char(w, '/');
    if (p->key == NULL) {
        (void)snprintf(number, sizeof number, "%u", p->ix);
        put_text(w, number);
        return;
    }
    for (const char *at = p->key; *at != '\0'; at++) {
        if (*at == '~' || *at == '/') {
            put_text(w, *at == '~' ? "~0" : "~1");
        } else {
            put_char(w, *at);
        }
    }
}

/* A long path is cut at its end and has "..." there. */
static void format_path(const struct instance_path *p, char ret[PATH_MAX_BYTES])
{
    struct written w = {.at = ret};

    write_path(p, &w);
    if (w.n >= PATH_MAX_BYTES) {
        memcpy(ret + PATH_MAX_BYTES - 4, "...", 4);
    } else {
        ret[w.n] = '\0';
    }
}

/* Two branches of allOf may report the same problem. */
static bool is_told(const struct problem_list *problems, const struct schema_problem *p)
{
    const struct schema_problem *one = problems->at;

    while (one != p && (strcmp(one->path, p->path) != 0 || strcmp(one->message, p->message) != 0)) {
        one++;
    }
    return one != p;
}

bool check_report(const struct check_target *a, const char *fmt, ...)
{
    struct problem_list *problems = a->problems;
    struct schema_problem *p;
    va_list args;

    if (problems == NULL || problems->n == problems->max) {
        return false;
    }
    p = &problems->at[problems->n];
    va_start(args, fmt);
    (void)vsnprintf(p->message, sizeof p->message, fmt, args);
    va_end(args);
    format_path(a->path, p->path);
    problems->n += !is_told(problems, p);
    return false;
}

static const struct {
    bool (*check)(struct checker *c, const struct rule *r, const struct check_target *a);
    uint32_t applies; /* the types that the rule is about; others pass */
} rules[] = {
    [RULE_TYPE] = {rule_type, TYPE_ANY},
    [RULE_CONST] = {rule_const, TYPE_ANY},
    [RULE_ENUM] = {rule_enum, TYPE_ANY},
    [RULE_MULTIPLE_OF] = {rule_number, TYPE_NUMBER},
    [RULE_MINIMUM] = {rule_number, TYPE_NUMBER},
    [RULE_MAXIMUM] = {rule_number, TYPE_NUMBER},
    [RULE_EXCLUSIVE_MINIMUM] = {rule_number, TYPE_NUMBER},
    [RULE_EXCLUSIVE_MAXIMUM] = {rule_number, TYPE_NUMBER},
    [RULE_MIN_LENGTH] = {rule_length, TYPE_STRING},
    [RULE_MAX_LENGTH] = {rule_length, TYPE_STRING},
    [RULE_PATTERN] = {rule_pattern, TYPE_STRING},
    [RULE_MIN_ITEMS] = {rule_item_count, TYPE_ARRAY},
    [RULE_MAX_ITEMS] = {rule_item_count, TYPE_ARRAY},
    [RULE_UNIQUE_ITEMS] = {rule_unique_items, TYPE_ARRAY},
    [RULE_MIN_PROPERTIES] = {rule_property_count, TYPE_OBJECT},
    [RULE_MAX_PROPERTIES] = {rule_property_count, TYPE_OBJECT},
    [RULE_REQUIRED] = {rule_required, TYPE_OBJECT},
    [RULE_DEPENDENCIES] = {rule_dependencies, TYPE_OBJECT},
    [RULE_PROPERTY_NAMES] = {rule_property_names, TYPE_OBJECT},
    [RULE_MEMBERS] = {rule_members, TYPE_OBJECT},
    [RULE_ITEMS] = {rule_items, TYPE_ARRAY},
    [RULE_CONTAINS] = {rule_contains, TYPE_ARRAY},
    [RULE_ALL_OF] = {rule_all_of, TYPE_ANY},
    [RULE_ANY_OF] = {rule_any_of, TYPE_ANY},
    [RULE_ONE_OF] = {rule_one_of, TYPE_ANY},
    [RULE_NOT] = {rule_not, TYPE_ANY},
    [RULE_IF] = {rule_if, TYPE_ANY},
};
_Static_assert(sizeof rules / sizeof rules[0] == RULE_COUNT, "a row for each kind of rule");

/* After a wrong type, const or enum, further problems of the value do not help. */
static bool check_rules(struct checker *c, const struct node *node, const struct check_target *a)
{
    bool ok = true;

    for (uint32_t i = 0; i < node->n_rules; i++) {
        const struct rule *r = &node->rules[i];
        if ((rules[r->kind].applies & node_type(a->item)) == 0 || rules[r->kind].check(c, r, a)) {
            continue;
        }
        ok = false;
        if (r->kind <= RULE_ENUM || check_is_done(c, a->problems)) {
            break;
        }
    }
    return ok;
}

bool node_check(struct checker *c, uint32_t ix, const struct check_target *a)
{
    const struct node *node = &c->s->nodes[c->s->nodes[ix].ref];
    bool ok;

    if (!check_charge(c, 1)) {
        return false;
    }
    if (node->kind == NODE_FALSE) {
        return check_report(a, "is not allowed here");
    }
    if (c->depth >= SCHEMA_CHECK_DEPTH) {
        return check_abort(c, BT_LIMIT, "the schema leads deeper than %d levels into this value",
                           SCHEMA_CHECK_DEPTH);
    }
    c->depth++;
    ok = check_rules(c, node, a);
    c->depth--;
    return ok;
}

/* Counts the values of a tree, up to max and to a safe depth. */
static uint64_t count_values(const cJSON *v, uint32_t depth, uint64_t max)
{
    uint64_t n = 1;

    if (depth > SCHEMA_CHECK_DEPTH || (!cJSON_IsArray(v) && !cJSON_IsObject(v))) {
        return n;
    }
    for (const cJSON *child = v->child; child != NULL && n < max; child = child->next) {
        n += count_values(child, depth + 1, max - n);
    }
    return n;
}

enum { COUNTED_MAX = 1000000 };

enum bt_code schema_check(const struct schema *s, const struct cJSON *instance,
                          struct schema_problem *problems, uint32_t max, uint32_t *ret_n,
                          struct bt_error *err)
{
    struct schema_problem only;
    struct problem_list list = {.at = max == 0 ? &only : problems, .max = max == 0 ? 1 : max};
    struct checker c = {.s = s, .err = err};
    struct check_target a = {.item = instance, .problems = &list};
    bool ok;

    *ret_n = 0;
    if (instance == NULL || node_type(instance) == 0) {
        return err_set(err, BT_INVALID, "there is no value to check");
    }
    c.budget = SCHEMA_WORK + SCHEMA_WORK_PER_VALUE * count_values(instance, 1, COUNTED_MAX);
    ok = node_check(&c, 0, &a);
    pattern_matcher_free(c.matcher);
    if (c.abort_code != BT_OK) {
        return c.abort_code;
    }
    if (ok) {
        return BT_OK;
    }
    ASSERT(list.n > 0); /* a false verdict always has a problem */
    *ret_n = max == 0 ? 0 : list.n;
    return err_set(err, BT_INVALID, "%s%s%s", list.at[0].path,
                   list.at[0].path[0] == '\0' ? "" : ": ", list.at[0].message);
}

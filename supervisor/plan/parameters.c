/*
 * Members of parameters that the skill's inputSchema does not name. JSON Schema permits them; in a
 * plan they are mistakes. An object is closed when its schema has `properties` and nothing that
 * could permit others: additionalProperties, patternProperties, $ref, or a combination.
 */
#include <cjson/cJSON.h>
#include <stdio.h>

#include "protocol/base/suggest.h"
#include "supervisor/plan/parameters_internal.h"

/* Comparisons of names for one plan: 200,000 values with 20 properties each, and more. */
enum { COMPARISONS_MAX = 20 * 1000 * 1000, PATH_BYTES = PARAMETERS_PATH_BYTES };
enum { NAMED_MAX = 16, NAMED_BYTES = 240 }; /* of the parameters that there are */

static const cJSON *get(const cJSON *schema, const char *keyword)
{
    return cJSON_GetObjectItemCaseSensitive(schema, keyword);
}

/* The properties of a closed object; NULL when others may be permitted. */
static const cJSON *closed_by(const cJSON *schema)
{
    static const char *const open[] = {"additionalProperties",
                                       "patternProperties",
                                       "$ref",
                                       "allOf",
                                       "anyOf",
                                       "oneOf",
                                       "if",
                                       "dependencies",
                                       "not"};
    const cJSON *properties = get(schema, "properties");
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        if (get(schema, open[i]) != NULL) {
            return NULL;
        }
    }
    return cJSON_IsObject(properties) && properties->child != NULL ? properties : NULL;
}

static const cJSON *find(struct parameters_check *k, const cJSON *properties, const char *name)
{
    const cJSON *p;
    cJSON_ArrayForEach(p, properties)
    {
        k->comparisons++;
        if (strcmp(p->string, name) == 0) {
            return p;
        }
    }
    return NULL;
}

static bool is_listed(const cJSON *list, struct str name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item) && str_is(name, item->valuestring)) {
            return true;
        }
    }
    return false;
}

/* Whether the guess is a required member that is missing; then it is reported here, and once. */
static bool replaces_missing(struct parameters_check *k, const cJSON *schema, const cJSON *value,
                             struct str best, const char *path)
{
    if (best.ptr == NULL || !is_listed(get(schema, "required"), best) ||
        get(value, best.ptr) != NULL) {
        return false;
    }
    if (k->n_missing < PARAMETERS_MISSING_MAX) {
        (void)snprintf(k->missing[k->n_missing++], PARAMETERS_PATH_BYTES, "%.60s.%.30s", path,
                       best.ptr);
    }
    return true;
}

/* "; it has: a, b, c, ...", for a name that is near none of them. */
static void name_properties(const cJSON *properties, char *ret, size_t cap)
{
    const cJSON *p;
    size_t n = (size_t)snprintf(ret, cap, "; it has: ");
    uint32_t named = 0;
    cJSON_ArrayForEach(p, properties)
    {
        const size_t len = strlen(p->string);
        if (named == NAMED_MAX || n + len + 6 > cap) {
            (void)snprintf(ret + n, cap - n, "%s...", named > 0 ? ", " : "");
            return;
        }
        n += (size_t)snprintf(ret + n, cap - n, "%s%s", named > 0 ? ", " : "", p->string);
        named++;
    }
    if (named == 0) {
        (void)snprintf(ret, cap, "; it has none");
    }
}

static void report(struct parameters_check *k, const cJSON *schema, const cJSON *value,
                   const char *name, const char *path)
{
    const cJSON *properties = get(schema, "properties");
    struct location at = k->at;
    struct suggest near = suggest_start(str_from(name));
    char others[NAMED_BYTES] = "";
    const cJSON *p;
    if (!field_unknown_counts(&at, k->unknown)) {
        return;
    }
    at.prefix = path;
    cJSON_ArrayForEach(p, properties)
    {
        suggest_offer(&near, str_from(p->string));
    }
    if (near.best.len == 0) {
        name_properties(properties, others, sizeof others);
    }
    field_report_unknown(&at, k->unknown, "parameter", str_from(name), near.best,
                         near.best.len == 0 ? others
                         : replaces_missing(k, schema, value, near.best, path)
                             ? ", which is required and missing"
                             : "");
}

static void check(struct parameters_check *k, const cJSON *schema, const cJSON *value,
                  const char *path);

static void check_items(struct parameters_check *k, const cJSON *items, const cJSON *list,
                        const char *path)
{
    const cJSON *schema = cJSON_IsArray(items) ? items->child : items;
    const cJSON *item;
    char below[PATH_BYTES];
    int i = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (schema == NULL || k->comparisons > COMPARISONS_MAX) {
            return;
        }
        (void)snprintf(below, sizeof below, "%.80s.%d", path, i++);
        check(k, schema, item, below);
        schema = cJSON_IsArray(items) ? schema->next : schema;
    }
}

/* Recursion is bounded by LIMIT_DEPTH of the value. */
static void check(struct parameters_check *k, const cJSON *schema, const cJSON *value,
                  const char *path)
{
    const cJSON *properties = get(schema, "properties");
    const cJSON *closed = closed_by(schema);
    const cJSON *member;
    char below[PATH_BYTES];
    if (cJSON_IsArray(value)) {
        check_items(k, get(schema, "items"), value, path);
        return;
    }
    cJSON_ArrayForEach(member, value)
    {
        const cJSON *known = find(k, properties, member->string);
        if (k->comparisons > COMPARISONS_MAX) {
            return;
        }
        if (known != NULL) {
            (void)snprintf(below, sizeof below, "%.60s.%.30s", path, member->string);
            check(k, known, member, below);
        } else if (closed != NULL) {
            report(k, schema, value, member->string, path);
        }
    }
}

void parameters_check_names(struct parameters_check *k, const cJSON *schema, const cJSON *value)
{
    const bool before = k->comparisons > COMPARISONS_MAX;
    k->n_missing = 0;
    check(k, schema, value, "parameters");
    if (!before && k->comparisons > COMPARISONS_MAX) {
        location_report(&k->at, PROBLEM_LIMIT, false, "parameters",
                        "the plan has more parameters than can be checked; pass large data as an "
                        "earlier step's result");
    }
}

bool parameters_is_reported(const struct parameters_check *k, const char *path)
{
    for (uint32_t i = 0; i < k->n_missing; i++) {
        if (strcmp(k->missing[i], path) == 0) {
            return true;
        }
    }
    return false;
}

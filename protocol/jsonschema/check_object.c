/* Rules for objects. */
#include "protocol/base/suggest.h"
#include "protocol/jsonschema/check_internal.h"

bool rule_property_count(struct checker *c, const struct rule *r, const struct check_target *a)
{
    uint64_t n = (uint64_t)cJSON_GetArraySize(a->item);

    (void)check_charge(c, n / 16);
    if (r->kind == RULE_MIN_PROPERTIES) {
        return n >= r->u.count ||
               check_report(a, "must have at least %llu members, has %llu",
                            (unsigned long long)r->u.count, (unsigned long long)n);
    }
    return n <= r->u.count || check_report(a, "must have at most %llu members, has %llu",
                                           (unsigned long long)r->u.count, (unsigned long long)n);
}

/* Reports the names that the object does not have. A lookup costs as much as the object is long. */
static bool check_names(struct checker *c, const cJSON *names, const char *because,
                        const struct check_target *a)
{
    uint64_t cost = 1 + (uint64_t)cJSON_GetArraySize(a->item) / 16;
    bool ok = true;

    for (const cJSON *name = names->child; name != NULL; name = name->next) {
        struct instance_path path = {.parent = a->path, .key = name->valuestring};
        struct check_target one = {.path = &path, .problems = a->problems};
        if (check_charge(c, cost) &&
            cJSON_GetObjectItemCaseSensitive(a->item, name->valuestring) != NULL) {
            continue;
        }
        ok = because == NULL
                 ? check_report(&one, "is missing")
                 : check_report(&one, "is missing, it is needed beside \"%.60s\"", because);
        if (check_is_done(c, a->problems)) {
            break;
        }
    }
    return ok;
}

bool rule_required(struct checker *c, const struct rule *r, const struct check_target *a)
{
    return check_names(c, r->u.json, NULL, a);
}

bool rule_dependencies(struct checker *c, const struct rule *r, const struct check_target *a)
{
    const struct dependencies *d = &r->u.dependencies;
    uint64_t cost = 1 + (uint64_t)cJSON_GetArraySize(a->item) / 16;
    bool ok = true;

    for (uint32_t i = 0; i < d->n && (ok || !check_is_done(c, a->problems)); i++) {
        const struct dependency *one = &d->at[i];
        (void)check_charge(c, cost);
        if (cJSON_GetObjectItemCaseSensitive(a->item, one->name) != NULL) {
            ok = (one->needs != NULL ? check_names(c, one->needs, one->name, a)
                                     : node_check(c, one->node, a)) &&
                 ok;
        }
    }
    return ok;
}

bool rule_property_names(struct checker *c, const struct rule *r, const struct check_target *a)
{
    bool ok = true;

    for (const cJSON *member = a->item->child; member != NULL; member = member->next) {
        cJSON name = {.type = cJSON_String, .valuestring = member->string};
        struct schema_problem why = {.message = "is not allowed here"};
        struct problem_list own = {.at = &why, .max = 1};
        struct check_target one = {.item = &name, .problems = a->problems == NULL ? NULL : &own};
        if (node_check(c, r->u.node, &one)) {
            continue;
        }
        ok = false;
        if (check_is_done(c, a->problems)) {
            break;
        }
        (void)check_report(a, "the name \"%.60s\" is not right: %s", member->string, why.message);
    }
    return ok;
}

enum { NAMES_SHOWN_BYTES = 160, NAMES_BYTES = 1024 };

static bool report_unknown(const struct members *m, const char *name, const struct check_target *a)
{
    struct suggest suggestion = suggest_start(str_from(name));
    struct buf allowed;
    const cJSON *known;
    const char *between = "";
    bool cut = false;

    if (m->names == NULL || m->names->child == NULL) {
        return check_report(a, "is not allowed here");
    }
    buf_init(&allowed, NAMES_BYTES);
    cJSON_ArrayForEach(known, m->names)
    {
        suggest_offer(&suggestion, str_from(known->string));
        cut = cut || allowed.len + strlen(known->string) > NAMES_SHOWN_BYTES;
        if (!cut) {
            buf_printf(&allowed, "%s%s", between, known->string);
            between = ", ";
        }
    }
    if (suggestion.best.ptr != NULL) {
        (void)check_report(a, "is not allowed here; did you mean \"%.*s\"? allowed: %s%s",
                           STR_ARG(suggestion.best), buf_cstr(&allowed), cut ? ", ..." : "");
    } else {
        (void)check_report(a, "is not allowed here; allowed: %s%s", buf_cstr(&allowed),
                           cut ? ", ..." : "");
    }
    buf_done(&allowed);
    return false;
}

static bool check_member(struct checker *c, const struct members *m, const struct check_target *a)
{
    const char *name = a->item->string;
    uint32_t node = map_get(&m->by_name, str_from(name));
    bool known = node != MAP_NONE;
    bool ok = !known || node_check(c, node, a);

    for (uint32_t i = 0; i < m->n_patterns; i++) {
        if (pattern_match(c, m->patterns[i].code, name)) {
            known = true;
            ok = node_check(c, m->patterns[i].node, a) && ok;
        }
    }
    if (known || m->additional == NODE_NONE) {
        return ok;
    }
    if (c->s->nodes[c->s->nodes[m->additional].ref].kind == NODE_FALSE) {
        return check_is_done(c, a->problems) ? false : report_unknown(m, name, a);
    }
    return node_check(c, m->additional, a);
}

bool rule_members(struct checker *c, const struct rule *r, const struct check_target *a)
{
    bool ok = true;

    for (const cJSON *member = a->item->child; member != NULL; member = member->next) {
        struct instance_path path = {.parent = a->path, .key = member->string};
        struct check_target one = {.item = member, .path = &path, .problems = a->problems};
        if (!check_charge(c, 1) || !check_member(c, r->u.members, &one)) {
            ok = false;
            if (check_is_done(c, a->problems)) {
                break;
            }
        }
    }
    return ok;
}

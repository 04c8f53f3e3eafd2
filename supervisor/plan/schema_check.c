/*
 * Checks parameters against the input schema of the step's skill (M015), and that `verify` is a
 * schema.
 *
 * A template has no value yet, so a string with one has any type: problems of such a string are
 * dropped. So are problems of a combination (anyOf, oneOf, not) whose value contains a template.
 */
#include <cjson/cJSON.h>
#include <stdio.h>

#include "protocol/base/map.h"
#include "protocol/jsonschema/schema.h"
#include "protocol/wire/msg.h"
#include "registry/card.h"
#include "supervisor/core/plan/template.h"
#include "supervisor/plan/parameters_internal.h"
#include "supervisor/plan/reader_internal.h"

enum { SCHEMA_PROBLEMS_MAX = 16 };

/* One compiled schema per skill that the plan uses. */
struct compiled {
    struct schema *schema; /* NULL = the card's schema cannot be used */
    struct cJSON *tree;    /* what it was made of */
};

struct schema_checker {
    struct plan_reader *r;
    struct map seen; /* "agent/skill" -> index in at */
    struct compiled *at;
    uint32_t n;
    uint32_t step;
    struct parameters_check names;
};

static void put(struct schema_checker *k, bool warning, const char *field, const char *message)
{
    const struct location at = {.problems = k->r->problems,
                                .step = &k->r->plan->steps[k->step],
                                .ix = k->step,
                                .prefix = ""};
    location_report(&at, PROBLEM_INVALID_PARAMS, warning, field, "%s", message);
}

/* ---- the schema ---- */

static const struct msg_skill *skill_of(const struct plan_reader *r, const struct plan_step *s)
{
    if (r->registry == NULL || s->agent == REGISTRY_NONE || s->skill.len == 0) {
        return NULL;
    }
    const struct msg_card *card = registry_agent_view(r->registry, s->agent).card;
    const uint32_t ix = card == NULL ? UINT32_MAX : card_skill(card, s->skill);
    return ix == UINT32_MAX ? NULL : &card->skills[ix];
}

/* ret->schema NULL: the skill has no usable schema. A bad one is the agent's fault, so it is a
 * warning. */
static enum bt_code find_schema(struct schema_checker *k, const struct plan_step *s,
                                const struct msg_skill *skill, struct compiled *ret)
{
    char text[2 * LIMIT_ID_BYTES + 4];
    const int len =
        snprintf(text, sizeof text, "%.*s/%.*s", STR_ARG(s->agent_id), STR_ARG(s->skill));
    struct str key = {text, len > 0 ? (size_t)len : 0};
    uint32_t ix = map_get(&k->seen, key);
    if (ix == MAP_NONE) {
        struct bt_error why = {.code = BT_OK};
        struct compiled made = {NULL, NULL};
        key = arena_str(&k->r->scratch, key);
        if (key.ptr == NULL || map_put(&k->seen, key, k->n) != BT_OK) {
            return reader_nomem(k->r);
        }
        enum bt_code code = doc_to_cjson(skill->input_schema, &made.tree, &why);
        code = code == BT_OK ? schema_compile(made.tree, &made.schema, &why) : code;
        if (code == BT_NOMEM) {
            cJSON_Delete(made.tree);
            return reader_nomem(k->r);
        }
        if (code != BT_OK) {
            char message[400];
            (void)snprintf(message, sizeof message,
                           "the agent's inputSchema cannot be used, parameters are not checked: "
                           "%.300s",
                           why.msg);
            put(k, true, "skill", message);
        }
        ix = k->n++;
        k->at[ix] = made;
    }
    *ret = k->at[ix];
    return BT_OK;
}

/* ---- templates in the values ---- */

/* Whether the value contains a template. */
static bool holds_template(const struct plan_reader *r, struct doc value)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    while (doc_next(&c, &head)) {
        struct template_ref t;
        size_t from = 0;
        uint32_t word;
        while (head.kind == DOC_STR && template_next(head.str, &from, &t)) {
            if (t.kind == TEMPLATE_OK) {
                return true;
            }
        }
        from = 0;
        while (head.kind == DOC_STR &&
               template_next_in(r->words, r->n_words, head.str, &from, &t, &word)) {
            if (t.kind == TEMPLATE_OK) {
                return true;
            }
        }
    }
    return false;
}

/* The value at a JSON pointer ("/a/0/b"); absent when there is none. */
static struct doc at_pointer(struct doc value, const char *pointer)
{
    while (*pointer == '/' && value.ptr != NULL) {
        char part[192];
        size_t n = 0;
        pointer++;
        while (*pointer != '\0' && *pointer != '/') {
            const bool escape = pointer[0] == '~' && (pointer[1] == '0' || pointer[1] == '1');
            part[n++] = escape ? (pointer[1] == '0' ? '~' : '/') : pointer[0];
            pointer += escape ? 2 : 1;
        }
        const struct str name = {part, n};
        if (doc_head(value).kind == DOC_MAP) {
            value = doc_get(value, name);
        } else {
            /* doc_path takes indexes; a name with a dot is no index. */
            value = memchr(part, '.', n) == NULL && n > 0 ? doc_path(value, name)
                                                          : (struct doc){NULL, 0};
        }
    }
    return value;
}

static bool of_a_combination(const char *message)
{
    return strncmp(message, "matches ", 8) == 0 || strncmp(message, "is what \"not\"", 13) == 0;
}

static bool about_template(const struct plan_reader *r, struct doc params,
                           const struct schema_problem *p)
{
    const struct doc value = at_pointer(params, p->path);
    if (value.ptr == NULL || !holds_template(r, value)) {
        return false;
    }
    return doc_head(value).kind == DOC_STR || of_a_combination(p->message);
}

/* ---- one step ---- */

/* "/a/b" -> "parameters.a.b" */
static void field_name(const char *pointer, char *ret, size_t cap)
{
    (void)snprintf(ret, cap, "parameters%.80s", pointer);
    for (char *c = ret; *c != '\0'; c++) {
        *c = *c == '/' ? '.' : *c;
    }
}

static void put_problems(struct schema_checker *k, struct doc params,
                         const struct schema_problem *found, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char field[96];
        char message[400];
        if (params.ptr != NULL && about_template(k->r, params, &found[i])) {
            continue;
        }
        field_name(found[i].path, field, sizeof field);
        if (strcmp(found[i].message, "is missing") == 0 &&
            parameters_is_reported(&k->names, field)) {
            continue;
        }
        (void)snprintf(message, sizeof message, "Invalid params - %.320s", found[i].message);
        put(k, false, field, message);
    }
}

static enum bt_code check_parameters(struct schema_checker *k, const struct plan_step *s)
{
    static const uint8_t empty_map[] = {0x80};
    const struct msg_skill *skill = skill_of(k->r, s);
    struct compiled known = {NULL, NULL};
    struct cJSON *tree = NULL;
    struct schema_problem found[SCHEMA_PROBLEMS_MAX];
    uint32_t n = 0;
    struct bt_error why = {.code = BT_OK};
    if (skill == NULL || skill->input_schema.ptr == NULL) {
        return BT_OK;
    }
    enum bt_code code = find_schema(k, s, skill, &known);
    if (code != BT_OK || known.schema == NULL) {
        return code;
    }
    const struct doc params =
        s->parameters.ptr != NULL ? s->parameters : (struct doc){empty_map, sizeof empty_map};
    code = doc_to_cjson(params, &tree, &why);
    if (code == BT_OK) {
        k->names.at =
            (struct location){.problems = k->r->problems, .step = s, .ix = k->step, .prefix = ""};
        parameters_check_names(&k->names, known.tree, tree);
        code = schema_check(known.schema, tree, found, SCHEMA_PROBLEMS_MAX, &n, &why);
    }
    cJSON_Delete(tree);
    if (code == BT_INVALID && n > 0) {
        put_problems(k, params, found, n);
    } else if (code != BT_OK && code != BT_NOMEM) {
        put(k, false, "parameters", why.msg);
    }
    return code == BT_NOMEM ? reader_nomem(k->r) : BT_OK;
}

/* A schema of the plan's own; absent = none. */
static enum bt_code check_own(struct schema_checker *k, struct doc own, const char *prefix,
                              const char *field)
{
    struct schema *schema = NULL;
    struct cJSON *tree = NULL;
    struct bt_error why = {.code = BT_OK};
    if (own.ptr == NULL) {
        return BT_OK;
    }
    enum bt_code code = doc_to_cjson(own, &tree, &why);
    code = code == BT_OK ? schema_compile_exact(tree, &schema, &why) : code;
    schema_free(schema);
    cJSON_Delete(tree);
    if (code == BT_NOMEM) {
        return reader_nomem(k->r);
    }
    if (code != BT_OK) {
        const struct location at = {.problems = k->r->problems,
                                    .step = &k->r->plan->steps[k->step],
                                    .ix = k->step,
                                    .prefix = prefix};
        location_report(&at, PROBLEM_INVALID_FIELD, false, field, "is no JSON Schema: %.300s",
                        why.msg);
    }
    return BT_OK;
}

enum bt_code plan_schema_check(struct plan_reader *r)
{
    const uint8_t *settled = plan_reader_settled_steps(r);
    struct schema_checker k = {.r = r, .names = {.unknown = &r->reported.unknown}};
    k.at = arena_alloc(&r->scratch, (r->plan->n_steps + 1) * sizeof k.at[0]);
    enum bt_code code = k.at == NULL ? reader_nomem(r) : BT_OK;
    for (k.step = r->first; k.step < r->plan->n_steps && code == BT_OK; k.step++) {
        const struct plan_step *s = &r->plan->steps[k.step];
        if (settled != NULL && settled[k.step] != 0) {
            continue;
        }
        code = check_parameters(&k, s);
        code = code == BT_OK ? check_own(&k, s->rules->verify, "", "verify") : code;
        if (code == BT_OK && s->wait != NULL) {
            code = check_own(&k, s->wait->schema, "wait", "schema");
        }
    }
    for (uint32_t i = 0; i < k.n; i++) {
        schema_free(k.at[i].schema);
        cJSON_Delete(k.at[i].tree);
    }
    map_done(&k.seen);
    return code == BT_OK ? plan_waits_check(r) : code;
}

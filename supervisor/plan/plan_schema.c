/*
 * Prints the JSON Schema of plan documents (protocol/plan.schema.json), made of fields.def.
 *
 * It is for editors and for programs that write plans. The reader has the last word: the schema
 * knows no agents, dependencies and templates. What has no effect in a new plan is left out.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/limits.h"
#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/policy_internal.h"

struct field {
    const char *name;
    const char *kind; /* NULL = another name of the field before */
    uint64_t least, most;
    const char *words, *meaning;
    bool noisy; /* another name that the reader warns of */
};

static const struct field document_fields[] = {
#define FIELDS_DOCUMENT
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field phase_fields[] = {
#define FIELDS_PHASE
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field branch_fields[] = {
#define FIELDS_BRANCH
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field repeat_fields[] = {
#define FIELDS_REPEAT
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field subplan_fields[] = {
#define FIELDS_SUBPLAN
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field step_fields[] = {
#define FIELDS_STEP
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field common_fields[] = {
#define FIELDS_COMMON
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field policy_fields[] = {
#define FIELDS_POLICY
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field wait_fields[] = {
#define FIELDS_WAIT
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field amounts_fields[] = {
#define FIELDS_AMOUNTS
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field backoff_fields[] = {
#define FIELDS_BACKOFF
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field agent_fields[] = {
#define FIELDS_AGENT
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field replan_fields[] = {
#define FIELDS_REPLAN
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

static const struct field synthesis_fields[] = {
#define FIELDS_SYNTHESIS
#include "supervisor/plan/schema_fields.def"
    {NULL, NULL, 0, 0, "", "", false}};

struct section {
    const char *name;
    const char *title;
    const struct field *fields;
    const struct field *common; /* more fields; NULL = none */
};

static const struct section sections[] = {
    {"document", "A plan, or a recipe", document_fields, NULL},
    {"phase", "Steps in a group", phase_fields, NULL},
    {"branch", "Steps that run when their condition holds", branch_fields, NULL},
    {"step", "One unit of work", step_fields, common_fields},
    {"repeat", "The rounds of a step", repeat_fields, NULL},
    {"subplan", "A plan inside a plan", subplan_fields, NULL},
    {"policy", "Rules of the plan and of its steps", policy_fields, common_fields},
    {"wait", "What a step waits for", wait_fields, NULL},
    {"amounts", "Tokens and money", amounts_fields, NULL},
    {"backoff", "The pause before a retry", backoff_fields, NULL},
    {"agent", "A reference to an agent", agent_fields, NULL},
    {"replan", "Who makes a new revision", replan_fields, NULL},
    {"synthesis", "Who writes the plan's answer", synthesis_fields, NULL},
};

/* ---- pieces ---- */

static cJSON *object(void)
{
    cJSON *o = cJSON_CreateObject();
    ASSERT(o != NULL);
    return o;
}

static cJSON *typed(const char *type)
{
    cJSON *o = object();
    (void)cJSON_AddStringToObject(o, "type", type);
    return o;
}

static cJSON *reference(const char *section)
{
    char text[64];
    cJSON *o = object();
    (void)snprintf(text, sizeof text, "#/$defs/%s", section);
    (void)cJSON_AddStringToObject(o, "$ref", text);
    return o;
}

/* NULL at the end. */
static cJSON *any_of(cJSON *a, cJSON *b, cJSON *c)
{
    cJSON *o = object();
    cJSON *list = cJSON_AddArrayToObject(o, "anyOf");
    cJSON *all[] = {a, b, c};
    for (size_t i = 0; i < 3 && all[i] != NULL; i++) {
        (void)cJSON_AddItemToArray(list, all[i]);
    }
    return o;
}

static cJSON *text_of(uint64_t most, const char *pattern)
{
    cJSON *o = typed("string");
    if (most > 0) {
        (void)cJSON_AddNumberToObject(o, "maxLength", (double)most);
    }
    if (pattern != NULL) {
        (void)cJSON_AddStringToObject(o, "pattern", pattern);
    }
    return o;
}

static cJSON *number(const char *type, const struct field *f)
{
    cJSON *o = typed(type);
    (void)cJSON_AddNumberToObject(o, "minimum", (double)f->least);
    (void)cJSON_AddNumberToObject(o, "maximum", (double)f->most);
    return o;
}

/* The words of a text, separated by blanks. */
static cJSON *words(const char *text)
{
    cJSON *o = object();
    cJSON *list = cJSON_AddArrayToObject(o, "enum");
    while (*text != '\0') {
        char word[64];
        const size_t n = strcspn(text, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, text);
        (void)cJSON_AddItemToArray(list, cJSON_CreateString(word));
        text += n + (text[n] == ' ');
    }
    return o;
}

static cJSON *constant(bool value)
{
    cJSON *o = object();
    (void)cJSON_AddBoolToObject(o, "const", value);
    return o;
}

/* One item, or a list of them. */
static cJSON *one_or_list(cJSON *item, uint64_t most)
{
    cJSON *list = typed("array");
    (void)cJSON_AddItemToObject(list, "items", cJSON_Duplicate(item, true));
    if (most > 0) {
        (void)cJSON_AddNumberToObject(list, "maxItems", (double)most);
    }
    return any_of(item, list, NULL);
}

/* most: bytes of an id of its own; 0 = any text. The name of an item has no dot. */
static cJSON *id_or_number(uint64_t most)
{
    char pattern[48];
    cJSON *name = NULL;
    (void)snprintf(pattern, sizeof pattern, "^[A-Za-z0-9_%s-]{1,%u}$",
                   most < LIMIT_ID_BYTES ? "" : ".", (unsigned)most);
    name = text_of(0, most > 0 ? pattern : NULL);
    return any_of(name, typed("integer"), NULL);
}

static cJSON *classes(void)
{
    char all[512] = "";
    for (int c = CLASS_NONE + 1; c < CLASS_COUNT; c++) {
        const size_t n = strlen(all);
        (void)snprintf(all + n, sizeof all - n, "%s%s", n > 0 ? " " : "",
                       err_class_name((enum err_class)c));
    }
    return one_or_list(words(all), 0);
}

static cJSON *steps(const struct field *f)
{
    cJSON *o = typed("array");
    (void)cJSON_AddItemToObject(o, "items", reference(f->words));
    (void)cJSON_AddNumberToObject(o, "minItems", (double)f->least);
    (void)cJSON_AddNumberToObject(o, "maxItems", (double)f->most);
    return o;
}

static cJSON *agent(const struct field *f, const char *section)
{
    cJSON *id = typed("string");
    (void)cJSON_AddNumberToObject(id, "minLength", 1);
    return any_of(id, f->words[0] != '\0' ? typed("boolean") : constant(false), reference(section));
}

/* ---- kinds ---- */

enum { TEXTS_BYTES = 1024 };

static cJSON *of_number(const struct field *f)
{
    return number("number", f);
}

static cJSON *of_whole(const struct field *f)
{
    return number("integer", f);
}

static cJSON *of_text(const struct field *f)
{
    return text_of(f->most, NULL);
}

static cJSON *of_date(const struct field *f)
{
    return text_of(f->most, "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
                            "([Zz]|[+-][0-9]{2}:[0-9]{2})$");
}

static cJSON *of_note(const struct field *f)
{
    (void)f; /* a longer one is cut */
    return typed("string");
}

static cJSON *of_id(const struct field *f)
{
    return id_or_number(f->most);
}

static cJSON *of_bool(const struct field *f)
{
    (void)f;
    return typed("boolean");
}

static cJSON *of_choice(const struct field *f)
{
    return words(f->words);
}

static cJSON *of_ids(const struct field *f)
{
    return one_or_list(typed("string"), f->most);
}

static cJSON *of_refs(const struct field *f)
{
    return one_or_list(id_or_number(0), f->most);
}

static cJSON *of_texts(const struct field *f)
{
    return one_or_list(text_of(TEXTS_BYTES, NULL), f->most);
}

static cJSON *of_classes(const struct field *f)
{
    (void)f;
    return classes();
}

static cJSON *of_map(const struct field *f)
{
    return reference(f->words);
}

static cJSON *of_backoff(const struct field *f)
{
    return any_of(words(backoff_fields[0].words), reference(f->words), NULL);
}

static cJSON *of_agent(const struct field *f)
{
    return agent(f, "agent");
}

static cJSON *of_agent_map(const struct field *f)
{
    return agent(f, f->words);
}

static cJSON *of_strategy(const struct field *f)
{
    (void)f;
    return text_of(0, "^(concat|llm|agent|agent:.+)$");
}

static cJSON *of_synthesis(const struct field *f)
{
    return any_of(of_strategy(f), constant(false), reference(f->words));
}

static cJSON *of_schema(const struct field *f)
{
    return any_of(typed("object"), typed("boolean"), f->words[0] != '\0' ? typed("string") : NULL);
}

static cJSON *of_free(const struct field *f)
{
    (void)f;
    return typed("object");
}

static cJSON *of_list(const struct field *f)
{
    (void)f;
    return any_of(typed("array"), text_of(0, "^\\{\\{.+\\}\\}$"), NULL);
}

/* A map of references and of what joins them; deeper conditions are only maps. */
static cJSON *of_condition(const struct field *f)
{
    static const char *const joins[] = {"all", "any"};
    cJSON *o = typed("object");
    cJSON *members = cJSON_AddObjectToObject(o, "properties");
    cJSON *references = cJSON_AddObjectToObject(o, "patternProperties");
    (void)f;
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        cJSON *list = typed("array");
        (void)cJSON_AddItemToObject(list, "items", typed("object"));
        (void)cJSON_AddNumberToObject(list, "minItems", 1);
        (void)cJSON_AddItemToObject(members, joins[i], list);
    }
    (void)cJSON_AddItemToObject(members, "not", typed("object"));
    (void)cJSON_AddItemToObject(references, "^(results|inputs|state)\\.", object());
    (void)cJSON_AddItemToObject(references, "^steps\\..+\\.status$", object());
    (void)cJSON_AddItemToObject(references, "^(item|index|iteration|previous)(\\.|$)", object());
    (void)cJSON_AddNumberToObject(o, "minProperties", 1);
    (void)cJSON_AddBoolToObject(o, "additionalProperties", false);
    return o;
}

static cJSON *of_nested(const struct field *f)
{
    (void)f;
    return any_of(reference("document"), reference("steps"), NULL);
}

static cJSON *of_anything(const struct field *f)
{
    (void)f;
    return object();
}

static const struct {
    const char *kind;
    cJSON *(*make)(const struct field *f);
} kinds[] = {
    {"TEXT", of_text},
    {"DATE", of_date},
    {"ID", of_id},
    {"BOOL", of_bool},
    {"WHOLE", of_whole},
    {"NUMBER", of_number},
    {"CHOICE", of_choice},
    {"IDS", of_ids},
    {"REFS", of_refs},
    {"TEXTS", of_texts},
    {"CLASSES", of_classes},
    {"STEPS", steps},
    {"MAP", of_map},
    {"BACKOFF", of_backoff},
    {"AGENT", of_agent},
    {"AGENT_MAP", of_agent_map},
    {"SCHEMA", of_schema},
    {"FREE", of_free},
    {"LIST", of_list},
    {"CONDITION", of_condition},
    {"SYNTHESIS", of_synthesis},
    {"NESTED", of_nested},
    {"NOTE", of_note},
    {"STRATEGY", of_strategy},
    {"NOTES", of_texts},
    {"NOTED", of_whole},
    {"STATE", of_choice},
    {"ANY", of_anything},
    {"STORED", of_anything},
};

static cJSON *schema_of(const struct field *f)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, f->kind) == 0) {
            return kinds[i].make(f);
        }
    }
    (void)fprintf(stderr, "plan_schema: %s: no such kind: %s\n", f->name, f->kind);
    exit(1);
}

/* ---- sections ---- */

static void add_fields(cJSON *properties, const struct field *fields)
{
    const struct field *proper = NULL;
    for (const struct field *f = fields; f->name != NULL; f++) {
        char text[256];
        cJSON *value;
        proper = f->kind != NULL ? f : proper;
        if (strcmp(proper->kind, "CHANGE") == 0) {
            continue;
        }
        value = schema_of(proper);
        (void)snprintf(text, sizeof text, "Another name of `%s`.", proper->name);
        (void)cJSON_AddStringToObject(value, "description", f == proper ? f->meaning : text);
        if (f->noisy) {
            (void)cJSON_AddTrueToObject(value, "deprecated");
        }
        (void)cJSON_AddItemToObject(properties, f->name, value);
    }
}

/* anyOf: one of the names of these fields is there. */
static void require_one(cJSON *section, const struct field *fields, const char *const *names)
{
    cJSON *all = cJSON_GetObjectItemCaseSensitive(section, "allOf");
    cJSON *one = object();
    cJSON *list = cJSON_AddArrayToObject(one, "anyOf");
    const struct field *proper = NULL;
    for (const struct field *f = fields; f->name != NULL; f++) {
        proper = f->kind != NULL ? f : proper;
        for (size_t i = 0; names[i] != NULL; i++) {
            if (strcmp(proper->name, names[i]) == 0) {
                cJSON *option = object();
                cJSON *required = cJSON_AddArrayToObject(option, "required");
                (void)cJSON_AddItemToArray(required, cJSON_CreateString(f->name));
                (void)cJSON_AddItemToArray(list, option);
            }
        }
    }
    all = all != NULL ? all : cJSON_AddArrayToObject(section, "allOf");
    (void)cJSON_AddItemToArray(all, one);
}

static cJSON *section_of(const struct section *s)
{
    static const char *const sources[] = {"steps", "phases", "plan", NULL};
    static const char *const whom[] = {"agentId", "skill", "type",  "switch",
                                       "wait",    "plan",  "steps", NULL};
    static const char *const what[] = {"task", "skill", "switch", "wait", "plan", "steps", NULL};
    cJSON *o = typed("object");
    cJSON *properties;
    (void)cJSON_AddStringToObject(o, "title", s->title);
    properties = cJSON_AddObjectToObject(o, "properties");
    add_fields(properties, s->fields);
    if (s->common != NULL) {
        add_fields(properties, s->common);
    }
    (void)cJSON_AddFalseToObject(o, "additionalProperties");
    if (strcmp(s->name, "document") == 0) {
        require_one(o, s->fields, sources);
    } else if (strcmp(s->name, "step") == 0) {
        require_one(o, s->fields, whom);
        require_one(o, s->fields, what);
    }
    return o;
}

int main(void)
{
    cJSON *root = object();
    cJSON *all;
    char *text;
    (void)cJSON_AddStringToObject(root, "$schema", "https://json-schema.org/draft/2020-12/schema");
    (void)cJSON_AddStringToObject(root, "title", "Baton plan");
    (void)cJSON_AddStringToObject(root, "description",
                                  "A plan or a recipe of Baton; PLANS.md describes it.");
    (void)cJSON_AddItemToObject(root, "if", typed("array")); /* not anyOf: editors name the place */
    (void)cJSON_AddItemToObject(root, "then", reference("steps"));
    (void)cJSON_AddItemToObject(root, "else", reference("document"));
    all = cJSON_AddObjectToObject(root, "$defs");
    (void)cJSON_AddItemToObject(all, "steps", steps(&document_fields[0]));
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        (void)cJSON_AddItemToObject(all, sections[i].name, section_of(&sections[i]));
    }
    text = cJSON_Print(root);
    ASSERT(text != NULL);
    (void)puts(text);
    cJSON_free(text);
    cJSON_Delete(root);
    return 0;
}

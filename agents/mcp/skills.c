#include "agents/mcp/skills.h"

#include <stdio.h>

#include "agents/sdk/documents/flatten.h"
#include "agents/sdk/settings/fields.h"
#include "protocol/base/glob.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"

enum { SCHEMA_BYTES = 64 * 1024, DESCRIPTION_MAX = 1000 };

static const char answers_schema[] =
    "{\"type\":\"object\",\"description\":\"what a person answered to the server; leave it out\"}";

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the skills");
}

static bool is_true(struct doc map, const char *name)
{
    const struct doc d = doc_get(map, str_from(name));
    return d.ptr != NULL && doc_head(d).kind == DOC_BOOL && doc_head(d).b;
}

/* The settings first, then the hints of the tool. */
static const char *effects_of(const struct mcp_settings *s, struct doc tool, struct str name)
{
    const struct doc hints = doc_get(tool, STR_LIT("annotations"));
    const char *set = field_effect(s->effects, name, NULL);

    if (set != NULL) {
        return set;
    }
    return is_true(hints, "readOnlyHint")     ? "none"
           : is_true(hints, "idempotentHint") ? "idempotent"
                                              : "unsafe";
}

static void put_properties(struct doc properties, struct doc answers, struct buf *out)
{
    struct doc_cursor c = doc_cursor(properties);
    struct doc_head head = {.n = 0};

    if (properties.ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    doc_put_map(out, head.n + 1);
    for (uint32_t i = 0; i < head.n; i++) {
        doc_put_doc(out, doc_skip(&c));
        doc_put_doc(out, doc_skip(&c));
    }
    doc_put_cstr(out, MCP_ANSWERS);
    doc_put_doc(out, answers);
}

/* The schema with one more property. */
static enum bt_code add_answers(struct doc schema, struct buf *out, struct bt_error *err)
{
    const struct doc properties = doc_get(schema, STR_LIT("properties"));
    struct doc_cursor c = doc_cursor(schema);
    struct doc_head head;
    struct buf answers;
    struct buf all;
    enum bt_code code;

    buf_init(&answers, 1024);
    buf_init(&all, json_doc_capacity(SCHEMA_BYTES));
    code = json_to_doc(str_from(answers_schema), NULL, &answers, err);
    (void)doc_next(&c, &head);
    doc_put_map(&all, head.n + (properties.ptr == NULL));
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        const struct doc key = doc_skip(&c);
        const struct doc value = doc_skip(&c);
        if (!str_is(doc_string(key), "properties")) {
            doc_put_doc(&all, key);
            doc_put_doc(&all, value);
        }
    }
    doc_put_cstr(&all, "properties");
    put_properties(properties, doc_from_buf(&answers), &all);
    code = code == BT_OK ? buf_check(&all, err) : code;
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&all), false, out, err);
    }
    buf_done(&answers);
    buf_done(&all);
    return code;
}

static enum bt_code make_schema(struct arena *a, struct doc tool, const char **ret,
                                struct bt_error *err)
{
    const struct doc given = doc_get(tool, STR_LIT("inputSchema"));
    struct buf flat;
    struct buf doc;
    struct buf json;
    enum bt_code code = BT_OK;

    buf_init(&flat, SCHEMA_BYTES);
    buf_init(&doc, json_doc_capacity(SCHEMA_BYTES));
    buf_init(&json, SCHEMA_BYTES);
    if (given.ptr != NULL && doc_head(given).kind == DOC_MAP) {
        code = schema_flatten(given, given, (struct str){0}, 0, &flat, err);
    } else {
        buf_add_cstr(&flat, "{}");
    }
    if (code == BT_OK) {
        code = json_to_doc(buf_str(&flat), NULL, &doc, err);
    }
    if (code == BT_OK) {
        code = add_answers(doc_from_buf(&doc), &json, err);
    }
    if (code == BT_OK) {
        *ret = arena_str(a, buf_str(&json)).ptr;
        code = *ret == NULL ? no_memory(err) : BT_OK;
    }
    buf_done(&flat);
    buf_done(&doc);
    buf_done(&json);
    return code;
}

enum bt_code mcp_skill_make(const struct mcp_settings *s, struct arena *a, struct doc tool,
                            struct bt_skill *ret_skill, struct mcp_tool *ret_tool,
                            struct bt_error *err)
{
    const struct str name = doc_string(doc_get(tool, STR_LIT("name")));
    struct str about = doc_string(doc_get(tool, STR_LIT("description")));
    const struct str title = doc_string(doc_get(tool, STR_LIT("title")));
    const char *schema = NULL;
    enum bt_code code;

    if (name.len == 0) {
        return err_set(err, BT_INVALID, "a tool without a name");
    }
    about = about.len > 0 ? about : name;
    about.len = utf8_cut(about.ptr, about.len, DESCRIPTION_MAX);
    code = make_schema(a, tool, &schema, err);
    if (code != BT_OK) {
        return err_wrap(err, "tool %.*s", name.len > 80 ? 80 : (int)name.len, name.ptr);
    }
    *ret_skill = (struct bt_skill){.id = field_skill_id(a, name),
                                   .name = title.len > 0 ? arena_str(a, title).ptr : NULL,
                                   .description = arena_str(a, about).ptr,
                                   .input_schema = schema,
                                   .effects = effects_of(s, tool, name),
                                   .max_ms = s->timeout_ms};
    *ret_tool = (struct mcp_tool){.skill = ret_skill->id,
                                  .tool = arena_str(a, name).ptr,
                                  .unsafe = strcmp(ret_skill->effects, "unsafe") == 0};
    return ret_skill->id == NULL || ret_skill->description == NULL || ret_tool->tool == NULL
               ? no_memory(err)
               : BT_OK;
}

#include "supervisor/dispatch/input_check.h"

#include <cjson/cJSON.h>

#include "protocol/jsonschema/schema.h"
#include "supervisor/events/record_codec.h"

struct asked {
    uint32_t step;
    struct arena *arena;
    struct doc schema; /* of the newest row */
};

static bool find_schema(const struct journal_row *row, void *self)
{
    struct asked *asked = self;
    const struct doc body = {row->body, row->body_len};
    const struct doc index = doc_get(body, STR_LIT("stepIndex"));

    if (str_is(row->type, record_wire_type(REC_STEP_WAITING)) && index.ptr != NULL &&
        doc_head(index).u == asked->step) {
        const struct doc schema = doc_get(body, STR_LIT("schema"));
        asked->schema = schema.ptr != NULL ? doc_copy(asked->arena, schema) : schema;
    }
    return true;
}

/* A schema that cannot be compiled is not the person's fault: the agent checks the value itself. */
static enum bt_code check(struct doc schema, struct doc value, const char *what,
                          struct bt_error *err)
{
    struct schema *compiled = NULL;
    cJSON *tree = NULL;
    cJSON *instance = NULL;
    uint32_t problems = 0;
    enum bt_code code = doc_to_cjson(schema, &tree, err);

    if (code == BT_OK) {
        code = doc_to_cjson(value, &instance, err);
    }
    if (code == BT_OK && schema_compile(tree, &compiled, NULL) == BT_OK) {
        code = schema_check(compiled, instance, NULL, 0, &problems, err);
        if (code != BT_OK) {
            code = err_wrap(err, "%s", what);
        }
    }
    schema_free(compiled);
    cJSON_Delete(tree);
    cJSON_Delete(instance);
    return code;
}

enum bt_code dispatch_input_check(struct engine *engine, const struct open_plan *p, uint32_t step,
                                  struct doc value, struct str words, struct bt_error *err)
{
    struct arena arena = {.chunks = NULL};
    struct asked asked = {.step = step, .arena = &arena};
    struct buf json;
    enum bt_code code =
        journal_events(engine_journal(engine), 0, p->ix, UINT32_MAX, find_schema, &asked, err);

    if (code == BT_OK && asked.schema.ptr != NULL && value.ptr != NULL) {
        code =
            check(asked.schema, value, "edit: the values do not fit what the step asks for", err);
    } else if (code == BT_OK && asked.schema.ptr != NULL && words.len == 0) {
        buf_init(&json, LIMIT_CONTROL_BYTES);
        code = doc_to_json(asked.schema, false, &json, err);
        if (code == BT_OK) {
            code = err_set(err, BT_INVALID,
                           "edit: is missing; the step asks for a value that fits %.600s",
                           buf_cstr(&json));
        }
        buf_done(&json);
    }
    arena_done(&arena);
    return code;
}

enum bt_code dispatch_signal_check(const struct plan_wait *wait, struct doc data,
                                   struct bt_error *err)
{
    static const uint8_t nil[] = {0xc0};

    return wait->schema.ptr == NULL
               ? BT_OK
               : check(wait->schema, data.ptr != NULL ? data : (struct doc){nil, sizeof nil},
                       "data: does not fit wait.schema of the plan", err);
}

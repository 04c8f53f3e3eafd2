#include "supervisor/dispatch/verify.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "protocol/base/log.h"
#include "protocol/jsonschema/schema.h"

enum { PROBLEMS_TOLD = 3 };

struct verify_output {
    bool tried;
    struct schema *schema; /* NULL = none, or of no use */
};

static enum bt_code subject(const struct msg_result *result, cJSON **ret, struct bt_error *err)
{
    struct buf text;
    enum bt_code code;

    if (result->data.ptr != NULL) {
        return doc_to_cjson(result->data, ret, err);
    }
    buf_init(&text, LIMIT_STEP_BYTES);
    doc_put_str(&text, result->text);
    code = buf_check(&text, err);
    if (code == BT_OK) {
        code = doc_to_cjson(doc_from_buf(&text), ret, err);
    }
    buf_done(&text);
    return code;
}

static enum bt_code compile(struct doc doc, struct schema **ret, struct bt_error *err)
{
    cJSON *rules = NULL;
    enum bt_code code = doc_to_cjson(doc, &rules, err);

    if (code == BT_OK) {
        code = schema_compile(rules, ret, err);
    }
    cJSON_Delete(rules);
    return code;
}

/* *ret_n > 0: the result does not fit; the reasons are appended to the diagnosis. */
static enum bt_code check(const struct schema *schema, const struct msg_result *result,
                          struct buf *diagnosis, uint32_t *ret_n, struct bt_error *err)
{
    struct schema_problem problems[PROBLEMS_TOLD + 1]; /* one more tells that there are more */
    cJSON *value = NULL;
    enum bt_code code = subject(result, &value, err);

    *ret_n = 0;
    if (code == BT_OK) {
        code = schema_check(schema, value, problems, PROBLEMS_TOLD + 1, ret_n, err);
    }
    for (uint32_t i = 0; code != BT_OK && i < *ret_n && i < PROBLEMS_TOLD; i++) {
        buf_printf(diagnosis, "%s%s %s", i > 0 ? "; " : "",
                   problems[i].path[0] != 0 ? problems[i].path : "the result", problems[i].message);
    }
    buf_add_cstr(diagnosis, code != BT_OK && *ret_n > PROBLEMS_TOLD ? "; and more" : "");
    cJSON_Delete(value);
    return code;
}

bool verify_result(struct doc schema, const struct msg_result *result, struct buf *diagnosis)
{
    struct schema *compiled = NULL;
    uint32_t n = 0;
    struct bt_error err;
    enum bt_code code = compile(schema, &compiled, &err);

    buf_add_cstr(diagnosis, "verify: ");
    if (code == BT_OK) {
        code = check(compiled, result, diagnosis, &n, &err);
    }
    if (code == BT_OK) {
        buf_clear(diagnosis);
    } else if (n == 0) {
        buf_add_cstr(diagnosis, err.msg);
    }
    schema_free(compiled);
    return code == BT_OK;
}

/* ---- output schemas ---- */

void verify_outputs_done(struct verify_outputs *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        schema_free(o->at[i].schema);
    }
    free(o->at);
    *o = (struct verify_outputs){0};
}

/* NULL: it has none, or one that is of no use. */
static const struct schema *compiled(struct verify_outputs *o, const struct msg_card *card,
                                     uint64_t card_hash, uint32_t skill)
{
    struct verify_output *out;
    struct bt_error err;

    if (o->at == NULL || o->card != card_hash) {
        verify_outputs_done(o);
        o->at = calloc(card->skills_n, sizeof *o->at);
        o->n = o->at != NULL ? card->skills_n : 0;
        o->card = card_hash;
    }
    if (skill >= o->n || card->skills[skill].output_schema.ptr == NULL) {
        return NULL;
    }
    out = &o->at[skill];
    if (!out->tried) {
        out->tried = true;
        if (compile(card->skills[skill].output_schema, &out->schema, &err) != BT_OK) {
            log_warn("agent.output_schema", "agent=%.*s skill=%.*s is of no use: %s",
                     STR_ARG(card->agent_id), STR_ARG(card->skills[skill].id), err.msg);
        }
    }
    return out->schema;
}

bool verify_output(struct verify_outputs *o, const struct msg_card *card, uint64_t card_hash,
                   uint32_t skill, const struct msg_result *result, struct buf *diagnosis)
{
    const struct schema *schema = compiled(o, card, card_hash, skill);
    uint32_t n = 0;
    struct bt_error err;

    if (schema == NULL) {
        return true;
    }
    buf_printf(diagnosis, "output of skill '%.*s': ", STR_ARG(card->skills[skill].id));
    if (check(schema, result, diagnosis, &n, &err) != BT_OK && n > 0) {
        return false;
    }
    buf_clear(diagnosis);
    return true;
}

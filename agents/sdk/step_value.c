/* Values of the request: parameters by path, dependencies, the whole request as JSON. */
#include "agents/sdk/step.h"

static struct doc param(const struct bt_step *s, const char *path)
{
    struct doc d = s->req.parameters;

    if (d.ptr == NULL || path == NULL || path[0] == 0) {
        return d;
    }
    return doc_path(d, str_from(path));
}

/* A doc as JSON, or as plain text, stored with the step; NULL when out of memory. */
static const char *render_value(struct bt_step *s, struct doc d, bool as_text)
{
    struct buf out;
    const char *kept = NULL;
    enum bt_code code;

    buf_init(&out, LIMIT_STEP_BYTES * 2);
    code = as_text ? doc_to_text(d, &out, NULL) : doc_to_json(d, false, &out, NULL);
    if (code == BT_OK && buf_check(&out, NULL) == BT_OK) {
        kept = step_copy_text(s, buf_str(&out));
    }
    buf_done(&out);
    return kept;
}

const char *bt_step_param_string(struct bt_step *s, const char *path, const char *fallback)
{
    struct doc d = param(s, path);
    const char *kept = NULL;

    if (d.ptr != NULL && doc_head(d).kind == DOC_STR) {
        kept = step_copy_text(s, doc_string(d));
    }
    return kept != NULL ? kept : fallback;
}

double bt_step_param_number(struct bt_step *s, const char *path, double fallback)
{
    const struct doc_head h = doc_head(param(s, path));

    if (h.kind == DOC_FLOAT) {
        return h.f;
    }
    if (h.kind == DOC_INT) {
        return (double)h.i;
    }
    return h.kind == DOC_UINT ? (double)h.u : fallback;
}

bool bt_step_param_bool(struct bt_step *s, const char *path, bool fallback)
{
    const struct doc_head h = doc_head(param(s, path));

    return h.kind == DOC_BOOL ? h.b : fallback;
}

bool bt_step_has_param(struct bt_step *s, const char *path)
{
    return param(s, path).ptr != NULL;
}

const char *bt_step_params_json(struct bt_step *s, const char *path)
{
    struct doc d = param(s, path);

    if (d.ptr == NULL) {
        return path == NULL || path[0] == 0 ? "{}" : NULL;
    }
    return render_value(s, d, false);
}

/* ---- dependencies ---- */

size_t bt_step_dependency_count(const struct bt_step *s)
{
    return s->req.context.dependencies_n;
}

const char *bt_step_dependency_id(struct bt_step *s, size_t ix)
{
    return ix < s->req.context.dependencies_n
               ? step_copy_text(s, s->req.context.dependencies[ix].step_id)
               : NULL;
}

/* A result is {text?, data?, artifacts?, truncated?, state?}: the payload is its data, else its
 * text. Any other value is its own payload. */
static struct doc payload(struct doc result)
{
    static const char *const members[] = {"text", "data", "artifacts", "truncated", "state"};
    struct doc_head h = doc_head(result);
    struct doc data;
    uint32_t known = 0;

    if (result.ptr == NULL || h.kind != DOC_MAP) {
        return result;
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        known += doc_get(result, str_from(members[i])).ptr != NULL;
    }
    if (known == 0 || known != h.n) {
        return result;
    }
    data = doc_get(result, STR_LIT("data"));
    if (data.ptr == NULL) {
        data = doc_get(result, STR_LIT("text"));
    }
    return data.ptr != NULL ? data : result;
}

static const char *dependency(struct bt_step *s, size_t ix, bool as_text)
{
    struct doc d;

    if (ix >= s->req.context.dependencies_n) {
        return NULL;
    }
    d = s->req.context.dependencies[ix].result;
    if (d.ptr == NULL) {
        return as_text ? "" : "null";
    }
    return render_value(s, payload(d), as_text);
}

const char *bt_step_dependency_json(struct bt_step *s, size_t ix)
{
    return dependency(s, ix, false);
}

const char *bt_step_dependency_text(struct bt_step *s, size_t ix)
{
    struct doc text;

    if (ix >= s->req.context.dependencies_n) {
        return NULL;
    }
    text = s->req.context.dependencies[ix].result.ptr != NULL
               ? doc_get(s->req.context.dependencies[ix].result, STR_LIT("text"))
               : (struct doc){NULL, 0};
    if (text.ptr != NULL && doc_head(text).kind == DOC_STR) {
        return step_copy_text(s, doc_string(text));
    }
    return dependency(s, ix, true);
}

/* ---- the whole request ---- */

static enum bt_code put_part(struct buf *out, enum msg_type type, const void *body,
                             struct bt_error *err)
{
    struct msg_part part = {type, body};

    return msg_write(out, WIRE_MSGPACK, &part, 1, err);
}

static void put_text(struct buf *out, const char *key, struct str value)
{
    doc_put_cstr(out, key);
    doc_put_str(out, value);
}

static void put_number(struct buf *out, const char *key, uint64_t value)
{
    doc_put_cstr(out, key);
    doc_put_u64(out, value);
}

/* The dependencies are a member of their own, not part of the context: a script finds them in one
 * place. */
static enum bt_code put_request(const struct bt_step *s, struct buf *out, struct bt_error *err)
{
    struct msg_context context = s->req.context;
    enum bt_code code;

    context.dependencies_n = 0;
    context.has = 0;
    const bool has_budget = s->req.budget.has != 0;

    doc_put_map(out, 14u + (s->req.result.ptr != NULL ? 1u : 0u) + (has_budget ? 1u : 0u));
    put_text(out, "task", s->req.task);
    put_text(out, "skill", s->req.skill);
    put_text(out, "planId", s->req.plan_id);
    put_text(out, "sessionId", s->req.session_id);
    put_text(out, "stepId", s->req.step_id);
    put_text(out, "key", s->req.key);
    put_number(out, "attempt", s->req.attempt);
    put_text(out, "feedback", s->req.feedback);
    put_number(out, "deadlineMs", s->req.deadline_ms);
    put_number(out, "idleMs", s->req.idle_ms);
    put_text(out, "purpose", str_from(s->purpose));
    if (s->req.result.ptr != NULL) {
        doc_put_cstr(out, "result");
        doc_put_doc(out, s->req.result);
    }
    doc_put_cstr(out, "parameters");
    if (s->req.parameters.ptr != NULL) {
        doc_put_doc(out, s->req.parameters);
    } else {
        doc_put_map(out, 0);
    }
    doc_put_cstr(out, "context");
    code = put_part(out, MSG_context, &context, err);
    if (has_budget && code == BT_OK) {
        doc_put_cstr(out, "budget");
        code = put_part(out, MSG_budget, &s->req.budget, err);
    }
    doc_put_cstr(out, "dependencies");
    doc_put_array(out, s->req.context.dependencies_n);
    for (uint32_t i = 0; i < s->req.context.dependencies_n && code == BT_OK; i++) {
        code = put_part(out, MSG_dependency, &s->req.context.dependencies[i], err);
    }
    return code != BT_OK ? code : buf_check(out, err);
}

const char *bt_step_request_json(struct bt_step *s)
{
    struct buf out;
    const char *kept = NULL;

    buf_init(&out, LIMIT_STEP_BYTES * 2);
    if (put_request(s, &out, NULL) == BT_OK) {
        kept = render_value(s, doc_from_buf(&out), false);
    }
    buf_done(&out);
    return kept != NULL ? kept : "";
}

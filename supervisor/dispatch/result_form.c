#include "supervisor/dispatch/result_form.h"

/* The members of a step.result that a command replaces. */
struct form {
    struct doc result; /* the new one; .ptr NULL = none */
    const char *outcome;
    struct str kind, prompt, to_agent, reason;
    struct doc schema;
    bool need, handoff;
};

static bool is_canonical(struct doc result)
{
    struct doc_head head = doc_head(result);

    return head.kind == DOC_MAP && (head.n == 0 || doc_get(result, STR_LIT("text")).ptr != NULL ||
                                    doc_get(result, STR_LIT("data")).ptr != NULL ||
                                    doc_get(result, STR_LIT("artifacts")).ptr != NULL);
}

/* The first of two members that is there. */
static struct doc either(struct doc d, struct str a, struct str b)
{
    struct doc first = doc_get(d, a);

    return first.ptr != NULL ? first : doc_get(d, b);
}

static void read_command(struct doc d, struct form *f)
{
    struct str command = doc_string(doc_get(d, STR_LIT("command")));

    if (str_is(command, "pause")) {
        struct str kind = doc_string(doc_get(d, STR_LIT("kind")));
        f->need = true;
        f->kind = str_is(kind, "approval") ? STR_LIT("approval") : STR_LIT("input");
        f->outcome = str_is(kind, "approval") ? "needs_approval" : "needs_input";
        f->prompt = doc_string(either(d, STR_LIT("prompt"), STR_LIT("reason")));
        f->schema = doc_get(d, STR_LIT("schema"));
    } else if (str_is(command, "handoff")) {
        f->handoff = true;
        f->outcome = "handoff";
        f->to_agent = doc_string(either(d, STR_LIT("toAgentId"), STR_LIT("goto")));
        f->reason = doc_string(doc_get(d, STR_LIT("reason")));
    } else if (str_is(command, "resume")) {
        f->outcome = "completed";
        f->result = either(d, STR_LIT("result"), STR_LIT("value"));
        f->result = f->result.ptr != NULL ? f->result : doc_get(d, STR_LIT("update"));
    }
}

static void put_result(struct buf *out, struct doc result)
{
    doc_put_cstr(out, "result");
    if (result.ptr != NULL && is_canonical(result)) {
        doc_put_doc(out, result);
        return;
    }
    if (result.ptr == NULL) {
        doc_put_map(out, 0);
        return;
    }
    doc_put_map(out, 1);
    doc_put_cstr(out, doc_head(result).kind == DOC_STR ? "text" : "data");
    doc_put_doc(out, result);
}

static void put_need(struct buf *out, const struct form *f)
{
    doc_put_cstr(out, "need");
    doc_put_map(out, f->schema.ptr != NULL ? 3 : 2);
    doc_put_cstr(out, "kind");
    doc_put_str(out, f->kind);
    doc_put_cstr(out, "prompt");
    doc_put_str(out, f->prompt);
    if (f->schema.ptr != NULL) {
        doc_put_cstr(out, "schema");
        doc_put_doc(out, f->schema);
    }
}

static void put_handoff(struct buf *out, const struct form *f)
{
    doc_put_cstr(out, "handoff");
    doc_put_map(out, 2);
    doc_put_cstr(out, "toAgentId");
    doc_put_str(out, f->to_agent);
    doc_put_cstr(out, "reason");
    doc_put_str(out, f->reason);
}

/* The body again, with the members of the form in place of the old ones. */
static void rewrite(struct doc body, const struct form *f, struct buf *out)
{
    static const char *const ours[] = {"result", "outcome", "need", "handoff"};
    struct doc_cursor c = doc_cursor(body);
    struct doc_head head;
    uint32_t kept = 0;
    bool replaced[4];

    (void)doc_next(&c, &head);
    for (size_t i = 0; i < 4; i++) {
        replaced[i] = i == 0 || (i == 1 && f->outcome != NULL) || (i == 2 && f->need) ||
                      (i == 3 && f->handoff);
        kept += replaced[i] && doc_get(body, str_from(ours[i])).ptr != NULL;
    }
    kept = head.n - kept;
    doc_put_map(out, kept + (f->need || f->handoff ? 0 : 1) + (f->outcome != NULL) + f->need +
                         f->handoff);
    for (uint32_t i = 0; i < head.n; i++) {
        struct doc key = doc_skip(&c);
        struct doc value = doc_skip(&c);
        bool skip = false;
        for (size_t k = 0; k < 4; k++) {
            skip = skip || (replaced[k] && str_is(doc_string(key), ours[k]));
        }
        if (!skip) {
            doc_put_doc(out, key);
            doc_put_doc(out, value);
        }
    }
    if (f->outcome != NULL) {
        doc_put_cstr(out, "outcome");
        doc_put_cstr(out, f->outcome);
    }
    if (f->need) {
        put_need(out, f);
    } else if (f->handoff) {
        put_handoff(out, f);
    } else {
        put_result(out, f->result);
    }
}

static bool is_plain(struct doc step_result)
{
    struct doc result = doc_get(step_result, STR_LIT("result"));

    return result.ptr == NULL || doc_head(result).kind == DOC_NIL || is_canonical(result);
}

static void normalise(struct doc step_result, struct buf *out)
{
    struct form f = {.result = doc_get(step_result, STR_LIT("result"))};

    read_command(f.result, &f);
    rewrite(step_result, &f, out);
}

/* The answer to step.query holds a whole step.result as its `result`. */
static void normalise_inside(struct doc body, struct buf *out)
{
    struct doc_cursor c = doc_cursor(body);
    struct doc_head head;

    (void)doc_next(&c, &head);
    doc_put_map(out, head.n);
    for (uint32_t i = 0; i < head.n; i++) {
        struct doc key = doc_skip(&c);
        struct doc value = doc_skip(&c);
        doc_put_doc(out, key);
        if (str_is(doc_string(key), "result")) {
            normalise(value, out);
        } else {
            doc_put_doc(out, value);
        }
    }
}

enum bt_code result_form_normalise(struct msg_reader *r, struct bt_error *err)
{
    struct doc body = {r->body, r->len};
    struct str type = doc_string(doc_get(body, STR_LIT("type")));
    bool inside = str_is(type, "step.state");
    struct doc step_result = inside ? doc_get(body, STR_LIT("result")) : body;
    struct buf out;
    struct doc copy;
    enum bt_code code;

    if ((!inside && !str_is(type, "step.result")) || step_result.ptr == NULL ||
        doc_head(step_result).kind != DOC_MAP || is_plain(step_result)) {
        return BT_OK;
    }
    buf_init(&out, r->len + 1024);
    if (inside) {
        normalise_inside(body, &out);
    } else {
        normalise(body, &out);
    }
    code = buf_check(&out, err);
    copy = code == BT_OK ? doc_copy(&r->arena, doc_from_buf(&out)) : (struct doc){NULL, 0};
    buf_done(&out);
    if (copy.ptr == NULL) {
        return code != BT_OK ? code : err_set(err, BT_NOMEM, "out of memory for a result");
    }
    r->body = copy.ptr;
    r->len = copy.len;
    return BT_OK;
}

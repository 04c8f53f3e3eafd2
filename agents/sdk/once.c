/* A step without a supervisor: a request made from a few JSON members. For --once and for the tests
 * of handlers. */
#include "agents/sdk/step.h"
#include "protocol/base/clock.h"

/* Everything that the protocol requires and that does not matter to a handler. */
static void put_frame(struct buf *out, const char *skill)
{
    doc_put_cstr(out, "skill");
    doc_put_cstr(out, skill);
    doc_put_cstr(out, "sessionKey");
    doc_put_cstr(out, "once");
    doc_put_cstr(out, "planId");
    doc_put_cstr(out, "00000000-0000-7000-8000-000000000000");
    doc_put_cstr(out, "stepId");
    doc_put_cstr(out, "once");
    doc_put_cstr(out, "key");
    doc_put_cstr(out, "00000000-0000-7000-8000-000000000000/1/once");
    doc_put_cstr(out, "revision");
    doc_put_u64(out, 1);
    doc_put_cstr(out, "stepIndex");
    doc_put_u64(out, 0);
    doc_put_cstr(out, "stepCount");
    doc_put_u64(out, 1);
    doc_put_cstr(out, "attempt");
    doc_put_u64(out, 1);
    doc_put_cstr(out, "epoch");
    doc_put_u64(out, 1);
}

enum { FRAME_MEMBERS = 10 };

static enum bt_code build(struct str json, const char *skill, struct buf *out, struct bt_error *err)
{
    static const char *const taken[] = {"task", "parameters", "context", "deadlineMs", "feedback"};
    struct buf given;
    struct doc d;
    uint32_t n = 0;
    enum bt_code code;

    buf_init(&given, LIMIT_STEP_BYTES);
    code = json_to_doc(json.len > 0 ? json : STR_LIT("{}"), NULL, &given, err);
    d = doc_from_buf(&given);
    if (code == BT_OK && doc_head(d).kind != DOC_MAP) {
        code = err_set(err, BT_INVALID,
                       "a step: expected a JSON object {\"task\", \"parameters\", \"context\"}");
    }
    for (size_t i = 0; code == BT_OK && i < sizeof taken / sizeof taken[0]; i++) {
        n += doc_get(d, str_from(taken[i])).ptr != NULL;
    }
    if (code == BT_OK) {
        doc_put_map(out, FRAME_MEMBERS + n);
        put_frame(out, skill);
        for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
            struct doc member = doc_get(d, str_from(taken[i]));
            if (member.ptr != NULL) {
                doc_put_cstr(out, taken[i]);
                doc_put_doc(out, member);
            }
        }
        code = buf_check(out, err);
    }
    buf_done(&given);
    return code;
}

enum bt_code step_new_once(struct str json, const char *skill, struct bt_step **ret,
                           struct bt_error *err)
{
    struct buf body;
    struct bt_step *s = NULL;
    struct doc kept;
    enum bt_code code;

    buf_init(&body, LIMIT_STEP_BYTES);
    code = build(json, skill, &body, err);
    if (code == BT_OK) {
        code = step_new(body.at, body.len, clock_mono_ms(), &s, err);
    }
    if (code == BT_OK) {
        /* The step borrows its bytes: read them again from a copy that it owns. */
        kept = doc_copy(&s->texts, doc_from_buf(&body));
        msg_reader_done(&s->reader);
        s->reader = (struct msg_reader){0};
        code = kept.ptr == NULL
                   ? err_set(err, BT_NOMEM, "out of memory for a step")
                   : msg_reader_init(&s->reader, kept.ptr, kept.len, LIMIT_STEP_BYTES, err);
    }
    if (code == BT_OK) {
        code = msg_read(&s->reader, MSG_step_execute, &s->req, err);
    }
    if (code == BT_OK) {
        *ret = s;
    } else {
        step_free(s);
    }
    buf_done(&body);
    return code;
}

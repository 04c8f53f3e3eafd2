/* Builds a step from a few JSON members, for --once and for tests of handlers. */
#include "agents/sdk/step.h"
#include "protocol/base/clock.h"

/* Members that the protocol requires and handlers do not read. */
static void put_required_members(struct buf *out, const char *skill)
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
    static const char *const members[] = {
        "task",   "parameters", "context",     "deadlineMs", "feedback", "purpose", "result",
        "idleMs", "budget",     "artifactDir", "artifacts",  "tools",    "turns",   "turnsLeft"};
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
    for (size_t i = 0; code == BT_OK && i < sizeof members / sizeof members[0]; i++) {
        n += doc_get(d, str_from(members[i])).ptr != NULL;
    }
    if (code == BT_OK) {
        doc_put_map(out, FRAME_MEMBERS + n);
        put_required_members(out, skill);
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
            struct doc member = doc_get(d, str_from(members[i]));
            if (member.ptr != NULL) {
                doc_put_cstr(out, members[i]);
                doc_put_doc(out, member);
            }
        }
        code = buf_check(out, err);
    }
    buf_done(&given);
    return code;
}

enum bt_code step_new_from_json(struct str json, const char *skill, struct bt_step **ret,
                                struct bt_error *err)
{
    struct msg_reader r = {0};
    struct bt_step *s = NULL;
    struct buf body;
    size_t len = 0;
    enum bt_code code;

    buf_init(&body, LIMIT_STEP_BYTES);
    code = build(json, skill, &body, err);
    if (code == BT_OK) {
        code = msg_reader_init(&r, body.at, body.len, LIMIT_STEP_BYTES, err);
    }
    if (code == BT_OK) {
        code = step_new(&r, clock_mono_ms(), &s, err);
    }
    if (code == BT_OK) {
        s->owned = buf_take(&body, &len);
        code = step_check_purpose(s, err);
    }
    if (code == BT_OK) {
        *ret = s;
    } else {
        step_free(s);
    }
    msg_reader_done(&r);
    buf_done(&body);
    return code;
}

/* Questions: the purpose of a request, the data that a question carries, and the verdict that
 * answers it. */
#include <stdarg.h>
#include <stdio.h>

#include "agents/sdk/step.h"

enum { VERDICT_TEXT_MAX = 4096 };

enum bt_code step_check_purpose(const struct bt_step *s, struct bt_error *err)
{
    static const struct {
        const char *name;
        bool question;
    } known[] = {
        {"execute", false}, {"search", false}, {"gate", true},       {"verify", true},
        {"replan", true},   {"plan", true},    {"synthesize", true}, {"converse", true},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(s->purpose, known[i].name) != 0) {
            continue;
        }
        if (known[i].question && s->skill[0] == 0) {
            return err_set(err, BT_NOT_FOUND,
                           "purpose '%s': expected the skill that answers it; the step itself was "
                           "not done",
                           s->purpose);
        }
        return BT_OK;
    }
    return err_set(err, BT_INVALID,
                   "purpose '%.40s': this agent knows execute, search, gate, verify, replan, plan, "
                   "synthesize and converse",
                   s->purpose);
}

const char *bt_step_purpose(const struct bt_step *s)
{
    return s->purpose;
}

static const char *as_json(struct bt_step *s, struct doc value)
{
    struct buf out;
    const char *kept = NULL;

    buf_init(&out, LIMIT_STEP_BYTES * 2);
    if (doc_to_json(value, false, &out, NULL) == BT_OK) { /* of no value it fails */
        kept = step_copy_text(s, buf_str(&out));
    }
    buf_done(&out);
    return kept;
}

const char *bt_step_result_json(struct bt_step *s)
{
    return as_json(s, s->req.result);
}

const char *bt_step_tools_json(struct bt_step *s)
{
    return as_json(s, s->req.tools);
}

const char *bt_step_turns_json(struct bt_step *s)
{
    return as_json(s, s->req.turns);
}

uint64_t bt_step_turns_left(const struct bt_step *s)
{
    return s->req.turns_left;
}

uint64_t bt_step_budget_tokens(const struct bt_step *s)
{
    return msg_has(&s->req.budget, budget, tokens) ? s->req.budget.tokens : UINT64_MAX;
}

uint64_t bt_step_budget_micros(const struct bt_step *s)
{
    return msg_has(&s->req.budget, budget, cost_micros) ? s->req.budget.cost_micros : UINT64_MAX;
}

uint64_t bt_step_idle_ms(const struct bt_step *s)
{
    return s->req.idle_ms;
}

void bt_step_reply_verdict(struct bt_step *s, bool passed, const char *fmt, ...)
{
    char text[VERDICT_TEXT_MAX];
    struct buf clean;
    struct buf doc;
    struct buf json;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_init(&clean, 4 * VERDICT_TEXT_MAX);
    buf_init(&doc, 8 * VERDICT_TEXT_MAX);
    buf_init(&json, 32 * VERDICT_TEXT_MAX);
    (void)buf_add_repaired(&clean, str_from(n < 0 ? "" : text));
    doc_put_map(&doc, 2);
    doc_put_cstr(&doc, "passed");
    doc_put_bool(&doc, passed);
    doc_put_cstr(&doc, "diagnosis");
    doc_put_str(&doc, buf_str(&clean));
    if (buf_check(&clean, NULL) == BT_OK && buf_check(&doc, NULL) == BT_OK &&
        doc_to_json(doc_from_buf(&doc), false, &json, NULL) == BT_OK) {
        bt_step_reply_json(s, (const char *)json.at, json.len);
    } else {
        bt_step_fail(s, "SERVICE_UNAVAILABLE", true, "out of memory for a verdict");
    }
    buf_done(&clean);
    buf_done(&doc);
    buf_done(&json);
}

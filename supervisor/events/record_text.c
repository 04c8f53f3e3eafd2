/* Short texts of records: review ids, topics, failure reasons. */
#include "supervisor/events/record_internal.h"

#include <stdio.h>

#include "protocol/base/utf8.h"

void review_id_format(struct uuid plan_id, struct str step_id, uint32_t attempt, struct buf *out)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(plan_id, text);
    buf_add_cstr(out, text);
    if (step_id.len > 0) {
        buf_printf(out, "/%.*s/%u", STR_ARG(step_id), attempt);
    }
}

bool review_id_parse(struct str id, struct uuid *ret_plan, struct str *ret_step_id,
                     uint32_t *ret_attempt)
{
    size_t slash = id.len;
    uint32_t attempt = 0;

    if (id.len == UUID_TEXT_LEN && uuid_parse(id, ret_plan)) {
        *ret_step_id = (struct str){NULL, 0};
        *ret_attempt = 0;
        return true;
    }
    if (id.len <= UUID_TEXT_LEN + 1 || id.ptr[UUID_TEXT_LEN] != '/' ||
        !uuid_parse((struct str){id.ptr, UUID_TEXT_LEN}, ret_plan)) {
        return false;
    }
    while (slash > 0 && id.ptr[slash - 1] != '/') {
        slash--;
    }
    /* slash: the first digit. There are at most nine digits, and none before the plan's slash. */
    if (slash <= UUID_TEXT_LEN + 2 || slash == id.len || id.len - slash > 9) {
        return false;
    }
    for (size_t i = slash; i < id.len; i++) {
        if (id.ptr[i] < '0' || id.ptr[i] > '9') {
            return false;
        }
        attempt = attempt * 10 + (uint32_t)(id.ptr[i] - '0');
    }
    *ret_step_id = (struct str){id.ptr + UUID_TEXT_LEN + 1, slash - UUID_TEXT_LEN - 2};
    *ret_attempt = attempt;
    return true;
}

/* For a failure without a sentence of the core. */
static const char *bare_reason(enum plan_failure failure)
{
    static const char *const TEXTS[PLAN_FAILURE_COUNT] = {
        [PLAN_FAILURE_NOTHING_COMPLETED] = "No step completed",
        [PLAN_FAILURE_BUDGET] = "Budget exceeded",
        [PLAN_FAILURE_MAX_REPLANS] = "Max replans exceeded",
        [PLAN_FAILURE_MAX_REPLANS_STEP] = "Max replans of a step exceeded",
        [PLAN_FAILURE_REPLAN] = "No new plan could be made",
        [PLAN_FAILURE_REPAIR_INVALID] = "The new plan is not valid",
        [PLAN_FAILURE_REJECTED] = "Rejected by a reviewer",
        [PLAN_FAILURE_PLANNING] = "No plan could be made",
        [PLAN_FAILURE_INVALID_PLAN] = "The plan is not valid",
        [PLAN_FAILURE_DEADLOCK] = "Deadlock: no steps ready and none in progress",
    };

    return TEXTS[failure] != NULL ? TEXTS[failure] : plan_failure_name(failure);
}

void plan_failure_reason(const struct record *rec, const struct plan *plan, struct buf *out)
{
    const struct rec_plan_completed *end = REC(rec, plan_completed);

    if (end->failure == PLAN_FAILURE_STEP) {
        if (rec->step < plan->n_steps) {
            buf_printf(out, "Step %u failed: ", rec->step + 1);
        }
        buf_add_str(out, rec->text);
    } else if (end->failure != PLAN_FAILURE_NONE) {
        /* The core's own sentence comes first. */
        if (rec->text.len > 0) {
            buf_add_str(out, rec->text);
        } else if (end->failure == PLAN_FAILURE_TIMEOUT) {
            buf_printf(out, "Execution timeout after %llums", (unsigned long long)plan->timeout_ms);
        } else {
            buf_add_cstr(out, bare_reason(end->failure));
        }
    } else if (end->status == PLAN_CANCELLED) {
        buf_add_cstr(out, rec->text.len > 0 ? "Cancelled: " : "Cancelled");
        buf_add_str(out, rec->text);
    }
}

/* One segment of a topic. It is never empty, and has no slash or control character, so it stays one
 * segment. */
static void segment(struct buf *topic, struct str s)
{
    buf_add_byte(topic, '/');
    if (s.len == 0) {
        buf_add_byte(topic, '-');
    }
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = (uint8_t)s.ptr[i];
        buf_add_byte(topic, c == '/' || c < 0x20 || c == 0x7f ? '_' : c);
    }
}

void record_topic(const struct record *rec, const struct record_extra *x, struct str from,
                  struct str to, struct buf *topic)
{
    char plan_id[UUID_TEXT_LEN + 1];

    if (!record_row_is_public(rec, x->plan)) {
        return;
    }
    switch (record_about(rec->type)) {
    case ABOUT_PLAN:
        uuid_format(x->plan->plan_id, plan_id);
        buf_add_cstr(topic, rec->type == REC_HANDOFF ? "handoff" : "plan");
        segment(topic, x->plan->session_id);
        segment(topic, str_from(plan_id));
        if (rec->type == REC_HANDOFF) {
            segment(topic, from);
            segment(topic, to);
            return;
        }
        break;
    case ABOUT_AGENT:
        buf_add_cstr(topic, "agent");
        segment(topic, x->agent_id);
        break;
    case ABOUT_SESSION:
        buf_add_cstr(topic, "session");
        segment(topic, x->session_id);
        break;
    case ABOUT_SYSTEM:
        buf_add_cstr(topic, "system");
        break;
    }
    segment(topic, str_from(record_wire_type(rec->type)));
}

/* The small texts around records: review ids, topics, failure reasons. */
#include "supervisor/journal/record_internal.h"

#include <stdio.h>

#include "protocol/base/utf8.h"

void review_id_format(struct uuid plan_id, struct str step_id, uint32_t attempt, struct buf *out)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(plan_id, text);
    buf_printf(out, "%s/%.*s/%u", text, STR_ARG(step_id), attempt);
}

bool review_id_parse(struct str id, struct uuid *ret_plan, struct str *ret_step_id,
                     uint32_t *ret_attempt)
{
    size_t slash = id.len;
    uint32_t attempt = 0;

    if (id.len <= UUID_TEXT_LEN + 1 || id.ptr[UUID_TEXT_LEN] != '/' ||
        !uuid_parse((struct str){id.ptr, UUID_TEXT_LEN}, ret_plan)) {
        return false;
    }
    while (slash > 0 && id.ptr[slash - 1] != '/') {
        slash--;
    }
    /* slash: the first digit. At most nine of them, none before the slash of the plan. */
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

void plan_failure_reason(const struct record *rec, const struct plan *plan, struct buf *out)
{
    switch (rec->failure) {
    case PLAN_FAILURE_STEP:
        if (rec->step < plan->n_steps) {
            buf_printf(out, "Step %u failed: ", rec->step + 1);
        }
        buf_add_str(out, rec->text);
        return;
    case PLAN_FAILURE_TIMEOUT:
        if (rec->text.len > 0) {
            buf_add_str(out, rec->text);
        } else {
            buf_printf(out, "Execution timeout after %llums", (unsigned long long)plan->timeout_ms);
        }
        return;
    case PLAN_FAILURE_NOTHING_COMPLETED:
        buf_add_cstr(out, "No step completed");
        return;
    case PLAN_FAILURE_BUDGET:
    case PLAN_FAILURE_MAX_REPLANS:
    case PLAN_FAILURE_MAX_REPLANS_STEP:
    case PLAN_FAILURE_REPLAN:
    case PLAN_FAILURE_REPAIR_INVALID:
    case PLAN_FAILURE_REJECTED:
    case PLAN_FAILURE_DEADLOCK:
        buf_add_str(out, rec->text);
        return;
    case PLAN_FAILURE_NONE:
    case PLAN_FAILURE_COUNT:
        break;
    }
    if (rec->plan_status == PLAN_CANCELLED) {
        buf_add_cstr(out, rec->text.len > 0 ? "Cancelled: " : "Cancelled");
        buf_add_str(out, rec->text);
    }
}

/* One segment of a topic: never empty, no slash and no control character, so that it stays one
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

    if (!record_is_public(rec->type)) {
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
    case ABOUT_SYSTEM:
        buf_add_cstr(topic, "system");
        break;
    }
    segment(topic, str_from(record_wire_type(rec->type)));
}

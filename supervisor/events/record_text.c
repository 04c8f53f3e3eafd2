/* Short texts of records: review ids, topics, failure reasons. */
#include "supervisor/events/record_internal.h"

#include <stdio.h>
#include <string.h>

#include "protocol/base/utf8.h"

void review_id_format(struct uuid plan_id, struct str step_id, uint32_t serial, struct buf *out)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(plan_id, text);
    buf_add_cstr(out, text);
    if (step_id.len > 0) {
        buf_printf(out, "/%.*s", STR_ARG(step_id));
    }
    buf_printf(out, "/r%u", serial);
}

/* One to nine digits, and nothing else. */
static bool read_number(struct str s, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            return false;
        }
        *ret = *ret * 10 + (uint32_t)(s.ptr[i] - '0');
    }
    return s.len > 0 && s.len <= 9;
}

bool review_id_parse(struct str id, struct review_id *ret)
{
    size_t last = id.len; /* where the last segment begins */
    struct str segment;
    bool serial;

    *ret = (struct review_id){.step_id = {NULL, 0}};
    if (id.len < UUID_TEXT_LEN || !uuid_parse((struct str){id.ptr, UUID_TEXT_LEN}, &ret->plan_id)) {
        return false;
    }
    if (id.len == UUID_TEXT_LEN) {
        return true;
    }
    while (id.ptr[last - 1] != '/' && last > UUID_TEXT_LEN + 1) {
        last--;
    }
    segment = (struct str){id.ptr + last, id.len - last};
    serial = segment.len > 1 && segment.ptr[0] == 'r';
    if (id.ptr[UUID_TEXT_LEN] != '/' || (!serial && last == UUID_TEXT_LEN + 1)) {
        return false;
    }
    if (last > UUID_TEXT_LEN + 1) {
        ret->step_id = (struct str){id.ptr + UUID_TEXT_LEN + 1, last - 1 - (UUID_TEXT_LEN + 1)};
        if (ret->step_id.len == 0) {
            return false;
        }
    }
    return serial ? read_number((struct str){segment.ptr + 1, segment.len - 1}, &ret->serial) &&
                        ret->serial > 0
                  : read_number(segment, &ret->attempt);
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

static bool begins_with(struct str s, const char *with)
{
    return s.len >= strlen(with) && memcmp(s.ptr, with, strlen(with)) == 0;
}

void plan_timeout_hint(const struct step_policy *policy, struct str error, struct buf *out)
{
    const bool whole = str_is(error, "Step execution timeout");
    const bool silent = begins_with(error, "No progress for ");
    const msec ms = whole ? policy->timeout_ms : silent ? policy->idle_ms : policy->limit_ms;
    const char *setting = whole ? "timeoutMs" : silent ? "idleTimeoutMs" : "stepLimitMs";

    if (!whole && !silent && !begins_with(error, "Step limit of ")) {
        return;
    }
    buf_printf(out, "%s after %llu", silent ? "no progress" : "no result",
               (unsigned long long)(ms / 1000));
    if (ms % 1000 != 0) {
        buf_printf(out, ".%03llu", (unsigned long long)(ms % 1000));
    }
    buf_printf(out, " s (%s: %llu); set %s of the step%s", setting, (unsigned long long)ms, setting,
               whole ? ", or stepTimeoutMs of the policy" : " or policy");
}

void plan_failure_text(const struct record *rec, const struct plan *plan, struct buf *out)
{
    size_t end;

    plan_failure_reason(rec, plan, out);
    end = out->len;
    if (REC(rec, plan_completed)->failure == PLAN_FAILURE_STEP && rec->step < plan->n_steps) {
        buf_add_cstr(out, "; ");
        plan_timeout_hint(&plan->steps[rec->step].rules->policy, rec->text, out);
        if (out->len == end + 2) {
            buf_truncate(out, end);
        }
    }
}

/* One segment of a topic. It is never empty, and has no slash or control character, so it stays one
 * segment. Two texts never have the same segment. */
static void segment(struct buf *topic, struct str s)
{
    const bool like_none = s.len == 1 && s.ptr[0] == '-';

    buf_add_byte(topic, '/');
    if (s.len == 0) {
        buf_add_byte(topic, '-');
    }
    for (size_t i = 0; i < s.len; i++) {
        const uint8_t c = (uint8_t)s.ptr[i];
        if (c == '/' || c == '%' || c < 0x20 || c == 0x7f || like_none) {
            buf_printf(topic, "%%%02X", c);
        } else {
            buf_add_byte(topic, c);
        }
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
        uuid_format(x->plan_id, plan_id);
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
    case ABOUT_SCHEDULE:
        buf_add_cstr(topic, "schedule");
        segment(topic, x->schedule.name);
        break;
    case ABOUT_SYSTEM:
        buf_add_cstr(topic, "system");
        break;
    }
    segment(topic, str_from(record_wire_type(rec->type)));
}

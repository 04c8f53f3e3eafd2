/* The list of problems. */
#include "protocol/base/assert.h"
#include "protocol/base/utf8.h"
#include "supervisor/core/plan/plan_check_internal.h"

#define CUT_MARK "…"

const char *problem_category_name(enum problem_category c)
{
    static const char *const names[] = {
        [PROBLEM_EMPTY_PLAN] = "empty_plan",
        [PROBLEM_DUPLICATE_ID] = "duplicate_id",
        [PROBLEM_MISSING_DEPENDENCY] = "missing_dependency",
        [PROBLEM_CYCLE_DETECTED] = "cycle_detected",
        [PROBLEM_MISSING_AGENT] = "missing_agent",
        [PROBLEM_MISSING_SKILL] = "missing_skill",
        [PROBLEM_INVALID_PARAMS] = "invalid_params",
        [PROBLEM_BAD_TEMPLATE] = "bad_template",
        [PROBLEM_LIMIT] = "limit",
        [PROBLEM_INVALID_FIELD] = "invalid_field",
        [PROBLEM_UNKNOWN_FIELD] = "unknown_field",
        [PROBLEM_UNSUPPORTED] = "unsupported",
        [PROBLEM_STYLE] = "style",
        [PROBLEM_MISSING_GATE] = "missing_gate",
        [PROBLEM_PARALLEL_EXPLOSION] = "parallel_explosion",
        [PROBLEM_OPTIMISM_BIAS] = "optimism_bias",
        [PROBLEM_ORPHAN_TASK] = "orphan_task",
        [PROBLEM_DISCONNECTED_FLOW] = "disconnected_flow",
    };
    _Static_assert(sizeof names / sizeof names[0] == PROBLEM_CATEGORY_COUNT, "a name for each");
    ASSERT((unsigned)c < PROBLEM_CATEGORY_COUNT);
    return names[c];
}

/* Sets a terminated text of cap bytes, without control characters: plans come from anywhere and
 * messages go to terminals. A text that is too long ends with a mark. */
static void join(char *to, size_t cap, const struct str *parts, uint32_t n_parts)
{
    size_t used = 0;
    size_t room = cap - 1;
    for (uint32_t k = 0; k < n_parts && used < cap - 1; k++) {
        const struct str s = parts[k];
        const size_t n = s.len <= room ? s.len : utf8_cut(s.ptr, s.len, room);
        for (size_t i = 0; i < n; i++) {
            const unsigned char c = (unsigned char)s.ptr[i];
            to[used + i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
        }
        used += n;
        room -= n;
        if (n < s.len) {
            used = utf8_cut(to, used, cap - sizeof CUT_MARK);
            memcpy(to + used, CUT_MARK, sizeof CUT_MARK - 1);
            used += sizeof CUT_MARK - 1;
            break;
        }
    }
    to[used] = '\0';
}

/* The place for the next problem, or NULL. An error may replace the last warning. */
static struct problem *place(struct problems *p, bool warning)
{
    if (p->n < p->cap) {
        return &p->at[p->n++];
    }
    if (warning || p->errors >= p->cap) {
        return NULL;
    }
    for (uint32_t i = p->n; i > 0; i--) {
        if (p->at[i - 1].warning) {
            /* The later errors move up: errors stay in the order of their discovery. */
            memmove(&p->at[i - 1], &p->at[i], (p->n - i) * sizeof p->at[0]);
            return &p->at[p->n - 1];
        }
    }
    return NULL;
}

void problem_put(struct problems *p, enum problem_category c, bool warning,
                 const struct plan_step *step, uint32_t ix, const char *field,
                 const struct str *parts, uint32_t n_parts)
{
    const struct str name = str_from(field);
    struct problem *to = place(p, warning);
    p->total++;
    p->errors += warning ? 0 : 1;
    if (to == NULL) {
        return;
    }
    memset(to, 0, sizeof *to);
    to->category = c;
    to->warning = warning;
    to->step = step == NULL ? UINT32_MAX : ix;
    if (step != NULL) {
        join(to->step_id, sizeof to->step_id, &step->step_id, 1);
    }
    join(to->field, sizeof to->field, &name, 1);
    join(to->message, sizeof to->message, parts, n_parts);
}

struct str plan_check_number(char *buf, uint64_t n)
{
    size_t at = 21;
    do {
        buf[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n != 0);
    return (struct str){buf + at, 21 - at};
}

/* Values that both a plan's policy and its steps may have. */
#include <stdio.h>

#include "protocol/base/suggest.h"
#include "supervisor/plan/policy_internal.h"

struct location location_below(const struct location *at, const char *field, char mem[96])
{
    struct location below = *at;
    (void)snprintf(mem, 96, "%.64s%s%.24s", at->prefix, at->prefix[0] == '\0' ? "" : ".", field);
    below.prefix = mem;
    return below;
}

/* ---- numbers and names ---- */

void policy_timeout(const struct location *at, const char *field, struct doc v, msec *io)
{
    uint64_t n;
    if (value_u64(at, field, v, 0, POLICY_MS_MAX, &n)) {
        *io = n;
    }
}

void policy_scope(const struct location *at, struct doc v, enum context_scope *io, bool *given)
{
    static const char *const names[] = {"all", "deps", "none"};
    uint32_t choice;
    if (value_choice(at, "contextScope", v, names, 3, &choice)) {
        *io = (enum context_scope)choice;
        *given = true;
    }
}

static void on_failure(const struct location *at, const char *field, struct doc v,
                       enum on_failure *io)
{
    static const char *const names[] = {"abort",  "skip", "continue", "retry",
                                        "replan", "ask",  "stop"};
    uint32_t choice;
    _Static_assert(sizeof names / sizeof names[0] == ON_FAILURE_COUNT + 1, "each, and stop");
    if (value_choice(at, field, v, names, ON_FAILURE_COUNT + 1, &choice)) {
        *io = choice == ON_FAILURE_COUNT ? ON_FAILURE_ABORT : (enum on_failure)choice;
    }
}

/* onFailure is more exact, so it wins. */
static void critical(const struct location *at, const struct doc *values, enum on_failure *io)
{
    bool is_critical;
    if (value_bool(at, "critical", values[COM_CRITICAL], &is_critical) &&
        values[COM_ON_FAILURE].ptr == NULL) {
        *io = is_critical ? ON_FAILURE_ABORT : ON_FAILURE_CONTINUE;
    }
}

enum { AMOUNT_TOKENS, AMOUNT_MICROS, AMOUNT_COUNT };
static const struct field_name amount_names[] = {
#define FIELDS_AMOUNTS
#include "supervisor/plan/field_names.def"
};

void policy_amounts(const struct location *at, const char *field, struct doc v,
                    struct policy_reported *reported, uint64_t *io_tokens, uint64_t *io_micros)
{
    char prefix[96];
    struct doc values[AMOUNT_COUNT] = {{NULL, 0}};
    const struct field_table table = {amount_names, sizeof amount_names / sizeof amount_names[0],
                                      &reported->amounts, &reported->unknown};
    if (!value_map(at, field, v)) {
        return;
    }
    const struct location in = location_below(at, field, prefix);
    fields_read(&table, v, &in, values);
    (void)value_u64(&in, "tokens", values[AMOUNT_TOKENS], 0, AMOUNT_MAX, io_tokens);
    (void)value_u64(&in, "costMicros", values[AMOUNT_MICROS], 0, AMOUNT_MAX, io_micros);
}

/* ---- backoff ---- */

enum { BACK_KIND, BACK_INITIAL, BACK_MULTIPLIER, BACK_MAX, BACK_JITTER, BACK_COUNT };
static const struct field_name backoff_names[] = {
#define FIELDS_BACKOFF
#include "supervisor/plan/field_names.def"
};

static void backoff(const struct location *at, struct doc v, struct policy_reported *reported,
                    struct backoff *io)
{
    static const char *const kinds[] = {"linear", "exponential", "fixed"};
    char prefix[96];
    struct location in = *at;
    struct doc values[BACK_COUNT] = {{NULL, 0}};
    const struct field_table table = {backoff_names, sizeof backoff_names / sizeof backoff_names[0],
                                      &reported->backoff, &reported->unknown};
    uint32_t kind = io->kind;
    if (v.ptr == NULL) {
        return;
    }
    if (doc_head(v).kind == DOC_STR) { /* "exponential" alone */
        values[BACK_KIND] = v;
    } else if (value_map(at, "backoff", v)) {
        in = location_below(at, "backoff", prefix);
        fields_read(&table, v, &in, values);
    }
    if (value_choice(&in, "kind", values[BACK_KIND], kinds, 3, &kind)) {
        io->kind = (enum backoff_kind)kind;
    }
    policy_timeout(&in, "initialMs", values[BACK_INITIAL], &io->initial_ms);
    policy_timeout(&in, "maxMs", values[BACK_MAX], &io->max_ms);
    (void)value_permille(&in, "multiplier", values[BACK_MULTIPLIER], 1, 1000,
                         &io->multiplier_permille);
    (void)value_permille(&in, "jitter", values[BACK_JITTER], 0, 1, &io->jitter_permille);
}

/* ---- error classes ---- */

static bool class_bit(const struct location *at, const char *field, struct doc v, uint32_t *io)
{
    struct str name = {NULL, 0};
    if (!value_string(at, field, v, &name)) {
        return false;
    }
    struct suggest near = suggest_start(name);
    for (uint32_t c = CLASS_NONE + 1; c < CLASS_COUNT; c++) {
        const struct str known = str_from(err_class_name((enum err_class)c));
        if (str_eq(name, known)) {
            *io |= 1u << c;
            return true;
        }
        suggest_offer(&near, known);
    }
    location_report(at, PROBLEM_INVALID_FIELD, false, field,
                    near.best.ptr != NULL ? "\"%.*s\" is no error class; did you mean \"%.*s\"?"
                                          : "\"%.*s\" is no error class%.*s; classes are TIMEOUT, "
                                            "RATE_LIMITED, SERVICE_UNAVAILABLE and so on",
                    (int)(name.len < 64 ? name.len : 64), name.ptr, STR_ARG(near.best));
    return false;
}

/* The set of the named classes. False when there is no list or a name is wrong. */
static bool classes(const struct location *at, const char *field, struct doc v, uint32_t *ret)
{
    struct doc_cursor c = doc_cursor(v);
    struct doc_head head;
    bool all = true;
    _Static_assert(CLASS_COUNT <= 32, "a bit per class");
    *ret = 0;
    if (v.ptr == NULL || !doc_next(&c, &head)) {
        return false;
    }
    if (head.kind != DOC_ARRAY) {
        return class_bit(at, field, v, ret);
    }
    for (uint32_t i = 0; i < head.n && i < 2 * CLASS_COUNT; i++) {
        all = class_bit(at, field, doc_skip(&c), ret) && all;
    }
    return all;
}

/* retryOn has its classes retried, and no others; noRetry forbids classes, also those of retryOn.
 */
static void retried_classes(const struct location *at, const struct doc *values,
                            struct step_policy *io)
{
    uint32_t set;
    uint32_t never = 0;
    uint32_t always = 0;
    bool reported = false;
    if (classes(at, "retryOn", values[COM_RETRY_ON], &set)) {
        never = ((1u << CLASS_COUNT) - 1) & ~set & ~(1u << CLASS_NONE);
        always = set;
        reported = true;
    }
    if (classes(at, "noRetry", values[COM_NO_RETRY], &set)) {
        never |= set;
        always &= ~set;
        reported = true;
    }
    io->no_retry = reported ? never : io->no_retry;
    io->retry_on = reported ? always : io->retry_on;
}

/* ---- agents ---- */

enum { REF_AGENT, REF_SKILL, REF_FAIL_OPEN, REF_FAIL_CLOSED, REF_COUNT };
static const struct field_name agent_ref_names[] = {
#define FIELDS_AGENT
#include "supervisor/plan/field_names.def"
};

static void agent_ref_map(const struct location *at, const char *field, struct doc v,
                          const char *skill, struct policy_reported *reported, struct agent_ref *io,
                          bool *io_closed)
{
    char prefix[96];
    const struct location in = location_below(at, field, prefix);
    struct doc values[REF_COUNT] = {{NULL, 0}};
    const struct field_table table = {agent_ref_names,
                                      sizeof agent_ref_names / sizeof agent_ref_names[0],
                                      &reported->ref, &reported->unknown};
    struct agent_ref ref = {.given = true};
    bool open;
    fields_read(&table, v, &in, values);
    const bool named = value_string(&in, "agentId", values[REF_AGENT], &ref.agent_id);
    if (value_string(&in, "skill", values[REF_SKILL], &ref.skill) || named) {
        *io = ref;
    } else if (io->agent_id.len == 0 && io->skill.len == 0) {
        *io = (struct agent_ref){.given = true, .skill = str_from(skill)};
    }
    if (io->agent_id.len == 0 && io->skill.len == 0) {
        location_report(at, PROBLEM_INVALID_FIELD, false, field,
                        "names no agent; give agentId, or a skill that a registered agent has");
    }
    if (io_closed == NULL) {
        return;
    }
    (void)value_bool(&in, "failClosed", values[REF_FAIL_CLOSED], io_closed);
    if (value_bool(&in, "failOpen", values[REF_FAIL_OPEN], &open)) {
        *io_closed = !open;
    }
}

void policy_agent_ref(const struct location *at, const char *field, struct doc v, const char *skill,
                      struct policy_reported *reported, struct agent_ref *io, bool *io_closed)
{
    const struct doc_head head = v.ptr == NULL ? (struct doc_head){.kind = DOC_NIL} : doc_head(v);
    char got[64];
    if (v.ptr == NULL) {
        return;
    }
    if (head.kind == DOC_STR && head.str.len > 0) {
        *io = (struct agent_ref){.given = true, .agent_id = head.str};
    } else if (head.kind == DOC_BOOL && (!head.b || skill[0] != '\0')) {
        *io = (struct agent_ref){.given = true, .skill = str_from(head.b ? skill : "")};
    } else if (head.kind == DOC_MAP) {
        agent_ref_map(at, field, v, skill, reported, io, io_closed);
    } else {
        value_describe(v, got, sizeof got);
        location_report(at, PROBLEM_INVALID_FIELD, false, field,
                        "expected an agent's id, {\"agentId\"} or {\"skill\"}%s or false, got %s",
                        skill[0] == '\0' ? "" : ", true", got);
    }
}

/* ---- entry points ---- */

void policy_common(const struct location *at, const struct doc *values,
                   struct policy_reported *reported, struct step_policy *io)
{
    uint64_t n;
    on_failure(at, "onFailure", values[COM_ON_FAILURE], &io->on_failure);
    critical(at, values, &io->on_failure);
    on_failure(at, "onVerificationFailure", values[COM_ON_VERIFY], &io->on_verify);
    if (value_u64(at, "maxRetries", values[COM_RETRIES], 0, LIMIT_ATTEMPTS - 1, &n)) {
        io->max_retries = (uint32_t)n;
    }
    backoff(at, values[COM_BACKOFF], reported, &io->backoff);
    retried_classes(at, values, io);
    policy_timeout(at, "idleTimeoutMs", values[COM_IDLE], &io->idle_ms);
    policy_timeout(at, "queueTimeoutMs", values[COM_QUEUE], &io->queue_timeout_ms);
    policy_timeout(at, "agentWaitMs", values[COM_AGENT_WAIT], &io->agent_wait_ms);
    policy_timeout(at, "stepLimitMs", values[COM_STEP_LIMIT], &io->limit_ms);
    policy_timeout(at, "approvalTimeoutMs", values[COM_APPROVAL_TIMEOUT], &io->approval_timeout_ms);
    policy_timeout(at, "checkTimeoutMs", values[COM_CHECK_TIMEOUT], &io->check_timeout_ms);
    (void)value_bool(at, "requiresApproval", values[COM_APPROVAL], &io->requires_approval);
    policy_amounts(at, "estimate", values[COM_ESTIMATE], reported, &io->estimate_tokens,
                   &io->estimate_micros);
}

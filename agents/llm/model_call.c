#include "agents/llm/model_call.h"

#include <inttypes.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"

enum {
    NO_DEADLINE_MS = 10 * 60 * 1000,
    ANSWER_MARGIN_MS = 250, /* so that the agent reports the timeout before the supervisor does */
    PROGRESS_MS = 1000,
    TOKENS_LEAST = 16,
    BYTES_PER_TOKEN = 4
};

struct waiting {
    const struct model_call *model_call;
    msec next_progress; /* when the next progress report is due */
    msec every;
};

/* Polled every few milliseconds while the model answers. */
static bool poll_stop(void *self)
{
    struct waiting *w = self;
    msec now = clock_mono_ms();

    if (now >= w->next_progress) {
        w->next_progress = now + w->every;
        bt_step_progress(w->model_call->step, -1,
                         w->model_call->on_text == NULL ? "the model is answering" : NULL);
    }
    if (w->model_call->on_wait != NULL) {
        w->model_call->on_wait(w->model_call->self);
    }
    return bt_step_cancelled(w->model_call->step);
}

static enum bt_code check(void *self, const struct cJSON *value, struct bt_error *err)
{
    const struct waiting *w = self;
    return w->model_call->check(w->model_call->self, value, err);
}

static void on_text(void *self, bool reset, struct str piece)
{
    const struct waiting *w = self;
    w->model_call->on_text(w->model_call->self, reset, piece);
}

static msec deadline_of(struct bt_step *step)
{
    uint64_t left = bt_step_time_left_ms(step);

    if (left == UINT64_MAX || left > NO_DEADLINE_MS) {
        left = NO_DEADLINE_MS;
    }
    left -= left > 4 * ANSWER_MARGIN_MS ? ANSWER_MARGIN_MS : left / 4;
    return msec_add(clock_mono_ms(), left);
}

/* The largest answer that the plan's budget pays for; 0 = too small for an answer. */
static uint64_t affordable_tokens(const struct model_call *a, const struct prompt *p)
{
    uint64_t most = a->max_tokens != 0 ? a->max_tokens : a->agent->max_tokens;
    uint64_t input = (p->system.len + p->user.len) / BYTES_PER_TOKEN;
    uint64_t tokens = bt_step_budget_tokens(a->step);
    uint64_t micros = bt_step_budget_micros(a->step);
    uint64_t bought =
        micros == UINT64_MAX ? UINT64_MAX : llm_client_affordable(a->agent->client, input, micros);

    if (tokens != UINT64_MAX) {
        tokens = tokens > input ? tokens - input : 0;
    }
    most = tokens < most ? tokens : most;
    most = bought < most ? bought : most;
    return most < TOKENS_LEAST ? 0 : most;
}

/* A person waits for a plan, a summary or a reply. When the server's delay, or an open breaker,
 * outlasts the step, the failure is final: the person gets the cause now. */
static bool retry_comes_too_late(struct bt_step *step, const struct llm_reply *r)
{
    static const char *const asked[] = {"plan", "synthesize", "converse"};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        if (strcmp(bt_step_purpose(step), asked[i]) == 0) {
            return r->retry_after_ms != MSEC_NEVER &&
                   (r->calls == 0 || r->retry_after_ms >= bt_step_time_left_ms(step));
        }
    }
    return false;
}

static void fail_step(const struct model_call *a, const struct llm_reply *r, enum bt_code code,
                      const struct bt_error *err)
{
    static const struct {
        const char *cls;
        bool retryable;
    } by_code[BT_CODE_COUNT] = {
        [BT_INVALID] = {"VALIDATION_ERROR", false},
        [BT_UNAUTHORIZED] = {"PERMISSION_DENIED", false},
        /* The model does not exist. RESOURCE_NOT_FOUND would make the supervisor search for it. */
        [BT_NOT_FOUND] = {"SERVICE_UNAVAILABLE", false},
        [BT_LIMIT] = {"VALIDATION_ERROR", false},
        [BT_BUSY] = {"RATE_LIMITED", true},
        [BT_TIMEOUT] = {"TIMEOUT", true},
        [BT_UNAVAILABLE] = {"SERVICE_UNAVAILABLE", true},
        /* The model answered, each time unusably, and each answer cost money. */
        [BT_PROTOCOL] = {"SERVICE_UNAVAILABLE", false},
        [BT_NOMEM] = {"SERVICE_UNAVAILABLE", true},
    };
    const char *cls = by_code[code].cls != NULL ? by_code[code].cls : "UNKNOWN";
    bool again = by_code[code].retryable && !retry_comes_too_late(a->step, r);

    if (r->finish == LLM_FINISH_REFUSAL) {
        cls = "PERMISSION_DENIED";
    }
    bt_step_fail(a->step, cls, again, "%s", err->msg);
    if (again && r->retry_after_ms != MSEC_NEVER) {
        bt_step_retry_after(a->step, r->retry_after_ms);
    }
}

static void report_usage(const struct model_call *a, const struct llm_reply *r, enum bt_code code)
{
    if (r->calls > 0) {
        bt_step_add_usage(a->step, r->usage.input, r->usage.output, r->usage.cached,
                          r->cost_micros);
    }
    log_info("llm.call",
             "plan=%s step=%s skill=%s code=%s provider=%s model=%s calls=%u repairs=%u "
             "input=%" PRIu64 " output=%" PRIu64 "%s micros=%" PRIu64 " ms=%" PRIu64,
             bt_step_plan_id(a->step), bt_step_id(a->step), bt_step_skill(a->step),
             code == BT_OK ? "OK" : bt_code_name(code), r->provider, r->model, r->calls, r->repairs,
             r->usage.input, r->usage.output, r->usage.known ? "" : " estimated=true",
             r->cost_micros, r->took_ms);
}

bool model_call_run(const struct model_call *a, struct prompt *p, struct llm_reply *ret)
{
    uint64_t idle = bt_step_idle_ms(a->step);
    struct waiting w = {.model_call = a,
                        .every = idle != 0 && idle / 3 < PROGRESS_MS ? idle / 3 : PROGRESS_MS};
    struct llm_turn turn = {0};
    struct llm_request request = {
        .turns = &turn,
        .n_turns = 1,
        .schema = a->schema,
        .schema_name = a->schema_name,
        .optional = a->optional,
        .extra = a->extra,
        .as_is = a->as_is,
        .check = a->check == NULL ? NULL : check,
        .on_text = a->on_text == NULL ? NULL : on_text,
        .temperature = a->agent->temperature,
        .stop = poll_stop,
        .self = &w,
    };
    struct bt_error err = {0};
    enum bt_code code;

    *ret = (struct llm_reply){.retry_after_ms = MSEC_NEVER};
    code = prompt_make(p, a->agent->system, a->agent->data_bytes, &err);
    if (code != BT_OK) {
        bt_step_fail_error(a->step, &err);
        return false;
    }
    turn.text = buf_cstr(&p->user);
    request.system = buf_cstr(&p->system);
    request.max_tokens = affordable_tokens(a, p);
    request.deadline = deadline_of(a->step);
    if (request.max_tokens == 0) {
        bt_step_fail(a->step, "BUDGET_EXCEEDED", false,
                     "the plan's remaining budget does not pay for a prompt of about %zu tokens",
                     (p->system.len + p->user.len) / BYTES_PER_TOKEN);
        return false;
    }
    w.next_progress = clock_mono_ms() + w.every;
    code = llm_complete(a->agent->client, &request, ret, &err);
    report_usage(a, ret, code);
    if (code != BT_OK && code != BT_CANCELLED) {
        fail_step(a, ret, code, &err);
    }
    return code == BT_OK;
}

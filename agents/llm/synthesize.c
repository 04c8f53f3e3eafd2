/* synthesize: streams a summary of a plan's outcome, or names failed steps that are worth a
 * retry. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "agents/llm/answer_stream.h"
#include "agents/llm/json_prompt.h"
#include "agents/llm/model/answer_parser.h"
#include "agents/llm/model_call.h"
#include "agents/llm/plan_report.h"
#include "agents/sdk/input.h"
#include "protocol/base/utf8.h"
#include "protocol/wire/doc.h"

enum { ROUNDS = 2, FLUSH_MS = 5000, REASON_MAX = 512, LAST_LINE_MAX = 2048 };

#define TITLE "# Plan Execution Summary"

static const char instructions[] =
    "A workflow is over. Write its executive summary for the person who asked for the goal, in the "
    "language of the goal, as Markdown with exactly these headings:\n" TITLE
    "\n## Key Accomplishments\n## Important Findings\n## Recommended Next Steps\n"
    "1. Begin with the first heading and two sentences: was the goal reached, and what is the "
    "answer to it. Give the answer itself, not that there is one.\n"
    "2. State only what the results say; keep figures, names and units as they are.\n"
    "3. Say plainly which steps failed or were skipped, why, and what is missing because of it. "
    "What was not done is no accomplishment.\n"
    "4. No closing line about time or agents: it is added.";

static const char instructions_retry[] =
    "Only if a failed step is likely to succeed when it is tried again just as it is (its service "
    "could not be reached, it took too long), and the goal needs it: do not write the summary, but "
    "answer with one JSON object and nothing else: {\"retry\": [{\"stepId\": \"...\", \"reason\": "
    "\"...\"}]}. Name failed steps only.";

/* onInvalidPlan synthesize: there is no plan; the answer is the only output. */
static const char instructions_no_plan[] =
    "No plan could be made for the goal, and nothing was done. Answer the person who asked for it "
    "directly, in the language of the goal, from what you know. Say plainly what you do not know "
    "and what would have to be done first; claim nothing to have been done.";

enum answer_kind { ANSWER_TEXT, ANSWER_RETRY, ANSWER_UNUSABLE };

struct work {
    struct bt_step *step;
    const struct llm_agent *agent;
    cJSON *params;
    char *steps; /* as data */
    struct plan_report_counts counts;
    struct answer_stream answer_stream;
    bool may_retry;
    cJSON *retry; /* {retry: [{stepId, reason}]} */
};

static cJSON *get(const cJSON *map, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(map, name);
}

static bool has_no_plan(const struct work *w)
{
    return cJSON_GetArraySize(get(w->params, "steps")) == 0;
}

/* ---- the prompt ---- */

/* The list has the first steps of a large plan: it is about those, and says so. */
static void put_counts(const struct work *w, char *ret, size_t room)
{
    const struct plan_report_counts *n = &w->counts;
    const double all = bt_step_param_number(w->step, "stepsTotal", 0);
    char told[64] = "";

    if (all > n->all) {
        (void)snprintf(told, sizeof told, "%.0f steps; you have the first ", all);
    }
    (void)snprintf(ret, room, "The plan had %s%u steps: %u completed, %u failed, %u others.", told,
                   n->all, n->completed, n->failed, n->all - n->completed - n->failed);
}

static void compose(const struct work *w, struct json_prompt *q, char *counts, size_t room)
{
    if (has_no_plan(w)) {
        prompt_instruct(&q->p, instructions_no_plan);
        json_prompt_data(q, "the person who asks: the goal", get(w->params, "goal"));
        json_prompt_data(q, "the journal: why there is no plan", get(w->params, "failureReason"));
        return;
    }
    put_counts(w, counts, room);
    prompt_instruct(&q->p, instructions);
    prompt_instruct(&q->p, counts);
    if (w->may_retry) {
        prompt_instruct(&q->p, instructions_retry);
    }
    json_prompt_data(q, "the person who asks: the goal", get(w->params, "goal"));
    json_prompt_data(q, "the plan: its description", get(w->params, "description"));
    json_prompt_data(q, "the journal: how the plan ended", get(w->params, "status"));
    json_prompt_data(q, "the journal: why it failed", get(w->params, "failureReason"));
    prompt_data(&q->p, "the journal: its steps, with what the agents answered", w->steps);
}

static void on_text(void *self, bool reset, struct str piece)
{
    answer_stream_add(&((struct work *)self)->answer_stream, reset, piece);
}

static void on_wait(void *self)
{
    answer_stream_tick(&((struct work *)self)->answer_stream);
}

/* ---- the answer ---- */

static bool has_failed(const cJSON *steps, const char *step_id)
{
    const cJSON *step = NULL;

    cJSON_ArrayForEach(step, steps)
    {
        const cJSON *id = get(step, "stepId");
        const cJSON *status = get(step, "status");
        if (cJSON_IsString(id) && strcmp(id->valuestring, step_id) == 0) {
            return cJSON_IsString(status) && strcmp(status->valuestring, "failed") == 0;
        }
    }
    return false;
}

static bool is_named(const cJSON *list, const char *step_id)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, list)
    {
        if (strcmp(get(item, "stepId")->valuestring, step_id) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_retry(cJSON *list, const char *step_id, const char *reason)
{
    cJSON *item = cJSON_CreateObject();
    char cut[REASON_MAX + 1];

    (void)snprintf(cut, sizeof cut, "%.*s", (int)utf8_cut(reason, strlen(reason), REASON_MAX),
                   reason);
    if (item == NULL || cJSON_AddStringToObject(item, "stepId", step_id) == NULL ||
        cJSON_AddStringToObject(item, "reason", cut) == NULL || !cJSON_AddItemToArray(list, item)) {
        cJSON_Delete(item);
        return false;
    }
    return true;
}

/* Keeps the named steps that did fail, once each. */
static bool read_retry(struct work *w, const cJSON *answer)
{
    cJSON *whole = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(whole, "retry");
    const cJSON *item = NULL;
    bool ok = list != NULL;

    cJSON_ArrayForEach(item, get(answer, "retry"))
    {
        const cJSON *id = cJSON_IsString(item) ? item : get(item, "stepId");
        const cJSON *reason = get(item, "reason");
        if (ok && cJSON_IsString(id) && has_failed(get(w->params, "steps"), id->valuestring) &&
            !is_named(list, id->valuestring)) {
            ok =
                add_retry(list, id->valuestring, cJSON_IsString(reason) ? reason->valuestring : "");
        }
    }
    if (!ok || list->child == NULL) {
        cJSON_Delete(whole);
        return false;
    }
    w->retry = whole;
    return true;
}

/* Returns the content of a text that is one fenced block. */
static struct str strip_fence(struct str text)
{
    const char *line =
        text.len > 6 && memcmp(text.ptr, "```", 3) == 0 ? memchr(text.ptr, '\n', text.len) : NULL;

    if (line == NULL || memcmp(text.ptr + text.len - 3, "```", 3) != 0) {
        return text;
    }
    text = (struct str){line + 1, text.len - (size_t)(line + 1 - text.ptr)};
    text.len -= text.len >= 3 ? 3 : text.len;
    return answer_parser_clean(text);
}

/* A text that was streamed is the answer; a text that was held may be JSON. Fills *ret with the
 * text, which lives as long as the reply and *ret_json. */
static enum answer_kind read_answer(struct work *w, struct llm_reply *reply, cJSON **ret_json,
                                    struct str *ret)
{
    struct str text = buf_str(&reply->text);
    cJSON *json = NULL;
    const cJSON *inner;

    *ret = text;
    if (w->answer_stream.open || text.len == 0 || (text.ptr[0] != '{' && text.ptr[0] != '`')) {
        return ANSWER_TEXT;
    }
    *ret = strip_fence(text);
    if (ret->len > 0 && ret->ptr[0] != '{') {
        return ANSWER_TEXT;
    }
    (void)!answer_parser_json(text, &json, NULL); /* else it has no members */
    *ret_json = json;
    if (w->may_retry && read_retry(w, json)) {
        return ANSWER_RETRY;
    }
    inner = get(json, "text");
    if (cJSON_IsString(inner) && answer_parser_clean(str_from(inner->valuestring)).len > 0) {
        *ret = answer_parser_clean(str_from(inner->valuestring));
        return ANSWER_TEXT;
    }
    return ANSWER_UNUSABLE;
}

static void reply_text(struct work *w, struct str text)
{
    uint64_t left = bt_step_time_left_ms(w->step) / 2;
    char last_line[LAST_LINE_MAX];
    struct buf whole;

    buf_init(&whole, 2 * text.len + 2 * LAST_LINE_MAX);
    plan_report_last_line(w->params, last_line, sizeof last_line);
    answer_stream_finish(&w->answer_stream, text, has_no_plan(w) ? NULL : last_line, &whole);
    if (whole.bad != BT_OK) {
        bt_step_fail(w->step, "SERVICE_UNAVAILABLE", true, "out of memory for the summary");
    } else {
        (void)bt_step_stream_flush(w->step, left < FLUSH_MS ? left : FLUSH_MS);
        bt_step_reply_bytes(w->step, buf_cstr(&whole), whole.len);
    }
    buf_done(&whole);
}

/* One model call. True: its answer is neither text nor a list of steps; otherwise the step has its
 * reply. */
static bool run_once(struct work *w)
{
    struct model_call model_call = {
        .step = w->step, .agent = w->agent, .on_text = on_text, .on_wait = on_wait, .self = w};
    struct llm_reply reply = {0};
    struct json_prompt q;
    cJSON *json = NULL;
    char counts[160];
    struct str text;
    bool again = false;

    json_prompt_init(&q);
    compose(w, &q, counts, sizeof counts);
    if (!q.ok) {
        bt_step_fail(w->step, "SERVICE_UNAVAILABLE", true, "out of memory for the question");
    } else if (model_call_run(&model_call, &q.p, &reply)) {
        switch (read_answer(w, &reply, &json, &text)) {
        case ANSWER_TEXT:
            reply_text(w, text);
            break;
        case ANSWER_RETRY:
            input_reply(w->step, w->retry, NULL);
            w->retry = NULL;
            break;
        case ANSWER_UNUSABLE:
            again = true;
            break;
        }
    }
    cJSON_Delete(json);
    llm_reply_done(&reply);
    json_prompt_done(&q);
    return again;
}

static void synthesize(struct work *w)
{
    w->steps = plan_report_steps(get(w->params, "steps"), w->agent->data_bytes / 4 * 3, &w->counts);
    w->may_retry = bt_step_param_number(w->step, "mayRetry", 0) >= 1 && w->counts.failed > 0;
    if (w->steps == NULL) {
        bt_step_fail(w->step, "SERVICE_UNAVAILABLE", true, "out of memory for the results");
        return;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (!run_once(w)) {
            return;
        }
        answer_stream_reset(&w->answer_stream);
        w->may_retry = false; /* the list was unusable: only text is accepted now */
    }
    bt_step_fail(w->step, "VALIDATION_ERROR", false,
                 "the model answered with JSON instead of a summary, twice");
}

void llm_synthesize(struct bt_step *step, void *self)
{
    struct work w = {.step = step, .agent = self};
    struct bt_error err;

    if (input_parameters(step, &w.params, &err) != BT_OK) {
        bt_step_fail_error(step, &err);
        return;
    }
    answer_stream_init(&w.answer_stream, step, has_no_plan(&w) ? NULL : TITLE);
    if (!cJSON_IsArray(get(w.params, "steps"))) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "steps: expected the steps of the plan");
    } else {
        synthesize(&w);
    }
    answer_stream_done(&w.answer_stream);
    cJSON_free(w.steps);
    cJSON_Delete(w.params);
}

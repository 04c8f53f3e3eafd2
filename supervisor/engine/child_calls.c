/*
 * The calls that the agent of a step makes in a turn: the document of their child plan, and the
 * transcript with their results. The transcript is described in dispatch/calls.h.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/mp_validate.h"
#include "supervisor/engine/child_calls.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/plan/flow/tools.h"

enum {
    TRANSCRIPT_MAX = 2 * 1024 * 1024, /* of `turns` in an assignment */
    RESULT_MAX = 64 * 1024,           /* of one result in it */
    RESULT_MIN = 256,
    ERROR_MAX = 4096
};

static enum bt_code transcript_of(struct engine *engine, const struct open_plan *p, uint32_t step,
                                  struct arena *arena, struct doc *ret, struct bt_error *err)
{
    const struct run *run = core_block_run(p->block);
    enum bt_code code = engine_result_doc(engine, run_transcript(&run->steps[step]), ret, err);

    if (code == BT_OK &&
        (ret->ptr == NULL || doc_head(*ret).kind != DOC_ARRAY || doc_head(*ret).n == 0)) {
        return err_set(err, BT_INVALID, "the turns of the step cannot be read");
    }
    *ret = code == BT_OK ? doc_copy(arena, *ret) : *ret;
    return code == BT_OK && ret->ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for turns")
                                             : code;
}

static struct doc calls_of(struct doc transcript)
{
    return doc_get(doc_at(transcript, doc_head(transcript).n - 1), STR_LIT("calls"));
}

static bool has_error(struct doc call)
{
    return doc_get(call, STR_LIT("error")).ptr != NULL;
}

/* ---- the document ---- */

static void put_text(struct buf *out, const char *name, struct str text)
{
    doc_put_cstr(out, name);
    doc_put_str(out, text.len > 0 ? text : (struct str){"", 0});
}

static void put_doc(struct buf *out, const char *name, struct doc value)
{
    doc_put_cstr(out, name);
    doc_put_doc(out, value);
}

static void put_step(struct doc call, struct doc tools, struct buf *out)
{
    const struct str skill = doc_string(doc_get(call, STR_LIT("skill")));
    const struct str agent = doc_string(doc_get(call, STR_LIT("agentId")));
    const struct doc parameters = doc_get(call, STR_LIT("parameters"));
    const struct doc approval = doc_get(call, STR_LIT("approval"));
    const struct doc plan = doc_get(call, STR_LIT("plan"));
    struct str task = doc_string(doc_get(call, STR_LIT("task")));
    char words[256];

    (void)snprintf(words, sizeof words, "Call of %.*s/%.*s", STR_ARG(agent), STR_ARG(skill));
    task = task.len > 0       ? task
           : plan.ptr != NULL ? STR_LIT("A plan that an agent made")
                              : str_from(words);
    if (plan.ptr != NULL) {
        doc_put_map(out, 4);
    } else {
        doc_put_map(out, 5 + (parameters.ptr != NULL ? 1u : 0) + (approval.ptr != NULL ? 1u : 0) +
                             (tools.ptr != NULL ? 1u : 0));
    }
    put_text(out, "stepId", doc_string(doc_get(call, STR_LIT("id"))));
    put_text(out, "task", task);
    doc_put_cstr(out, "dependsOn"); /* without it the calls would be a chain */
    doc_put_array(out, 0);
    if (plan.ptr != NULL) {
        doc_put_cstr(out, "plan");
        doc_put_map(out, 1);
        put_doc(out, "document", plan);
        return;
    }
    put_text(out, "agentId", agent);
    put_text(out, "skill", skill);
    if (parameters.ptr != NULL) {
        put_doc(out, "parameters", parameters);
    }
    if (approval.ptr != NULL) {
        put_doc(out, "requiresApproval", approval);
    }
    if (tools.ptr != NULL) {
        put_doc(out, "tools", tools); /* for an agent that calls others itself */
    }
}

static void put_policy(const struct child_share *share, struct buf *out)
{
    const bool budget = share->tokens > 0 || share->micros > 0;

    doc_put_map(out, 4 + (budget ? 1u : 0));
    put_text(out, "onFailure", STR_LIT("continue"));
    put_text(out, "synthesis", STR_LIT("concat"));
    doc_put_cstr(out, "maxConcurrency");
    doc_put_u64(out, LIMIT_CALLS);
    doc_put_cstr(out, "planTimeoutMs");
    doc_put_u64(out, share->time_ms);
    if (budget) {
        doc_put_cstr(out, "budget");
        doc_put_map(out, 2);
        doc_put_cstr(out, "tokens");
        doc_put_u64(out, share->tokens);
        doc_put_cstr(out, "costMicros");
        doc_put_u64(out, share->micros);
    }
}

static void put_document(const struct open_plan *p, uint32_t step, struct doc calls, uint32_t n,
                         const struct child_share *share, struct buf *out)
{
    const struct run *run = core_block_run(p->block);
    const struct plan_step *s = &p->plan->steps[step];
    char goal[LIMIT_ID_BYTES + 64];

    (void)snprintf(goal, sizeof goal, "Calls of step %.*s, turn %u", STR_ARG(s->step_id),
                   run->steps[step].turns);
    doc_put_map(out, 4);
    put_text(out, "goal", str_from(goal));
    doc_put_cstr(out, "grants");
    doc_put_array(out, p->plan->agents.n);
    for (uint32_t i = 0; i < p->plan->agents.n; i++) {
        doc_put_str(out, p->plan->agents.ids[i]);
    }
    doc_put_cstr(out, "policy");
    put_policy(share, out);
    doc_put_cstr(out, "steps");
    doc_put_array(out, n);
    for (uint32_t i = 0; i < doc_head(calls).n; i++) {
        if (!has_error(doc_at(calls, i))) {
            put_step(doc_at(calls, i), s->rules->tools, out);
        }
    }
}

enum bt_code child_calls_make(struct engine *engine, const struct open_plan *p, uint32_t step,
                              const struct child_of *of, const struct child_share *share,
                              struct submission *d, struct bt_error *err)
{
    /* Texts and parameters of a call are the model's: no template in them is filled. */
    static const uint8_t literal[LIMIT_CALLS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct submit_request w = {.session_id = p->plan->session_id, .child = of, .settled = literal};
    struct doc transcript;
    struct doc calls;
    struct buf document;
    uint32_t n = 0;
    enum bt_code code = transcript_of(engine, p, step, &d->arena, &transcript, err);

    if (code != BT_OK) {
        return code;
    }
    calls = calls_of(transcript);
    for (uint32_t i = 0; i < doc_head(calls).n; i++) {
        n += has_error(doc_at(calls, i)) ? 0 : 1;
    }
    buf_init(&document, LIMIT_STEP_BYTES);
    put_document(p, step, calls, n, share, &document);
    w.n_settled = n;
    w.plan = doc_from_buf(&document);
    code = buf_check(&document, err);
    code = code == BT_OK ? submission_make(engine, &w, d, err) : code;
    buf_done(&document);
    return code;
}

/* ---- the results ---- */

struct results {
    struct engine *engine;
    const struct open_plan *child; /* NULL: none of the calls was made */
    struct str why;                /* and why */
    size_t max;                    /* of one result */
    struct buf *out;
    struct bt_error *err;
};

static void put_failure(struct buf *out, const char *status, struct str error, const char *class)
{
    doc_put_map(out, 4);
    put_text(out, "status", str_from(status));
    put_text(
        out, "error",
        (struct str){error.ptr, error.len == 0 ? 0 : utf8_cut(error.ptr, error.len, ERROR_MAX)});
    put_text(out, "errorClass", str_from(class));
}

/* Its text, data and artifacts; when they are too large its text, cut and marked. */
static enum bt_code put_done(struct results *r, struct blob_ref ref)
{
    /* In an assignment it stands four levels down. */
    static const struct mp_limits nesting = {.depth = LIMIT_DEPTH - 4, .nodes = LIMIT_NODES / 4};
    static const char *const names[] = {"text", "data", "artifacts"};
    struct doc doc = {NULL, 0};
    struct buf text;
    bool cut = false;
    uint32_t n = 0;
    enum bt_code code = engine_result_doc(r->engine, ref, &doc, r->err);

    if (code != BT_OK) {
        return code;
    }
    for (size_t i = 0; i < 3; i++) {
        n += doc_get(doc, str_from(names[i])).ptr != NULL ? 1 : 0;
    }
    if (doc.ptr == NULL ||
        (doc.len <= r->max && mp_validate(doc.ptr, doc.len, &nesting, NULL) == BT_OK)) {
        doc_put_map(r->out, 2 + n + (ref.truncated != 0 ? 1u : 0));
        put_text(r->out, "status", STR_LIT("completed"));
        for (size_t i = 0; i < 3; i++) {
            const struct doc value = doc_get(doc, str_from(names[i]));
            if (value.ptr != NULL) {
                put_doc(r->out, names[i], value);
            }
        }
        if (ref.truncated != 0) {
            doc_put_cstr(r->out, "truncated");
            doc_put_bool(r->out, true);
        }
        return BT_OK;
    }
    buf_init(&text, LIMIT_STEP_BYTES);
    code = engine_result_text(r->engine, ref, r->max, &text, &cut, r->err);
    doc_put_map(r->out, 4);
    put_text(r->out, "status", STR_LIT("completed"));
    put_text(r->out, "text", buf_str(&text));
    doc_put_cstr(r->out, "truncated");
    doc_put_bool(r->out, true);
    buf_done(&text);
    return code;
}

static struct str why_of(const struct open_plan *child, uint32_t step)
{
    const struct note *note = step_notes_of(&child->notes, step);

    return note != NULL && note->why != NULL
               ? note_text(note->why)
               : str_from(err_class_name(core_block_run(child->block)->steps[step].error_class));
}

static enum bt_code put_result(struct results *r, struct doc call)
{
    const struct str id = doc_string(doc_get(call, STR_LIT("id")));
    const struct str error = doc_string(doc_get(call, STR_LIT("error")));
    const struct run *run = r->child != NULL ? core_block_run(r->child->block) : NULL;
    const uint32_t step = r->child != NULL ? plan_step_find(r->child->plan, id) : UINT32_MAX;
    enum bt_code code = BT_OK;

    if (error.len > 0) {
        put_failure(r->out, "failed", error, err_class_name(CLASS_VALIDATION_ERROR));
    } else if (step == UINT32_MAX) {
        put_failure(r->out, "failed", r->why, err_class_name(CLASS_VALIDATION_ERROR));
    } else if (run->steps[step].status == STEP_COMPLETED) {
        code = put_done(r, run->steps[step].result);
    } else {
        put_failure(r->out, step_status_name(run->steps[step].status), why_of(r->child, step),
                    err_class_name(run->steps[step].error_class));
    }
    put_text(r->out, "id", id); /* the last of the members that each of them counts */
    return code;
}

static enum bt_code put_transcript(struct results *r, struct doc transcript)
{
    const struct doc calls = calls_of(transcript);
    const uint32_t turns = doc_head(transcript).n;
    const uint32_t n = doc_head(calls).n;
    const struct doc last = doc_at(transcript, turns - 1);
    struct doc_cursor c = doc_cursor(last);
    struct doc_head head;
    enum bt_code code = BT_OK;

    doc_put_array(r->out, turns);
    for (uint32_t i = 0; i + 1 < turns; i++) {
        doc_put_doc(r->out, doc_at(transcript, i));
    }
    (void)doc_next(&c, &head);
    doc_put_map(r->out, head.n + 1);
    for (uint32_t i = 0; i < 2 * head.n; i++) {
        doc_put_doc(r->out, doc_skip(&c));
    }
    doc_put_cstr(r->out, "results");
    doc_put_array(r->out, n);
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        code = put_result(r, doc_at(calls, i));
    }
    return code;
}

/* Each turn takes at most half of the room that is left, so there is room for all turns. */
static size_t room_of(struct doc transcript)
{
    const uint32_t n = doc_head(calls_of(transcript)).n;
    const size_t left = transcript.len < TRANSCRIPT_MAX ? TRANSCRIPT_MAX - transcript.len : 0;
    const size_t each = left / 2 / (n > 0 ? n : 1);

    return each > RESULT_MAX ? RESULT_MAX : each < RESULT_MIN ? RESULT_MIN : each;
}

enum bt_code child_calls_answer(struct engine *engine, const struct open_plan *p, uint32_t step,
                                const struct open_plan *child, struct str why,
                                struct core_ev_child *io, struct bt_error *err)
{
    struct arena arena = {.chunks = NULL};
    struct doc transcript;
    struct buf out;
    struct results r = {.engine = engine, .child = child, .why = why, .out = &out, .err = err};
    enum bt_code code = transcript_of(engine, p, step, &arena, &transcript, err);

    buf_init(&out, LIMIT_RESULT_BYTES);
    if (code == BT_OK) {
        r.max = room_of(transcript);
        code = put_transcript(&r, transcript);
    }
    code = code == BT_OK ? buf_check(&out, err) : code;
    code = code == BT_OK ? engine_result_store(engine, &out, &io->result, err) : code;
    buf_done(&out);
    arena_done(&arena);
    return code;
}

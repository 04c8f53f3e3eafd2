/*
 * A synthesizer's answer: the text that answers for the plan; or the wish to have failed steps
 * tried again, which makes copies of them, and of what was not done because of them, the next
 * revision.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "supervisor/dispatch/job.h"
#include "supervisor/dispatch/revise.h"
#include "supervisor/dispatch/verdict.h"

enum { PROBLEMS_MAX = 64, PROBLEMS_TOLD = 5, CHANGE_MAX = 4 * 1024 * 1024, TEXT_MAX = 2048 };

/* ---- which steps ---- */

static bool is_open_end(const struct open_plan *p, uint32_t i)
{
    const struct run_step *s = &core_block_run(p->block)->steps[i];

    return !p->plan->steps[i].superseded &&
           (s->status == STEP_CANCELLED || s->reason == REASON_DEPENDENCY_FAILED);
}

static uint32_t dep_of(const struct plan *plan, uint32_t i, uint32_t n)
{
    return plan->chain ? i - 1 : plan->deps[plan->steps[i].deps_at + n];
}

static uint32_t deps_of(const struct plan *plan, uint32_t i)
{
    return plan->chain ? (i > 0 ? 1 : 0) : plan->steps[i].deps_n;
}

/* What was not done, although all that it depends on is done or will be. */
static bool can_follow(const struct open_plan *p, const uint8_t *redo, uint32_t i)
{
    const struct run *run = core_block_run(p->block);

    for (uint32_t d = 0; d < deps_of(p->plan, i); d++) {
        const uint32_t dep = dep_of(p->plan, i, d);
        const bool any = p->plan->chain || p->plan->steps[i].after_any_end;
        const bool done = run->steps[dep].status == STEP_COMPLETED ||
                          run->steps[dep].reason == REASON_USER_SKIP ||
                          run->steps[dep].reason == REASON_CONDITION;
        if (redo[dep] == 0 && !done && !(any && !is_open_end(p, dep))) {
            return false;
        }
    }
    return true;
}

/* The named steps that failed, and what follows from them; how many. */
static uint32_t choose(const struct open_plan *p, struct doc named, uint8_t *redo)
{
    const struct run *run = core_block_run(p->block);
    struct doc_cursor c = doc_cursor(named);
    struct doc_head head;
    uint32_t n = 0;

    if (!doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return 0;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc one = doc_skip(&c);
        struct str id = doc_string(doc_get(one, STR_LIT("stepId")));
        id = id.len > 0 ? id : doc_string(one);
        const uint32_t row = id.len > 0 ? plan_step_find(p->plan, id) : UINT32_MAX;
        if (row != UINT32_MAX && !p->plan->steps[row].superseded &&
            run->steps[row].status == STEP_FAILED && redo[row] == 0) {
            redo[row] = 1;
            n++;
        }
    }
    for (bool more = n > 0; more;) {
        more = false;
        for (uint32_t i = 0; i < run->n_steps; i++) {
            if (redo[i] == 0 && is_open_end(p, i) && can_follow(p, redo, i)) {
                redo[i] = 1;
                n++;
                more = true;
            }
        }
    }
    return n;
}

/* ---- as a change ---- */

static bool is_place(struct str name)
{
    return str_is(name, "dependsOn") || str_is(name, "revision") || str_is(name, "superseded");
}

static void put_deps(const struct open_plan *p, const uint8_t *redo, uint32_t i, struct buf *out)
{
    const struct run *run = core_block_run(p->block);
    uint32_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) {
            doc_put_cstr(out, "dependsOn");
            doc_put_array(out, n);
        }
        for (uint32_t d = 0; d < deps_of(p->plan, i); d++) {
            const uint32_t dep = dep_of(p->plan, i, d);
            if (redo[dep] == 0 && run->steps[dep].status != STEP_COMPLETED) {
                continue; /* it is over, and only its end was waited for */
            }
            if (pass == 0) {
                n++;
            } else {
                doc_put_str(out, p->plan->steps[dep].step_id);
            }
        }
    }
}

/* The step as it stands in the plan's document, but for its place in it. */
static void put_step(const struct open_plan *p, const uint8_t *redo, uint32_t i, struct doc step,
                     struct buf *out)
{
    struct doc_head head = doc_head(step);
    uint32_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        struct doc_cursor c = doc_cursor(step);
        if (pass == 1) {
            doc_put_map(out, n + 1);
        }
        (void)doc_next(&c, &head);
        for (uint32_t m = 0, members = head.n; m < members; m++) {
            const struct doc key = doc_skip(&c);
            const struct doc value = doc_skip(&c);
            if (is_place(doc_string(key))) {
                continue;
            }
            n += pass == 0 ? 1 : 0;
            if (pass == 1) {
                doc_put_doc(out, key);
                doc_put_doc(out, value);
            }
        }
    }
    put_deps(p, redo, i, out);
}

static void put_change(const struct open_plan *p, const uint8_t *redo, uint32_t n,
                       struct doc document, struct buf *out)
{
    struct doc_cursor c = doc_cursor(doc_get(document, STR_LIT("steps")));
    struct doc_head head;

    doc_put_map(out, 1);
    doc_put_cstr(out, "steps");
    doc_put_array(out, n);
    if (!doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return;
    }
    for (uint32_t i = 0; i < head.n && i < p->plan->n_steps; i++) {
        const struct doc step = doc_skip(&c);
        if (redo[i] != 0) {
            put_step(p, redo, i, step, out);
        }
    }
}

/* ---- to the core ---- */

static bool rectify(struct engine *engine, struct open_plan *p, struct doc named, struct str why,
                    const struct usage *usage, struct bt_error *err)
{
    uint8_t *redo = calloc(p->plan->n_steps + 1, 1);
    struct problems problems = {.at = calloc(PROBLEMS_MAX, sizeof *problems.at),
                                .cap = PROBLEMS_MAX};
    struct new_revision revision = {0};
    struct blob_ref document = {0};
    bool done = false;

    if (redo == NULL || problems.at == NULL) {
        (void)err_set(err, BT_NOMEM, "out of memory for a revision");
    } else {
        const uint32_t n = choose(p, named, redo);
        if (n == 0) {
            (void)err_set(err, BT_INVALID, "it names no step that failed");
        } else if (revise_again(engine, p, redo, n, put_change, &problems, &revision, &document,
                                err) == BT_OK) {
            done = job_bring(engine, p, CORE_RECTIFY, &revision, document, why, usage);
            if (!done) {
                (void)err_set(err, BT_CONFLICT, "the steps were tried again often enough");
            }
        }
    }
    new_revision_done(&revision);
    free(problems.at);
    free(redo);
    return done || engine_has_failed(engine);
}

static void feed_answer(struct engine *engine, const struct open_plan *p, const struct job_end *end)
{
    struct core_event ev = {
        CORE_EV_INIT(SYNTHESIZED, synthesized, .result = end->result, .usage = end->usage),
        .run = p->run};
    struct bt_error err;

    if (engine_feed(engine, &ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
}

static bool is_blank(struct str s)
{
    size_t n = 0;

    while (n < s.len && (s.ptr[n] == ' ' || (s.ptr[n] >= '\t' && s.ptr[n] <= '\r'))) {
        n++;
    }
    return n == s.len;
}

/* Nothing that could answer for a plan: it is put together out of its results instead. */
static bool says_nothing(struct doc stored)
{
    const struct doc text = doc_get(stored, STR_LIT("text"));
    const struct doc data = doc_get(stored, STR_LIT("data"));
    const struct doc_head head =
        data.ptr != NULL ? doc_head(data) : (struct doc_head){.kind = DOC_NIL};
    const bool list = head.kind == DOC_MAP || head.kind == DOC_ARRAY;

    if (text.ptr != NULL) {
        return is_blank(doc_string(text));
    }
    if (data.ptr == NULL) {
        return doc_get(stored, STR_LIT("artifacts")).ptr == NULL;
    }
    return head.kind == DOC_NIL || (list && head.n == 0) ||
           (head.kind == DOC_STR && is_blank(head.str));
}

/* A wish to try nothing again is none, when there is an answer beside it. */
static bool wants_retry(struct doc retry, struct str text)
{
    const struct doc_head head =
        retry.ptr != NULL ? doc_head(retry) : (struct doc_head){.kind = DOC_NIL};
    const bool none = head.kind == DOC_NIL || (head.kind == DOC_ARRAY && head.n == 0);

    return retry.ptr != NULL && (!none || is_blank(text));
}

void job_answered(struct engine *engine, struct open_plan *p, const struct job *e,
                  const struct job_end *end)
{
    struct doc stored = {NULL, 0};
    struct bt_error err = {.code = BT_OK};
    struct str text;
    struct doc retry;

    if (!end->ok || engine_result_doc(engine, end->result, &stored, &err) != BT_OK) {
        struct str why = end->text.len > 0 ? end->text : STR_LIT("The synthesizer failed");
        job_failed(engine, p, e, end, end->ok ? str_from(err.msg) : why, 0);
        return;
    }
    stored = doc_copy(engine_cycle_arena(engine), stored);
    text = doc_string(doc_get(stored, STR_LIT("text")));
    retry = doc_get(doc_get(stored, STR_LIT("data")), STR_LIT("retry"));
    if (!wants_retry(retry, text)) {
        if (end->result.id == 0 || says_nothing(stored)) {
            job_failed(engine, p, e, end, STR_LIT("The answer is empty"), 0);
        } else {
            feed_answer(engine, p, end);
        }
        return;
    }
    text.len = utf8_cut(text.ptr, text.len, TEXT_MAX);
    if (!rectify(engine, p, retry, text, &end->usage, &err)) {
        job_failed(engine, p, e, end, str_from(err.msg), 0);
    }
}

/* A planner's answer: a document becomes the steps of the plan that waits for them, or is sent back
 * with what is wrong. */
#include <stdlib.h>

#include "protocol/base/utf8.h"
#include "supervisor/dispatch/job.h"
#include "supervisor/dispatch/revise.h"
#include "supervisor/dispatch/verdict.h"

enum { PROBLEMS_MAX = 200, PROBLEMS_TOLD = 20, TEXT_MAX = 2048, ANSWER_MAX = 1024 * 1024 };

static struct str cut(struct str text)
{
    text.len = text.len == 0 ? 0 : utf8_cut(text.ptr, text.len, TEXT_MAX);
    return text;
}

static void refuse(struct engine *engine, const struct open_plan *p, const struct job *e,
                   const struct job_end *end, struct str why, uint64_t problems)
{
    job_failed(engine, p, e, end, cut(why), problems);
}

static void make(struct engine *engine, struct open_plan *p, const struct job *e,
                 const struct job_end *end, struct doc answer)
{
    struct problems problems = {.at = calloc(PROBLEMS_MAX, sizeof *problems.at),
                                .cap = PROBLEMS_MAX};
    struct new_revision revision = {0};
    struct blob_ref document = {0};
    struct bt_error err;
    struct buf text;
    enum bt_code code = problems.at == NULL ? err_set(&err, BT_NOMEM, "out of memory for a plan")
                                            : revise_planned(engine, p, answer, false, &problems,
                                                             &revision, &document, &err);

    buf_init(&text, 64 * 1024);
    if (code == BT_OK && revision.plan->n_steps > PLANNED_STEPS_MAX) {
        buf_printf(&text, "the plan has %u steps; a planner may make at most %d",
                   revision.plan->n_steps, PLANNED_STEPS_MAX);
        refuse(engine, p, e, end, buf_str(&text), 1);
    } else if (code == BT_OK) {
        revise_remarks(&problems, PROBLEMS_TOLD, &text);
        if (!job_bring(engine, p, CORE_PLANNED, &revision, document, cut(buf_str(&text)),
                       &end->usage)) {
            refuse(engine, p, e, end, STR_LIT("the plan does not fit what was asked for"), 1);
        }
    } else if (code == BT_NOMEM || code == BT_INTERNAL) {
        job_failed(engine, p, e, end, str_from(err.msg), 0);
    } else if (code != BT_IO) {
        revise_problems(&problems, PROBLEMS_TOLD, &text);
        if (text.len == 0) {
            buf_add_cstr(&text, err.msg);
        }
        refuse(engine, p, e, end, buf_str(&text), problems.errors > 0 ? problems.errors : 1);
    }
    new_revision_done(&revision);
    buf_done(&text);
    free(problems.at);
}

void job_planned(struct engine *engine, struct open_plan *p, const struct job *e,
                 const struct job_end *end)
{
    struct msg_result result = {.has = 0};
    struct doc stored = {NULL, 0};
    struct doc answer;
    struct buf parsed;
    struct buf why;
    struct bt_error err;

    if (!end->ok) {
        job_failed(engine, p, e, end, end->text.len > 0 ? end->text : STR_LIT("The planner failed"),
                   0);
        return;
    }
    if (engine_result_doc(engine, end->result, &stored, &err) != BT_OK) {
        job_failed(engine, p, e, end, str_from(err.msg), 0);
        return;
    }
    stored = doc_copy(engine_cycle_arena(engine), stored);
    result.data = doc_get(stored, STR_LIT("data"));
    result.text = doc_string(doc_get(stored, STR_LIT("text")));
    buf_init(&parsed, ANSWER_MAX * 3);
    buf_init(&why, TEXT_MAX + 64);
    answer = answer_map(&result, &parsed);
    if (answer.ptr == NULL) {
        refuse(engine, p, e, end,
               STR_LIT("the answer is no plan: expected one JSON object {\"steps\": [...]}"), 1);
    } else if (answer_impossible(answer, &why)) {
        job_failed(engine, p, e, end, buf_str(&why), 0);
    } else if (answer.len > ANSWER_MAX) {
        refuse(engine, p, e, end, STR_LIT("the plan is larger than 1 MiB"), 1);
    } else {
        make(engine, p, e, end, answer);
    }
    buf_done(&why);
    buf_done(&parsed);
}

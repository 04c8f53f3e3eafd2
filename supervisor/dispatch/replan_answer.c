/* A replanner's answer: a plan document becomes the next revision of the plan, or a failure that
 * says why it cannot. */
#include <stdlib.h>

#include "protocol/base/utf8.h"
#include "supervisor/dispatch/results.h"
#include "supervisor/dispatch/revise.h"
#include "supervisor/dispatch/verdict.h"

enum { PROBLEMS_MAX = 64, PROBLEMS_TOLD = 5, TEXT_MAX = 2048, ANSWER_MAX = 1024 * 1024 };

/* The plan is wrong: people see the text, and the next replan gets it as history. */
static void refuse(struct core_event *ev, struct buf *text)
{
    CORE_EV(ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(ev, result)->error_class = CLASS_VALIDATION_ERROR;
    CORE_EV(ev, result)->invalid = true;
    ev->text = buf_str(text);
    if (ev->text.len > TEXT_MAX) {
        ev->text.len = utf8_cut(ev->text.ptr, ev->text.len, TEXT_MAX);
    }
}

/* Why it took this way: beside the steps, or as the text of the answer. */
static struct str reason_of(const struct msg_step_result *m, struct doc answer)
{
    struct str s = doc_string(doc_get(answer, STR_LIT("reasoning")));

    s = s.len > 0 ? s : doc_string(doc_get(answer, STR_LIT("reason")));
    s = s.len > 0 || m->result.data.ptr == NULL ? s : m->result.text;
    s.len = s.len == 0 ? 0 : utf8_cut(s.ptr, s.len, TEXT_MAX);
    return s;
}

static enum bt_code make(struct engine *engine, const struct open_plan *p, struct doc answer,
                         struct core_event *ev, struct new_revision *revision, struct buf *text,
                         struct bt_error *err)
{
    struct revise_change change = {.kind = REVISE_REPLAN, .steps = answer};
    struct problems problems = {.at = calloc(PROBLEMS_MAX, sizeof *problems.at),
                                .cap = PROBLEMS_MAX};
    enum bt_code code = problems.at == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan")
                                            : revise_make(engine, p, &change, &problems, revision,
                                                          &CORE_EV(ev, result)->next.document, err);

    if (code == BT_OK) {
        CORE_EV(ev, result)->outcome = STEP_OUTCOME_COMPLETED;
        CORE_EV(ev, result)->next.plan = revision->plan;
        CORE_EV(ev, result)->next.block = revision->block;
    } else if (code != BT_IO) {
        buf_clear(text);
        revise_problems(&problems, PROBLEMS_TOLD, text);
        if (text->len == 0) {
            buf_add_cstr(text, err->msg);
        }
        refuse(ev, text);
        CORE_EV(ev, result)->invalid =
            code != BT_NOMEM && code != BT_INTERNAL; /* then it is no fault of the plan */
        CORE_EV(ev, result)->error_class = CORE_EV(ev, result)->invalid
                                               ? CORE_EV(ev, result)->error_class
                                               : CLASS_SERVICE_UNAVAILABLE;
        new_revision_done(revision);
        code = BT_OK;
    }
    free(problems.at);
    return code;
}

enum bt_code replan_take(struct engine *engine, const struct msg_step_result *m,
                         struct core_event *ev, struct new_revision *revision, struct buf *text,
                         struct bt_error *err)
{
    const struct open_plan *p = open_plan_of_run(engine, ev->run);
    struct buf parsed;
    struct doc answer;
    enum bt_code code = BT_OK;

    buf_init(&parsed, ANSWER_MAX * 3);
    answer = answer_map(&m->result, &parsed);
    if (p == NULL || answer.ptr == NULL || answer.len > ANSWER_MAX) {
        buf_add_cstr(text, answer.len > ANSWER_MAX
                               ? "the plan is larger than 1 MiB"
                               : "the answer is no plan: expected data {\"steps\": [...], "
                                 "\"reuse\": [stepId...]}");
        refuse(ev, text);
    } else {
        if (answer_impossible(answer, text)) { /* F63: it is over, and this is why */
            CORE_EV(ev, result)->outcome = STEP_OUTCOME_FAILED;
            CORE_EV(ev, result)->error_class = CLASS_UNKNOWN;
            ev->text = buf_str(text);
            buf_done(&parsed);
            return BT_OK;
        }
        buf_add_str(text, reason_of(m, answer));
        ev->text = buf_str(text);
        code = make(engine, p, answer, ev, revision, text, err);
    }
    buf_done(&parsed);
    return code;
}

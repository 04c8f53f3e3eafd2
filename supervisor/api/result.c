/* plan.result: how a plan ended, with its answer, its steps' results and its handoffs (M081).
 * artifact.read: the bytes of a file of it. */
#include <stdlib.h>

#include "supervisor/api/api_internal.h"
#include "supervisor/artifacts/list.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/query/projection.h"

enum {
    HANDOFFS_MAX = 1000,                  /* of one answer */
    STEPS_MAX = 1000,                     /* of one page: each is a read of the journal */
    STEPS_BYTES = LIMIT_CONTROL_BYTES / 2 /* of the results of one page */
};

static void refuse(struct engine *engine, struct request *rq, const struct bt_error *err)
{
    request_refuse(engine, rq, err, CLASS_NONE, 0, (struct doc){NULL, 0});
}

/* The files of the steps from `from` to before `to`. */
static enum bt_code add_artifacts(struct engine *engine, struct projection *s, uint32_t from,
                                  uint32_t to, struct msg_plan_result_ok *ok, struct bt_error *err)
{
    bool cut = false;
    const enum bt_code code =
        artifacts_list(engine, s, from, to, &ok->artifacts, &ok->artifacts_n, &cut, err);

    ok->truncated = ok->truncated || cut;
    return code;
}

/* A copy, because the next read may move what is in the cache. */
static enum bt_code add_details(struct engine *engine, struct projection *s, uint32_t ix,
                                struct msg_plan_result_ok *ok, struct bt_error *err)
{
    struct doc details;
    enum bt_code code = engine_result_doc(engine, s->steps[ix].details, &details, err);

    if (code == BT_OK && details.ptr != NULL) {
        ok->details = doc_copy(&s->arena, details);
        code =
            ok->details.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for details") : BT_OK;
    }
    return code;
}

static void answer_step_result(struct engine *engine, struct request *rq,
                               const struct msg_plan_result *m, struct projection *projection,
                               struct msg_plan_result_ok *ok)
{
    uint32_t ix = plan_step_find(projection->plan, m->step_id);
    struct bt_error err;

    if (ix == UINT32_MAX) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "the plan has no step '%.*s'",
                            STR_ARG(m->step_id));
        return;
    }
    if (add_artifacts(engine, projection, ix, ix + 1, ok, &err) != BT_OK ||
        add_details(engine, projection, ix, ok, &err) != BT_OK ||
        engine_result_doc(engine, projection->steps[ix].result, &ok->result, &err) != BT_OK) {
        refuse(engine, rq, &err);
        return;
    }
    ok->status = projection->view.steps[ix].status;
    ok->success = str_is(ok->status, "completed");
    ok->error = projection_error(projection, projection->view.steps[ix].error,
                                 projection->view.steps[ix].hint);
    request_answer(engine, rq, MSG_plan_result_ok, ok);
}

/* ---- the steps ---- */

/* A copy of the result, when *room has room for it. One that cannot be read is missing, too: with
 * its stepId the request says why. */
static void add_result(struct engine *engine, struct projection *s, uint32_t i, size_t *room,
                       struct msg_step_outcome *to)
{
    const struct blob_ref ref = s->steps[i].result;
    struct doc result = {NULL, 0};

    if (ref.id == 0) {
        return;
    }
    if (ref.len <= *room && engine_result_doc(engine, ref, &result, NULL) == BT_OK) {
        to->result = doc_copy(&s->arena, result);
    }
    to->result_truncated = to->result.ptr == NULL;
    *room -= to->result.len;
}

/* False: out of memory. */
static bool add_steps(struct engine *engine, struct projection *s, uint32_t from,
                      struct msg_plan_result_ok *ok)
{
    const uint32_t left = s->view.steps_n - from;
    const uint32_t n = left < STEPS_MAX ? left : STEPS_MAX;
    size_t room = STEPS_BYTES;

    ok->steps = arena_alloc(&s->arena, (n + 1) * sizeof *ok->steps);
    if (ok->steps == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct msg_step_view *v = &s->view.steps[from + i];
        struct msg_step_outcome *to = &ok->steps[i];
        *to = (struct msg_step_outcome){.step_id = v->step_id,
                                        .step_index = v->step_index,
                                        .status = v->status,
                                        .success = str_is(v->status, "completed"),
                                        .error = v->error,
                                        .error_class = v->error_class,
                                        .hint = v->hint,
                                        .token_usage = usage_view(&s->steps[from + i].usage)};
        add_result(engine, s, from + i, &room, to);
    }
    if (!request_fill_view(engine, s, from, from + n)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        ok->steps[i].details = s->view.steps[from + i].details;
        ok->steps[i].details_truncated = s->view.steps[from + i].details_truncated;
    }
    ok->plan = s->view;
    ok->plan.steps += from;
    ok->plan.steps_n = ok->steps_n = n;
    ok->plan.steps_truncated = ok->steps_truncated = n < left;
    msg_set(ok, plan_result_ok, plan);
    return true;
}

/* Steps first, then handoffs make room for the answer itself. */
static void answer_what_fits(struct engine *engine, struct request *rq,
                             struct msg_plan_result_ok *ok)
{
    struct bt_error err;

    while (request_try_answer(engine, rq, MSG_plan_result_ok, ok, &err) != BT_OK) {
        if (ok->steps_n > 0) {
            ok->plan.steps_n = ok->steps_n /= 2;
            ok->plan.steps_truncated = ok->steps_truncated = true;
        } else if (ok->handoffs_n > 0) {
            ok->handoffs_n /= 2;
            ok->truncated = ok->handoffs_truncated = true;
        } else {
            refuse(engine, rq, &err);
            return;
        }
    }
}

/* ---- the plan ---- */

static enum bt_code add_answer(struct engine *engine, const struct projection *s,
                               struct msg_plan_result_ok *ok, struct buf *text,
                               struct bt_error *err)
{
    const enum bt_code code = !s->ended ? BT_OK
                                        : engine_result_text(engine, s->summary, LIMIT_RESULT_BYTES,
                                                             text, &ok->truncated, err);

    ok->aggregated_result = buf_str(text);
    ok->handoffs = s->handoffs;
    ok->handoffs_n = s->handoffs_n < HANDOFFS_MAX ? s->handoffs_n : HANDOFFS_MAX;
    ok->handoffs_truncated = s->handoffs_cut || ok->handoffs_n < s->handoffs_n;
    ok->truncated = ok->truncated || ok->handoffs_truncated;
    return code;
}

static void answer_plan_result(struct engine *engine, struct request *rq,
                               const struct msg_plan_result *m, struct projection *s,
                               struct msg_plan_result_ok *ok)
{
    const bool page = msg_has(m, plan_result, from_step);
    const uint32_t from = m->from_step < s->view.steps_n ? (uint32_t)m->from_step : s->view.steps_n;
    struct buf text;
    struct bt_error err;
    enum bt_code code = BT_OK;

    buf_init(&text, LIMIT_STEP_BYTES);
    if (!page) {
        code = add_answer(engine, s, ok, &text, &err);
        if (code == BT_OK) {
            code = add_artifacts(engine, s, 0, s->view.steps_n, ok, &err);
        }
    }
    if (code == BT_OK && (!msg_has(m, plan_result, steps) || m->steps) &&
        !add_steps(engine, s, from, ok)) {
        code = err_set(&err, BT_NOMEM, "out of memory for the results of a plan");
    }
    if (code != BT_OK) {
        refuse(engine, rq, &err);
    } else {
        answer_what_fits(engine, rq, ok);
    }
    buf_done(&text);
}

void on_plan_result(struct engine *engine, struct request *rq)
{
    struct msg_plan_result_ok ok = {0};
    struct msg_plan_result m;
    struct projection projection;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_result, &m)) {
        return;
    }
    if (projection_read(engine, m.plan_id, &projection, &err) != BT_OK) {
        refuse(engine, rq, &err);
    } else {
        ok.plan_id = projection.view.plan_id;
        /* Programs that know no other end wait for this one. */
        ok.status = str_is(projection.view.status, "planned") ? STR_LIT("completed")
                                                              : projection.view.status;
        ok.dry_run = projection.view.dry_run;
        ok.truncated_steps = projection.view.truncated_steps;
        ok.truncated_steps_n = projection.view.truncated_steps_n;
        ok.truncated_steps_total = projection.view.truncated_steps_total;
        ok.context_truncated_steps = projection.view.context_truncated_steps;
        ok.context_truncated_steps_n = projection.view.context_truncated_steps_n;
        ok.context_truncated_steps_total = projection.view.context_truncated_steps_total;
        ok.outcome = projection.view.outcome;
        ok.success = str_is(ok.outcome, "success"); /* a partial plan is none */
        ok.error = projection.failure_text;
        msg_set(&ok, plan_result_ok, success);
        if (m.step_id.len > 0) {
            answer_step_result(engine, rq, &m, &projection, &ok);
        } else {
            answer_plan_result(engine, rq, &m, &projection, &ok);
        }
    }
    projection_done(&projection);
}

/* ---- the files ---- */

void api_answer_file(struct engine *engine, struct request *rq, const struct artifact_place *at,
                     uint64_t offset, uint64_t limit, bool to_agent)
{
    const size_t cap =
        limit > 0 && limit < LIMIT_ARTIFACT_PART ? (size_t)limit : LIMIT_ARTIFACT_PART;
    const char *root = engine_options(engine)->artifact_root;
    struct msg_artifact_read_ok read = {0};
    struct msg_artifact_fetch_ok fetched;
    uint8_t *block = malloc(cap);
    size_t n = 0;
    struct buf bin;
    struct bt_error err;
    enum bt_code code = block == NULL
                            ? err_set(&err, BT_NOMEM, "out of memory for an artifact")
                            : artifact_read_at(root, at, offset, block, cap, &n, &read.len, &err);

    buf_init(&bin, LIMIT_CONTROL_BYTES);
    if (code == BT_OK) {
        doc_put_bin(&bin, block, n);
        read.bytes = doc_from_buf(&bin);
        code = buf_check(&bin, &err);
    }
    if (code != BT_OK) {
        refuse(engine, rq, &err);
    } else if (to_agent) {
        fetched = (struct msg_artifact_fetch_ok){.len = read.len, .bytes = read.bytes};
        request_answer(engine, rq, MSG_artifact_fetch_ok, &fetched);
    } else {
        request_answer(engine, rq, MSG_artifact_read_ok, &read);
    }
    buf_done(&bin);
    free(block);
}

bool api_locate_file(struct engine *engine, struct request *rq, struct str uri,
                     struct artifact_place *ret)
{
    const char *root = engine_options(engine)->artifact_root;
    struct bt_error err;
    enum bt_code code =
        root == NULL ? err_set(&err, BT_UNAVAILABLE, "this daemon has no directory for artifacts")
                     : artifact_locate(root, uri, ret, &err);

    if (code != BT_OK) {
        refuse(engine, rq, &err);
    }
    return code == BT_OK;
}

void on_artifact_read(struct engine *engine, struct request *rq)
{
    struct msg_artifact_read m;
    struct journal_plan row;
    struct artifact_place at;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_artifact_read, &m) ||
        !api_locate_file(engine, rq, m.uri, &at)) {
        return;
    }
    if (request_plan_row(engine, str_from(at.plan), &row, &err) != BT_OK) {
        refuse(engine, rq, &err);
        return;
    }
    api_answer_file(engine, rq, &at, m.offset, m.limit, false);
}

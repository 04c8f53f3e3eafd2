/* plans.submit: several plans in one request, each of which is a plan.submit of its own. */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "supervisor/api/api.h"
#include "supervisor/api/long_read.h"
#include "supervisor/api/shards/shards.h"
#include "supervisor/auth/sessions.h"
#include "supervisor/engine/access.h"

enum {
    /* As JSON an answer may be six times as long, and has to fit into LIMIT_STEP_BYTES. */
    ANSWERS_BYTES = 512 * 1024,
    /* Enough for the shortest answer to a plan: its id, or a sentence without details. */
    ANSWER_LEAST = 2048
};

_Static_assert(ANSWERS_BYTES > 2 * LIMIT_PLANS_AT_ONCE * ANSWER_LEAST, "room for remarks");

/* What is still to be submitted, and the answers so far. */
struct many {
    struct buf plans; /* a copy: the request is gone in the next cycle */
    size_t at;        /* of the next plan in it */
    uint32_t n, left;
    struct buf answers;
};

static void many_done(void *state)
{
    struct many *m = state;

    buf_done(&m->plans);
    buf_done(&m->answers);
    free(m);
}

static enum bt_code many_new(struct doc plans, struct many **ret, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(plans);
    struct doc_head head = {.kind = DOC_NIL};
    struct many *m;
    enum bt_code code;

    if (!doc_next(&c, &head) || head.kind != DOC_ARRAY || head.n == 0) {
        return err_set(err, BT_INVALID,
                       "plans: expected a list of 1 to %d maps with the fields of plan.submit",
                       LIMIT_PLANS_AT_ONCE);
    }
    if (head.n > LIMIT_PLANS_AT_ONCE) {
        return err_set(err, BT_LIMIT, "plans: %u plans, at most %d in one request", head.n,
                       LIMIT_PLANS_AT_ONCE);
    }
    m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %u plans", head.n);
    }
    m->n = m->left = head.n;
    buf_init(&m->plans, LIMIT_CONTROL_BYTES);
    buf_init(&m->answers, ANSWERS_BYTES);
    buf_add(&m->plans, c.at, (size_t)(plans.ptr + plans.len - c.at));
    doc_put_array(&m->answers, head.n);
    code = buf_check(&m->plans, err);
    code = code == BT_OK ? buf_check(&m->answers, err) : code;
    if (code != BT_OK) {
        many_done(m);
        return code;
    }
    *ret = m;
    return BT_OK;
}

/* The first one was counted when the request arrived, with the bytes of all. */
static bool within_quotas(struct engine *engine, const struct request *whole, struct request *one)
{
    struct quota_over over;
    struct bt_error err;

    if (whole->seal.n == 0 || sessions_charge(engine_options(engine)->sessions, &whole->seal, 0,
                                              engine_now(engine), &over, &err) == BT_OK) {
        return true;
    }
    access_refuse_quota(engine, one, &err, &over);
    return false;
}

/* False: the journal has failed, and nobody is answered. */
static bool submit_next(struct engine *engine, const struct request *whole, struct many *m)
{
    const struct doc rest = {m->plans.at + m->at, m->plans.len - m->at};
    struct doc_cursor c = doc_cursor(rest);
    const struct doc plan = doc_skip(&c);
    struct request one = {
        .handle = whole->handle,
        .who = whole->who,
        .reader = {.form = WIRE_MSGPACK, .body = plan.ptr, .len = plan.len},
        .env = {.v = 1, .type = STR_LIT("plan.submit")},
        .bytes = plan.len,
        .answer = MSG_plan_submit_ok,
        .into = &m->answers,
    };

    m->at += plan.len;
    m->left--;
    m->answers.max = ANSWERS_BYTES - (size_t)m->left * ANSWER_LEAST;
    if (doc_head(plan).kind != DOC_MAP) {
        request_refuse_text(engine, &one, BT_INVALID,
                            "expected a map with the fields of plan.submit");
    } else if ((m->n - m->left == 1 || within_quotas(engine, whole, &one)) &&
               shards_have(engine, &one)) {
        on_plan_submit(engine, &one);
    }
    msg_reader_done(&one.reader);
    ASSERT(one.answered || engine_has_failed(engine));
    return one.answered && !engine_has_failed(engine);
}

static bool go_on(struct engine *engine, struct request *rq, void *state, uint64_t until_ns)
{
    struct many *m = state;
    struct msg_plans_submit_ok ok;

    do {
        if (!submit_next(engine, rq, m)) {
            return true;
        }
    } while (m->left > 0 && !engine_is_full(engine) && clock_mono_ns() < until_ns);
    if (m->left > 0) {
        return false;
    }
    ok = (struct msg_plans_submit_ok){.answers = doc_from_buf(&m->answers)};
    request_answer(engine, rq, MSG_plans_submit_ok, &ok);
    return true;
}

void on_plans_submit(struct engine *engine, struct request *rq)
{
    struct msg_plans_submit m;
    struct many *many = NULL;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plans_submit, &m)) {
        return;
    }
    if (many_new(m.plans, &many, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    api_read_on(
        engine, rq,
        &(struct long_read){.state = many, .turn = TURN_LARGE, .go_on = go_on, .done = many_done});
}

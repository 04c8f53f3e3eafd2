/* Steps that wait for a person: listed, and decided. */
#include <stdlib.h>

#include "supervisor/bus/bus.h"
#include "supervisor/journal/record_codec.h"

enum { REVIEWS_MAX = 1000 };

static bool add_reviews(const struct bus_plan *p, struct arena *arena,
                        struct msg_review_list_ok *ok, uint32_t limit)
{
    const struct run *run = core_block_run(p->block);
    struct buf id;

    buf_init(&id, 256);
    for (uint32_t i = 0; run->waiting > 0 && i < run->n_steps && ok->reviews_n < limit; i++) {
        struct msg_review_view *v = &ok->reviews[ok->reviews_n];
        if (run->steps[i].status != STEP_WAITING) {
            continue;
        }
        buf_clear(&id);
        review_id_format(p->plan->plan_id, p->plan->steps[i].step_id, run->steps[i].attempt, &id);
        v->review_id = arena_str(arena, buf_str(&id));
        v->plan_id = str_from(p->id);
        v->step_id = p->plan->steps[i].step_id;
        v->kind = str_from(review_kind_name(run->steps[i].review));
        v->prompt = bus_plan_prompt(p, i);
        v->prompt = v->prompt.len > 0 ? v->prompt : p->plan->steps[i].task;
        ok->reviews_n++;
    }
    buf_done(&id);
    return ok->reviews_n < limit;
}

void on_review_list(struct bus *b, struct request *rq)
{
    struct msg_review_list_ok ok = {0};
    struct msg_review_list m;
    struct arena arena = {0};
    struct bt_error err;
    uint32_t limit;

    if (msg_read(&rq->reader, MSG_review_list, &m, &err) != BT_OK) {
        bus_refuse(b, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    limit = m.limit == 0 || m.limit > REVIEWS_MAX ? REVIEWS_MAX : (uint32_t)m.limit;
    ok.reviews = arena_alloc(&arena, limit * sizeof *ok.reviews);
    if (ok.reviews == NULL) {
        bus_refuse_text(b, rq, BT_NOMEM, "out of memory for a list");
        return;
    }
    for (uint32_t i = 0; m.plan_id.len == 0 && i < b->opt.plans_max; i++) {
        if (b->plans[i].run != 0 && !add_reviews(&b->plans[i], &arena, &ok, limit)) {
            break;
        }
    }
    if (bus_plan_by_id(b, m.plan_id) != NULL) {
        (void)add_reviews(bus_plan_by_id(b, m.plan_id), &arena, &ok, limit);
    }
    bus_answer(b, rq, MSG_review_list_ok, &ok);
    arena_done(&arena);
}

void on_review_decide(struct bus *b, struct request *rq)
{
    struct core_event ev = {.type = CORE_DECIDE};
    enum core_reject reject = REJECT_NONE;
    char plan_text[UUID_TEXT_LEN + 1];
    struct msg_review_decide m;
    struct bus_plan *p = NULL;
    struct uuid plan_id;
    struct str step_id;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_review_decide, &m, &err) != BT_OK) {
        bus_refuse(b, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    ev.decision = review_decision_from_name(m.decision);
    if (ev.decision == DECISION_COUNT) {
        bus_refuse_text(b, rq, BT_INVALID, "decision: expected approve or reject, got '%.*s'",
                        STR_ARG(m.decision));
        return;
    }
    if (review_id_parse(m.review_id, &plan_id, &step_id, &ev.attempt)) {
        uuid_format(plan_id, plan_text);
        p = bus_plan_by_id(b, str_from(plan_text));
    }
    ev.step = p != NULL ? plan_step_find(p->plan, step_id) : UINT32_MAX;
    if (ev.step == UINT32_MAX) {
        bus_refuse_text(b, rq, BT_NOT_FOUND, "no open review has the id '%.*s'",
                        STR_ARG(m.review_id));
        return;
    }
    ev.run = p->run;
    ev.text = m.comment;
    if (bus_feed(b, &ev, &reject, NULL, &err) != BT_OK) {
        bus_fail(b, &err);
    } else if (reject != REJECT_NONE) {
        bus_refuse_text(b, rq, BT_CONFLICT, "%s", core_reject_text(reject));
    } else {
        bus_answer(b, rq, MSG_empty, NULL);
    }
}

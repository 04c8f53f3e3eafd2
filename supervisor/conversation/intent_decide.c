/* Yes, no, or words to what waits for a person in the open plan. */
#include <stdio.h>

#include "supervisor/conversation/conversation.h"
#include "supervisor/engine/access.h"
#include "supervisor/events/record_codec.h"

enum { REVIEWS_MAX = 64 };

static const struct run *run_of(const struct turn_ctx *t)
{
    return core_block_run(t->plan->block);
}

struct reviews {
    uint32_t step[REVIEWS_MAX]; /* STEP_NONE: the plan as a whole */
    uint32_t n;
};

static enum review_kind kind_of(const struct open_plan *p, uint32_t step)
{
    return step == STEP_NONE ? open_plan_review(p)
                             : (enum review_kind)core_block_run(p->block)->steps[step].review;
}

static bool wants_words(enum review_kind kind)
{
    return kind == REVIEW_INPUT || kind == REVIEW_STEP;
}

static void find_reviews(const struct open_plan *p, struct reviews *ret)
{
    const struct run *run = core_block_run(p->block);

    ret->n = 0;
    if ((run->paused & (1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING)) != 0) {
        ret->step[ret->n++] = STEP_NONE;
    }
    for (uint32_t i = 0; run->waiting > 0 && i < run->n_steps && ret->n < REVIEWS_MAX; i++) {
        if (run->steps[i].status == STEP_WAITING) {
            ret->step[ret->n++] = i;
        }
    }
}

bool decision_is_awaited(const struct open_plan *p)
{
    struct reviews all;

    find_reviews(p, &all);
    return all.n > 0;
}

static uint32_t serial_of(const struct open_plan *p, uint32_t step)
{
    const struct run *run = core_block_run(p->block);

    return step == STEP_NONE ? run->plan_review : run->steps[step].review_serial;
}

/* A review is identified by its serial; a later one has another. */
uint64_t decision_awaited(const struct open_plan *p)
{
    struct reviews all;
    uint64_t h = 0;

    find_reviews(p, &all);
    for (uint32_t i = 0; i < all.n; i++) {
        h = (h * 31 + all.step[i]) * 31 + serial_of(p, all.step[i]);
    }
    return h >> 1; /* as a number of JSON and of the journal */
}

/* Whether the review of the step is the one that was shown. */
static bool is_shown(const struct turn_ctx *t, uint32_t step)
{
    struct review_id id;

    return review_id_parse(t->shown, &id) && uuid_eq(id.plan_id, t->plan->plan_id) &&
           id.serial == serial_of(t->plan, step);
}

/* An earlier review of the step was shown, and this one was not. */
static bool was_replaced(const struct turn_ctx *t, uint32_t step)
{
    struct review_id id;

    return review_id_parse(t->shown, &id) &&
           str_eq(id.step_id, t->plan->plan->steps[step].step_id) && !is_shown(t, step);
}

bool decision_is_shown(const struct turn_ctx *t)
{
    struct reviews all;
    bool shown = t->shown.len == 0;

    find_reviews(t->plan, &all);
    for (uint32_t i = 0; i < all.n && !shown; i++) {
        shown = is_shown(t, all.step[i]);
    }
    return shown;
}

bool decision_is_answer(const struct open_plan *p)
{
    struct reviews all;

    find_reviews(p, &all);
    return all.n == 1 && wants_words(kind_of(p, all.step[0]));
}

/* The review that is meant; false after asking which. */
static bool choose(struct turn_ctx *t, const struct intent *s, uint32_t *ret)
{
    struct reviews all;

    find_reviews(t->plan, &all);
    if (all.n == 0) {
        reply_only(t, "Nothing waits for an answer.");
        buf_add_byte(&t->reply, ' ');
        reply_where(t->plan, &t->reply);
        return false;
    }
    *ret = all.step[0];
    if (s->n_ranges > 0) {
        const uint32_t number = intent_number(t, s->ranges[0].from);
        if (number != 0 && run_of(t)->steps[number - 1].status != STEP_WAITING) {
            reply_only(t, "Step %u does not wait for you.", number);
        } else if (number != 0 && was_replaced(t, number - 1)) {
            reply_only(t, "By now step %u waits for something else; nothing was decided. ", number);
            reply_where(t->plan, &t->reply);
            return false;
        }
        *ret = number - 1;
        return number != 0 && run_of(t)->steps[number - 1].status == STEP_WAITING;
    }
    if (all.n > 1) {
        reply_only(t,
                   "More than one step waits for you; say \"approve step %u\", \"reject step "
                   "%u\" or \"step %u: ...\".",
                   all.step[all.n - 1] + 1, all.step[all.n - 1] + 1, all.step[all.n - 1] + 1);
        buf_add_byte(&t->reply, ' ');
        reply_where(t->plan, &t->reply);
        return false;
    }
    if (!decision_is_shown(t)) {
        reply_only(t, "By now something else waits for you; nothing was decided. ");
        reply_where(t->plan, &t->reply);
        return false;
    }
    return true;
}

static const char *approved(enum review_kind kind)
{
    switch (kind) {
    case REVIEW_INPUT:
        return "goes on with your answer";
    case REVIEW_STEP:
        return "is done: your words are its result";
    case REVIEW_FAILURE:
        return "is tried once more";
    case REVIEW_UNKNOWN_OUTCOME:
        return "is run again";
    case REVIEW_APPROVAL:
    case REVIEW_BEFORE:
    case REVIEW_PLAN:
    case REVIEW_PLANNING:
    case REVIEW_KIND_COUNT:
    default:
        return "is approved";
    }
}

static void reply_decided(struct turn_ctx *t, uint32_t step, enum review_kind kind,
                          enum review_decision decision)
{
    intent_done(t, wants_words(kind) && decision == DECISION_APPROVE
                       ? "answer"
                       : review_decision_name(decision));
    if (step == STEP_NONE && decision == DECISION_APPROVE) {
        buf_add_cstr(&t->reply, kind == REVIEW_PLANNING ? "The plan is made once more."
                                                        : "The plan is approved and begins.");
    } else if (step == STEP_NONE) {
        buf_add_cstr(&t->reply, "The plan is refused.");
    } else if (decision == DECISION_APPROVE) {
        buf_printf(&t->reply, "Step %u %s.", step + 1, approved(kind));
    } else {
        buf_printf(&t->reply, "Step %u is refused.", step + 1);
    }
}

/* The words complete a human_review: they are its result. */
static bool store_words(struct turn_ctx *t, struct str words, struct blob_ref *ret)
{
    struct buf bytes;
    struct bt_error err;
    enum bt_code code;

    buf_init(&bytes, LIMIT_CONTROL_BYTES);
    doc_put_map(&bytes, 1);
    doc_put_cstr(&bytes, "text");
    doc_put_str(&bytes, words);
    code = buf_check(&bytes, &err);
    ret->len = bytes.len;
    if (code == BT_OK) {
        code = journal_blob_add(engine_journal(t->engine), bytes.at, bytes.len, &ret->id, &err);
    }
    buf_done(&bytes);
    if (code != BT_OK) {
        engine_fail(t->engine, &err);
    }
    return code == BT_OK;
}

/* "answer: ..." is words where words are wanted, and elsewhere yes or no. */
static bool read_answer(struct turn_ctx *t, const struct intent *s, enum review_kind kind,
                        enum review_decision *io)
{
    const enum intent_kind said =
        s->intent == INTENT_ANSWER ? intent_read(s->rest).intent : s->intent;

    if (kind == REVIEW_INPUT && said == INTENT_NO) {
        *io = DECISION_APPROVE; /* "no" is the answer to the agent */
    } else if (s->intent == INTENT_ANSWER && !wants_words(kind)) {
        *io = said == INTENT_NO ? DECISION_REJECT : DECISION_APPROVE;
        if (said != INTENT_YES && said != INTENT_NO) {
            reply_only(t, "What waits for you takes yes or no.");
            return false;
        }
    }
    return true;
}

void intent_decide(struct turn_ctx *t, const struct intent *s, enum review_decision decision)
{
    struct core_event ev = {.type = CORE_DECIDE};
    enum review_kind kind;

    if (!choose(t, s, &ev.step)) {
        return;
    }
    if (!t->may_decide) {
        reply_only(t, "What waits is for a reviewer to decide: this credential has not that role.");
        return;
    }
    kind = kind_of(t->plan, ev.step);
    if (!read_answer(t, s, kind, &decision)) {
        return;
    }
    CORE_EV(&ev, decide)->decision = decision;
    CORE_EV(&ev, decide)->by = t->by;
    ev.text = s->intent == INTENT_ANSWER || (s->intent == INTENT_NO && decision == DECISION_REJECT)
                  ? s->rest
              : wants_words(kind) ? t->text
                                  : (struct str){"", 0};
    ev.attempt = serial_of(t->plan, ev.step);
    if (run_of(t)->cancelling) {
        reply_only(t, "The plan is being stopped.");
    } else if (kind == REVIEW_STEP && decision == DECISION_APPROVE &&
               !store_words(t, ev.text, &CORE_EV(&ev, decide)->result)) {
        return;
    } else if (intent_feed(t, &ev)) {
        struct identity by = {.role = ROLE_COUNT};
        (void)snprintf(by.id, sizeof by.id, "%.*s", STR_ARG(t->by.id));
        access_note(t->engine, AUDIT_DECISION,
                    engine_who(t->engine) != NULL ? engine_who(t->engine) : &by,
                    STR_LIT("session.say"), str_from(t->plan->id), BT_OK,
                    str_from(review_decision_name(decision)));
        reply_decided(t, ev.step, kind, decision);
    }
}

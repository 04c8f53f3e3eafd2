/* What was wanted of the open plan is checked against it, then done; or refused in words. */
#include "protocol/base/utf8.h"
#include "supervisor/conversation/conversation.h"

enum { REASONING_MAX = 2048 }; /* of a record */

static const struct run *run_of(const struct turn_ctx *t)
{
    return core_block_run(t->plan->block);
}

bool intent_feed(struct turn_ctx *t, struct core_event *ev)
{
    enum core_reject reject = REJECT_NONE;
    struct bt_error err;

    ev->run = t->plan->run;
    if (engine_feed(t->engine, ev, &reject, &err) != BT_OK) {
        engine_fail(t->engine, &err);
        return false;
    }
    if (reject == REJECT_NOT_WAITING && run_of(t)->status == PLAN_PENDING) {
        reply_only(t,
                   "The plan has not begun: it waits for its sign-off. Say yes to let it run, then "
                   "its steps can be skipped; or no to refuse it, then say what is to be "
                   "different.");
        return false;
    }
    if (request_reject(reject, core_revision(engine_core(t->engine), t->plan->run), &err) !=
        BT_OK) {
        reply_only(t, "That cannot be done now: %s.", err.msg);
        return false;
    }
    return true;
}

void intent_done(struct turn_ctx *t, const char *action)
{
    buf_clear(&t->reply);
    t->action = str_from(action);
    t->turn.plan = t->plan->plan_id;
}

/* The text of a change in the journal: the words, and what the model made of them (M064). */
static struct str reasoning_of(struct turn_ctx *t)
{
    static const char between[] = " (the model: ";
    struct str text = t->text;
    struct str why = t->reasoning;
    struct str whole;
    struct buf out;

    if (why.len == 0) {
        return text;
    }
    text.len = utf8_cut(text.ptr, text.len, REASONING_MAX / 2);
    why.len = utf8_cut(why.ptr, why.len, REASONING_MAX - text.len - sizeof between);
    buf_init(&out, REASONING_MAX);
    buf_add_str(&out, text);
    buf_add_cstr(&out, between);
    buf_add_str(&out, why);
    buf_add_byte(&out, ')');
    whole = arena_str(&t->arena, buf_str(&out));
    buf_done(&out);
    return whole.ptr == NULL || whole.len == 0 ? text : whole;
}

/* ---- steps ---- */

static bool is_open(const struct turn_ctx *t, uint32_t ix)
{
    return !t->plan->plan->steps[ix].superseded && !step_is_final(run_of(t)->steps[ix].status);
}

/* The one that waits for a person, or the only one under way; 0 = there is no such one. */
static uint32_t this_step(const struct turn_ctx *t)
{
    const struct run *run = run_of(t);
    uint32_t waiting = 0;
    uint32_t begun = 0;
    uint32_t n_waiting = 0;
    uint32_t n_begun = 0;

    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (run->steps[i].status == STEP_WAITING) {
            waiting = i + 1;
            n_waiting++;
        } else if (is_open(t, i) && run->steps[i].status > STEP_READY) {
            begun = i + 1;
            n_begun++;
        }
    }
    return n_waiting == 1 ? waiting : n_waiting == 0 && n_begun == 1 ? begun : 0;
}

uint32_t intent_number(struct turn_ctx *t, uint32_t said)
{
    const struct run *run = run_of(t);
    uint32_t found = 0;

    if (run->n_steps == 0) {
        reply_only(t, "The plan is still being made; it has no steps yet.");
        return 0;
    }
    if (said == INTENT_STEP_THIS) {
        found = this_step(t);
        if (found == 0) {
            reply_only(t, "Which step do you mean? Say its number, 1 to %u.", run->n_steps);
        }
        return found;
    }
    for (uint32_t i = 0; i < run->n_steps && (said == INTENT_STEP_NEXT || said == INTENT_STEP_LAST);
         i++) {
        const struct run_step *s = &run->steps[i];
        if (said == INTENT_STEP_NEXT && is_open(t, i) && s->status <= STEP_READY) {
            return i + 1;
        }
        found = t->plan->plan->steps[i].superseded ? found : i + 1;
    }
    if (said == INTENT_STEP_NEXT) {
        reply_only(t, "No step is left that has not begun.");
        return 0;
    }
    said = said == INTENT_STEP_LAST ? found : said;
    if (said == 0 || said > run->n_steps) {
        reply_only(t, "There is no step %u: the plan has %u.", said, run->n_steps);
        return 0;
    }
    return said;
}

static bool must_be_open(struct turn_ctx *t, uint32_t number)
{
    const struct run_step *s = &run_of(t)->steps[number - 1];

    if (is_open(t, number - 1)) {
        return true;
    }
    reply_only(t, "Step %u cannot be skipped: it is over (%s).", number,
               t->plan->plan->steps[number - 1].superseded
                   ? "replaced by a later one"
                   : step_status_name((enum step_status)s->status));
    return false;
}

/* The steps of the ranges, each once, into at (room for all of the plan); false after saying what
 * is wrong. */
static bool collect(struct turn_ctx *t, const struct intent_range *ranges, uint32_t n,
                    uint8_t *wanted)
{
    for (uint32_t r = 0; r < n; r++) {
        const uint32_t from = intent_number(t, ranges[r].from);
        const uint32_t to = from == 0                        ? 0
                            : ranges[r].to == ranges[r].from ? from
                                                             : intent_number(t, ranges[r].to);
        if (to == 0) {
            return false;
        }
        for (uint32_t i = from; i <= to; i++) {
            if (from != to && t->plan->plan->steps[i - 1].superseded) {
                continue; /* within a range: people do not know of it */
            }
            if (!must_be_open(t, i)) {
                return false;
            }
            wanted[i - 1] = 1;
        }
    }
    return true;
}

static void reply_skipped(struct turn_ctx *t, const uint32_t *steps, uint32_t n)
{
    intent_done(t, modify_kind_name(MODIFY_SKIP_STEPS));
    buf_add_cstr(&t->reply, n == 1 ? "Step " : "Steps ");
    for (uint32_t i = 0; i < n && i < 20; i++) {
        buf_printf(&t->reply, "%s%u", i == 0 ? "" : i + 1 == n ? " and " : ", ", steps[i] + 1);
    }
    buf_add_cstr(&t->reply, n > 20   ? ", ... are skipped."
                            : n == 1 ? " is skipped."
                                     : " are skipped.");
}

void intent_skip(struct turn_ctx *t, const struct intent_range *ranges, uint32_t n)
{
    struct core_event ev = {CORE_EV_INIT(MODIFY, modify, .kind = MODIFY_SKIP_STEPS),
                            .step = STEP_NONE, .text = reasoning_of(t)};
    const uint32_t all = run_of(t)->n_steps;
    uint8_t *wanted = arena_alloc(&t->arena, all + 1);
    uint32_t *steps = arena_alloc(&t->arena, (all + 1) * sizeof *steps);
    uint32_t n_steps = 0;

    if (wanted == NULL || steps == NULL) {
        reply_only(t, "There is no memory left to do that; try again later.");
        return;
    }
    if (!collect(t, ranges, n, wanted)) {
        return;
    }
    for (uint32_t i = 0; i < all; i++) {
        if (wanted[i] != 0) {
            steps[n_steps++] = i;
        }
    }
    CORE_EV(&ev, modify)->steps = steps;
    CORE_EV(&ev, modify)->n_steps = n_steps;
    if (intent_feed(t, &ev)) {
        reply_skipped(t, steps, n_steps);
    }
}

void intent_skip_to(struct turn_ctx *t, uint32_t number)
{
    struct core_event ev = {CORE_EV_INIT(MODIFY, modify, .kind = MODIFY_SKIP_TO_STEP),
                            .text = reasoning_of(t)};
    uint32_t skipped = 0;

    number = intent_number(t, number);
    if (number == 0 || !must_be_open(t, number)) {
        return;
    }
    for (uint32_t i = 0; i + 1 < number; i++) {
        skipped += is_open(t, i);
    }
    ev.step = number - 1;
    if (intent_feed(t, &ev)) {
        intent_done(t, modify_kind_name(MODIFY_SKIP_TO_STEP));
        buf_printf(&t->reply, "The plan goes on at step %u; %u before it %s skipped.", number,
                   skipped, skipped == 1 ? "is" : "are");
    }
}

/* ---- all ---- */

static void stop(struct turn_ctx *t)
{
    struct core_event ev = {.type = CORE_CANCEL, .text = reasoning_of(t)};

    if (run_of(t)->cancelling) {
        reply_only(t, "The plan is being stopped already.");
    } else if (intent_feed(t, &ev)) {
        intent_done(t, "stop");
        buf_add_cstr(&t->reply, plan_is_final(run_of(t)->status)
                                    ? "The plan is stopped."
                                    : "The plan is being stopped; what is out is called back.");
    }
}

static void pause_or_resume(struct turn_ctx *t, const struct intent *s)
{
    struct core_event ev = {.type = s->intent == INTENT_PAUSE ? CORE_PAUSE : CORE_RESUME,
                            .text = reasoning_of(t)};
    const bool paused = (run_of(t)->paused & 1u << PAUSE_REQUESTED) != 0;

    if (s->intent == INTENT_RESUME && !paused && !s->only_resumes && decision_is_awaited(t->plan)) {
        intent_decide(t, s, DECISION_APPROVE); /* "go ahead" */
        return;
    }
    if (paused != (s->intent == INTENT_RESUME)) {
        reply_only(t, paused ? "The plan is paused already." : "The plan is not paused.");
        buf_add_byte(&t->reply, ' ');
        reply_where(t->plan, &t->reply);
    } else if (intent_feed(t, &ev)) {
        intent_done(t, s->intent == INTENT_PAUSE ? "pause" : "resume");
        buf_add_cstr(&t->reply, s->intent == INTENT_PAUSE
                                    ? "The plan is paused; what is under way is brought to its "
                                      "end. Say resume to go on."
                                    : "The plan goes on.");
    }
}

static void only_words(struct turn_ctx *t, const struct intent *s)
{
    reply_only(t, s->intent == INTENT_NEW
                      ? "A plan is open in this session; say stop first, then what is to be done."
                      : "");
    buf_add_cstr(&t->reply, t->reply.len > 0 ? " " : "");
    reply_where(t->plan, &t->reply);
    if (s->intent == INTENT_UNKNOWN || s->intent == INTENT_ASK) {
        buf_add_cstr(&t->reply, " You can say: status, skip step N, skip to step N, pause, resume, "
                                "stop, and yes or no when something waits for you.");
    }
}

void intent_do(struct turn_ctx *t, const struct intent *s)
{
    switch (s->intent) {
    case INTENT_SKIP:
        intent_skip(t, s->ranges, s->n_ranges);
        break;
    case INTENT_SKIP_TO:
        intent_skip_to(t, s->ranges[0].from);
        break;
    case INTENT_STOP:
        stop(t);
        break;
    case INTENT_PAUSE:
    case INTENT_RESUME:
        pause_or_resume(t, s);
        break;
    case INTENT_YES:
    case INTENT_ANSWER:
        intent_decide(t, s, DECISION_APPROVE);
        break;
    case INTENT_NO:
        intent_decide(t, s, DECISION_REJECT);
        break;
    case INTENT_UNKNOWN:
    case INTENT_STATUS:
    case INTENT_ASK:
    case INTENT_NEW:
    default:
        only_words(t, s);
        break;
    }
}

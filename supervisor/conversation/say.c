/* session.say: a person's message becomes a new plan, a change of the open one, a decision, or
 * words (M009, C25, M064). */
#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/conversation/conversation.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/submission.h"
#include "supervisor/events/record_codec.h"

enum { REPLY_MAX = 8192 };

/* What the message leads to, known before anything is written. */
enum course {
    COURSE_NEW,   /* a plan of these words */
    COURSE_PLAN,  /* something about the open plan */
    COURSE_MODEL, /* an agent is asked what is meant */
    COURSE_WORDS  /* nothing is open that it could be about */
};

static uint64_t hash_body(const struct msg_session_say *m)
{
    uint64_t h = str_hash(m->text);

    h = h * 31 + str_hash(m->planner);
    return (h * 31 + str_hash((struct str){(const char *)m->policy.ptr, m->policy.len})) >> 1;
}

static bool is_plain(struct str s, bool lines)
{
    for (size_t i = 0; i < s.len; i++) {
        const uint8_t c = (uint8_t)s.ptr[i];
        if (c == 0x7f || (c < 0x20 && !(lines && (c == '\n' || c == '\t' || c == '\r')))) {
            return false;
        }
    }
    return true;
}

static bool is_blank(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((uint8_t)s.ptr[i] > ' ') {
            return false;
        }
    }
    return true;
}

static bool check(struct engine *engine, struct request *rq, const struct msg_session_say *m)
{
    struct review_id review;

    if (m->session_id.len == 0 || !is_plain(m->session_id, false)) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "sessionId: expected 1 to 64 characters without control characters");
    } else if (is_blank(m->text)) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "text: expected what is to be said, got nothing");
    } else if (!is_plain(m->text, true)) {
        request_refuse_text(
            engine, rq, BT_INVALID,
            "text: expected text without control characters (but tabs and line ends)");
    } else if (m->review_id.len > 0 && !review_id_parse(m->review_id, &review)) {
        request_refuse_text(
            engine, rq, BT_INVALID,
            "reviewId: expected planId/stepId/rN or planId/rN, as review.list has it");
    } else {
        return true;
    }
    return false;
}

/* ---- a repeated message ---- */

static void answer(struct request *rq, struct turn_ctx *t, bool existing)
{
    char turn_id[UUID_TEXT_LEN + 1];
    char plan_id[UUID_TEXT_LEN + 1];
    struct msg_session_say_ok ok = {.session_id = t->turn.session_id,
                                    .action = t->action,
                                    .reply = buf_str(&t->reply),
                                    .existing = existing,
                                    .seq = journal_last_seq(engine_journal(t->engine))};

    uuid_format(t->turn.turn_id, turn_id);
    ok.turn_id = str_from(turn_id);
    uuid_format(t->turn.plan, plan_id);
    if (ok.reply.len > REPLY_MAX) {
        ok.reply.len = utf8_cut(ok.reply.ptr, ok.reply.len, REPLY_MAX);
    }
    if (!uuid_is_nil(t->turn.plan) && !str_is(t->action, "")) {
        ok.plan_id = str_from(plan_id);
    }
    request_answer(t->engine, rq, MSG_session_say_ok, &ok);
}

static bool copy_text(const struct journal_message *m, void *self)
{
    struct buf *to = self;

    buf_add_str(to, m->text);
    return false;
}

/* True: the request was answered, because its key was used before. */
static bool said_before(struct request *rq, struct turn_ctx *t)
{
    struct engine *engine = t->engine;
    const struct str session_id = t->turn.session_id;
    const uint64_t hash = t->turn.body_hash;
    struct bt_error err;
    enum bt_code code;

    if (t->turn.client_key.len == 0) {
        return false;
    }
    code =
        journal_turn_by_key(engine_journal(engine), session_id, t->turn.client_key, &t->turn, &err);
    if (code == BT_NOT_FOUND) {
        return false;
    }
    if (code == BT_OK && t->turn.body_hash != hash) {
        code = err_set(&err, BT_CONFLICT, "clientKey '%.*s' was used for another message",
                       STR_ARG(t->turn.client_key));
    }
    if (code == BT_OK && t->turn.answered > 0) {
        code = journal_messages(engine_journal(engine), session_id, t->turn.answered + 1, 1,
                                copy_text, &t->reply, &err);
    }
    if (code != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return true;
    }
    t->action = t->turn.action;
    answer(rq, t, true);
    return true;
}

/* ---- what it leads to ---- */

static bool had_plans(const struct journal_plan *p, void *self)
{
    (void)p;
    *(bool *)self = true;
    return false;
}

static enum course course_without_plan(const struct turn_ctx *t, const struct intent *s)
{
    bool before = false;
    struct bt_error err;

    switch (s->intent) {
    case INTENT_NEW:
        return s->rest.len > 0 ? COURSE_NEW : COURSE_WORDS;
    case INTENT_ANSWER:
        if (s->n_ranges == 0) {
            return COURSE_WORDS;
        }
        break;
    case INTENT_ASK:
        return conversation_agent(t->engine, "converse").len > 0 ? COURSE_MODEL : COURSE_WORDS;
    case INTENT_UNKNOWN:
        break;
    case INTENT_SKIP:
    case INTENT_SKIP_TO:
    case INTENT_STOP:
    case INTENT_PAUSE:
    case INTENT_RESUME:
    case INTENT_YES:
    case INTENT_NO:
    case INTENT_STATUS:
    default:
        return COURSE_WORDS;
    }
    if (conversation_agent(t->engine, "converse").len > 0) {
        /* Only what follows a plan can be about one. */
        if (journal_plans(engine_journal(t->engine), (struct str){"", 0}, t->turn.session_id, 0, 1,
                          had_plans, &before, &err) != BT_OK) {
            log_err("session.say", "%s", err.msg);
        }
    }
    return before ? COURSE_MODEL : COURSE_NEW;
}

static enum course choose(const struct turn_ctx *t, struct intent *s)
{
    if (t->plan == NULL) {
        return course_without_plan(t, s);
    }
    if (s->intent == INTENT_UNKNOWN && decision_is_answer(t->plan)) {
        s->intent = INTENT_ANSWER;
        s->rest = t->text;
    } else if ((s->intent == INTENT_UNKNOWN || s->intent == INTENT_ASK) &&
               conversation_agent(t->engine, "converse").len > 0) {
        return COURSE_MODEL;
    }
    return COURSE_PLAN;
}

/* ---- the request ---- */

static void make_plan(struct request *rq, struct turn_ctx *t, struct str goal)
{
    struct submission d;
    enum bt_code made;

    if (!submission_may_start(t->engine, rq)) {
        return;
    }
    made = intent_submission(t, goal, &d);
    if (turn_begin(t)) {
        if (made == BT_OK) {
            intent_start(t, &d);
        }
        if (turn_end(t)) {
            answer(rq, t, false);
        }
    }
    submission_done(&d);
}

static void take_message(struct request *rq, struct turn_ctx *t)
{
    struct intent s = intent_read(t->text);
    const enum course course = choose(t, &s);

    if (course == COURSE_NEW) {
        make_plan(rq, t, s.intent == INTENT_NEW ? s.rest : t->text);
        return;
    }
    if (!turn_begin(t)) {
        return;
    }
    if (course == COURSE_WORDS) {
        reply_only(t, "%s",
                   s.intent == INTENT_NEW ? "Say what the new plan is for: \"new plan: ...\"."
                                          : "");
        if (t->reply.len == 0) {
            reply_last(t->engine, t->turn.session_id, &t->reply);
        }
    } else if (course == COURSE_PLAN) {
        intent_do(t, &s);
    } else if (!conversation_converse(t)) {
        reply_without_model(t);
    }
    if (turn_end(t)) {
        answer(rq, t, false);
    }
}

void conversation_say(struct engine *engine, struct request *rq)
{
    struct msg_session_say m;
    struct journal_session s;
    struct bt_error err;
    struct turn_ctx t;
    enum bt_code code;

    if (!request_read(engine, rq, MSG_session_say, &m) || !check(engine, rq, &m) ||
        !access_name_session(engine, rq, &m.session_id) ||
        !access_may_take_session(engine, rq, m.session_id)) {
        return;
    }
    turn_init(&t, engine, m.session_id);
    t.text = m.text;
    t.planner = m.planner;
    t.policy = m.policy;
    t.shown = m.review_id;
    t.by = (struct actor){m.by.user, m.by.host, m.by.via, engine_request_peer(engine),
                          str_from(rq->who->id)};
    t.may_decide = access_role_does(rq->who->role, ROLE_REVIEWER);
    t.turn.client_key = m.client_key;
    t.turn.body_hash = hash_body(&m);
    code = journal_session(engine_journal(engine), m.session_id, &s, &err);
    if (code != BT_OK && code != BT_NOT_FOUND) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (!said_before(rq, &t)) {
        take_message(rq, &t);
        if (!engine_has_failed(engine) && rq->answered) {
            conversation_summarize(engine, m.session_id);
        }
    }
    turn_done(&t);
}

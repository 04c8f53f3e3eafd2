/* What agents are asked about a session, and what their answers lead to: an answer is a wish, to be
 * checked like what a person types. */
#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "registry/card.h"
#include "supervisor/conversation/conversation.h"
#include "supervisor/dispatch/verdict.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/submission.h"

enum { CONVERSE_MS = 60000, ANSWER_MAX = 256 * 1024, WHY_MAX = 300 };

static bool is_there(struct engine *engine, uint32_t agent, struct str skill)
{
    const struct agent_view v = registry_agent_view(engine_registry(engine), agent);

    return v.enabled && v.instances > 0 && v.card != NULL &&
           card_skill(v.card, skill) != UINT32_MAX;
}

struct str conversation_agent(struct engine *engine, const char *skill)
{
    const struct str name = str_from(skill);
    uint32_t agent = registry_agent(engine_registry(engine), STR_LIT(PLAN_ORCHESTRATOR));

    if (agent == REGISTRY_NONE || !is_there(engine, agent, name)) {
        agent = registry_agent_with_skill(engine_registry(engine), name);
    }
    return agent != REGISTRY_NONE && is_there(engine, agent, name)
               ? registry_agent_view(engine_registry(engine), agent).id
               : (struct str){"", 0};
}

/* ---- converse ---- */

/* A person does not wait for a model that always fails. */
static bool is_resting(struct engine *engine, struct str agent_id)
{
    const uint32_t agent = registry_agent(engine_registry(engine), agent_id);

    return registry_agent_view(engine_registry(engine), agent).breaker.state == BREAKER_OPEN;
}

bool conversation_converse(struct turn_ctx *t)
{
    char turn[UUID_TEXT_LEN + 1];
    struct job_ask ask = {.kind = JOB_CONVERSE,
                          .of = t->turn.session_id,
                          .session_id = t->turn.session_id,
                          .agent_id = conversation_agent(t->engine, "converse"),
                          .skill = STR_LIT("converse"),
                          .task = STR_LIT("Tell what the message asks for."),
                          .timeout_ms = CONVERSE_MS,
                          .tokens = UINT64_MAX,
                          .micros = UINT64_MAX};
    struct bt_error err;
    uint64_t run = 0;

    uuid_format(t->turn.turn_id, turn);
    ask.turn = str_from(turn);
    if (ask.agent_id.len == 0 || is_resting(t->engine, ask.agent_id) || !turn_context_keep(t)) {
        return engine_has_failed(t->engine);
    }
    if (job_start(t->engine, &ask, &run, &err) != BT_OK) {
        log_warn("session.converse", "session=%.*s %s", STR_ARG(ask.of), err.msg);
        return engine_has_failed(t->engine);
    }
    t->turn.plan = open_plan_of_run(t->engine, run)->plan_id;
    t->action = STR_LIT(""); /* turn_end names it */
    t->waits = true;
    return true;
}

/* A number of a model; 0 = it is none. Whole floats are numbers, too. */
static uint64_t number_in(struct doc value)
{
    const struct doc_head head =
        value.ptr != NULL ? doc_head(value) : (struct doc_head){.kind = DOC_NIL};

    if (head.kind == DOC_UINT) {
        return head.u;
    }
    return head.kind == DOC_FLOAT && head.f >= 1 && head.f <= LIMIT_STEPS &&
                   (double)(uint64_t)head.f == head.f
               ? (uint64_t)head.f
               : 0;
}

static struct intent_range one_step(uint64_t number)
{
    const uint32_t n = number < INTENT_STEP_THIS ? (uint32_t)number : 0;

    return (struct intent_range){n, n};
}

static void skip_listed(struct turn_ctx *t, struct doc list)
{
    struct doc_cursor c = doc_cursor(list);
    struct intent_range *ranges;
    struct doc_head head = {.kind = DOC_NIL};

    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY || head.n == 0 ||
        head.n > LIMIT_STEPS) {
        reply_only(t, "The model named no steps to skip.");
        return;
    }
    ranges = arena_alloc(&t->arena, head.n * sizeof *ranges);
    if (ranges == NULL) {
        reply_only(t, "There is no memory left to do that; try again later.");
        return;
    }
    for (uint32_t i = 0, n = head.n; i < n; i++) {
        ranges[i] = one_step(number_in(doc_skip(&c)));
    }
    intent_skip(t, ranges, head.n);
}

/* Of the quota of the credential whose session it is. */
static enum bt_code plans_left(struct turn_ctx *t, struct bt_error *err)
{
    char owner[LIMIT_ID_BYTES + 1];
    struct quota_over over;
    bool known;
    enum bt_code code = access_session_owner(t->engine, t->turn.session_id, &known, owner, err);

    return code == BT_OK ? access_plans_left(t->engine, str_from(owner), &over, err) : code;
}

static void new_plan(struct turn_ctx *t, struct str goal)
{
    struct submission d;
    struct bt_error err;

    if (t->plan != NULL) {
        intent_do(t, &(struct intent){.intent = INTENT_NEW});
        return;
    }
    if (submission_room(t->engine, &err) != BT_OK || plans_left(t, &err) != BT_OK) {
        reply_only(t, "No plan can be begun now: %s", err.msg);
        return;
    }
    goal = goal.len > 0 && goal.len <= LIMIT_TASK_BYTES ? goal : t->text;
    if (intent_submission(t, goal, &d) == BT_OK) {
        intent_start(t, &d);
    }
    submission_done(&d);
}

static void put_reply(struct turn_ctx *t, struct str text)
{
    reply_only(t, "%s", "");
    buf_add_str(&t->reply, text);
    if (text.len == 0) {
        if (t->plan != NULL) {
            reply_where(t->plan, &t->reply);
        } else {
            reply_last(t->engine, t->turn.session_id, &t->reply);
        }
    }
}

/* What the model wanted cannot be done: the words that help, and why. */
static void refuse(struct turn_ctx *t, struct str action, const char *why)
{
    reply_without_model(t);
    buf_printf(&t->reply, "\nNothing was changed: the model wanted %.*s, and %s.",
               action.len > 40 ? 40 : (int)action.len, action.ptr, why);
}

static void take_action(struct turn_ctx *t, struct doc data)
{
    static const struct {
        const char *action;
        enum intent_kind intent;
    } simple[] = {{"approve", INTENT_YES},    {"reject", INTENT_NO},
                  {"stop", INTENT_STOP},      {"pause", INTENT_PAUSE},
                  {"resume", INTENT_RESUME},  {"skip_to_step", INTENT_SKIP_TO},
                  {"skip_steps", INTENT_SKIP}};
    const struct str action = doc_string(doc_get(data, STR_LIT("action")));

    t->reasoning = doc_string(doc_get(data, STR_LIT("reasoning")));
    if (str_is(action, "conversation_only") || action.len == 0) {
        put_reply(t, doc_string(doc_get(data, STR_LIT("reply"))));
    } else if (intent_read(t->text).intent == INTENT_ASK) {
        reply_only(t, "You were only asking, so nothing was changed (the model wanted: %.*s).",
                   action.len > 40 ? 40 : (int)action.len, action.ptr);
    } else if (str_is(action, "new_plan")) {
        new_plan(t, doc_string(doc_get(data, STR_LIT("goal"))));
    } else {
        struct intent s = {.intent = INTENT_UNKNOWN, .only_resumes = true};
        for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++) {
            s.intent = str_is(action, simple[i].action) ? simple[i].intent : s.intent;
        }
        if (s.intent == INTENT_UNKNOWN || t->plan == NULL) {
            refuse(t, action,
                   s.intent == INTENT_UNKNOWN ? "there is no such action" : "no plan is open");
            return;
        }
        s.ranges[0] = one_step(number_in(doc_get(data, STR_LIT("targetStepNumber"))));
        if (!turn_context_holds(t, s.intent)) {
            return;
        }
        if (s.intent == INTENT_SKIP) {
            skip_listed(t, doc_get(data, STR_LIT("stepsToSkip")));
        } else {
            intent_do(t, &s); /* of an action that there is none: words */
        }
    }
}

static bool copy_message(const struct journal_message *m, void *self)
{
    struct turn_ctx *t = self;

    t->text = arena_str(&t->arena, m->text);
    return false;
}

/* False after saying so: a person waits for the end of the turn, whatever it is. */
static bool read_message(struct turn_ctx *t)
{
    struct bt_error err;

    if (journal_messages(engine_journal(t->engine), t->turn.session_id, t->turn.asked + 1, 1,
                         copy_message, t, &err) == BT_OK) {
        return true;
    }
    reply_only(t, "Nothing was changed: your message cannot be read any more (%s).", err.msg);
    return false;
}

static void take_answer(struct turn_ctx *t, const struct job_end *end)
{
    struct msg_result result = {.has = 0};
    struct doc stored = {NULL, 0};
    struct doc data;
    struct buf parsed;
    struct bt_error err = {.code = BT_OK};
    struct str why = end->text;

    if (!read_message(t)) {
        return;
    }
    if (!end->ok || engine_result_doc(t->engine, end->result, &stored, &err) != BT_OK) {
        why = why.len > 0 ? why : str_from(err.msg);
        why.len = why.len == 0 ? 0 : utf8_cut(why.ptr, why.len, WHY_MAX);
        reply_without_model(t);
        buf_printf(&t->reply, "\nThe model did not tell what you meant: %.*s", STR_ARG(why));
        return;
    }
    stored = doc_copy(&t->arena, stored);
    result.data = doc_get(stored, STR_LIT("data"));
    result.text = doc_string(doc_get(stored, STR_LIT("text")));
    buf_init(&parsed, ANSWER_MAX * 3);
    data = answer_map(&result, &parsed);
    if (data.ptr == NULL) {
        put_reply(t, result.text); /* an agent that answers in words answers the person */
    } else {
        take_action(t, data);
    }
    buf_done(&parsed);
}

/* The turn as it was begun; false: it cannot be read, and ends with the next start. */
static bool find_turn(struct turn_ctx *t, const struct job *e)
{
    struct uuid id;
    struct bt_error err = {.msg = "its id is none"};

    if (!uuid_parse(str_from(e->turn), &id) ||
        journal_turn(engine_journal(t->engine), id, &t->turn, &err) != BT_OK) {
        log_err("session.turn", "turn=%s %s", e->turn, err.msg);
        return false;
    }
    t->turn.session_id = arena_str(&t->arena, t->turn.session_id);
    t->turn.client_key = arena_str(&t->arena, t->turn.client_key);
    if (t->turn.session_id.ptr == NULL || t->turn.client_key.ptr == NULL) {
        return false;
    }
    turn_context_read(t);
    t->turn.plan = (struct uuid){{0}}; /* it was the job's */
    return true;
}

static void converse_over(struct engine *engine, const struct job *e, const struct job_end *end)
{
    struct turn_ctx t;

    turn_init(&t, engine, str_from(e->of));
    if (find_turn(&t, e)) {
        engine_act_by(engine, t.by.id);
        take_answer(&t, end);
        engine_act_by(engine, (struct str){"", 0});
        (void)turn_end(&t);
        if (!engine_has_failed(engine)) {
            conversation_summarize(engine, str_from(e->of));
        }
    }
    turn_done(&t);
}

void conversation_job_over(struct engine *engine, const struct job *e, const struct job_end *end)
{
    if (e->kind == JOB_CONVERSE) {
        converse_over(engine, e, end);
    } else {
        conversation_summary_over(engine, e, end);
    }
}

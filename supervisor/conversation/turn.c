/* A turn: a person's message from turn_start to turn_end, in the journal. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/conversation/conversation.h"
#include "supervisor/engine/access.h"
#include "supervisor/events/record_codec.h"

static const char ROLE_USER[] = "user";
static const char ROLE_ASSISTANT[] = "assistant";

void turn_init(struct turn_ctx *t, struct engine *engine, struct str session_id)
{
    *t = (struct turn_ctx){.engine = engine, .action = STR_LIT("conversation_only")};
    buf_init(&t->reply, LIMIT_STEP_BYTES);
    t->turn.session_id = session_id;
    t->plan = open_plan_of_session(engine, session_id);
}

void turn_done(struct turn_ctx *t)
{
    buf_done(&t->reply);
    arena_done(&t->arena);
}

/* What a person reads; when it is cut, the last `end` bytes are kept. */
struct said {
    struct str text;
    size_t end;
    struct str outcome; /* of the plan whose answer it is; "" = it is none */
};

static struct said says(struct str text)
{
    return (struct said){.text = text, .outcome = {"", 0}};
}

static enum bt_code record(struct engine *engine, const struct journal_turn *t,
                           enum record_type type, const struct said *said, struct bt_error *err)
{
    char turn_id[UUID_TEXT_LEN + 1];
    char plan_id[UUID_TEXT_LEN + 1];
    struct record rec = {
        .type = type, .now = engine_now(engine), .wall = engine_wall(engine), .text = said->text};
    struct record_extra x = {.session_id = t->session_id, .outcome = said->outcome};

    uuid_format(t->turn_id, turn_id);
    x.turn_id = str_from(turn_id);
    if (type == REC_TURN_END) {
        REC(&rec, turn_end)->duration_ms =
            engine_wall(engine) > t->started_wall ? engine_wall(engine) - t->started_wall : 0;
        x.action = t->action;
        if (!uuid_is_nil(t->plan)) {
            uuid_format(t->plan, plan_id);
            x.turn_plan_id = str_from(plan_id);
        }
    }
    return engine_write_record(engine, &rec, &x, err);
}

/* Valid UTF-8 of at most SESSION_ANSWER_MAX bytes. */
static void put_message(const struct said *said, struct buf *out)
{
    static const char mark[] = "\n\n[cut: baton result gives the whole answer]";
    const bool middle = said->end > 0 && said->text.len > SESSION_ANSWER_MAX;
    const size_t after = middle ? said->end + sizeof mark - 1 : 0;
    struct str head = said->text;

    head.len = head.len < SESSION_ANSWER_MAX ? head.len : SESSION_ANSWER_MAX;
    (void)buf_add_repaired(out, head);
    if (out->len > SESSION_ANSWER_MAX - after) {
        buf_truncate(out, utf8_cut((const char *)out->at, out->len, SESSION_ANSWER_MAX - after));
    }
    if (middle) {
        buf_add_cstr(out, mark);
        buf_add(out, said->text.ptr + said->text.len - said->end, said->end);
    }
}

/* Text from anywhere becomes what a message may hold. */
static enum bt_code add_message(struct engine *engine, struct str session_id, const char *role,
                                struct said said, const struct journal_turn *t, struct uuid plan,
                                struct str owner, uint64_t *ret_n, struct bt_error *err)
{
    struct journal_message m = {.role = str_from(role), .plan = plan, .wall = engine_wall(engine)};
    struct buf clean;
    enum bt_code code;

    m.cut = said.text.len > SESSION_ANSWER_MAX;
    buf_init(&clean, SESSION_ANSWER_MAX * 4);
    put_message(&said, &clean);
    m.text = buf_str(&clean);
    m.owner = owner;
    if (t != NULL) {
        m.turn = t->turn_id;
    }
    code = buf_check(&clean, err);
    if (code == BT_OK) {
        code = journal_message_add(engine_journal(engine), session_id, &m, ret_n, err);
    }
    buf_done(&clean);
    return code;
}

static enum bt_code begin(struct turn_ctx *t, struct bt_error *err)
{
    char owner[LIMIT_ID_BYTES + 1];
    enum bt_code code;
    bool known;

    t->turn.turn_id = engine_new_id(t->engine);
    t->turn.started_wall = engine_wall(t->engine);
    code = access_session_owner(t->engine, t->turn.session_id, &known, owner, err);
    if (code == BT_OK) {
        code = add_message(
            t->engine, t->turn.session_id, ROLE_USER, says(t->text), &t->turn, (struct uuid){{0}},
            known ? str_from(owner) : access_owner(engine_who(t->engine)), &t->turn.asked, err);
    }
    if (code == BT_OK) {
        code = journal_turn_put(engine_journal(t->engine), &t->turn, err);
    }
    if (code == BT_OK) {
        const struct said said = says(t->text);
        code = record(t->engine, &t->turn, REC_TURN_START, &said, err);
    }
    return code;
}

bool turn_begin(struct turn_ctx *t)
{
    struct bt_error err;

    if (begin(t, &err) != BT_OK) {
        engine_fail(t->engine, &err);
        return false;
    }
    return true;
}

/* The answer, the end of the turn and its record. */
static enum bt_code close_turn(struct engine *engine, struct journal_turn *t, struct said said,
                               struct bt_error *err)
{
    enum bt_code code =
        add_message(engine, t->session_id, ROLE_ASSISTANT, said, t, t->plan, (struct str){"", 0},
                    &t->answered, err); /* the session is there */

    t->ended_wall = engine_wall(engine) > 0 ? engine_wall(engine) : 1; /* 0 = open */
    if (code == BT_OK) {
        code = journal_turn_put(engine_journal(engine), t, err);
    }
    return code == BT_OK ? record(engine, t, REC_TURN_END, &said, err) : code;
}

bool turn_end(struct turn_ctx *t)
{
    struct bt_error err;
    enum bt_code code;

    if (engine_has_failed(t->engine)) {
        return false;
    }
    code = buf_check(&t->reply, &err);
    t->turn.action = t->action;
    if (code == BT_OK) {
        code = t->waits ? journal_turn_put(engine_journal(t->engine), &t->turn, &err)
                        : close_turn(t->engine, &t->turn, says(buf_str(&t->reply)), &err);
    }
    if (code != BT_OK) {
        engine_fail(t->engine, &err);
    }
    return code == BT_OK;
}

/* ---- the end of a plan ---- */

/* What was done since the last summary: attempts of steps, and what was asked besides. */
static void count_calls(const struct open_plan *p, struct journal_session *s)
{
    const struct run *run = core_block_run(p->block);

    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (p->job != NULL) {
            s->tool_calls += run->steps[i].attempt;
        } else {
            s->agent_calls += run->steps[i].attempt;
            s->tool_calls += run->steps[i].ask;
        }
    }
}

static void end_text(const struct open_plan *p, const struct record *rec, struct str summary,
                     struct buf *out)
{
    const struct run *run = core_block_run(p->block);
    const enum plan_status status = REC(rec, plan_completed)->status;

    if (status == PLAN_FAILED) {
        buf_add_cstr(out, "The plan failed: ");
    }
    if (status != PLAN_COMPLETED) {
        plan_failure_text(rec, p->plan, out);
        buf_add_cstr(out, run->completed > 0 && summary.len > 0 ? "\n\n" : "");
    }
    if (status == PLAN_COMPLETED || run->completed > 0) {
        buf_add_str(out, summary);
    }
}

/* M081: the answer of a plan becomes a message, and ends the turn that waits for it. */
static enum bt_code answer_turn(struct engine *engine, const struct open_plan *p, struct said said,
                                struct bt_error *err)
{
    struct journal_turn t;
    struct arena arena = {.chunks = NULL};
    uint64_t n;
    enum bt_code code = journal_turn_of_plan(engine_journal(engine), p->plan_id, &t, err);

    if (code == BT_OK) {
        /* Its strings would go with the next look-up. */
        t.session_id = p->plan->session_id;
        t.client_key = arena_str(&arena, t.client_key);
        t.action = arena_str(&arena, t.action);
        code = t.client_key.ptr == NULL || t.action.ptr == NULL
                   ? err_set(err, BT_NOMEM, "out of memory for a turn")
                   : close_turn(engine, &t, said, err);
    } else if (code == BT_NOT_FOUND) { /* a plan of the session that no message asked for */
        code = add_message(engine, p->plan->session_id, ROLE_ASSISTANT, said, NULL, p->plan_id,
                           open_plan_owner(p), &n, err);
    } else if (code == BT_IO) { /* a damaged turn */
        log_err("session.turn", "plan=%s %s", p->id, err->msg);
        code = BT_OK;
    }
    arena_done(&arena);
    return code;
}

enum bt_code conversation_plan_ended(struct engine *engine, const struct open_plan *p,
                                     const struct record *rec, struct str summary, size_t not_done,
                                     struct bt_error *err)
{
    struct journal_session s;
    struct buf text;
    enum bt_code code;

    if (p->plan->session_id.len == 0) {
        return BT_OK;
    }
    code = journal_session(engine_journal(engine), p->plan->session_id, &s, err);
    if (code != BT_OK) {
        if (code != BT_NOT_FOUND) { /* a damaged session costs its answer, not the daemon */
            log_err("session.end", "plan=%s %s", p->id, err->msg);
        }
        return BT_OK;
    }
    count_calls(p, &s);
    code = journal_session_put(engine_journal(engine), &s, err);
    if (code != BT_OK || p->job != NULL) {
        return code;
    }
    buf_init(&text, LIMIT_STEP_BYTES);
    end_text(p, rec, summary, &text);
    code = buf_check(&text, err);
    if (code == BT_OK) {
        code = answer_turn(
            engine, p,
            (struct said){buf_str(&text), not_done,
                          str_from(plan_outcome_name(REC(rec, plan_completed)->outcome))},
            err);
    }
    buf_done(&text);
    return code;
}

/* ---- after a restart ---- */

struct lost_turns {
    struct engine *engine;
    struct arena arena;
    struct journal_turn *at;
    uint32_t n, cap;
    bool no_memory;
};

static bool keep_turn(struct lost_turns *l, const struct journal_turn *t)
{
    if (l->n == l->cap) {
        uint32_t cap = l->cap == 0 ? 16 : l->cap * 2;
        struct journal_turn *at = realloc(l->at, cap * sizeof *at);
        if (at == NULL) {
            return false;
        }
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n] = *t;
    l->at[l->n].session_id = arena_str(&l->arena, t->session_id);
    l->at[l->n].client_key = arena_str(&l->arena, t->client_key);
    l->at[l->n].action = arena_str(&l->arena, t->action);
    return l->at[l->n].session_id.ptr != NULL && l->at[l->n].client_key.ptr != NULL &&
           l->at[l->n++].action.ptr != NULL;
}

static bool find_lost(const struct journal_turn *t, void *self)
{
    struct lost_turns *l = self;
    char id[UUID_TEXT_LEN + 1];

    uuid_format(t->plan, id);
    if (open_plan_by_id(l->engine, str_from(id)) == NULL) {
        l->no_memory = !keep_turn(l, t);
    }
    return !l->no_memory;
}

static enum bt_code end_lost(struct engine *engine, struct journal_turn *t, struct bt_error *err)
{
    struct journal_plan row = {.ended_wall = 1};
    struct bt_error why;
    char text[200];
    int n;

    if (journal_plan_by_id(engine_journal(engine), t->plan, &row, &why) == BT_OK &&
        row.ended_wall == 0) {
        return BT_OK; /* there was no room for it: a later start brings it back */
    }
    if (row.status.len == 0 || row.status.len > 40) {
        row.status = STR_LIT("it is damaged");
    }
    if (t->action.len == 0) { /* a question: it led to nothing, and is no plan to people */
        t->action = STR_LIT("conversation_only");
        t->plan = (struct uuid){{0}};
    }
    n = snprintf(text, sizeof text,
                 "This could not be brought to its end: %s was put aside after a restart (%.*s).",
                 row.job.len > 0 ? "the question to the model" : "its plan", STR_ARG(row.status));
    return close_turn(engine, t, says((struct str){text, (size_t)n}), err);
}

enum bt_code conversation_recover(struct engine *engine, struct bt_error *err)
{
    struct lost_turns l = {.engine = engine};
    enum bt_code code = journal_turns_open(engine_journal(engine), find_lost, &l, err);

    if (code == BT_OK && l.no_memory) {
        code = err_set(err, BT_NOMEM, "out of memory for the open turns");
    }
    for (uint32_t i = 0; i < l.n && code == BT_OK; i++) {
        struct journal_session s;
        struct bt_error why;
        if (journal_session(engine_journal(engine), l.at[i].session_id, &s, &why) != BT_OK) {
            log_err("session.turn_lost", "%s", why.msg);
        } else {
            code = end_lost(engine, &l.at[i], err);
        }
    }
    free(l.at);
    arena_done(&l.arena);
    return code;
}

/* session.get and session.list: the messages and plans of a session. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"
#include "supervisor/api/api.h"
#include "supervisor/conversation/conversation.h"
#include "supervisor/engine/access.h"

enum {
    MESSAGES_MAX = 1000,
    MESSAGES_SHOWN = 100,
    PLANS_MAX = 100,
    SESSIONS_MAX = 1000,
    SESSION_LOOKS = 20000, /* at sessions of others, too */
    TASK_MAX = 512
};

struct session_page {
    struct engine *engine;
    struct arena arena;
    struct msg_session_view view;
    char owner[LIMIT_ID_BYTES + 1]; /* of the newest plan */
    bool no_memory;
};

static struct str text_of(struct session_page *page, struct str s)
{
    struct str copy = arena_str(&page->arena, s.ptr == NULL ? (struct str){"", 0} : s);

    page->no_memory = page->no_memory || copy.ptr == NULL;
    return copy.ptr == NULL ? (struct str){"", 0} : copy;
}

static struct str time_of(struct session_page *page, msec wall)
{
    char text[CLOCK_ISO_LEN + 1];

    clock_iso(wall, text);
    return text_of(page, str_from(text));
}

static struct str id_of(struct session_page *page, struct uuid id)
{
    char text[UUID_TEXT_LEN + 1];

    if (uuid_is_nil(id)) {
        return (struct str){"", 0};
    }
    uuid_format(id, text);
    return text_of(page, str_from(text));
}

static void put_head(struct session_page *page, const struct journal_session *s,
                     struct msg_session_view *v)
{
    v->session_id = text_of(page, s->session_id);
    v->created_at = time_of(page, s->created_wall);
    v->updated_at = time_of(page, s->updated_wall);
    v->messages_total = s->messages;
    v->agent_calls_since_memory = s->agent_calls;
    v->tool_calls_since_memory = s->tool_calls;
    v->summarized = s->summarized;
    v->open_plan_id = (struct str){"", 0};
    v->owner = text_of(page, access_owner_shown(s->owner));
    msg_set(v, session_view, messages_total);
    msg_set(v, session_view, agent_calls_since_memory);
    msg_set(v, session_view, tool_calls_since_memory);
    msg_set(v, session_view, summarized);
}

static void put_open(struct msg_session_view *v, const struct open_plan *open)
{
    if (open != NULL) {
        v->open_plan_id = str_from(open->id);
    }
}

static bool add_plan(const struct journal_plan *p, void *self)
{
    struct session_page *page = self;
    /* From the end on: the newest comes first, and stands last. */
    struct msg_session_plan *v = &page->view.plan_history[PLANS_MAX - ++page->view.plan_history_n];
    const struct open_plan *open;

    if (page->view.plan_history_n == 1) {
        (void)snprintf(page->owner, sizeof page->owner, "%.*s", STR_ARG(p->owner));
    }
    v->plan_id = id_of(page, p->plan_id);
    v->task = text_of(page, p->goal);
    v->task.len = v->task.len == 0 ? 0 : utf8_cut_words(v->task.ptr, v->task.len, TASK_MAX);
    v->created_at = time_of(page, p->created_wall);
    open = p->ended_wall == 0 ? open_plan_by_id(page->engine, v->plan_id) : NULL;
    v->status = open != NULL ? str_from(plan_status_name(core_block_run(open->block)->status))
                             : text_of(page, p->status);
    return page->view.plan_history_n < PLANS_MAX && !page->no_memory;
}

static enum bt_code put_plans(struct session_page *page, struct str session_id,
                              struct bt_error *err)
{
    struct msg_session_view *v = &page->view;
    enum bt_code code;

    v->plan_history = arena_alloc(&page->arena, PLANS_MAX * sizeof *v->plan_history);
    if (v->plan_history == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for plans");
    }
    code = journal_plans(engine_journal(page->engine), (struct str){"", 0}, session_id, 0,
                         PLANS_MAX, add_plan, page, err);
    v->plan_history += PLANS_MAX - v->plan_history_n;
    return code;
}

static enum bt_code put_messages(struct session_page *page, const struct msg_session_get *m,
                                 struct bt_error *err)
{
    const uint32_t limit = m->limit == 0             ? MESSAGES_SHOWN
                           : m->limit > MESSAGES_MAX ? MESSAGES_MAX
                                                     : (uint32_t)m->limit;
    struct msg_session_view *v = &page->view;
    struct session_messages all;
    enum bt_code code =
        session_messages(page->engine, m->session_id, m->before, limit, &page->arena, &all, err);

    if (code != BT_OK) {
        return code;
    }
    v->messages = arena_alloc(&page->arena, (all.n + 1u) * sizeof *v->messages);
    if (v->messages == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for messages");
    }
    for (uint32_t i = 0; i < all.n; i++) {
        const struct journal_message *said = &all.at[i];
        struct msg_session_message *to = &v->messages[v->messages_n++];
        to->n = said->n;
        to->role = said->role;
        to->text = said->text;
        to->truncated = said->cut;
        to->turn_id = id_of(page, said->turn);
        to->plan_id = id_of(page, said->plan);
        to->timestamp = said->damaged ? (struct str){"", 0} : time_of(page, said->wall);
    }
    return BT_OK;
}

/* Older messages go first when not all fit; they can be had with `before`. */
static void answer_view(struct session_page *page, struct request *rq)
{
    struct msg_session_view *v = &page->view;
    struct bt_error err;

    while (request_try_answer(page->engine, rq, MSG_session_view, v, &err) != BT_OK) {
        const uint32_t drop = (v->messages_n + 1) / 2;
        if (v->messages_n == 0) {
            request_refuse(page->engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            return;
        }
        v->messages += drop;
        v->messages_n -= drop;
    }
}

void on_session_say(struct engine *engine, struct request *rq)
{
    conversation_say(engine, rq);
}

void on_session_get(struct engine *engine, struct request *rq)
{
    struct session_page page = {.engine = engine};
    struct msg_session_get m;
    struct journal_session s;
    struct bt_error err;
    enum bt_code code;

    if (!request_read(engine, rq, MSG_session_get, &m) ||
        !access_name_session(engine, rq, &m.session_id)) {
        return;
    }
    code = access_sees_session(engine, m.session_id)
               ? put_plans(&page, m.session_id, &err)
               : err_set(&err, BT_NOT_FOUND, "no session \"%.*s\"", STR_ARG(m.session_id));
    if (code == BT_OK) {
        code = journal_session(engine_journal(engine), m.session_id, &s, &err);
    }
    if (code == BT_OK) {
        put_head(&page, &s, &page.view);
        page.view.summary = session_summary(engine, &s, &page.arena);
        code = put_messages(&page, &m, &err);
    } else if (code == BT_NOT_FOUND && page.view.plan_history_n > 0) {
        /* Plans were submitted in it, without a message. */
        s = (struct journal_session){.session_id = m.session_id, .owner = str_from(page.owner)};
        put_head(&page, &s, &page.view);
        page.view.created_at = page.view.plan_history[0].created_at;
        page.view.updated_at = (struct str){"", 0};
        code = BT_OK;
    }
    if (code == BT_OK && page.no_memory) {
        code = err_set(&err, BT_NOMEM, "out of memory for a session");
    }
    if (code == BT_OK) {
        put_open(&page.view, open_plan_of_session(engine, m.session_id));
        answer_view(&page, rq);
    } else {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    }
    arena_done(&page.arena);
}

/* ---- session.list ---- */

struct session_list {
    struct session_page page;
    struct msg_session_list_ok ok;
    uint32_t limit, looks;
};

static bool add_session(const struct journal_session *s, void *self)
{
    struct session_list *l = self;

    if (l->ok.sessions_n == l->limit || l->looks++ == SESSION_LOOKS) {
        return false;
    }
    if (access_sees(engine_who(l->page.engine), s->owner)) {
        put_head(&l->page, s, &l->ok.sessions[l->ok.sessions_n++]);
    }
    return !l->page.no_memory;
}

/* One pass for the page, because the daemon waits for it. */
static enum bt_code put_open_plans(struct session_list *l, struct bt_error *err)
{
    struct msg_session_view *views = l->ok.sessions;
    struct open_plan **open = arena_alloc(&l->page.arena, (l->ok.sessions_n + 1u) * sizeof *open);
    struct map at = {0};
    enum bt_code code = open == NULL ? BT_NOMEM : BT_OK;

    for (uint32_t i = 0; i < l->ok.sessions_n && code == BT_OK; i++) {
        open[i] = NULL;
        code = map_put(&at, views[i].session_id, i);
    }
    if (code == BT_OK) {
        open_plans_of_sessions(l->page.engine, &at, open);
    }
    for (uint32_t i = 0; i < l->ok.sessions_n && code == BT_OK; i++) {
        put_open(&views[i], open[i]);
    }
    map_done(&at);
    return code == BT_OK ? BT_OK : err_set(err, code, "out of memory for a list");
}

void on_session_list(struct engine *engine, struct request *rq)
{
    struct session_list l = {.page = {.engine = engine}};
    struct msg_session_list m;
    struct bt_error err;
    uint32_t limit;
    enum bt_code code = BT_OK;

    if (!request_read(engine, rq, MSG_session_list, &m)) {
        return;
    }
    limit = m.limit == 0 ? 100 : m.limit > SESSIONS_MAX ? SESSIONS_MAX : (uint32_t)m.limit;
    l.ok.sessions = arena_alloc(&l.page.arena, limit * sizeof *l.ok.sessions);
    l.page.no_memory = l.ok.sessions == NULL;
    if (!l.page.no_memory) {
        l.limit = limit;
        code = journal_sessions(engine_journal(engine), UINT32_MAX, add_session, &l, &err);
    }
    if (code == BT_OK && l.page.no_memory) {
        code = err_set(&err, BT_NOMEM, "out of memory for a list");
    }
    if (code == BT_OK) {
        code = put_open_plans(&l, &err);
    }
    if (code == BT_OK) {
        request_answer(engine, rq, MSG_session_list_ok, &l.ok);
    } else {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    }
    arena_done(&l.page.arena);
}

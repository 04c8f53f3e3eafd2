/* Sessions as lines, and back: the head with the summary, the messages in their order, each with
 * the turn that it began. */
#include <stdio.h>
#include <string.h>

#include "supervisor/transfer/transfer_internal.h"

enum { TEXT_MAX = 1024 * 1024 };

/* ---- out ---- */

struct pick {
    struct session_place *place;
    msec since;
    bool found;
};

/* Oldest first, and of one moment by their ids. */
static bool pick_next(const struct journal_session *s, void *self)
{
    struct pick *k = self;
    const size_t n = strlen(k->place->id);
    const size_t common = n < s->session_id.len ? n : s->session_id.len;
    const int order = memcmp(s->session_id.ptr, k->place->id, common);

    if (s->updated_wall < k->since || s->updated_wall < k->place->updated ||
        s->session_id.len > LIMIT_ID_BYTES ||
        (s->updated_wall == k->place->updated &&
         (order < 0 || (order == 0 && s->session_id.len <= n)))) {
        return true;
    }
    k->place->updated = s->updated_wall;
    memcpy(k->place->id, s->session_id.ptr, s->session_id.len);
    k->place->id[s->session_id.len] = 0;
    k->place->n = 0;
    k->found = true;
    return false;
}

static enum bt_code put_blob_member(struct line *l, const char *key, struct journal *journal,
                                    uint64_t id, struct bt_error *err)
{
    struct buf bytes;
    enum bt_code code = BT_OK;

    buf_init(&bytes, TEXT_MAX);
    if (id != 0) {
        code = journal_blob_get(journal, id, &bytes, err);
        line_bytes(l, key, bytes.at, bytes.len);
    }
    buf_done(&bytes);
    return code;
}

/* The line ends in every case; what failed first counts. */
static enum bt_code end_after(enum bt_code code, struct line *l, struct buf *lines,
                              struct bt_error *err)
{
    const enum bt_code ended = line_end(l, lines, code == BT_OK ? err : NULL);

    return code != BT_OK ? code : ended;
}

static enum bt_code put_session(struct journal *journal, const struct journal_session *s,
                                struct buf *lines, struct bt_error *err)
{
    struct line l;
    enum bt_code code;

    line_begin(&l, "session");
    line_text(&l, "sessionId", s->session_id);
    line_number(&l, "createdMs", s->created_wall);
    line_number(&l, "updatedMs", s->updated_wall);
    line_number(&l, "messages", s->messages);
    line_number(&l, "summarized", s->summarized);
    line_number(&l, "agentCalls", s->agent_calls);
    line_text(&l, "owner", s->owner);
    line_number(&l, "toolCalls", s->tool_calls);
    code = put_blob_member(&l, "summary", journal, s->summary, err);
    return end_after(code, &l, lines, err);
}

static enum bt_code put_turn(struct journal *journal, struct uuid id, struct buf *lines,
                             struct bt_error *err)
{
    struct journal_turn t;
    struct line l;
    enum bt_code code = journal_turn(journal, id, &t, err);

    if (code == BT_NOT_FOUND || (code == BT_OK && t.ended_wall == 0)) {
        return BT_OK; /* it is not over: only its question is given */
    }
    if (code != BT_OK) {
        return code;
    }
    line_begin(&l, "turn");
    line_uuid(&l, "turnId", t.turn_id);
    line_text(&l, "clientKey", t.client_key);
    line_number(&l, "bodyHash", t.body_hash);
    line_number(&l, "asked", t.asked);
    line_number(&l, "answered", t.answered);
    line_number(&l, "startedMs", t.started_wall);
    line_number(&l, "endedMs", t.ended_wall);
    line_uuid(&l, "planId", t.plan);
    line_text(&l, "action", t.action);
    code = put_blob_member(&l, "context", journal, t.context_blob, err);
    return end_after(code, &l, lines, err);
}

struct one_message {
    struct buf *lines;
    struct uuid turn; /* that it began; nil = none */
    enum bt_code code;
    struct bt_error *err;
};

static bool put_message(const struct journal_message *m, void *self)
{
    struct one_message *one = self;
    struct line l;

    if (m->damaged) {
        one->code = err_set(one->err, BT_IO, "a message of the session is damaged");
        return false;
    }
    line_begin(&l, "message");
    line_number(&l, "n", m->n);
    line_text(&l, "role", m->role);
    line_number(&l, "cut", m->cut);
    line_uuid(&l, "turnId", m->turn);
    line_uuid(&l, "planId", m->plan);
    line_number(&l, "tsMs", m->wall);
    line_text(&l, "text", m->text);
    one->turn = str_is(m->role, "user") ? m->turn : (struct uuid){{0}};
    one->code = line_end(&l, one->lines, one->err);
    return false;
}

static enum bt_code put_end(struct session_place *place, const char *damage, struct buf *lines,
                            struct bt_error *err)
{
    struct line l;

    line_begin(&l, damage == NULL ? "end" : "damaged");
    line_text(&l, "sessionId", str_from(place->id));
    if (damage != NULL) {
        line_text(&l, "why", str_from(damage));
    }
    place->n = UINT64_MAX;
    return line_end(&l, lines, err);
}

/* Lines of the session of the place, from its message place->n + 1 on. */
static enum bt_code put_some(struct journal *journal, struct session_place *place,
                             struct buf *lines, struct bt_error *err)
{
    struct journal_session s;
    enum bt_code code = journal_session(journal, str_from(place->id), &s, err);

    if (code == BT_OK && place->n == 0) {
        code = put_session(journal, &s, lines, err);
    }
    while (code == BT_OK && place->n < s.messages && lines->len < TRANSFER_SLICE_BYTES) {
        struct one_message one = {.lines = lines, .code = BT_OK, .err = err};
        place->n++;
        code =
            journal_messages(journal, str_from(place->id), place->n + 1, 1, put_message, &one, err);
        code = code == BT_OK ? one.code : code;
        if (code == BT_OK && !uuid_is_nil(one.turn)) {
            code = put_turn(journal, one.turn, lines, err);
        }
    }
    return code == BT_OK && place->n >= s.messages ? put_end(place, NULL, lines, err) : code;
}

enum bt_code export_sessions(struct journal *journal, msec since, struct session_place *place,
                             struct buf *lines, bool *ret_done, struct bt_error *err)
{
    struct pick pick = {.place = place, .since = since};
    enum bt_code code = BT_OK;

    *ret_done = false;
    if (place->n == UINT64_MAX) {
        code = journal_sessions_idle(journal, INT64_MAX, UINT32_MAX, pick_next, &pick, err);
        *ret_done = code == BT_OK && !pick.found;
    }
    if (code != BT_OK || *ret_done) {
        return code;
    }
    code = put_some(journal, place, lines, err);
    if (code == BT_NOT_FOUND) {
        return err_set(err, BT_CONFLICT, "a session was deleted while it was exported");
    }
    if (code == BT_IO) {
        return put_end(place, err->msg, lines, err);
    }
    return code;
}

/* ---- in ---- */

enum bt_code import_session_begin(struct session_import *s, struct journal *journal,
                                  struct doc line, struct bt_error *err)
{
    const struct str id = line_get_text(line, "sessionId");
    struct journal_session old;
    struct str owner;
    enum bt_code code;

    if (id.len == 0 || id.len > LIMIT_ID_BYTES || memchr(id.ptr, 0, id.len) != NULL) {
        return err_set(err, BT_INVALID, "sessionId: expected 1 to 64 bytes");
    }
    memcpy(s->id, id.ptr, id.len);
    s->id[id.len] = 0;
    s->head = (struct journal_session){
        .created_wall = line_get_number(line, "createdMs"),
        .updated_wall = line_get_number(line, "updatedMs"),
        .messages = line_get_number(line, "messages"),
        .summarized = line_get_number(line, "summarized"),
        .agent_calls = line_get_number(line, "agentCalls"),
        .tool_calls = line_get_number(line, "toolCalls"),
    };
    buf_init(&s->summary, TEXT_MAX);
    s->next = 1;
    s->here = 0;
    owner = line_get_text(line, "owner");
    code = journal_session(journal, str_from(s->id), &old, err);
    if (code == BT_OK) {
        s->here = old.messages;
        owner = old.owner; /* it stays whose it is here */
    } else if (code != BT_NOT_FOUND) {
        return code;
    }
    if (owner.len > LIMIT_ID_BYTES) {
        return err_set(err, BT_INVALID, "owner: expected at most 64 bytes");
    }
    (void)snprintf(s->owner, sizeof s->owner, "%.*s", STR_ARG(owner));
    return line_get_bytes(line, "summary", &s->summary, err);
}

struct comparison {
    const struct journal_message *with;
    bool same;
};

static bool compare(const struct journal_message *m, void *self)
{
    struct comparison *c = self;

    c->same = !m->damaged && m->n == c->with->n && m->wall == c->with->wall &&
              str_eq(m->role, c->with->role) && str_eq(m->text, c->with->text);
    return false;
}

static enum bt_code take_message(struct session_import *s, struct journal *journal, struct doc line,
                                 bool *ret_failed_write, struct bt_error *err)
{
    struct journal_message m = {.n = line_get_number(line, "n"),
                                .role = line_get_text(line, "role"),
                                .text = line_get_text(line, "text"),
                                .cut = line_get_number(line, "cut") != 0,
                                .wall = line_get_number(line, "tsMs")};
    struct comparison c = {.with = &m};
    uint64_t n;
    enum bt_code code = BT_OK;

    if (m.n != s->next || !line_get_uuid(line, "turnId", &m.turn) ||
        !line_get_uuid(line, "planId", &m.plan) ||
        (!str_is(m.role, "user") && !str_is(m.role, "assistant"))) {
        return err_set(err, BT_INVALID, "expected message %llu of the session",
                       (unsigned long long)s->next);
    }
    s->next++;
    if (m.n > s->here) {
        code = journal_message_add(journal, str_from(s->id), &m, &n, err);
        *ret_failed_write = code != BT_OK;
        return code;
    }
    code = journal_messages(journal, str_from(s->id), m.n + 1, 1, compare, &c, err);
    if (code == BT_OK && !c.same) {
        code = err_set(err, BT_CONFLICT,
                       "the session \"%s\" is here with another message %llu; delete it first "
                       "(baton delete --session)",
                       s->id, (unsigned long long)m.n);
    }
    return code;
}

static enum bt_code take_turn(struct session_import *s, struct journal *journal, struct doc line,
                              bool *ret_failed_write, struct bt_error *err)
{
    struct journal_turn t = {.session_id = str_from(s->id),
                             .client_key = line_get_text(line, "clientKey"),
                             .body_hash = line_get_number(line, "bodyHash"),
                             .asked = line_get_number(line, "asked"),
                             .answered = line_get_number(line, "answered"),
                             .started_wall = line_get_number(line, "startedMs"),
                             .ended_wall = line_get_number(line, "endedMs"),
                             .action = line_get_text(line, "action")};
    struct journal_turn old;
    struct buf context;
    enum bt_code code;

    if (!line_get_uuid(line, "turnId", &t.turn_id) || uuid_is_nil(t.turn_id) ||
        !line_get_uuid(line, "planId", &t.plan) || t.ended_wall == 0) {
        return err_set(err, BT_INVALID, "turnId: expected a turn that has ended");
    }
    code = journal_turn(journal, t.turn_id, &old, err);
    if (code != BT_NOT_FOUND) {
        return code;
    }
    buf_init(&context, TEXT_MAX);
    code = line_get_bytes(line, "context", &context, err);
    if (code == BT_OK && context.len > 0) {
        code = journal_blob_add(journal, context.at, context.len, &t.context_blob, err);
        *ret_failed_write = code != BT_OK;
    }
    if (code == BT_OK) {
        code = journal_turn_put(journal, &t, err);
        *ret_failed_write = code != BT_OK && code != BT_CONFLICT;
    }
    buf_done(&context);
    return code;
}

/* A session that has more here keeps its own head. */
static enum bt_code finish(struct session_import *s, struct journal *journal,
                           enum transfer_result *ret, bool *ret_failed_write, struct bt_error *err)
{
    struct journal_session head = s->head;
    enum bt_code code = BT_OK;

    if (s->next != head.messages + 1) {
        return err_set(err, BT_INVALID, "messages of the session are missing");
    }
    if (s->here >= head.messages && s->here > 0) {
        *ret = TRANSFER_EXISTS;
        return BT_OK;
    }
    *ret = TRANSFER_DONE;
    head.session_id = str_from(s->id);
    head.owner = str_from(s->owner);
    if (s->summary.len > 0) {
        code = journal_blob_add(journal, s->summary.at, s->summary.len, &head.summary, err);
    }
    if (code == BT_OK) {
        code = journal_session_put(journal, &head, err);
    }
    *ret_failed_write = code != BT_OK;
    return code;
}

enum bt_code import_session_line(struct session_import *s, struct journal *journal, struct doc line,
                                 enum transfer_result *ret, bool *ret_failed_write,
                                 struct bt_error *err)
{
    const struct str kind = line_get_text(line, "kind");

    if (str_is(kind, "message")) {
        return take_message(s, journal, line, ret_failed_write, err);
    }
    if (str_is(kind, "turn")) {
        return take_turn(s, journal, line, ret_failed_write, err);
    }
    if (str_is(kind, "end")) {
        return finish(s, journal, ret, ret_failed_write, err);
    }
    return err_set(err, BT_INVALID, "kind: \"%.*s\" is no line of a session", STR_ARG(kind));
}

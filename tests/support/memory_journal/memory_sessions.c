/* Sessions, messages and turns of the memory journal. */
#include "tests/support/memory_journal/memory_internal.h"

static bool copy_str(struct memory *m, struct str *io)
{
    io->ptr = memory_copy(m, io->ptr, io->len);
    return io->ptr != NULL;
}

/* The last write; NULL = none. */
static const struct journal_session *find_session(const struct mem_conversation *t, struct str id)
{
    for (size_t i = t->sessions_n; i > 0; i--) {
        if (str_eq(t->sessions[i - 1].session_id, id)) {
            return memory_session_cut(t, id, i - 1, SIZE_MAX, SIZE_MAX) ? NULL
                                                                        : &t->sessions[i - 1];
        }
    }
    return NULL;
}

static bool is_newest_turn(const struct mem_conversation *t, size_t at)
{
    for (size_t i = at + 1; i < t->turns_n; i++) {
        if (uuid_eq(t->turns[i].turn_id, t->turns[at].turn_id)) {
            return false;
        }
    }
    return true;
}

enum bt_code memory_session(struct journal *j, struct str id, struct journal_session *ret,
                            struct bt_error *err)
{
    const struct journal_session *p = find_session(&memory_of(j)->conversation, id);

    if (p == NULL) {
        return err_set(err, BT_NOT_FOUND, "no session \"%.*s\"", STR_ARG(id));
    }
    *ret = *p;
    return memory_lend(&memory_of(j)->session, (struct str *const[]){&ret->session_id, &ret->owner},
                       2)
               ? BT_OK
               : memory_full(err);
}

enum bt_code memory_session_put(struct journal *j, const struct journal_session *p,
                                struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct mem_conversation *t = &m->conversation;
    struct journal_session kept = *p;

    if (!memory_grow(&t->sessions, t->sessions_n, &t->sessions_cap, sizeof *t->sessions) ||
        !copy_str(m, &kept.session_id) || !copy_str(m, &kept.owner)) {
        return memory_full(err);
    }
    t->sessions[t->sessions_n++] = kept;
    return BT_OK;
}

/* The session after `than`, most recently updated first; NULL than = the first. */
static const struct journal_session *next_session(const struct mem_conversation *t,
                                                  const struct journal_session *than)
{
    const struct journal_session *best = NULL;

    for (size_t i = 0; i < t->sessions_n; i++) {
        const struct journal_session *p = &t->sessions[i];
        if (p != find_session(t, p->session_id) ||
            (than != NULL && p->updated_wall >= than->updated_wall &&
             (p->updated_wall > than->updated_wall || p >= than))) {
            continue;
        }
        if (best == NULL || p->updated_wall >= best->updated_wall) {
            best = p;
        }
    }
    return best;
}

enum bt_code memory_sessions(struct journal *j, uint32_t limit, journal_session_fn fn, void *self,
                             struct bt_error *err)
{
    const struct mem_conversation *t = &memory_of(j)->conversation;
    const struct journal_session *p = NULL;

    (void)err;
    while (limit-- > 0 && (p = next_session(t, p)) != NULL && fn(p, self)) {
    }
    return BT_OK;
}

enum bt_code memory_message_add(struct journal *j, struct str session,
                                const struct journal_message *msg, struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct mem_conversation *t = &m->conversation;
    struct mem_message kept = {session, *msg};

    if (!memory_grow(&t->messages, t->messages_n, &t->messages_cap, sizeof *t->messages) ||
        !copy_str(m, &kept.session) || !copy_str(m, &kept.m.role) || !copy_str(m, &kept.m.text)) {
        return memory_full(err);
    }
    t->messages[t->messages_n++] = kept;
    return BT_OK;
}

enum bt_code memory_messages(struct journal *j, struct str session, uint64_t last,
                             journal_message_fn fn, void *self, struct bt_error *err)
{
    const struct mem_conversation *t = &memory_of(j)->conversation;

    (void)err;
    for (size_t i = t->messages_n; i > 0; i--) {
        const struct mem_message *p = &t->messages[i - 1];
        if (str_eq(p->session, session) && p->m.n <= last &&
            !memory_session_cut(t, session, SIZE_MAX, i - 1, SIZE_MAX) && !fn(&p->m, self)) {
            break;
        }
    }
    return BT_OK;
}

enum bt_code memory_turn_put(struct journal *j, const struct journal_turn *turn,
                             struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct mem_conversation *t = &m->conversation;
    struct journal_turn kept = *turn;

    if (!memory_grow(&t->turns, t->turns_n, &t->turns_cap, sizeof *t->turns) ||
        !copy_str(m, &kept.session_id) || !copy_str(m, &kept.client_key) ||
        !copy_str(m, &kept.action)) {
        return memory_full(err);
    }
    t->turns[t->turns_n++] = kept;
    return BT_OK;
}

enum bt_code memory_turn(struct journal *j, struct uuid id, struct journal_turn *ret,
                         struct bt_error *err)
{
    const struct mem_conversation *t = &memory_of(j)->conversation;

    for (size_t i = t->turns_n; i > 0; i--) {
        if (uuid_eq(t->turns[i - 1].turn_id, id) &&
            !memory_session_cut(t, t->turns[i - 1].session_id, SIZE_MAX, SIZE_MAX, i - 1)) {
            *ret = t->turns[i - 1];
            return memory_lend_turn(&memory_of(j)->turn, ret, err);
        }
    }
    return err_set(err, BT_NOT_FOUND, "no such turn");
}

static const struct journal_turn *turn_of_key(const struct mem_conversation *t, struct str session,
                                              struct str key)
{
    for (size_t i = t->turns_n; i > 0; i--) {
        const struct journal_turn *p = &t->turns[i - 1];
        if (str_eq(p->session_id, session) && str_eq(p->client_key, key) &&
            !memory_session_cut(t, session, SIZE_MAX, SIZE_MAX, i - 1)) {
            return p;
        }
    }
    return NULL;
}

enum bt_code memory_turn_by_key(struct journal *j, struct str session, struct str key,
                                struct journal_turn *ret, struct bt_error *err)
{
    const struct journal_turn *p = turn_of_key(&memory_of(j)->conversation, session, key);

    if (p == NULL) {
        return err_set(err, BT_NOT_FOUND, "no such turn");
    }
    *ret = *p;
    return memory_lend_turn(&memory_of(j)->turn, ret, err);
}

enum bt_code memory_turn_key(struct journal *j, struct str session, struct str key,
                             struct uuid *ret, struct bt_error *err)
{
    const struct journal_turn *p = turn_of_key(&memory_of(j)->conversation, session, key);

    (void)err;
    *ret = p != NULL ? p->turn_id : (struct uuid){{0}};
    return BT_OK;
}

enum bt_code memory_turn_of_plan(struct journal *j, struct uuid plan, struct journal_turn *ret,
                                 struct bt_error *err)
{
    const struct mem_conversation *t = &memory_of(j)->conversation;

    for (size_t i = 0; i < t->turns_n; i++) {
        const struct journal_turn *p = &t->turns[i];
        if (p->ended_wall == 0 && uuid_eq(p->plan, plan) && is_newest_turn(t, i)) {
            *ret = *p;
            return memory_lend_turn(&memory_of(j)->turn, ret, err);
        }
    }
    return err_set(err, BT_NOT_FOUND, "no such turn");
}

enum bt_code memory_turns_open(struct journal *j, journal_turn_fn fn, void *self,
                               struct bt_error *err)
{
    const struct mem_conversation *t = &memory_of(j)->conversation;
    enum bt_code code = BT_OK;

    for (size_t i = 0; i < t->turns_n; i++) {
        struct journal_turn shown = t->turns[i];
        bool more = true;
        if (t->turns[i].ended_wall == 0 && is_newest_turn(t, i)) {
            struct mem_lent lent = {NULL, 0};
            code = memory_lend_turn(&lent, &shown, err);
            more = code == BT_OK && fn(&shown, self);
            memory_take_back(&lent);
        }
        if (!more) {
            break;
        }
    }
    return code;
}

void memory_conversation_done(struct mem_conversation *t)
{
    free(t->sessions);
    free(t->messages);
    free(t->turns);
    free(t->cuts);
}

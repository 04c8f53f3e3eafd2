/* The functions of the port: checks the rules that every implementation obeys, then calls it. */
#include "supervisor/journal/journal.h"

#include "protocol/base/assert.h"
#include "protocol/base/buf.h"
#include "protocol/base/failpoint.h"
#include "supervisor/journal/port.h"

enum bt_code journal_check_alive(const struct journal *j, struct bt_error *err)
{
    if (j->dead) {
        return err_set(err, BT_IO, "the journal has stopped after an error: %.400s", j->why.msg);
    }
    return BT_OK;
}

enum bt_code journal_after_write(struct journal *j, enum bt_code code, struct bt_error *err,
                                 const struct bt_error *why)
{
    if (code == BT_OK) {
        j->dirty = true;
        return BT_OK;
    }
    recent_clear(&j->recent); /* it may have rows of the batch */
    if (code == BT_UNAVAILABLE) {
        j->pos = j->committed_pos;
        j->dirty = false;
        j->storage_low = true;
    }
    if (err != NULL) {
        *err = *why;
    }
    return code;
}

void journal_close(struct journal *j)
{
    if (j != NULL) {
        recent_clear(&j->recent);
        j->ops->close(j);
    }
}

uint64_t journal_boot(const struct journal *j)
{
    return j->boot;
}

uint64_t journal_last_seq(const struct journal *j)
{
    return pos_seq(j->pos);
}

uint64_t journal_committed_seq(const struct journal *j)
{
    return pos_seq(j->committed_pos);
}

uint64_t journal_next_seq(const struct journal *j)
{
    return pos_seq(j->pos) + 1;
}

bool journal_dirty(const struct journal *j)
{
    return j->dirty;
}

bool journal_storage_low(struct journal *j)
{
    return journal_room(j) != JOURNAL_ROOM;
}

enum journal_room journal_room(struct journal *j)
{
    if (j->storage_low && !j->dead && j->ops->space != NULL) {
        j->ops->space(j);
    }
    return j->storage_full ? JOURNAL_FULL : j->storage_low ? JOURNAL_LOW : JOURNAL_ROOM;
}

enum bt_code journal_plan_add(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                              struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->plan_add(j, p, ret_ix, &why), err, &why);
}

enum bt_code journal_plan_status(struct journal *j, uint64_t plan_ix, struct str status,
                                 msec ended_wall, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->plan_status(j, plan_ix, status, ended_wall, &why), err,
                               &why);
}

enum bt_code journal_plan_head(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    return code != BT_OK ? code : j->ops->plan_head(j, id, ret, err);
}

enum bt_code journal_plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                                struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->plan_by_id(j, id, ret, err);
}

enum bt_code journal_plan_by_key(struct journal *j, struct str client_key, struct journal_plan *ret,
                                 struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->plan_by_key(j, client_key, ret, err);
}

enum bt_code journal_plan_owner(struct journal *j, uint64_t plan_ix, char *ret, size_t cap,
                                struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    ret[0] = 0;
    return code != BT_OK ? code : j->ops->plan_owner(j, plan_ix, ret, cap, err);
}

enum bt_code journal_blob_owned(struct journal *j, uint64_t blob, struct str owner, bool *ret,
                                struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    *ret = false;
    return code != BT_OK ? code : j->ops->blob_owned(j, blob, owner, ret, err);
}

enum bt_code journal_plans(struct journal *j, struct str status, struct str session_id,
                           uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self,
                           struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return j->ops->plans(j, status, session_id, before_ix, limit, fn, self, err);
}

enum bt_code journal_plans_between(struct journal *j, struct uuid first, struct uuid last,
                                   uint32_t limit, journal_plan_fn fn, void *self,
                                   struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->plans_between(j, first, last, limit, fn, self, err);
}

enum bt_code journal_jobs(struct journal *j, struct str session_id, uint64_t before_ix,
                          uint32_t limit, journal_plan_fn fn, void *self, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->jobs(j, session_id, before_ix, limit, fn, self, err);
}

enum bt_code journal_plans_open(struct journal *j, journal_plan_fn fn, void *self,
                                struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    ASSERT(!j->dirty);
    if (code != BT_OK) {
        return code;
    }
    code = j->ops->plans_open(j, fn, self, &why);
    if (code != BT_OK && err != NULL) {
        *err = why;
    }
    return code;
}

enum bt_code journal_quarantine(struct journal *j, uint64_t plan_ix, struct str why_text,
                                struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->quarantine(j, plan_ix, why_text, &why), err, &why);
}

enum bt_code journal_append(struct journal *j, const struct journal_row *row, struct bt_error *err)
{
    struct bt_error why;
    uint64_t pos;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    if (row->is_public) {
        ASSERT(row->seq == journal_next_seq(j));
        pos = row->seq << POS_K_BITS;
    } else {
        pos = j->pos + 1;
    }
    if (pos_seq(pos) > SEQ_MAX || (!row->is_public && (pos & POS_K_MAX) == 0)) {
        return err_set(err, BT_LIMIT, "the journal has no position left after seq %llu",
                       (unsigned long long)pos_seq(j->pos));
    }
    code = journal_after_write(j, j->ops->append(j, pos, row, &why), err, &why);
    if (code == BT_OK) {
        j->pos = pos;
        if (row->is_public) {
            recent_add(&j->recent, row);
        }
    }
    return code;
}

enum bt_code journal_blob_add(struct journal *j, const void *bytes, size_t len, uint64_t *ret_id,
                              struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    code = j->ops->blob_add(j, bytes, len, ret_id, &why);
    if (code == BT_OK) {
        recent_blob_add(&j->recent, *ret_id, bytes, len);
    }
    return journal_after_write(j, code, err, &why);
}

enum bt_code journal_blob_get(struct journal *j, uint64_t id, struct buf *out, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    if (code == BT_OK && recent_blob_get(&j->recent, id, out)) {
        return buf_check(out, err);
    }
    return code != BT_OK ? code : j->ops->blob_get(j, id, out, err);
}

enum bt_code journal_commit(struct journal *j, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK || !j->dirty) {
        return code;
    }
    const enum failpoint fail = FAILPOINT("commit");
    if (fail == FAILPOINT_ERROR) {
        return journal_after_write(j, err_set(&why, BT_IO, "failpoint: not committed"), err, &why);
    }
    code = j->ops->commit(j, &why);
    if (code == BT_OK && fail == FAILPOINT_AFTER) {
        code = err_set(&why, BT_IO, "failpoint: committed");
    }
    code = journal_after_write(j, code, err, &why);
    if (code == BT_OK) {
        (void)FAILPOINT("committed");
        j->committed_pos = j->pos;
        j->dirty = false;
    }
    return code;
}

void journal_copy_log(struct journal *j)
{
    if (!j->dead && !j->dirty && j->ops->copy_log != NULL) {
        j->ops->copy_log(j);
    }
}

void journal_while_waiting(struct journal *j, journal_wait_fn fn, void *self)
{
    j->waits = fn;
    j->waits_self = self;
}

enum bt_code journal_keep(struct journal *j, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    return code != BT_OK || j->ops->keep == NULL ? code : j->ops->keep(j, err);
}

enum bt_code journal_hold(struct journal *j, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    return code != BT_OK || j->ops->hold == NULL ? code : j->ops->hold(j, err);
}

uint32_t journal_maps(const struct journal *j, const uint32_t **ret)
{
    *ret = j->maps;
    return j->maps_n;
}

bool journal_has_strays(const struct journal *j)
{
    return j->strays;
}

enum bt_code journal_key_is_at(struct journal *j, uint32_t shard, enum journal_key kind,
                               struct str key, bool *ret, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    *ret = false;
    return code != BT_OK || j->ops->key_is_at == NULL
               ? code
               : j->ops->key_is_at(j, shard, kind, key, ret, err);
}

const char *journal_note(const struct journal *j)
{
    return j->note;
}

bool journal_rewound(const struct journal *j, struct journal_rewound *ret)
{
    *ret = j->rewound;
    return j->rewound.lost_seq > 0;
}

enum bt_code journal_rewound_told(struct journal *j, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    if (code == BT_OK && j->ops->rewound_told != NULL) {
        code = j->ops->rewound_told(j, err);
    }
    j->rewound.lost_seq = 0;
    return code;
}

enum bt_code journal_parted(struct journal *j, uint64_t seq, uint64_t *ret, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    *ret = 1;
    return code != BT_OK || j->ops->parted == NULL ? code : j->ops->parted(j, seq, ret, err);
}

enum bt_code journal_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix, uint32_t limit,
                            journal_row_fn fn, void *self, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK || from_seq > pos_seq(j->committed_pos) || limit == 0 ||
        recent_read(&j->recent, from_seq, pos_seq(j->committed_pos), plan_ix, limit, fn, self)) {
        return code;
    }
    return j->ops->events(j, from_seq, plan_ix, limit, fn, self, err);
}

enum bt_code journal_scrub(struct journal *j, struct journal_scrub *io, uint64_t max_bytes,
                           journal_problem_fn fn, void *self, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    if (code == BT_OK && j->ops->scrub == NULL) {
        io->done = true;
        return BT_OK;
    }
    return code != BT_OK ? code : j->ops->scrub(j, io, max_bytes, fn, self, err);
}

enum bt_code journal_last_row(struct journal *j, uint64_t plan_ix, bool only_public,
                              journal_row_fn fn, void *self, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->last_row(j, plan_ix, only_public, fn, self, err);
}

enum bt_code journal_replay_on(struct journal *j, uint64_t plan_ix, struct journal_place *place,
                               journal_row_fn fn, void *self, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->replay(j, plan_ix, place, fn, self, err);
}

enum bt_code journal_replay(struct journal *j, uint64_t plan_ix, journal_row_fn fn, void *self,
                            struct bt_error *err)
{
    struct journal_place place = {0};
    return journal_replay_on(j, plan_ix, &place, fn, self, err);
}

/* ---- sessions ---- */

enum bt_code journal_session(struct journal *j, struct str id, struct journal_session *ret,
                             struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->session(j, id, ret, err);
}

enum bt_code journal_session_put(struct journal *j, const struct journal_session *s,
                                 struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code
                         : journal_after_write(j, j->ops->session_put(j, s, &why), err, &why);
}

enum bt_code journal_sessions(struct journal *j, uint32_t limit, journal_session_fn fn, void *self,
                              struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->sessions(j, limit, fn, self, err);
}

enum bt_code journal_message_add(struct journal *j, struct str session_id,
                                 const struct journal_message *m, uint64_t *ret_n,
                                 struct bt_error *err)
{
    struct journal_message next = *m;
    struct journal_session s;
    struct bt_error why;
    enum bt_code code = journal_session(j, session_id, &s, err);

    if (code == BT_NOT_FOUND) {
        s = (struct journal_session){
            .session_id = session_id, .created_wall = m->wall, .owner = m->owner};
        code = BT_OK;
    }
    if (code != BT_OK) {
        return code;
    }
    next.n = ++s.messages;
    s.updated_wall = m->wall;
    code = journal_after_write(j, j->ops->session_put(j, &s, &why), err, &why);
    if (code == BT_OK) {
        code = journal_after_write(j, j->ops->message_add(j, session_id, &next, &why), err, &why);
    }
    *ret_n = next.n;
    return code;
}

struct message_walk {
    journal_message_fn fn;
    void *self;
    uint64_t next; /* the number of the next message; 0 = all were emitted */
    uint32_t left;
    bool stopped;
};

/* Emits the next message; false = the caller's function has stopped. */
static bool emit_message(struct message_walk *w, const struct journal_message *m)
{
    w->next--;
    w->left--;
    w->stopped = !w->fn(m, w->self) || w->left == 0;
    return !w->stopped;
}

/* Numbers have no gaps: a missing message was lost. */
static bool emit_missing(struct message_walk *w, uint64_t down_to)
{
    while (w->next > down_to) {
        struct journal_message lost = {.n = w->next, .damaged = true};
        if (!emit_message(w, &lost)) {
            return false;
        }
    }
    return true;
}

static bool on_message(const struct journal_message *m, void *self)
{
    struct message_walk *w = self;
    return emit_missing(w, m->n) && (m->n != w->next || emit_message(w, m));
}

enum bt_code journal_messages(struct journal *j, struct str session_id, uint64_t before_n,
                              uint32_t limit, journal_message_fn fn, void *self,
                              struct bt_error *err)
{
    struct message_walk w = {.fn = fn, .self = self, .left = limit, .stopped = limit == 0};
    struct journal_session s;
    enum bt_code code = journal_session(j, session_id, &s, err);

    if (code != BT_OK) {
        return code;
    }
    w.next = before_n > 0 && before_n <= s.messages ? before_n - 1 : s.messages;
    if (!w.stopped && w.next > 0) {
        code = j->ops->messages(j, session_id, w.next, on_message, &w, err);
    }
    if (code == BT_OK && !w.stopped) {
        (void)emit_missing(&w, 0);
    }
    return code;
}

enum bt_code journal_turn_put(struct journal *j, const struct journal_turn *t, struct bt_error *err)
{
    struct uuid other = {{0}};
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code == BT_OK && t->client_key.len > 0) {
        code = j->ops->turn_key(j, t->session_id, t->client_key, &other, err);
    }
    if (code == BT_OK && !uuid_is_nil(other) && !uuid_eq(other, t->turn_id)) {
        code = err_set(err, BT_CONFLICT, "clientKey \"%.*s\" was used before in this session",
                       STR_ARG(t->client_key));
    }
    return code != BT_OK ? code : journal_after_write(j, j->ops->turn_put(j, t, &why), err, &why);
}

enum bt_code journal_turn(struct journal *j, struct uuid id, struct journal_turn *ret,
                          struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->turn(j, id, ret, err);
}

enum bt_code journal_turn_by_key(struct journal *j, struct str session_id, struct str client_key,
                                 struct journal_turn *ret, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->turn_by_key(j, session_id, client_key, ret, err);
}

enum bt_code journal_turn_of_plan(struct journal *j, struct uuid plan_id, struct journal_turn *ret,
                                  struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->turn_of_plan(j, plan_id, ret, err);
}

enum bt_code journal_turns_open(struct journal *j, journal_turn_fn fn, void *self,
                                struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->turns_open(j, fn, self, err);
}

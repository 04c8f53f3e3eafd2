/* Shared by the sources of the memory journal. */
#ifndef MEMORY_JOURNAL_MEMORY_INTERNAL_H
#define MEMORY_JOURNAL_MEMORY_INTERNAL_H

#include <stdlib.h>
#include <string.h>

#include "protocol/base/arena.h"
#include "protocol/base/map.h"
#include "supervisor/journal/port.h"
#include "tests/support/memory_journal/memory_journal.h"

enum { STATUS_MAX = 32 };

struct mem_state {
    char status[STATUS_MAX];
    msec ended;
};

enum mem_gone { MEM_HERE, MEM_DELETED_IN_BATCH, MEM_DELETED };

struct mem_plan {
    struct journal_plan plan; /* strings in the arena; status and ended are in state */
    struct mem_state state;
    struct mem_state committed;
    bool touched;
    bool gone; /* deleted; the open batch may have done it */
    struct journal_gone tomb;
    enum mem_gone forgotten; /* the tombstone */
};

struct mem_row {
    uint64_t pos;
    struct journal_row row; /* strings in the arena */
    enum mem_gone gone;
};

struct mem_blob {
    void *bytes;
    size_t len;
    enum mem_gone gone;
};

/* Sessions, messages and turns, in the order of their writes. The last write of an id is its
 * value. */
struct mem_conversation {
    struct journal_session *sessions;
    struct mem_message *messages;
    struct journal_turn *turns;
    size_t sessions_n, messages_n, turns_n;
    size_t sessions_cap, messages_cap, turns_cap;
    size_t sessions_committed, messages_committed, turns_committed;
    /* Deleted sessions: what was written before does not count. */
    struct mem_cut {
        struct str session;
        size_t sessions_n, messages_n, turns_n;
    } * cuts;
    size_t cuts_n, cuts_cap, cuts_committed;
};

struct mem_message {
    struct str session;
    struct journal_message m;
};

/* Writes about schedules in their order: the last one of a number counts. */
struct mem_schedule {
    struct journal_schedule p; /* strings in the arena */
    bool gone;
};

/* Writes about starts of rates in their order: the last one of a name and a place counts. */
struct mem_start {
    struct str name; /* in the arena */
    uint32_t place;
    uint64_t wall;
};

/* Strings that a look-up has returned. */
struct mem_lent {
    char *at;
    size_t len;
};

struct memory {
    struct journal base;
    struct mem_lent plan, session, turn, schedule; /* of the last look-ups */
    struct arena arena; /* freed at close only: a test's journal is small */
    struct mem_plan **plans;
    struct mem_row *rows;
    struct mem_blob *blobs;
    uint64_t *touched; /* plans whose state differs from the committed one */
    size_t plans_n, rows_n, blobs_n, touched_n;
    size_t plans_cap, rows_cap, blobs_cap, touched_cap;
    size_t plans_committed, rows_committed, blobs_committed; /* as of the last commit */
    struct mem_conversation conversation;
    struct mem_schedule *schedules;
    size_t schedules_n, schedules_cap, schedules_committed;
    struct mem_start *starts;
    size_t starts_n, starts_cap, starts_committed;
    struct journal_agent *agents; /* writes in their order; strings in the arena */
    size_t agents_n, agents_cap, agents_committed;
    uint64_t *gone; /* numbers of deleted plans */
    bool deleted;   /* the open batch has deleted rows or blobs */
    size_t gone_n, gone_cap, gone_committed;
    struct map by_id;
    struct map by_key;
    uint32_t fail_at;
    bool fail_stored;
    uint32_t away; /* calls of who waits, in the next commit */
};

static inline struct memory *memory_of(struct journal *j)
{
    return (struct memory *)j;
}

static inline enum bt_code memory_full(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the journal");
}

/* Makes room for one more element; false when out of memory. */
static inline bool memory_grow(void *array_at, size_t n, size_t *cap, size_t size)
{
    void *old;
    void *grown;
    size_t more = *cap == 0 ? 16 : *cap * 2;

    if (n < *cap) {
        return true;
    }
    memcpy(&old, array_at, sizeof old);
    grown = realloc(old, more * size);
    if (grown == NULL) {
        return false;
    }
    memcpy(array_at, &grown, sizeof grown);
    *cap = more;
    return true;
}

static inline const void *memory_copy(struct memory *m, const void *bytes, size_t n)
{
    return arena_str(&m->arena, (struct str){bytes, n}).ptr;
}

enum bt_code memory_plan_add(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                             struct bt_error *err);
enum bt_code memory_plan_status(struct journal *j, uint64_t ix, struct str status, msec ended,
                                struct bt_error *err);
enum bt_code memory_quarantine(struct journal *j, uint64_t ix, struct str why,
                               struct bt_error *err);
enum bt_code memory_plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err);
enum bt_code memory_plan_head(struct journal *j, struct uuid id, struct journal_plan *ret,
                              struct bt_error *err);
enum bt_code memory_plan_by_key(struct journal *j, struct str key, struct journal_plan *ret,
                                struct bt_error *err);
enum bt_code memory_plan_owner(struct journal *j, uint64_t ix, char *ret, size_t cap,
                               struct bt_error *err);
enum bt_code memory_blob_owned(struct journal *j, uint64_t blob, struct str owner, bool *ret,
                               struct bt_error *err);
enum bt_code memory_plans(struct journal *j, struct str status, struct str session,
                          uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self,
                          struct bt_error *err);
enum bt_code memory_plans_between(struct journal *j, struct uuid first, struct uuid last,
                                  uint32_t limit, journal_plan_fn fn, void *self,
                                  struct bt_error *err);
enum bt_code memory_plans_open(struct journal *j, journal_plan_fn fn, void *self,
                               struct bt_error *err);
enum bt_code memory_jobs(struct journal *j, struct str session, uint64_t before_ix, uint32_t limit,
                         journal_plan_fn fn, void *self, struct bt_error *err);
enum bt_code memory_session(struct journal *j, struct str id, struct journal_session *ret,
                            struct bt_error *err);
enum bt_code memory_session_put(struct journal *j, const struct journal_session *p,
                                struct bt_error *err);
enum bt_code memory_sessions(struct journal *j, uint32_t limit, journal_session_fn fn, void *self,
                             struct bt_error *err);
enum bt_code memory_message_add(struct journal *j, struct str session,
                                const struct journal_message *m, struct bt_error *err);
enum bt_code memory_messages(struct journal *j, struct str session, uint64_t last,
                             journal_message_fn fn, void *self, struct bt_error *err);
enum bt_code memory_turn_put(struct journal *j, const struct journal_turn *t, struct bt_error *err);
enum bt_code memory_turn(struct journal *j, struct uuid id, struct journal_turn *ret,
                         struct bt_error *err);
enum bt_code memory_turn_key(struct journal *j, struct str session, struct str key,
                             struct uuid *ret, struct bt_error *err);
enum bt_code memory_turn_by_key(struct journal *j, struct str session, struct str key,
                                struct journal_turn *ret, struct bt_error *err);
enum bt_code memory_turn_of_plan(struct journal *j, struct uuid plan, struct journal_turn *ret,
                                 struct bt_error *err);
enum bt_code memory_turns_open(struct journal *j, journal_turn_fn fn, void *self,
                               struct bt_error *err);
enum bt_code memory_schedule_put(struct journal *j, const struct journal_schedule *p,
                                 uint64_t *ret_ix, struct bt_error *err);
enum bt_code memory_schedule_state(struct journal *j, uint64_t ix, struct str state,
                                   struct bt_error *err);
enum bt_code memory_schedule_delete(struct journal *j, uint64_t ix, struct bt_error *err);
enum bt_code memory_schedule_by_name(struct journal *j, struct str name,
                                     struct journal_schedule *ret, struct bt_error *err);
enum bt_code memory_schedules(struct journal *j, uint64_t after, journal_schedule_fn fn, void *self,
                              struct bt_error *err);
enum bt_code memory_start_put(struct journal *j, struct str name, uint32_t place, uint64_t wall,
                              struct bt_error *err);
enum bt_code memory_starts(struct journal *j, uint64_t since, journal_start_fn fn, void *self,
                           struct bt_error *err);
enum bt_code memory_starts_drop(struct journal *j, uint64_t before, struct bt_error *err);
enum bt_code memory_agent_put(struct journal *j, const struct journal_agent *a,
                              struct bt_error *err);
enum bt_code memory_agent_drop(struct journal *j, struct str id, bool *ret_found,
                               struct bt_error *err);
enum bt_code memory_agents_drop(struct journal *j, uint64_t before, struct bt_error *err);
enum bt_code memory_agents(struct journal *j, journal_agent_fn fn, void *self,
                           struct bt_error *err);
/* Whether the i-th write about a session was before it was deleted. */
bool memory_session_cut(const struct mem_conversation *t, struct str session, size_t sessions_at,
                        size_t messages_at, size_t turns_at);
enum bt_code memory_plan_delete(struct journal *j, uint64_t ix, struct str why, msec wall,
                                struct bt_error *err);
enum bt_code memory_gone_by_id(struct journal *j, struct uuid id, struct journal_gone *ret,
                               struct bt_error *err);
enum bt_code memory_gone_by_key(const struct memory *m, struct str key, struct journal_gone *ret,
                                struct bt_error *err);
enum bt_code memory_plans_ended(struct journal *j, msec after, uint64_t after_ix, uint32_t limit,
                                journal_plan_fn fn, void *self, struct bt_error *err);
enum bt_code memory_session_delete(struct journal *j, struct str id, uint32_t limit, bool *ret_more,
                                   struct bt_error *err);
enum bt_code memory_sessions_idle(struct journal *j, msec before, uint32_t limit,
                                  journal_session_fn fn, void *self, struct bt_error *err);
enum bt_code memory_gone_expire(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err);
enum bt_code memory_rows_delete(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err);
enum bt_code memory_sweep(struct journal *j, uint32_t budget, bool *ret_more, struct bt_error *err);
enum bt_code memory_blobs_unused(struct journal *j, uint64_t *io_after, uint64_t last,
                                 uint32_t limit, struct bt_error *err);
uint64_t memory_last_blob(const struct journal *j);
enum bt_code memory_size(struct journal *j, struct journal_size *ret, struct bt_error *err);
/* memory_lend.c: copies the strings; those that were lent before go. False when out of memory. */
bool memory_lend(struct mem_lent *io, struct str *const *strings, size_t n);
void memory_take_back(struct mem_lent *io);
enum bt_code memory_lend_plan(struct mem_lent *lent, struct journal_plan *io, struct bt_error *err);
enum bt_code memory_lend_turn(struct mem_lent *lent, struct journal_turn *io, struct bt_error *err);
/* A row for a callback; returns what that does. */
bool memory_give_plan(const struct journal_plan *p, journal_plan_fn fn, void *self);
void memory_delete_commit(struct memory *m);
void memory_delete_rollback(struct memory *m);
void memory_plan_show(const struct mem_plan *mp, struct journal_plan *ret);
void memory_conversation_done(struct mem_conversation *t);
/* Apply a commit or a rollback to the plans. */
void memory_plans_commit(struct memory *m);
void memory_plans_rollback(struct memory *m);
#endif

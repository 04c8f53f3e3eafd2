/*
 * The journal: the durable record of every accepted request and every state change. A port;
 * sqlite_*.c implement it on SQLite. One thread: the loop thread.
 *
 * Writes collect in one open batch per cycle; journal_commit() makes the batch durable. Nothing may
 * be acknowledged, sent or published before its commit has returned BT_OK.
 *
 * After a failed commit the outcome is UNKNOWN: the journal is dead, every call returns BT_IO, and
 * the daemon must stop and read the journal again (Q11). There is one exception. BT_UNAVAILABLE
 * from a write or from journal_commit() means that the storage is full and that the WHOLE open
 * batch is not stored. The journal then continues from its last commit.
 *
 * Rows: a position is seq << 20 | k. Public records have k = 0 and the next seq (+1, no gaps).
 * Internal ones follow with k = 1, 2, ... under the last seq. Every row has a CRC-32C of its
 * content.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/base/uuid.h"

struct journal;

/* REPLICATED, of PostgreSQL only: also on another server. */
enum durability { DURABILITY_POWER, DURABILITY_PROCESS, DURABILITY_REPLICATED };

struct journal_options {
    enum durability durability;
    uint32_t cache_kib;        /* page cache; 0 = default */
    uint32_t checkpoint_pages; /* pages of the write-ahead log between checkpoints; 0 = default */
    uint64_t
        /* of the write-ahead log, allocated in advance so that running work can still write when
         * the disk is full (Q13); 0 = none */
        ballast_bytes;
    uint32_t lease_ms;  /* PostgreSQL: how long a silent owner stays the owner; 0 = 3 s */
    const char *node;   /* PostgreSQL: the name of this owner; NULL = that of the host */
    uint32_t shard;     /* PostgreSQL: which part of the fleet's journal this is */
    uint32_t shards;    /* PostgreSQL: how many the caller believes in; 0 = not said */
    const char *config; /* PostgreSQL: hash of the configuration; NULL = not said */
    /* Writes the ids of the blobs that a row's body names, at most max; returns how many. For rows
     * of journals of versions before 4. NULL = they name none. */
    uint32_t (*blobs_of)(const void *body, size_t len, uint64_t *ret, uint32_t max);
};

/* Opens the journal of this address: DIR or sqlite:DIR, as journal_open_sqlite, or
 * postgresql://..., where this build has it. BT_INVALID: another address; *err says what would be
 * right. */
BT_MUST_CHECK enum bt_code journal_open(const char *url, const struct journal_options *opt,
                                        struct journal **ret, struct bt_error *err);
/*
 * Opens or creates DIR/journal.db (0600) and locks DIR/lock with flock. The lock is held until
 * journal_close or the end of the process, AND of every child that was forked after this call
 * without exec: fork helpers first. BT_CONFLICT with the holder's pid when another daemon has the
 * lock. BT_INVALID for a foreign, empty or irregular file or a newer schema version. BT_IO with the
 * system's error otherwise.
 */
BT_MUST_CHECK enum bt_code journal_open_sqlite(const char *dir, const struct journal_options *opt,
                                               struct journal **ret, struct bt_error *err);
/* Checkpoints and closes; does not commit. Accepts NULL. */
void journal_close(struct journal *j);

/* How much room the disk has (G20). Every commit checks it; while there is not enough, this call
 * checks, too. */
enum journal_room {
    JOURNAL_ROOM,
    /* Only the log has room, which was allocated in advance: no new work, no rows that can be
     * missed. */
    JOURNAL_LOW,
    /* Its last part is left, for a decision that was begun: do not begin another. The number of
     * this boot may not be stored: give no epoch. */
    JOURNAL_FULL
};
enum journal_room journal_room(struct journal *j);
/* Not JOURNAL_ROOM. */
bool journal_storage_low(struct journal *j);
/* How many times daemons have opened this journal, this one included: the high part of epochs. */
uint64_t journal_boot(const struct journal *j);
uint64_t journal_last_seq(const struct journal *j); /* including the open batch */
uint64_t journal_committed_seq(const struct journal *j);

/* ---- plans ---- */
struct journal_plan {
    uint64_t ix; /* the journal's own number of the plan: 1, 2, ... */
    struct uuid plan_id;
    struct str session_id;
    struct str client_key; /* empty = none; unique otherwise */
    uint64_t body_hash;    /* of the submitted body, to distinguish a repetition from a conflict */
    struct str goal;
    const void *doc; /* the normalised plan, msgpack */
    size_t doc_len;
    msec created_wall;
    struct str status; /* "pending" ... ; updated by journal_plan_status */
    msec ended_wall;   /* 0 = open */
    struct str note;   /* why it is in quarantine */
    struct str job;    /* the kind of job ("planning", "synthesis", ...); empty = a plan */
    struct str owner;  /* the credential whose plan it is; empty = the token */
};

/* Adds a plan to the batch; *ret_ix is its number. BT_CONFLICT when the client_key exists (also in
 * this batch). */
BT_MUST_CHECK enum bt_code journal_plan_add(struct journal *j, const struct journal_plan *p,
                                            uint64_t *ret_ix, struct bt_error *err);
BT_MUST_CHECK enum bt_code journal_plan_status(struct journal *j, uint64_t plan_ix,
                                               struct str status, msec ended_wall,
                                               struct bt_error *err);
/* Finds committed and batched plans. Strings and doc are valid until the next look-up of a plan.
 * BT_NOT_FOUND; BT_IO names a damaged plan. */
BT_MUST_CHECK enum bt_code journal_plan_by_id(struct journal *j, struct uuid id,
                                              struct journal_plan *ret, struct bt_error *err);
/* The same without the document, which is long to read. */
BT_MUST_CHECK enum bt_code journal_plan_head(struct journal *j, struct uuid id,
                                             struct journal_plan *ret, struct bt_error *err);
/* BT_CONFLICT: the plan of this key was deleted; of *ret only plan_id is valid. */
BT_MUST_CHECK enum bt_code journal_plan_by_key(struct journal *j, struct str client_key,
                                               struct journal_plan *ret, struct bt_error *err);
/* The owner of a plan by its number, "" of one that is not there. `cap` bytes with the zero; one
 * that is longer is BT_IO. */
BT_MUST_CHECK enum bt_code journal_plan_owner(struct journal *j, uint64_t plan_ix, char *ret,
                                              size_t cap, struct bt_error *err);
/* Whether a plan of the owner, who must not be empty, names the blob. */
BT_MUST_CHECK enum bt_code journal_blob_owned(struct journal *j, uint64_t blob, struct str owner,
                                              bool *ret, struct bt_error *err);

typedef bool (*journal_plan_fn)(const struct journal_plan *p, void *self); /* false = stop */
/* Newest first, ix < before_ix (0 = from the newest); an empty filter matches all; never jobs. Does
 * not load doc. Includes the open batch: call it between commits. */
BT_MUST_CHECK enum bt_code journal_plans(struct journal *j, struct str status,
                                         struct str session_id, uint64_t before_ix, uint32_t limit,
                                         journal_plan_fn fn, void *self, struct bt_error *err);
/* The plans whose ids are first, last or between them, newest first. */
BT_MUST_CHECK enum bt_code journal_plans_between(struct journal *j, struct uuid first,
                                                 struct uuid last, uint32_t limit,
                                                 journal_plan_fn fn, void *self,
                                                 struct bt_error *err);
/* The same as journal_plans for the jobs of a session (empty = all). */
BT_MUST_CHECK enum bt_code journal_jobs(struct journal *j, struct str session_id,
                                        uint64_t before_ix, uint32_t limit, journal_plan_fn fn,
                                        void *self, struct bt_error *err);
/* Every plan and job that has not ended, oldest first, with doc; no batch may be open. A damaged
 * plan is logged, quarantined (in the batch) and left out (G22). fn may call any function of the
 * journal but this one. */
BT_MUST_CHECK enum bt_code journal_plans_open(struct journal *j, journal_plan_fn fn, void *self,
                                              struct bt_error *err);

/* ---- sessions: the messages of people and the answers ---- */
struct journal_session {
    struct str session_id;
    msec created_wall, updated_wall;
    uint64_t messages;   /* the number of the newest; numbers begin with 1 and have no gaps */
    uint64_t summarized; /* the summary covers the messages up to this one */
    uint64_t summary;    /* blob {text}; 0 = none */
    uint64_t agent_calls, tool_calls; /* since the summary */
    struct str owner;                 /* as that of a plan */
};

struct journal_message {
    uint64_t n;
    struct str role; /* "user", "assistant" */
    struct str text;
    bool cut;         /* the original text is longer */
    struct uuid turn; /* nil = none */
    struct uuid plan; /* the plan that it is about; nil = none */
    msec wall;
    bool damaged;     /* only n is valid */
    struct str owner; /* of the session, when the message begins it */
};

/* One message of a person and its answer. */
struct journal_turn {
    struct uuid turn_id;
    struct str session_id;
    struct str client_key; /* unique within the session; empty = none */
    uint64_t body_hash;
    uint64_t asked, answered; /* numbers of the two messages; answered 0 = still open */
    msec started_wall, ended_wall;
    /* open: the plan or job that it waits for; then: the plan that it was about */
    struct uuid plan;
    struct str action;
    uint64_t context_blob; /* blob: settings for a plan that the message leads to; 0 = none */
};

typedef bool (*journal_session_fn)(const struct journal_session *s, void *self);
typedef bool (*journal_message_fn)(const struct journal_message *m, void *self);
typedef bool (*journal_turn_fn)(const struct journal_turn *t, void *self);

/* All of these include the open batch. Strings are valid until the next look-up of a turn, or of a
 * session; strings passed to fn, while it runs. fn must not call any of them. BT_NOT_FOUND; BT_IO
 * names the damaged row. ret->session_id is `id`. */
BT_MUST_CHECK enum bt_code journal_session(struct journal *j, struct str id,
                                           struct journal_session *ret, struct bt_error *err);
/* Adds or replaces the session of this id. */
BT_MUST_CHECK enum bt_code journal_session_put(struct journal *j, const struct journal_session *s,
                                               struct bt_error *err);
/* The most recently updated first. Damaged sessions are logged and left out. */
BT_MUST_CHECK enum bt_code journal_sessions(struct journal *j, uint32_t limit,
                                            journal_session_fn fn, void *self,
                                            struct bt_error *err);
/* Adds the next message (ignores m->n), and the session with its first message. BT_IO when the
 * session's row is damaged: nothing is added, the journal stays usable. */
BT_MUST_CHECK enum bt_code journal_message_add(struct journal *j, struct str session_id,
                                               const struct journal_message *m, uint64_t *ret_n,
                                               struct bt_error *err);
/* Newest first, n < before_n (0 = from the newest). Of a damaged or missing message only n is
 * set. */
BT_MUST_CHECK enum bt_code journal_messages(struct journal *j, struct str session_id,
                                            uint64_t before_n, uint32_t limit,
                                            journal_message_fn fn, void *self,
                                            struct bt_error *err);
/* Adds or replaces the turn of this id. BT_CONFLICT when another one has the client_key. */
BT_MUST_CHECK enum bt_code journal_turn_put(struct journal *j, const struct journal_turn *t,
                                            struct bt_error *err);
BT_MUST_CHECK enum bt_code journal_turn(struct journal *j, struct uuid id, struct journal_turn *ret,
                                        struct bt_error *err);
BT_MUST_CHECK enum bt_code journal_turn_by_key(struct journal *j, struct str session_id,
                                               struct str client_key, struct journal_turn *ret,
                                               struct bt_error *err);
/* The open turn that waits for this plan or job. */
BT_MUST_CHECK enum bt_code journal_turn_of_plan(struct journal *j, struct uuid plan_id,
                                                struct journal_turn *ret, struct bt_error *err);
/* Every open turn; damaged ones are logged and left out. */
BT_MUST_CHECK enum bt_code journal_turns_open(struct journal *j, journal_turn_fn fn, void *self,
                                              struct bt_error *err);

/* ---- what else outlives a restart ---- */
/* A start that counts for a rate. Each name has a ring of places, so that old ones are replaced. In
 * the batch. */
BT_MUST_CHECK enum bt_code journal_start_put(struct journal *j, struct str name, uint32_t place,
                                             uint64_t wall, struct bt_error *err);
typedef void (*journal_start_fn)(struct str name, uint32_t place, uint64_t wall, void *self);
/* All starts since then, by name and time. */
BT_MUST_CHECK enum bt_code journal_starts(struct journal *j, uint64_t since, journal_start_fn fn,
                                          void *self, struct bt_error *err);
/* Deletes older ones, in the batch. */
BT_MUST_CHECK enum bt_code journal_starts_drop(struct journal *j, uint64_t before,
                                               struct bt_error *err);

/* An agent that registered, so that plans may wait for it: its card, and when it was last there. In
 * the batch. Of more than JOURNAL_AGENTS_MAX the one that was away longest goes. */
enum { JOURNAL_AGENTS_MAX = 1024 };
struct journal_agent {
    struct str id;
    uint64_t seen_wall;
    struct str card; /* the bytes of its message */
};
BT_MUST_CHECK enum bt_code journal_agent_put(struct journal *j, const struct journal_agent *a,
                                             struct bt_error *err);
/* *ret_found: there was one. In the batch. */
BT_MUST_CHECK enum bt_code journal_agent_drop(struct journal *j, struct str id, bool *ret_found,
                                              struct bt_error *err);
/* Those that were last there before this time, in the batch. */
BT_MUST_CHECK enum bt_code journal_agents_drop(struct journal *j, uint64_t before,
                                               struct bt_error *err);
typedef void (*journal_agent_fn)(const struct journal_agent *a, void *self);
/* All, the one that was there last first; one that is damaged is left out and logged. fn must not
 * use the journal. */
BT_MUST_CHECK enum bt_code journal_agents(struct journal *j, journal_agent_fn fn, void *self,
                                          struct bt_error *err);

/* ---- schedules ----
 * A schedule has a rule (when), a document (what), and a state that each fire changes. The journal
 * knows none of their contents. */
struct journal_schedule {
    uint64_t ix;        /* its number; given by journal_schedule_put */
    struct str name;    /* unique */
    struct str owner;   /* as that of a plan */
    uint64_t body_hash; /* of what was put */
    msec created_wall;
    struct str rule;
    struct str doc;   /* only where it says so */
    struct str state; /* empty = none was stored */
    bool damaged;     /* only ix and name are valid */
};

typedef bool (*journal_schedule_fn)(const struct journal_schedule *p, void *self);
/* Adds the schedule of this name, or replaces it under its number; ignores p->ix. In the batch. */
BT_MUST_CHECK enum bt_code journal_schedule_put(struct journal *j, const struct journal_schedule *p,
                                                uint64_t *ret_ix, struct bt_error *err);
BT_MUST_CHECK enum bt_code journal_schedule_state(struct journal *j, uint64_t ix, struct str state,
                                                  struct bt_error *err);
/* Without a trace: its name may be used again. */
BT_MUST_CHECK enum bt_code journal_schedule_delete(struct journal *j, uint64_t ix,
                                                   struct bt_error *err);
/* Committed or batched, with its document. Strings are valid until the next look-up of a schedule.
 * BT_NOT_FOUND; BT_IO names a damaged one. */
BT_MUST_CHECK enum bt_code journal_schedule_by_name(struct journal *j, struct str name,
                                                    struct journal_schedule *ret,
                                                    struct bt_error *err);
/* Those with greater numbers, in their order, without documents. fn must not write. */
BT_MUST_CHECK enum bt_code journal_schedules(struct journal *j, uint64_t after,
                                             journal_schedule_fn fn, void *self,
                                             struct bt_error *err);

/* ---- rows ---- */
struct journal_row {
    uint64_t seq; /* public rows: its seq; internal: the seq it follows */
    bool is_public;
    uint64_t plan_ix;  /* 0 = of no plan */
    uint64_t plan_seq; /* public rows of a plan; 0 otherwise */
    struct str type;   /* wire type of the record */
    struct str topic;
    msec wall;
    const void *body; /* msgpack */
    size_t body_len;
    uint64_t pos;          /* of a row that was read */
    bool damaged;          /* only seq and wall (of the row before) are valid; body is NULL */
    uint64_t damaged_to;   /* it stands for all up to this seq */
    const uint64_t *blobs; /* ids that the body names; only for journal_append */
    uint32_t blobs_n;      /* at most JOURNAL_ROW_BLOBS */
};

enum { JOURNAL_ROW_BLOBS = 8 };

/* The seq of the next public row. The row's body contains it, so the caller needs it first. */
uint64_t journal_next_seq(const struct journal *j);
/* Appends to the batch. A public row must have exactly journal_next_seq(). The bytes are used
 * before the call returns. */
BT_MUST_CHECK enum bt_code journal_append(struct journal *j, const struct journal_row *row,
                                          struct bt_error *err);
/* Stores bytes; *ret_id > 0. */
BT_MUST_CHECK enum bt_code journal_blob_add(struct journal *j, const void *bytes, size_t len,
                                            uint64_t *ret_id, struct bt_error *err);
/* Appends a blob's bytes (committed or batched) to out and verifies the checksum; BT_IO "damaged"
 * when it is wrong. */
struct buf;
BT_MUST_CHECK enum bt_code journal_blob_get(struct journal *j, uint64_t id, struct buf *out,
                                            struct bt_error *err);

BT_MUST_CHECK enum bt_code journal_commit(struct journal *j, struct bt_error *err);
/* To be called when the effects of a commit were performed: copies the write-ahead log into the
 * file when it is long enough, so that nobody waits for that. Without the call the next commit does
 * it. A failure shows at the next write. */
void journal_copy_log(struct journal *j);
/* Renews the lease of a store that has one, when a third of it has gone; between batches. To be
 * called before effects, and several times in a lease. BT_IO: another owns it, or nobody knows;
 * nothing that was decided may be done. */
BT_MUST_CHECK enum bt_code journal_keep(struct journal *j, struct bt_error *err);
/* The same in a long batch whose parts may be stored one by one, as in a recovery: commits what
 * there is when a third of the lease has gone. */
BT_MUST_CHECK enum bt_code journal_hold(struct journal *j, struct bt_error *err);
/* Is called every 20 ms while a call waits for a server that is away, or that has not answered for
 * 250 ms, from within that call: it may use nothing
 * of the journal but what it has in memory (sequence numbers, boot, room). False: do not wait any
 * longer; the journal is dead then. */
typedef bool (*journal_wait_fn)(void *self);
/* NULL: nobody is called, as at first. */
void journal_while_waiting(struct journal *j, journal_wait_fn fn, void *self);
/* Whether the open batch has any writes. */
bool journal_dirty(const struct journal *j);

typedef bool (*journal_row_fn)(const struct journal_row *row, void *self); /* false = stop */
/* Committed public rows with seq >= from_seq in order (plan_ix 0 = all), at most limit. A row that
 * is damaged or missing is passed on as `damaged`, with its seq; of one plan, when the index knows
 * it. Of all plans a jump of seq is a range that was deleted. */
BT_MUST_CHECK enum bt_code journal_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix,
                                          uint32_t limit, journal_row_fn fn, void *self,
                                          struct bt_error *err);
/* The newest committed row of a plan; only_public: the newest event. fn is not called when there is
 * none. */
BT_MUST_CHECK enum bt_code journal_last_row(struct journal *j, uint64_t plan_ix, bool only_public,
                                            journal_row_fn fn, void *self, struct bt_error *err);
/* All rows of one plan in order, internal ones included: for replay. */
BT_MUST_CHECK enum bt_code journal_replay(struct journal *j, uint64_t plan_ix, journal_row_fn fn,
                                          void *self, struct bt_error *err);
/* How far a plan was read. Zeroed: not at all. */
struct journal_place {
    uint64_t pos, plan_seq;
};
/* The rows of a plan after *place, which follows each row that fn was called with: a long replay
 * stops when fn returns false, and goes on in a later cycle. */
BT_MUST_CHECK enum bt_code journal_replay_on(struct journal *j, uint64_t plan_ix,
                                             struct journal_place *place, journal_row_fn fn,
                                             void *self, struct bt_error *err);
/* Excludes a plan from recovery for good: a damaged one, or one whose input crashed the daemon
 * three times (G22, G23). Its status becomes "quarantined". In the batch. */
BT_MUST_CHECK enum bt_code journal_quarantine(struct journal *j, uint64_t plan_ix, struct str why,
                                              struct bt_error *err);

/* Where a check of all checksums is; zeroed at the beginning. */
struct journal_scrub {
    uint32_t table;
    uint64_t at;      /* in it */
    uint64_t checked; /* entries so far */
    uint64_t total;   /* about as many are there */
    bool done;
};
typedef void (*journal_problem_fn)(struct str text, void *self);
/* Checks the next part: about max_bytes. fn gets one sentence for each damage; it names the plan
 * and the seq where that is known. */
BT_MUST_CHECK enum bt_code journal_scrub(struct journal *j, struct journal_scrub *io,
                                         uint64_t max_bytes, journal_problem_fn fn, void *self,
                                         struct bt_error *err);
typedef void (*journal_progress_fn)(const struct journal_scrub *at, void *self);

/* ---- deletion ----
 * A deleted plan or job leaves a tombstone; its number, its seqs and its clientKey are never used
 * again. A blob goes with the last plan that names it. All of these write to the batch. */
struct journal_gone {
    uint64_t ix;
    struct uuid plan_id;
    struct str client_key; /* empty = none */
    struct str status;     /* with which it had ended */
    msec created_wall, ended_wall, deleted_wall;
    struct str why; /* at most 200 bytes */
    struct str owner;
    uint64_t rows;   /* how many it had */
    struct str head; /* the end of its hash chain */
};

/* Takes the plan out of all look-ups. Its rows and blobs go by journal_sweep, also after a restart.
 * BT_NOT_FOUND. BT_CONFLICT: it has not ended. */
BT_MUST_CHECK enum bt_code journal_plan_delete(struct journal *j, uint64_t plan_ix, struct str why,
                                               msec wall, struct bt_error *err);
/* Forgets tombstones of plans that were deleted before before_wall and have been swept, at most
 * `limit`, by their numbers and up to the first that is younger: then their clientKeys are free. */
BT_MUST_CHECK enum bt_code journal_gone_expire(struct journal *j, msec before_wall, uint32_t limit,
                                               uint32_t *ret_n, struct bt_error *err);
/* Strings are valid until the next look-up of a plan. BT_NOT_FOUND; the oldest of more than 100,000
 * tombstones are forgotten. */
BT_MUST_CHECK enum bt_code journal_gone_by_id(struct journal *j, struct uuid id,
                                              struct journal_gone *ret, struct bt_error *err);
/* Ended plans and jobs, the oldest end first and of one moment by their numbers: those after
 * (after_wall, after_ix). Heads without documents. Damaged ones are logged and left out. fn must
 * not write. */
BT_MUST_CHECK enum bt_code journal_plans_ended(struct journal *j, msec after_wall,
                                               uint64_t after_ix, uint32_t limit,
                                               journal_plan_fn fn, void *self,
                                               struct bt_error *err);
/* Deletes a session with its turns and messages; at most `limit` turns a call: *ret_more. Its
 * messages go by journal_sweep. BT_NOT_FOUND. BT_CONFLICT: one of its turns is open. */
BT_MUST_CHECK enum bt_code journal_session_delete(struct journal *j, struct str id, uint32_t limit,
                                                  bool *ret_more, struct bt_error *err);
/* Sessions that were not updated at before_wall or later, the oldest first. fn must not write. */
BT_MUST_CHECK enum bt_code journal_sessions_idle(struct journal *j, msec before_wall,
                                                 uint32_t limit, journal_session_fn fn, void *self,
                                                 struct bt_error *err);
/* Deletes public rows of no plan (agents, sessions, the supervisor) from before before_wall, at
 * most limit; *ret_n = how many. */
BT_MUST_CHECK enum bt_code journal_rows_delete(struct journal *j, msec before_wall, uint32_t limit,
                                               uint32_t *ret_n, struct bt_error *err);
/* Removes what deletions have left: about `budget` rows or blobs. *ret_more: there is more. */
BT_MUST_CHECK enum bt_code journal_sweep(struct journal *j, uint32_t budget, bool *ret_more,
                                         struct bt_error *err);
/* Deletes blobs that nothing names (results that came too late) with ids over *io_after and up to
 * last, `limit` looks at most; *io_after = last: done. */
BT_MUST_CHECK enum bt_code journal_blobs_unused(struct journal *j, uint64_t *io_after,
                                                uint64_t last, uint32_t limit,
                                                struct bt_error *err);
uint64_t journal_last_blob(const struct journal *j);
struct journal_size {
    uint64_t used; /* bytes of the file that hold something */
    uint64_t file; /* bytes of the file; what is free in it is used again */
};
BT_MUST_CHECK enum bt_code journal_size(struct journal *j, struct journal_size *ret,
                                        struct bt_error *err);

/* ---- import ----
 * The plans of another journal. Until the last write of an import its plan has the status
 * "importing" and an end: no recovery touches it. */
#define JOURNAL_IMPORTING "importing"
/* The ids of the blobs that a plan's committed rows name, rising, those after `after`; at most max.
 */
BT_MUST_CHECK enum bt_code journal_plan_blobs(struct journal *j, uint64_t plan_ix, uint64_t after,
                                              uint64_t *ret, uint32_t max, uint32_t *ret_n,
                                              struct bt_error *err);
/* The numbers of other plans that name a blob of this plan: those that took its results over; at
 * most max. */
BT_MUST_CHECK enum bt_code journal_plan_heirs(struct journal *j, uint64_t plan_ix, uint64_t *ret,
                                              uint32_t max, uint32_t *ret_n, struct bt_error *err);
/* Sets the whole state of a plan that is imported. */
BT_MUST_CHECK enum bt_code journal_plan_state(struct journal *j, uint64_t plan_ix,
                                              struct str status, msec ended_wall, struct str note,
                                              struct bt_error *err);
/* Forgets that a plan was deleted, so that it can be imported. BT_NOT_FOUND: it was not. BT_BUSY:
 * its rows are still being removed. */
BT_MUST_CHECK enum bt_code journal_gone_forget(struct journal *j, struct uuid id,
                                               struct bt_error *err);
/* Numbers of the plans and jobs whose import was not finished; at most max. */
BT_MUST_CHECK enum bt_code journal_imports(struct journal *j, uint64_t *ret, uint32_t max,
                                           uint32_t *ret_n, struct bt_error *err);

/* ---- a fleet that has grown ----
 * A key that was used before its number of shards grew may live where the older number says. */
enum journal_key {
    JOURNAL_KEY_SESSION,
    JOURNAL_KEY_CLIENT,
    JOURNAL_KEY_RUNNING,
    JOURNAL_KEY_NAME,
    JOURNAL_KEY_PLAN /* the 16 bytes of its id */
};
/* The older numbers of shards, newest first, while anything from before is left; how many there
 * are. */
uint32_t journal_maps(const struct journal *j, const uint32_t **ret);
/* Whether shard 0 has plans whose ids do not name it: they came by an import while it was the only
 * one. */
bool journal_has_strays(const struct journal *j);
/* Whether the shard has that session, a plan of that clientKey, an open plan with that
 * concurrencyKey (or these bytes in its document), that schedule, or that plan. */
BT_MUST_CHECK enum bt_code journal_key_is_at(struct journal *j, uint32_t shard,
                                             enum journal_key kind, struct str key, bool *ret,
                                             struct bt_error *err);
/* What the daemon should say when it starts; "" = nothing. */
const char *journal_note(const struct journal *j);

/* ---- history that was lost ----
 * A failover to a server that lacks acknowledged rows takes them back; their numbers are used
 * again. */
struct journal_rewound {
    uint64_t kept_seq; /* the last event that is as it was; 0 = not known */
    uint64_t lost_seq; /* the last one that was acknowledged */
};
/* Whether the journal was rewound and no event reports it yet. */
bool journal_rewound(const struct journal *j, struct journal_rewound *ret);
/* The event that reports it is committed. */
BT_MUST_CHECK enum bt_code journal_rewound_told(struct journal *j, struct bt_error *err);
/* From which seq on a reader must read again, whose event `seq` is another one or gone: 1 when
 * nobody knows where its history and this one part. */
BT_MUST_CHECK enum bt_code journal_parted(struct journal *j, uint64_t seq, uint64_t *ret,
                                          struct bt_error *err);

/* ---- copies ----
 * A copy is one file without a log. Artifacts are no part of it. */
struct journal_backup {
    uint64_t pages, left;
    bool done; /* the file is there, complete and synced */
};
/* Begins a copy of the open journal; path must not exist. BT_CONFLICT: it does. BT_BUSY: another
 * copy is being made. BT_INVALID: this journal has no file. */
BT_MUST_CHECK enum bt_code journal_backup_begin(struct journal *j, const char *path,
                                                struct bt_error *err);
/* Copies about so many pages of 4 KiB; no batch may be open. What is committed meanwhile is in the
 * copy, too. A failure ends the copy, not the journal. */
BT_MUST_CHECK enum bt_code journal_backup_step(struct journal *j, uint32_t pages,
                                               struct journal_backup *ret, struct bt_error *err);
/* The same at once for a state directory without a daemon (BT_CONFLICT otherwise). */
BT_MUST_CHECK enum bt_code journal_backup_stopped(const char *dir, const char *path,
                                                  struct bt_error *err);
/* Makes the copy the journal of DIR, which no daemon may hold. A journal that is there is kept as
 * journal.db.old when `replace`, else BT_CONFLICT. Verify the copy before. */
BT_MUST_CHECK enum bt_code journal_restore(const char *dir, const char *path, bool replace,
                                           struct bt_error *err);
/* Reads a whole copy: checksums, hash chains, missing rows. Appends lines; the last one is
 * "root HASH", a hash over the chains of all plans. BT_IO: something is not as it was written.
 * see (may be NULL) is given each blob that a row names, as often as it is named. */
BT_MUST_CHECK enum bt_code journal_verify(const char *path,
                                          uint32_t (*blobs_of)(const void *body, size_t len,
                                                               uint64_t *ret, uint32_t max),
                                          void (*see)(const void *bytes, size_t len, void *self),
                                          void *self, struct buf *report, struct bt_error *err);

const char *journal_sqlite_version(void);
/* For baton doctor, while no daemon runs (BT_CONFLICT otherwise). Checks the version, integrity
 * (quick_check), and all checksums, with memory for one part; calls fn (may be NULL) after each.
 * Changes nothing. Appends lines of text. BT_OK: sound. BT_IO: damaged, *err names the first
 * damage. BT_NOT_FOUND: no journal. */
BT_MUST_CHECK enum bt_code journal_inspect(const char *dir, journal_progress_fn fn, void *self,
                                           struct buf *report, struct bt_error *err);
#endif

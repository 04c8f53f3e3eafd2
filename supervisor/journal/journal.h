/*
 * The journal: the truth. A port with two implementations (SQLite; memory for tests). One writer,
 * the loop thread.
 *
 * Writes gather in one open batch per turn; journal_commit() makes them durable together. Nothing
 * may be acknowledged, sent or published before its commit returned BT_OK. A commit that fails has
 * an UNKNOWN outcome: the journal is then dead (every call returns BT_IO) and the daemon must stop
 * and re-read. The one exception: BT_UNAVAILABLE from a writing call or from journal_commit() means
 * that the storage is full and that the WHOLE open batch is known not to be kept; the journal lives
 * on with what was committed before.
 *
 * Rows: a position is seq << 20 | k. Public records have k = 0 and the next seq (+1, no gaps);
 * internal ones follow with k = 1, 2, ... under the last seq. Every row carries a CRC-32C of its
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

enum durability { DURABILITY_POWER, DURABILITY_PROCESS };

struct journal_options {
    enum durability durability;
    uint32_t cache_kib;        /* page cache; 0 = default */
    uint32_t checkpoint_pages; /* of the write-ahead log between checkpoints; 0 = default */
    uint64_t
        ballast_bytes; /* freed when the disk is full, so that clean-up can write (Q13); 0 = none */
};

/*
 * Opens or creates DIR/journal.db (0600) and takes DIR/lock (flock, held until journal_close or the
 * end of the process AND of every child forked after this call without exec: open after forking
 * helpers): BT_CONFLICT naming the pid of the holder when another daemon has it. BT_INVALID for a
 * foreign, empty or irregular file or a newer schema version, saying so; BT_IO with the system's
 * text otherwise.
 */
BT_MUST_CHECK enum bt_code journal_open_sqlite(const char *dir, const struct journal_options *opt,
                                               struct journal **ret, struct bt_error *err);
/* For tests and simulation. fail_at > 0: the fail_at-th commit from now fails (its rows kept or not
 * by `kept`). */
BT_MUST_CHECK enum bt_code journal_open_memory(struct journal **ret, struct bt_error *err);
void journal_memory_fail(struct journal *j, uint32_t fail_at, bool kept);
/* As if the daemon had been killed and started again: the open batch is gone, boot counts on, a
 * dead journal lives. */
void journal_memory_restart(struct journal *j);
/* Commits nothing; checkpoints and closes. Accepts NULL. */
void journal_close(struct journal *j);

/* Disk space is short: the ballast was given up so that running work can go on; refuse new work
 * (G20). Looked at in each commit, and here while it is true: false again when there is room for
 * the ballast. */
bool journal_storage_low(struct journal *j);
/* How many daemons have opened this journal (this one included): the high part of epochs. */
uint64_t journal_boot(const struct journal *j);
uint64_t journal_last_seq(const struct journal *j); /* including the open batch */
uint64_t journal_committed_seq(const struct journal *j);

/* ---- plans ---- */
struct journal_plan {
    uint64_t ix; /* the journal's own number of the plan: 1, 2, ... */
    struct uuid plan_id;
    struct str session_id;
    struct str client_key; /* empty = none; unique otherwise */
    uint64_t body_hash;    /* of the submitted body, to tell a repetition from a conflict */
    struct str goal;
    const void *doc; /* the normalised plan, msgpack */
    size_t doc_len;
    msec created_wall;
    struct str status; /* "pending" ... ; updated by journal_plan_status */
    msec ended_wall;   /* 0 = open */
    uint32_t recoveries;
    struct str job; /* what it is asked for ("planning", "synthesis", ...); empty = a plan */
};

/* Adds a plan to the batch; *ret_ix its number. BT_CONFLICT when the client_key exists (also in
 * this batch). */
BT_MUST_CHECK enum bt_code journal_plan_add(struct journal *j, const struct journal_plan *p,
                                            uint64_t *ret_ix, struct bt_error *err);
BT_MUST_CHECK enum bt_code journal_plan_status(struct journal *j, uint64_t plan_ix,
                                               struct str status, msec ended_wall,
                                               struct bt_error *err);
/* Looks up committed and batched plans. Strings and doc are valid until the next look-up of a plan.
 * BT_NOT_FOUND; BT_IO names a damaged plan. */
BT_MUST_CHECK enum bt_code journal_plan_by_id(struct journal *j, struct uuid id,
                                              struct journal_plan *ret, struct bt_error *err);
BT_MUST_CHECK enum bt_code journal_plan_by_key(struct journal *j, struct str client_key,
                                               struct journal_plan *ret, struct bt_error *err);

typedef bool (*journal_plan_fn)(const struct journal_plan *p, void *self); /* false = stop */
/* Newest first, ix < before_ix (0 = from the newest), filters empty = any; never jobs. doc is
 * not loaded. Includes the open batch: ask between commits. */
BT_MUST_CHECK enum bt_code journal_plans(struct journal *j, struct str status,
                                         struct str session_id, uint64_t before_ix, uint32_t limit,
                                         journal_plan_fn fn, void *self, struct bt_error *err);
/* The jobs of a session instead (empty = all), in the same way. */
BT_MUST_CHECK enum bt_code journal_jobs(struct journal *j, struct str session_id,
                                        uint64_t before_ix, uint32_t limit, journal_plan_fn fn,
                                        void *self, struct bt_error *err);
/* Every plan and job that has not ended, oldest first, with doc, counting its recovery
 * (committed at once; no batch may be open). A damaged plan is logged, quarantined and left out
 * (G22). fn may call any function of the journal but this one. */
BT_MUST_CHECK enum bt_code journal_plans_open(struct journal *j, journal_plan_fn fn, void *self,
                                              struct bt_error *err);

/* Sets the count of recoveries back, of one plan or (0) of all open ones: the daemon has lived
 * through them. Call it at a clean stop and when the daemon has been up for a while, or honest
 * restarts add up to a quarantine. In the batch. */
BT_MUST_CHECK enum bt_code journal_recovered(struct journal *j, uint64_t plan_ix,
                                             struct bt_error *err);

/* ---- sessions: what people said, and what they were told ---- */
struct journal_session {
    struct str session_id;
    msec created_wall, updated_wall;
    uint64_t messages;   /* the number of the newest; they begin with 1 and have no gaps */
    uint64_t summarized; /* the summary covers the messages up to this one */
    uint64_t summary;    /* blob {text}; 0 = none */
    uint64_t agent_calls, tool_calls; /* since the summary */
};

struct journal_message {
    uint64_t n;
    struct str role; /* "user", "assistant" */
    struct str text;
    bool cut;         /* what was said is longer */
    struct uuid turn; /* nil = none */
    struct uuid plan; /* that it is about; nil = none */
    msec wall;
    bool damaged; /* only n holds */
};

/* One message of a person until it is answered. */
struct journal_turn {
    struct uuid turn_id;
    struct str session_id;
    struct str client_key; /* unique within the session; empty = none */
    uint64_t body_hash;
    uint64_t asked, answered; /* numbers of the two messages; answered 0 = still open */
    msec started_wall, ended_wall;
    struct uuid plan; /* open: the plan or job that it waits for; later: what it was about */
    struct str action;
    uint64_t wish; /* blob: what goes with a plan that the words lead to; 0 = nothing */
};

typedef bool (*journal_session_fn)(const struct journal_session *s, void *self);
typedef bool (*journal_message_fn)(const struct journal_message *m, void *self);
typedef bool (*journal_turn_fn)(const struct journal_turn *t, void *self);

/* All of these see the open batch. Strings are valid until the next look-up of a turn; those that
 * fn is given, while it runs. fn must not call any of them. BT_NOT_FOUND; BT_IO names what is
 * damaged. ret->session_id is `id`. */
BT_MUST_CHECK enum bt_code journal_session(struct journal *j, struct str id,
                                           struct journal_session *ret, struct bt_error *err);
/* Adds or replaces the session of this id. */
BT_MUST_CHECK enum bt_code journal_session_put(struct journal *j, const struct journal_session *s,
                                               struct bt_error *err);
/* The one that was spoken in last first. Damaged ones are logged and left out. */
BT_MUST_CHECK enum bt_code journal_sessions(struct journal *j, uint32_t limit,
                                            journal_session_fn fn, void *self,
                                            struct bt_error *err);
/* Adds the next message (m->n is not looked at) and the session when it is the first. BT_IO when
 * the session's row is damaged: nothing is added, the journal lives on. */
BT_MUST_CHECK enum bt_code journal_message_add(struct journal *j, struct str session_id,
                                               const struct journal_message *m, uint64_t *ret_n,
                                               struct bt_error *err);
/* Newest first, n < before_n (0 = from the newest). One that is damaged or missing is given with
 * nothing but its number. */
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

/* ---- rows ---- */
struct journal_row {
    uint64_t seq; /* public rows: its seq; internal: the seq it follows */
    bool is_public;
    uint64_t plan_ix;  /* 0 = about no plan */
    uint64_t plan_seq; /* public rows of a plan; 0 otherwise */
    struct str type;   /* wire type of the record */
    struct str topic;
    msec wall;
    const void *body; /* msgpack */
    size_t body_len;
};

/* The number that the next public row will get: it is inside the body, so it must be known before.
 */
uint64_t journal_next_seq(const struct journal *j);
/* Appends to the batch. A public row must carry exactly journal_next_seq(). Bytes are copied or
 * bound at once. */
BT_MUST_CHECK enum bt_code journal_append(struct journal *j, const struct journal_row *row,
                                          struct bt_error *err);
/* Stores bytes; *ret_id > 0. */
BT_MUST_CHECK enum bt_code journal_blob_add(struct journal *j, const void *bytes, size_t len,
                                            uint64_t *ret_id, struct bt_error *err);
/* Appends a blob's bytes (committed or batched) to out; checksum verified: BT_IO "damaged"
 * otherwise. */
struct buf;
BT_MUST_CHECK enum bt_code journal_blob_get(struct journal *j, uint64_t id, struct buf *out,
                                            struct bt_error *err);

BT_MUST_CHECK enum bt_code journal_commit(struct journal *j, struct bt_error *err);
/* Whether the open batch holds anything. */
bool journal_dirty(const struct journal *j);

typedef bool (*journal_row_fn)(const struct journal_row *row, void *self); /* false = stop */
/* Committed public rows with seq >= from_seq in order (plan_ix 0 = all), at most limit. BT_IO names
 * a damaged row. */
BT_MUST_CHECK enum bt_code journal_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix,
                                          uint32_t limit, journal_row_fn fn, void *self,
                                          struct bt_error *err);
/* The newest committed row of a plan (only_public: that is an event); fn is not called when there
 * is none. */
BT_MUST_CHECK enum bt_code journal_last_row(struct journal *j, uint64_t plan_ix, bool only_public,
                                            journal_row_fn fn, void *self, struct bt_error *err);
/* All rows of one plan in order, internal ones included: for replay. */
BT_MUST_CHECK enum bt_code journal_replay(struct journal *j, uint64_t plan_ix, journal_row_fn fn,
                                          void *self, struct bt_error *err);
/* Takes a plan out of recovery for good: a damaged one, or one that killed the daemon three times
 * (G22, G23). Its status becomes "quarantined". In the batch. */
BT_MUST_CHECK enum bt_code journal_quarantine(struct journal *j, uint64_t plan_ix, struct str why,
                                              struct bt_error *err);

const char *journal_sqlite_version(void);
/* For baton doctor, while no daemon runs (BT_CONFLICT otherwise): checks version, integrity
 * (quick_check) and the checksums of all plans and at most max_rows rows and blobs; changes
 * nothing. Appends lines of text. BT_OK: sound; BT_IO: damaged, *err says where first;
 * BT_NOT_FOUND: no journal. */
BT_MUST_CHECK enum bt_code journal_inspect(const char *dir, uint64_t max_rows, struct buf *report,
                                           struct bt_error *err);
#endif

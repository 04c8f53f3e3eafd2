/* The interface of an implementation of the journal. */
#ifndef JOURNAL_PORT_H
#define JOURNAL_PORT_H

#include "supervisor/journal/journal.h"
#include "supervisor/journal/recent.h"

enum { POS_K_BITS = 20, JOURNAL_MAPS_MAX = 8, JOURNAL_NOTE_MAX = 200 };
#define POS_K_MAX ((1u << POS_K_BITS) - 1)
#define SEQ_MAX ((uint64_t)INT64_MAX >> POS_K_BITS)

static inline uint64_t pos_seq(uint64_t pos)
{
    return pos >> POS_K_BITS;
}

/*
 * A write returns BT_UNAVAILABLE only when the storage is full and the whole batch is rolled back
 * for certain. BT_IO, BT_NOMEM and BT_INTERNAL make the journal dead (journal.c does that). With
 * any other code nothing has changed.
 */
struct journal_ops {
    void (*close)(struct journal *j);
    enum bt_code (*plan_add)(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                             struct bt_error *err);
    enum bt_code (*plan_status)(struct journal *j, uint64_t ix, struct str status, msec ended,
                                struct bt_error *err);
    enum bt_code (*plan_by_id)(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err);
    enum bt_code (*plan_head)(struct journal *j, struct uuid id, struct journal_plan *ret,
                              struct bt_error *err);
    enum bt_code (*plan_by_key)(struct journal *j, struct str key, struct journal_plan *ret,
                                struct bt_error *err);
    enum bt_code (*plan_owner)(struct journal *j, uint64_t ix, char *ret, size_t cap,
                               struct bt_error *err);
    enum bt_code (*blob_owned)(struct journal *j, uint64_t blob, struct str owner, bool *ret,
                               struct bt_error *err);
    enum bt_code (*plans)(struct journal *j, struct str status, struct str session,
                          uint64_t before_ix, uint32_t limit, journal_plan_fn fn, void *self,
                          struct bt_error *err);
    enum bt_code (*plans_between)(struct journal *j, struct uuid first, struct uuid last,
                                  uint32_t limit, journal_plan_fn fn, void *self,
                                  struct bt_error *err);
    enum bt_code (*jobs)(struct journal *j, struct str session, uint64_t before_ix, uint32_t limit,
                         journal_plan_fn fn, void *self, struct bt_error *err);
    enum bt_code (*plans_open)(struct journal *j, journal_plan_fn fn, void *self,
                               struct bt_error *err);
    enum bt_code (*quarantine)(struct journal *j, uint64_t ix, struct str why,
                               struct bt_error *err);
    enum bt_code (*session)(struct journal *j, struct str id, struct journal_session *ret,
                            struct bt_error *err);
    enum bt_code (*session_put)(struct journal *j, const struct journal_session *s,
                                struct bt_error *err);
    enum bt_code (*sessions)(struct journal *j, uint32_t limit, journal_session_fn fn, void *self,
                             struct bt_error *err);
    /* m->n is set; the caller writes the session with session_put. */
    enum bt_code (*message_add)(struct journal *j, struct str session,
                                const struct journal_message *m, struct bt_error *err);
    /* Messages with a number of at most `last`, newest first; missing ones are left out. */
    enum bt_code (*messages)(struct journal *j, struct str session, uint64_t last,
                             journal_message_fn fn, void *self, struct bt_error *err);
    /* The caller has checked that its client_key is free. */
    enum bt_code (*turn_put)(struct journal *j, const struct journal_turn *t, struct bt_error *err);
    enum bt_code (*turn)(struct journal *j, struct uuid id, struct journal_turn *ret,
                         struct bt_error *err);
    /* Nil = none. */
    enum bt_code (*turn_key)(struct journal *j, struct str session, struct str key,
                             struct uuid *ret, struct bt_error *err);
    enum bt_code (*turn_by_key)(struct journal *j, struct str session, struct str key,
                                struct journal_turn *ret, struct bt_error *err);
    enum bt_code (*turn_of_plan)(struct journal *j, struct uuid plan, struct journal_turn *ret,
                                 struct bt_error *err);
    enum bt_code (*turns_open)(struct journal *j, journal_turn_fn fn, void *self,
                               struct bt_error *err);
    enum bt_code (*schedule_put)(struct journal *j, const struct journal_schedule *p,
                                 uint64_t *ret_ix, struct bt_error *err);
    enum bt_code (*schedule_state)(struct journal *j, uint64_t ix, struct str state,
                                   struct bt_error *err);
    enum bt_code (*schedule_delete)(struct journal *j, uint64_t ix, struct bt_error *err);
    enum bt_code (*schedule_by_name)(struct journal *j, struct str name,
                                     struct journal_schedule *ret, struct bt_error *err);
    enum bt_code (*schedules)(struct journal *j, uint64_t after, journal_schedule_fn fn, void *self,
                              struct bt_error *err);
    enum bt_code (*start_put)(struct journal *j, struct str name, uint32_t place, uint64_t wall,
                              struct bt_error *err);
    enum bt_code (*starts)(struct journal *j, uint64_t since, journal_start_fn fn, void *self,
                           struct bt_error *err);
    enum bt_code (*starts_drop)(struct journal *j, uint64_t before, struct bt_error *err);
    enum bt_code (*agent_put)(struct journal *j, const struct journal_agent *a,
                              struct bt_error *err);
    enum bt_code (*agent_drop)(struct journal *j, struct str id, bool *ret_found,
                               struct bt_error *err);
    enum bt_code (*agents_drop)(struct journal *j, uint64_t before, struct bt_error *err);
    enum bt_code (*agents)(struct journal *j, journal_agent_fn fn, void *self,
                           struct bt_error *err);
    /* pos is the row's position; the caller has checked the order of positions. */
    enum bt_code (*append)(struct journal *j, uint64_t pos, const struct journal_row *row,
                           struct bt_error *err);
    enum bt_code (*blob_add)(struct journal *j, const void *bytes, size_t len, uint64_t *ret_id,
                             struct bt_error *err);
    enum bt_code (*blob_get)(struct journal *j, uint64_t id, struct buf *out, struct bt_error *err);
    enum bt_code (*commit)(struct journal *j, struct bt_error *err);
    enum bt_code (*scrub)(struct journal *j, struct journal_scrub *io, uint64_t max_bytes,
                          journal_problem_fn fn, void *self, struct bt_error *err);
    /* NULL: it has no lease. */
    enum bt_code (*keep)(struct journal *j, struct bt_error *err);
    enum bt_code (*hold)(struct journal *j, struct bt_error *err);
    /* Checks again whether space is short; may be NULL. */
    void (*space)(struct journal *j);
    /* Copies the log when it is due and no batch is open; may be NULL. */
    void (*copy_log)(struct journal *j);
    enum bt_code (*events)(struct journal *j, uint64_t from_seq, uint64_t plan_ix, uint32_t limit,
                           journal_row_fn fn, void *self, struct bt_error *err);
    enum bt_code (*last_row)(struct journal *j, uint64_t plan_ix, bool only_public,
                             journal_row_fn fn, void *self, struct bt_error *err);
    enum bt_code (*replay)(struct journal *j, uint64_t plan_ix, struct journal_place *place,
                           journal_row_fn fn, void *self, struct bt_error *err);
    enum bt_code (*plan_delete)(struct journal *j, uint64_t ix, struct str why, msec wall,
                                struct bt_error *err);
    enum bt_code (*gone_by_id)(struct journal *j, struct uuid id, struct journal_gone *ret,
                               struct bt_error *err);
    enum bt_code (*plans_ended)(struct journal *j, msec after, uint64_t after_ix, uint32_t limit,
                                journal_plan_fn fn, void *self, struct bt_error *err);
    enum bt_code (*session_delete)(struct journal *j, struct str id, uint32_t limit, bool *ret_more,
                                   struct bt_error *err);
    enum bt_code (*sessions_idle)(struct journal *j, msec before, uint32_t limit,
                                  journal_session_fn fn, void *self, struct bt_error *err);
    enum bt_code (*gone_expire)(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err);
    enum bt_code (*rows_delete)(struct journal *j, msec before, uint32_t limit, uint32_t *ret_n,
                                struct bt_error *err);
    enum bt_code (*sweep)(struct journal *j, uint32_t budget, bool *ret_more, struct bt_error *err);
    enum bt_code (*blobs_unused)(struct journal *j, uint64_t *io_after, uint64_t last,
                                 uint32_t limit, struct bt_error *err);
    uint64_t (*last_blob)(const struct journal *j);
    enum bt_code (*size)(struct journal *j, struct journal_size *ret, struct bt_error *err);
    enum bt_code (*plan_blobs)(struct journal *j, uint64_t ix, uint64_t after, uint64_t *ret,
                               uint32_t max, uint32_t *ret_n, struct bt_error *err);
    /* NULL: it knows none. */
    enum bt_code (*plan_heirs)(struct journal *j, uint64_t ix, uint64_t *ret, uint32_t max,
                               uint32_t *ret_n, struct bt_error *err);
    enum bt_code (*plan_state)(struct journal *j, uint64_t ix, struct str status, msec ended,
                               struct str note, struct bt_error *err);
    enum bt_code (*gone_forget)(struct journal *j, struct uuid id, struct bt_error *err);
    /* NULL: it takes no imports. */
    enum bt_code (*imports)(struct journal *j, uint64_t *ret, uint32_t max, uint32_t *ret_n,
                            struct bt_error *err);
    /* NULL: it does not grow. */
    enum bt_code (*key_is_at)(struct journal *j, uint32_t shard, enum journal_key kind,
                              struct str key, bool *ret, struct bt_error *err);
    /* NULL: it is never rewound. */
    enum bt_code (*rewound_told)(struct journal *j, struct bt_error *err);
    enum bt_code (*parted)(struct journal *j, uint64_t seq, uint64_t *ret, struct bt_error *err);
    /* NULL: it has no file. */
    enum bt_code (*backup_begin)(struct journal *j, const char *path, struct bt_error *err);
    enum bt_code (*backup_step)(struct journal *j, uint32_t pages, struct journal_backup *ret,
                                struct bt_error *err);
};

/* The first member of each implementation's struct. */
struct journal {
    const struct journal_ops *ops;
    uint64_t boot;
    uint64_t pos; /* of the newest row, the open batch included */
    uint64_t committed_pos;
    struct recent recent;
    bool dirty;
    bool storage_low;
    bool storage_full;
    bool dead;
    struct journal_rewound rewound; /* lost_seq 0 = it was not, or an event reports it */
    uint32_t maps[JOURNAL_MAPS_MAX], maps_n;
    bool strays; /* shard 0 has plans whose ids do not name it */
    char note[JOURNAL_NOTE_MAX];
    struct bt_error why;   /* why it is dead */
    journal_wait_fn waits; /* NULL: nobody is called */
    void *waits_self;
};

/* BT_IO with the reason when the journal is dead. */
BT_MUST_CHECK enum bt_code journal_check_alive(const struct journal *j, struct bt_error *err);
/* Applies the result of a write to the journal's state. */
BT_MUST_CHECK enum bt_code journal_after_write(struct journal *j, enum bt_code code,
                                               struct bt_error *err, const struct bt_error *why);

static inline void journal_die(struct journal *j, const struct bt_error *why)
{
    j->dead = true;
    j->why = *why;
}
#endif

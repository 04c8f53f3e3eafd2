/* The journal of the house can fail: the n-th write from now does, or the n-th read. */
#include "protocol/base/clock.h"
#include "tests/support/house/house_internal.h"

static struct house *watched; /* one at a time: the operations have no place for it */

static bool fails(uint32_t *asked, uint32_t fail_at, const char *why, struct bt_error *err)
{
    ++*asked;
    if (fail_at == 0 || *asked != fail_at) {
        return false;
    }
    (void)err_set(err, BT_IO, "%s", why);
    return true;
}

/* A row that takes its time, for reads that go on over cycles. */
struct slow {
    void *self;
    journal_plan_fn plan;
    journal_row_fn row;
};

static void take_time(void)
{
    const uint64_t until = clock_mono_ns() + watched->slow_us * 1000u;

    while (clock_mono_ns() < until) {
    }
}

static bool slow_plan(const struct journal_plan *p, void *self)
{
    const struct slow *s = self;

    take_time();
    return s->plan(p, s->self);
}

static bool slow_row(const struct journal_row *row, void *self)
{
    const struct slow *s = self;

    take_time();
    return s->row(row, s->self);
}

#define SLOW_PLAN                                                                                  \
    slow_plan, &(struct slow)                                                                      \
    {                                                                                              \
        .self = self, .plan = fn                                                                   \
    }
#define SLOW_ROW                                                                                   \
    slow_row, &(struct slow)                                                                       \
    {                                                                                              \
        .self = self, .row = fn                                                                    \
    }
#define FAILING(name, args, names, asked, fail_at, why)                                            \
    static enum bt_code name##_or_fail args                                                        \
    {                                                                                              \
        return fails(&watched->asked, watched->fail_at, why, err) ? BT_IO                          \
                                                                  : watched->real->name names;     \
    }
#define WRITE(name, args, names) FAILING(name, args, names, writes, fail_at, "the disk is gone")
#define READ(name, args, names)                                                                    \
    FAILING(name, args, names, reads, fail_read_at, "the disk cannot be read")

WRITE(plan_add,
      (struct journal * j, const struct journal_plan *p, uint64_t *ret_ix, struct bt_error *err),
      (j, p, ret_ix, err))
WRITE(plan_status,
      (struct journal * j, uint64_t ix, struct str status, msec ended, struct bt_error *err),
      (j, ix, status, ended, err))
WRITE(session_put, (struct journal * j, const struct journal_session *s, struct bt_error *err),
      (j, s, err))
WRITE(message_add,
      (struct journal * j, struct str session, const struct journal_message *m,
       struct bt_error *err),
      (j, session, m, err))
WRITE(turn_put, (struct journal * j, const struct journal_turn *t, struct bt_error *err),
      (j, t, err))
WRITE(append,
      (struct journal * j, uint64_t pos, const struct journal_row *row, struct bt_error *err),
      (j, pos, row, err))
WRITE(blob_add,
      (struct journal * j, const void *bytes, size_t len, uint64_t *ret_id, struct bt_error *err),
      (j, bytes, len, ret_id, err))
WRITE(schedule_put,
      (struct journal * j, const struct journal_schedule *p, uint64_t *ret_ix,
       struct bt_error *err),
      (j, p, ret_ix, err))
WRITE(schedule_state, (struct journal * j, uint64_t ix, struct str state, struct bt_error *err),
      (j, ix, state, err))
WRITE(schedule_delete, (struct journal * j, uint64_t ix, struct bt_error *err), (j, ix, err))
WRITE(agent_put, (struct journal * j, const struct journal_agent *a, struct bt_error *err),
      (j, a, err))
WRITE(start_put,
      (struct journal * j, struct str name, uint32_t place, uint64_t wall, struct bt_error *err),
      (j, name, place, wall, err))
WRITE(plan_delete,
      (struct journal * j, uint64_t ix, struct str why, msec wall, struct bt_error *err),
      (j, ix, why, wall, err))
WRITE(session_delete,
      (struct journal * j, struct str id, uint32_t limit, bool *ret_more, struct bt_error *err),
      (j, id, limit, ret_more, err))
WRITE(commit, (struct journal * j, struct bt_error *err), (j, err))

READ(plan_by_id,
     (struct journal * j, struct uuid id, struct journal_plan *ret, struct bt_error *err),
     (j, id, ret, err))
READ(plan_head,
     (struct journal * j, struct uuid id, struct journal_plan *ret, struct bt_error *err),
     (j, id, ret, err))
READ(plan_by_key,
     (struct journal * j, struct str key, struct journal_plan *ret, struct bt_error *err),
     (j, key, ret, err))
READ(plans,
     (struct journal * j, struct str status, struct str session, uint64_t before_ix, uint32_t limit,
      journal_plan_fn fn, void *self, struct bt_error *err),
     (j, status, session, before_ix, limit, SLOW_PLAN, err))
READ(plans_between,
     (struct journal * j, struct uuid first, struct uuid last, uint32_t limit, journal_plan_fn fn,
      void *self, struct bt_error *err),
     (j, first, last, limit, SLOW_PLAN, err))
READ(jobs,
     (struct journal * j, struct str session, uint64_t before_ix, uint32_t limit,
      journal_plan_fn fn, void *self, struct bt_error *err),
     (j, session, before_ix, limit, SLOW_PLAN, err))
READ(session,
     (struct journal * j, struct str id, struct journal_session *ret, struct bt_error *err),
     (j, id, ret, err))
READ(sessions,
     (struct journal * j, uint32_t limit, journal_session_fn fn, void *self, struct bt_error *err),
     (j, limit, fn, self, err))
READ(messages,
     (struct journal * j, struct str session, uint64_t last, journal_message_fn fn, void *self,
      struct bt_error *err),
     (j, session, last, fn, self, err))
READ(turn, (struct journal * j, struct uuid id, struct journal_turn *ret, struct bt_error *err),
     (j, id, ret, err))
READ(turn_by_key,
     (struct journal * j, struct str session, struct str key, struct journal_turn *ret,
      struct bt_error *err),
     (j, session, key, ret, err))
READ(turn_of_plan,
     (struct journal * j, struct uuid plan, struct journal_turn *ret, struct bt_error *err),
     (j, plan, ret, err))
READ(blob_get, (struct journal * j, uint64_t id, struct buf *out, struct bt_error *err),
     (j, id, out, err))
READ(events,
     (struct journal * j, uint64_t from_seq, uint64_t plan_ix, uint32_t limit, journal_row_fn fn,
      void *self, struct bt_error *err),
     (j, from_seq, plan_ix, limit, SLOW_ROW, err))
READ(last_row,
     (struct journal * j, uint64_t plan_ix, bool only_public, journal_row_fn fn, void *self,
      struct bt_error *err),
     (j, plan_ix, only_public, fn, self, err))
READ(replay,
     (struct journal * j, uint64_t plan_ix, struct journal_place *place, journal_row_fn fn,
      void *self, struct bt_error *err),
     (j, plan_ix, place, SLOW_ROW, err))
READ(plan_owner, (struct journal * j, uint64_t ix, char *ret, size_t cap, struct bt_error *err),
     (j, ix, ret, cap, err))
READ(turn_key,
     (struct journal * j, struct str session, struct str key, struct uuid *ret,
      struct bt_error *err),
     (j, session, key, ret, err))
READ(schedule_by_name,
     (struct journal * j, struct str name, struct journal_schedule *ret, struct bt_error *err),
     (j, name, ret, err))
READ(agents, (struct journal * j, journal_agent_fn fn, void *self, struct bt_error *err),
     (j, fn, self, err))
READ(gone_by_id,
     (struct journal * j, struct uuid id, struct journal_gone *ret, struct bt_error *err),
     (j, id, ret, err))
READ(plans_ended,
     (struct journal * j, msec after, uint64_t after_ix, uint32_t limit, journal_plan_fn fn,
      void *self, struct bt_error *err),
     (j, after, after_ix, limit, fn, self, err))
READ(plan_heirs,
     (struct journal * j, uint64_t ix, uint64_t *ret, uint32_t max, uint32_t *ret_n,
      struct bt_error *err),
     (j, ix, ret, max, ret_n, err))
READ(size, (struct journal * j, struct journal_size *ret, struct bt_error *err), (j, ret, err))

void house_watch_journal(struct house *h)
{
    watched = h;
    h->real = h->journal->ops;
    h->ops = *h->real;
#define WATCH(name) h->ops.name = h->real->name != NULL ? name##_or_fail : NULL
    WATCH(plan_add);
    WATCH(plan_status);
    WATCH(session_put);
    WATCH(message_add);
    WATCH(turn_put);
    WATCH(append);
    WATCH(blob_add);
    WATCH(schedule_put);
    WATCH(schedule_state);
    WATCH(schedule_delete);
    WATCH(agent_put);
    WATCH(start_put);
    WATCH(plan_delete);
    WATCH(session_delete);
    WATCH(commit);
    WATCH(plan_by_id);
    WATCH(plan_head);
    WATCH(plan_by_key);
    WATCH(plans);
    WATCH(plans_between);
    WATCH(jobs);
    WATCH(session);
    WATCH(sessions);
    WATCH(messages);
    WATCH(turn);
    WATCH(turn_by_key);
    WATCH(turn_of_plan);
    WATCH(blob_get);
    WATCH(events);
    WATCH(last_row);
    WATCH(replay);
    WATCH(plan_owner);
    WATCH(turn_key);
    WATCH(schedule_by_name);
    WATCH(agents);
    WATCH(gone_by_id);
    WATCH(plans_ended);
    WATCH(plan_heirs);
    WATCH(size);
#undef WATCH
    h->journal->ops = &h->ops;
}

void house_fail_write(struct house *h, uint32_t n)
{
    h->writes = 0;
    h->fail_at = n;
}

void house_fail_read(struct house *h, uint32_t n)
{
    h->reads = 0;
    h->fail_read_at = n;
}

/* A journal whose n-th read from now fails. */
#include "tests/support/house/house_internal.h"

static struct house *of; /* one at a time: the operations have no place for it */

static bool fails(struct bt_error *err, enum bt_code *ret)
{
    of->reads++;
    if (of->fail_read_at == 0 || of->reads != of->fail_read_at) {
        return false;
    }
    *ret = err_set(err, BT_IO, "the disk cannot be read");
    return true;
}

#define FAILING(name, args, names)                                                                 \
    static enum bt_code name##_or_fail args                                                        \
    {                                                                                              \
        enum bt_code code;                                                                         \
        return fails(err, &code) ? code : of->real->name names;                                    \
    }

FAILING(plan_by_id,
        (struct journal * j, struct uuid id, struct journal_plan *ret, struct bt_error *err),
        (j, id, ret, err))
FAILING(plan_head,
        (struct journal * j, struct uuid id, struct journal_plan *ret, struct bt_error *err),
        (j, id, ret, err))
FAILING(plan_by_key,
        (struct journal * j, struct str key, struct journal_plan *ret, struct bt_error *err),
        (j, key, ret, err))
FAILING(plans,
        (struct journal * j, struct str status, struct str session, uint64_t before_ix,
         uint32_t limit, journal_plan_fn fn, void *self, struct bt_error *err),
        (j, status, session, before_ix, limit, fn, self, err))
FAILING(plans_between,
        (struct journal * j, struct uuid first, struct uuid last, uint32_t limit,
         journal_plan_fn fn, void *self, struct bt_error *err),
        (j, first, last, limit, fn, self, err))
FAILING(jobs,
        (struct journal * j, struct str session, uint64_t before_ix, uint32_t limit,
         journal_plan_fn fn, void *self, struct bt_error *err),
        (j, session, before_ix, limit, fn, self, err))
FAILING(session,
        (struct journal * j, struct str id, struct journal_session *ret, struct bt_error *err),
        (j, id, ret, err))
FAILING(sessions,
        (struct journal * j, uint32_t limit, journal_session_fn fn, void *self,
         struct bt_error *err),
        (j, limit, fn, self, err))
FAILING(messages,
        (struct journal * j, struct str session, uint64_t last, journal_message_fn fn, void *self,
         struct bt_error *err),
        (j, session, last, fn, self, err))
FAILING(turn, (struct journal * j, struct uuid id, struct journal_turn *ret, struct bt_error *err),
        (j, id, ret, err))
FAILING(turn_by_key,
        (struct journal * j, struct str session, struct str key, struct journal_turn *ret,
         struct bt_error *err),
        (j, session, key, ret, err))
FAILING(turn_of_plan,
        (struct journal * j, struct uuid plan, struct journal_turn *ret, struct bt_error *err),
        (j, plan, ret, err))
FAILING(blob_get, (struct journal * j, uint64_t id, struct buf *out, struct bt_error *err),
        (j, id, out, err))
FAILING(events,
        (struct journal * j, uint64_t from_seq, uint64_t plan_ix, uint32_t limit, journal_row_fn fn,
         void *self, struct bt_error *err),
        (j, from_seq, plan_ix, limit, fn, self, err))
FAILING(last_row,
        (struct journal * j, uint64_t plan_ix, bool only_public, journal_row_fn fn, void *self,
         struct bt_error *err),
        (j, plan_ix, only_public, fn, self, err))
FAILING(replay,
        (struct journal * j, uint64_t plan_ix, struct journal_place *place, journal_row_fn fn,
         void *self, struct bt_error *err),
        (j, plan_ix, place, fn, self, err))
FAILING(size, (struct journal * j, struct journal_size *ret, struct bt_error *err), (j, ret, err))

void house_watch_reads(struct house *h)
{
    of = h;
#define WATCH(name) h->ops.name = h->real->name != NULL ? name##_or_fail : NULL
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
    WATCH(size);
#undef WATCH
}

void house_fail_read(struct house *h, uint32_t n)
{
    h->reads = 0;
    h->fail_read_at = n;
}

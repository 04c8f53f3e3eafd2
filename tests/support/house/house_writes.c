/* The journal of the house can fail to be written: the n-th write of the test does. */
#include "tests/support/house/house_internal.h"

static struct house *watched; /* one at a time: the operations have no place for it */

static bool fails(struct bt_error *err, enum bt_code *ret)
{
    struct house *h = watched;

    h->writes++;
    if (h->fail_at == 0 || h->writes != h->fail_at) {
        return false;
    }
    *ret = err_set(err, BT_IO, "the disk is gone");
    return true;
}

#define FAILING(name, args, names)                                                                 \
    static enum bt_code name##_or_fail args                                                        \
    {                                                                                              \
        enum bt_code code;                                                                         \
        return fails(err, &code) ? code : watched->real->name names;                               \
    }

FAILING(plan_add,
        (struct journal * j, const struct journal_plan *p, uint64_t *ret_ix, struct bt_error *err),
        (j, p, ret_ix, err))
FAILING(plan_status,
        (struct journal * j, uint64_t ix, struct str status, msec ended, struct bt_error *err),
        (j, ix, status, ended, err))
FAILING(session_put, (struct journal * j, const struct journal_session *s, struct bt_error *err),
        (j, s, err))
FAILING(message_add,
        (struct journal * j, struct str session, const struct journal_message *m,
         struct bt_error *err),
        (j, session, m, err))
FAILING(turn_put, (struct journal * j, const struct journal_turn *t, struct bt_error *err),
        (j, t, err))
FAILING(append,
        (struct journal * j, uint64_t pos, const struct journal_row *row, struct bt_error *err),
        (j, pos, row, err))
FAILING(blob_add,
        (struct journal * j, const void *bytes, size_t len, uint64_t *ret_id, struct bt_error *err),
        (j, bytes, len, ret_id, err))
FAILING(commit, (struct journal * j, struct bt_error *err), (j, err))

void house_watch_writes(struct house *h)
{
    watched = h;
    h->real = h->journal->ops;
    h->ops = *h->real;
    h->ops.plan_add = plan_add_or_fail;
    h->ops.plan_status = plan_status_or_fail;
    h->ops.session_put = session_put_or_fail;
    h->ops.message_add = message_add_or_fail;
    h->ops.turn_put = turn_put_or_fail;
    h->ops.append = append_or_fail;
    h->ops.blob_add = blob_add_or_fail;
    h->ops.commit = commit_or_fail;
    h->journal->ops = &h->ops;
}

void house_fail_write(struct house *h, uint32_t n)
{
    h->writes = 0;
    h->fail_at = n;
}

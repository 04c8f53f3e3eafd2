/* The functions of the port that delete, and that copy. */
#include "protocol/base/assert.h"
#include "supervisor/journal/port.h"

enum bt_code journal_plan_delete(struct journal *j, uint64_t plan_ix, struct str why_text,
                                 msec wall, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    recent_clear(&j->recent);
    return code != BT_OK ? code
                         : journal_after_write(
                               j, j->ops->plan_delete(j, plan_ix, why_text, wall, &why), err, &why);
}

enum bt_code journal_gone_by_id(struct journal *j, struct uuid id, struct journal_gone *ret,
                                struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->gone_by_id(j, id, ret, err);
}

enum bt_code journal_plans_ended(struct journal *j, msec after_wall, uint64_t after_ix,
                                 uint32_t limit, journal_plan_fn fn, void *self,
                                 struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    if (code != BT_OK) {
        return code;
    }
    return j->ops->plans_ended(j, after_wall, after_ix, limit, fn, self, err);
}

enum bt_code journal_session_delete(struct journal *j, struct str id, uint32_t limit,
                                    bool *ret_more, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    *ret_more = false;
    return code != BT_OK ? code
                         : journal_after_write(
                               j, j->ops->session_delete(j, id, limit, ret_more, &why), err, &why);
}

enum bt_code journal_sessions_idle(struct journal *j, msec before_wall, uint32_t limit,
                                   journal_session_fn fn, void *self, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->sessions_idle(j, before_wall, limit, fn, self, err);
}

enum bt_code journal_rows_delete(struct journal *j, msec before_wall, uint32_t limit,
                                 uint32_t *ret_n, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    *ret_n = 0;
    if (code == BT_OK) {
        code = journal_after_write(j, j->ops->rows_delete(j, before_wall, limit, ret_n, &why), err,
                                   &why);
    }
    if (*ret_n > 0) {
        recent_clear(&j->recent);
    }
    return code;
}

enum bt_code journal_gone_expire(struct journal *j, msec before_wall, uint32_t limit,
                                 uint32_t *ret_n, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    *ret_n = 0;
    return code != BT_OK
               ? code
               : journal_after_write(j, j->ops->gone_expire(j, before_wall, limit, ret_n, &why),
                                     err, &why);
}

enum bt_code journal_sweep(struct journal *j, uint32_t budget, bool *ret_more, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    *ret_more = false;
    return code != BT_OK
               ? code
               : journal_after_write(j, j->ops->sweep(j, budget, ret_more, &why), err, &why);
}

enum bt_code journal_blobs_unused(struct journal *j, uint64_t *io_after, uint64_t last,
                                  uint32_t limit, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    recent_clear(&j->recent);
    return code != BT_OK ? code
                         : journal_after_write(
                               j, j->ops->blobs_unused(j, io_after, last, limit, &why), err, &why);
}

uint64_t journal_last_blob(const struct journal *j)
{
    return j->ops->last_blob(j);
}

enum bt_code journal_size(struct journal *j, struct journal_size *ret, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->size(j, ret, err);
}

enum bt_code journal_backup_begin(struct journal *j, const char *path, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    if (code == BT_OK && j->ops->backup_begin == NULL) {
        code = err_set(err, BT_INVALID, "this journal has no file to copy");
    }
    return code != BT_OK ? code : j->ops->backup_begin(j, path, err);
}

enum bt_code journal_backup_step(struct journal *j, uint32_t pages, struct journal_backup *ret,
                                 struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    ASSERT(!j->dirty);
    *ret = (struct journal_backup){.done = false};
    return code != BT_OK ? code : j->ops->backup_step(j, pages, ret, err);
}

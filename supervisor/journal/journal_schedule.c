/* The functions of the port for schedules. */
#include "supervisor/journal/journal_internal.h"

enum bt_code journal_schedule_put(struct journal *j, const struct journal_schedule *p,
                                  uint64_t *ret_ix, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->schedule_put(j, p, ret_ix, &why), err, &why);
}

enum bt_code journal_schedule_state(struct journal *j, uint64_t ix, struct str state,
                                    struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->schedule_state(j, ix, state, &why), err, &why);
}

enum bt_code journal_schedule_delete(struct journal *j, uint64_t ix, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->schedule_delete(j, ix, &why), err, &why);
}

enum bt_code journal_schedule_by_name(struct journal *j, struct str name,
                                      struct journal_schedule *ret, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->schedule_by_name(j, name, ret, err);
}

enum bt_code journal_schedules(struct journal *j, uint64_t after, journal_schedule_fn fn,
                               void *self, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->schedules(j, after, fn, self, err);
}

/* The functions of the port for schedules, starts of rates, and agents that are remembered. */
#include "supervisor/journal/port.h"

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

enum bt_code journal_start_put(struct journal *j, struct str name, uint32_t place, uint64_t wall,
                               struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->start_put(j, name, place, wall, &why), err, &why);
}

enum bt_code journal_starts(struct journal *j, uint64_t since, journal_start_fn fn, void *self,
                            struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->starts(j, since, fn, self, err);
}

enum bt_code journal_starts_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->starts_drop(j, before, &why), err, &why);
}

enum bt_code journal_agent_put(struct journal *j, const struct journal_agent *a,
                               struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->agent_put(j, a, &why), err, &why);
}

enum bt_code journal_agent_drop(struct journal *j, struct str id, bool *ret_found,
                                struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->agent_drop(j, id, ret_found, &why), err, &why);
}

enum bt_code journal_agents_drop(struct journal *j, uint64_t before, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    if (code != BT_OK) {
        return code;
    }
    return journal_after_write(j, j->ops->agents_drop(j, before, &why), err, &why);
}

enum bt_code journal_agents(struct journal *j, journal_agent_fn fn, void *self,
                            struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);
    return code != BT_OK ? code : j->ops->agents(j, fn, self, err);
}

/* The functions of the port for the plans of another journal. */
#include "supervisor/journal/port.h"

enum bt_code journal_plan_blobs(struct journal *j, uint64_t plan_ix, uint64_t after, uint64_t *ret,
                                uint32_t max, uint32_t *ret_n, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    *ret_n = 0;
    return code != BT_OK ? code : j->ops->plan_blobs(j, plan_ix, after, ret, max, ret_n, err);
}

enum bt_code journal_plan_heirs(struct journal *j, uint64_t plan_ix, uint64_t *ret, uint32_t max,
                                uint32_t *ret_n, struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    *ret_n = 0;
    return code != BT_OK || j->ops->plan_heirs == NULL
               ? code
               : j->ops->plan_heirs(j, plan_ix, ret, max, ret_n, err);
}

enum bt_code journal_plan_state(struct journal *j, uint64_t plan_ix, struct str status,
                                msec ended_wall, struct str note, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    return code != BT_OK
               ? code
               : journal_after_write(
                     j, j->ops->plan_state(j, plan_ix, status, ended_wall, note, &why), err, &why);
}

enum bt_code journal_gone_forget(struct journal *j, struct uuid id, struct bt_error *err)
{
    struct bt_error why;
    enum bt_code code = journal_check_alive(j, err);

    return code != BT_OK ? code
                         : journal_after_write(j, j->ops->gone_forget(j, id, &why), err, &why);
}

enum bt_code journal_imports(struct journal *j, uint64_t *ret, uint32_t max, uint32_t *ret_n,
                             struct bt_error *err)
{
    enum bt_code code = journal_check_alive(j, err);

    *ret_n = 0;
    return code != BT_OK || j->ops->imports == NULL ? code
                                                    : j->ops->imports(j, ret, max, ret_n, err);
}

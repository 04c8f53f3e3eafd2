#include "supervisor/planner/planner.h"

#include "supervisor/planner/keyword.h"

static const struct planner_ops *const planners[] = {&keyword_planner};

enum bt_code planner_find(struct str name, struct planner *ret, struct bt_error *err)
{
    for (size_t i = 0; i < sizeof planners / sizeof planners[0]; i++) {
        if (name.len == 0 || str_is(name, planners[i]->name)) {
            *ret = (struct planner){.ops = planners[i], .self = NULL};
            return BT_OK;
        }
    }
    return err_set(err, BT_NOT_FOUND, "there is no planner \"%.*s\"; there is: %s",
                   (int)(name.len < 40 ? name.len : 40), name.ptr, planners[0]->name);
}

enum bt_code planner_plan(const struct planner *p, const struct planner_request *request,
                          struct arena *arena, struct planner_result *ret, struct bt_error *err)
{
    return p->ops->plan(p->self, request, arena, ret, err);
}

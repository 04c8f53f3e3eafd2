/* A goal in words: refused in words, or a plan that passes every check, the same each time. */
#include "house.h"

#include "supervisor/keyword/planner.h"
#include "supervisor/plan/read.h"

enum { PROBLEMS_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum bt_code plan(struct registry *registry, struct str goal, struct arena *arena,
                         struct planner_result *ret)
{
    const struct planner_request request = {
        .goal = goal, .registry = registry, .allow_unrouted = true};
    struct bt_error err = {.code = BT_OK};
    const enum bt_code code = planner_plan(&request, arena, ret, &err);
    require(code == BT_OK || ((code == BT_INVALID || code == BT_LIMIT) && err.msg[0] != '\0'));
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct registry *registry;
    static struct arena kept;
    struct arena arena = {.chunks = NULL};
    struct planner_result first;
    struct planner_result second;
    struct buf goal;
    if (registry == NULL) {
        registry = house(&kept);
    }
    buf_init(&goal, 1 << 20);
    (void)buf_add_repaired(&goal, (struct str){(const char *)data, size});
    if (plan(registry, buf_str(&goal), &arena, &first) == BT_OK) {
        const struct plan_defaults defaults = plan_defaults_builtin();
        struct problem at[PROBLEMS_MAX];
        struct problems problems = {.at = at, .cap = PROBLEMS_MAX};
        struct plan *made = NULL;
        struct bt_error err;
        require(plan_read(first.plan, &defaults, registry, &arena, &made, &problems, NULL, &err) ==
                BT_OK);
        require(made->n_steps == first.n_routes);
        require(plan(registry, buf_str(&goal), &arena, &second) == BT_OK);
        require(first.plan.len == second.plan.len &&
                memcmp(first.plan.ptr, second.plan.ptr, first.plan.len) == 0);
    }
    buf_done(&goal);
    arena_done(&arena);
    return 0;
}

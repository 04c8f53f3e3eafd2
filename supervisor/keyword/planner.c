#include "supervisor/keyword/planner.h"

#include "protocol/base/utf8.h"
#include "registry/card.h"
#include "supervisor/keyword/keyword.h"

static const struct planner_ops *const planners[] = {&keyword_planner};

/* An answer that is no plan is sent back once, with what is wrong. */
enum { REPAIRS = 1, NAME_SHOWN = 80 };

static enum bt_code unknown(struct str name, struct bt_error *err)
{
    return err_set(err, BT_NOT_FOUND,
                   "there is no planner \"%.*s\"; there are: keyword, llm, agent, agent:<id>",
                   (int)utf8_cut(name.ptr, name.len, NAME_SHOWN), name.ptr);
}

enum bt_code planner_choose(struct str name, struct planner_choice *ret, struct bt_error *err)
{
    static const char prefix[] = "agent:";
    const size_t n = sizeof prefix - 1;
    struct planner_choice choice = {.asks_agent = true, .agent = {.repairs = REPAIRS}};
    if (name.len == 0 || str_is(name, "keyword")) {
        choice = (struct planner_choice){.asks_agent = false};
    } else if (str_is(name, "llm")) {
        choice.agent.agent_id = STR_LIT(PLAN_ORCHESTRATOR);
    } else if (name.len >= n && memcmp(name.ptr, prefix, n) == 0) {
        choice.agent.agent_id = (struct str){name.ptr + n, name.len - n};
        if (!card_id_ok(choice.agent.agent_id)) {
            return err_set(err, BT_INVALID,
                           "planner \"%.*s\": \"agent:\" needs an agent's id behind it, 1 to 64 of "
                           "A-Z a-z 0-9 _ . -",
                           (int)utf8_cut(name.ptr, name.len, NAME_SHOWN), name.ptr);
        }
    } else if (str_is(name, "file")) {
        return err_set(err, BT_INVALID,
                       "a plan or a recipe from a file is given as the plan, not as a planner");
    } else if (!str_is(name, "agent")) {
        return unknown(name, err);
    }
    *ret = choice;
    return BT_OK;
}

enum bt_code planner_find(struct str name, struct planner *ret, struct bt_error *err)
{
    struct planner_choice choice = {.asks_agent = false};
    const enum bt_code code = planner_choose(name, &choice, err);
    if (code != BT_OK) {
        return code;
    }
    if (choice.asks_agent) {
        return err_set(err, BT_INVALID,
                       "planner \"%.*s\" asks an agent, which only a daemon does that runs the "
                       "plan; to see the plan alone, submit the goal as a dry run",
                       (int)utf8_cut(name.ptr, name.len, NAME_SHOWN), name.ptr);
    }
    for (size_t i = 0; i < sizeof planners / sizeof planners[0]; i++) {
        if (name.len == 0 || str_is(name, planners[i]->name)) {
            *ret = (struct planner){.ops = planners[i], .self = NULL};
            return BT_OK;
        }
    }
    return unknown(name, err);
}

enum bt_code planner_plan(const struct planner *p, const struct planner_request *request,
                          struct arena *arena, struct planner_result *ret, struct bt_error *err)
{
    return p->ops->plan(p->self, request, arena, ret, err);
}

#include "supervisor/keyword/planner.h"

#include "protocol/base/utf8.h"
#include "registry/card.h"

/* An answer that is no plan goes back once, with its problems. */
enum { REPAIRS = 1, NAME_SHOWN = 80 };

enum bt_code planner_choose(struct str name, struct planner_choice *ret, struct bt_error *err)
{
    static const char prefix[] = "agent:";
    const size_t n = sizeof prefix - 1;
    const int shown = (int)utf8_cut(name.ptr, name.len, NAME_SHOWN);
    struct planner_choice choice = {.asks_agent = true, .agent = {.repairs = REPAIRS}};

    if (name.len == 0 || str_is(name, "keyword")) {
        choice = (struct planner_choice){.asks_agent = false};
    } else if (str_is(name, "llm")) {
        choice.agent.agent_id = STR_LIT(PLAN_ORCHESTRATOR);
    } else if (name.len >= n && memcmp(name.ptr, prefix, n) == 0) {
        choice.agent.agent_id = (struct str){name.ptr + n, name.len - n};
        if (!card_id_ok(choice.agent.agent_id)) {
            return err_set(err, BT_INVALID,
                           "planner \"%.*s\": after \"agent:\" comes an agent's id, 1 to 64 of "
                           "A-Z a-z 0-9 _ . -",
                           shown, name.ptr);
        }
    } else if (str_is(name, "file")) {
        return err_set(err, BT_INVALID,
                       "a plan or a recipe from a file is given as the plan, not as a planner");
    } else if (!str_is(name, "agent")) {
        return err_set(err, BT_NOT_FOUND,
                       "there is no planner \"%.*s\"; there are: keyword, llm, agent, agent:<id>",
                       shown, name.ptr);
    }
    *ret = choice;
    return BT_OK;
}

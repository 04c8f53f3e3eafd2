#include "agents/llm/plan_check.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

static const char *text(const cJSON *map, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static const cJSON *member(const cJSON *map, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(map, name);
}

/* The object of a list whose member has this text; NULL when there is none. */
static const cJSON *find(const cJSON *list, const char *name, const char *value)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, list)
    {
        const char *has = text(item, name);
        if (has != NULL && strcmp(has, value) == 0) {
            return item;
        }
    }
    return NULL;
}

/* Writes "a, b, c", as far as it fits. */
static void list_ids(const cJSON *list, const char *name, char *ret, size_t room)
{
    const cJSON *item = NULL;
    size_t n = 0;

    ret[0] = 0;
    cJSON_ArrayForEach(item, list)
    {
        const char *id = text(item, name);
        size_t len = id == NULL ? 0 : strlen(id);
        if (len == 0 || n + len + 3 > room) {
            continue;
        }
        n += (size_t)snprintf(ret + n, room - n, "%s%s", n == 0 ? "" : ", ", id);
    }
}

static enum bt_code check_agent(const cJSON *agents, const cJSON *step, struct bt_error *err)
{
    const char *agent_id = text(step, "agentId");
    const char *skill = text(step, "skill");
    const cJSON *agent = find(agents, "agentId", agent_id);
    char known[200];

    if (agent == NULL) {
        list_ids(agents, "agentId", known, sizeof known);
        return err_set(err, BT_INVALID, "agent '%.64s' may not be used; expected one of %s",
                       agent_id, known);
    }
    if (skill != NULL && skill[0] != 0 && find(member(agent, "skills"), "id", skill) == NULL) {
        list_ids(member(agent, "skills"), "id", known, sizeof known);
        return err_set(err, BT_INVALID, "agent '%.64s' has no skill '%.64s'; it has %s", agent_id,
                       skill, known[0] != 0 ? known : "none");
    }
    return BT_OK;
}

static enum bt_code check_depends(const cJSON *steps, const cJSON *completed, const cJSON *step,
                                  struct bt_error *err)
{
    const cJSON *id = NULL;

    cJSON_ArrayForEach(id, member(step, "dependsOn"))
    {
        if (cJSON_IsString(id) && find(steps, "stepId", id->valuestring) == NULL &&
            find(completed, "stepId", id->valuestring) == NULL) {
            return err_set(err, BT_INVALID,
                           "dependsOn '%.64s': there is no such step in this plan, nor a completed "
                           "one",
                           id->valuestring);
        }
    }
    return BT_OK;
}

/* Removes steps whose dependencies are removed until none changes: the rest is a cycle (Kahn's
 * algorithm). */
static enum bt_code check_circles(const cJSON *steps, struct bt_error *err)
{
    bool gone[PLAN_STEPS_MAX] = {0};
    const cJSON *stuck = NULL;

    for (bool moved = true; moved;) {
        const cJSON *step = NULL;
        uint32_t i = 0;
        moved = false;
        stuck = NULL;
        cJSON_ArrayForEach(step, steps)
        {
            const cJSON *id = NULL;
            bool free_now = true;
            cJSON_ArrayForEach(id, member(step, "dependsOn"))
            {
                uint32_t k = 0;
                const cJSON *other = NULL;
                cJSON_ArrayForEach(other, steps)
                {
                    const char *has = text(other, "stepId");
                    if (!gone[k] && cJSON_IsString(id) && has != NULL &&
                        strcmp(has, id->valuestring) == 0) {
                        free_now = false;
                    }
                    k++;
                }
            }
            if (!gone[i] && free_now) {
                gone[i] = moved = true;
            }
            stuck = gone[i] ? stuck : step;
            i++;
        }
    }
    return stuck == NULL ? BT_OK
                         : err_set(err, BT_INVALID, "step '%.64s' depends on itself, in a circle",
                                   text(stuck, "stepId"));
}

static enum bt_code check_reuse(const cJSON *completed, const cJSON *reuse, struct bt_error *err)
{
    const cJSON *id = NULL;

    cJSON_ArrayForEach(id, reuse)
    {
        if (cJSON_IsString(id) && find(completed, "stepId", id->valuestring) == NULL) {
            return err_set(err, BT_INVALID, "reuse '%.64s': no completed step has this id",
                           id->valuestring);
        }
    }
    return BT_OK;
}

enum bt_code plan_check(const cJSON *question, const cJSON *plan, struct bt_error *err)
{
    const cJSON *steps = member(plan, "steps");
    const cJSON *completed = member(question, "completed");
    const cJSON *step = NULL;
    enum bt_code code = check_reuse(completed, member(plan, "reuse"), err);

    if (code == BT_OK && cJSON_GetArraySize(steps) == 0 &&
        (text(plan, "impossible") == NULL || text(plan, "impossible")[0] == 0)) {
        code =
            err_set(err, BT_INVALID,
                    "steps: is empty; give at least one, or say in impossible why there is no way");
    }
    if (code == BT_OK && cJSON_GetArraySize(steps) > PLAN_STEPS_MAX) {
        code = err_set(err, BT_INVALID, "%d steps; at most %d", cJSON_GetArraySize(steps),
                       PLAN_STEPS_MAX);
    }
    if (code != BT_OK) {
        return code;
    }
    cJSON_ArrayForEach(step, steps)
    {
        const char *id = text(step, "stepId");
        if (find(steps, "stepId", id) != step) {
            return err_set(err, BT_INVALID, "two steps have the stepId '%.64s'", id);
        }
        code = check_agent(member(question, "agents"), step, err);
        if (code == BT_OK) {
            code = check_depends(steps, completed, step, err);
        }
        if (code != BT_OK) {
            return err_wrap(err, "step '%.64s'", id);
        }
    }
    return check_circles(steps, err);
}

#include "supervisor/cli/verbs/agents/skill.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"

enum { SKILLS_MAX = 64, LISTED = 400 };

static const cJSON *skills_of(const cJSON *answer)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(answer, "card"),
                                            "skills");
}

/* "a, b, c" */
static void list_skills(const cJSON *list, char *ret, size_t cap)
{
    const cJSON *s;
    size_t n = 0;

    ret[0] = 0;
    cJSON_ArrayForEach(s, list)
    {
        const char *id = json_text(s, "id", "");
        if (n + strlen(id) + 3 < cap) {
            n += (size_t)snprintf(ret + n, cap - n, "%s%s", n > 0 ? ", " : "", id);
        }
    }
}

static enum cli_exit not_found(const cJSON *list, const char *agent, const char *id)
{
    const char *names[SKILLS_MAX + 1];
    const char *near;
    const cJSON *s;
    int n = 0;

    cJSON_ArrayForEach(s, list)
    {
        if (n < SKILLS_MAX) {
            names[n++] = json_text(s, "id", "");
        }
    }
    names[n] = NULL;
    near = cli_did_you_mean(id, names);
    cli_error_hint("see: baton agents AGENT_ID", "agent %s has no skill '%s'%s%s%s", agent, id,
                   near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
    return CLI_NOT_FOUND;
}

static enum cli_exit find_only(const cJSON *list, const char *agent, const cJSON **ret)
{
    char ids[LISTED];

    if (cJSON_GetArraySize(list) == 1) {
        *ret = list->child;
        return CLI_OK;
    }
    list_skills(list, ids, sizeof ids);
    cli_error("agent %s has %d skills; name one of them%s%s", agent, cJSON_GetArraySize(list),
              ids[0] != 0 ? ": " : "", ids);
    return CLI_USAGE;
}

enum cli_exit skill_find(struct cli *cli, const char *agent, const char *id, cJSON **ret_answer,
                         const cJSON **ret)
{
    const enum cli_exit code =
        cli_call(cli, "agents.get", cli_fields("agentId", agent), ret_answer);
    const cJSON *s;

    *ret = NULL;
    if (code != CLI_OK) {
        return code;
    }
    if (id == NULL) {
        return find_only(skills_of(*ret_answer), agent, ret);
    }
    cJSON_ArrayForEach(s, skills_of(*ret_answer))
    {
        *ret = strcmp(json_text(s, "id", ""), id) == 0 ? s : *ret;
    }
    return *ret != NULL ? CLI_OK : not_found(skills_of(*ret_answer), agent, id);
}

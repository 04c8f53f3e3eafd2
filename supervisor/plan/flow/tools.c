#include "supervisor/plan/flow/tools.h"

#include <string.h>

#include "protocol/limits.h"

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '.' || c == '-')) {
            return false;
        }
    }
    return s.len > 0 && s.len <= LIMIT_ID_BYTES;
}

bool plan_tool_split(struct str tool, struct str *agent, struct str *skill)
{
    const char *slash = tool.len > 0 ? memchr(tool.ptr, '/', tool.len) : NULL;
    *agent = tool;
    *skill = (struct str){"", 0};
    if (slash != NULL) {
        agent->len = (size_t)(slash - tool.ptr);
        *skill = (struct str){slash + 1, tool.len - agent->len - 1};
    }
    return is_name(*agent) && (slash == NULL || is_name(*skill));
}

struct str plan_tool_entry(struct doc entry, bool *ret_approval)
{
    const struct doc approval = doc_get(entry, STR_LIT("approval"));
    *ret_approval = false;
    if (doc_head(entry).kind == DOC_STR) {
        return doc_string(entry);
    }
    *ret_approval = approval.ptr != NULL && doc_head(approval).b;
    return doc_string(doc_get(entry, STR_LIT("tool")));
}

bool plan_tool_permitted(struct doc tools, struct str agent_id, struct str skill,
                         bool *ret_approval)
{
    struct doc_cursor c = doc_cursor(tools);
    struct doc_head head = {.n = 0};
    bool found = tools.ptr == NULL;
    bool exact = false;

    *ret_approval = false;
    if (tools.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return found;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        bool approval;
        struct str agent;
        struct str of;
        const struct str tool = plan_tool_entry(doc_skip(&c), &approval);
        if (!plan_tool_split(tool, &agent, &of) || !str_eq(agent, agent_id) ||
            (of.len > 0 ? !str_eq(of, skill) : exact)) {
            continue;
        }
        /* Two entries about the same: the stricter one. */
        *ret_approval = approval || (*ret_approval && exact == (of.len > 0));
        exact = of.len > 0;
        found = true;
    }
    return found;
}

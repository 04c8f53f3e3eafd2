#include "supervisor/dispatch/calls.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "protocol/jsonschema/schema.h"
#include "protocol/wire/mp_validate.h"
#include "registry/card.h"
#include "supervisor/dispatch/artifacts.h"
#include "supervisor/dispatch/results.h"
#include "supervisor/plan/flow/tools.h"

enum {
    PROBLEMS_TOLD = 3,
    TOOLS_TOLD = 40,
    TOOLS_MAX = 128,
    DESCRIPTION_MAX = 600,
    TOOL_BYTES = 1024, /* of a tool without its schema, at most */
    SCHEMAS_ROOM = CALLS_TOOLS_MAX - TOOLS_MAX * TOOL_BYTES /* of all input schemas together */
};

/* Skills that only the supervisor asks for, and skills that may call others. */
#define ASKED_TAG "x-baton-asked"
#define CALLS_TAG "x-baton-calls"

/* Who calls, and what it may call. */
struct caller {
    struct engine *engine;
    const struct open_plan *p;
    uint32_t step;
    uint32_t agent;
    struct str skill; /* that does the step */
};

struct tool {
    struct str agent_id;
    const struct msg_skill *skill;
    bool approval;
};

/* NULL = no card, or no such skill. Empty: its only one. */
static const struct msg_skill *calls_skill(struct engine *engine, uint32_t agent, struct str skill)
{
    const struct msg_card *card = agent < registry_agents(engine_registry(engine))
                                      ? registry_agent_view(engine_registry(engine), agent).card
                                      : NULL;
    uint32_t ix;

    if (card == NULL) {
        return NULL;
    }
    ix = card_skill(card, skill);
    ix = ix == UINT32_MAX && skill.len == 0 && card->skills_n == 1 ? 0 : ix;
    return ix == UINT32_MAX ? NULL : &card->skills[ix];
}

static bool is_tagged(const struct msg_skill *skill, const char *tag)
{
    for (uint32_t i = 0; i < skill->tags_n; i++) {
        if (str_is(skill->tags[i], tag)) {
            return true;
        }
    }
    return false;
}

/* The n-th tool of the caller, from 0; false when there are no more. */
static bool calls_tool(const struct caller *c, uint32_t n, struct tool *ret)
{
    const struct plan *plan = c->p->plan;
    const struct registry *registry = engine_registry(c->engine);

    for (uint32_t i = 0; i < plan->agents.n; i++) {
        const struct msg_card *card = plan->agents.at[i] < registry_agents(registry)
                                          ? registry_agent_view(registry, plan->agents.at[i]).card
                                          : NULL;
        for (uint32_t k = 0; card != NULL && k < card->skills_n; k++) {
            const struct msg_skill *skill = &card->skills[k];
            const bool own = plan->agents.at[i] == c->agent && str_eq(skill->id, c->skill);
            if (own || is_tagged(skill, ASKED_TAG) ||
                !plan_tool_permitted(plan->steps[c->step].rules->tools, plan->agents.ids[i],
                                     skill->id, &ret->approval)) {
                continue;
            }
            if (n-- == 0) {
                ret->agent_id = plan->agents.ids[i];
                ret->skill = skill;
                return true;
            }
        }
    }
    return false;
}

/* ---- tools ---- */

static void list_tools(const struct caller *c, struct buf *why)
{
    struct tool tool;

    for (uint32_t i = 0; i < TOOLS_TOLD && calls_tool(c, i, &tool); i++) {
        buf_printf(why, "%s%.*s/%.*s", i > 0 ? ", " : "", STR_ARG(tool.agent_id),
                   STR_ARG(tool.skill->id));
    }
}

static bool find_tool(const struct caller *c, struct str agent_id, struct str skill,
                      struct tool *ret, struct buf *why)
{
    for (uint32_t i = 0; calls_tool(c, i, ret); i++) {
        if (str_eq(ret->agent_id, agent_id) && str_eq(ret->skill->id, skill)) {
            return true;
        }
    }
    buf_printf(why, "there is no tool %.*s/%.*s here; there %s", STR_ARG(agent_id), STR_ARG(skill),
               calls_tool(c, 0, ret) ? "are: " : "is none at all");
    list_tools(c, why);
    return false;
}

/* ---- parameters ---- */

/* As in a plan, a name that the schema does not have is a mistake unless the schema permits it. */
static void check_names(const cJSON *rules, const cJSON *value, struct buf *why)
{
    const cJSON *known = cJSON_GetObjectItemCaseSensitive(rules, "properties");
    const cJSON *item = NULL;

    if (!cJSON_IsObject(known) ||
        cJSON_GetObjectItemCaseSensitive(rules, "additionalProperties") != NULL ||
        cJSON_GetObjectItemCaseSensitive(rules, "patternProperties") != NULL) {
        return;
    }
    cJSON_ArrayForEach(item, value)
    {
        if (cJSON_GetObjectItemCaseSensitive(known, item->string) != NULL) {
            continue;
        }
        buf_printf(why, "%sparameters/%.80s: there is no such parameter; there are: ",
                   why->len > 0 ? "; " : "", item->string);
        for (const cJSON *k = known->child; k != NULL; k = k->next) {
            buf_printf(why, "%s%.80s", k == known->child ? "" : ", ", k->string);
        }
    }
}

/* A schema that cannot be compiled is not the call's fault: the agent checks the values itself. */
static enum bt_code check_parameters(const struct msg_skill *skill, struct doc parameters,
                                     struct buf *why, struct bt_error *err)
{
    static const uint8_t empty_map[] = {0x80};
    const struct doc given =
        parameters.ptr != NULL ? parameters : (struct doc){empty_map, sizeof empty_map};
    struct schema_problem problems[PROBLEMS_TOLD + 1]; /* one more tells that there are more */
    struct schema *schema = NULL;
    cJSON *rules = NULL;
    cJSON *value = NULL;
    uint32_t n = 0;
    enum bt_code code = BT_OK;

    if (doc_head(given).kind != DOC_MAP) {
        buf_add_cstr(why, "parameters: expected a map");
        return BT_OK;
    }
    if (skill->input_schema.ptr == NULL) {
        return BT_OK;
    }
    code = doc_to_cjson(skill->input_schema, &rules, err);
    code = code == BT_OK ? doc_to_cjson(given, &value, err) : code;
    if (code == BT_OK) {
        check_names(rules, value, why);
    }
    if (code == BT_OK && why->len == 0 && schema_compile(rules, &schema, err) == BT_OK) {
        code = schema_check(schema, value, problems, PROBLEMS_TOLD + 1, &n, err);
        for (uint32_t i = 0; code == BT_INVALID && i < n && i < PROBLEMS_TOLD; i++) {
            buf_printf(why, "%sparameters%s %s", i > 0 ? "; " : "", problems[i].path,
                       problems[i].message);
        }
        buf_add_cstr(why, code == BT_INVALID && n > PROBLEMS_TOLD ? "; and more" : "");
    }
    schema_free(schema);
    cJSON_Delete(rules);
    cJSON_Delete(value);
    return code == BT_NOMEM ? code : BT_OK;
}

/* ---- a call that was made before ---- */

static bool is_same(const struct msg_call *call, struct doc was)
{
    return str_eq(doc_string(doc_get(was, STR_LIT("agentId"))), call->agent_id) &&
           str_eq(doc_string(doc_get(was, STR_LIT("skill"))), call->skill) &&
           doc_eq(doc_get(was, STR_LIT("parameters")), call->parameters);
}

/* In each of the last turns. A plan is never the same: it may be what is left of another. */
static bool is_repeated(const struct msg_call *call, struct doc before)
{
    const uint32_t n = before.ptr != NULL ? doc_head(before).n : 0;

    if (call->plan.ptr != NULL || n < CALLS_SAME_MAX) {
        return false;
    }
    for (uint32_t i = n - CALLS_SAME_MAX; i < n; i++) {
        const struct doc calls = doc_get(doc_at(before, i), STR_LIT("calls"));
        bool found = false;
        for (uint32_t k = 0; k < doc_head(calls).n && !found; k++) {
            found = is_same(call, doc_at(calls, k));
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* ---- a plan ---- */

static const char *const step_members[] = {"stepId",     "agentId",   "skill", "task",
                                           "parameters", "dependsOn", NULL};

static bool is_member(struct str key)
{
    for (size_t i = 0; step_members[i] != NULL; i++) {
        if (str_is(key, step_members[i])) {
            return true;
        }
    }
    return false;
}

/* A step as the plan inside has it: with the approval that the tool needs, and the same tools for
 * agents that call others. */
static bool put_step(const struct caller *c, struct doc step, uint32_t i, struct buf *out,
                     struct buf *why)
{
    const struct doc tools = c->p->plan->steps[c->step].rules->tools;
    struct doc_cursor at = doc_cursor(step);
    struct doc_head head;
    struct tool tool;

    if (!doc_next(&at, &head) || head.kind != DOC_MAP) {
        buf_printf(why, "plan.steps[%u]: expected a map", i);
        return false;
    }
    for (uint32_t k = 0; k < head.n; k++) {
        const struct str key = doc_string(doc_skip(&at));
        (void)doc_skip(&at);
        if (!is_member(key)) {
            buf_printf(why,
                       "plan.steps[%u].%.*s: not here; a step has stepId, agentId, skill, task, "
                       "parameters and dependsOn",
                       i, (int)(key.len < 64 ? key.len : 64), key.ptr);
            return false;
        }
    }
    if (!find_tool(c, doc_string(doc_get(step, STR_LIT("agentId"))),
                   doc_string(doc_get(step, STR_LIT("skill"))), &tool, why)) {
        return false;
    }
    const bool inherits = is_tagged(tool.skill, CALLS_TAG) && tools.ptr != NULL;
    doc_put_map(out, head.n + (tool.approval ? 1u : 0) + (inherits ? 1u : 0));
    at = doc_cursor(step);
    (void)doc_next(&at, &head);
    for (uint32_t k = 0; k < 2 * head.n; k++) {
        doc_put_doc(out, doc_skip(&at));
    }
    if (tool.approval) {
        doc_put_cstr(out, "requiresApproval");
        doc_put_bool(out, true);
    }
    if (inherits) {
        doc_put_cstr(out, "tools");
        doc_put_doc(out, tools);
    }
    return true;
}

static bool put_plan(const struct caller *c, struct doc plan, struct buf *out, struct buf *why)
{
    const struct doc steps = doc_get(plan, STR_LIT("steps"));
    const struct str goal = doc_string(doc_get(plan, STR_LIT("goal")));
    const struct doc_head head = steps.ptr != NULL ? doc_head(steps) : (struct doc_head){.n = 0};

    if (steps.ptr == NULL || head.kind != DOC_ARRAY || head.n == 0 || head.n > CALLS_PLAN_STEPS) {
        buf_printf(why, "plan.steps: expected a list of 1 to %d steps", (int)CALLS_PLAN_STEPS);
        return false;
    }
    doc_put_map(out, 3);
    doc_put_cstr(out, "policy"); /* what completed is told, also when a step failed */
    doc_put_map(out, 1);
    doc_put_cstr(out, "onFailure");
    doc_put_cstr(out, "continue");
    doc_put_cstr(out, "goal");
    doc_put_str(out, goal.len > 0 ? goal : STR_LIT("A plan of an agent"));
    doc_put_cstr(out, "steps");
    doc_put_array(out, head.n);
    for (uint32_t i = 0; i < head.n; i++) {
        if (!put_step(c, doc_at(steps, i), i, out, why)) {
            return false;
        }
    }
    return true;
}

/* ---- together ---- */

static void put_text(struct buf *out, const char *name, struct str text, uint32_t *io_n)
{
    if (text.len > 0) {
        doc_put_cstr(out, name);
        doc_put_str(out, text);
        ++*io_n;
    }
}

static void put_doc(struct buf *out, const char *name, struct doc value, uint32_t *io_n)
{
    if (value.ptr != NULL) {
        doc_put_cstr(out, name);
        doc_put_doc(out, value);
        ++*io_n;
    }
}

static enum bt_code judge(const struct caller *c, const struct msg_call *call, struct doc before,
                          struct buf *plan, bool *ret_approval, struct buf *why,
                          struct bt_error *err)
{
    struct tool tool = {.approval = false};
    enum bt_code code = BT_OK;

    if (call->plan.ptr != NULL) {
        (void)put_plan(c, call->plan, plan, why);
    } else if (find_tool(c, call->agent_id, call->skill, &tool, why)) {
        code = check_parameters(tool.skill, call->parameters, why, err);
        *ret_approval = tool.approval;
    }
    if (code == BT_OK && why->len == 0 && is_repeated(call, before)) {
        buf_add_cstr(why, "the same call was made in the two turns before this one: its result "
                          "stands there. Use it, or do something else");
    }
    return code;
}

static enum bt_code check_call(const struct caller *c, const struct msg_call *call,
                               struct doc before, struct buf *out, struct bt_error *err)
{
    struct buf members;
    struct buf plan;
    struct buf why;
    bool approval = false;
    uint32_t n = 0;
    enum bt_code code;

    buf_init(&members, CALLS_TRANSCRIPT_MAX);
    buf_init(&plan, CALLS_TRANSCRIPT_MAX);
    buf_init(&why, 8192);
    code = judge(c, call, before, &plan, &approval, &why, err);
    put_text(&members, "id", call->id, &n);
    put_text(&members, "agentId", call->agent_id, &n);
    put_text(&members, "skill", call->skill, &n);
    put_text(&members, "task", call->task, &n);
    put_doc(&members, "parameters", call->parameters, &n);
    if (call->plan.ptr != NULL) {
        put_doc(&members, "plan", why.len == 0 ? doc_from_buf(&plan) : call->plan, &n);
    }
    if (approval) {
        doc_put_cstr(&members, "approval");
        doc_put_bool(&members, true);
        n++;
    }
    put_text(&members, "error", buf_str(&why), &n);
    doc_put_map(out, n);
    buf_add(out, members.at, members.len);
    out->bad = out->bad != BT_OK ? out->bad : members.bad != BT_OK ? members.bad : plan.bad;
    buf_done(&why);
    buf_done(&plan);
    buf_done(&members);
    return code;
}

/* ---- the answer ---- */

/* Whoever got the step by a handoff or a fallback may do it with another skill. */
static bool may_call(const struct caller *c)
{
    const struct msg_skill *skill = calls_skill(c->engine, c->agent, c->skill);
    const struct msg_card *card = registry_agent_view(engine_registry(c->engine), c->agent).card;
    bool any = false;

    for (uint32_t i = 0; card != NULL && i < card->skills_n; i++) {
        any = any || is_tagged(&card->skills[i], CALLS_TAG);
    }
    return skill != NULL ? is_tagged(skill, CALLS_TAG) : any;
}

/* What is wrong with the answer as a whole: the agent does not keep to the protocol. */
static bool is_invalid(const struct caller *c, const struct msg_step_result *m, struct buf *text)
{
    if (!may_call(c)) {
        buf_printf(text, "outcome calls from skill \"%.*s\", whose card has no tag " CALLS_TAG "",
                   STR_ARG(c->skill));
    } else if (m->calls_n == 0) {
        buf_add_cstr(text, "outcome calls without `calls`: [{id, agentId, skill, parameters}]");
    } else if (m->calls_n > LIMIT_CALLS) {
        buf_printf(text, "%u calls in one turn, at most %d", m->calls_n, LIMIT_CALLS);
    }
    for (uint32_t i = 0; i < m->calls_n && text->len == 0; i++) {
        const struct msg_call *call = &m->calls[i];
        bool twice = false;
        for (uint32_t k = 0; k < i; k++) {
            twice = twice || str_eq(m->calls[k].id, call->id);
        }
        if (!card_id_ok(call->id) || twice) {
            buf_printf(text, "calls[%u].id: %s", i,
                       twice ? "another call of the turn has it"
                             : "expected 1 to 64 of A-Z a-z 0-9 _ . -");
        } else if ((call->plan.ptr != NULL) == (call->agent_id.len > 0)) {
            buf_printf(text, "calls[%u]: expected either agentId and skill, or plan", i);
        }
    }
    return text->len > 0;
}

static enum bt_code put_turns(const struct caller *c, const struct msg_step_result *m,
                              struct doc before, struct buf *out, struct bt_error *err)
{
    const uint32_t n = before.ptr != NULL ? doc_head(before).n : 0;
    const struct msg_part part = {MSG_result, &m->result};
    const bool said = msg_has(m, step_result, result);
    enum bt_code code = BT_OK;

    doc_put_array(out, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        doc_put_doc(out, doc_at(before, i));
    }
    doc_put_map(out, said ? 2 : 1);
    if (said) {
        doc_put_cstr(out, "result");
        code = msg_write(out, WIRE_MSGPACK, &part, 1, err);
    }
    doc_put_cstr(out, "calls");
    doc_put_array(out, m->calls_n);
    for (uint32_t i = 0; i < m->calls_n && code == BT_OK; i++) {
        code = check_call(c, &m->calls[i], before, out, err);
    }
    return code;
}

enum bt_code calls_take(struct engine *engine, const struct msg_step_result *m,
                        struct core_event *ev, struct buf *text, struct bt_error *err)
{
    /* In an assignment the turns stand one level down. */
    static const struct mp_limits nesting = {.depth = LIMIT_DEPTH - 1, .nodes = LIMIT_NODES / 2};
    const struct open_plan *p = open_plan_of_run(engine, ev->run);
    const struct run_step *row = &((const struct run *)core_block_run(p->block))->steps[ev->step];
    const struct caller c = {.engine = engine,
                             .p = p,
                             .step = ev->step,
                             .agent = row->agent,
                             .skill = p->plan->steps[ev->step].skill};
    struct doc before;
    struct buf turns;
    enum bt_code code;

    if (is_invalid(&c, m, text)) {
        result_invalid(ev, buf_str(text));
        return BT_OK;
    }
    code = engine_result_doc(engine, run_transcript(row), &before, err);
    buf_init(&turns, CALLS_TRANSCRIPT_MAX);
    if (code == BT_OK) {
        code = put_turns(&c, m, before, &turns, err);
    }
    if (turns.bad == BT_LIMIT || (code == BT_OK && buf_check(&turns, err) == BT_OK &&
                                  mp_validate(turns.at, turns.len, &nesting, NULL) != BT_OK)) {
        result_invalid(ev, STR_LIT("calls_too_large: the turns of a step have at most 2 MiB, and "
                                   "are nested at most 15 levels deep"));
        code = BT_OK;
    } else if (code == BT_OK && (code = buf_check(&turns, err)) == BT_OK) {
        CORE_EV(ev, result)->outcome = STEP_OUTCOME_CALLS;
        CORE_EV(ev, result)->calls = m->calls_n;
        code = engine_result_store(engine, &turns, &CORE_EV(ev, result)->result, err);
    }
    buf_done(&turns);
    return code;
}

/* ---- what the agent is told ---- */

static void put_tool(const struct tool *tool, size_t *io_room, struct buf *out)
{
    const struct msg_skill *s = tool->skill;
    const bool schema = s->input_schema.ptr != NULL && s->input_schema.len <= *io_room;

    doc_put_map(out, 4 + (schema ? 1u : 0) + (tool->approval ? 1u : 0));
    assignment_put(out, "agentId", tool->agent_id, LIMIT_ID_BYTES);
    assignment_put(out, "skill", s->id, LIMIT_ID_BYTES);
    assignment_put(out, "description", s->description, DESCRIPTION_MAX);
    assignment_put(out, "effects", s->effects.len > 0 ? s->effects : STR_LIT("idempotent"), 16);
    if (schema) {
        *io_room -= s->input_schema.len;
        doc_put_cstr(out, "inputSchema");
        doc_put_doc(out, s->input_schema);
    }
    if (tool->approval) {
        doc_put_cstr(out, "approval");
        doc_put_bool(out, true);
    }
}

static enum bt_code put_tools(struct assignment *q, const struct caller *c, struct bt_error *err)
{
    size_t room = SCHEMAS_ROOM;
    struct tool tool;
    struct buf tools;
    uint32_t n = 0;
    enum bt_code code;

    while (n < TOOLS_MAX && calls_tool(c, n, &tool)) {
        n++;
    }
    buf_init(&tools, CALLS_TOOLS_MAX);
    doc_put_array(&tools, n);
    for (uint32_t i = 0; i < n; i++) {
        (void)calls_tool(c, i, &tool);
        put_tool(&tool, &room, &tools);
    }
    code = buf_check(&tools, err);
    if (code == BT_OK) {
        q->m.tools = doc_copy(q->arena, doc_from_buf(&tools));
        code = q->m.tools.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for tools") : BT_OK;
    }
    buf_done(&tools);
    return code;
}

/* The files of the results may be opened. */
static enum bt_code give_files(struct assignment *q, struct bt_error *err)
{
    const uint32_t turns = doc_head(q->m.turns).n;
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < turns && code == BT_OK; i++) {
        const struct doc results = doc_get(doc_at(q->m.turns, i), STR_LIT("results"));
        const uint32_t n = results.ptr != NULL ? doc_head(results).n : 0;
        for (uint32_t k = 0; k < n && code == BT_OK; k++) {
            code = artifacts_give(q, doc_at(results, k), err);
        }
    }
    return code;
}

enum bt_code assignment_calls(struct assignment *q, struct bt_error *err)
{
    const struct run_step *row = &q->run->steps[q->step];
    const struct msg_skill *skill = calls_skill(q->engine, q->agent, q->m.skill);
    const struct caller c = {.engine = q->engine,
                             .p = q->plan,
                             .step = q->step,
                             .agent = q->agent,
                             .skill = skill != NULL ? skill->id : q->m.skill};
    struct doc turns;
    enum bt_code code;

    if (skill == NULL || !is_tagged(skill, CALLS_TAG)) {
        return BT_OK;
    }
    code = put_tools(q, &c, err);
    q->m.turns_left = row->turns < LIMIT_TURNS ? LIMIT_TURNS - row->turns : 0;
    msg_set(&q->m, step_execute, turns_left);
    if (code != BT_OK || row->transcript == 0) {
        return code;
    }
    code = engine_result_doc(q->engine, run_transcript(row), &turns, err);
    if (code == BT_OK) {
        q->m.turns = doc_copy(q->arena, turns);
        code = q->m.turns.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for turns") : BT_OK;
    }
    return code == BT_OK ? give_files(q, err) : code;
}

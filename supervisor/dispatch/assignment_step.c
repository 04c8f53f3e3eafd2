/* The step itself: its task and parameters with the results before it in them, and the skill. */
#include <stdlib.h>

#include "protocol/base/utf8.h"
#include "registry/card.h"
#include "supervisor/dispatch/artifacts.h"
#include "supervisor/dispatch/calls.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/engine/scope.h"
#include "supervisor/plan/expand.h"
#include "supervisor/plan/skill.h"

enum { MEMBERS_MAX = 256 };

/* {{results.x}}: the result of a completed step of this run. */
static enum bt_code resolve(struct str step_id, struct doc *ret, void *self, struct bt_error *err)
{
    struct assignment *q = self;
    enum bt_code code = scope_result(q->engine, q->plan, q->step, step_id, ret, err);
    return code == BT_OK ? artifacts_give(q, *ret, err) : code;
}

static enum bt_code word_value(struct str word, struct doc *ret, void *self, struct bt_error *err)
{
    struct assignment *q = self;
    return scope_value(q->engine, q->plan, q->step, word, ret, err);
}

/* What undoes a step was filled in when it was made; what an agent calls is not the plan's text. */
static bool is_literal(const struct assignment *q)
{
    return q->plan->plan->child.kind == CHILD_OF_UNDO ||
           q->plan->plan->child.kind == CHILD_OF_CALLS;
}

static enum bt_code expand_task(struct assignment *q, struct bt_error *err)
{
    struct scope_words words;
    const struct expand_scope scope = {words.at, scope_words(q->engine, q->plan, q->step, &words),
                                       word_value};
    if (is_literal(q)) {
        buf_add_str(&q->task, q->plan->plan->steps[q->step].task);
        return buf_check(&q->task, err);
    }
    return expand_text(q->plan->plan->steps[q->step].task, resolve, &scope, q, &q->task, err);
}

static enum bt_code expand_parameters(struct assignment *q, struct doc params, struct bt_error *err)
{
    struct scope_words words;
    const struct expand_scope scope = {words.at, scope_words(q->engine, q->plan, q->step, &words),
                                       word_value};
    if (is_literal(q)) {
        buf_add(&q->params, params.ptr, params.len);
        return buf_check(&q->params, err);
    }
    return expand_params(params, resolve, &scope, q, &q->params, err);
}

/* ---- parameters that a person gave ---- */

/* The last parameters that a person put in the place of the plan's; .ptr NULL when there are none.
 */
static enum bt_code edited(struct assignment *q, const struct note *note, struct doc *ret,
                           struct bt_error *err)
{
    *ret = (struct doc){NULL, 0};
    if (note == NULL || note->edits_n == 0 || note->edits[0].adds) {
        return BT_OK;
    }
    enum bt_code code = engine_result_doc(q->engine, note->edits[0].doc, ret, err);
    if (code == BT_OK && ret->ptr != NULL) {
        *ret = doc_copy(q->arena, *ret);
        code = ret->ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for parameters") : BT_OK;
    }
    return code;
}

struct members {
    struct doc key[MEMBERS_MAX], value[MEMBERS_MAX];
    uint32_t n;
};

static bool set_member(struct members *all, struct doc key, struct doc value)
{
    uint32_t i = 0;

    while (i < all->n && !str_eq(doc_string(all->key[i]), doc_string(key))) {
        i++;
    }
    if (i == MEMBERS_MAX) {
        return false;
    }
    all->n = i == all->n ? i + 1 : all->n;
    all->key[i] = key;
    all->value[i] = value;
    return true;
}

static bool set_members(struct members *all, struct doc map)
{
    struct doc_cursor c = doc_cursor(map);
    struct doc_head head;
    bool fits = true;

    if (map.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_MAP) {
        return true;
    }
    for (uint32_t i = 0; i < head.n && fits; i++) {
        struct doc key = doc_skip(&c);
        fits = set_member(all, key, doc_skip(&c));
    }
    return fits;
}

/* A map goes member by member beside the parameters; anything else becomes the parameter `input`.
 */
static enum bt_code set_given(struct assignment *q, struct members *all, struct blob_ref ref,
                              struct bt_error *err)
{
    static const uint8_t input[] = {0xA5, 'i', 'n', 'p', 'u', 't'};
    struct doc given;
    enum bt_code code = engine_result_doc(q->engine, ref, &given, err);
    bool fits;

    if (code != BT_OK || given.ptr == NULL) {
        return code;
    }
    given = doc_copy(q->arena, given);
    if (given.ptr == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for parameters");
    }
    fits = doc_head(given).kind == DOC_MAP
               ? set_members(all, given)
               : set_member(all, (struct doc){input, sizeof input}, given);
    return fits ? BT_OK
                : err_set(err, BT_LIMIT, "more than %d parameters with the data that was given",
                          MEMBERS_MAX);
}

/* What an agent asked a person for is put beside what q->params holds, as it is: it is data, and no
 * template of the plan. */
static enum bt_code add_given(struct assignment *q, const struct note *note, struct bt_error *err)
{
    struct members *all;
    struct buf merged;
    enum bt_code code = BT_OK;

    if (note == NULL || note->edits_n == 0 || !note->edits[note->edits_n - 1].adds) {
        return BT_OK;
    }
    all = arena_alloc(q->arena, sizeof *all);
    if (all == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for parameters");
    }
    if (!set_members(all, doc_from_buf(&q->params))) {
        code = err_set(err, BT_LIMIT, "more than %d parameters", MEMBERS_MAX);
    }
    for (uint32_t i = 0; i < note->edits_n && code == BT_OK; i++) {
        code = note->edits[i].adds ? set_given(q, all, note->edits[i].doc, err) : BT_OK;
    }
    buf_init(&merged, LIMIT_RESULT_BYTES);
    if (code == BT_OK) {
        doc_put_map(&merged, all->n);
        for (uint32_t i = 0; i < all->n; i++) {
            doc_put_doc(&merged, all->key[i]);
            doc_put_doc(&merged, all->value[i]);
        }
        code = buf_check(&merged, err);
    }
    if (code == BT_OK) {
        buf_clear(&q->params);
        buf_add(&q->params, merged.at, merged.len);
    }
    buf_done(&merged);
    return code;
}

static enum bt_code expand(struct assignment *q, struct bt_error *err)
{
    const struct plan_step *s = &q->plan->plan->steps[q->step];
    const struct note *note = step_notes_of(&q->plan->notes, q->step);
    struct doc params;
    enum bt_code code = expand_task(q, err);

    q->m.task = buf_str(&q->task);
    if (q->m.task.len > LIMIT_TASK_BYTES) {
        q->m.task.len = utf8_cut(q->m.task.ptr, q->m.task.len, LIMIT_TASK_BYTES);
    }
    if (code == BT_OK) {
        code = edited(q, note, &params, err);
    }
    if (code == BT_OK) {
        params = params.ptr != NULL ? params : s->parameters;
        code = params.ptr != NULL ? expand_parameters(q, params, err) : BT_OK;
    }
    if (code == BT_OK) {
        code = add_given(q, note, err);
    }
    if (code == BT_OK && q->params.len > 0) {
        q->m.parameters = doc_from_buf(&q->params);
    }
    return code;
}

/* ---- the skill ---- */

/* The plan's agent is asked for the plan's skill. Who got the step by a handoff or a fallback may
 * not have it. */
static struct str skill_of(struct assignment *q)
{
    const struct plan_step *s = &q->plan->plan->steps[q->step];
    const struct msg_card *card = assignment_card(q);

    if (q->agent == s->agent || card == NULL ||
        (s->skill.len > 0 && card_skill(card, s->skill) != UINT32_MAX)) {
        return s->skill;
    }
    const uint32_t skill = plan_skill_by_words(card, q->m.task);
    return skill == UINT32_MAX ? (struct str){"", 0} : card->skills[skill].id;
}

enum bt_code assignment_step(struct assignment *q, struct bt_error *err)
{
    enum bt_code code = expand(q, err);

    if (code == BT_OK) {
        q->m.skill = skill_of(q);
        code = assignment_context(q, LIMIT_RESULT_BYTES / 2, err);
    }
    return code == BT_OK ? assignment_calls(q, err) : code;
}

enum bt_code assignment_preview(struct assignment *q, struct bt_error *err)
{
    const struct plan_step *s = &q->plan->plan->steps[q->step];
    const struct run_step *row = &q->run->steps[q->step];
    enum bt_code code;

    q->agent = row->agent;
    if ((row->did & STEP_DID_SEARCH) != 0 && row->agent == q->plan->plan->search_agent) {
        return assignment_search(q, err);
    }
    code = expand(q, err);
    if (code == BT_OK && plan_step_has_agent(s)) {
        q->m.skill = skill_of(q);
    }
    return code;
}

bool dispatch_step_task(struct engine *engine, const struct open_plan *p, uint32_t step,
                        struct buf *out)
{
    const struct core_cmd cmd = {.step = step, .phase = PHASE_EXECUTE};
    struct arena arena = {.chunks = NULL}; /* another assignment may be in the making */
    struct assignment q;
    struct bt_error err;
    bool ok;

    assignment_init(&q, engine, p, &cmd);
    q.arena = &arena;
    ok = expand_task(&q, &err) == BT_OK;
    if (ok) {
        buf_add_str(out, buf_str(&q.task));
    }
    assignment_done(&q);
    arena_done(&arena);
    return ok;
}

enum bt_code assignment_search(struct assignment *q, struct bt_error *err)
{
    const struct msg_card *card = assignment_card(q);
    uint32_t ix = card != NULL ? card_skill(card, STR_LIT("search")) : UINT32_MAX;
    struct buf query;
    enum bt_code code = expand(q, err);

    if (code == BT_OK && ix == UINT32_MAX) {
        q->error_class = CLASS_TOOL_NOT_FOUND;
        return err_set(err, BT_NOT_FOUND, "the agent has no skill 'search'");
    }
    if (code != BT_OK) {
        return code;
    }
    /* {query: the parameters as JSON text, or the task where there are none} (M042). */
    buf_init(&query, LIMIT_RESULT_BYTES);
    doc_put_map(&query, 1);
    doc_put_cstr(&query, "query");
    if (q->params.len == 0) {
        doc_put_str(&query, q->m.task);
    } else {
        struct buf text;
        buf_init(&text, LIMIT_RESULT_BYTES);
        code = doc_to_json(doc_from_buf(&q->params), false, &text, err);
        doc_put_str(&query, buf_str(&text));
        buf_done(&text);
    }
    if (code == BT_OK) {
        code = buf_check(&query, err);
    }
    if (code == BT_OK) {
        buf_clear(&q->params);
        buf_add(&q->params, query.at, query.len);
        q->m.parameters = doc_from_buf(&q->params);
        q->m.skill = STR_LIT("search");
        code = assignment_context(q, LIMIT_RESULT_BYTES / 2, err);
    }
    buf_done(&query);
    return code;
}

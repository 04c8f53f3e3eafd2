/* The making of a child plan: its items or inputs, its document, its row and its run. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/engine/child_calls.h"
#include "supervisor/engine/children.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/scope.h"
#include "supervisor/engine/submission.h"
#include "supervisor/plan/expand.h"
#include "supervisor/plan/permit.h"
#include "supervisor/plan/recipe.h"

struct making {
    struct engine *engine;
    const struct open_plan *p;
    const struct child_task *task;
    const struct plan_step *step;
    struct child_step how;
    struct child_of of;
    struct child_share share;
    struct doc items;
    struct buf value; /* the list, or the inputs */
    struct bt_error *err;
};

void child_key(const struct open_plan *p, const struct child_task *task, char ret[CHILD_KEY_MAX])
{
    (void)snprintf(ret, CHILD_KEY_MAX,
                   "\x1f"
                   "child/%s/%u/%u/%u",
                   p->id, task->step, task->attempt, task->round);
}

/* ---- values ---- */

static enum bt_code result_of(struct str id, struct doc *ret, void *self, struct bt_error *err)
{
    const struct making *m = self;

    return scope_result(m->engine, m->p, m->task->step, id, ret, err);
}

static enum bt_code word_of(struct str word, struct doc *ret, void *self, struct bt_error *err)
{
    const struct making *m = self;

    return scope_value(m->engine, m->p, m->task->step, word, ret, err);
}

/* The value with its templates replaced, in m->value. */
static enum bt_code fill(struct making *m, struct doc value)
{
    struct scope_words words;
    const struct expand_scope scope = {
        words.at, scope_words(m->engine, m->p, m->task->step, &words), word_of};

    return expand_params(value, result_of, &scope, m, &m->value, m->err);
}

/* ---- what it may use ---- */

static msec left_of(msec deadline, msec now)
{
    return deadline == MSEC_NEVER ? 0 : deadline > now ? deadline - now : 1;
}

static msec least(msec a, msec b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static uint64_t share_of(uint64_t left, uint64_t estimate)
{
    return left == UINT64_MAX                 ? estimate
           : estimate != 0 && estimate < left ? estimate
           : left == 0                        ? 1
                                              : left;
}

static bool has_estimate(const struct step_policy *p)
{
    return p->estimate_tokens > 0 || p->estimate_micros > 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a == UINT64_MAX ? a : a > b ? a - b : 0;
}

/* What the children under way that have no estimate may spend is not there for others: the plan
 * knows what they have spent when they end. How many they are. */
static uint32_t take_granted(struct making *m, uint64_t *io_tokens, uint64_t *io_micros)
{
    uint32_t n = 0;

    for (struct open_plan *q = NULL; (q = open_plan_next(m->engine, q)) != NULL;) {
        const struct run *run = core_block_run(q->block);
        const struct child_of *of = &q->plan->child;
        if (of->kind == CHILD_OF_NONE || of->kind == CHILD_OF_UNDO || plan_is_final(run->status) ||
            !str_eq(of->of, str_from(m->p->id)) || of->step >= m->p->plan->n_steps ||
            has_estimate(&m->p->plan->steps[of->step].rules->policy)) {
            continue;
        }
        n++;
        *io_tokens = less(*io_tokens, q->plan->budget_tokens);
        *io_micros = less(*io_micros, q->plan->budget_micros);
    }
    return n;
}

/* Steps without an estimate that children do and that are not over. */
static uint32_t unestimated(const struct making *m)
{
    const struct run *run = core_block_run(m->p->block);
    uint32_t n = 0;

    for (uint32_t i = 0; i < run->n_steps; i++) {
        const struct plan_step *s = &m->p->plan->steps[i];
        const bool open = !step_is_final(run->steps[i].status);
        n += s->type == STEP_TYPE_PLAN && !has_estimate(&s->rules->policy) && open ? 1 : 0;
    }
    return n;
}

static uint64_t part(uint64_t left, uint32_t n)
{
    return left == UINT64_MAX ? left : left / n;
}

/* Its time is that of the plan and of the step. Its budget is the step's estimate, or an equal part
 * of what is left of the plan's: children side by side do not spend the same money twice. */
static void find_share(struct making *m)
{
    const struct run *run = core_block_run(m->p->block);
    const struct step_policy *policy = &m->step->rules->policy;
    const msec now = m->engine->now;
    uint64_t tokens;
    uint64_t micros;

    core_budget_left(m->engine->core, m->p->run, m->task->step, &tokens, &micros);
    if (!has_estimate(policy) && (tokens != UINT64_MAX || micros != UINT64_MAX)) {
        const uint32_t all = unestimated(m);
        const uint32_t granted = take_granted(m, &tokens, &micros);
        const uint32_t n = all > granted ? all - granted : 1; /* this one, and those to come */
        tokens = part(tokens, n);
        micros = part(micros, n);
    }
    m->share = (struct child_share){
        .time_ms = least(left_of(core_plan_deadline(m->engine->core, m->p->run), now),
                         left_of(run->steps[m->task->step].deadline, now)),
        .tokens = share_of(tokens, policy->estimate_tokens),
        .micros = share_of(micros, policy->estimate_micros)};
}

/* ---- the three kinds ---- */

/* The answer to an empty list. */
static enum bt_code nothing_to_do(struct making *m, struct core_event *ev)
{
    struct core_ev_child *child = CORE_EV(ev, child);
    struct buf result;
    enum bt_code code;

    buf_init(&result, 64);
    doc_put_map(&result, 2);
    doc_put_cstr(&result, "text");
    doc_put_cstr(&result, "The list is empty: nothing was done.");
    doc_put_cstr(&result, "data");
    doc_put_array(&result, 0);
    code = engine_result_store(m->engine, &result, &child->result, m->err);
    buf_done(&result);
    if (code != BT_OK) {
        return code;
    }
    child->outcome = CHILD_COMPLETED;
    return BT_NOT_FOUND;
}

static const char *kind_text(enum doc_kind kind)
{
    switch (kind) {
    case DOC_MAP:
        return "a map";
    case DOC_STR:
        return "a text";
    case DOC_BOOL:
        return "true or false";
    case DOC_NIL:
        return "nothing";
    case DOC_INT:
    case DOC_UINT:
    case DOC_FLOAT:
        return "a number";
    case DOC_BIN:
    case DOC_ARRAY:
        break;
    }
    return "bytes";
}

/* A result is often a map with the list in it. */
static const char *list_in_it(struct doc value)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;

    if (!doc_next(&c, &head) || head.kind != DOC_MAP) {
        return "";
    }
    for (uint32_t i = 0; i < head.n; i++) {
        (void)doc_skip(&c);
        if (doc_head(doc_skip(&c)).kind == DOC_ARRAY) {
            return "; name the list in it ({{results.<stepId>.<member>}})";
        }
    }
    return "";
}

static enum bt_code take_items(struct making *m, struct core_event *ev)
{
    const uint32_t each = doc_head(doc_get(m->how.body, STR_LIT("steps"))).n;
    struct doc_head head;
    enum bt_code code = fill(m, m->how.list);

    if (code != BT_OK) {
        (void)err_wrap(m->err, "forEach");
        return code;
    }
    m->items = doc_from_buf(&m->value);
    head = doc_head(m->items);
    if (head.kind != DOC_ARRAY) {
        return err_set(m->err, BT_INVALID, "forEach: expected a list, got %s%s",
                       kind_text(head.kind), list_in_it(m->items));
    }
    if (head.n > m->how.max_items) {
        return err_set(m->err, BT_INVALID,
                       "forEach: %u items are more than the %u of maxItems; give less, or raise "
                       "maxItems (at most %u)",
                       head.n, m->how.max_items, (unsigned)CHILD_ITEMS_MAX);
    }
    if (each > 0 && head.n > LIMIT_STEPS / each) {
        return err_set(m->err, BT_INVALID,
                       "forEach: %u items with %u steps each are more than the %u steps of one "
                       "plan; give less items",
                       head.n, each, (unsigned)LIMIT_STEPS);
    }
    return head.n == 0 ? nothing_to_do(m, ev) : BT_OK;
}

/* The document of a map or a round, read as after a restart. */
static enum bt_code make_body(struct making *m, struct submission *d)
{
    struct doc doc;
    enum bt_code code = child_document(&m->how, &m->of, m->items, m->p->plan->session_id, &m->share,
                                       &d->normalised, m->err);

    if (code != BT_OK) {
        return code;
    }
    doc = doc_from_buf(&d->normalised);
    return plan_read_canonical(doc, &m->engine->opt.defaults, m->engine->registry, &d->arena,
                               &d->made, m->err);
}

static bool doc_is_same(struct doc a, struct doc b)
{
    return (a.ptr == NULL) == (b.ptr == NULL) &&
           (a.ptr == NULL || (a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0));
}

static void put_policy(const struct making *m, struct doc permitted, struct buf *out)
{
    const bool budget = m->share.tokens > 0 || m->share.micros > 0;

    doc_put_map(out, (permitted.ptr != NULL ? 1u : 0) + (budget ? 1u : 0) +
                         (m->share.time_ms > 0 ? 1u : 0));
    if (permitted.ptr != NULL) {
        doc_put_cstr(out, "agents");
        doc_put_doc(out, permitted);
    }
    if (m->share.time_ms > 0) {
        doc_put_cstr(out, "planTimeoutMs");
        doc_put_u64(out, m->share.time_ms);
    }
    if (budget) {
        doc_put_cstr(out, "budget");
        doc_put_map(out, 2);
        doc_put_cstr(out, "tokens");
        doc_put_u64(out, m->share.tokens);
        doc_put_cstr(out, "costMicros");
        doc_put_u64(out, m->share.micros);
    }
}

/* A plan as it is given, or a recipe with its inputs; checked as every new plan is. */
static enum bt_code make_sub(struct making *m, struct submission *d)
{
    struct submit_request w = {
        .plan = m->how.document, .session_id = m->p->plan->session_id, .child = &m->of};
    struct buf filled;
    struct buf policy;
    enum bt_code code = BT_OK;

    buf_init(&filled, LIMIT_STEP_BYTES);
    buf_init(&policy, LIMIT_CONTROL_BYTES);
    if (recipe_is(m->how.document)) {
        code = m->how.inputs.ptr != NULL ? fill(m, m->how.inputs) : BT_OK;
        if (code == BT_OK) {
            const struct doc values =
                m->how.inputs.ptr != NULL ? doc_from_buf(&m->value) : (struct doc){NULL, 0};
            code = recipe_fill(m->how.document, values, &filled, m->err);
        }
        w.plan = doc_from_buf(&filled);
    }
    if (code == BT_OK) {
        put_policy(m, (struct doc){NULL, 0}, &policy);
        w.policy = doc_from_buf(&policy);
        code = buf_check(&policy, m->err);
    }
    if (code == BT_OK) {
        code = submission_make(m->engine, &w, d, m->err);
    }
    buf_done(&policy);
    buf_done(&filled);
    return code;
}

/* The calls of a turn. What keeps all of them from being made is their result, beside what is wrong
 * with each: the agent may do better. */
static enum bt_code make_calls(struct making *m, struct submission *d, struct core_event *ev)
{
    enum bt_code code =
        child_calls_make(m->engine, m->p, m->task->step, &m->of, &m->share, d, m->err);

    if (code == BT_INVALID || code == BT_LIMIT) {
        code = child_calls_answer(m->engine, m->p, m->task->step, NULL,
                                  engine_cycle_text(m->engine, str_from(m->err->msg)),
                                  CORE_EV(ev, child), m->err);
        CORE_EV(ev, child)->outcome = CHILD_COMPLETED;
        return code == BT_OK ? BT_NOT_FOUND : code;
    }
    return code;
}

/* Agents that the parent may not use, its child may not use. */
static enum bt_code check_agents(const struct making *m, const struct plan *made)
{
    if (m->how.kind != CHILD_OF_SUB) {
        return BT_OK;
    }
    for (uint32_t i = 0; i < made->agents.n; i++) {
        bool granted = false;
        for (uint32_t k = 0; k < m->p->plan->agents.n && !granted; k++) {
            granted = str_eq(m->p->plan->agents.ids[k], made->agents.ids[i]);
        }
        if (!granted && m->p->plan->agents.n > 0 && !recipe_is(m->how.document)) {
            return err_set(m->err, BT_INVALID,
                           "the plan inside uses agent %.*s, which this plan "
                           "may not use",
                           STR_ARG(made->agents.ids[i]));
        }
    }
    return BT_OK;
}

/* ---- what was done before ---- */

/* The child with this key as it ended, from memory or the rows; false: there is none. */
static bool ended_child(struct making *m, const struct open_plan *p, const struct child_task *t,
                        struct open_plan *rebuilt, const struct open_plan **ret)
{
    struct journal_plan row;
    struct bt_error unused;
    char key[CHILD_KEY_MAX];
    char id[UUID_TEXT_LEN + 1];

    child_key(p, t, key);
    if (journal_plan_by_key(m->engine->journal, str_from(key), &row, &unused) != BT_OK) {
        return false;
    }
    uuid_format(row.plan_id, id);
    *ret = open_plan_by_id(m->engine, str_from(id)); /* the rows of this cycle are not there yet */
    for (uint32_t i = 0; i < m->engine->ended_n && *ret == NULL; i++) {
        *ret = strcmp(m->engine->ended[i].id, id) == 0 ? &m->engine->ended[i] : NULL;
    }
    if (*ret == NULL && open_plan_rebuild(m->engine, &row, rebuilt, &unused) == BT_OK) {
        *ret = rebuilt;
    }
    return *ret != NULL;
}

/* The last child of the step before this attempt, or that of the plan that this one is a retry of.
 */
static bool last_child(struct making *m, struct open_plan *rebuilt, const struct open_plan **ret)
{
    struct child_task t = *m->task;
    struct journal_plan row;
    struct open_plan old = {.session = SESSION_SLOT_NONE};
    struct bt_error unused;
    bool found = false;

    while (!found && t.attempt > 1) {
        t.attempt--;
        found = ended_child(m, m->p, &t, rebuilt, ret);
    }
    if (found || uuid_is_nil(open_plan_reuse(m->p)) ||
        journal_plan_by_id(m->engine->journal, open_plan_reuse(m->p), &row, &unused) != BT_OK ||
        open_plan_rebuild(m->engine, &row, &old, &unused) != BT_OK) {
        open_plan_done(&old);
        return found;
    }
    t.step = plan_step_find(old.plan, m->step->step_id);
    const struct run *run = core_block_run(old.block);
    if (t.step != UINT32_MAX && run->undone == 0) { /* what was undone is to be done again */
        t.attempt = run->steps[t.step].attempt + 1;
        while (!found && t.attempt > 1) {
            t.attempt--;
            found = ended_child(m, &old, &t, rebuilt, ret);
        }
    }
    open_plan_done(&old);
    return found;
}

static bool same_step(const struct plan_step *a, const struct plan_step *b)
{
    return str_eq(a->step_id, b->step_id) && str_eq(a->agent_id, b->agent_id) &&
           str_eq(a->task, b->task) && doc_is_same(a->item, b->item) &&
           doc_is_same(a->parameters, b->parameters);
}

/* In a later attempt, and in a retry of the plan around it, which gives it the same inputs. A loop
 * begins with its first round. */
static bool may_reuse(const struct making *m)
{
    return (m->how.kind == CHILD_OF_MAP || m->how.kind == CHILD_OF_SUB) &&
           (m->task->attempt > 1 || !uuid_is_nil(open_plan_reuse(m->p)));
}

/* Whether the step of the child before may have been done, and its result is not taken. In a child
 * that was quarantined so may every unsafe one that has begun. */
static bool may_be_done(const struct plan_step *made, const struct open_plan *old, uint32_t step)
{
    const struct run *run = core_block_run(old->block);
    const struct plan_step *was = step < run->n_steps ? &old->plan->steps[step] : NULL;

    if (was == NULL || !same_step(made, was) || (run->undone != 0 && was->undoes)) {
        return false;
    }
    const enum step_status status = run->steps[step].status;

    return run->steps[step].doubt != 0 ||
           (was->rules->policy.effects == EFFECTS_UNSAFE &&
            (status == STEP_COMPLETED || (run->steps[step].attempt > 0 && !step_is_final(status))));
}

/* No result is kept: what is unsafe and was done asks a person, too. Returns how many are left. */
static uint32_t keep_doubts(const struct plan *plan, struct core_reuse *reuse, uint32_t n)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (plan->steps[reuse[i].step].rules->policy.effects == EFFECTS_UNSAFE) {
            reuse[kept++] = (struct core_reuse){.step = reuse[i].step, .doubt = true};
        }
    }
    return kept;
}

/* Steps of items, and of a plan inside, that have completed in an earlier attempt, and were not
 * undone, are not done again. Those that may have been done ask a person first. */
static enum bt_code reuse_items(struct making *m, struct submission *d, struct submission_start *io)
{
    struct open_plan rebuilt = {.session = SESSION_SLOT_NONE};
    const struct plan *made = d->made;
    const struct open_plan *old = NULL;
    struct core_reuse *reuse;
    uint32_t n_doubts = 0;
    uint8_t *taken;

    if (!may_reuse(m) || !last_child(m, &rebuilt, &old)) {
        return BT_OK;
    }
    reuse = arena_alloc(&d->arena, (made->n_steps + 1) * sizeof *reuse);
    taken = arena_alloc(&d->arena, made->n_steps + 1);
    for (uint32_t i = 0; reuse != NULL && taken != NULL && i < made->n_steps; i++) {
        const struct run *run = core_block_run(old->block);
        bool take = i < run->n_steps && run->steps[i].status == STEP_COMPLETED &&
                    same_step(&made->steps[i], &old->plan->steps[i]) &&
                    !(run->undone != 0 && old->plan->steps[i].undoes);
        for (uint32_t k = 0; take && k < made->steps[i].deps_n; k++) {
            take = taken[made->deps[made->steps[i].deps_at + k]] != 0;
        }
        taken[i] = take ? 1 : 0;
        if (take) {
            reuse[io->n_reuse++] = (struct core_reuse){.step = i, .result = run->steps[i].result};
        } else if (may_be_done(&made->steps[i], old, i)) {
            reuse[io->n_reuse++] = (struct core_reuse){.step = i, .doubt = true};
            n_doubts++;
        }
    }
    if (m->how.kind == CHILD_OF_SUB &&
        (open_plan_more(old)->document.id != 0 || io->n_reuse - n_doubts == made->n_steps)) {
        /* a revision changed it, or what it had found was refused */
        io->n_reuse = keep_doubts(made, reuse, io->n_reuse);
    }
    io->reuse = reuse;
    open_plan_done(&rebuilt);
    return reuse == NULL || taken == NULL
               ? err_set(m->err, BT_NOMEM, "out of memory for the items that are done")
               : BT_OK;
}

/* ---- together ---- */

static enum bt_code make(struct making *m, struct core_event *ev)
{
    char key[CHILD_KEY_MAX];
    char id[UUID_TEXT_LEN + 1];
    struct submission_start how = {
        .job = STR_LIT("child"), .owner = open_plan_owner(m->p), .whole_key = true};
    struct submission d;
    enum bt_code code = submission_init(&d, m->err);

    child_key(m->p, m->task, key);
    how.client_key = str_from(key);
    how.parent = m->p->plan_id;
    open_plan_trace(m->p, &how.trace);
    if (code == BT_OK && m->how.kind == CHILD_OF_MAP) {
        code = take_items(m, ev);
    } else if (code == BT_OK && m->how.kind == CHILD_OF_LOOP && m->task->round > 0) {
        const struct run *run = core_block_run(m->p->block);
        struct doc result;
        code = engine_result_doc(m->engine, run->steps[m->task->step].result, &result, m->err);
        m->of.previous = code == BT_OK ? doc_copy(&d.arena, result) : m->of.previous;
    }
    if (code == BT_OK) {
        code = m->how.kind == CHILD_OF_SUB     ? make_sub(m, &d)
               : m->how.kind == CHILD_OF_CALLS ? make_calls(m, &d, ev)
                                               : make_body(m, &d);
    }
    if (code == BT_OK) {
        code = check_agents(m, d.made);
    }
    if (code == BT_OK) {
        code = reuse_items(m, &d, &how);
    }
    if (code == BT_OK) {
        code = submission_start(m->engine, &how, &d, id, m->err);
    }
    submission_done(&d);
    return code;
}

enum bt_code child_start(struct engine *engine, const struct open_plan *p,
                         const struct child_task *task, struct core_event *ev, struct bt_error *err)
{
    const struct plan_step *step = &p->plan->steps[task->step];
    char id[UUID_TEXT_LEN + 1];
    struct making m = {.engine = engine, .p = p, .task = task, .step = step, .err = err};
    enum bt_code code;

    if (step->type != STEP_TYPE_PLAN) {
        m.how.kind = CHILD_OF_CALLS;
    } else if (!child_step_read(step->rules->child, &m.how)) {
        return err_set(err, BT_INVALID, "the step has no child plan");
    }
    if (p->plan->child.depth >= CHILD_DEPTH_MAX) {
        return err_set(err, BT_INVALID,
                       "plans are nested more than %d deep; a recipe that runs itself never ends",
                       (int)CHILD_DEPTH_MAX);
    }
    uuid_format(p->plan_id, id);
    m.of = (struct child_of){.kind = m.how.kind,
                             .of = str_from(id),
                             .step = task->step,
                             .attempt = task->attempt,
                             .round = task->round,
                             .depth = p->plan->child.depth + 1,
                             .priority = p->plan->priority,
                             .name = m.how.name};
    find_share(&m);
    buf_init(&m.value, LIMIT_STEP_BYTES);
    code = make(&m, ev);
    buf_done(&m.value);
    return code;
}

#include "supervisor/plan/read.h"

#include <stdio.h>

#include "supervisor/plan/child_read_internal.h"
#include "supervisor/plan/flow/references.h"
#include "supervisor/plan/problem_add.h"

/* ---- chain or graph ---- */

/* A step of a chain gets all results, a step of a graph those of its dependencies. */
static enum context_scope scope_of(const struct plan_reader *r, const struct plan_step *s)
{
    return s->type == STEP_TYPE_SYNTHESIS && !r->plan->chain ? SCOPE_DEPS : r->policy->step.scope;
}

/* The plan's gate applies to steps of agents that have dependencies. */
static bool plan_gate_fits(const struct plan *p, uint32_t ix)
{
    const struct plan_step *s = &p->steps[ix];
    return plan_step_has_agent(s) && (p->chain ? ix > 0 : s->deps_n > 0 || plan_step_refers(s));
}

void plan_reader_finish(struct plan_reader *r)
{
    struct plan *p = r->plan;
    for (uint32_t i = r->first; i < p->n_steps; i++) {
        struct plan_step *s = &p->steps[i];
        if (s->rules->policy.scope == SCOPE_COUNT) {
            s->rules->policy.scope = scope_of(r, s);
        }
        if (!r->gate_given[i - r->first] && !plan_gate_fits(p, i)) {
            s->rules->gate_with = s->rules->gate_skill = (struct str){NULL, 0};
            s->rules->gate_agent = AGENT_NONE;
        }
    }
}

static void finish_order(struct plan_reader *r)
{
    struct plan *p = r->plan;
    struct plan_policy *policy = r->policy;
    p->chain = !r->any_deps && !p->planning.pending;
    if (!policy->scope_given) {
        policy->step.scope = p->chain ? SCOPE_ALL : SCOPE_DEPS;
    }
    if (p->chain && policy->concurrency_given && policy->max_concurrency > 1) {
        problem_put(r->problems, PROBLEM_STYLE, true, NULL, 0, "policy.maxConcurrency",
                    &STR_LIT("no step has dependsOn, so the steps run one after the other; give "
                             "dependsOn (it may be empty) to let steps run at once"),
                    1);
    }
    policy->max_concurrency = p->chain ? 1 : policy->max_concurrency;
    p->max_concurrency = policy->max_concurrency;
    p->timeout_ms = policy->plan_timeout_ms;
    p->context_budget = policy->context_budget;
    p->context_result = policy->context_result;
    p->max_fallbacks = policy->max_fallbacks;
    p->max_handoffs = policy->max_handoffs;
    p->max_pause_ms = policy->max_pause_ms;
    p->handback = policy->handback;
    p->signoff = policy->signoff;
    p->undo = policy->undo;
    p->signoff_timeout_ms = policy->step.approval_timeout_ms;
    p->priority = policy->priority;
    p->overlap = policy->overlap;
    if (policy->overlap_given && policy->key.len == 0) {
        problem_put(r->problems, PROBLEM_STYLE, true, NULL, 0, "policy.overlap",
                    &STR_LIT("means nothing without policy.concurrencyKey: give one, or leave "
                             "overlap out"),
                    1);
    }
    p->budget_tokens = policy->budget_tokens;
    p->budget_micros = policy->budget_micros;
    p->replan = policy->replan;
    plan_reader_finish(r);
}

enum bt_code plan_reader_steps(struct plan_reader *r)
{
    const uint32_t n = r->plan->n_steps - r->first;
    r->gate_given = arena_alloc(&r->scratch, n + 1);
    enum bt_code code = r->gate_given == NULL ? reader_nomem(r) : BT_OK;
    for (uint32_t i = r->first; i < r->plan->n_steps && code == BT_OK; i++) {
        code = plan_step_read(r, i);
    }
    return code;
}

struct plan_step *plan_steps_alloc(struct arena *arena, size_t n)
{
    struct plan_step *steps = arena_alloc(arena, n * sizeof steps[0]);
    struct step_rules *rules = arena_alloc(arena, n * sizeof rules[0]);
    for (size_t i = 0; i < n && steps != NULL && rules != NULL; i++) {
        steps[i].rules = &rules[i];
    }
    return rules == NULL ? NULL : steps;
}

static enum bt_code read_steps(struct plan_reader *r)
{
    const size_t n = r->plan->n_steps > 0 ? r->plan->n_steps : 1;
    r->plan->steps = plan_steps_alloc(r->arena, n);
    if (r->plan->steps == NULL) {
        return reader_nomem(r);
    }
    enum bt_code code = plan_agent_read_policy(r);
    if (code == BT_OK && r->policy->key.len > 0) {
        (void)plan_key_add(r, r->policy->key);
        r->plan->keyed = true;
    }
    code = code == BT_OK ? plan_reader_steps(r) : code;
    if (code != BT_OK) {
        return code;
    }
    finish_order(r);
    return plan_grants(r);
}

/* ---- checks ---- */

const uint8_t *plan_reader_settled_steps(const struct plan_reader *r)
{
    const struct plan_request *request = r->request;
    return request->n_settled == r->plan->n_steps ? request->settled : NULL;
}

static enum bt_code check(struct plan_reader *r)
{
    struct plan *p = r->plan;
    const size_t edges = (p->n_edges + 1) * sizeof p->deps[0];
    uint32_t *scratch = arena_alloc(&r->scratch, plan_check_scratch(p) * sizeof *scratch);
    p->deps = arena_alloc(r->arena, edges);
    p->dependents = arena_alloc(r->arena, edges);
    if (scratch == NULL || p->deps == NULL || p->dependents == NULL) {
        return reader_nomem(r);
    }
    struct plan_check_input in = {
        .plan = p,
        .dep_names = (const struct str *)(const void *)r->dep_names.at,
        .registry = r->canonical ? NULL : r->registry,
        .texts = (const struct plan_text *)(const void *)r->texts.at,
        .n_texts = (uint32_t)(r->texts.len / sizeof(struct plan_text)),
        .scratch = scratch,
        .ret_deps = p->deps,
        .again = r->canonical,
        .outer = r->outer,
        .words = r->words,
        .n_words = r->n_words,
        .late_agents = r->policy->wait_for_agents && !r->granted_only,
        .settled = plan_reader_settled_steps(r),
    };
    if (!p->planning.pending) {
        const enum bt_code code =
            plan_check_references(&in, p, r->problems, r->arena, &r->scratch, r->err);
        if (code != BT_OK) {
            return code;
        }
    }
    /* The parameters of a job come with each attempt. */
    return r->canonical || p->job != JOB_NONE ? BT_OK : plan_schema_check(r);
}

enum bt_code plan_reader_reject(const struct plan_reader *r)
{
    const struct problems *p = r->problems;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct problem *at = &p->at[i];
        if (at->warning) {
            continue;
        }
        char more[48] = "";
        char text[400];
        if (p->errors > 1) {
            (void)snprintf(more, sizeof more, " (and %u more)", p->errors - 1);
        }
        problem_text(at, text, sizeof text);
        return err_set(r->err, BT_INVALID, "%s%s", text, more);
    }
    return err_set(r->err, BT_INVALID, "the plan has %u problems", p->errors);
}

/* Strings of the request live as long as the request; those of the document as long as the arena.
 */
static enum bt_code keep_request(struct plan_reader *r)
{
    struct str *texts[] = {&r->plan->goal, &r->plan->session_id, &r->plan->planner};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = arena_str(r->arena, *texts[i]);
        if (texts[i]->ptr == NULL) {
            return reader_nomem(r);
        }
    }
    return BT_OK;
}

enum bt_code plan_keys_init(struct plan_reader *r)
{
    struct plan_keys *k = &r->plan->keys;
    *k = (struct plan_keys){
        .names = arena_alloc(r->arena, LIMIT_PLAN_KEYS * sizeof *k->names),
        .at = arena_alloc(r->arena, LIMIT_PLAN_KEYS * sizeof *k->at),
    };
    return k->names == NULL || k->at == NULL ? BT_NOMEM : BT_OK;
}

static enum bt_code read_all(struct plan_reader *r)
{
    struct doc doc = r->request->plan;
    r->plan = arena_alloc(r->arena, sizeof *r->plan);
    r->policy = arena_alloc(r->arena, sizeof *r->policy);
    if (r->plan == NULL || r->policy == NULL || plan_grants_init(r) != BT_OK ||
        plan_keys_init(r) != BT_OK) {
        return reader_nomem(r);
    }
    r->plan->revision = 1;
    r->plan->policy = r->policy;
    if (!r->canonical) {
        doc = doc_copy(r->arena, doc);
        r->pending = doc_copy(r->arena, r->request->pending);
        if (doc.ptr == NULL || (r->pending.ptr == NULL && r->request->pending.ptr != NULL)) {
            return reader_nomem(r);
        }
    }
    if (r->base != NULL) {
        *r->policy = *r->base;
        r->policy->key = (struct str){NULL, 0}; /* the plan around it has the key */
        r->policy->overlap = KEY_QUEUE;
        r->policy->overlap_given = false;
    } else {
        plan_policy_init(r->policy, r->request->defaults);
    }
    if (r->request->child != NULL) {
        r->plan->child = *r->request->child;
        r->policy->priority = r->request->child->priority;
    }
    r->depth = r->depth > r->request->depth ? r->depth : r->request->depth;
    enum bt_code code = plan_document_find(r, doc);
    code = code == BT_OK && !r->canonical ? keep_request(r) : code;
    code = code == BT_OK ? read_steps(r) : code;
    if (code != BT_OK) {
        return code;
    }
    /* After "too many steps" or "no list" the message that the plan is empty would mislead. */
    if (r->plan->n_steps > 0 || r->problems->errors == 0) {
        code = check(r);
    }
    if (code != BT_OK) {
        return code;
    }
    if (r->problems->errors > 0) {
        return plan_reader_reject(r);
    }
    plan_link(r->plan);
    return BT_OK;
}

enum bt_code plan_reader_body(struct plan_reader *r)
{
    plan_reader_init(r);
    return read_all(r);
}

void plan_reader_init(struct plan_reader *r)
{
    buf_init(&r->below, (size_t)LIMIT_STEPS * LIMIT_PLAN_AGENTS * sizeof(struct str));
    r->reported.unknown.silent = r->canonical;
    r->reported.unknown.lenient = r->request->lenient || r->untrusted;
    buf_init(&r->dep_names, LIMIT_EDGES * sizeof(struct str));
    buf_init(&r->texts, LIMIT_NODES * sizeof(struct plan_text));
    buf_init(&r->fallbacks, (size_t)LIMIT_STEPS * LIMIT_PLAN_AGENTS * sizeof(struct str));
}

void plan_reader_done(struct plan_reader *r)
{
    buf_done(&r->dep_names);
    buf_done(&r->below);
    buf_done(&r->texts);
    buf_done(&r->fallbacks);
    arena_done(&r->scratch);
}

static enum bt_code run(struct plan_reader *r, struct plan **ret, struct buf *normalised)
{
    plan_reader_init(r);
    enum bt_code code = read_all(r);
    if (code == BT_OK && normalised != NULL) {
        code = plan_write(r->plan, normalised, r->err);
    }
    if (code == BT_OK) {
        *ret = r->plan;
    }
    plan_reader_done(r);
    return code;
}

enum bt_code plan_read_request(const struct plan_request *request, struct arena *arena,
                               struct plan **ret, struct problems *problems, struct buf *normalised,
                               struct bt_error *err)
{
    struct plan_reader r = {.request = request,
                            .registry = request->registry,
                            .untrusted = request->pending.ptr != NULL && !request->trusted,
                            .arena = arena,
                            .problems = problems,
                            .err = err};
    return run(&r, ret, normalised);
}

enum bt_code plan_read_pending(const struct plan_request *request,
                               const struct plan_pending *planner, struct arena *arena,
                               struct plan **ret, struct problems *problems, struct buf *normalised,
                               struct bt_error *err)
{
    static const uint8_t empty_map[] = {0x80};
    struct plan_request all = *request;
    struct plan_reader r = {.request = &all,
                            .registry = request->registry,
                            .planner = planner,
                            .arena = arena,
                            .problems = problems,
                            .err = err};
    all.plan = (struct doc){empty_map, sizeof empty_map};
    all.pending = (struct doc){NULL, 0};
    return run(&r, ret, normalised);
}

enum bt_code plan_read(struct doc doc, const struct plan_defaults *defaults,
                       const struct registry *registry, struct arena *arena, struct plan **ret,
                       struct problems *problems, struct buf *normalised, struct bt_error *err)
{
    const struct plan_request request = {.plan = doc, .defaults = defaults, .registry = registry};
    return plan_read_request(&request, arena, ret, problems, normalised, err);
}

enum bt_code plan_read_canonical(struct doc normalised, const struct plan_defaults *defaults,
                                 const struct registry *registry, struct arena *arena,
                                 struct plan **ret, struct bt_error *err)
{
    struct problem first[1];
    struct problems problems = {.at = first, .cap = 1};
    const struct plan_request request = {.plan = normalised, .defaults = defaults};
    struct plan_reader r = {.request = &request,
                            .registry = registry,
                            .canonical = true,
                            .arena = arena,
                            .problems = &problems,
                            .err = err};
    return run(&r, ret, NULL);
}

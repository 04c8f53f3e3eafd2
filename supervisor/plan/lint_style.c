/* Warnings about the shape of a plan (F08). */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/msg.h"
#include "registry/card.h"
#include "registry/registry.h"
#include "supervisor/plan/flow/reach.h"
#include "supervisor/plan/lint.h"
#include "supervisor/plan/problem_add.h"

enum { JOIN_MAX = 2, PARALLEL_MAX = 10 };

struct style {
    const struct plan *plan;
    const struct plan_lint *lint;
    struct problems *problems;
    uint32_t *mark; /* per entry; zero between uses */
    uint32_t *part; /* per entry: its parent in the forest of connected entries */
};

static bool is_live(const struct style *s, uint32_t entry)
{
    return !s->plan->steps[entry].superseded;
}

static void warn(const struct style *s, enum problem_category c, uint32_t entry, const char *field,
                 const char *message)
{
    problem_add(s->problems, c, true, entry == UINT32_MAX ? NULL : &s->plan->steps[entry], entry,
                field, "%s", message);
}

/* ---- steps ---- */

/*
 * The number of dependencies that no other dependency depends on: those run in parallel. Those with
 * a condition count as one: they are the branches of a decision.
 */
static uint32_t joined(const struct style *s, uint32_t entry)
{
    const struct plan *p = s->plan;
    const struct plan_step *step = &p->steps[entry];
    const uint32_t stamp = entry + 1;
    uint32_t n = 0;
    uint32_t branches = 0;
    for (uint32_t i = 0; i < step->deps_n; i++) {
        const struct plan_step *dep = &p->steps[p->deps[step->deps_at + i]];
        for (uint32_t k = 0; k < dep->deps_n; k++) {
            s->mark[p->deps[dep->deps_at + k]] = stamp;
        }
    }
    for (uint32_t i = 0; i < step->deps_n; i++) {
        const uint32_t dep = p->deps[step->deps_at + i];
        const bool parallel = s->mark[dep] != stamp;
        const bool branch = parallel && p->steps[dep].rules->when.ptr != NULL;
        branches += branch ? 1 : 0;
        n += parallel && !branch ? 1 : 0;
    }
    return n + (branches > 0 ? 1 : 0);
}

static void missing_gate(const struct style *s, uint32_t entry)
{
    const struct plan_step *step = &s->plan->steps[entry];
    char text[200];
    if (s->plan->chain || step->type != STEP_TYPE_TASK || step->rules->gate_with.len > 0) {
        return;
    }
    const uint32_t n = joined(s, entry);
    if (n > JOIN_MAX) {
        (void)snprintf(text, sizeof text,
                       "joins the results of %u parallel steps unchecked; give it a gate, or a "
                       "synthesis_gate before it",
                       n);
        warn(s, PROBLEM_MISSING_GATE, entry, "gate", text);
    }
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The first word of the text that means an outside call; NULL = none. */
static const char *outside_word(struct str text)
{
    static const char *const words[] = {"search", "fetch",   "api",   "web",
                                        "http",   "request", "query", "external"};
    for (size_t at = 0; at < text.len;) {
        size_t end = at;
        while (end < text.len && is_letter(text.ptr[end])) {
            end++;
        }
        for (size_t w = 0; end > at && w < sizeof words / sizeof words[0]; w++) {
            size_t i = 0;
            while (words[w][i] != '\0' && i < end - at &&
                   (text.ptr[at + i] | 0x20) == words[w][i]) {
                i++;
            }
            if (words[w][i] == '\0' && i == end - at) {
                return words[w];
            }
        }
        at = end + 1;
    }
    return NULL;
}

/* Whether the input schema of the skill says that it reaches nothing outside of this machine. */
static bool is_local(const struct registry *registry, const struct plan_step *step)
{
    const uint32_t agent = registry == NULL || step->agent_id.len == 0
                               ? REGISTRY_NONE
                               : registry_agent(registry, step->agent_id);
    const struct msg_card *card =
        agent == REGISTRY_NONE ? NULL : registry_agent_view(registry, agent).card;
    const uint32_t skill = card == NULL ? UINT32_MAX : card_skill(card, step->skill);
    const struct doc local =
        skill == UINT32_MAX ? (struct doc){NULL, 0}
                            : doc_get(card->skills[skill].input_schema, STR_LIT("x-baton-local"));
    return local.ptr != NULL && doc_head(local).b;
}

static void optimism_bias(const struct style *s, const struct registry *registry, uint32_t entry)
{
    const struct plan_step *step = &s->plan->steps[entry];
    char text[200];
    if (plan_step_is_agentless(step) || step->rules->policy.on_failure != ON_FAILURE_ABORT ||
        (s->plan->max_fallbacks > 0 && step->alternatives_n > 0)) {
        return;
    }
    const char *word = outside_word(step->task);
    word = word == NULL ? outside_word(step->skill) : word;
    if (word != NULL && !is_local(registry, step)) {
        (void)snprintf(text, sizeof text,
                       "\"%s\" may fail, and the plan would fail with it; give fallbackAgents, or "
                       "onFailure skip, continue, replan or ask",
                       word);
        warn(s, PROBLEM_OPTIMISM_BIAS, entry, "onFailure", text);
    }
}

static void absent_agent(const struct style *s, const struct registry *registry, uint32_t entry)
{
    const struct plan_step *step = &s->plan->steps[entry];
    const uint32_t agent =
        step->agent_id.len == 0 ? REGISTRY_NONE : registry_agent(registry, step->agent_id);
    char text[200];
    if (agent != REGISTRY_NONE && registry_agent_view(registry, agent).instances == 0) {
        (void)snprintf(text, sizeof text,
                       "agent \"%.*s\" has no live instance now; the step would wait for one",
                       STR_ARG(step->agent_id));
        warn(s, PROBLEM_MISSING_AGENT, entry, "agentId", text);
    }
}

/* The skill's card allows it more time than the step does. */
static void short_timeout(const struct style *s, const struct registry *registry, uint32_t entry)
{
    const struct plan_step *step = &s->plan->steps[entry];
    const uint32_t agent =
        step->agent_id.len == 0 ? REGISTRY_NONE : registry_agent(registry, step->agent_id);
    const struct msg_card *card =
        agent == REGISTRY_NONE ? NULL : registry_agent_view(registry, agent).card;
    const uint32_t skill = card == NULL ? UINT32_MAX : card_skill(card, step->skill);
    char text[300];
    if (skill == UINT32_MAX || step->rules->policy.timeout_ms == 0 ||
        card->skills[skill].max_ms <= step->rules->policy.timeout_ms) {
        return;
    }
    (void)snprintf(text, sizeof text,
                   "an attempt ends after %" PRIu64 " ms, but skill \"%.*s\" may take %" PRIu64
                   " ms; set timeoutMs of the step, or stepTimeoutMs of the policy",
                   step->rules->policy.timeout_ms, STR_ARG(step->skill),
                   card->skills[skill].max_ms);
    warn(s, PROBLEM_LIMIT, entry, "timeoutMs", text);
}

/* ---- shape ---- */

static uint32_t part_of(const struct style *s, uint32_t entry)
{
    while (s->part[entry] != entry) {
        s->part[entry] = s->part[s->part[entry]];
        entry = s->part[entry];
    }
    return entry;
}

static void connect(const struct style *s)
{
    const struct plan *p = s->plan;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        s->part[i] = i;
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *step = &p->steps[i];
        for (uint32_t d = 0; d < step->deps_n; d++) {
            const uint32_t a = part_of(s, i);
            const uint32_t b = part_of(s, p->deps[step->deps_at + d]);
            s->part[a < b ? b : a] = a < b ? a : b;
        }
    }
}

/* Warns of steps without connections and of several connected parts. */
static void orphans_and_parts(const struct style *s)
{
    const struct plan *p = s->plan;
    uint32_t live = 0;
    uint32_t parts = 0;
    char text[160];
    connect(s);
    memset(s->mark, 0, p->n_steps * sizeof s->mark[0]);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        live += is_live(s, i) ? 1 : 0;
        s->mark[part_of(s, i)] += is_live(s, i) ? 1 : 0;
    }
    for (uint32_t i = 0; i < p->n_steps && live > 1; i++) {
        const uint32_t members = s->mark[part_of(s, i)];
        parts += s->part[i] == i && members > 1 ? 1 : 0;
        if (members == 1 && is_live(s, i)) {
            warn(s, PROBLEM_ORPHAN_TASK, i, "dependsOn",
                 "depends on nothing and nothing depends on it; is it meant to be part of this "
                 "plan?");
        }
    }
    if (parts > 1) {
        (void)snprintf(text, sizeof text,
                       "the steps form %u parts without a connection; as separate plans they would "
                       "not fail together",
                       parts);
        warn(s, PROBLEM_DISCONNECTED_FLOW, UINT32_MAX, "steps", text);
    }
    memset(s->mark, 0, p->n_steps * sizeof s->mark[0]);
}

static void parallel_explosion(const struct style *s)
{
    const struct plan *p = s->plan;
    char text[200];
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (is_live(s, i)) {
            s->mark[s->lint->steps[i].level]++;
        }
    }
    for (uint32_t level = 0; level < s->lint->n_levels; level++) {
        if (s->mark[level] > PARALLEL_MAX) {
            (void)snprintf(text, sizeof text,
                           "%u steps are parallel; at most maxConcurrency (%u) run at once, but "
                           "each may spend its estimate",
                           s->mark[level], p->max_concurrency);
            warn(s, PROBLEM_PARALLEL_EXPLOSION, UINT32_MAX, "steps", text);
            break;
        }
    }
    memset(s->mark, 0, p->n_steps * sizeof s->mark[0]);
}

/* ---- bounds ---- */

static void over_bounds(const struct style *s)
{
    const struct plan *p = s->plan;
    char text[200];
    if (p->timeout_ms > 0 && s->lint->path_ms > p->timeout_ms) {
        (void)snprintf(text, sizeof text, "%" PRIu64 " ms are less than the longest path may take",
                       p->timeout_ms);
        warn(s, PROBLEM_LIMIT, UINT32_MAX, "policy.planTimeoutMs", text);
    }
    if ((p->budget_tokens > 0 && s->lint->worst_tokens > p->budget_tokens) ||
        (p->budget_micros > 0 && s->lint->worst_micros > p->budget_micros)) {
        (void)snprintf(text, sizeof text,
                       "is less than the estimates come to with every attempt: %" PRIu64
                       " tokens, %" PRIu64 " micros",
                       s->lint->worst_tokens, s->lint->worst_micros);
        warn(s, PROBLEM_LIMIT, UINT32_MAX, "policy.budget", text);
    }
}

/* The parameters of a step, with the results in them, go to an agent that the step did not name. */
static void search_sends(const struct style *s)
{
    enum { STEPS_SHOWN = 8 };
    const struct plan *p = s->plan;
    struct buf text;
    uint32_t shown = 0;
    uint32_t all = 0;
    if (p->search_with.len == 0 || p->max_fallbacks == 0) {
        return;
    }
    buf_init(&text, 1024);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *step = &p->steps[i];
        if (!is_live(s, i) || plan_step_is_agentless(step) ||
            step->rules->policy.effects == EFFECTS_UNSAFE) {
            continue;
        }
        if (shown < STEPS_SHOWN) {
            struct doc_cursor c = doc_cursor(step->parameters);
            struct doc_head map = {.kind = DOC_NIL};
            const bool has = step->parameters.ptr != NULL && doc_next(&c, &map) && map.n > 0;
            buf_printf(&text, "%s%.*s (", shown++ > 0 ? ", " : "", STR_ARG(step->step_id));
            for (uint32_t k = 0; has && k < map.n && k < STEPS_SHOWN; k++) {
                const struct str name = doc_string(doc_skip(&c));
                (void)doc_skip(&c);
                buf_printf(&text, "%s%.*s%s", k > 0 ? ", " : "", PROBLEM_NAME(name));
            }
            buf_add_cstr(&text, !has ? "its task)" : map.n > STEPS_SHOWN ? ", ...)" : ")");
        }
        all++;
    }
    if (all > 0) {
        problem_add(s->problems, PROBLEM_STYLE, true, NULL, 0, "policy.searchAgent",
                    "a step that fails with RESOURCE_NOT_FOUND sends its parameters, with the "
                    "results in them, to agent \"%.*s\": %s%s",
                    STR_ARG(p->search_with), buf_cstr(&text), all > shown ? ", ..." : "");
    }
    buf_done(&text);
}

/* ---- what never runs ---- */

/* Of the plan, and of the bodies of its steps, whose problems are those of the step `outer` of the
 * first plan. Depth: that of children. */
static enum bt_code never_runs(const struct plan *plan, const struct problem *outer,
                               struct arena *arena, struct problems *problems, struct bt_error *err)
{
    enum { FOUND_MAX = 20 };
    struct problem found[FOUND_MAX];
    struct problems inner = {.at = found, .cap = FOUND_MAX};
    enum bt_code code = BT_OK;
    uint32_t *marks = arena_alloc(arena, ((size_t)plan->n_steps + 1) * sizeof *marks);
    if (marks == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the style of a plan");
    }
    plan_lint_reach(plan, marks, outer == NULL ? problems : &inner);
    for (uint32_t i = 0; outer != NULL && i < inner.n; i++) {
        const struct plan_step at = {.step_id = str_from(outer->step_id)};
        problem_add(problems, found[i].category, true, &at, outer->step, found[i].field,
                    "in step \"%s\": %s", found[i].step_id, found[i].message);
    }
    for (uint32_t i = 0; i < plan->n_steps && code == BT_OK; i++) {
        struct problem here = {.step = i};
        struct plan *body = NULL;
        (void)snprintf(here.step_id, sizeof here.step_id, "%.*s", STR_ARG(plan->steps[i].step_id));
        code =
            plan->steps[i].superseded ? BT_OK : plan_lint_body(&plan->steps[i], arena, &body, err);
        if (code == BT_OK && body != NULL) {
            code = never_runs(body, outer == NULL ? &here : outer, arena, problems, err);
        }
    }
    return code;
}

enum bt_code plan_lint_never(const struct plan *plan, struct arena *arena,
                             struct problems *problems, struct bt_error *err)
{
    return never_runs(plan, NULL, arena, problems, err);
}

enum bt_code plan_lint_style(const struct plan *plan, const struct plan_lint *lint,
                             const struct registry *registry, struct arena *arena,
                             struct problems *problems, struct bt_error *err)
{
    const size_t n = (size_t)plan->n_steps + 1;
    struct style s = {.plan = plan,
                      .lint = lint,
                      .problems = problems,
                      .mark = arena_alloc(arena, n * sizeof s.mark[0]),
                      .part = arena_alloc(arena, n * sizeof s.part[0])};
    if (s.mark == NULL || s.part == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the style of a plan");
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (!is_live(&s, i)) {
            continue;
        }
        missing_gate(&s, i);
        optimism_bias(&s, registry, i);
        if (registry != NULL) {
            absent_agent(&s, registry, i);
            short_timeout(&s, registry, i);
        }
    }
    memset(s.mark, 0, plan->n_steps * sizeof s.mark[0]);
    if (!plan->chain) {
        orphans_and_parts(&s);
        parallel_explosion(&s);
    }
    over_bounds(&s);
    search_sends(&s);
    return never_runs(plan, NULL, arena, problems, err);
}

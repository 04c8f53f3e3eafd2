#include "supervisor/plan/lint.h"

#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/read.h"

/* Sums saturate at LINT_NO_BOUND. */
static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > LINT_NO_BOUND - b ? LINT_NO_BOUND : a + b;
}

static uint64_t times(uint64_t a, uint64_t n)
{
    return n != 0 && a > LINT_NO_BOUND / n ? LINT_NO_BOUND : a * n;
}

static uint64_t bound(msec ms)
{
    return ms == 0 ? LINT_NO_BOUND : ms;
}

/* ---- one step ---- */

static uint64_t longest_delay(const struct backoff *b, uint32_t failed_attempt)
{
    struct backoff plain = *b;
    plain.jitter_permille = 0;
    const uint64_t delay = backoff_delay(&plain, failed_attempt, 0);
    return plus(delay, times(delay, b->jitter_permille) / 1000);
}

/* Attempts that are no retries: one after a wait, one by the search agent, one by each other agent.
 */
static uint32_t fallbacks_of(const struct plan *p, const struct plan_step *s)
{
    const uint32_t most = s->rules->policy.effects == EFFECTS_UNSAFE
                              ? 0
                              : 1 + s->alternatives_n + (p->search_with.len > 0 ? 1u : 0u);
    return most < p->max_fallbacks ? most : p->max_fallbacks;
}

/* The last fallback of a run has the longest wait: 2^n seconds, at most 30. */
static uint64_t longest_wait(const struct plan *p)
{
    return p->max_fallbacks >= 5 ? 30000 : UINT64_C(1000) << p->max_fallbacks;
}

/* A date may be any time away. */
static uint64_t wait_ms(const struct plan_wait *w)
{
    return w->what == WAIT_FOR_TIME     ? w->ms
           : w->what == WAIT_FOR_SIGNAL ? bound(w->ms)
                                        : LINT_NO_BOUND;
}

/* child_ms: the longest that one child plan of the step takes, or all rounds of a loop. */
static uint64_t step_ms(const struct plan *plan, uint32_t step, uint64_t child_ms,
                        uint32_t *ret_attempts)
{
    const struct plan_step *s = &plan->steps[step];
    const struct step_policy *p = &s->rules->policy;
    const uint64_t gate = s->rules->gate_with.len > 0 ? bound(p->check_timeout_ms) : 0;
    const bool asks = p->requires_approval || s->type == STEP_TYPE_REVIEW;
    const uint64_t before = plus(gate, asks ? p->approval_timeout_ms : 0);
    const uint32_t fallbacks = fallbacks_of(plan, s);
    uint32_t attempts = p->max_retries + 1 + fallbacks;
    uint64_t ms = 0;
    if (s->wait != NULL) {
        attempts = 0;
        ms = wait_ms(s->wait);
    } else if (s->type == STEP_TYPE_REVIEW) {
        attempts = 0;
    } else {
        attempts = attempts < LIMIT_ATTEMPTS ? attempts : LIMIT_ATTEMPTS;
        const uint64_t each = bound(p->timeout_ms);
        const bool inside = s->type == STEP_TYPE_PLAN && child_ms < each;
        ms = times(inside ? child_ms : each, attempts);
        ms = plus(ms,
                  s->rules->verify_with.len > 0 ? times(bound(p->check_timeout_ms), attempts) : 0);
        ms = plus(ms, fallbacks > 0 ? longest_wait(plan) : 0);
        for (uint32_t i = 1; i <= p->max_retries; i++) {
            ms = plus(ms, longest_delay(&p->backoff, i));
        }
        ms = p->limit_ms > 0 && ms > p->limit_ms ? p->limit_ms : ms;
    }
    if (ret_attempts != NULL) {
        *ret_attempts = attempts;
    }
    return plus(before, ms);
}

uint64_t plan_lint_step_ms(const struct plan *plan, uint32_t step, uint32_t *ret_attempts)
{
    return step_ms(plan, step, LINT_NO_BOUND, ret_attempts);
}

/* ---- what undoes a step ---- */

static uint64_t number_in(struct doc map, const char *name)
{
    const struct doc_head head = doc_head(doc_get(map, str_from(name)));
    return head.kind == DOC_UINT ? head.u : 0;
}

/* The longest that its compensation takes; *io gets what it may cost. */
static uint64_t undo_ms(const struct plan_step *s, struct plan_lint *io)
{
    const struct doc undo = s->rules->compensate;
    const struct doc estimate = doc_get(undo, STR_LIT("estimate"));
    const uint64_t retries = number_in(undo, "maxRetries");
    const uint64_t pause = number_in(doc_get(undo, STR_LIT("backoff")), "maxMs");
    const uint64_t limit = number_in(undo, "stepLimitMs");
    uint64_t ms = times(bound(number_in(undo, "timeoutMs")), retries + 1);
    ms = plus(ms, times(pause, retries));
    ms = limit > 0 && ms > limit ? limit : ms;
    io->unestimated +=
        number_in(estimate, "tokens") == 0 && number_in(estimate, "costMicros") == 0 ? 1 : 0;
    if (estimate.ptr != NULL) {
        io->worst_tokens =
            plus(io->worst_tokens, times(number_in(estimate, "tokens"), retries + 1));
        io->worst_micros =
            plus(io->worst_micros, times(number_in(estimate, "costMicros"), retries + 1));
    }
    return ms;
}

/* ---- paths and levels ---- */

static uint32_t n_deps(const struct plan *p, uint32_t entry)
{
    return p->chain ? (entry > 0 ? 1 : 0) : p->steps[entry].deps_n;
}

static uint32_t n_dependents(const struct plan *p, uint32_t entry)
{
    return p->chain ? (entry + 1 < p->n_steps ? 1 : 0) : p->steps[entry].dependents_n;
}

static uint32_t dependent(const struct plan *p, uint32_t entry, uint32_t i)
{
    return p->chain ? entry + 1 : p->dependents[p->steps[entry].dependents_at + i];
}

/* The longest path that ends at an entry. */
struct longest_path {
    uint64_t ms;
    uint32_t steps; /* decides between paths of the same duration */
    uint32_t from;
    uint32_t open;
};

static bool is_longer_path(const struct longest_path *a, const struct longest_path *b)
{
    return a->ms != b->ms ? a->ms > b->ms : a->steps > b->steps;
}

static void extend_path(const struct longest_path *w, uint32_t entry, struct longest_path *to)
{
    if (is_longer_path(w, to)) {
        to->ms = w->ms;
        to->steps = w->steps;
        to->from = entry;
    }
}

/* The last entry of the longest path; UINT32_MAX when there is none. */
static uint32_t find_paths(const struct plan *p, struct plan_lint *lint, struct longest_path *paths,
                           uint32_t *list)
{
    uint32_t n = 0;
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        paths[i] = (struct longest_path){.from = UINT32_MAX, .open = n_deps(p, i)};
        if (paths[i].open == 0) {
            list[n++] = i;
        }
    }
    for (uint32_t at = 0; at < n; at++) {
        const uint32_t entry = list[at];
        struct longest_path *w = &paths[entry];
        struct lint_step *step = &lint->steps[entry];
        const uint32_t level = step->level;
        if (p->steps[entry].superseded) {
            step->level = LINT_NO_LEVEL;
        } else {
            w->ms = plus(w->ms, step->worst_ms);
            w->steps++;
            lint->n_levels = lint->n_levels > level ? lint->n_levels : level + 1;
            last = last == UINT32_MAX || is_longer_path(w, &paths[last]) ? entry : last;
        }
        for (uint32_t i = 0; i < n_dependents(p, entry); i++) {
            const uint32_t next = dependent(p, entry, i);
            const uint32_t its = p->steps[entry].superseded ? level : level + 1;
            extend_path(w, entry, &paths[next]);
            lint->steps[next].level = lint->steps[next].level > its ? lint->steps[next].level : its;
            if (--paths[next].open == 0) {
                list[n++] = next;
            }
        }
    }
    return last;
}

static void keep_path(const struct plan *p, struct plan_lint *lint,
                      const struct longest_path *paths, uint32_t last)
{
    for (uint32_t i = last; i != UINT32_MAX; i = paths[i].from) {
        lint->n_path += p->steps[i].superseded ? 0 : 1;
    }
    uint32_t at = lint->n_path;
    for (uint32_t i = last; i != UINT32_MAX; i = paths[i].from) {
        if (!p->steps[i].superseded) {
            lint->path[--at] = i;
        }
    }
    lint->path_ms = last == UINT32_MAX ? 0 : paths[last].ms;
}

static uint64_t makespan(uint64_t work_ms, uint64_t path_ms, uint64_t concurrency, msec timeout_ms)
{
    const uint64_t c = concurrency > 0 ? concurrency : 1;
    uint64_t ms = LINT_NO_BOUND;
    if (work_ms != LINT_NO_BOUND) {
        /* Graham's bound, rounded up; never more than the sum. */
        ms = path_ms + (work_ms - path_ms + c - 1) / c;
    }
    return timeout_ms > 0 && ms > timeout_ms ? timeout_ms : ms;
}

/* ---- the child plans of a step ---- */

/* What all items of a map, or all rounds of a loop, may take and cost. */
struct inside {
    uint64_t ms, tokens, micros;
    uint32_t unestimated;
};

/* The numbers of a body are all written. */
static enum bt_code read_body(const struct child_step *how, struct arena *arena,
                              struct plan **ret_body, struct bt_error *err)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    const struct child_of of = {
        .kind = how->kind, .of = STR_LIT("lint"), .depth = 1, .name = how->name};
    const struct child_share share = {0};
    struct buf text;
    buf_init(&text, LIMIT_STEP_BYTES);
    enum bt_code code =
        child_document(how, &of, (struct doc){NULL, 0}, STR_LIT(""), &share, &text, err);
    struct doc doc = {NULL, 0};
    if (code == BT_OK) {
        doc = doc_copy(arena, doc_from_buf(&text));
        code = doc.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for the body of a step")
                               : plan_read_canonical(doc, &defaults, NULL, arena, ret_body, err);
    }
    buf_done(&text);
    return code;
}

enum bt_code plan_lint_body(const struct plan_step *step, struct arena *arena, struct plan **ret,
                            struct bt_error *err)
{
    struct child_step how;
    *ret = NULL;
    if (step->type != STEP_TYPE_PLAN || !child_step_read(step->rules->child, &how) ||
        how.kind == CHILD_OF_SUB) {
        return BT_OK;
    }
    const enum bt_code code = read_body(&how, arena, ret, err);
    if (code != BT_OK) {
        *ret = NULL;
    }
    return code == BT_NOMEM ? code : BT_OK;
}

/* The items of a list that is written down, else as many as there may be. */
static uint32_t most_items(const struct child_step *how, const struct plan *body)
{
    const struct doc_head list = doc_head(how->list);
    const uint32_t n = list.kind == DOC_ARRAY ? list.n : how->max_items;
    const uint32_t room = LIMIT_STEPS / (body->n_steps > 0 ? body->n_steps : 1);
    return n < room ? n : room;
}

/* A sub-plan has its numbers when it begins: nothing is known of it here. */
static enum bt_code look_inside(const struct plan_step *s, struct arena *arena, struct inside *ret,
                                struct bt_error *err)
{
    struct child_step how;
    struct plan_lint lint;
    struct plan *body = NULL;
    uint64_t n = s->rules->loop.max;
    *ret = (struct inside){.ms = LINT_NO_BOUND, .unestimated = 1};
    if (!child_step_read(s->rules->child, &how) || how.kind == CHILD_OF_SUB) {
        return BT_OK;
    }
    enum bt_code code = plan_lint_body(s, arena, &body, err);
    code = code == BT_OK && body != NULL ? plan_lint(body, arena, &lint, err) : code;
    if (code != BT_OK || body == NULL) {
        return code == BT_NOMEM ? code : BT_OK;
    }
    if (how.kind == CHILD_OF_MAP) {
        const uint64_t c = number_in(doc_get(how.body, STR_LIT("policy")), "maxConcurrency");
        n = most_items(&how, body);
        ret->ms = n == 0 ? 0 : makespan(times(lint.work_ms, n), lint.path_ms, c, 0);
    } else {
        ret->ms = plus(times(lint.worst_ms, n), times(s->rules->loop.delay_ms, n > 0 ? n - 1 : 0));
    }
    ret->tokens = times(lint.worst_tokens, n);
    ret->micros = times(lint.worst_micros, n);
    ret->unestimated = lint.unestimated;
    return BT_OK;
}

/* ---- entry points ---- */

static enum bt_code add_up(const struct plan *p, struct arena *arena, struct plan_lint *lint,
                           struct bt_error *err)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct step_policy *policy = &p->steps[i].rules->policy;
        struct lint_step *step = &lint->steps[i];
        if (p->steps[i].superseded) {
            continue;
        }
        struct inside in = {.ms = LINT_NO_BOUND, .unestimated = 1};
        if (p->steps[i].type == STEP_TYPE_PLAN &&
            look_inside(&p->steps[i], arena, &in, err) != BT_OK) {
            return err->code;
        }
        step->worst_ms = step_ms(p, i, in.ms, &step->attempts);
        lint->work_ms = plus(lint->work_ms, step->worst_ms);
        if (p->steps[i].rules->compensate.ptr != NULL && p->undo != UNDO_NEVER) {
            lint->undo_ms = plus(lint->undo_ms, undo_ms(&p->steps[i], lint));
        }
        const bool own = policy->estimate_tokens > 0 || policy->estimate_micros > 0;
        lint->worst_tokens = plus(lint->worst_tokens,
                                  times(own ? policy->estimate_tokens : in.tokens, step->attempts));
        lint->worst_micros = plus(lint->worst_micros,
                                  times(own ? policy->estimate_micros : in.micros, step->attempts));
        lint->unestimated += own || plan_step_is_agentless(&p->steps[i]) ? 0 : in.unestimated;
    }
    return BT_OK;
}

enum bt_code plan_lint(const struct plan *plan, struct arena *arena, struct plan_lint *ret,
                       struct bt_error *err)
{
    const size_t n = (size_t)plan->n_steps + 1;
    struct plan_lint lint = {.steps = arena_alloc(arena, n * sizeof lint.steps[0]),
                             .path = arena_alloc(arena, n * sizeof lint.path[0])};
    struct longest_path *paths = arena_alloc(arena, n * sizeof *paths);
    uint32_t *list = arena_alloc(arena, n * sizeof *list);
    if (lint.steps == NULL || lint.path == NULL || paths == NULL || list == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the worst case of a plan");
    }
    const enum bt_code code = add_up(plan, arena, &lint, err);
    if (code != BT_OK) {
        return code;
    }
    keep_path(plan, &lint, paths, find_paths(plan, &lint, paths, list));
    lint.worst_ms = makespan(lint.work_ms, lint.path_ms, plan->max_concurrency, plan->timeout_ms);
    *ret = lint;
    return BT_OK;
}

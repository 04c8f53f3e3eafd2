/* Templates in tasks and parameters: well formed, and naming a step whose result is there in time.
 */
#include "supervisor/core/plan/plan_check_internal.h"
#include "supervisor/core/plan/template.h"

/* Edges that may be visited to find indirect dependencies, per plan: about 20 ms. A plan beyond it
 * is rejected with advice. */
#define VISITS_MAX 10000000u

struct refs {
    struct plan_checker *k;
    uint32_t step;
    bool deps_known;      /* mark[d] == step + 1 for each direct dependency d, */
    bool ancestors_known; /* and for each indirect one */
};

static void mark_deps(struct refs *r)
{
    const struct plan_checker *k = r->k;
    const struct plan_step *step = &k->plan->steps[r->step];
    for (uint32_t e = step->deps_at; e < step->deps_at + step->deps_n; e++) {
        if (k->in->ret_deps[e] != UINT32_MAX) {
            k->mark[k->in->ret_deps[e]] = r->step + 1;
        }
    }
    r->deps_known = true;
}

/* Marks the dependencies of the dependencies, and so on. False when the budget is spent. */
static bool mark_ancestors(struct refs *r)
{
    struct plan_checker *k = r->k;
    const uint32_t stamp = r->step + 1;
    const struct plan_step *of = &k->plan->steps[r->step];
    uint32_t n = 0;
    for (uint32_t e = of->deps_at; e < of->deps_at + of->deps_n; e++) {
        if (k->in->ret_deps[e] != UINT32_MAX) {
            k->list[n++] = k->in->ret_deps[e];
        }
    }
    while (n > 0) {
        const struct plan_step *step = &k->plan->steps[k->list[--n]];
        k->visits += step->deps_n;
        if (k->visits > VISITS_MAX) {
            return false;
        }
        for (uint32_t e = step->deps_at; e < step->deps_at + step->deps_n; e++) {
            const uint32_t d = k->in->ret_deps[e];
            if (d != UINT32_MAX && k->mark[d] != stamp) {
                k->mark[d] = stamp;
                k->list[n++] = d;
            }
        }
    }
    r->ancestors_known = true;
    return true;
}

enum before { BEFORE_YES, BEFORE_NO, BEFORE_TOO_FAR };

static enum before comes_before(struct refs *r, uint32_t other)
{
    struct plan_checker *k = r->k;
    if (k->plan->chain) {
        return other < r->step ? BEFORE_YES : BEFORE_NO;
    }
    if (other == r->step) {
        return BEFORE_NO;
    }
    if (!r->deps_known) {
        mark_deps(r);
    }
    if (k->mark[other] != r->step + 1 && !r->ancestors_known && !mark_ancestors(r)) {
        return BEFORE_TOO_FAR;
    }
    return k->mark[other] == r->step + 1 ? BEFORE_YES : BEFORE_NO;
}

/* The step that the ref names: the longest id that fits. *ret_shorter: another one that fits, or
 * UINT32_MAX. */
static uint32_t find(const struct plan_checker *k, struct str ref, uint32_t *ret_shorter)
{
    struct str id = {NULL, 0};
    struct str path;
    uint32_t found = UINT32_MAX;
    *ret_shorter = UINT32_MAX;
    while (template_split(ref, &id, &path)) {
        const uint32_t s = plan_check_find(k, id);
        if (s != UINT32_MAX && found != UINT32_MAX) {
            *ret_shorter = s;
            break;
        }
        found = found == UINT32_MAX ? s : found;
    }
    return found;
}

/* In a graph the reference adds the dependency. */
static bool adds_edge(struct refs *r, uint32_t other)
{
    struct plan_check_input *in = r->k->in;
    if (r->k->plan->chain || other == r->step || in->n_missing >= in->missing_max ||
        r->k->plan->steps[other].superseded) {
        return false;
    }
    in->missing[in->n_missing++] = (struct plan_missing){r->step, other};
    r->k->mark[other] = r->step + 1;
    return true;
}

static void check_order(struct refs *r, const char *field, struct str text, uint32_t other)
{
    struct plan_checker *k = r->k;
    const struct str id = k->plan->steps[other].step_id;
    switch (comes_before(r, other)) {
    case BEFORE_YES:
        break;
    case BEFORE_NO:
        if (k->plan->chain) {
            CHECK_PUT(k, PROBLEM_BAD_TEMPLATE, r->step, field, text, STR_LIT(": step \""), id,
                      STR_LIT("\" does not come before this one"));
        } else if (other == r->step) {
            CHECK_PUT(k, PROBLEM_BAD_TEMPLATE, r->step, field, text,
                      STR_LIT(": a step has no result of its own; name one before it"));
        } else if (!adds_edge(r, other)) {
            CHECK_PUT(k, PROBLEM_BAD_TEMPLATE, r->step, field, text,
                      STR_LIT(": this step does not depend on \""), id,
                      STR_LIT("\"; add it to dependsOn"));
        }
        break;
    case BEFORE_TOO_FAR:
        CHECK_PUT(k, PROBLEM_LIMIT, r->step, field, text,
                  STR_LIT(": the plan has too many indirect references to follow; name \""), id,
                  STR_LIT("\" in dependsOn"));
        break;
    }
}

/* "{{results.x.text | upper}}": a member may have any name, but hardly this one. */
static void check_filter(struct refs *r, const char *field, const struct template_ref *t)
{
    const struct str parts[] = {
        t->text, STR_LIT(": templates have no filters; what follows the step is the name of a "
                         "member. Let a step change the value")};
    for (size_t i = 0; i + 3 <= t->ref.len; i++) {
        if (memcmp(t->ref.ptr + i, " | ", 3) == 0) {
            problem_put(r->k->out, PROBLEM_STYLE, true, &r->k->plan->steps[r->step], r->step, field,
                        parts, 2);
            return;
        }
    }
}

static void check_ref(struct refs *r, const char *field, const struct template_ref *t)
{
    struct plan_checker *k = r->k;
    uint32_t shorter;
    const uint32_t other = find(k, t->ref, &shorter);
    if (other == UINT32_MAX) {
        if (!k->in->outer) {
            CHECK_PUT(k, PROBLEM_BAD_TEMPLATE, r->step, field, t->text,
                      STR_LIT(" names no step of this plan"));
        }
        return;
    }
    const struct str id = k->plan->steps[other].step_id;
    if (shorter != UINT32_MAX) {
        CHECK_PUT(k, PROBLEM_BAD_TEMPLATE, r->step, field, t->text, STR_LIT(" could name step \""),
                  id, STR_LIT("\" or a member of step \""), k->plan->steps[shorter].step_id,
                  STR_LIT("\"; rename one of the steps"));
        return;
    }
    check_filter(r, field, t);
    check_order(r, field, t->text, other);
}

/* A reference of a condition: "results.a.b" or "steps.a". */
static void check_reference(struct refs *r, const char *field, struct str text)
{
    const struct str results = STR_LIT("results.");
    const struct str steps = STR_LIT("steps.");
    struct template_ref t = {.text = text};
    if (text.len > results.len && memcmp(text.ptr, results.ptr, results.len) == 0) {
        t.ref = (struct str){text.ptr + results.len, text.len - results.len};
        check_ref(r, field, &t);
        return;
    }
    const struct str id = {text.ptr + steps.len, text.len - steps.len};
    const uint32_t other = plan_check_find(r->k, id);
    if (other == UINT32_MAX) {
        if (!r->k->in->outer) {
            CHECK_PUT(r->k, PROBLEM_BAD_TEMPLATE, r->step, field, text,
                      STR_LIT(" names no step of this plan"));
        }
        return;
    }
    check_order(r, field, text, other);
}

/* ---- templates of other systems ---- */

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static struct str next_name(struct str text, size_t *at)
{
    while (*at < text.len && !in_name(text.ptr[*at])) {
        (*at)++;
    }
    const size_t from = *at;
    while (*at < text.len && in_name(text.ptr[*at])) {
        (*at)++;
    }
    return (struct str){text.ptr + from, *at - from};
}

/* The step that "steps.a.output", "a.output" or "a" names; UINT32_MAX = none. */
static uint32_t named_step(const struct plan_checker *k, struct str text)
{
    static const char *const words[] = {"steps", "step",    "tasks",  "task",   "jobs",   "nodes",
                                        "needs", "outputs", "output", "result", "results"};
    size_t at = 0;
    struct str name = next_name(text, &at);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (str_is(name, words[i])) {
            name = next_name(text, &at);
            break;
        }
    }
    return name.len == 0 ? UINT32_MAX : plan_check_find(k, name);
}

/* "{{result.x}}" or "{{ steps.x.output }}": plain text in a plan. With the id of a step in it, it
 * cannot be intended. */
static void check_foreign(struct refs *r, const char *field, const struct template_ref *t)
{
    struct plan_checker *k = r->k;
    struct template_ref word;
    size_t from = 0;
    uint32_t ix;
    if (template_next_in(k->in->words, k->in->n_words, t->text, &from, &word, &ix) &&
        word.kind == TEMPLATE_OK) {
        return;
    }
    const uint32_t other = named_step(k, t->text);
    if (other != UINT32_MAX) {
        CHECK_PUT(k, PROBLEM_BAD_TEMPLATE, r->step, field, t->text,
                  STR_LIT(" is no template of a plan; the result of that step is {{results."),
                  k->plan->steps[other].step_id, STR_LIT("}}"));
        return;
    }
    const struct str parts[] = {
        t->text, STR_LIT(" stays as it is; templates of a plan are {{results.<stepId>}}")};
    problem_put(k->out, PROBLEM_STYLE, true, &k->plan->steps[r->step], r->step, field, parts, 2);
}

/* "${a}" or "${steps.a.output}" for a step a: text of a shell, but perhaps not intended. */
static void warn_variables(struct refs *r, const char *field, struct str text)
{
    for (size_t at = 0; at + 2 < text.len; at++) {
        if (text.ptr[at] != '$' || text.ptr[at + 1] != '{' || text.ptr[at + 2] == '{') {
            continue;
        }
        const char *end = memchr(text.ptr + at, '}', text.len - at);
        if (end == NULL) {
            return;
        }
        const struct str variable = {text.ptr + at, (size_t)(end - text.ptr) + 1 - at};
        const uint32_t other = named_step(r->k, variable);
        if (other != UINT32_MAX) {
            const struct str parts[] = {
                variable, STR_LIT(" stays as it is; the result of that step is {{results."),
                r->k->plan->steps[other].step_id, STR_LIT("}}")};
            problem_put(r->k->out, PROBLEM_STYLE, true, &r->k->plan->steps[r->step], r->step, field,
                        parts, 4);
        }
        at += variable.len - 1;
    }
}

static void check_text(struct refs *r, const char *field, struct str text)
{
    struct template_ref t;
    size_t from = 0;
    while (template_next(text, &from, &t)) {
        if (t.kind == TEMPLATE_OK) {
            check_ref(r, field, &t);
        } else if (t.kind == TEMPLATE_FOREIGN) {
            check_foreign(r, field, &t);
        } else {
            CHECK_PUT(r->k, PROBLEM_BAD_TEMPLATE, r->step, field, STR_LIT("template \""), t.text,
                      STR_LIT("\" "), str_from(template_kind_text(t.kind)));
        }
    }
    warn_variables(r, field, text);
}

static void check_any(struct refs *r, const struct plan_text *t)
{
    if (t->reference) {
        check_reference(r, t->field, t->text);
    } else {
        check_text(r, t->field, t->text);
    }
}

/* Its templates have been filled, or never will be. */
static bool is_past(const struct plan_checker *k, uint32_t s)
{
    return k->plan->steps[s].superseded || (k->in->settled != NULL && k->in->settled[s] != 0);
}

void plan_check_templates(struct plan_checker *k)
{
    uint32_t text = 0;
    for (uint32_t s = 0; s < k->plan->n_steps; s++) {
        struct refs r = {.k = k, .step = s};
        const bool past = is_past(k, s);
        if (!past && k->plan->steps[s].type != STEP_TYPE_PLAN) { /* its children have the task */
            check_text(&r, "task", k->plan->steps[s].task);
        }
        for (; text < k->in->n_texts && k->in->texts[text].step == s; text++) {
            if (!past) {
                check_any(&r, &k->in->texts[text]);
            }
        }
    }
}

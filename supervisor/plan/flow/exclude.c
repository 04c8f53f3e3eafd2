#include "supervisor/plan/flow/exclude.h"

#include <stdio.h>
#include <string.h>

#include "supervisor/plan/flow/condition_internal.h"

enum { LITERALS_MAX = 128, OPERAND_SHOWN = 60, STATUSES = 4, GOOD_STATUSES = 2 };

/* One test that has to hold, or must not. */
struct literal {
    struct condition_ref ref;
    enum condition_test test;
    struct doc operand;
    bool negated;
    struct doc constant; /* of an input: its value */
};

struct search {
    const struct plan *plan;
    const uint32_t *steps;
    uint32_t n_steps;
    uint32_t left; /* steps of the search */
    struct literal literals[LITERALS_MAX];
    uint32_t n;
    struct exclusion *why; /* the first that was found */
};

enum goal_kind { GOAL_WHENS, GOAL_MAP, GOAL_LIST, GOAL_TESTS };

/* What is still to be shown, and after it the rest. */
struct goal {
    enum goal_kind kind;
    bool negated;
    bool any;              /* GOAL_LIST */
    bool later;            /* of a step before: the state does not count */
    uint32_t at;           /* GOAL_WHENS: the step; GOAL_LIST: the element */
    struct doc list;       /* GOAL_LIST */
    struct members left;   /* GOAL_MAP, GOAL_TESTS */
    struct literal before; /* GOAL_TESTS: what its tests have in common */
    const struct goal *next;
};

bool step_needs_success(const struct plan *plan, uint32_t step)
{
    const struct plan_step *s = &plan->steps[step];
    return s->rules->policy.run_if == RUN_IF_SUCCESS && !plan->chain && !s->after_any_end;
}

/* ---- one value ---- */

/* Whether the value may pass. What does not fit the test fails the step, so it does not. */
static bool passes(const struct literal *l, struct doc value)
{
    const bool there = value.ptr != NULL && doc_head(value).kind != DOC_NIL;
    struct bt_error err;
    bool holds = false;
    if (l->test == TEST_MATCHES || l->test == TEST_SCHEMA) {
        return true; /* not looked into: they may be slow */
    }
    if (l->test == TEST_EXISTS) {
        return (there == doc_head(l->operand).b) != l->negated;
    }
    return value.ptr != NULL &&
           condition_test_holds(l->test, l->operand, value, &holds, &err) == BT_OK &&
           holds != l->negated;
}

/* The one test that demands one of some values. */
static bool is_choice(const struct literal *l)
{
    return l->constant.ptr != NULL || (l->test == TEST_EQ && !l->negated) ||
           (l->test == TEST_NE && l->negated) || (l->test == TEST_IN && !l->negated);
}

static struct doc choice(const struct literal *l, uint32_t ix)
{
    if (l->constant.ptr == NULL && l->test == TEST_IN) {
        return doc_at(l->operand, ix);
    }
    return ix > 0 ? (struct doc){NULL, 0} : l->constant.ptr != NULL ? l->constant : l->operand;
}

/* Whether a step of the question runs only when the step of that name did not fail. */
static bool may_not_fail(const struct search *s, struct str name)
{
    for (uint32_t i = 0; i < s->n_steps; i++) {
        const struct plan_step *step = &s->plan->steps[s->steps[i]];
        for (uint32_t d = 0; step_needs_success(s->plan, s->steps[i]) && d < step->deps_n; d++) {
            if (str_eq(s->plan->steps[s->plan->deps[step->deps_at + d]].step_id, name)) {
                return true;
            }
        }
    }
    return false;
}

static struct doc status_value(uint32_t ix)
{
    static const char *const ends[STATUSES] = {"\xa9"
                                               "completed",
                                               "\xa7skipped",
                                               "\xa6"
                                               "failed",
                                               "\xa9"
                                               "cancelled"};
    return (struct doc){(const uint8_t *)ends[ix], strlen(ends[ix])};
}

/* ---- two tests ---- */

/* -1: the value lies below the operand; 1: above; 0: no test of a side. */
static int side_of(const struct literal *l, bool *ret_open)
{
    const bool below = l->test == TEST_LT || l->test == TEST_LTE;
    const bool above = l->test == TEST_GT || l->test == TEST_GTE;
    *ret_open = (l->test == TEST_LT || l->test == TEST_GT) != l->negated;
    return !below && !above ? 0 : below != l->negated ? -1 : 1;
}

/* No number and no text is on both sides. */
static bool sides_exclude(const struct literal *a, const struct literal *b)
{
    struct bt_error err;
    bool a_open;
    bool b_open;
    bool more = false;
    bool same = false;
    const int side = side_of(a, &a_open);
    const int other = side_of(b, &b_open);
    if (side == 0 || other == 0) {
        return false;
    }
    const struct literal *low = side > 0 ? a : b;
    const struct literal *high = side > 0 ? b : a;
    if (condition_test_holds(TEST_GT, high->operand, low->operand, &more, &err) != BT_OK ||
        condition_test_holds(TEST_GTE, high->operand, low->operand, &same, &err) != BT_OK) {
        return true; /* a number, and a text */
    }
    if (side == other) {
        return false;
    }
    return more || (same && (a_open || b_open));
}

/* NULL ends nothing: a value that is not there passes no test but exists. */
static bool wants_absence(const struct literal *l)
{
    return l->test == TEST_EXISTS && doc_head(l->operand).b == l->negated;
}

static bool pair_excludes(const struct literal *a, const struct literal *b)
{
    static const uint8_t nil = 0xc0;
    const struct doc nothing = {&nil, 1};
    if (wants_absence(a) || wants_absence(b)) {
        const struct literal *other = wants_absence(a) ? b : a;
        return !passes(other, nothing);
    }
    return sides_exclude(a, b) ||
           (a->test == b->test && a->negated != b->negated && doc_eq(a->operand, b->operand));
}

/* ---- all tests of one value ---- */

static void describe(const struct literal *l, char *ret, size_t size)
{
    char operand[OPERAND_SHOWN];
    condition_describe(l->operand, operand, sizeof operand);
    (void)snprintf(ret, size, "%s%.*s %s %s", l->negated ? "not " : "",
                   (int)(l->ref.text.len < 40 ? l->ref.text.len : 40), l->ref.text.ptr,
                   condition_test_name(l->test), operand);
}

/* b NULL: against the value of an input. The first that was found is the one that is named. */
static void tell(struct search *s, const struct literal *a, const struct literal *b)
{
    char one[120];
    char two[120];
    if (s->why->why[0] != '\0' || s->why->failed.ptr != NULL) {
        return;
    }
    describe(a, one, sizeof one);
    if (b != NULL) {
        describe(b, two, sizeof two);
        (void)snprintf(s->why->why, sizeof s->why->why, "\"%s\" and \"%s\" exclude each other", one,
                       two);
    } else {
        condition_describe(a->constant, two, sizeof two);
        (void)snprintf(s->why->why, sizeof s->why->why, "\"%s\", but the input is %s", one, two);
    }
}

/* The first test that the value does not pass; NULL: it passes all. */
static const struct literal *refused_by(const struct search *s, struct str text, struct doc value)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct literal *l = &s->literals[i];
        if (str_eq(l->ref.text, text) && !passes(l, value)) {
            return l;
        }
    }
    return NULL;
}

static bool status_fits(struct search *s, const struct literal *last)
{
    const bool good = may_not_fail(s, last->ref.name);
    const struct literal *against = NULL;
    for (uint32_t k = 0; k < STATUSES; k++) {
        against = refused_by(s, last->ref.text, status_value(k));
        if (against == NULL && (!good || k < GOOD_STATUSES)) {
            return true;
        }
        if (against == NULL) { /* only without the rule of the steps before */
            s->why->failed = s->why->why[0] == '\0' ? last->ref.name : s->why->failed;
            return false;
        }
    }
    tell(s, against, last);
    return false;
}

/* Whether one of the values that `from` demands passes all tests. */
static bool choice_fits(struct search *s, const struct literal *from)
{
    const struct literal *first = NULL;
    struct doc value;
    for (uint32_t k = 0; value = choice(from, k), value.ptr != NULL; k++) {
        const struct literal *against = refused_by(s, from->ref.text, value);
        if (against == NULL || s->left == 0) {
            return true;
        }
        s->left--;
        first = first == NULL ? against : first;
    }
    if (first != NULL) {
        tell(s, from->constant.ptr != NULL ? first : from,
             from->constant.ptr != NULL ? NULL : first);
    }
    return false;
}

/* Whether the last test can hold beside the others of its value. */
static bool fits(struct search *s)
{
    const struct literal *last = &s->literals[s->n - 1];
    const struct literal *from = NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct literal *l = &s->literals[i];
        if (!str_eq(l->ref.text, last->ref.text)) {
            continue;
        }
        if (l != last && pair_excludes(l, last)) {
            tell(s, l, last);
            return false;
        }
        from = from == NULL && is_choice(l) ? l : from;
    }
    if (last->ref.kind == CONDITION_STATUS) {
        return status_fits(s, last);
    }
    return from == NULL || choice_fits(s, from);
}

/* ---- the search ---- */

/* Whether the goal may hold, and all after it. False is certain, true is not. */
static bool may_hold(struct search *s, const struct goal *g);

static bool test_may_hold(struct search *s, const struct goal *g, struct str name,
                          struct doc operand, const struct goal *next)
{
    struct literal l = g->before;
    l.test = condition_test_of(name);
    l.operand = operand;
    l.negated = g->negated;
    const bool state = g->later && l.ref.kind == CONDITION_STATE;
    if (s->n == LITERALS_MAX || l.test >= TEST_VALUE || state) {
        return l.test >= TEST_VALUE && g->negated ? false : may_hold(s, next);
    }
    s->literals[s->n] = l;
    s->n++;
    const bool holds = fits(s) && may_hold(s, next);
    s->n--;
    return holds;
}

static bool member_may_hold(struct search *s, const struct goal *g, struct str key,
                            struct doc value, const struct goal *next)
{
    struct goal inner = {.negated = g->negated, .later = g->later, .next = next};
    if (str_is(key, "all") || str_is(key, "any")) {
        inner.kind = GOAL_LIST;
        inner.any = str_is(key, "any");
        inner.list = value;
    } else if (str_is(key, "not")) {
        inner.kind = GOAL_MAP;
        inner.negated = !g->negated;
        inner.left = members_of(value);
    } else {
        inner.kind = GOAL_TESTS;
        if (!condition_ref_read(key, &inner.before.ref)) {
            return may_hold(s, next);
        }
        if (doc_head(value).kind != DOC_MAP) {
            return test_may_hold(s, &inner, STR_LIT("eq"), value, next);
        }
        inner.before.constant = inner.before.ref.kind == CONDITION_INPUT
                                    ? doc_get(value, STR_LIT("value"))
                                    : (struct doc){NULL, 0};
        inner.left = members_of(value);
    }
    return may_hold(s, &inner);
}

/* The next part of the goal; *ret_rest is the goal without it. False: it has none. */
static bool take_part(const struct search *s, const struct goal *g, struct goal *ret_rest,
                      struct str *ret_key, struct doc *ret_value)
{
    *ret_rest = *g;
    if (g->kind == GOAL_MAP || g->kind == GOAL_TESTS) {
        return member_next(&ret_rest->left, ret_key, ret_value);
    }
    ret_rest->at++;
    *ret_value = g->kind == GOAL_LIST ? doc_at(g->list, g->at)
                 : g->at < s->n_steps ? s->plan->steps[s->steps[g->at]].rules->when
                                      : (struct doc){NULL, 0};
    return g->kind == GOAL_LIST ? ret_value->ptr != NULL : g->at < s->n_steps;
}

static bool part_may_hold(struct search *s, const struct goal *g, struct str key, struct doc value,
                          const struct goal *next)
{
    if (g->kind == GOAL_TESTS) {
        return test_may_hold(s, g, key, value, next);
    }
    if (g->kind == GOAL_MAP) {
        return member_may_hold(s, g, key, value, next);
    }
    const struct goal inner = {.kind = GOAL_MAP,
                               .negated = g->negated,
                               .later = g->later || (g->kind == GOAL_WHENS && g->at > 0),
                               .left = members_of(value),
                               .next = next};
    return value.ptr == NULL ? may_hold(s, next) : may_hold(s, &inner);
}

/* The depth is bounded by the budget of one question. */
static bool may_hold(struct search *s, const struct goal *g)
{
    struct goal rest;
    struct str key = {NULL, 0};
    struct doc value = {NULL, 0};
    if (g == NULL || s->left == 0) {
        return true;
    }
    s->left--;
    const bool one_is_enough = (g->kind == GOAL_LIST && g->any) != g->negated;
    if (!one_is_enough) {
        return take_part(s, g, &rest, &key, &value) ? part_may_hold(s, g, key, value, &rest)
                                                    : may_hold(s, g->next);
    }
    for (struct goal at = *g; take_part(s, &at, &rest, &key, &value); at = rest) {
        if (part_may_hold(s, &at, key, value, g->next)) {
            return true;
        }
    }
    return false;
}

bool conditions_exclude(const struct plan *plan, const uint32_t *steps, uint32_t n,
                        uint32_t *io_budget, struct exclusion *ret)
{
    struct search s = {.plan = plan, .steps = steps, .n_steps = n, .why = ret};
    const struct goal all = {.kind = GOAL_WHENS};
    s.left = *io_budget < EXCLUDE_ONE_STEPS ? *io_budget : EXCLUDE_ONE_STEPS;
    const uint32_t had = s.left;
    *ret = (struct exclusion){0};
    const bool holds = may_hold(&s, &all);
    *io_budget -= had - s.left;
    return !holds;
}

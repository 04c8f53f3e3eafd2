/* Plans in one line: "fetch; count<fetch; report<fetch,count" (step < dependencies). Steps go to
 * agent "worker". */
#ifndef TEST_CORE_PLAN_BUILDER_H
#define TEST_CORE_PLAN_BUILDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/wire/msg.h"
#include "registry/registry.h"
#include "supervisor/core/plan/plan_check.h"
#include "supervisor/core/run/run.h"

#define GOOD_TASK "do something that is worth doing"

struct built {
    char *text;
    struct plan plan;
    struct str *dep_names;
    struct problem at[64];
    struct problems problems;
    struct plan_text texts[64];
    uint32_t n_texts;
};

static inline void built_free(struct built *b)
{
    free(b->text);
    free(b->plan.steps[0].rules);
    free(b->plan.steps);
    free(b->plan.deps);
    free(b->plan.dependents);
    free(b->dep_names);
    free(b);
}

static inline struct str word(const char **at, const char *stop)
{
    while (**at == ' ') {
        (*at)++;
    }
    const size_t n = strcspn(*at, stop);
    const struct str s = {*at, n};
    *at += n;
    return s;
}

static inline struct built *build(const char *text)
{
    struct built *b = calloc(1, sizeof *b);
    assert_non_null(b);
    const size_t most = strlen(text) + 1;
    b->text = malloc(most);
    b->plan.steps = calloc(most, sizeof b->plan.steps[0]);
    b->plan.deps = calloc(most, sizeof b->plan.deps[0]);
    b->plan.dependents = calloc(most, sizeof b->plan.dependents[0]);
    b->dep_names = calloc(most, sizeof b->dep_names[0]);
    assert_true(b->text && b->plan.steps && b->plan.deps && b->plan.dependents && b->dep_names);
    struct step_rules *rules = calloc(most, sizeof *rules);
    assert_non_null(rules);
    for (size_t i = 0; i < most; i++) {
        b->plan.steps[i].rules = &rules[i];
    }
    memcpy(b->text, text, most);
    b->problems = (struct problems){.at = b->at, .cap = 64};
    for (const char *at = b->text; *at != '\0';) {
        struct plan_step *s = &b->plan.steps[b->plan.n_steps++];
        s->step_id = word(&at, "<;");
        s->agent_id = STR_LIT("worker");
        s->task = STR_LIT(GOOD_TASK);
        s->deps_at = b->plan.n_edges;
        while (*at == '<' || *at == ',') {
            at++;
            b->dep_names[b->plan.n_edges++] = word(&at, ",;");
            s->deps_n++;
        }
        at += *at == ';';
    }
    return b;
}

static inline void check(struct built *b, const struct registry *registry)
{
    uint32_t *scratch = malloc(plan_check_scratch(&b->plan) * sizeof *scratch);
    assert_non_null(scratch);
    struct plan_check_input in = {.plan = &b->plan,
                                  .dep_names = b->dep_names,
                                  .registry = registry,
                                  .texts = b->texts,
                                  .n_texts = b->n_texts,
                                  .scratch = scratch,
                                  .ret_deps = b->plan.deps};
    plan_check(&in, &b->problems);
    free(scratch);
}

/* Builds and checks; good plans only. */
static inline struct built *build_good(const char *text)
{
    struct built *b = build(text);
    check(b, NULL);
    assert_int_equal(b->problems.errors, 0);
    plan_link(&b->plan);
    return b;
}
static inline const struct problem *nth(const struct built *b, uint32_t i)
{
    assert_true(i < b->problems.n);
    return &b->at[i];
}

static inline void says(const struct problem *p, enum problem_category c, const char *step,
                        const char *message)
{
    assert_string_equal(problem_category_name(p->category), problem_category_name(c));
    assert_string_equal(p->step_id, step);
    assert_string_equal(p->message, message);
}

#endif

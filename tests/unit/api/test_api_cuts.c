/* Answers that do not fit a frame: what is left out first, and the member that reports it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

enum {
    PARTS = 4,
    PART = 125,
    STEPS = PARTS * PART,
    TASK = 8190,
    SCHEMA = 30000,
    SKILLS = 30,
    AGENTS = 5
};

static struct {
    struct house *h;
    const char *id;
} w;

static char *long_text(size_t n)
{
    char *text = malloc(n + 1);

    assert_non_null(text);
    memset(text, 't', n);
    text[n] = 0;
    return text;
}

/* n steps from the number on, with tasks of this length. */
static char *steps_of(int from, int n, size_t len)
{
    const size_t cap = (size_t)n * (len + 200);
    char *text = malloc(cap);
    char *task = long_text(len);
    size_t at = 0;

    assert_non_null(text);
    for (int i = from; i < from + n; i++) {
        at += (size_t)snprintf(text + at, cap - at,
                               "%s{'stepId':'s%d','agentId':'calc','skill':'do','task':'%s'}",
                               i > from ? "," : "", i, task);
    }
    free(task);
    return text;
}

/* A plan of some MiB, which no request has room for: it is made in parts. */
static void open_world(void)
{
    char *text = steps_of(0, PART, TASK);

    w.h = house_open();
    fake_link_forget_frames(w.h->link);
    house_join(w.h, "calc", 1);
    w.id = house_submit(w.h, "'plan':{'goal':'g','steps':[%s]}", text);
    free(text);
    for (int i = PART; i < STEPS; i += PART) {
        text = steps_of(i, PART, TASK);
        (void)house_ok(w.h, "plan.modify",
                       "'planId':'%s','kind':'insert','afterStepId':'s%d','steps':[%s]", w.id,
                       i - 1, text);
        free(text);
    }
}

static int number(const char *answer, const char *path)
{
    const char *text = house_get(w.h, answer, path);

    return text == NULL ? -1 : (int)strtol(text, NULL, 10);
}

static void a_plan_is_shown_with_half_of_its_steps_and_the_rest_is_asked_for(void **state)
{
    const char *answer;
    int n;

    (void)state;
    open_world();
    answer = house_ok(w.h, "plan.get", "'planId':'%s'", w.id);
    n = number(answer, "steps.#");
    assert_int_equal(n, STEPS / 2);
    house_says(w.h, answer, "stepsTruncated=true; counts.total=500; steps.0.stepId=s0; position=*");
    answer = house_ok(w.h, "plan.get", "'planId':'%s','fromStep':%d", w.id, n);
    assert_int_equal(number(answer, "steps.#"), STEPS - n);
    house_says(w.h, answer, "stepsTruncated=-; steps.0.stepId=s250; steps.249.stepId=s499");
    house_says(w.h, house_ok(w.h, "plan.get", "'planId':'%s','steps':false", w.id),
               "stepsTruncated=-; steps=-; counts.total=500");
    house_says(w.h, house_ok(w.h, "plan.get", "'planId':'%s','fromStep':500", w.id),
               "stepsTruncated=-; steps=-");
    house_says(w.h, house_ok(w.h, "plan.get", "'planId':'%s','fromStep':501", w.id),
               "stepsTruncated=-; steps=-");
    house_close(w.h);
}

static void a_result_has_half_of_its_steps_when_all_do_not_fit(void **state)
{
    const char *answer;

    (void)state;
    open_world();
    house_done(w.h, "calc", "'result':{'text':'five'}");
    answer = house_ok(w.h, "plan.result", "'planId':'%s'", w.id);
    assert_int_equal(number(answer, "steps.#"), STEPS / 2);
    assert_int_equal(number(answer, "plan.steps.#"), STEPS / 2);
    house_says(w.h, answer,
               "stepsTruncated=true; plan.stepsTruncated=true; steps.0.result.text=five; "
               "handoffs.#=*; truncated=-");
    answer = house_ok(w.h, "plan.result", "'planId':'%s','fromStep':250", w.id);
    assert_int_equal(number(answer, "steps.#"), STEPS - STEPS / 2);
    house_says(w.h, answer, "stepsTruncated=-; plan.stepsTruncated=-; steps.0.stepId=s250");
    house_close(w.h);
}

/* Cards with long schemas: the list has the agents without skills, agents.get one with them. */
static void a_list_of_agents_leaves_the_skills_out_when_they_do_not_fit(void **state)
{
    char *words = long_text(SCHEMA);
    struct buf skills;

    (void)state;
    w.h = house_open();
    buf_init(&skills, LIMIT_STEP_BYTES);
    buf_printf(&skills, "'skills':[");
    for (int i = 0; i < SKILLS; i++) {
        buf_printf(&skills,
                   "%s{'id':'s%d','description':'D','inputSchema':{'type':'object','title':'%s'}}",
                   i > 0 ? "," : "", i, words);
    }
    buf_printf(&skills, "]");
    for (int i = 0; i < AGENTS; i++) {
        const char *answer = house_ok(w.h, "agents.list", " ");
        house_says(w.h, answer,
                   i == 0 ? "agents.#=0; skillsTruncated=-"
                          : "skillsTruncated=-; agents.0.card.skills.#=30");
        house_join_as(w.h, house_text(w.h, "agent%d", i), 1, buf_cstr(&skills), "");
    }
    house_says(
        w.h, house_ok(w.h, "agents.list", " "),
        "agents.#=5; skillsTruncated=true; agents.0.card.skills.#=0; agents.4.card.skills.#=0; "
        "agents.0.card.agentId=agent0; agents.4.state=up");
    house_says(w.h, house_ok(w.h, "agents.get", "'agentId':'agent4'"), "card.skills.#=30");
    buf_done(&skills);
    free(words);
    house_close(w.h);
}

/* A plan with n reviews, each with a task and parameters of so many bytes. */
static void submit_reviews(int n, size_t task, size_t parameters)
{
    char *words = long_text(task);
    char *value = long_text(parameters);
    struct buf steps;

    buf_init(&steps, LIMIT_STEP_BYTES);
    for (int i = 0; i < n; i++) {
        buf_printf(&steps,
                   "%s{'stepId':'s%d','agentId':'calc','skill':'do','task':'%s','dependsOn':[],"
                   "'requiresApproval':true,'parameters':{'p':'%s'}}",
                   i > 0 ? "," : "", i, words, value);
    }
    (void)house_submit(w.h, "'plan':{'goal':'g','policy':{'maxConcurrency':100},'steps':[%s]}",
                       buf_cstr(&steps));
    buf_done(&steps);
    free(value);
    free(words);
}

/* First the parameters go, which review.get shows; then half of the reviews, and half of those. */
static void a_list_of_reviews_loses_its_details_first_and_then_its_end(void **state)
{
    const char *answer;

    (void)state;
    w.h = house_open();
    house_join(w.h, "calc", 1);
    for (int i = 0; i < 4; i++) {
        submit_reviews(15, 10, 60000);
    }
    answer = house_ok(w.h, "review.list", " "); /* 3.6 MB of 4 MiB */
    house_says(w.h, answer, "reviews.#=60; truncated=-; reviews.59.parametersLen=-");
    for (int i = 0; i < 2; i++) {
        submit_reviews(15, 10, 60000);
    }
    answer = house_ok(w.h, "review.list", " ");
    house_says(w.h, answer,
               "reviews.#=90; truncated=-; reviews.0.parameters=-; reviews.0.parametersLen=*;"
               " reviews.89.parameters=-; reviews.89.parametersLen=*");
    house_close(w.h);
    w.h = house_open();
    house_join(w.h, "calc", 1);
    for (int i = 0; i < 5; i++) {
        submit_reviews(60, TASK - 10, 10); /* 256 with their task, which is the prompt, too */
    }
    answer = house_ok(w.h, "review.list", " ");
    house_says(w.h, answer, "reviews.#=150; truncated=true; reviews.149.task=*");
    house_close(w.h);
}

static void figures_of_a_plan_have_all_of_its_steps(void **state)
{
    (void)state;
    open_world();
    house_says(w.h, house_ok(w.h, "plan.stats", "'planId':'%s'", w.id), "steps.#=500; truncated=-");
    house_close(w.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_shown_with_half_of_its_steps_and_the_rest_is_asked_for),
        cmocka_unit_test(a_result_has_half_of_its_steps_when_all_do_not_fit),
        cmocka_unit_test(a_list_of_agents_leaves_the_skills_out_when_they_do_not_fit),
        cmocka_unit_test(a_list_of_reviews_loses_its_details_first_and_then_its_end),
        cmocka_unit_test(figures_of_a_plan_have_all_of_its_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

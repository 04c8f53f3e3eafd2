/* Why a step does not move, in words; and which steps decide when a plan ends. */
#include <string.h>

#include "supervisor/query/waits.h"
#include "tests/support/cmocka.h"

static void says(struct step_wait wait, const char *expected)
{
    const struct wait_names names = {.agent_id = STR_LIT("calc"),
                                     .step_id = STR_LIT("fetch"),
                                     .review_id = STR_LIT("P/fetch/1"),
                                     .until = STR_LIT("2026-01-01T00:00:00.000Z")};
    struct buf out;

    buf_init(&out, 1000);
    wait_sentence(&wait, &names, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void every_kind_of_wait_has_its_sentence(void **state)
{
    (void)state;
    says((struct step_wait){.kind = WAIT_NOTHING}, "");
    says((struct step_wait){.kind = WAIT_DEPENDENCY, .n = 1}, "waiting for step fetch");
    says((struct step_wait){.kind = WAIT_DEPENDENCY, .n = 3},
         "waiting for 3 steps, the first is fetch");
    says((struct step_wait){.kind = WAIT_CONCURRENCY, .n = 5},
         "waiting for a place: 5 of 5 steps of the plan are under way");
    says((struct step_wait){.kind = WAIT_AGENT}, "waiting for agent calc: 0 instances");
    says((struct step_wait){.kind = WAIT_LANE, .n = 2}, "waiting for a lane of calc: 2 of 2 busy");
    says((struct step_wait){.kind = WAIT_BREAKER},
         "waiting: circuit of agent calc open until 2026-01-01T00:00:00.000Z");
    says((struct step_wait){.kind = WAIT_LIMIT},
         "waiting for a place among the attempts in flight");
    says((struct step_wait){.kind = WAIT_BUDGET},
         "waiting for budget that other steps have reserved");
    says(
        (struct step_wait){.kind = WAIT_BACKOFF},
        "waiting for the next attempt at 2026-01-01T00:00:00.000Z: agent calc asked for the pause");
    says((struct step_wait){.kind = WAIT_REPLY}, "waiting for agent calc: its reply was lost");
    says((struct step_wait){.kind = WAIT_PERSON, .review = REVIEW_BEFORE},
         "waiting for approval (review P/fetch/1)");
    says((struct step_wait){.kind = WAIT_PERSON, .review = REVIEW_INPUT},
         "waiting for input (review P/fetch/1)");
    says((struct step_wait){.kind = WAIT_PAUSED}, "the plan is paused");
    says((struct step_wait){.kind = WAIT_REPLAN}, "waiting for the plan to be revised");
    says((struct step_wait){.kind = WAIT_KEY, .n = 1, .key = STR_LIT("deploy")},
         "waiting for the concurrencyKey deploy: another step has it");
    says((struct step_wait){.kind = WAIT_KEY, .n = 3, .key = STR_LIT("deploy")},
         "waiting for the concurrencyKey deploy: its 3 places are taken");
    says((struct step_wait){.kind = WAIT_RATE, .n = 2, .per_ms = 1000},
         "waiting until 2026-01-01T00:00:00.000Z: the rate of agent calc is used up, 2 in 1000 ms");
    says((struct step_wait){.kind = WAIT_RATE, .n = 2, .per_ms = 1000, .key = STR_LIT("mail")},
         "waiting until 2026-01-01T00:00:00.000Z: the rate of the concurrencyKey mail is used up, "
         "2 in 1000 ms");
    for (int kind = WAIT_DEPENDENCY; kind < WAIT_KIND_COUNT; kind++) {
        for (int review = 0; review < REVIEW_KIND_COUNT; review++) {
            struct step_wait wait = {.kind = (enum wait_kind)kind,
                                     .review = (enum review_kind)review};
            struct buf out;
            buf_init(&out, 1000);
            wait_sentence(&wait, &(struct wait_names){.agent_id = STR_LIT("a")}, &out);
            assert_true(out.len > 0);
            buf_done(&out);
        }
    }
}

static void a_lane_is_waited_for_in_words_that_say_what_is_wrong_with_the_agent(void **state)
{
    static const struct {
        struct wait_agent agent;
        const char *text;
    } cases[] = {
        {{2, 8, 8, 7, true, false}, "waiting for a lane of calc: 7 of 8 busy"},
        {{2, 8, 0, 0, true, false}, "waiting for agent calc: 0 of 2 instances can be reached"},
        {{2, 8, 8, 0, true, true}, "waiting for agent calc: it is draining"},
        {{2, 8, 8, 0, false, false}, "waiting for agent calc: it was taken out of service"}};
    const struct wait_agent gave_up = {.enabled = true, .failure = STR_LIT("it gave up: exit 2")};
    const struct wait_names names_of_it = {.agent_id = STR_LIT("calc"), .agent = &gave_up};
    struct buf said;

    (void)state;
    buf_init(&said, 1000);
    wait_sentence(&(struct step_wait){.kind = WAIT_AGENT}, &names_of_it, &said);
    assert_string_equal(buf_cstr(&said), "waiting for agent calc: 0 instances; it gave up: exit 2");
    buf_done(&said);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct wait_names names = {.agent_id = STR_LIT("calc"), .agent = &cases[i].agent};
        struct buf out;
        buf_init(&out, 1000);
        wait_sentence(&(struct step_wait){.kind = WAIT_LANE, .n = 2}, &names, &out);
        assert_string_equal(buf_cstr(&out), cases[i].text);
        buf_done(&out);
    }
}

/* Steps a, b, c, ... with edges "ab" = b depends on a. */
struct graph {
    struct plan plan;
    struct plan_step steps[8];
    uint32_t deps[16], dependents[16];
};

static void draw(struct graph *g, uint32_t n, const char *edges)
{
    *g = (struct graph){.plan = {.n_steps = n, .chain = edges == NULL}};
    g->plan.steps = g->steps;
    g->plan.deps = g->deps;
    g->plan.dependents = g->dependents;
    for (uint32_t i = 0; i < n && edges != NULL; i++) {
        g->steps[i].deps_at = g->plan.n_edges;
        for (const char *e = edges; *e != 0; e += e[2] == 0 ? 2 : 3) {
            if (e[1] == (char)('a' + (int)i)) {
                g->deps[g->plan.n_edges++] = (uint32_t)(e[0] - 'a');
                g->steps[i].deps_n++;
            }
        }
    }
    if (edges != NULL) {
        plan_link(&g->plan);
    }
}

static void path_is(struct graph *g, const uint64_t *ms, uint32_t max, const char *expected)
{
    struct arena arena = {0};
    uint32_t found[8];
    char text[9] = {0};
    uint32_t n = critical_path(&g->plan, ms, &arena, found, max);

    assert_true(n <= max);
    for (uint32_t i = 0; i < n; i++) {
        text[i] = (char)('a' + (int)found[i]);
    }
    assert_string_equal(text, expected);
    arena_done(&arena);
}

static void critical_path_is_the_way_that_took_longest(void **state)
{
    struct graph g;

    (void)state;
    /* a -> b -> d and a -> c -> d; e stands alone */
    draw(&g, 5, "ab ac bd cd");
    path_is(&g, (uint64_t[]){10, 20, 30, 5, 1}, 8, "acd");
    path_is(&g, (uint64_t[]){10, 40, 30, 5, 1}, 8, "abd");
    path_is(&g, (uint64_t[]){10, 20, 30, 5, 100}, 8, "e");
    path_is(&g, (uint64_t[]){10, 20, 30, 5, 1}, 2, "cd");
    path_is(&g, (uint64_t[]){10, 20, 30, 5, 1}, 0, "");
    /* A step that stands before those that it depends on. */
    draw(&g, 3, "ba cb");
    path_is(&g, (uint64_t[]){1, 1, 1}, 8, "cba");
}

static void before_anything_ran_the_longest_way_has_the_most_steps(void **state)
{
    struct graph g;

    (void)state;
    draw(&g, 5, "ab bc de");
    path_is(&g, (uint64_t[]){0, 0, 0, 0, 0}, 8, "abc");
    path_is(&g, (uint64_t[]){0, 0, 0, 7, 0}, 8, "de");
}

static void chain_is_its_own_critical_path(void **state)
{
    struct graph g;

    (void)state;
    draw(&g, 4, NULL);
    path_is(&g, (uint64_t[]){0, 5, 0, 0}, 8, "abcd");
}

static void superseded_steps_are_not_on_the_path(void **state)
{
    struct graph g;

    (void)state;
    draw(&g, 4, "ab bc ad");
    g.steps[1].superseded = true;
    path_is(&g, (uint64_t[]){1, 100, 2, 1}, 8, "ac");
    for (int i = 0; i < 4; i++) {
        g.steps[i].superseded = true;
    }
    path_is(&g, (uint64_t[]){1, 100, 2, 1}, 8, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_wait_has_its_sentence),
        cmocka_unit_test(a_lane_is_waited_for_in_words_that_say_what_is_wrong_with_the_agent),
        cmocka_unit_test(critical_path_is_the_way_that_took_longest),
        cmocka_unit_test(before_anything_ran_the_longest_way_has_the_most_steps),
        cmocka_unit_test(chain_is_its_own_critical_path),
        cmocka_unit_test(superseded_steps_are_not_on_the_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Goals in words, and the plans that people expect of them: the rate is printed, and has a floor.
 * The cards are those of the bundled agents, and of three whose skills have no inputSchema. */
#include "tests/unit/keyword/house.h"

enum { DO = 42, REFUSE = 20, DO_AT_LEAST = 36 };

struct goal {
    const char *words;
    const char *steps; /* see house.h: outcome; NULL = refused */
};

static const struct goal goals[] = {
#include "goals.def"
};
enum { GOALS = sizeof goals / sizeof goals[0] };

/* Whether the refusal has two lines: what and why; the three nearest skills. */
static void check_refusal(struct bench *b, const char *goal, const struct planner_result *r)
{
    const char *line = strchr(b->err.msg, '\n');
    assert_true(r->n_unrouted > 0);
    if (line == NULL || strncmp(line, "\nNearest: ", 10) != 0 || strchr(line + 1, '\n') != NULL) {
        fail_msg("%s: %s", goal, b->err.msg);
    }
}

static void most_goals_are_done_as_expected_and_no_other_is_done(void **state)
{
    struct bench *b = *state;
    uint32_t done = 0;
    uint32_t refused = 0;
    uint32_t all = 0;
    add_bundled(b);
    add_without_schemas(b);
    for (size_t i = 0; i < GOALS; i++) {
        struct planner_result r;
        const enum bt_code code = plan(b, goals[i].words, false, &r);
        const char *is = code == BT_OK ? outcome(b, &r) : b->err.msg;
        const bool expected = goals[i].steps == NULL
                                  ? code == BT_INVALID
                                  : code == BT_OK && strcmp(is, goals[i].steps) == 0;
        all += goals[i].steps != NULL;
        done += expected && goals[i].steps != NULL;
        refused += expected && goals[i].steps == NULL;
        if (!expected) {
            print_message("%s\n    is       %s\n    expected %s\n", goals[i].words, is,
                          goals[i].steps == NULL ? "a refusal" : goals[i].steps);
        }
        if (code == BT_OK && read_doc(b, r.plan) != BT_OK) {
            fail_msg("%s: %s", goals[i].words, b->err.msg);
        }
        if (code != BT_OK) {
            check_refusal(b, goals[i].words, &r);
        }
    }
    print_message("goals: %u of %u done, %u of %u refused\n", done, all, refused,
                  (uint32_t)GOALS - all);
    assert_int_equal(all, DO);
    assert_int_equal(GOALS, DO + REFUSE);
    assert_true(done >= DO_AT_LEAST);
    assert_int_equal(refused, REFUSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(most_goals_are_done_as_expected_and_no_other_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

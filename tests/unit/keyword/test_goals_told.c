/*
 * Goals in words, with all that is told about them: the plan, why each step has its agent, and what
 * cannot be done, in goals_told.txt. The agents are those of test_goals.c. BATON_WRITE=1 writes
 * what follows a goal anew: read the difference.
 *
 *     ## What the goals that follow are about.
 *     > the goal             "\n" is the end of a line
 *     ? the goal             its other parts may be left out
 */
#include "tests/support/golden.h"
#include "tests/unit/keyword/house.h"

static void tell(struct bench *b, char *goal, bool allow_unrouted, struct buf *out)
{
    struct planner_result r;
    enum bt_code code;
    char *at;

    while ((at = strstr(goal, "\\n")) != NULL) {
        *at = '\n';
        memmove(at + 1, at + 2, strlen(at + 2) + 1);
    }
    code = plan(b, goal, allow_unrouted, &r);
    buf_printf(out, "%s\n", code == BT_OK ? json_of(b, r.plan) : bt_code_name(code));
    for (uint32_t i = 0; i < r.n_routes; i++) {
        buf_printf(out, "  %.*s: %.*s.%.*s %.2f %.*s\n", STR_ARG(r.routes[i].step_id),
                   STR_ARG(r.routes[i].agent_id), STR_ARG(r.routes[i].skill), r.routes[i].score,
                   STR_ARG(r.routes[i].why));
    }
    for (uint32_t i = 0; i < r.n_unrouted; i++) {
        buf_printf(out, "  %.*s\n", STR_ARG(r.unrouted[i]));
    }
    if (code != BT_OK && (r.n_unrouted == 0 || !str_is(r.unrouted[0], b->err.msg))) {
        buf_printf(out, "  %s\n", b->err.msg);
    }
}

static void each_goal_is_told_as_it_was(void **state)
{
    struct bench *b = *state;
    char *text = golden_read(TOLD);
    char *copy = strdup(text);
    struct buf out;

    add_bundled(b);
    add_without_schemas(b);
    buf_init(&out, GOLDEN_MAX);
    assert_non_null(copy);
    for (char *line = copy, *end; line != NULL; line = end) {
        end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = 0;
        }
        if (line[0] == '#') {
            buf_printf(&out, "%s%s\n", out.len > 0 ? "\n" : "", line);
        } else if (strncmp(line, "> ", 2) == 0 || strncmp(line, "? ", 2) == 0) {
            buf_printf(&out, "%s\n", line);
            tell(b, line + 2, line[0] == '?', &out);
        }
    }
    golden_keep(TOLD, text, buf_cstr(&out));
    buf_done(&out);
    free(copy);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RULE(each_goal_is_told_as_it_was)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

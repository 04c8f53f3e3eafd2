/* Each allocation of a call over the standard streams fails in its turn, also those of the thread
 * that reads: the reply is whole, or it says that another attempt may do better; no call waits for
 * an answer that is lost. */
#define MEMORY_OF _Atomic
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/no_memory.h"
#include "tests/unit/agents/mcp_world.h"

#define ANSWER "s \"{~id~:$call,~result~:{~content~:[{~type~:~text~,~text~:~one~}]}}\"; q"

static bool was_heard(void)
{
    return strstr(mcp_heard(), "tools/call") != NULL;
}

static void run(struct bt_step *step, void *self)
{
    step->reply.once = strcmp(bt_step_skill(step), "work") == 0;
    mcp_run(step, self);
}

static void each(bool modern, const char *script, const char *skill)
{
    static const char step[] = "{\"task\":\"t\",\"parameters\":{}}";
    char *whole = NULL;
    long pieces = 0;
    long n = -2;

    no_memory_run = run;
    no_memory_done = strcmp(skill, "work") == 0 ? was_heard : NULL;
    for (memory_failed = true; memory_failed; n++) {
        const char *reply;
        mcp_stdio(modern, script, ",'timeoutMs':5000");
        no_memory_at = n; /* below 0: none fails */
        memory_failed = n < 0;
        reply = steps_run(steps_make(skill, step), no_memory_handler, mcp_used());
        whole = whole == NULL ? strdup(reply) : whole;
        assert_non_null(whole);
        no_memory_expect(reply, whole, skill, n);
        mcp_drop();
        steps_forget();
        pieces = n < 0 ? memory_pieces : pieces;
        if (memory_pieces != pieces) {
            fail_msg("%s, allocation %ld: %ld pieces stay", skill, n, memory_pieces - pieces);
        }
    }
    assert_true(n > 10);
    free(whole);
}

static void a_line_is_told_whole_or_later(void **state)
{
    (void)state;
    each(true, "r; call=$id; " ANSWER, "read");
    each(false, "r; call=$id; " ANSWER, "work");
}

static void a_question_is_told_whole_or_later(void **state)
{
    (void)state;
    each(false,
         "r; call=$id; s '{~id~:~p~,~method~:~ping~}'; q; s '{~method~:~notifications/progress~,"
         "~params~:{~progress~:1}}'; s '{~id~:~e~,~method~:~elicitation/create~,~params~:{"
         "~message~:~Year?~}}'; q; " ANSWER,
         "read");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, mcp_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_line_is_told_whole_or_later),
        TEST(a_question_is_told_whole_or_later),
    };
    return cmocka_run_group_tests(tests, mcp_start, mcp_stop);
}

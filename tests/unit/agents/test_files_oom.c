/* The i-th allocation fails, for every i: a skill gives its whole result, or fails so that another
 * attempt follows. ASan reports leaks. */
#include "tests/unit/agents/files_world.h"

#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "tests/support/memory.h"

enum { ATTEMPTS = 3000 };

static int make(void **state)
{
    if (tree_make(state) != 0) {
        return -1;
    }
    tree_text("in/rows.csv", "a,b\n1,x\n2,\xff\n");
    tree_text("in/text", "one\ntwo\n");
    return 0;
}

/* The handler's allocations alone fail. True: none was left to fail. */
static bool run_once(bt_skill_run run, const char *parameters, long i, char *whole, size_t cap)
{
    struct bt_step *s;
    struct buf out;
    bool all;

    buf_init(&out, LIMIT_STEP_BYTES * 2);
    buf_printf(&out, "{\"parameters\":%s}", parameters);
    s = steps_make("x", buf_cstr(&out));
    buf_clear(&out);
    memory_left = i;
    run(s, tree_files);
    all = memory_left >= 0 || i < 0;
    memory_left = -1;
    reply_finish(&s->reply, false, false);
    assert_int_equal(step_reply_json(s, &out, NULL), BT_OK);
    if (i < 0) {
        assert_int_equal(s->reply.outcome, REPLY_COMPLETED);
        (void)snprintf(whole, cap, "%s", buf_cstr(&out));
    } else if (s->reply.outcome == REPLY_COMPLETED) {
        assert_string_equal(buf_cstr(&out), whole);
    } else {
        if (s->reply.cls != CLASS_SERVICE_UNAVAILABLE || !s->reply.retryable) {
            fail_msg("%ld: %s", i, buf_cstr(&out));
        }
        assert_false(all);
    }
    buf_done(&out);
    step_free(s);
    return all;
}

static void sweep(bt_skill_run run, const char *parameters)
{
    static char whole[65536];
    long i = 0;

    (void)run_once(run, parameters, -1, whole, sizeof whole);
    while (i < ATTEMPTS && !run_once(run, parameters, i, whole, sizeof whole)) {
        i++;
    }
    assert_true(i > 0 && i < ATTEMPTS);
}

static void what_reads_a_file_is_whole_or_may_be_tried_again(void **state)
{
    (void)state;
    sweep(files_read, "{\"path\":\"text\"}");
    sweep(files_read, "{\"path\":\"rows.csv\"}");
    sweep(files_count, "{\"path\":\"text\"}");
    sweep(files_grep, "{\"path\":\"rows.csv\",\"pattern\":\"[12]\",\"context\":1}");
    sweep(files_list, "{\"path\":\".\"}");
}

static void rows_are_whole_or_may_be_tried_again(void **state)
{
    (void)state;
    sweep(files_csv, "{\"path\":\"rows.csv\",\"types\":{\"a\":\"integer\"}}");
    sweep(files_csv, "{\"path\":\"text\",\"pattern\":\"(?<word>\\\\w+)\"}");
    sweep(files_csv, "{\"text\":\"a\\n1\\n\",\"columns\":[\"a\"]}");
}

static void what_is_made_is_whole_or_may_be_tried_again(void **state)
{
    (void)state;
    sweep(files_write, "{\"path\":\"new\",\"data\":{\"a\":1}}");
    sweep(files_write, "{\"path\":\"new\",\"text\":\"x\"}");
    sweep(files_render, "{\"title\":\"T\",\"sections\":[{\"heading\":\"H\",\"table\":[[1]],"
                        "\"list\":[\"x\"],\"text\":[1]}]}");
    sweep(files_render, "{\"template\":\"a {{b}}\",\"data\":{\"b\":[{\"c\":1}]}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_reads_a_file_is_whole_or_may_be_tried_again),
        cmocka_unit_test(rows_are_whole_or_may_be_tried_again),
        cmocka_unit_test(what_is_made_is_whole_or_may_be_tried_again),
    };
    cJSON_Hooks hooks = {.malloc_fn = malloc, .free_fn = free};

    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, make, tree_remove);
}

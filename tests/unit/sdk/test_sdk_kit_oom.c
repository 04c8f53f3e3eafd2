/* The i-th allocation fails, for every i: tables, inputs, steps and replies are whole, or it is an
 * error. ASan reports leaks. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/sdk/input.h"
#include "agents/sdk/markdown.h"
#include "agents/sdk/regex.h"
#include "agents/sdk/step.h"
#include "agents/sdk/table.h"
#include "tests/support/memory.h"

enum { ATTEMPTS = 3000, OUT = 65536 };

/* Once without a failure, then with each. */
static void sweep(enum bt_code (*make)(struct bt_error *err))
{
    long failures = 0;

    for (long i = 0; i < ATTEMPTS; i++) {
        struct bt_error err = {.code = BT_OK};
        enum bt_code code;
        bool failed;
        memory_left = i;
        code = make(&err);
        failed = memory_left < 0;
        memory_left = -1;
        if (!failed) {
            assert_int_equal(code, BT_OK);
            break;
        }
        failures++;
        if (code != BT_OK) {
            assert_int_equal(code, BT_NOMEM);
            assert_true(strlen(err.msg) > 0);
        }
    }
    assert_true(failures > 0 && failures < ATTEMPTS);
}

static const char *source;
static int rows_n, columns_n;

static enum bt_code read_table(struct bt_error *err)
{
    struct table t = {0};
    long left = memory_left;
    cJSON *tree;
    enum bt_code code;

    memory_left = -1;
    tree = cJSON_Parse(source);
    assert_non_null(tree);
    memory_left = left;
    code = table_read(tree, &t, err);
    if (code == BT_OK) {
        code = table_set_types(&t, err);
    }
    if (code == BT_OK) {
        assert_int_equal(t.rows_n, rows_n);
        assert_int_equal(t.n, columns_n);
        for (int r = 0; r < t.rows_n; r++) {
            assert_int_equal(cJSON_GetArraySize(t.rows[r]), columns_n);
        }
    }
    left = memory_left;
    table_done(&t);
    cJSON_Delete(tree);
    memory_left = left;
    return code;
}

static void a_table_without_memory_says_so_or_is_whole(void **state)
{
    static const struct {
        const char *json;
        int rows, columns;
    } cases[] = {
        {"[{\"a\":1,\"b\":\"2\"},{\"c\":true}]", 2, 3},
        {"[[1,\"2\"],3]", 2, 2},
        {"{\"columns\":[\"a\",\"b\"],\"rows\":[[\"1\"]]}", 1, 2},
        {"{\"a\":\"1\",\"b\":\"2\"}", 2, 2},
        {"\"a,b\\n1,x\\n2\\n\"", 2, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        source = cases[i].json;
        rows_n = cases[i].rows;
        columns_n = cases[i].columns;
        sweep(read_table);
    }
}

static enum bt_code compile(struct bt_error *err)
{
    struct regex *re = NULL;
    const enum bt_code code = regex_new(STR_LIT("(?<n>a+)b"), true, &re, err);

    regex_free(re);
    return code;
}

static void a_pattern_without_memory_says_so(void **state)
{
    struct bt_error err = {.code = BT_OK};

    (void)state;
    memory_left = 0;
    assert_int_equal(compile(&err), BT_NOMEM);
    memory_left = -1;
    assert_string_equal(err.msg, "out of memory for a pattern");
}

static enum bt_code read_input(struct bt_error *err)
{
    struct bt_step *s = NULL;
    struct table t = {0};
    long left = memory_left;
    enum bt_code code;

    memory_left = -1;
    assert_int_equal(step_new_from_json(str_from(source), "s", &s, err), BT_OK);
    memory_left = left;
    code = input_table(s, "p", &t, err);
    left = memory_left;
    memory_left = -1;
    assert_int_equal(code == BT_OK ? t.rows_n : 0, code == BT_OK ? 1 : 0);
    table_done(&t);
    step_free(s);
    memory_left = left;
    return code;
}

static void an_input_without_memory_says_so_or_is_whole(void **state)
{
    (void)state;
    source = "{\"parameters\":{\"p\":[[\"1\",2]]}}";
    sweep(read_input);
    source = "{\"context\":{\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\",\"result\":"
             "{\"data\":[[\"1\",2]]}}]}}";
    sweep(read_input);
}

/* ---- a step ---- */

static const char whole[] =
    "{\"task\":\"t\",\"parameters\":{\"s\":\"text\",\"l\":[1,2]},\"result\":[7],"
    "\"context\":{\"text\":\"c\",\"dependencies\":[{\"stepId\":\"a\",\"agentId\":\"x\","
    "\"result\":{\"data\":{\"n\":1}}}]}}";

static void is_or(const char *got, const char *want, const char *without)
{
    if (got == NULL || without == NULL) {
        assert_true(got == NULL ? without == NULL : strcmp(got, want) == 0);
    } else {
        assert_true(strcmp(got, want) == 0 || strcmp(got, without) == 0);
    }
}

static enum bt_code make_step(struct bt_error *err)
{
    struct bt_step *s = NULL;
    const enum bt_code code = step_new_from_json(str_from(whole), "s", &s, err);
    const char *request;

    if (code == BT_OK) {
        assert_string_equal(bt_step_task(s), "t");
        assert_string_equal(bt_step_context_text(s), "c");
        is_or(bt_step_param_string(s, "s", "-"), "text", "-");
        is_or(bt_step_params_json(s, "l"), "[1,2]", NULL);
        is_or(bt_step_dependency_json(s, 0), "{\"n\":1}", NULL);
        is_or(bt_step_dependency_text(s, 0), "{\"n\":1}", NULL);
        is_or(bt_step_dependency_id(s, 0), "a", NULL);
        is_or(bt_step_result_json(s), "[7]", NULL);
        request = bt_step_request_json(s);
        assert_true(request[0] == 0 || strstr(request, "\"dependencies\":[{") != NULL);
    }
    step_free(s);
    return code;
}

static bool once; /* the step's effects are unsafe */

static struct bt_step *step_of_whole(void)
{
    struct bt_step *s = NULL;

    assert_int_equal(step_new_from_json(str_from(whole), "s", &s, NULL), BT_OK);
    s->reply.once = once;
    return s;
}

/* Takes the step. What the supervisor sees of it. */
static char *shown(struct bt_step *s)
{
    struct buf out;
    char *ret;

    buf_init(&out, 65536);
    reply_finish(&s->reply, false, false);
    assert_int_equal(step_reply_json(s, &out, NULL), BT_OK);
    step_free(s);
    ret = strdup(buf_cstr(&out));
    assert_non_null(ret);
    buf_done(&out);
    return ret;
}

/* A reply is the whole one, or a failure that may be tried again unless its effects are unsafe. */
static enum bt_code reply(void (*say)(struct bt_step *s), struct bt_error *err)
{
    const long left = memory_left;
    struct bt_step *s;
    char *want;
    char *got;
    long rest;
    enum bt_code code = BT_OK;

    memory_left = -1;
    s = step_of_whole();
    say(s);
    want = shown(s);
    s = step_of_whole();
    memory_left = left;
    say(s);
    rest = memory_left;
    memory_left = -1;
    got = shown(s);
    if (strcmp(got, want) != 0) {
        assert_non_null(strstr(got, "\"class\":\"SERVICE_UNAVAILABLE\""));
        assert_non_null(strstr(got, once ? "\"retryable\":false" : "\"retryable\":true"));
        assert_true(strstr(got, "took effect is not known") == NULL || once);
        code = err_set(err, BT_NOMEM, "%s", "failed");
    }
    memory_left = rest;
    free(want);
    free(got);
    return code;
}

static void say_verdict(struct bt_step *s)
{
    bt_step_reply_verdict(s, true, "all are there");
}

static void say_text(struct bt_step *s)
{
    bt_step_reply_text(s, "%d things", 3);
}

static void say_input(struct bt_step *s)
{
    bt_step_need_input(s, "{\"type\":\"string\"}", "name?");
}

static void say_approval(struct bt_step *s)
{
    bt_step_need_approval(s, "may %s?", "I");
}

static void say_handoff(struct bt_step *s)
{
    bt_step_handoff(s, "another", "not %s", "mine");
}

static void say_artifact(struct bt_step *s)
{
    bt_step_reply_text(s, "a file");
    bt_step_reply_artifact(s, "a.txt", "text/plain", "https://a.example/a.txt");
}

static void say_tree(struct bt_step *s)
{
    struct bt_error err;
    cJSON *tree = NULL;

    if (input_tree(s, "l", &tree, &err) == BT_OK) {
        input_reply(s, tree, "a list");
    } else {
        step_lose(s, "the list");
    }
}

static void say_calls(struct bt_step *s)
{
    bt_step_call(s, "[{\"id\":\"c\",\"agentId\":\"t\",\"skill\":\"do\"}]", "{\"a\":1}");
}

static void say_state(struct bt_step *s)
{
    bt_step_reply_state_json(s, "{\"n\":1}", 7);
}

static enum bt_code ask_input(struct bt_error *err)
{
    return reply(say_input, err);
}

static enum bt_code ask_calls(struct bt_error *err)
{
    return reply(say_calls, err);
}

static enum bt_code ask_approval(struct bt_error *err)
{
    return reply(say_approval, err);
}

static enum bt_code hand_off(struct bt_error *err)
{
    return reply(say_handoff, err);
}

static enum bt_code give_artifact(struct bt_error *err)
{
    return reply(say_artifact, err);
}

static enum bt_code give_tree(struct bt_error *err)
{
    return reply(say_tree, err);
}

static enum bt_code give_state(struct bt_error *err)
{
    return reply(say_state, err);
}

static enum bt_code give_verdict(struct bt_error *err)
{
    return reply(say_verdict, err);
}

static enum bt_code give_text(struct bt_error *err)
{
    return reply(say_text, err);
}

static void a_step_without_memory_is_none_or_gives_what_it_has(void **state)
{
    (void)state;
    sweep(make_step);
}

static void sweep_replies(void)
{
    sweep(give_text);
    sweep(give_state);
    sweep(give_artifact);
    sweep(give_tree);
    sweep(ask_input);
    sweep(ask_approval);
    sweep(ask_calls);
    sweep(hand_off);
}

static void a_reply_without_memory_may_be_tried_again(void **state)
{
    (void)state;
    sweep(give_verdict);
    sweep_replies();
}

/* What it did is not done twice because its reply was lost. */
static void an_unsafe_step_without_memory_for_its_reply_is_not_tried_again(void **state)
{
    (void)state;
    once = true;
    sweep_replies();
    once = false;
}

/* A later try may have the memory. */
static void data_and_text_that_were_lost_may_be_asked_for_again(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bt_error err;
        struct bt_step *s = NULL;
        struct buf text, out;

        assert_int_equal(step_new_from_json(STR_LIT("{}"), "probe", &s, &err), BT_OK);
        buf_init(&text, 16);
        buf_init(&out, 4096);
        if (i == 0) {
            input_reply(s, NULL, "text");
        } else {
            text.bad = BT_NOMEM;
            input_reply_buf(s, cJSON_CreateObject(), &text);
        }
        assert_int_equal(step_reply_json(s, &out, &err), BT_OK);
        assert_non_null(strstr(buf_cstr(&out), "\"class\":\"SERVICE_UNAVAILABLE\""));
        assert_non_null(strstr(buf_cstr(&out), "\"retryable\":true"));
        buf_done(&text);
        buf_done(&out);
        step_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_without_memory_says_so_or_is_whole),
        cmocka_unit_test(a_pattern_without_memory_says_so),
        cmocka_unit_test(an_input_without_memory_says_so_or_is_whole),
        cmocka_unit_test(data_and_text_that_were_lost_may_be_asked_for_again),
        cmocka_unit_test(a_step_without_memory_is_none_or_gives_what_it_has),
        cmocka_unit_test(a_reply_without_memory_may_be_tried_again),
        cmocka_unit_test(an_unsafe_step_without_memory_for_its_reply_is_not_tried_again),
    };
    cJSON_Hooks hooks = {.malloc_fn = malloc, .free_fn = free};

    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

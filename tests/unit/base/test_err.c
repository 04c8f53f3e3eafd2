#include "protocol/base/err.h"

#include <errno.h>
#include <string.h>

#include "tests/support/cmocka.h"

static void every_code_and_class_finds_its_way_back_from_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < BT_CODE_COUNT; i++) {
        const char *name = bt_code_name((enum bt_code)i);
        assert_int_equal(err_code_from_name(name, strlen(name)), i);
    }
    for (int i = 0; i < CLASS_COUNT; i++) {
        const char *name = err_class_name((enum err_class)i);
        assert_int_equal(err_class_from_name(name, strlen(name)), i);
    }
}

static void unknown_names_have_a_safe_meaning(void **state)
{
    (void)state;
    assert_int_equal(err_code_from_name("NOT", 3), BT_INTERNAL);
    assert_int_equal(err_code_from_name("", 0), BT_INTERNAL);
    assert_int_equal(err_class_from_name("SUN_SPOTS", 9), CLASS_UNKNOWN);
    assert_string_equal(bt_code_name((enum bt_code)999), "INTERNAL");
    assert_non_null(err_class_name((enum err_class)999));
}

static void a_code_that_asks_for_a_wait_is_retryable(void **state)
{
    (void)state;
    assert_int_equal(err_code_wait_ms(BT_BUSY), 500);
    assert_int_equal(err_code_wait_ms(BT_UNAVAILABLE), 500);
    for (int code = 0; code < BT_CODE_COUNT; code++) {
        assert_true(err_code_wait_ms((enum bt_code)code) == 0 ||
                    err_code_retryable((enum bt_code)code));
    }
    assert_true(err_code_retryable(BT_TIMEOUT));
    assert_false(err_code_retryable(BT_INVALID));
    assert_false(err_code_retryable((enum bt_code)999));
    assert_int_equal(err_code_wait_ms((enum bt_code)999), 0);
}

/* The literal enum of the installed header must not drift from errors.def. */
static void the_public_enum_has_the_order_of_the_list(void **state)
{
    (void)state;
    assert_string_equal(bt_code_name(BT_OK), "OK");
    assert_string_equal(bt_code_name(BT_INVALID), "INVALID");
    assert_string_equal(bt_code_name(BT_UNAUTHORIZED), "UNAUTHORIZED");
    assert_string_equal(bt_code_name(BT_NOT_FOUND), "NOT_FOUND");
    assert_string_equal(bt_code_name(BT_CONFLICT), "CONFLICT");
    assert_string_equal(bt_code_name(BT_LIMIT), "LIMIT");
    assert_string_equal(bt_code_name(BT_BUSY), "BUSY");
    assert_string_equal(bt_code_name(BT_TIMEOUT), "TIMEOUT");
    assert_string_equal(bt_code_name(BT_UNAVAILABLE), "UNAVAILABLE");
    assert_string_equal(bt_code_name(BT_GONE), "GONE");
    assert_string_equal(bt_code_name(BT_CANCELLED), "CANCELLED");
    assert_string_equal(bt_code_name(BT_PROTOCOL), "PROTOCOL");
    assert_string_equal(bt_code_name(BT_NOMEM), "NOMEM");
    assert_string_equal(bt_code_name(BT_IO), "IO");
    assert_string_equal(bt_code_name(BT_INTERNAL), "INTERNAL");
}

static void wrapping_puts_the_place_before_the_sentence_and_keeps_the_code(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(err_set(&err, BT_LIMIT, "%d is too many", 7), BT_LIMIT);
    assert_int_equal(err_wrap(&err, "step %d", 3), BT_LIMIT);
    assert_int_equal(err_wrap(NULL, "step %d", 3), BT_INTERNAL);
    assert_string_equal(err.msg, "step 3: 7 is too many");
    assert_int_equal(err.code, BT_LIMIT);
    assert_int_equal(err_set(NULL, BT_BUSY, "nobody listens"), BT_BUSY);
}

static void a_long_sentence_is_cut_and_terminated(void **state)
{
    struct bt_error err;
    char text[2000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    (void)err_set(&err, BT_INVALID, "%s", text);
    assert_int_equal(strlen(err.msg), BT_ERROR_MSG_MAX - 1);
    (void)err_wrap(&err, "%s", text);
    assert_int_equal(strlen(err.msg), BT_ERROR_MSG_MAX - 1);
}

static void errno_becomes_a_code_and_its_text_is_kept(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(err_errno(&err, ENOENT, "open %s", "x"), BT_NOT_FOUND);
    assert_string_equal(err.msg, "open x: No such file or directory");
    assert_int_equal(err_errno(&err, ENOMEM, "fork"), BT_NOMEM);
    assert_int_equal(err_errno(&err, EIO, "write"), BT_IO);
    assert_int_equal(err_errno(NULL, EIO, "write"), BT_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_and_class_finds_its_way_back_from_its_name),
        cmocka_unit_test(unknown_names_have_a_safe_meaning),
        cmocka_unit_test(a_code_that_asks_for_a_wait_is_retryable),
        cmocka_unit_test(the_public_enum_has_the_order_of_the_list),
        cmocka_unit_test(wrapping_puts_the_place_before_the_sentence_and_keeps_the_code),
        cmocka_unit_test(a_long_sentence_is_cut_and_terminated),
        cmocka_unit_test(errno_becomes_a_code_and_its_text_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

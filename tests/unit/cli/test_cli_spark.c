/* Sparklines. */
#include <stdio.h>

#include "supervisor/cli/picture/spark.h"
#include "tests/support/cmocka.h"

static void assert_spark(const struct spark *s, int columns, double top, bool ascii,
                         const char *expected)
{
    const struct look look = {.ascii = ascii};
    struct buf out;

    buf_init(&out, 4096);
    spark_put(s, columns, top, &look, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_done(&out);
}

static void the_newest_value_is_at_the_right_and_zero_alone_is_the_lowest_bar(void **state)
{
    static const double values[] = {0, 0.01, 0.25, 0.5, 0.75, 1, 2, -1};
    struct spark s = {.n = 0};

    (void)state;
    assert_spark(&s, 3, 1, false, "   ");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        spark_add(&s, values[i]);
    }
    assert_spark(&s, 10, 1, false, "  ▁▂▃▅▇██▁");
    assert_spark(&s, 10, 1, true, "  _.:=*##_");
    assert_spark(&s, 2, 1, false, "█▁");
    assert_spark(&s, 0, 1, false, "");
}

static void without_a_top_the_highest_value_that_is_shown_is_full(void **state)
{
    struct spark s = {.n = 0};

    (void)state;
    spark_add(&s, 1000);
    spark_add(&s, 2);
    spark_add(&s, 4);
    assert_spark(&s, 2, 0, false, "▅█");
    spark_add(&s, 0);
    assert_spark(&s, 1, 0, false, "▁");
}

static void the_oldest_value_goes_when_there_is_no_room(void **state)
{
    struct spark s = {.n = 0};

    (void)state;
    for (int i = 0; i <= SPARK_VALUES; i++) {
        spark_add(&s, i);
    }
    assert_int_equal(s.n, SPARK_VALUES);
    assert_true(s.at[0] == 1 && s.at[SPARK_VALUES - 1] == SPARK_VALUES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_value_is_at_the_right_and_zero_alone_is_the_lowest_bar),
        cmocka_unit_test(without_a_top_the_highest_value_that_is_shown_is_full),
        cmocka_unit_test(the_oldest_value_goes_when_there_is_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

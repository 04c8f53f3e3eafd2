/* Arithmetic: a table, random trees with a known value, and random text. */
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/calc/expr.h"
#include "protocol/base/buf.h"
#include "protocol/base/clock.h"

static const char variables[] = "{\"x\": 3, \"list\": [4, 1, 3, 2], \"e\": 10, \"word\": \"no\"}";

static enum bt_code eval(const char *text, double *ret, struct bt_error *err)
{
    cJSON *tree = cJSON_Parse(variables);
    enum bt_code code = expr_eval(text, tree, ret, err);

    cJSON_Delete(tree);
    return code;
}

static void expressions_have_the_value_of_school(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"2^3^2", 512},
        {"-2^2", -4},
        {"2^-1", 0.5},
        {"--3", 3},
        {"7 % 4", 3},
        {"-7 % 4", -3},
        {"1 - 2 - 3", -4},
        {"8 / 4 / 2", 1},
        {"1e3 + .5", 1000.5},
        {"9007199254740991 + 1", 9007199254740992.0},
        {"x * x", 9},
        {"e", 10}, /* a variable hides the constant */
        {"round(pi, 2)", 3.14},
        {"round(2.5)", 3},
        {"round(1234, -2)", 1200},
        {"max(list)", 4},
        {"sum(list, 10)", 20},
        {"mean(list)", 2.5},
        {"median(list)", 2.5},
        {"percentile(0, list)", 1},
        {"percentile(50, list)", 2.5},
        {"percentile(100, list)", 4},
        {"stdev(2, 4)^2", 2},
        {"stdev(5)", 0},
        {"count()", 0},
        {"sum()", 0},
        {"abs(-3) + sqrt(16) + floor(1.9) + ceil(1.1)", 10},
        {"ln(exp(2))", 2},
        {"log(1000)", 3},
        {"log(8, 2)", 3},
        {"min(1, max(2, 3), 4)", 1},
        {" \t1\n", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double v = -12345.0;
        struct bt_error err;
        if (eval(cases[i].text, &v, &err) != BT_OK) {
            fail_msg("%s: %s", cases[i].text, err.msg);
        }
        if (fabs(v - cases[i].value) > 1e-12) {
            fail_msg("%s: %.17g, expected %.17g", cases[i].text, v, cases[i].value);
        }
    }
}

static void wrong_expressions_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text;
        const char *say;
    } cases[] = {
        {"", "at 1"},
        {"1 +", "too early"},
        {"1 2", "expected an operator"},
        {"(1", "expected ')'"},
        {"1)", "expected an operator"},
        {"1/0", "division by zero"},
        {"5 % (1-1)", "division by zero"},
        {"0^-1", "finite"},
        {"1e999", "not a number"},
        {"1.2.3", "not a number"},
        {"0x10", "not a number"},
        {"y", "no variable"},
        {"word + 1", "no number"},
        {"list + 1", "no number"},
        {"system(1)", "no function"},
        {"min()", "more values"},
        {"abs(1, 2)", "fewer values"},
        {"sqrt(-1)", "negative"},
        {"ln(0)", "not positive"},
        {"log(8, 1)", "not positive"},
        {"percentile(101, list)", "0 to 100"},
        {"round(1, 99)", "digits"},
        {"max(1,)", "expected a number"},
        {"\xff", "at 1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double v = -1.0;
        struct bt_error err = {.code = BT_OK};
        if (eval(cases[i].text, &v, &err) == BT_OK) {
            fail_msg("%s was taken: %g", cases[i].text, v);
        }
        assert_true(v == -1.0); /* unchanged on failure */
        if (strstr(err.msg, cases[i].say) == NULL) {
            fail_msg("%s: '%s' does not say '%s'", cases[i].text, err.msg, cases[i].say);
        }
    }
}

static void nesting_and_length_are_capped(void **state)
{
    char text[EXPR_TEXT_MAX + 2];
    struct bt_error err;
    double v;

    (void)state;
    memset(text, '(', EXPR_TEXT_MAX);
    text[EXPR_TEXT_MAX] = 0;
    assert_int_equal(eval(text, &v, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "nested more than 64 levels"));
    memset(text, '-', EXPR_TEXT_MAX - 1); /* signs do not nest */
    text[EXPR_TEXT_MAX - 1] = '1';
    assert_int_equal(eval(text, &v, &err), BT_OK);
    memset(text, '1', EXPR_TEXT_MAX + 1);
    text[EXPR_TEXT_MAX + 1] = 0;
    assert_int_equal(eval(text, &v, &err), BT_LIMIT);
}

/* ---- random ---- */

static uint64_t random_state;

static uint32_t draw(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state % n);
}

/* Writes a tree with all its parentheses and returns its value. */
static double write_tree(struct buf *out, int depth)
{
    uint32_t kind = depth == 0 ? 0 : draw(5);
    double a;
    double b;

    if (kind == 0) {
        a = (double)draw(1000);
        buf_printf(out, "%.0f", a);
        return a;
    }
    buf_add_cstr(out, kind == 4 ? "max(" : "(");
    a = write_tree(out, depth - 1);
    buf_add_cstr(out, kind == 1 ? " + " : kind == 2 ? "-" : kind == 3 ? " *" : ", ");
    b = write_tree(out, depth - 1);
    buf_add_byte(out, ')');
    return kind == 1 ? a + b : kind == 2 ? a - b : kind == 3 ? a * b : a > b ? a : b;
}

static void random_trees_have_their_value(void **state)
{
    uint64_t seed = clock_mono_ns() | 1;

    (void)state;
    random_state = seed;
    for (int i = 0; i < 2000; i++) {
        struct buf text;
        struct bt_error err;
        double expected;
        double v = 0.0;
        buf_init(&text, EXPR_TEXT_MAX);
        expected = write_tree(&text, 5);
        if (text.bad == BT_OK && (eval(buf_cstr(&text), &v, &err) != BT_OK || v != expected)) {
            fail_msg("seed %llu: %s is %.17g, not %.17g", (unsigned long long)seed, buf_cstr(&text),
                     expected, v);
        }
        buf_done(&text);
    }
}

static void random_text_is_taken_or_refused_but_never_more(void **state)
{
    static const char *const parts[] = {"(", ")", "+", "-",  "*",    "/",   "%", "^", ",",
                                        "1", "2", ".", "e3", "list", "max", "x", " ", "sum("};
    uint64_t seed = clock_mono_ns() | 1;
    uint32_t taken = 0;

    (void)state;
    random_state = seed;
    for (int i = 0; i < 20000; i++) {
        char text[256] = "";
        size_t n = 0;
        double v = NAN;
        for (uint32_t k = draw(12); k > 0; k--) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s",
                                  parts[draw(sizeof parts / sizeof parts[0])]);
        }
        if (eval(text, &v, NULL) == BT_OK) {
            taken++;
            if (!isfinite(v)) {
                fail_msg("seed %llu: %s is not finite", (unsigned long long)seed, text);
            }
        }
    }
    assert_true(taken > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_have_the_value_of_school),
        cmocka_unit_test(wrong_expressions_are_refused_with_their_place),
        cmocka_unit_test(nesting_and_length_are_capped),
        cmocka_unit_test(random_trees_have_their_value),
        cmocka_unit_test(random_text_is_taken_or_refused_but_never_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

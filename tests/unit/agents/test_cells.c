/* The type of a cell and of a column: tables of examples, and dates against each day of 400 years.
 */
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdio.h>

#include "agents/cells/cell_date.h"
#include "agents/cells/cells.h"

struct example {
    const char *text;
    enum cell_kind kind;
};

static void expect_kinds(const struct example *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (cell_kind_of(str_from(cases[i].text)) != cases[i].kind) {
            fail_msg("'%s': kind %d, expected %d", cases[i].text,
                     (int)cell_kind_of(str_from(cases[i].text)), (int)cases[i].kind);
        }
    }
}

static void a_number_has_a_form_and_keeps_its_digits(void **state)
{
    static const struct example cases[] = {
        {"", CELL_KIND_NULL},
        {"0", CELL_KIND_INTEGER},
        {"-0", CELL_KIND_INTEGER},
        {"-12", CELL_KIND_INTEGER},
        {"9007199254740992", CELL_KIND_INTEGER},
        {"-9007199254740992", CELL_KIND_INTEGER},
        {"9007199254740993", CELL_KIND_BIG},
        {"-9007199254740993", CELL_KIND_BIG},
        {"9223372036854775807", CELL_KIND_BIG},
        {"-9223372036854775808", CELL_KIND_BIG},
        {"9223372036854775808", CELL_KIND_TEXT},
        {"-9223372036854775809", CELL_KIND_TEXT},
        {"99999999999999999999999999", CELL_KIND_TEXT},
        {"007", CELL_KIND_TEXT},
        {"-01", CELL_KIND_TEXT},
        {"00.5", CELL_KIND_TEXT},
        {"+1", CELL_KIND_TEXT},
        {"--1", CELL_KIND_TEXT},
        {"1,000", CELL_KIND_TEXT},
        {" 5", CELL_KIND_TEXT},
        {"5 ", CELL_KIND_TEXT},
        {"1 000", CELL_KIND_TEXT},
        {"0x1F", CELL_KIND_TEXT},
        {"inf", CELL_KIND_TEXT},
        {"-inf", CELL_KIND_TEXT},
        {"nan", CELL_KIND_TEXT},
        {"NaN", CELL_KIND_TEXT},
        {"Infinity", CELL_KIND_TEXT},
        {"99.83", CELL_KIND_REAL},
        {"-0.0", CELL_KIND_REAL},
        {".5", CELL_KIND_REAL},
        {"-.5", CELL_KIND_REAL},
        {"5.", CELL_KIND_TEXT},
        {".", CELL_KIND_TEXT},
        {"-", CELL_KIND_TEXT},
        {"e5", CELL_KIND_TEXT},
        {"1e", CELL_KIND_TEXT},
        {"1e+", CELL_KIND_TEXT},
        {"1.5.2", CELL_KIND_TEXT},
        {"1e6", CELL_KIND_REAL},
        {"1E-6", CELL_KIND_REAL},
        {"1e+06", CELL_KIND_REAL},
        {"1.50", CELL_KIND_REAL},
        {"1e308", CELL_KIND_REAL},
        {"1e309", CELL_KIND_TEXT},
        {"1e400", CELL_KIND_TEXT},
        {"1e-400", CELL_KIND_TEXT},
        {"5e-324", CELL_KIND_REAL},
        {"0.0e99", CELL_KIND_REAL},
        {"0.1", CELL_KIND_REAL},
        {"0.30000000000000004", CELL_KIND_REAL},
        {"0.10000000000000001", CELL_KIND_REAL},
        {"123456789012345.6", CELL_KIND_REAL},
        {"1234567890123456.78", CELL_KIND_TEXT},
        {"3.14159265358979323846", CELL_KIND_TEXT},
        {"1.0000000000000000000000000000000", CELL_KIND_REAL},
    };

    (void)state;
    expect_kinds(cases, sizeof cases / sizeof cases[0]);
}

static void booleans_and_dates_have_a_form(void **state)
{
    static const struct example cases[] = {
        {"true", CELL_KIND_BOOLEAN},
        {"false", CELL_KIND_BOOLEAN},
        {"TRUE", CELL_KIND_TEXT},
        {"yes", CELL_KIND_TEXT},
        {"2026-11-21", CELL_KIND_DATE},
        {"2026-11-21T03:53", CELL_KIND_DATE},
        {"2026-11-21 03:53:59", CELL_KIND_DATE},
        {"2026-11-21T03:53:59.123456789Z", CELL_KIND_DATE},
        {"2026-11-21T03:53:59+02:00", CELL_KIND_DATE},
        {"2026-11-21T03:53:59-0530", CELL_KIND_DATE},
        {"2026-11-21T03:53+14", CELL_KIND_DATE},
        {"2024-02-29", CELL_KIND_DATE},
        {"2026-02-29", CELL_KIND_TEXT},
        {"1900-02-29", CELL_KIND_TEXT},
        {"2000-02-29", CELL_KIND_DATE},
        {"2026-13-01", CELL_KIND_TEXT},
        {"2026-00-01", CELL_KIND_TEXT},
        {"2026-04-31", CELL_KIND_TEXT},
        {"0000-01-01", CELL_KIND_TEXT},
        {"0001-01-01", CELL_KIND_DATE},
        {"2026-11", CELL_KIND_TEXT},
        {"2026-1-1", CELL_KIND_TEXT},
        {"20261121", CELL_KIND_INTEGER},
        {"21.11.2026", CELL_KIND_TEXT},
        {"2026-11-21T", CELL_KIND_TEXT},
        {"2026-11-21T24:00", CELL_KIND_TEXT},
        {"2026-11-21T23:60", CELL_KIND_TEXT},
        {"2026-11-21T23:59:60", CELL_KIND_TEXT},
        {"2026-11-21T12", CELL_KIND_TEXT},
        {"2026-11-21T03:53:59.Z", CELL_KIND_TEXT},
        {"2026-11-21T03:53:59.1234567890Z", CELL_KIND_TEXT},
        {"2026-11-21T03:53+14:01", CELL_KIND_DATE},
        {"2026-11-21T03:53+15:00", CELL_KIND_TEXT},
        {"2026-11-21T03:53Zx", CELL_KIND_TEXT},
        {"2026-11-21  03:53", CELL_KIND_TEXT},
        {"2026-11-21Z", CELL_KIND_TEXT},
        {"caf\xC3\xA9", CELL_KIND_TEXT},
    };

    (void)state;
    expect_kinds(cases, sizeof cases / sizeof cases[0]);
}

static void a_number_is_a_text_over_its_cap(void **state)
{
    char text[CELL_NUMBER_MAX + 3] = "0.";

    (void)state;
    memset(text + 2, '0', sizeof text - 2);
    text[CELL_NUMBER_MAX - 1] = '5';
    assert_int_equal(cell_kind_of((struct str){text, CELL_NUMBER_MAX}), CELL_KIND_REAL);
    assert_int_equal(cell_kind_of((struct str){text, CELL_NUMBER_MAX + 1}), CELL_KIND_TEXT);
}

static enum cell_type column(const char *const *cells)
{
    struct cell_column c = {0};

    for (; *cells != NULL; cells++) {
        cell_column_see(&c, str_from(*cells));
    }
    return cell_column_type(&c);
}

#define COLUMN(...) column((const char *const[]){__VA_ARGS__, NULL})

static void a_column_has_one_type(void **state)
{
    (void)state;
    assert_int_equal(COLUMN("1", "", "-3"), CELL_INTEGER);
    assert_int_equal(COLUMN("1", "9223372036854775807"), CELL_INTEGER);
    assert_int_equal(COLUMN("1", "2.5"), CELL_REAL);
    assert_int_equal(COLUMN("2.5", "9007199254740992"), CELL_REAL);
    assert_int_equal(COLUMN("2.5", "9007199254740993"), CELL_TEXT);
    assert_int_equal(COLUMN("1", "007"), CELL_TEXT);
    assert_int_equal(COLUMN("1", "n/a"), CELL_TEXT);
    assert_int_equal(COLUMN("1", "9223372036854775808"), CELL_TEXT);
    assert_int_equal(COLUMN("true", "", "false"), CELL_BOOLEAN);
    assert_int_equal(COLUMN("true", "1"), CELL_TEXT);
    assert_int_equal(COLUMN("2026-11-21", "2026-11-21T03:53:00Z"), CELL_DATE);
    assert_int_equal(COLUMN("2026-11-21", "20261121"), CELL_TEXT);
    assert_int_equal(COLUMN("", ""), CELL_TEXT);
    assert_int_equal(COLUMN("a"), CELL_TEXT);
}

static void a_cell_is_read_as_its_column(void **state)
{
    struct cell c;

    (void)state;
    assert_true(cell_read(CELL_INTEGER, false, STR_LIT("-9223372036854775808"), &c));
    assert_true(c.integer == INT64_MIN && !c.null);
    assert_true(cell_read(CELL_INTEGER, false, STR_LIT("-0"), &c));
    assert_true(c.integer == 0);
    assert_true(cell_read(CELL_REAL, false, STR_LIT("-0.0"), &c));
    assert_true(c.real == 0.0 && signbit(c.real));
    assert_true(cell_read(CELL_REAL, false, STR_LIT("500"), &c));
    assert_true(c.real == 500.0);
    assert_true(cell_read(CELL_BOOLEAN, false, STR_LIT("false"), &c));
    assert_false(c.boolean);
    assert_true(cell_read(CELL_DATE, false, STR_LIT("2026-11-21"), &c));
    assert_true(str_is(c.text, "2026-11-21"));
    assert_false(cell_read(CELL_INTEGER, false, STR_LIT("1.5"), &c));
    assert_false(cell_read(CELL_INTEGER, false, STR_LIT("007"), &c));
    assert_false(cell_read(CELL_BOOLEAN, true, STR_LIT("TRUE"), &c));
    assert_false(cell_read(CELL_DATE, true, STR_LIT("21.11.2026"), &c));
}

static void an_empty_cell_is_null_but_a_declared_text_stays(void **state)
{
    struct cell c;

    (void)state;
    for (int type = 0; type < CELL_TYPE_COUNT; type++) {
        assert_true(cell_read((enum cell_type)type, false, STR_LIT(""), &c));
        assert_true(c.null);
        assert_true(cell_read((enum cell_type)type, true, STR_LIT(""), &c));
        assert_int_equal(c.null, type != CELL_TEXT);
    }
}

static void a_declared_number_takes_more_forms(void **state)
{
    struct cell c;

    (void)state;
    assert_true(cell_read(CELL_INTEGER, true, STR_LIT("007"), &c) && c.integer == 7);
    assert_true(cell_read(CELL_INTEGER, true, STR_LIT("+5"), &c) && c.integer == 5);
    assert_false(cell_read(CELL_INTEGER, true, STR_LIT("5.0"), &c));
    assert_false(cell_read(CELL_INTEGER, true, STR_LIT("9223372036854775808"), &c));
    assert_true(cell_read(CELL_REAL, true, STR_LIT("5."), &c) && c.real == 5.0);
    assert_true(cell_read(CELL_REAL, true, STR_LIT("3.14159265358979323846"), &c));
    assert_true(c.real == 3.14159265358979323846);
    assert_false(cell_read(CELL_REAL, true, STR_LIT("1e400"), &c));
    assert_false(cell_read(CELL_REAL, true, STR_LIT("nan"), &c));
    assert_false(cell_read(CELL_REAL, true, STR_LIT("0x10"), &c));
}

static void types_have_names(void **state)
{
    enum cell_type type = CELL_TEXT;

    (void)state;
    for (int i = 0; i < CELL_TYPE_COUNT; i++) {
        assert_true(cell_type_from_name(str_from(cell_type_name((enum cell_type)i)), &type));
        assert_int_equal(type, i);
    }
    assert_false(cell_type_from_name(STR_LIT("number"), &type));
    assert_false(cell_type_from_name((struct str){NULL, 0}, &type));
}

static void every_day_of_400_years_is_a_date_and_no_other(void **state)
{
    unsigned days = 0;

    (void)state;
    for (int year = 1701; year <= 2100; year++) {
        for (int month = 1; month <= 12; month++) {
            for (int day = 0; day <= 32; day++) {
                char text[32];
                struct cell_date d;
                (void)snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                days += cell_date_read(str_from(text), &d);
            }
        }
    }
    assert_int_equal(days, 146097); /* of 400 Gregorian years */
}

static void the_parts_of_a_date_are_read(void **state)
{
    struct cell_date d;

    (void)state;
    assert_true(cell_date_read(STR_LIT("2026-11-21T03:53:59.25-05:30"), &d));
    assert_int_equal(d.year * 10000 + d.month * 100 + d.day, 20261121);
    assert_int_equal(d.hour * 10000 + d.minute * 100 + d.second, 35359);
    assert_int_equal(d.nanos, 250000000);
    assert_int_equal(d.offset_minutes, -330);
    assert_true(d.has_time && d.has_offset);
    assert_true(cell_date_read(STR_LIT("2026-11-21"), &d));
    assert_false(d.has_time || d.has_offset);
}

/* The characters before '0' and after '9' at each place of a digit, and the end before it. */
static void each_digit_of_a_date_is_one(void **state)
{
    static const char good[] = "2026-11-21T03:53:59.25-05:30";
    char text[sizeof good];
    struct cell_date d;

    (void)state;
    for (size_t i = 0; i < sizeof good - 1; i++) {
        for (int wrong = 0; wrong < 2 && good[i] >= '0' && good[i] <= '9'; wrong++) {
            memcpy(text, good, sizeof good);
            text[i] = wrong == 0 ? '/' : ':';
            if (cell_date_read(str_from(text), &d)) {
                fail_msg("%s is a date", text);
            }
        }
    }
    for (size_t n = 0; n < sizeof good; n++) { /* a day, to the minute, ..., the whole offset */
        const bool whole =
            n == 10 || n == 16 || n == 19 || n == 21 || n == 22 || n == 25 || n == 28;
        if (cell_date_read((struct str){good, n}, &d) != whole) {
            fail_msg("%.*s: %s", (int)n, good, whole ? "no date" : "a date");
        }
    }
}

/* No sign, no number, a colon alone; at most 14 hours and 59 minutes. */
static void an_offset_is_z_or_hours_and_minutes(void **state)
{
    static const struct {
        const char *text;
        int minutes; /* -1 = no date */
    } rows[] = {{"Z", 0},       {"+00", 0},     {"+0230", 150},  {"-02:30", -150}, {"+14:59", 899},
                {"+15:00", -1}, {"+13:60", -1}, {"-14", -840},   {"+", -1},        {"-", -1},
                {"02", -1},     {"+2", -1},     {"+02:", -1},    {"+02:3", -1},    {"+02:300", -1},
                {"ZZ", -1},     {"z", -1},      {"+02:30Z", -1}, {" +02:30", -1},  {"+-02", -1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cell_date d;
        char text[64];
        (void)snprintf(text, sizeof text, "2026-11-21T03:53%s", rows[i].text);
        if (cell_date_read(str_from(text), &d) != (rows[i].minutes != -1)) {
            fail_msg("%s", text);
        }
        if (rows[i].minutes != -1) {
            assert_int_equal(d.offset_minutes, rows[i].minutes);
            assert_true(d.has_offset);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_a_form_and_keeps_its_digits),
        cmocka_unit_test(booleans_and_dates_have_a_form),
        cmocka_unit_test(a_number_is_a_text_over_its_cap),
        cmocka_unit_test(a_column_has_one_type),
        cmocka_unit_test(a_cell_is_read_as_its_column),
        cmocka_unit_test(an_empty_cell_is_null_but_a_declared_text_stays),
        cmocka_unit_test(a_declared_number_takes_more_forms),
        cmocka_unit_test(types_have_names),
        cmocka_unit_test(every_day_of_400_years_is_a_date_and_no_other),
        cmocka_unit_test(each_digit_of_a_date_is_one),
        cmocka_unit_test(an_offset_is_z_or_hours_and_minutes),
        cmocka_unit_test(the_parts_of_a_date_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Each allocation of a calculation fails in its turn: a result without some of its numbers would be
 * a wrong one. */
#include "tests/support/cmocka.h"

#include "agents/calc/calc.h"
#include "tests/support/no_memory.h"

#define ROWS                                                                                       \
    "\"values\":{\"columns\":[\"day\",\"who\",\"n\"],\"rows\":[[\"2026-01-05\",\"ann\",3],"        \
    "[\"2026-01-04\",\"bob\",1],[\"2026-02-01\",\"ann\",5.5]]}"
#define LINES "2026-11-20 09:00:00 install a\\n2026-11-21 10:00:01 install b\\nno date\\n"

static void every_result_is_whole_or_says_that_there_is_no_memory(void **state)
{
    static const char *const asked[][2] = {
        {"evaluate", "{\"task\":\"Calculate (1+2)*3\"}"},
        {"statistics", "{\"parameters\":{" ROWS "}}"},
        {"shares", "{\"parameters\":{\"values\":{\"a\":1,\"b\":3}}}"},
        {"count_by", "{\"parameters\":{\"items\":[\"x\",\"y\",\"x\"]}}"},
        {"count_per_day", "{\"parameters\":{\"text\":\"" LINES "\"}}"},
        {"busiest", "{\"parameters\":{\"counts\":{\"a\":1,\"b\":7,\"c\":7}}}"},
        {"sort", "{\"parameters\":{\"by\":\"n\"," ROWS "}}"},
        {"group", "{\"parameters\":{\"by\":\"who\",\"calculate\":[{\"function\":\"sum\",\"field\":"
                  "\"n\"}]," ROWS "}}"},
        {"percentiles", "{\"parameters\":{\"percents\":[0,50]," ROWS "}}"},
        {"time",
         "{\"parameters\":{\"time\":\"2026-03-29 02:30\",\"from\":\"UTC\",\"to\":[\"UTC\"]}}"},
        {"duration", "{\"parameters\":{\"value\":\"1h 30m\"}}"},
        {"date", "{\"parameters\":{\"date\":\"2026-11-21\",\"amount\":30}}"},
        {"date", "{\"parameters\":{\"date\":\"2026-11-21\",\"until\":\"2027-01-01\"}}"}};
    size_t done = 0;

    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        for (size_t k = 0; k < calc_skill_count; k++) {
            if (strcmp(calc_skills[k].id, asked[i][0]) == 0) {
                no_memory_each(asked[i][0], asked[i][1], calc_skills[k].run, NULL);
                done++;
            }
        }
    }
    assert_int_equal(done, sizeof asked / sizeof asked[0]);
    steps_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_result_is_whole_or_says_that_there_is_no_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What short messages mean without a model, and that goals which contain the same words stay goals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "supervisor/conversation/intent_rules.h"
#include "tests/support/random.h"

/* "skip 2,4-5", "yes 2", "no|because", ... */
static void render(const struct intent *s, char *to, size_t size)
{
    static const char *const NAMES[] = {"-",   "skip", "skip_to", "stop", "pause",  "resume",
                                        "yes", "no",   "status",  "ask",  "answer", "new"};
    size_t len = (size_t)snprintf(to, size, "%s", NAMES[s->intent]);

    for (uint32_t i = 0; i < s->n_ranges; i++) {
        const struct intent_range *r = &s->ranges[i];
        const char *name = r->from == INTENT_STEP_LAST   ? "last"
                           : r->from == INTENT_STEP_NEXT ? "next"
                           : r->from == INTENT_STEP_THIS ? "this"
                                                         : NULL;
        len += (size_t)snprintf(to + len, size - len, "%s", i == 0 ? " " : ",");
        if (name != NULL) {
            len += (size_t)snprintf(to + len, size - len, "%s", name);
        } else {
            len += (size_t)snprintf(to + len, size - len, "%u", r->from);
        }
        if (r->to != r->from) {
            len += r->to == INTENT_STEP_LAST ? (size_t)snprintf(to + len, size - len, "-last")
                                             : (size_t)snprintf(to + len, size - len, "-%u", r->to);
        }
    }
    if (s->rest.len > 0) {
        (void)snprintf(to + len, size - len, "|%.*s", STR_ARG(s->rest));
    }
}

struct phrase {
    const char *text, *want;
};

static void expect_all(const struct phrase *all, size_t n)
{
    char got[512];
    int wrong = 0;

    for (size_t i = 0; i < n; i++) {
        struct intent s = intent_read(str_from(all[i].text));
        render(&s, got, sizeof got);
        if (strcmp(got, all[i].want) != 0) {
            print_error("\"%s\": expected %s, got %s\n", all[i].text, all[i].want, got);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

#define EXPECT(...)                                                                                \
    do {                                                                                           \
        static const struct phrase ALL[] = {__VA_ARGS__};                                          \
        expect_all(ALL, sizeof ALL / sizeof ALL[0]);                                               \
    } while (0)

static void steps_to_skip_are_numbers_ranges_and_words(void **state)
{
    (void)state;
    EXPECT({"skip step 2", "skip 2"}, {"Skip step 2.", "skip 2"}, {"skip 2", "skip 2"},
           {"skip steps 2 and 4", "skip 2,4"}, {"skip steps 2, 4 and 5", "skip 2,4,5"},
           {"skip steps 2, 4, and 5", "skip 2,4,5"}, {"skip 2-4", "skip 2-4"},
           {"skip steps 2 to 4", "skip 2-4"}, {"skip step 2 through step 4", "skip 2-4"},
           {"skip 1, 3-5 & 9", "skip 1,3-5,9"}, {"please skip step 3", "skip 3"},
           {"Could you skip step 3, please?", "skip 3"}, {"let's skip step 3", "skip 3"},
           {"just skip step 3", "skip 3"}, {"now skip step 3 please", "skip 3"},
           {"ok, skip step 3", "skip 3"}, {"yes skip step 3", "skip 3"},
           {"skip the second step", "skip 2"}, {"skip the 2nd step", "skip 2"},
           {"skip the second and the third step", "skip 2,3"}, {"skip step two", "skip 2"},
           {"skip the last step", "skip last"}, {"skip the next step", "skip next"},
           {"skip step 3 to the last step", "skip 3-last"}, {"skip this step", "skip this"},
           {"skip the current step", "skip this"}, {"skip the present step", "skip this"},
           {"skip step 1 and the current one", "-"}, {"skip the final step", "skip last"},
           {"skip it", "skip this"}, {"skip", "skip this"}, {"omit step 2", "skip 2"},
           {"leave out step 2", "skip 2"}, {"drop step 2", "skip 2"}, {"skip task 2", "skip 2"},
           {"SKIP STEP 2!!!", "skip 2"}, {"  skip   step\t2 ", "skip 2"},
           {"skip step 999999999", "skip 999999999"}, {"I want you to skip step 2", "skip 2"});
}

static void where_to_skip_to_is_one_step(void **state)
{
    (void)state;
    EXPECT({"skip to step 3", "skip_to 3"}, {"skip to 3", "skip_to 3"},
           {"go to step 3", "skip_to 3"}, {"jump to step 3", "skip_to 3"},
           {"jump to 3", "skip_to 3"}, {"move on to step 3", "skip_to 3"},
           {"go straight to step 3", "skip_to 3"}, {"continue with step 3", "skip_to 3"},
           {"please go ahead to step 3", "skip_to 3"},
           {"skip ahead to the last step", "skip_to last"}, {"go to the third step", "skip_to 3"},
           {"go to the next step", "skip_to next"}, {"can you skip to step 4 now?", "skip_to 4"},
           {"proceed to step 4", "skip_to 4"});
}

static void the_plan_is_stopped_paused_and_resumed(void **state)
{
    (void)state;
    EXPECT({"stop", "stop"}, {"Stop!", "stop"}, {"cancel", "stop"}, {"cancel the plan", "stop"},
           {"stop it", "stop"}, {"abort", "stop"}, {"please stop", "stop"}, {"stop now", "stop"},
           {"stop everything", "stop"}, {"cancel this plan please", "stop"}, {"no, stop", "stop"},
           {"pause", "pause"}, {"pause the plan", "pause"}, {"hold on", "pause"},
           {"please pause for now", "pause"}, {"resume", "resume"}, {"continue", "resume"},
           {"continue please", "resume"}, {"go on", "resume"}, {"carry on", "resume"},
           {"go ahead", "resume"}, {"proceed", "resume"}, {"resume the plan", "resume"},
           {"continue with the plan", "resume"}, {"ok, continue", "resume"});
}

static void yes_and_no_in_their_many_forms(void **state)
{
    (void)state;
    EXPECT({"yes", "yes"}, {"Yes.", "yes"}, {"y", "yes"}, {"ok", "yes"}, {"OK!", "yes"},
           {"yes please", "yes"}, {"sure", "yes"}, {"approve", "yes"}, {"approved", "yes"},
           {"approve it", "yes"}, {"I approve", "yes"}, {"yes, do it", "yes"}, {"ok, fine", "yes"},
           {"looks good", "yes"}, {"that's fine", "yes"}, {"approve step 2", "yes 2"},
           {"yes to step 2", "yes 2"}, {"approve the plan", "yes"}, {"no", "no"}, {"No!", "no"},
           {"n", "no"}, {"nope", "no"}, {"reject", "no"}, {"reject it", "no"}, {"don't", "no"},
           {"don\xE2\x80\x99t do it", "no"}, {"no way", "no"}, {"no thanks", "no"},
           {"reject step 3", "no 3"}, {"no, the file is wrong", "no|the file is wrong"},
           {"no because it is Monday", "no|it is Monday"},
           {"reject: use B.csv, not a.csv.", "no|use B.csv, not a.csv."});
}

static void questions_and_prefixes(void **state)
{
    (void)state;
    EXPECT({"status", "status"}, {"status?", "status"}, {"what's the status?", "status"},
           {"where are we?", "status"}, {"how far are you?", "status"},
           {"what is happening", "status"}, {"progress?", "status"},
           {"just asking, what does step 2 do?", "ask|, what does step 2 do?"},
           {"Just asking: should I stop?", "ask|: should I stop?"},
           {"just a question, skip step 2?", "ask|, skip step 2?"}, {"question: stop", "ask|stop"},
           {"answer: stop", "answer|stop"}, {"step 2: the red one", "answer 2|the red one"},
           {"answer to step two: yes", "answer 2|yes"},
           {"answer: skip step 2", "answer|skip step 2"},
           {"new plan: count the rows of a.csv", "new|count the rows of a.csv"},
           {"new: stop the server", "new|stop the server"}, {"new plan", "new"},
           {"start over: read b.txt", "new|read b.txt"}, {"new plan:", "new"});
}

/* Each has the words of a rule in it and means something else. */
static void goals_that_contain_the_words_stay_goals(void **state)
{
    (void)state;
    EXPECT({"skip the header line of a.csv and count the rows", "-"},
           {"skip 2 lines of a.csv and sum the rest", "-"}, {"skip to the end of the file", "-"},
           {"skip step 2 of the recipe and bake the cake", "-"},
           {"read a.txt, skip step 2, write b.txt", "-"}, {"stop the server", "-"},
           {"stop the web server and clear its cache", "-"}, {"cancel my subscription", "-"},
           {"cancel order 42", "-"}, {"abort the upload if it is too large", "-"},
           {"pause the music", "-"}, {"continue the story of the fox", "-"},
           {"continue with the report", "-"}, {"resume of Jane Doe: extract the skills", "-"},
           {"resume.pdf", "-"}, {"go to step 3 of the wizard and take its text", "-"},
           {"go to the shop", "-"}, {"go to 3 shops", "-"},
           {"yes men is a film: when was it made", "-"}, {"ok computer: list its tracks", "-"},
           {"no country for old men", "-"}, {"approve the invoice 77", "-"},
           {"reject all invoices over 100", "-"}, {"reject lines that do not parse", "-"},
           {"status of order 5", "-"}, {"where are we going for lunch", "-"},
           {"progress report for the board", "-"}, {"don't stop", "-"}, {"do not skip step 2", "-"},
           {"don't skip step 2", "-"}, {"never skip step 2", "-"}, {"no problem", "-"},
           {"no idea", "-"}, {"yes, but only the first half", "-"}, {"yes but skip the tests", "-"},
           {"no, but wait", "-"}, {"skip step", "-"}, {"skip step 0", "-"}, {"skip 4-2", "-"},
           {"skip step 1.5", "-"}, {"skip step -2", "-"}, {"skip step 9999999999", "-"},
           {"skip to steps 2 and 3", "-"}, {"go to 3", "-"}, {"drop 2", "-"}, {"drop table 2", "-"},
           {"new plan for the garden", "-"}, {"news: what is new", "-"}, {"new car prices", "-"},
           {"answer the letter", "-"}, {"question every result", "-"}, {"hold the line", "-"},
           {"", "-"}, {"   ", "-"}, {"?!", "-"}, {"2", "-"}, {"count the rows of a.csv", "-"},
           {"stop and think about it", "-"}, {"what if we skip step 2", "-"},
           {"should I stop", "-"}, {"why did you skip step 2?", "-"}, {"undo skip step 2", "-"},
           {"unskip step 2", "-"}, {"skip step 2 when it fails", "-"},
           {"skip step 2 and then stop", "-"}, {"\xF0\x9F\x91\x8D", "-"});
}

/* A yes can do harm: what says both, or only asks, is none. */
static void what_contradicts_itself_or_asks_decides_nothing(void **state)
{
    (void)state;
    EXPECT({"no, yes", "-"}, {"no: yes", "-"}, {"yes, no", "-"}, {"yes and no", "-"},
           {"yes ... no", "-"}, {"y n", "-"}, {"ok?", "-"}, {"correct?", "-"}, {"all right?", "-"},
           {"looks good?", "-"}, {"no?", "-"}, {"stop?", "-"}, {"can we stop?", "-"},
           {"can we skip step 2?", "-"}, {"skip step 2?!", "-"},
           {"could you stop, please?", "stop"}, {"ok, can you skip step 3?", "skip 3"},
           {"can we stop", "stop"}, {"progress?", "status"}, {"go ahead with step 2", "yes 2"},
           {"proceed with the second step", "yes 2"}, {"go ahead to step 3", "skip_to 3"},
           {"continue with step 3", "skip_to 3"});
    assert_true(intent_read(STR_LIT("resume")).only_resumes);
    assert_true(intent_read(STR_LIT("no, go on")).only_resumes);
    assert_true(intent_read(STR_LIT("no, continue")).only_resumes);
    assert_false(intent_read(STR_LIT("go ahead")).only_resumes);
    assert_false(intent_read(STR_LIT("ok, continue")).only_resumes);
}

/* A word ends where no letter and no digit follows: what is longer is another word. */
static void each_letter_and_digit_goes_on_with_a_word(void **state)
{
    static const char *const more[] = {"a", "z", "A", "Z", "0", "9", "\xC3\x80", "\xC3\xBF"};
    static const char *const ends[] = {" ", ".", "!"};
    char text[40];

    (void)state;
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        (void)snprintf(text, sizeof text, "stop%s", more[i]);
        assert_int_equal(intent_read(str_from(text)).intent, INTENT_UNKNOWN);
        (void)snprintf(text, sizeof text, "%sstop", more[i]);
        assert_int_equal(intent_read(str_from(text)).intent, INTENT_UNKNOWN);
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)snprintf(text, sizeof text, "stop%s", ends[i]);
        if (intent_read(str_from(text)).intent != INTENT_STOP) {
            fail_msg("'%s' does not end a word", ends[i]);
        }
    }
}

/* Whatever comes in: no crash, `rest` within the message, ranges that make sense. */
static void any_bytes_are_read_safely(void **state)
{
    static const char *const PIECES[] = {"skip ",    "step ", "steps ", "to ",   "2",    "-",  ", ",
                                         "and ",     "no ",   "yes ",   "stop ", "the ", ":",  "'",
                                         "\xE2\x80", "\x80",  " ",      "999",   "new",  "go "};
    struct rng r = rng_seeded(__func__);

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[9000];
        size_t len = 0;
        uint32_t n = rng_below(&r, round % 100 == 0 ? 900 : 12);
        struct intent s;
        for (uint32_t i = 0; i < n; i++) {
            const char *piece = PIECES[rng_below(&r, sizeof PIECES / sizeof PIECES[0])];
            size_t size = strlen(piece);
            memcpy(text + len, piece, size);
            len += size;
        }
        s = intent_read((struct str){text, len});
        assert_true(s.intent <= INTENT_NEW && s.n_ranges <= INTENT_RANGES_MAX);
        assert_true(s.rest.len == 0 ||
                    (s.rest.ptr >= text && s.rest.ptr + s.rest.len <= text + len));
        for (uint32_t i = 0; i < s.n_ranges; i++) {
            assert_true(s.ranges[i].from > 0 && s.ranges[i].to >= s.ranges[i].from);
        }
    }
}

/* A yes or a no comes before its comma; a line that begins with one says neither. */
static void what_begins_with_a_comma_is_what_follows_it_or_a_goal(void **state)
{
    static const struct phrase all[] = {
        {", stop", "stop"},           {"- skip step 2", "-"}, {": resume", "-"},
        {"; the file is wrong", "-"}, {". pause", "-"},       {"- stop, please", "-"},
        {"because it is late", "-"},
    };

    (void)state;
    expect_all(all, sizeof all / sizeof all[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_to_skip_are_numbers_ranges_and_words),
        cmocka_unit_test(where_to_skip_to_is_one_step),
        cmocka_unit_test(the_plan_is_stopped_paused_and_resumed),
        cmocka_unit_test(yes_and_no_in_their_many_forms),
        cmocka_unit_test(questions_and_prefixes),
        cmocka_unit_test(goals_that_contain_the_words_stay_goals),
        cmocka_unit_test(what_contradicts_itself_or_asks_decides_nothing),
        cmocka_unit_test(any_bytes_are_read_safely),
        cmocka_unit_test(each_letter_and_digit_goes_on_with_a_word),
        cmocka_unit_test(what_begins_with_a_comma_is_what_follows_it_or_a_goal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The table of verbs and how a command line is read. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/usage/usage.h"
#include "tests/support/cmocka.h"

enum { WORDS_MAX = 32, LINE_MAX_BYTES = 512 };

/* The words of a command line as a shell splits it, in `text`: after its last pipe, up to '>'. */
static int split(char *text, char *words[WORDS_MAX + 1])
{
    char *pipe = strrchr(text, '|');
    char *from = pipe != NULL ? pipe + 1 : text;
    int n = 0;

    for (;;) {
        char quote = 0;
        char *to;
        from += strspn(from, " ");
        if (*from == 0 || *from == '>') {
            break;
        }
        assert_true(n < WORDS_MAX);
        words[n++] = from;
        for (to = from; *from != 0 && (quote != 0 || *from != ' '); from++) {
            if (*from == quote || (quote == 0 && (*from == '\'' || *from == '"'))) {
                quote = quote == 0 ? *from : 0;
            } else {
                *to++ = *from;
            }
        }
        assert_int_equal(quote, 0);
        from += *from != 0;
        *to = 0;
    }
    words[n] = NULL;
    return n;
}

static bool reads(const char *line, struct cli *cli)
{
    static char text[LINE_MAX_BYTES];
    static char *words[WORDS_MAX + 1];

    (void)snprintf(text, sizeof text, "%s", line);
    *cli = (struct cli){0};
    return usage_read(cli, split(text, words), words);
}

static void each_example_is_a_command_line_of_its_verb(void **state)
{
    (void)state;
    for (const struct cli_verb *v = NULL; (v = usage_next(v)) != NULL;) {
        assert_non_null(v->examples[0].command);
        for (int i = 0; i < CLI_EXAMPLES_MAX && v->examples[i].command != NULL; i++) {
            struct cli cli;
            if (!reads(v->examples[i].command, &cli) || cli.verb != v ||
                !usage_check_arguments(&cli)) {
                fail_msg("%s: example is not accepted: %s", v->name, v->examples[i].command);
            }
            assert_non_null(v->examples[i].what);
        }
    }
}

static int rows(const struct cli_option *o, const char *option)
{
    int n = 0;

    for (; o != NULL && o->name != NULL; o++) {
        n += option == NULL || strcmp(o->name, option) == 0;
    }
    return n;
}

static int with_letter(const struct cli_option *o, char letter)
{
    int n = 0;

    for (; o != NULL && o->name != NULL; o++) {
        n += usage_letter_of(o->name) == letter;
    }
    return n;
}

static void no_verb_has_one_letter_twice_and_each_letter_has_a_user(void **state)
{
    (void)state;
    for (const struct usage_letter *l = usage_letters; l->option != NULL; l++) {
        int users = rows(cli_global_options, l->option);
        for (const struct cli_verb *v = NULL; (v = usage_next(v)) != NULL;) {
            if (with_letter(v->options, l->letter) + with_letter(cli_global_options, l->letter) >
                1) {
                fail_msg("%s: two options have the letter -%c", v->name, l->letter);
            }
            users += rows(v->options, l->option);
        }
        if (users == 0) {
            fail_msg("no verb has the option --%s of -%c", l->option, l->letter);
        }
    }
}

static void the_table_fits_what_reads_it(void **state)
{
    (void)state;
    assert_true(rows(cli_global_options, NULL) <= CLI_GLOBALS_MAX);
    for (const struct cli_verb *v = NULL; (v = usage_next(v)) != NULL;) {
        assert_true(rows(v->options, NULL) <= CLI_OPTIONS_MAX);
        assert_ptr_equal(usage_find(v->name), v);
        assert_true(v->args_max == 0 ? v->args == NULL : v->args != NULL);
        for (const struct cli_option *o = v->options; o != NULL && o->name != NULL; o++) {
            if (rows(v->options, o->name) + rows(cli_global_options, o->name) != 1) {
                fail_msg("%s: --%s stands twice", v->name, o->name);
            }
        }
    }
}

static void global_options_stand_before_the_verb_or_after_it(void **state)
{
    struct cli cli;

    (void)state;
    assert_true(reads("baton --state D --json status", &cli));
    assert_string_equal(cli.verb->name, "status");
    assert_string_equal(cli_value(&cli, "state"), "D");
    assert_true(cli_flag(&cli, "json"));
    assert_true(reads("baton -q run 'a goal' --state=E --detach", &cli));
    assert_string_equal(cli_value(&cli, "state"), "E");
    assert_true(cli_flag(&cli, "quiet") && cli_flag(&cli, "detach"));
    assert_int_equal(cli.argc, 1);
    assert_string_equal(cli.argv[0], "a goal");
    assert_true(reads("baton --state D status --state E", &cli));
    assert_string_equal(cli_value(&cli, "state"), "E");
    assert_true(reads("baton --json", &cli));
    assert_null(cli.verb);
}

static void a_letter_means_the_long_option_of_its_verb(void **state)
{
    struct cli cli;

    (void)state;
    assert_true(reads("baton events -fn5 last", &cli));
    assert_true(cli_flag(&cli, "follow"));
    assert_string_equal(cli_value(&cli, "limit"), "5");
    assert_true(reads("baton run -qf plan.yaml", &cli));
    assert_string_equal(cli_value(&cli, "plan"), "plan.yaml");
    assert_true(reads("baton status -h", &cli));
    assert_true(cli_flag(&cli, "help"));
    assert_true(reads("baton status -- -n", &cli));
    assert_string_equal(cli.argv[0], "-n");
}

static void hints_for_verbs_of_other_tools_name_verbs_that_exist(void **state)
{
    (void)state;
    for (const struct usage_foreign *f = usage_foreign; f->word != NULL; f++) {
        const char *at = f->hint;
        int n = 0;
        while ((at = strstr(at, "baton ")) != NULL) {
            char name[32];
            at += strlen("baton ");
            (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " ;,"), at);
            if (usage_find(name) == NULL) {
                fail_msg("%s: there is no verb %s", f->word, name);
            }
            n++;
        }
        assert_true(n > 0);
        assert_null(usage_find(f->word));
    }
}

static void options_of_other_tools_are_hinted_at_for_their_verb_alone(void **state)
{
    (void)state;
    assert_non_null(strstr(usage_foreign_option("status", "-f"), "--watch"));
    assert_non_null(strstr(usage_foreign_option("run", "-d"), "--detach"));
    assert_null(usage_foreign_option("run", "follow"));
    assert_null(usage_foreign_option("status", "-d"));
    assert_null(usage_foreign_option(NULL, "-d"));
    assert_non_null(strstr(usage_foreign_option("run", "format"), "-o json"));
    assert_non_null(strstr(usage_foreign_option(NULL, "format"), "-o json"));
    assert_null(usage_foreign_option("run", "nothing"));
}

static void add_word(struct str word, void *self)
{
    struct buf *words = self;

    buf_printf(words, "%.*s,", STR_ARG(word));
}

static void expect_words(const char *args, int i, int argc, const char *first, const char *expected)
{
    const struct cli_verb v = {.name = "x", .args = args};
    char copy[32];
    char *argv[] = {copy, copy, copy};
    struct buf words;

    (void)snprintf(copy, sizeof copy, "%s", first);
    buf_init(&words, 1000);
    usage_words_at(&v, i, argc, argv, add_word, &words);
    assert_string_equal(buf_cstr(&words), expected);
    buf_done(&words);
}

static void words_of_a_row_say_what_an_argument_is(void **state)
{
    (void)state;
    expect_words("[PLAN_ID...]", 0, 1, "", "PLAN_ID,");
    expect_words("[PLAN_ID...]", 2, 3, "", "PLAN_ID,");
    expect_words("PLAN_ID [STEP_ID] | PLAN_ID...", 1, 2, "", "STEP_ID,PLAN_ID,");
    expect_words("PLAN_ID [STEP_ID] | PLAN_ID...", 1, 3, "", "PLAN_ID,");
    expect_words("[AGENT_ID] | drain|enable AGENT_ID", 0, 1, "", "AGENT_ID,drain|enable,");
    expect_words("[AGENT_ID] | drain|enable AGENT_ID", 1, 2, "drain", "AGENT_ID,");
    expect_words("[AGENT_ID] | drain|enable AGENT_ID", 1, 2, "calc", "");
    expect_words("REVIEW_ID | PLAN_ID [STEP_ID]", 0, 1, "", "REVIEW_ID,PLAN_ID,");
    expect_words("PLAN_ID STEP... | PLAN_ID --to STEP", 1, 2, "", "STEP,");
    expect_words("[DIR|FILE]... | check FILE", 0, 1, "", "DIR|FILE,check,");
    expect_words(NULL, 0, 1, "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_example_is_a_command_line_of_its_verb),
        cmocka_unit_test(no_verb_has_one_letter_twice_and_each_letter_has_a_user),
        cmocka_unit_test(the_table_fits_what_reads_it),
        cmocka_unit_test(global_options_stand_before_the_verb_or_after_it),
        cmocka_unit_test(words_of_a_row_say_what_an_argument_is),
        cmocka_unit_test(options_of_other_tools_are_hinted_at_for_their_verb_alone),
        cmocka_unit_test(hints_for_verbs_of_other_tools_name_verbs_that_exist),
        cmocka_unit_test(a_letter_means_the_long_option_of_its_verb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

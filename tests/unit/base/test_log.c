/* What the default sink writes to stderr. */
#include <string.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "tests/support/cmocka.h"

struct captured {
    int stderr_was;
    int from;
    char text[2048];
};

static int capture(void **state)
{
    static struct captured c;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    c = (struct captured){.stderr_was = dup(STDERR_FILENO), .from = ends[0]};
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    (void)close(ends[1]);
    log_setup(LOG_INFO, NULL, NULL);
    *state = &c;
    return 0;
}

static int release(void **state)
{
    struct captured *c = *state;

    log_use_journal_prefix(false);
    (void)close(c->from);
    return 0;
}

/* Restores stderr, which cmocka needs, and returns what was written to it. */
static const char *written(struct captured *c)
{
    ssize_t n;

    (void)dup2(c->stderr_was, STDERR_FILENO);
    (void)close(c->stderr_was);
    n = read(c->from, c->text, sizeof c->text - 1);
    c->text[n > 0 ? n : 0] = 0;
    return c->text;
}

static void line_has_time_level_event_and_text(void **state)
{
    const char *line;

    log_warn("step.lost", "plan=%s step=%d", "p", 3);
    line = written(*state);
    assert_int_equal(strspn(line, "0123456789-T:.Z"), strlen("2026-01-01T00:00:00.000Z"));
    assert_string_equal(line + strlen("2026-01-01T00:00:00.000Z"),
                        " warn step.lost plan=p step=3\n");
}

static void journal_prefix_is_the_priority_and_no_time(void **state)
{
    log_use_journal_prefix(true);
    log_err("a", "1");
    log_warn("b", "2");
    log_info("c", "3");
    log_debug("d", "below the threshold");
    assert_string_equal(written(*state), "<3>a 1\n<4>b 2\n<6>c 3\n");
}

static void control_characters_cannot_fake_a_line(void **state)
{
    log_use_journal_prefix(true);
    log_info("peer", "said=%s", "x\n<0>forged\x1b[2J\x7f\xC2\x85 é");
    assert_string_equal(written(*state), "<6>peer said=x?<0>forged?[2J??? é\n");
}

static void long_line_is_cut_and_still_ends(void **state)
{
    char text[3000];
    const char *line;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    log_info("long", "%s", text);
    line = written(*state);
    assert_true(strlen(line) < 1400);
    assert_int_equal(line[strlen(line) - 1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(line_has_time_level_event_and_text, capture, release),
        cmocka_unit_test_setup_teardown(journal_prefix_is_the_priority_and_no_time, capture,
                                        release),
        cmocka_unit_test_setup_teardown(control_characters_cannot_fake_a_line, capture, release),
        cmocka_unit_test_setup_teardown(long_line_is_cut_and_still_ends, capture, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The pages of the manual, made of a table of verbs that is here: man_told.txt has their text.
 * BATON_WRITE=1 writes it anew: read the difference against mdoc(7).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/usage/usage.h"
#include "tests/support/golden.h"
#include "tests/support/tree.h"

int man_main(int argc, char **argv); /* that of man.c, see CMakeLists.txt */

/* ---- the table ---- */

#define WORDS "four word word word "
#define LONG WORDS WORDS WORDS

static const struct cli_option options[] = {
    {"wait", NULL, "first wait"},
    {"quiet-one", "NAME=VALUE...", "a value with a \\ in it. A second sentence. A third"},
    {"long", "a|b .", LONG LONG "end"},
    {NULL, NULL, NULL}};
static const struct cli_verb first[] = {
    {.name = "go-up",
     .args = "[PLAN_ID...] | FILE: a, b; (c) d! e?",
     .brief = "go .up (and down)",
     .text =
         "A paragraph. With two sentences.\n  shown as it stands\n.  also a line\n\n'quoted' is "
         "no request\n  .not one\n  last",
     .options = options,
     .examples = {{"baton go-up . 'x \\ y'", "goes up"}, {"baton go-up", "Goes again"}},
     .exits = {3}},
    {.name = "Zed9az", .brief = "Zed", .examples = {{"baton Zed9az", "zed"}}},
    {.name = NULL}};
static const struct cli_verb second[] = {
    {.name = "an-extremely-long-name-of-a-verb-that-is-longer-than-its-title-can-be-in-a-page",
     .brief = "long",
     .text =
         "x" LONG "\n" /* 61 bytes */
         "1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 12345678901\n"
         "1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 1 23\n"
         "12345678901234567890123456789012345678901234567890123456789012345678901234567890 end\n"
         "1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 1234567890\n" /* 76
                                                                                             bytes
                                                                                           */
         "1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 x\n"
         "1234567890 1234567890 1234567890 1234567890 1234567890 1234567890 12345678901 x\n"
         "a.b c. d e.",
     .examples = {{"baton x", "x"}, {"baton y", "y"}, {"baton z", "z"}}},
    {.name = NULL}};
const struct usage_group usage_groups[] = {
    {"First: things", first}, {"Second", second}, {NULL, NULL}};
const struct usage_exit usage_exits[] = {
    {CLI_OK, "done"}, {CLI_FAILED, ".the plan failed"}, {CLI_TIMEOUT, "not in time"}, {0, NULL}};
const struct cli_option cli_global_options[] = {{"state", "DIR", "state directory"},
                                                {NULL, NULL, NULL}};

char usage_letter_of(const char *option)
{
    return (char)(strcmp(option, "wait") == 0 ? 'w' : 0);
}

const struct cli_verb *usage_next(const struct cli_verb *v)
{
    return v == NULL ? &first[0] : v == &first[0] ? &first[1] : v == &first[1] ? &second[0] : NULL;
}

bool usage_has_exit(const struct cli_verb *v, enum cli_exit code)
{
    return code == CLI_OK || (v == &first[0] && code == CLI_FAILED);
}

/* ---- the pages ---- */

static char dir[32];

static void add_page(const char *name, struct buf *out)
{
    char path[256];
    char *text;

    (void)snprintf(path, sizeof path, "%s/%s.1", dir, name);
    text = golden_read(path);
    buf_printf(out, "==== %s.1\n%s", name, text);
    free(text);
}

static int make_pages(const char *to)
{
    char *argv[] = {(char *)(uintptr_t) "baton_man", (char *)(uintptr_t)to,
                    (char *)(uintptr_t) "January 2, 2026", NULL};

    return man_main(to != NULL ? 3 : 2, argv);
}

static void the_pages_are_those_of_the_table(void **state)
{
    char *was = golden_read(MAN_TOLD);
    struct buf out;

    (void)state;
    buf_init(&out, GOLDEN_MAX);
    (void)snprintf(dir, sizeof dir, "/tmp/baton-man-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(make_pages(dir), 0);
    add_page("baton", &out);
    for (const struct cli_verb *v = usage_next(NULL); v != NULL; v = usage_next(v)) {
        char name[128];
        (void)snprintf(name, sizeof name, "baton-%s", v->name);
        add_page(name, &out);
    }
    assert_int_equal(tree_drop(dir), 0);
    golden_keep(MAN_TOLD, was, buf_cstr(&out));
    buf_done(&out);
    free(was);
}

/* What it writes to stderr, with the directory as DIR; in a child. */
static int told(const char *to, char *ret, size_t cap)
{
    int fds[2];
    int status;
    ssize_t n;
    char *at;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        _exit(make_pages(to));
    }
    (void)close(fds[1]);
    n = read(fds[0], ret, cap - 1);
    ret[n > 0 ? n : 0] = 0;
    (void)close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    at = to != NULL ? strstr(ret, to) : NULL;
    if (at != NULL) {
        memmove(at + 3, at + strlen(to), strlen(at + strlen(to)) + 1);
        memcpy(at, "DIR", 3);
    }
    return WEXITSTATUS(status);
}

static void a_page_that_cannot_be_written_ends_it_with_1(void **state)
{
    static const char *const pages[] = {"baton", "baton-go-up"};
    char text[512];
    char path[256];

    (void)state;
    assert_int_equal(told(NULL, text, sizeof text), 2);
    assert_string_equal(text, "usage: baton_man DIR DATE\n");
    assert_int_equal(told("/tmp/no/such/directory", text, sizeof text), 1);
    assert_string_equal(text, "baton_man: DIR/baton.1: No such file or directory\n");
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(dir, sizeof dir, "/tmp/baton-man-XXXXXX");
        assert_non_null(mkdtemp(dir));
        (void)snprintf(path, sizeof path, "%s/%s.1", dir, pages[i]);
        assert_int_equal(symlink("/dev/full", path), 0);
        assert_int_equal(told(dir, text, sizeof text), 1);
        assert_string_equal(text, "baton_man: a page could not be written\n");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(told(dir, text, sizeof text), 1);
        (void)snprintf(path, sizeof path, "baton_man: DIR/%s.1: Is a directory\n", pages[i]);
        assert_string_equal(text, path);
        assert_int_equal(tree_drop(dir), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pages_are_those_of_the_table),
        cmocka_unit_test(a_page_that_cannot_be_written_ends_it_with_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Each call of the system fails in its turn, the modes of what is written, keys of templates, and
 * rows that do not fit. */
#include "tests/unit/agents/files_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t __real_read(int fd, void *at, size_t n);
ssize_t __wrap_read(int fd, void *at, size_t n);
ssize_t __real_pread(int fd, void *at, size_t n, off_t from);
ssize_t __wrap_pread(int fd, void *at, size_t n, off_t from);
ssize_t __real_write(int fd, const void *at, size_t n);
ssize_t __wrap_write(int fd, const void *at, size_t n);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __real_renameat(int from, const char *old, int to, const char *new);
int __wrap_renameat(int from, const char *old, int to, const char *new);

static unsigned calls, fail_at; /* 0 = none */

static bool fails(void)
{
    errno = EIO;
    return ++calls == fail_at;
}

ssize_t __wrap_read(int fd, void *at, size_t n)
{
    return fails() ? -1 : __real_read(fd, at, n);
}

ssize_t __wrap_pread(int fd, void *at, size_t n, off_t from)
{
    return fails() ? -1 : __real_pread(fd, at, n, from);
}

ssize_t __wrap_write(int fd, const void *at, size_t n)
{
    return fails() ? -1 : __real_write(fd, at, n);
}

int __wrap_fsync(int fd)
{
    return fails() ? -1 : __real_fsync(fd);
}

int __wrap_fchmod(int fd, mode_t mode)
{
    return fails() ? -1 : __real_fchmod(fd, mode);
}

int __wrap_renameat(int from, const char *old, int to, const char *new)
{
    return fails() ? -1 : __real_renameat(from, old, to, new);
}

static const char *failing(bt_skill_run skill, const char *parameters, unsigned n)
{
    const char *reply;

    calls = 0;
    fail_at = n;
    reply = tree_run(skill, parameters);
    fail_at = 0;
    return reply;
}

static void a_file_that_cannot_be_read_fails_the_step_and_says_why(void **state)
{
    static const struct {
        bt_skill_run skill;
        const char *parameters;
    } cases[] = {
        {files_read, "{\"path\":\"rows.csv\"}"},
        {files_count, "{\"path\":\"rows.csv\"}"},
        {files_grep, "{\"path\":\"rows.csv\",\"pattern\":\"2026\"}"},
        {files_csv, "{\"path\":\"rows.csv\"}"},
        {files_csv, "{\"path\":\"rows.csv\",\"pattern\":\"(?<day>\\\\S+),(?<n>\\\\d+)\"}"},
    };

    (void)state;
    tree_text("in/rows.csv", "day,n\n2026-11-30,1\n2026-12-01,22\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned n;
        steps_expect(failing(cases[i].skill, cases[i].parameters, 0), "\"completed\"");
        n = calls;
        assert_true(n >= 2); /* the text, and its end */
        for (unsigned k = 1; k <= n; k++) {
            tree_fails(failing(cases[i].skill, cases[i].parameters, k), "reading", strerror(EIO));
        }
    }
}

/* Who reads the file meanwhile sees the old text or the new one, and nothing is left beside it. */
static void a_write_that_fails_leaves_the_old_file_and_no_other(void **state)
{
    static const char *const says[] = {"writing", "fsync", "keeping the file's mode", "renaming",
                                       "fsync of the directory"};
    const char *json = "{\"path\":\"file\",\"text\":\"new\"}";

    (void)state;
    tree_text("out/file", "old");
    steps_expect(failing(files_write, json, 0), "\"completed\"");
    assert_int_equal(calls, sizeof says / sizeof says[0]);
    for (unsigned k = 1; k <= sizeof says / sizeof says[0]; k++) {
        char words[64];
        tree_text("out/file", "old");
        (void)snprintf(words, sizeof words, "'file': %s: ", says[k - 1]);
        tree_fails(failing(files_write, json, k), words, strerror(EIO));
        assert_string_equal(tree_get("out/file"), k <= 4 ? "old" : "new");
        assert_int_equal(tree_count("out"), 1);
    }
}

static mode_t mode_of(const char *name)
{
    char path[128];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/%s", tree, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void a_new_file_has_the_usual_mode_and_a_replaced_one_keeps_its_own(void **state)
{
    const mode_t mask = umask(027);
    char path[128];

    (void)state;
    steps_expect(tree_run(files_write, "{\"path\":\"fresh\",\"text\":\"1\"}"), "\"completed\"");
    assert_int_equal(mode_of("out/fresh"), 0640);
    (void)snprintf(path, sizeof path, "%s/out/fresh", tree);
    assert_int_equal(chmod(path, 06751), 0);
    steps_expect(tree_run(files_write, "{\"path\":\"fresh\",\"text\":\"2\"}"), "\"completed\"");
    assert_int_equal(mode_of("out/fresh"), 0751); /* and gives nobody's rights away */
    /* A link is replaced by a file of its own; what it led to stays. */
    tree_text("outside/led", "there");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("../outside/led", path), 0);
    steps_expect(tree_run(files_write, "{\"path\":\"fresh\",\"text\":\"3\"}"), "\"completed\"");
    assert_string_equal(tree_get("outside/led"), "there");
    assert_int_equal(mode_of("out/fresh"), 0640);
    assert_int_equal(unlink(path), 0);
    /* What is no file stays, too. */
    assert_int_equal(mkdir(path, 0755), 0);
    tree_fails(tree_run(files_write, "{\"path\":\"fresh\",\"text\":\"4\"}"), "VALIDATION_ERROR",
               "there is something by that name that is no file");
    assert_int_equal(rmdir(path), 0);
    (void)umask(mask);
}

/* ---- templates ---- */

static const char *rendered(const char *key, const char *name)
{
    static char json[2048];

    (void)snprintf(json, sizeof json,
                   "{\"template\":\"{{a}} {{%s}}\",\"data\":{\"a\":\"one\",\"%s\":\"two\"}}", key,
                   name);
    return tree_run(files_render, json);
}

static void a_key_has_1_to_255_bytes_and_blanks_around_it(void **state)
{
    char key[257];

    (void)state;
    steps_expect(rendered("b", "b"), "one two");
    steps_expect(rendered("  b ", "b"), "one two");
    steps_expect(rendered("b c", "b c"), "one two");
    tree_fails(rendered("", "b"), "VALIDATION_ERROR", "template: the data has no ''");
    tree_fails(rendered("  ", "b"), "VALIDATION_ERROR", "template: the data has no '  '");
    memset(key, 'k', sizeof key - 1);
    key[255] = 0;
    steps_expect(rendered(key, key), "one two");
    key[255] = 'k';
    key[256] = 0;
    tree_fails(rendered(key, key), "VALIDATION_ERROR", "template: the data has no 'kkkk");
}

static void a_list_of_the_data_has_places_from_0_on(void **state)
{
    static const struct {
        const char *key, *words;
    } cases[] = {
        {"l.0", "one"},  {"l.1.x", "two"},    {"l.2", NULL},          {"l.-1", NULL},
        {"l.0x", NULL},  {"l.1000000", NULL}, {"l.4294967296", NULL}, {"m.n.o", "three"},
        {"m.n.p", NULL}, {"m.n.o.q", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[256];
        const char *reply;
        (void)snprintf(json, sizeof json,
                       "{\"template\":\"<{{%s}}>\",\"data\":{\"l\":[\"one\",{\"x\":\"two\"}],"
                       "\"m\":{\"n\":{\"o\":\"three\"}}}}",
                       cases[i].key);
        reply = tree_run(files_render, json);
        if (cases[i].words != NULL) {
            char want[32];
            (void)snprintf(want, sizeof want, "<%s>", cases[i].words);
            steps_expect(reply, want);
        } else {
            tree_fails(reply, "VALIDATION_ERROR", "template: the data has no '");
            steps_expect(reply, cases[i].key);
        }
    }
}

/* ---- rows that are too large ---- */

static void rows_of_more_than_3_mib_are_refused_with_what_helps(void **state)
{
    enum { ROWS = 40, CELL = 100 * 1024 };
    static char text[ROWS * (CELL + 1) + 3];
    size_t at = 2;

    (void)state;
    memcpy(text, "a\n", 2);
    for (int i = 0; i < ROWS; i++) {
        memset(text + at, 'x', CELL);
        at += CELL;
        text[at++] = '\n';
    }
    tree_put("in/wide.csv", text, at);
    tree_fails(tree_run(files_csv, "{\"path\":\"wide.csv\"}"), "VALIDATION_ERROR",
               "result_too_large: a result holds 3 MiB and 190000 values, 30 of these rows");
    steps_expect(tree_run(files_csv, "{\"path\":\"wide.csv\",\"limit\":20}"), "\"completed\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_fails_leaves_the_old_file_and_no_other),
        cmocka_unit_test(a_new_file_has_the_usual_mode_and_a_replaced_one_keeps_its_own),
        cmocka_unit_test(a_file_that_cannot_be_read_fails_the_step_and_says_why),
        cmocka_unit_test(a_key_has_1_to_255_bytes_and_blanks_around_it),
        cmocka_unit_test(a_list_of_the_data_has_places_from_0_on),
        cmocka_unit_test(rows_of_more_than_3_mib_are_refused_with_what_helps),
    };

    return cmocka_run_group_tests(tests, tree_make, tree_remove);
}

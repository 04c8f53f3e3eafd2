/* Artifacts: what a handler writes is whole or nothing, and it opens only what its step was given.
 */
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/sdk/card.h"
#include "agents/sdk/step.h"
#include "protocol/artifact/artifact.h"

#define PLAN "00000000-0000-7000-8000-000000000000" /* of step_new_from_json */
#define OTHER "00000000-0000-7000-8000-00000000000A"
#define FILE_NAME "once@1.1@rows.csv"
#define HELLO_SUM "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

static char top[64];  /* of the test */
static char root[96]; /* of all plans */

static int make_root(void **state)
{
    (void)state;
    (void)snprintf(top, sizeof top, "/tmp/baton-artifact-XXXXXX");
    assert_non_null(mkdtemp(top));
    (void)snprintf(root, sizeof root, "%s/state %%/artifacts", top);
    *strrchr(root, '/') = 0;
    assert_int_equal(mkdir(root, 0700), 0);
    (void)snprintf(root, sizeof root, "%s/state %%/artifacts", top);
    assert_int_equal(mkdir(root, 0700), 0);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A step that may write into the plan's directory; `more` are members of its request. */
static struct bt_step *make(const char *more)
{
    struct bt_step *s = NULL;
    struct bt_error err;
    char json[4096];

    (void)snprintf(json, sizeof json, "{\"artifactDir\":\"%s/" PLAN "\"%s%s}", root,
                   more[0] != 0 ? "," : "", more);
    if (step_new_from_json(str_from(json), "probe", &s, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return s;
}

static const char *path_of(const char *plan, const char *file)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s/%s", root, plan, file);
    return path;
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static uint32_t files_in(const char *plan)
{
    DIR *list = opendir(path_of(plan, ""));
    const struct dirent *entry;
    uint32_t n = 0;

    assert_non_null(list);
    while ((entry = readdir(list)) != NULL) {
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    assert_int_equal(closedir(list), 0);
    return n;
}

static struct bt_artifact *begin(struct bt_step *s, const char *name)
{
    struct bt_artifact *a = NULL;
    struct bt_error err;

    if (bt_artifact_create(s, name, "text/csv", &a, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return a;
}

/* A committed file with the content "hello"; its uri. */
static const char *write_hello(struct bt_step *s)
{
    static char uri[512];
    struct bt_artifact *a = begin(s, "rows.csv");
    struct bt_error err;

    assert_int_equal(bt_artifact_write(a, "hel", 3, &err), BT_OK);
    assert_int_equal(bt_artifact_write(a, "lo", 2, &err), BT_OK);
    assert_int_equal(bt_artifact_commit(a, &err), BT_OK);
    (void)snprintf(uri, sizeof uri, "%.*s", STR_ARG(s->reply.artifacts[0].uri));
    return uri;
}

/* A step that was given "hello" under this uri. */
static struct bt_step *given(const char *uri, unsigned bytes, const char *sum)
{
    char more[1024];

    (void)snprintf(
        more, sizeof more,
        "\"artifacts\":[{\"name\":\"rows.csv\",\"mediaType\":\"text/csv\",\"uri\":\"%s\","
        "\"bytes\":%u,\"sha256\":\"%s\"}]",
        uri, bytes, sum);
    return make(more);
}

static void expect_refused(struct bt_step *s, const char *uri, enum bt_code code, const char *part)
{
    struct bt_error err = {.msg = ""};
    int fd = -1;

    if (bt_artifact_open(s, uri, &fd, NULL, &err) != code || strstr(err.msg, part) == NULL) {
        fail_msg("expected %s with '%s', got %s: %s", bt_code_name(code), part,
                 bt_code_name(err.code), err.msg);
    }
    assert_int_equal(fd, -1);
}

/* ---- writing ---- */

static void a_committed_file_is_in_the_reply_with_length_and_checksum(void **state)
{
    struct bt_step *s = make("");
    const char *uri = write_hello(s);
    const struct msg_artifact *a = &s->reply.artifacts[0];
    struct stat st;
    char expected[512];

    (void)state;
    (void)snprintf(expected, sizeof expected,
                   "file://%s/state%%20%%25/artifacts/" PLAN "/" FILE_NAME, top);
    assert_string_equal(uri, expected);
    assert_int_equal(s->reply.outcome, REPLY_COMPLETED);
    assert_int_equal(s->reply.artifacts_n, 1);
    assert_int_equal(a->bytes, 5);
    assert_true(str_is(a->name, "rows.csv"));
    assert_true(str_is(a->sha256, HELLO_SUM));
    assert_int_equal(stat(path_of(PLAN, FILE_NAME), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(path_of(PLAN, ""), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    step_free(s);
}

static void before_its_commit_a_file_has_no_name_that_a_uri_can_have(void **state)
{
    struct bt_step *s = make("");
    struct bt_artifact *a = begin(s, "rows.csv");
    struct bt_error err;

    (void)state;
    assert_int_equal(bt_artifact_write(a, "half", 4, &err), BT_OK);
    assert_false(exists(path_of(PLAN, FILE_NAME)));
    assert_int_equal(files_in(PLAN), 1);
    bt_artifact_abort(a);
    assert_int_equal(files_in(PLAN), 0);
    step_free(s);
}

static void write_and_forget(struct bt_step *s, void *self)
{
    struct bt_artifact *a = begin(s, "left.csv");
    struct bt_error err;

    (void)self;
    (void)!bt_artifact_write(a, "half", 4, &err);
    bt_step_reply_text(s, "done");
}

static void what_a_handler_leaves_open_is_removed_when_it_returns(void **state)
{
    struct card_skill skill = {.skill = {.id = "probe", .run = write_and_forget}};
    struct bt_step *s = make("");

    (void)state;
    s->card_skill = &skill;
    step_run(s);
    assert_int_equal(s->reply.outcome, REPLY_COMPLETED);
    assert_int_equal(s->reply.artifacts_n, 0);
    assert_int_equal(files_in(PLAN), 0);
    step_free(s);
}

static void a_failed_write_leaves_nothing_and_says_why(void **state)
{
    static char block[128 * 1024];
    struct bt_step *s = make("");
    struct bt_artifact *a = begin(s, "rows.csv");
    struct rlimit old;
    struct rlimit small;
    struct bt_error err;

    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 100 * 1024, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(bt_artifact_write(a, block, sizeof block, &err), BT_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_non_null(strstr(err.msg, "'rows.csv'"));
    assert_non_null(strstr(err.msg, "File too large"));
    bt_artifact_abort(a);
    assert_int_equal(files_in(PLAN), 0);
    step_free(s);
}

static void a_later_attempt_does_not_touch_the_file_of_an_earlier_one(void **state)
{
    struct bt_step *s = make("");

    (void)state;
    (void)write_hello(s);
    step_free(s);
    s = make("");
    s->req.attempt = 2;
    (void)write_hello(s);
    assert_true(exists(path_of(PLAN, FILE_NAME)));
    assert_true(exists(path_of(PLAN, "once@1.2@rows.csv")));
    step_free(s);
}

static void names_are_checked(void **state)
{
    static const char *const bad[] = {"", ".hidden", "..", "a/b", "a b", "a@b", "\xc3\xa4"};
    struct bt_step *s = make("");
    struct bt_artifact *a = NULL;
    char name[ARTIFACT_NAME_MAX + 2];
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(bt_artifact_create(s, bad[i], NULL, &a, &err), BT_INVALID);
    }
    memset(name, 'x', sizeof name);
    name[ARTIFACT_NAME_MAX + 1] = 0;
    assert_int_equal(bt_artifact_create(s, name, NULL, &a, &err), BT_INVALID);
    name[ARTIFACT_NAME_MAX] = 0;
    bt_artifact_abort(begin(s, name));
    (void)write_hello(s);
    assert_int_equal(bt_artifact_create(s, "rows.csv", NULL, &a, &err), BT_CONFLICT);
    step_free(s);
}

static void no_file_is_written_for_a_question_or_without_a_directory(void **state)
{
    struct bt_artifact *a = NULL;
    struct bt_step *s = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(step_new_from_json(STR_LIT("{}"), "probe", &s, &err), BT_OK);
    assert_int_equal(bt_artifact_create(s, "x", NULL, &a, &err), BT_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "artifactDir"));
    step_free(s);
    s = make("");
    s->purpose = "verify";
    assert_int_equal(bt_artifact_create(s, "x", NULL, &a, &err), BT_INVALID);
    step_free(s);
}

static void an_ended_plan_takes_no_file(void **state)
{
    struct bt_step *s = make("");
    struct bt_artifact *a = begin(s, "rows.csv");
    struct bt_error err;

    (void)state;
    put_file(path_of(PLAN, ARTIFACT_ENDED), "");
    assert_int_equal(bt_artifact_commit(a, &err), BT_GONE);
    assert_int_equal(files_in(PLAN), 1);
    assert_int_equal(bt_artifact_create(s, "x", NULL, &a, &err), BT_GONE);
    step_free(s);
}

static void a_cancelled_attempt_commits_nothing(void **state)
{
    struct bt_step *s = make("");
    struct bt_artifact *a = begin(s, "rows.csv");
    struct bt_error err;

    (void)state;
    atomic_store(&s->cancelled, true);
    assert_int_equal(bt_artifact_commit(a, &err), BT_CANCELLED);
    assert_int_equal(files_in(PLAN), 0);
    step_free(s);
}

/* A descriptor with the text, at its end. */
static int memory_of(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return fd;
}

static void a_descriptor_becomes_a_file_of_the_result(void **state)
{
    struct bt_step *s = make("");
    const int fd = memory_of("hello");
    struct bt_error err;
    int ends[2];

    (void)state;
    assert_int_equal(bt_artifact_add_fd(s, "rows.csv", "text/csv", fd, &err), BT_OK);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 5); /* it is the caller's, with its position */
    assert_int_equal(close(fd), 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(bt_artifact_add_fd(s, "piped.csv", NULL, ends[0], &err), BT_OK);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(s->reply.artifacts_n, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(s->reply.artifacts[i].bytes, 5);
        assert_true(str_is(s->reply.artifacts[i].sha256, HELLO_SUM));
    }
    assert_int_equal(files_in(PLAN), 2);
    step_free(s);
}

static void a_descriptor_that_cannot_be_read_leaves_nothing(void **state)
{
    struct bt_step *s = make("");
    const int fd = memory_of("hello");
    struct bt_error err;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(bt_artifact_add_fd(s, "a", NULL, ends[1], &err), BT_IO); /* its writing end */
    assert_non_null(strstr(err.msg, "'a'"));
    atomic_store(&s->cancelled, true);
    assert_int_equal(bt_artifact_add_fd(s, "b", NULL, fd, &err), BT_CANCELLED);
    assert_int_equal(s->reply.artifacts_n, 0);
    assert_int_equal(files_in(PLAN), 0);
    assert_null(s->artifacts);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(fd);
    step_free(s);
}

static void the_directory_of_the_plan_is_no_link(void **state)
{
    struct bt_step *s = make("");
    struct bt_artifact *a = NULL;
    struct bt_error err;
    char link_path[256];

    (void)state;
    (void)snprintf(link_path, sizeof link_path, "%s/" PLAN, root);
    assert_int_equal(symlink(top, link_path), 0);
    assert_int_equal(bt_artifact_create(s, "x", NULL, &a, &err), BT_UNAUTHORIZED);
    step_free(s);
}

/* ---- reading ---- */

static void a_given_file_is_opened_whole(void **state)
{
    struct bt_step *writer = make("");
    const char *uri = write_hello(writer);
    struct bt_step *s = given(uri, 5, HELLO_SUM);
    struct bt_error err;
    uint64_t bytes = 0;
    char text[8] = "";
    int fd = -1;

    (void)state;
    assert_int_equal(bt_artifact_open(s, uri, &fd, &bytes, &err), BT_OK);
    assert_int_equal(bytes, 5);
    assert_int_equal(read(fd, text, sizeof text), 5);
    assert_string_equal(text, "hello");
    assert_string_equal(bt_artifact_media_type(s, uri), "text/csv");
    (void)close(fd);
    step_free(s);
    step_free(writer);
}

static void a_file_that_was_not_given_is_not_opened(void **state)
{
    struct bt_step *writer = make("");
    const char *uri = write_hello(writer);
    struct bt_step *s = make("");

    (void)state;
    expect_refused(s, uri, BT_UNAUTHORIZED, "{{results.STEP.artifact}}");
    expect_refused(s, "file:///etc/passwd", BT_UNAUTHORIZED, "was given no such artifact");
    step_free(s);
    step_free(writer);
}

static void a_changed_or_missing_file_is_refused(void **state)
{
    struct bt_step *writer = make("");
    const char *uri = write_hello(writer);
    struct bt_step *s = given(uri, 5, HELLO_SUM);
    struct bt_step *longer = given(uri, 6, HELLO_SUM);

    (void)state;
    expect_refused(longer, uri, BT_INVALID, "has 5 bytes, its result says 6");
    put_file(path_of(PLAN, FILE_NAME), "hullo");
    expect_refused(s, uri, BT_INVALID, "SHA-256");
    assert_int_equal(unlink(path_of(PLAN, FILE_NAME)), 0);
    expect_refused(s, uri, BT_GONE, "artifacts.keepMs");
    assert_int_equal(symlink("/etc/hostname", path_of(PLAN, FILE_NAME)), 0);
    expect_refused(s, uri, BT_UNAUTHORIZED, "link");
    assert_int_equal(unlink(path_of(PLAN, FILE_NAME)), 0);
    assert_int_equal(mkfifo(path_of(PLAN, FILE_NAME), 0600), 0);
    expect_refused(s, uri, BT_UNAUTHORIZED, "is no file");
    step_free(longer);
    step_free(s);
    step_free(writer);
}

/* The supervisor passes on what an agent said: it may be hostile. */
static void nothing_outside_of_a_plans_directory_is_opened(void **state)
{
    static const char *const tails[] = {
        "/../../secret",
        "/" PLAN "/../" PLAN "/" FILE_NAME,
        "/" PLAN "/..",
        "/" PLAN "/%2e%2e%2f%2e%2e%2fsecret",
        "/" PLAN "/sub/" FILE_NAME,
        "/" PLAN "/",
        "/" PLAN,
        "/" PLAN "/.hidden",
        "//" FILE_NAME,
        "/x/" FILE_NAME,
        "/" PLAN "/" FILE_NAME "%00",
        "/" PLAN "/%zz",
    };
    struct bt_step *writer = make("");
    char uri[512];

    (void)state;
    (void)write_hello(writer);
    put_file(path_of("..", "secret"), "hello");
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        (void)snprintf(uri, sizeof uri, "file://%s/state%%20%%25/artifacts%s", top, tails[i]);
        struct bt_step *s = given(uri, 5, HELLO_SUM);
        expect_refused(s, uri, BT_UNAUTHORIZED, "no artifact of a plan");
        step_free(s);
    }
    static const char *const whole[] = {"file:///etc/passwd", "/etc/passwd", "http://h/x",
                                        "file://host/etc/passwd", ""};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        struct bt_step *s = given(whole[i], 5, HELLO_SUM);
        expect_refused(s, whole[i], BT_UNAUTHORIZED, "no artifact of a plan");
        step_free(s);
    }
    step_free(writer);
}

/* A retried plan reads the files of the plan that it was made of. */
static void a_file_of_another_plan_is_opened_when_it_was_given(void **state)
{
    struct bt_step *s;
    struct bt_error err;
    char uri[512];
    int fd = -1;

    (void)state;
    (void)snprintf(uri, sizeof uri, "%s/" OTHER, root);
    assert_int_equal(mkdir(uri, 0700), 0);
    put_file(path_of(OTHER, FILE_NAME), "hello");
    (void)snprintf(uri, sizeof uri, "file://%s/state%%20%%25/artifacts/" OTHER "/" FILE_NAME, top);
    s = given(uri, 5, HELLO_SUM);
    assert_int_equal(bt_artifact_open(s, uri, &fd, NULL, &err), BT_OK);
    (void)close(fd);
    step_free(s);
    s = make("");
    expect_refused(s, uri, BT_UNAUTHORIZED, "was given no such artifact");
    step_free(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_committed_file_is_in_the_reply_with_length_and_checksum),
        TEST(before_its_commit_a_file_has_no_name_that_a_uri_can_have),
        TEST(what_a_handler_leaves_open_is_removed_when_it_returns),
        TEST(a_failed_write_leaves_nothing_and_says_why),
        TEST(a_later_attempt_does_not_touch_the_file_of_an_earlier_one),
        TEST(names_are_checked),
        TEST(no_file_is_written_for_a_question_or_without_a_directory),
        TEST(an_ended_plan_takes_no_file),
        TEST(a_cancelled_attempt_commits_nothing),
        TEST(a_descriptor_becomes_a_file_of_the_result),
        TEST(a_descriptor_that_cannot_be_read_leaves_nothing),
        TEST(the_directory_of_the_plan_is_no_link),
        TEST(a_given_file_is_opened_whole),
        TEST(a_file_that_was_not_given_is_not_opened),
        TEST(a_changed_or_missing_file_is_refused),
        TEST(nothing_outside_of_a_plans_directory_is_opened),
        TEST(a_file_of_another_plan_is_opened_when_it_was_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

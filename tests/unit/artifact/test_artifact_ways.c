/* What stands in the way of a file: links, directories, other users, an ended plan; and checks that
 * take several calls. */
#include "tests/unit/artifact/calls_world.h"

/* ---- what is in the way ---- */

static const char *path_of(const char *name)
{
    static char path[400];

    (void)__real_mkdir(dir, 0700);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put_directory(const char *name)
{
    assert_int_equal(__real_mkdir(path_of(name), 0700), 0);
}

static void put_fifo(const char *name)
{
    assert_int_equal(mkfifo(path_of(name), 0600), 0);
}

static void put_link(const char *name)
{
    assert_int_equal(symlink("/etc/passwd", path_of(name)), 0);
}

static void put_second_name(const char *name)
{
    char other[400];

    put_file("other", 3);
    (void)snprintf(other, sizeof other, "%s", path_of("other"));
    assert_int_equal(link(other, path_of(name)), 0);
}

static void put_of_nobody(const char *name)
{
    (void)name;
}

static void what_is_no_file_is_told(void **state)
{
    static const struct {
        const char *name;
        void (*put)(const char *name);
        const char *said; /* by stat, open, read_at, and by one that arrives */
    } ways[] = {
        {"nothing", put_of_nobody,
         "GONE artifact 'f' is not there any more: the artifacts of an ended plan are removed "
         "after artifacts.keepMs, or when they exceed artifacts.maxBytes\n"
         "GONE artifact 'f' is not there any more: the artifacts of an ended plan are removed "
         "after artifacts.keepMs, or when they exceed artifacts.maxBytes\n"
         "GONE artifact 'f' is not there any more: the artifacts of an ended plan are removed "
         "after artifacts.keepMs, or when they exceed artifacts.maxBytes\n"
         "OK "},
        {"a directory", put_directory,
         "INVALID artifact 'f': is no file\n"
         "UNAUTHORIZED artifact 'f': is no file\n"
         "UNAUTHORIZED artifact 'f': is no file\n"
         "IO making a file for the artifact: Is a directory"},
        {"a fifo", put_fifo,
         "INVALID artifact 'f': is no file\n"
         "UNAUTHORIZED artifact 'f': is no file\n"
         "UNAUTHORIZED artifact 'f': is no file\n"
         "UNAUTHORIZED the file of the artifact is another's"},
        {"a link", put_link,
         "INVALID artifact 'f': is no file\n"
         "UNAUTHORIZED artifact 'f': a link, or not readable\n"
         "UNAUTHORIZED artifact 'f': a link, or not readable\n"
         "IO making a file for the artifact: Too many levels of symbolic links"},
        {"a file with two names", put_second_name,
         "OK 3 bytes\n"
         "INVALID artifact 'f' has 3 bytes, its result says 262145: it was changed\n"
         "OK 0 of 3 bytes\n"
         "UNAUTHORIZED the file of the artifact is another's"},
    };
    char part[8 + ARTIFACT_SHA256_LEN];
    struct buf out;

    (void)state;
    part_name(part);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct artifact_part *p = NULL;
        struct bt_error err;
        enum bt_code code;
        buf_init(&out, 4000);
        ways[i].put("f");
        for (int j = 0; j < 3; j++) {
            err.msg[0] = 0;
            buf_clear(&said);
            code = (j == 0 ? looks : j == 1 ? opens : reads_at)(&err);
            buf_printf(&out, "%s %s\n", bt_code_name(code),
                       code == BT_OK ? buf_cstr(&said) : err.msg);
        }
        (void)remove(path_of("f"));
        (void)remove(path_of("other"));
        ways[i].put(part);
        err.msg[0] = 0;
        code = artifact_part_open(dir, "f", &p, &err);
        buf_printf(&out, "%s %s", bt_code_name(code), code == BT_OK ? "" : err.msg);
        artifact_part_close(p);
        assert_string_equal(buf_cstr(&out), ways[i].said);
        (void)remove(path_of(part));
        (void)remove(path_of("other"));
        assert_int_equal(rmdir(dir), 0);
        buf_done(&out);
    }
}

static void a_directory_that_others_may_use_takes_no_file(void **state)
{
    char expected[300];
    struct bt_error err;

    (void)state;
    (void)snprintf(expected, sizeof expected, "'%s' belongs to another user, or others may use it",
                   dir);
    for (unsigned bit = 1; bit < 0100; bit *= 2) {
        assert_true(__real_mkdir(dir, 0700) == 0 && chmod(dir, 0700 | bit) == 0);
        assert_int_equal(writes(&err), BT_UNAUTHORIZED);
        assert_string_equal(err.msg, expected);
        assert_int_equal(arrives(&err), BT_UNAUTHORIZED);
        assert_string_equal(err.msg, expected);
        assert_int_equal(rmdir(dir), 0);
    }
}

static void a_plan_that_has_ended_takes_no_file(void **state)
{
    static const char expected[] = "the plan has ended: it takes no artifacts any more";
    struct artifact_part *p = NULL;
    struct bt_error err;
    struct buf out;

    (void)state;
    put_file(ARTIFACT_ENDED, 0);
    assert_int_equal(writes(&err), BT_GONE);
    assert_string_equal(err.msg, expected);
    assert_int_equal(artifact_part_open(dir, "f", &p, &err), BT_GONE);
    assert_string_equal(err.msg, expected);
    buf_init(&out, 4000);
    tell_files(dir, &out);
    assert_string_equal(buf_cstr(&out), ", .ended 600 0");
    buf_done(&out);
}

/* ---- in pieces ---- */

static unsigned asked;

static bool stop(const void *self)
{
    return ++asked == *(const unsigned *)self;
}

static void a_check_that_is_stopped_reads_no_further(void **state)
{
    char sum[ARTIFACT_SHA256_LEN + 1];
    const struct artifact_claim claim = {4 * BLOCK + 1, {sum, ARTIFACT_SHA256_LEN}};
    struct bt_error err;
    struct buf out;

    (void)state;
    sum_of(data, 4 * BLOCK + 1, sum);
    for (int i = 0; i < 2; i++) {
        const unsigned stops = i == 0 ? 1 : 3; /* after so many blocks of two */
        int fd = -1;
        buf_init(&out, 4000);
        put_whole();
        asked = 0;
        calls_begin(top, 0, 0, 0);
        assert_int_equal(artifact_open(top, &place, &claim, stop, &stops, &fd, &err),
                         i == 0 ? BT_CANCELLED : BT_OK);
        (void)(fd >= 0 && close(fd));
        (void)calls_end();
        assert_true(i == 1 || strcmp(err.msg, "stopped while the artifact was checked") == 0);
        assert_int_equal(asked, i == 0 ? 1 : 2);
        assert_int_equal(fd >= 0, i);
        tell_files(dir, &out);
        buf_done(&out);
    }
}

/* What another process has received is hashed by calls that take bounded time. */
static void eight_mib_are_hashed_by_one_call(void **state)
{
    char name[8 + ARTIFACT_SHA256_LEN];
    char sum[ARTIFACT_SHA256_LEN + 1];
    const uint8_t zero = 0;
    struct bt_error err;
    struct buf out;

    (void)state;
    part_name(name);
    memset(data, 0, DATA);
    for (int more = 0; more < 2; more++) {
        struct artifact_digest *d = artifact_digest_new();
        struct artifact_part *p = NULL;
        bool is_done = true;
        artifact_digest_add(d, data, DATA);
        artifact_digest_add(d, data, DATA);
        artifact_digest_add(d, &zero, (size_t)more);
        artifact_digest_end(d, sum);
        artifact_digest_free(d);
        put_file(name, 0);
        assert_int_equal(truncate(path_of(name), 2 * DATA + more), 0);
        assert_int_equal(artifact_part_open(dir, "f", &p, &err), BT_OK);
        assert_int_equal(artifact_part_commit(p, str_from(sum), &is_done, &err), BT_OK);
        assert_int_equal(is_done, more == 0);
        if (more == 1) {
            assert_int_equal(artifact_part_commit(p, str_from(sum), &is_done, &err), BT_OK);
            assert_true(is_done);
        }
        artifact_part_close(p);
        buf_init(&out, 4000);
        tell_files(dir, &out);
        assert_string_equal(buf_cstr(&out), more == 0 ? ", f 600 8388608" : ", f 600 8388609");
        buf_done(&out);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_file_is_told),
        TEST(a_directory_that_others_may_use_takes_no_file),
        TEST(a_plan_that_has_ended_takes_no_file),
        TEST(a_check_that_is_stopped_reads_no_further),
        TEST(eight_mib_are_hashed_by_one_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

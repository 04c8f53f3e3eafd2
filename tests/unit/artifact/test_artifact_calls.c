/*
 * Every call of the system that writing and reading a file makes, in calls_told.txt: what it is
 * given, and what is said and what is left when it fails, with each error that it may have.
 * BATON_WRITE=1 writes it anew: read the difference.
 */
#include "tests/unit/artifact/calls_world.h"

static enum bt_code gives_up(struct bt_error *err)
{
    struct artifact_writer *w = NULL;
    enum bt_code code = artifact_create(dir, "f", &w, err);

    if (code == BT_OK) {
        code = write_three(w, err);
        artifact_abort(w);
    }
    return code;
}

static enum bt_code spools(struct bt_error *err)
{
    struct artifact_writer *w = NULL;
    char sum[ARTIFACT_SHA256_LEN + 1];
    uint64_t bytes = 0;
    int fd = -1;
    enum bt_code code = artifact_spool(&w, err);

    if (code != BT_OK) {
        return code;
    }
    code = artifact_write(w, data, 7, err);
    code = code == BT_OK ? artifact_unspool(w, &fd, &bytes, sum, err) : code;
    if (code == BT_OK) {
        tell_whole(bytes, sum);
        (void)close(fd);
    } else {
        assert_int_equal(fd, -1);
    }
    return code;
}

/* Another process had received them. */
static void put_part(void)
{
    char name[8 + ARTIFACT_SHA256_LEN];

    part_name(name);
    put_file(name, BLOCK + 1);
}

static enum bt_code goes_on(struct bt_error *err, const char *sum)
{
    struct artifact_part *p = NULL;
    bool is_done = true;
    enum bt_code code = artifact_part_open(dir, "f", &p, err);

    if (code == BT_OK) {
        assert_int_equal(artifact_part_bytes(p), BLOCK + 1);
        code = artifact_part_commit(p, str_from(sum), &is_done, err);
        assert_true(is_done == (code == BT_OK));
    }
    artifact_part_close(p);
    return code;
}

static enum bt_code arrived_before(struct bt_error *err)
{
    char sum[ARTIFACT_SHA256_LEN + 1];

    sum_of(data, BLOCK + 1, sum);
    return goes_on(err, sum);
}

static enum bt_code arrived_otherwise(struct bt_error *err)
{
    char sum[ARTIFACT_SHA256_LEN + 1];

    sum_of(data, BLOCK, sum);
    return goes_on(err, sum);
}

static enum bt_code has_files(struct bt_error *err)
{
    (void)err;
    buf_add_cstr(&said, artifact_plan_has_files(top, str_from(PLAN)) ? "has files" : "has none");
    return BT_OK;
}

static void put_nothing(void)
{
}

static const struct {
    const char *name;
    void (*begin)(void);
    enum bt_code (*run)(struct bt_error *err);
} THINGS[] = {
    {"a file is written", put_nothing, writes},
    {"a file is given up", put_nothing, gives_up},
    {"a file without a name", put_nothing, spools},
    {"a file arrives in parts", put_nothing, arrives},
    {"the end of a file that arrived before", put_part, arrived_before},
    {"the end of a file that is another one", put_part, arrived_otherwise},
    {"a file is opened", put_whole, opens},
    {"a part of a file is read", put_whole, reads_at},
    {"a file is looked at", put_whole, looks},
    {"whether a plan has files", put_whole, has_files},
};

static const struct {
    int errnum;
    const char *name;
} ERRORS[] = {{EIO, "EIO"},       {ENOENT, "ENOENT"},   {EINTR, "EINTR"},
              {ELOOP, "ELOOP"},   {ENOTDIR, "ENOTDIR"}, {EACCES, "EACCES"},
              {EEXIST, "EEXIST"}, {ENOSPC, "ENOSPC"},   {EDQUOT, "EDQUOT"},
              {EISDIR, "EISDIR"}, {EINVAL, "EINVAL"},   {EOPNOTSUPP, "EOPNOTSUPP"},
              {ENOMEM, "ENOMEM"}};

/* What is said and left when the calls from `fails` on fail. False: there is no such call. */
static bool tell(size_t thing, unsigned fails, unsigned times, int errnum, struct buf *out)
{
    struct bt_error err = {.msg = ""};
    enum bt_code code;
    char *of;
    bool failed;

    THINGS[thing].begin();
    buf_clear(&said);
    calls_begin(top, fails, times, errnum);
    code = THINGS[thing].run(&err);
    failed = calls_end();
    of = strstr(err.msg, strerror(errnum));
    if (of != NULL && of[strlen(strerror(errnum))] == 0) {
        (void)snprintf(of, 10, "its error");
    }
    buf_printf(out, "%s ", bt_code_name(code));
    calls_add(out, code == BT_OK ? said.len == 0 ? "" : buf_cstr(&said) : err.msg);
    tell_files(dir, out);
    tell_files(spool, out);
    return failed;
}

/* The call fails with each error: those with the same end share a line. */
static bool tell_call(size_t thing, unsigned fails, struct buf *out)
{
    enum { N = sizeof ERRORS / sizeof ERRORS[0] };
    struct buf ends[N];
    bool failed = true;

    for (size_t i = 0; i < N; i++) {
        buf_init(&ends[i], 4000);
        failed = tell(thing, fails, 1, ERRORS[i].errnum, &ends[i]) && failed;
    }
    for (size_t i = 0; i < N && failed; i++) {
        bool is_told = false;
        for (size_t j = 0; j < i; j++) {
            is_told = is_told || strcmp(buf_cstr(&ends[j]), buf_cstr(&ends[i])) == 0;
        }
        if (!is_told) {
            buf_printf(out, "    %s", calls.name);
            for (size_t j = i; j < N; j++) {
                if (strcmp(buf_cstr(&ends[j]), buf_cstr(&ends[i])) == 0) {
                    buf_printf(out, " %s", ERRORS[j].name);
                }
            }
            buf_printf(out, ": %s\n", buf_cstr(&ends[i]));
        }
    }
    for (size_t i = 0; i < N; i++) {
        buf_done(&ends[i]);
    }
    return failed;
}

static void each_call_that_fails_is_told_and_leaves_what_it_may(void **state)
{
    char *kept = golden_read(TOLD);
    struct buf out;
    struct buf whole;

    (void)state;
    buf_init(&out, GOLDEN_MAX);
    for (size_t i = 0; i < sizeof THINGS / sizeof THINGS[0]; i++) {
        buf_init(&whole, 4000);
        assert_false(tell(i, 0, 0, 0, &whole));
        buf_printf(&out, "%s# %s: %s\n%s", i == 0 ? "" : "\n", THINGS[i].name, buf_cstr(&whole),
                   buf_cstr(&calls.told));
        for (unsigned fails = 1; tell_call(i, fails, &out); fails++) {
        }
        buf_done(&whole);
    }
    golden_keep(TOLD, kept, buf_cstr(&out));
    free(kept);
    buf_done(&out);
}

/* A disk, or a signal, may end a call early: the rest follows. */
static void a_call_that_takes_little_is_followed_by_another(void **state)
{
    struct buf whole;
    struct buf little;

    (void)state;
    for (size_t i = 0; i < sizeof THINGS / sizeof THINGS[0]; i++) {
        buf_init(&whole, 4000);
        buf_init(&little, 4000);
        assert_false(tell(i, 0, 0, 0, &whole));
        calls.few = 777;
        assert_false(tell(i, 0, 0, 0, &little));
        calls.few = 0;
        assert_string_equal(buf_cstr(&little), buf_cstr(&whole));
        buf_done(&whole);
        buf_done(&little);
    }
}

/* In a process that has closed its stdin. */
static void descriptor_0_is_one_like_others(void **state)
{
    struct buf whole;
    struct buf zero;

    (void)state;
    for (size_t i = 0; i < sizeof THINGS / sizeof THINGS[0]; i++) {
        buf_init(&whole, 4000);
        assert_false(tell(i, 0, 0, 0, &whole));
        for (unsigned n = 1; n <= 3; n++) {
            const int in = dup(0);
            assert_true(in > 0);
            buf_init(&zero, 4000);
            calls.zero = n;
            assert_false(tell(i, 0, 0, 0, &zero));
            calls.zero = 0;
            assert_int_equal(dup2(in, 0), 0);
            assert_int_equal(__real_close(in), 0);
            assert_string_equal(buf_cstr(&zero), buf_cstr(&whole));
            buf_done(&zero);
        }
        buf_done(&whole);
    }
}

/* The system says once that bytes did not reach the disk; the next sync of the same file is well,
 * and they are lost. */
static void what_the_disk_did_not_keep_arrives_from_the_beginning_again(void **state)
{
    static const struct {
        const char *call;
        unsigned number;
    } syncs[] = {{"fdatasync", 21}, {"fsync", 24}};
    struct artifact_part *p = NULL;
    struct bt_error err;
    struct buf out;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        buf_init(&out, 4000);
        calls_begin(top, syncs[i].number, 1, EIO);
        assert_int_equal(arrives(&err), BT_IO);
        assert_true(calls_end());
        assert_string_equal(calls.name, syncs[i].call);
        assert_int_equal(artifact_part_open(dir, "f", &p, &err), BT_OK);
        assert_int_equal(artifact_part_bytes(p), 0);
        artifact_part_close(p);
        tell_files(dir, &out);
        buf_done(&out);
    }
}

/* Others write to the disk, too. */
static void a_part_leaves_eight_mib_of_the_disk_free(void **state)
{
    struct artifact_part *p = NULL;
    struct bt_error err;
    struct buf out;

    (void)state;
    buf_init(&out, 4000);
    for (int less = 0; less < 2; less++) {
        calls_begin(top, 0, 0, 0);
        calls.disk = 8 * MIB + 1000 - 4 * (unsigned)less;
        assert_int_equal(artifact_part_open(dir, "f", &p, &err), BT_OK);
        assert_int_equal(artifact_part_add(p, data, 1000, &err), less ? BT_UNAVAILABLE : BT_OK);
        artifact_part_close(p);
        calls.disk = 0;
        assert_false(calls_end());
        tell_files(dir, &out);
    }
    assert_string_equal(err.msg, "the disk of the state directory is full: the artifact has no "
                                 "room there");
    assert_string_equal(buf_cstr(&out), ", .part-SUM 600 1000, .part-SUM 600 0");
    buf_done(&out);
}

/* Fifteen names may be taken: by a process of the same id, whose machine was restarted. */
static void a_name_that_is_taken_is_followed_by_another(void **state)
{
    struct buf out;

    (void)state;
    for (unsigned taken = 15; taken <= 16; taken++) {
        buf_init(&out, 4000);
        assert_true(tell(0, 6, taken, EEXIST, &out));
        assert_string_equal(buf_cstr(&out), taken == 15 ? "OK 196609 bytes, f 600 196609"
                                                        : "IO making a file for the artifact: its "
                                                          "error");
        assert_int_equal(calls.failed, taken);
        buf_done(&out);
    }
    buf_init(&out, 4000);
    assert_true(tell(0, 6, 16, EACCES, &out)); /* no other name would do */
    assert_null(strstr(strstr(buf_cstr(&calls.told), "openat") + 1, "openat"));
    buf_done(&out);
}

/* Another program has made it shorter meanwhile. */
static void a_file_that_has_become_shorter_is_read_to_its_end(void **state)
{
    struct buf out;

    (void)state;
    calls.longer = 50;
    buf_init(&out, 4000);
    for (size_t i = 0; i < sizeof THINGS / sizeof THINGS[0]; i++) {
        if (THINGS[i].run == reads_at || THINGS[i].run == opens) {
            (void)tell(i, 0, 0, 0, &out);
            buf_add_byte(&out, '\n');
        }
    }
    put_part();
    {
        struct artifact_part *p = NULL;
        struct bt_error err;
        bool is_done = true;
        calls_begin(top, 0, 0, 0);
        assert_int_equal(artifact_part_open(dir, "f", &p, &err), BT_OK);
        assert_int_equal(artifact_part_bytes(p), BLOCK + 51);
        assert_int_equal(artifact_part_commit(p, STR_LIT(""), &is_done, &err), BT_IO);
        assert_false(is_done);
        artifact_part_close(p);
        assert_false(calls_end());
        buf_printf(&out, "%s", err.msg);
        tell_files(dir, &out);
    }
    calls.longer = 0;
    assert_string_equal(buf_cstr(&out),
                        "INVALID artifact 'f' has 262195 bytes, its result says 262145: it was "
                        "changed, f 600 262145\n"
                        "OK 900 of 262195 bytes, f 600 262145\n"
                        "reading the artifact: Input/output error, .part-SUM 600 65537");
    buf_done(&out);
}

/* The spool of this host where a directory cannot have files without names. */
static int spool_fd_in(const char *tmpdir, int errnum)
{
    int fd;

    assert_int_equal(tmpdir != NULL ? setenv("TMPDIR", tmpdir, 1) : unsetenv("TMPDIR"), 0);
    calls_begin(top, errnum != 0, 1, errnum);
    fd = artifact_spool_fd();
    errnum = errno;
    (void)(fd >= 0 && close(fd));
    (void)calls_end();
    assert_int_equal(setenv("TMPDIR", spool, 1), 0);
    errno = errnum;
    return fd >= 0 ? 0 : -errnum;
}

static void a_file_without_a_name_is_made_wherever_it_can_be(void **state)
{
    static const char other[] = "/.baton-XXXXXX";
    char path[ARTIFACT_PATH_MAX + 1];
    struct buf out;

    (void)state;
    buf_init(&out, 4000);
    assert_int_equal(spool_fd_in(spool, EOPNOTSUPP), 0);
    assert_string_equal(buf_cstr(&calls.told),
                        "1 open TOP/spool read and write not inherited without a name 600\n"
                        "2 mkostemp TOP/spool/.baton-NEW not inherited\n"
                        "3 unlink TOP/spool/.baton-NEW\n"
                        "4 close #1\n");
    tell_files(spool, &out);
    assert_string_equal(buf_cstr(&out), "");
    buf_done(&out);

    assert_int_equal(spool_fd_in(NULL, 0), 0);
    assert_non_null(strstr(buf_cstr(&calls.told), "1 open /var/tmp read"));
    assert_int_equal(spool_fd_in("", 0), 0);
    assert_non_null(strstr(buf_cstr(&calls.told), "1 open /var/tmp read"));

    assert_int_equal(spool_fd_in("/nowhere", 0), -ENOENT);
    assert_null(strstr(buf_cstr(&calls.told), "mkostemp"));
    memset(path, '/', sizeof path);
    memcpy(path, spool, strlen(spool));
    path[sizeof path - 1 - sizeof other] = 0;
    assert_int_equal(spool_fd_in(path, EISDIR), 0);
    assert_non_null(strstr(buf_cstr(&calls.told), "mkostemp"));
    path[sizeof path - 1 - sizeof other] = '/';
    path[sizeof path - sizeof other] = 0;
    assert_int_equal(spool_fd_in(path, EISDIR), -ENAMETOOLONG);
    assert_null(strstr(buf_cstr(&calls.told), "mkostemp"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_call_that_fails_is_told_and_leaves_what_it_may),
        TEST(a_call_that_takes_little_is_followed_by_another),
        TEST(descriptor_0_is_one_like_others),
        TEST(what_the_disk_did_not_keep_arrives_from_the_beginning_again),
        TEST(a_part_leaves_eight_mib_of_the_disk_free),
        TEST(a_name_that_is_taken_is_followed_by_another),
        TEST(a_file_that_has_become_shorter_is_read_to_its_end),
        TEST(a_file_without_a_name_is_made_wherever_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

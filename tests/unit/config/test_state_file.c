/* Files of a state directory: written whole or not at all, read by whom they are for, and the block
 * that a full disk has left. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/client/state_file_internal.h"
#include "tests/support/cmocka.h"

static char dir[64];
static struct bt_error err;
static struct buf got;

static const char *path(const char *name)
{
    static char text[128];

    (void)snprintf(text, sizeof text, "%s/%s", dir, name);
    return text;
}

/* ---- a disk that refuses ---- */

ssize_t __real_read(int fd, void *at, size_t n);
ssize_t __real_write(int fd, const void *at, size_t n);
ssize_t __real_pwrite(int fd, const void *at, size_t n, off_t offset);
ssize_t __real_getrandom(void *at, size_t n, unsigned flags);
int __real_fsync(int fd);
ssize_t __wrap_read(int fd, void *at, size_t n);
ssize_t __wrap_write(int fd, const void *at, size_t n);
ssize_t __wrap_pwrite(int fd, const void *at, size_t n, off_t offset);
ssize_t __wrap_getrandom(void *at, size_t n, unsigned flags);
int __wrap_fsync(int fd);

static const char *failing = ""; /* the call that fails */
static int fails_at;             /* so many of it from now; 0 = none */
static int why;                  /* its errno; 0 = it does a part of what it is asked for */

static bool fails(const char *call)
{
    if (strcmp(call, failing) != 0 || fails_at == 0 || --fails_at > 0) {
        return false;
    }
    errno = why;
    return true;
}

static void refuse(const char *call, int at, int with)
{
    failing = call;
    fails_at = at;
    why = with;
}

ssize_t __wrap_read(int fd, void *at, size_t n)
{
    return !fails("read") ? __real_read(fd, at, n) : why == 0 ? __real_read(fd, at, 2) : -1;
}

ssize_t __wrap_write(int fd, const void *at, size_t n)
{
    return !fails("write") ? __real_write(fd, at, n) : why == 0 ? __real_write(fd, at, 2) : -1;
}

ssize_t __wrap_pwrite(int fd, const void *at, size_t n, off_t offset)
{
    return !fails("pwrite") ? __real_pwrite(fd, at, n, offset)
           : why == 0       ? __real_pwrite(fd, at, 2, offset)
                            : -1;
}

ssize_t __wrap_getrandom(void *at, size_t n, unsigned flags)
{
    return fails("getrandom") ? -1 : __real_getrandom(at, n, flags);
}

int __wrap_fsync(int fd)
{
    return fails("fsync") ? -1 : __real_fsync(fd);
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/baton-file-XXXXXX");
    assert_non_null(mkdtemp(dir));
    buf_init(&got, 4096);
    return 0;
}

/* rmdir fails when a file was left behind, above all a temporary one. */
static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path("f"));
    (void)unlink(path("spare"));
    buf_done(&got);
    return rmdir(dir);
}

static enum bt_code put(const char *text, enum file_mode mode)
{
    return state_file_write(dir, "f", str_from(text), mode, &err);
}

static enum bt_code get(enum file_guard guard)
{
    buf_clear(&got);
    return state_file_read(dir, "f", guard, &got, &err);
}

static void says(const char *words)
{
    if (strstr(err.msg, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
    }
}

static void a_file_is_made_once_or_replaced(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(put("one", FILE_CREATE), BT_OK);
    assert_true(stat(path("f"), &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_nlink == 1);
    assert_int_equal(put("two", FILE_CREATE), BT_CONFLICT);
    says("/f is there already");
    assert_int_equal(get(FILE_OWN), BT_OK);
    assert_string_equal(buf_cstr(&got), "one");
    assert_int_equal(put("three", FILE_REPLACE), BT_OK);
    assert_int_equal(get(FILE_PRIVATE), BT_OK);
    assert_string_equal(buf_cstr(&got), "three");
    assert_int_equal(put("", FILE_REPLACE), BT_OK);
    assert_int_equal(get(FILE_ANY), BT_OK);
    assert_int_equal(got.len, 0);
    assert_int_equal(state_file_write(path("none"), "f", STR_LIT("x"), FILE_CREATE, &err),
                     BT_NOT_FOUND);
    says("/none");
    assert_int_not_equal(state_file_write(path("f"), "f", STR_LIT("x"), FILE_CREATE, &err), BT_OK);
}

static void what_is_in_its_place_stays_when_it_cannot_be_replaced(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path("f"), 0700), 0);
    assert_int_not_equal(put("x", FILE_REPLACE), BT_OK);
    says("/f: cannot be put in place");
    assert_int_equal(get(FILE_ANY), BT_INVALID);
    says("/f: is not a regular file");
    assert_int_equal(rmdir(path("f")), 0);
}

static void who_reads_a_file_is_who_it_is_for(void **state)
{
    uint32_t owner = 0;

    (void)state;
    assert_int_equal(get(FILE_ANY), BT_NOT_FOUND);
    assert_int_equal(put("x", FILE_CREATE), BT_OK);
    assert_int_equal(state_file_read_of(dir, "f", FILE_ANY, &got, &owner, &err), BT_OK);
    assert_int_equal(owner, geteuid());
    assert_int_equal(chmod(path("f"), 0640), 0);
    assert_int_equal(get(FILE_ANY), BT_OK); /* it is no secret */
    assert_int_equal(get(FILE_PRIVATE), BT_UNAUTHORIZED);
    says("others may read or write it; run chmod 600 ");
    assert_int_equal(get(FILE_OWN), BT_UNAUTHORIZED);
    assert_int_equal(chmod(path("f"), 0601), 0);
    assert_int_equal(get(FILE_PRIVATE), BT_UNAUTHORIZED);
    assert_int_equal(chmod(path("f"), 0600), 0);
    assert_int_equal(state_file_read(path("f"), "g", FILE_ANY, &got, &err), BT_INVALID);
    says("/f: is not a directory. The state directory: --state DIR or BATON_STATE");
    if (geteuid() == 0) {
        assert_int_equal(chown(path("f"), 65533, 65533), 0);
        assert_int_equal(get(FILE_PRIVATE), BT_OK); /* of the daemon's user */
        assert_int_equal(get(FILE_OWN), BT_UNAUTHORIZED);
        says("belongs to user 65533, not to you (0)");
        assert_int_equal(state_file_read_of(dir, "f", FILE_ANY, &got, &owner, &err), BT_OK);
        assert_int_equal(owner, 65533);
    }
}

static void a_file_is_read_to_the_last_byte_that_fits(void **state)
{
    static char text[4098];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(put(text, FILE_CREATE), BT_OK);
    assert_int_equal(get(FILE_OWN), BT_LIMIT);
    says("/f: is larger than such a file can be, or memory ran out");
    text[4096] = 0;
    assert_int_equal(put(text, FILE_REPLACE), BT_OK);
    assert_int_equal(get(FILE_OWN), BT_OK);
    assert_int_equal(got.len, 4096);
}

static void a_link_and_a_pipe_are_no_files(void **state)
{
    (void)state;
    assert_int_equal(symlink("/etc/passwd", path("f")), 0);
    assert_int_not_equal(get(FILE_ANY), BT_OK);
    assert_int_equal(unlink(path("f")), 0);
    assert_int_equal(mkfifo(path("f"), 0600), 0);
    assert_int_equal(get(FILE_ANY), BT_INVALID); /* at once */
    says("is not a regular file");
}

/* What a full disk still takes: the block of before, under the new name. */
static void a_spare_block_becomes_the_file(void **state)
{
    static char text[STATE_FILE_BLOCK + 2];
    struct stat st;

    (void)state;
    assert_int_not_equal(state_file_use_spare(dir, "spare", "f", STR_LIT("x"), &err), BT_OK);
    says("/f: cannot be written");
    assert_int_equal(access(path("spare"), F_OK), -1); /* it is not made then */
    state_file_spare(dir, "spare");
    assert_true(stat(path("spare"), &st) == 0 && st.st_size == STATE_FILE_BLOCK &&
                (st.st_mode & 07777) == 0600);
    memset(text, 'x', sizeof text - 1);
    assert_int_not_equal(state_file_use_spare(dir, "spare", "f", str_from(text), &err), BT_OK);
    assert_int_equal(access(path("f"), F_OK), -1);
    text[STATE_FILE_BLOCK] = 0;
    assert_int_equal(state_file_use_spare(dir, "spare", "f", str_from(text), &err), BT_OK);
    assert_true(stat(path("f"), &st) == 0 && st.st_size == STATE_FILE_BLOCK);
    assert_int_equal(access(path("spare"), F_OK), -1);
    state_file_spare(dir, "spare");
    assert_int_equal(state_file_use_spare(dir, "spare", "f", STR_LIT("short"), &err), BT_OK);
    assert_int_equal(get(FILE_OWN), BT_OK);
    assert_string_equal(buf_cstr(&got), "short");
    assert_int_equal(symlink("f", path("spare")), 0); /* what is there is left */
    state_file_spare(dir, "spare");
    assert_int_not_equal(state_file_use_spare(dir, "spare", "f", STR_LIT("x"), &err), BT_OK);
    assert_int_equal(get(FILE_OWN), BT_OK);
    assert_string_equal(buf_cstr(&got), "short");
    state_file_spare(path("none"), "spare"); /* nothing */
}

/* As many descriptors as before, whatever was asked for. */
static void each_call_gives_its_descriptors_back(void **state)
{
    const int before = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)state;
    assert_true(before >= 0 && close(before) == 0);
    assert_int_equal(put("x", FILE_CREATE), BT_OK);
    assert_int_equal(put("x", FILE_CREATE), BT_CONFLICT);
    assert_int_equal(get(FILE_OWN), BT_OK);
    state_file_spare(dir, "spare");
    state_file_spare(dir, "spare");
    assert_int_equal(state_file_use_spare(dir, "spare", "f", STR_LIT("y"), &err), BT_OK);
    assert_int_not_equal(state_file_use_spare(dir, "spare", "f", STR_LIT("y"), &err), BT_OK);
    assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), before);
    (void)close(before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void a_call_that_is_interrupted_or_does_a_part_is_made_again(void **state)
{
    static const char *const calls[] = {"write", "read"};
    static const int with[] = {EINTR, 0};

    (void)state;
    for (int i = 0; i < 4; i++) {
        refuse(calls[i / 2], 1, with[i % 2]);
        assert_int_equal(put("hello", FILE_REPLACE), BT_OK);
        assert_int_equal(get(FILE_PRIVATE), BT_OK);
        assert_string_equal(buf_cstr(&got), "hello");
        assert_int_equal(fails_at, 0);
    }
}

static void a_disk_that_refuses_leaves_what_was_there(void **state)
{
    static const struct {
        const char *call;
        int at;
        const char *says, *left;
    } cases[] = {
        {"getrandom", 1, "no random bytes", "before"},
        {"write", 1, "/f: cannot be written", "before"},
        {"fsync", 1, "/f: cannot be written", "before"},
        {"fsync", 2, "cannot be synced", "hello"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(put("before", FILE_REPLACE), BT_OK);
        refuse(cases[i].call, cases[i].at, EIO);
        assert_int_equal(put("hello", FILE_REPLACE), BT_IO);
        says(cases[i].says);
        assert_int_equal(get(FILE_PRIVATE), BT_OK);
        assert_string_equal(buf_cstr(&got), cases[i].left);
    }
    refuse("read", 1, EIO);
    assert_int_equal(get(FILE_PRIVATE), BT_IO);
    says("/f: ");
}

static void a_block_that_is_not_whole_is_none(void **state)
{
    static const struct {
        const char *call;
        int with;
    } cases[] = {{"pwrite", EIO}, {"pwrite", 0}, {"fsync", EIO}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refuse(cases[i].call, 1, cases[i].with);
        state_file_spare(dir, "spare");
        assert_int_not_equal(access(path("spare"), F_OK), 0);
    }
    for (size_t i = 0; i <= sizeof cases / sizeof cases[0]; i++) {
        const bool last = i == sizeof cases / sizeof cases[0];
        state_file_spare(dir, "spare");
        refuse(last ? "fsync" : cases[i].call, last ? 2 : 1, last ? EIO : cases[i].with);
        assert_int_not_equal(state_file_use_spare(dir, "spare", "f", STR_LIT("text"), &err), BT_OK);
        says("/f: cannot be written");
        assert_int_equal(access(path("f"), F_OK) == 0, last); /* the directory was not synced */
        (void)unlink(path("spare"));
    }
}

/* Only root can try. */
static void who_may_not_read_it_is_told_who_may(void **state)
{
    char within[96];
    char want[256];

    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(put("secret", FILE_REPLACE), BT_OK);
    assert_int_equal(seteuid(65534), 0);
    assert_int_equal(get(FILE_PRIVATE), BT_UNAUTHORIZED);
    (void)snprintf(want, sizeof want,
                   "/f: you (user 65534) may not read it; only root, the user of the daemon, may: "
                   "sudo -u root baton --state %s. Your own state directory: --state DIR or "
                   "BATON_STATE",
                   dir);
    says(want);
    (void)snprintf(within, sizeof within, "%s/within", dir);
    assert_int_equal(state_file_read(within, "f", FILE_PRIVATE, &got, &err), BT_UNAUTHORIZED);
    says("/within/f: you (user 65534) may not read it; only the user of the daemon may. Your own "
         "state directory: --state DIR or BATON_STATE");
    assert_int_equal(seteuid(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_made_once_or_replaced),
        TEST(what_is_in_its_place_stays_when_it_cannot_be_replaced),
        TEST(who_reads_a_file_is_who_it_is_for),
        TEST(a_file_is_read_to_the_last_byte_that_fits),
        TEST(a_link_and_a_pipe_are_no_files),
        TEST(a_spare_block_becomes_the_file),
        TEST(each_call_gives_its_descriptors_back),
        TEST(a_call_that_is_interrupted_or_does_a_part_is_made_again),
        TEST(a_disk_that_refuses_leaves_what_was_there),
        TEST(a_block_that_is_not_whole_is_none),
        TEST(who_may_not_read_it_is_told_who_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

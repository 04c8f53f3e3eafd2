/* The files of results go into a directory that nobody else may write to, whatever its name leads
 * to by the time it is opened. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/cli/verbs/storage/files.h"
#include "tests/support/cmocka.h"

#define PLAN "01A2132A-3B8E-7099-8994-3B51D43B4B84"

enum { OTHER_USER = 65533 };

struct place {
    char dir[64], from[96], to[96], elsewhere[96], copied[192];
    struct bt_error err;
};

static int place_open(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    char path[192];
    int fd;

    assert_non_null(p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/baton-files-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->from, sizeof p->from, "%s/from", p->dir);
    (void)snprintf(p->to, sizeof p->to, "%s/to", p->dir);
    (void)snprintf(p->elsewhere, sizeof p->elsewhere, "%s/elsewhere", p->dir);
    assert_int_equal(mkdir(p->from, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/" PLAN, p->from);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/" PLAN "/secret", p->from);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "secret", 6), 6);
    (void)close(fd);
    (void)snprintf(p->copied, sizeof p->copied, "%s/" PLAN "/secret", p->to);
    *state = p;
    return 0;
}

static void remove_copy(const char *root)
{
    char path[192];

    (void)snprintf(path, sizeof path, "%s/" PLAN "/secret", root);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/" PLAN, root);
    (void)rmdir(path);
    if (unlink(root) != 0) {
        (void)rmdir(root);
    }
}

static int place_close(void **state)
{
    struct place *p = *state;

    remove_copy(p->to);
    remove_copy(p->elsewhere);
    remove_copy(p->from);
    assert_int_equal(rmdir(p->dir), 0);
    free(p);
    return 0;
}

static void a_directory_is_made_and_kept_private(void **state)
{
    struct place *p = *state;
    uint64_t n = 0;
    struct stat st;

    assert_int_equal(files_copy(p->from, p->to, true, &n, &p->err), BT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(stat(p->copied, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_not_equal(files_copy(p->from, p->to, true, &n, &p->err), BT_OK);
    assert_int_equal(files_copy(p->from, p->to, false, &n, &p->err), BT_OK);
    assert_int_equal(n, 1);
}

static void a_link_in_its_place_is_not_followed(void **state)
{
    struct place *p = *state;
    uint64_t n = 0;

    assert_int_equal(mkdir(p->elsewhere, 0700), 0);
    assert_int_equal(symlink(p->elsewhere, p->to), 0);
    assert_int_not_equal(files_copy(p->from, p->to, true, &n, &p->err), BT_OK);
    assert_int_not_equal(files_copy(p->from, p->to, false, &n, &p->err), BT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(access(p->copied, F_OK), -1);
}

static void a_directory_of_another_user_gets_nothing(void **state)
{
    struct place *p = *state;
    uint64_t n = 0;

    assert_int_equal(mkdir(p->to, 0700), 0);
    assert_int_equal(chmod(p->to, 0777), 0);
    assert_int_equal(files_copy(p->from, p->to, false, &n, &p->err), BT_UNAUTHORIZED);
    assert_int_equal(chmod(p->to, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(p->to, OTHER_USER, OTHER_USER), 0);
        assert_int_equal(files_copy(p->from, p->to, false, &n, &p->err), BT_UNAUTHORIZED);
        assert_non_null(strstr(p->err.msg, "belongs to another user"));
    }
    assert_int_equal(n, 0);
    assert_int_equal(access(p->copied, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_directory_is_made_and_kept_private, place_open,
                                        place_close),
        cmocka_unit_test_setup_teardown(a_link_in_its_place_is_not_followed, place_open,
                                        place_close),
        cmocka_unit_test_setup_teardown(a_directory_of_another_user_gets_nothing, place_open,
                                        place_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

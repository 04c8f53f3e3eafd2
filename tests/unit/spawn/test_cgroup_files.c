/* What is read of the files of cgroups, and which old ones are removed, in directories of the test:
 * the kernel's are like them. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/spawn/cgroup_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/tree.h"

#define ID "01A2"

static char dir[64];
static struct cgroup cg;

static int set_up(void **state)
{
    char path[CGROUP_NAME_BYTES];

    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/baton-cgroup-XXXXXX");
    assert_non_null(mkdtemp(dir));
    cg = CGROUP_NONE;
    cg.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(cg.dir >= 0);
    cgroup_name(ID, "", path);
    assert_int_equal(mkdirat(cg.dir, path, 0755), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgroup_done(&cg);
    return tree_drop(dir);
}

static void put(const char *file, const char *text)
{
    char path[CGROUP_NAME_BYTES];
    int fd;

    cgroup_name(ID, file, path);
    fd = openat(cg.dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static void a_number_is_that_of_the_line_with_just_this_name(void **state)
{
    (void)state;
    put("/x", "low 0\noom 1\noom_kill 23\noom_group_kill 4\n");
    assert_int_equal(cgroup_counter(cg.dir, ID, "/x", "oom_kill"), 23);
    assert_int_equal(cgroup_counter(cg.dir, ID, "/x", "oom"), 1);
    assert_int_equal(cgroup_counter(cg.dir, ID, "/x", "low"), 0);
    assert_int_equal(cgroup_counter(cg.dir, ID, "/x", "oom_group_kill"), 4);
    assert_int_equal(cgroup_counter(cg.dir, ID, "/x", "group_kill"), 0);
    assert_int_equal(cgroup_counter(cg.dir, ID, "/x", "oom_kil"), 0);
    assert_int_equal(cgroup_counter(cg.dir, ID, "/none", "oom"), 0);
    assert_int_equal(cgroup_counter(cg.dir, "01A3", "/x", "oom"), 0);
    put("/x", "");
    assert_int_equal(cgroup_counter(cg.dir, ID, "/x", "oom"), 0);
    put("/x", "\n\noom 7"); /* empty lines, and a last one without an end */
    assert_int_equal(cgroup_counter(cg.dir, ID, "/x", "oom"), 7);
}

static void the_limit_that_was_reached_is_the_first_that_counts(void **state)
{
    (void)state;
    assert_null(cgroup_reached(&cg, ID));
    put("/memory.events", "oom 5\noom_kill 0\n");
    put("/pids.events", "max 0\n");
    assert_null(cgroup_reached(&cg, ID));
    put("/pids.events", "max 1\n");
    assert_string_equal(cgroup_reached(&cg, ID), "limits.processes");
    put("/memory.events", "oom 5\noom_kill 1\n");
    assert_string_equal(cgroup_reached(&cg, ID), "limits.memoryBytes");
}

static void a_group_has_processes_while_it_says_so(void **state)
{
    (void)state;
    assert_false(cgroup_has_process(&cg, ID));
    put("/cgroup.events", "populated 1\nfrozen 0\n");
    assert_true(cgroup_has_process(&cg, ID));
    put("/cgroup.events", "populated 0\nfrozen 1\n");
    assert_false(cgroup_has_process(&cg, ID));
}

static void a_kill_is_a_word_to_the_kernel(void **state)
{
    char path[CGROUP_NAME_BYTES];
    char text[8] = "";
    int fd;

    (void)state;
    assert_false(cgroup_kill(&cg, ID)); /* a kernel that cannot */
    put("/cgroup.kill", "0");
    assert_true(cgroup_kill(&cg, ID));
    cgroup_name(ID, "/cgroup.kill", path);
    fd = openat(cg.dir, path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, text, sizeof text), 1);
    assert_string_equal(text, "1");
    (void)close(fd);
}

static pid_t one_that_has_ended(void)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* A group that is empty and whose maker is gone is nobody's. */
static void groups_of_dead_makers_are_removed_and_no_others(void **state)
{
    const int dead = (int)one_that_has_ended();
    const unsigned long space = cgroup_pid_namespace();
    char names[8][64];
    struct stat st;

    (void)state;
    assert_true(space > 0);
    (void)snprintf(names[0], sizeof names[0], "baton.%lu-%d.x", space, dead);
    (void)snprintf(names[1], sizeof names[1], "baton.%lu-%d.full", space, dead); /* not empty */
    (void)snprintf(names[2], sizeof names[2], "baton.%lu-%d.x", space, (int)getppid());
    (void)snprintf(names[3], sizeof names[3], "other.%lu-%d.x", space, dead);
    (void)snprintf(names[4], sizeof names[4], "baton.%lu-%d", space, dead);
    (void)snprintf(names[5], sizeof names[5], "baton.%lu-0.x", space);
    /* In another pid namespace that number may be a live one. */
    (void)snprintf(names[6], sizeof names[6], "baton.%lu-%d.x", space + 1, dead);
    (void)snprintf(names[7], sizeof names[7], "baton.%d.x", dead);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(mkdirat(cg.dir, names[i], 0755), 0);
    }
    char inside[80];
    (void)snprintf(inside, sizeof inside, "%s/in", names[1]);
    assert_int_equal(mkdirat(cg.dir, inside, 0755), 0);
    cgroup_remove_empty(cg.dir);
    assert_int_equal(fstatat(cg.dir, names[0], &st, 0), -1);
    for (size_t i = 1; i < 8; i++) {
        assert_int_equal(fstatat(cg.dir, names[i], &st, 0), 0);
    }
    cgroup_remove_empty(-1); /* of a group that is not there */
}

static void a_group_is_made_once_and_removed_when_it_is_empty(void **state)
{
    char path[CGROUP_NAME_BYTES];
    struct stat st;

    (void)state;
    assert_int_equal(cgroup_make(&cg, ID), -1); /* it is there */
    cgroup_name("01A3", "", path);
    assert_int_equal(cgroup_make(&cg, "01A3"), -1); /* no kernel puts its files there */
    assert_int_equal(fstatat(cg.dir, path, &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    cgroup_remove(&cg, "01A3");
    assert_int_equal(fstatat(cg.dir, path, &st, 0), -1);
    put("/x", "1");
    cgroup_remove(&cg, ID);
    cgroup_name(ID, "", path);
    assert_int_equal(fstatat(cg.dir, path, &st, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_number_is_that_of_the_line_with_just_this_name),
        TEST(the_limit_that_was_reached_is_the_first_that_counts),
        TEST(a_group_has_processes_while_it_says_so),
        TEST(a_kill_is_a_word_to_the_kernel),
        TEST(groups_of_dead_makers_are_removed_and_no_others),
        TEST(a_group_is_made_once_and_removed_when_it_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

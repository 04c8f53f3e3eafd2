/* The cgroup of an agent alone: nothing else may end what is in it. Skipped where there is none. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/spawn/cgroup_internal.h"
#include "tests/support/cmocka.h"

/* A child in the cgroup that has left its parent, its session and its environment: its pid. It
 * lives as long as the pipe is open at our end, unless it is killed. */
static pid_t hidden_child(int procs, int *ret_pipe)
{
    int alive[2];
    int told[2];
    pid_t pid;
    pid_t hidden = -1;

    assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (write(procs, "0", 1) != 1 || setsid() < 0 || clearenv() != 0) {
            _exit(1);
        }
        hidden = fork();
        if (hidden == 0) {
            const pid_t me = getpid();
            char byte;
            (void)close(alive[1]);
            (void)!write(told[1], &me, sizeof me);
            (void)close(told[1]);
            (void)!read(alive[0], &byte, 1);
            _exit(0);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(told[1]);
    assert_int_equal(read(told[0], &hidden, sizeof hidden), (ssize_t)sizeof hidden);
    (void)close(told[0]);
    (void)close(alive[0]);
    *ret_pipe = alive[1];
    return hidden;
}

/* True: the other end of the pipe is closed, its only holder is dead. */
static bool ends(int fd, int within_ms)
{
    struct pollfd p = {.fd = fd, .events = 0};

    return poll(&p, 1, within_ms) == 1 && (p.revents & POLLERR) != 0;
}

/* Whether this process may divide its cgroup (v2) at the mount: it makes one, looks for
 * cgroup.kill, and puts a child in. */
static bool may_divide(const char *mount)
{
    char own[256] = "";
    char path[600];
    char line[300];
    FILE *f = fopen("/proc/self/cgroup", "re");
    int status = 1;
    bool there;
    pid_t pid;

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "0::%255s", own) == 1) {
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    (void)snprintf(path, sizeof path, "%s%s/cgroup.procs", mount, own);
    if (own[0] == 0 || access(path, W_OK) != 0) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s%s/test-divide", mount, own);
    if (mkdir(path, 0755) != 0) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s%s/test-divide/cgroup.kill", mount, own);
    there = access(path, W_OK) == 0;
    (void)snprintf(path, sizeof path, "%s%s/test-divide/cgroup.procs", mount, own);
    pid = fork();
    if (pid == 0) {
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        _exit(fd >= 0 && write(fd, "0", 1) == 1 ? 0 : 1);
    }
    there = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && there;
    (void)snprintf(path, sizeof path, "%s%s/test-divide", mount, own);
    (void)rmdir(path);
    return there;
}

/* Killing goes another way when there is none: nobody would see that the probe is wrong. */
static void a_cgroup_that_may_be_divided_is_found(void **state)
{
    struct cgroup cg;
    const bool there = may_divide("/sys/fs/cgroup") || may_divide("/sys/fs/cgroup/unified");

    (void)state;
    cgroup_probe(&cg);
    assert_true(!there || cg.dir >= 0);
    cgroup_done(&cg);
}

static void what_is_in_a_cgroup_ends_with_it(void **state)
{
    struct cgroup cg;
    int procs;
    int fd;

    (void)state;
    cgroup_probe(&cg);
    if (cg.dir < 0) {
        print_message("SKIPPED: no cgroup (v2) that a program may divide\n");
        skip();
    }
    procs = cgroup_make(&cg, "test-cgroup-1");
    assert_true(procs >= 0);
    assert_false(cgroup_has_process(&cg, "test-cgroup-1"));
    (void)hidden_child(procs, &fd);
    assert_true(cgroup_has_process(&cg, "test-cgroup-1"));
    assert_false(ends(fd, 0));
    cgroup_remove(&cg, "test-cgroup-1"); /* does nothing while a process is in it */
    assert_true(cgroup_has_process(&cg, "test-cgroup-1"));
    assert_false(cgroup_kill(&cg, "test-cgroup-2")); /* there is no such one */
    assert_false(ends(fd, 0));
    assert_true(cgroup_kill(&cg, "test-cgroup-1"));
    assert_true(ends(fd, 20000));
    for (int i = 0; i < 20000 && cgroup_has_process(&cg, "test-cgroup-1"); i++) {
        (void)poll(NULL, 0, 1);
    }
    assert_false(cgroup_has_process(&cg, "test-cgroup-1"));
    cgroup_remove(&cg, "test-cgroup-1");
    assert_false(cgroup_kill(&cg, "test-cgroup-1"));
    (void)close(procs);
    (void)close(fd);
    cgroup_done(&cg);
    assert_int_equal(cg.dir, -1);
}

static void without_a_cgroup_every_call_says_so(void **state)
{
    const struct cgroup none = CGROUP_NONE;
    int join[CGROUP_LIMITS];
    char why[200];

    (void)state;
    assert_int_equal(cgroup_make(&none, "x"), -1);
    assert_false(cgroup_kill(&none, "x"));
    assert_false(cgroup_has_process(&none, "x"));
    assert_true(cgroup_limit(&none, "x", (const uint64_t[]){0, 0, 0}, join, why, sizeof why));
    assert_false(cgroup_limit(&none, "x", (const uint64_t[]){0, 5, 0}, join, why, sizeof why));
    assert_string_equal(why, "limits.processes: there is no cgroup that the daemon may divide");
    assert_null(cgroup_reached(&none, "x"));
    cgroup_remove(&none, "x");
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void assert_file(const char *dir, const char *name, const char *want)
{
    char path[512];
    char text[64] = "";
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    (void)fclose(f);
    assert_string_equal(text, want);
}

/* Files in the place of the kernel's: few machines let a test have the controllers of v2. */
static void limits_are_written_as_the_kernel_reads_them(void **state)
{
    char dir[] = "/tmp/baton-cgroup-XXXXXX";
    char name[CGROUP_NAME_BYTES];
    char own[256];
    char why[200] = "";
    struct cgroup cg = CGROUP_NONE;
    int join[CGROUP_LIMITS];

    (void)state;
    assert_non_null(mkdtemp(dir));
    cgroup_name("x", "", name);
    (void)snprintf(own, sizeof own, "%s/%s", dir, name);
    assert_int_equal(mkdir(own, 0700), 0);
    put_file(own, "memory.max", "");
    put_file(own, "pids.max", "");
    put_file(own, "cpu.max", "");
    cg.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(cg.dir >= 0);
    assert_true(
        cgroup_limit(&cg, "x", (const uint64_t[]){1048576, 17, 150}, join, why, sizeof why));
    assert_file(own, "memory.max", "1048576");
    assert_file(own, "pids.max", "17");
    assert_file(own, "cpu.max", "150000 100000");
    /* the controller is not on, and cannot be put on: no subtree_control */
    for (size_t i = 0; i < 3; i++) {
        static const char *const files[] = {"cpu.max", "pids.max", "memory.max"};
        static const char *const keys[] = {"limits.cpuPercent", "limits.processes",
                                           "limits.memoryBytes"};
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", own, files[i]);
        assert_int_equal(unlink(path), 0);
        assert_false(cgroup_limit(&cg, "x", (const uint64_t[]){i == 2, i == 1, i == 0}, join, why,
                                  sizeof why));
        assert_memory_equal(why, keys[i], strlen(keys[i]));
        assert_non_null(strstr(why, ": its cgroup does not take this limit"));
    }
    cgroup_remove(&cg, "x");
    cgroup_done(&cg);
    assert_int_equal(rmdir(dir), 0);
}

/* Files again: the kernel puts `pids` on in a group with processes, and makes its children invalid.
 */
static void a_controller_that_closes_the_group_to_processes_is_put_off_again(void **state)
{
    char dir[] = "/tmp/baton-cgroup-XXXXXX";
    char name[CGROUP_NAME_BYTES];
    char own[256];
    char type[300];
    char why[200] = "";
    struct cgroup cg = CGROUP_NONE;
    int join[CGROUP_LIMITS];

    (void)state;
    assert_non_null(mkdtemp(dir));
    cgroup_name("x", "", name);
    (void)snprintf(own, sizeof own, "%s/%s", dir, name);
    assert_int_equal(mkdir(own, 0700), 0);
    put_file(dir, "cgroup.subtree_control", "");
    put_file(own, "cgroup.type", "domain invalid\n");
    cg.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(cg.dir >= 0);
    assert_false(cgroup_limit(&cg, "x", (const uint64_t[]){0, 5, 0}, join, why, sizeof why));
    assert_string_equal(why, "limits.processes: its own cgroup has processes (systemd: "
                             "Delegate=yes, DelegateSubgroup=baton)");
    assert_file(dir, "cgroup.subtree_control", "-pids");
    assert_int_equal(unlinkat(cg.dir, "cgroup.subtree_control", 0), 0);
    (void)snprintf(type, sizeof type, "%s/cgroup.type", own);
    assert_int_equal(unlink(type), 0);
    cgroup_remove(&cg, "x");
    cgroup_done(&cg);
    assert_int_equal(rmdir(dir), 0);
}

/* As above, in three hierarchies; the kernel counts how often a limit was reached. */
static void limits_are_set_in_the_hierarchy_that_has_the_controller(void **state)
{
    char dir[] = "/tmp/baton-cgroup-XXXXXX";
    char name[CGROUP_NAME_BYTES];
    char own[256];
    char why[200] = "";
    struct cgroup cg = CGROUP_NONE;
    int join[CGROUP_LIMITS];

    (void)state;
    assert_non_null(mkdtemp(dir));
    cgroup_name("x", "", name);
    (void)snprintf(own, sizeof own, "%s/%s", dir, name);
    assert_int_equal(mkdir(own, 0700), 0);
    put_file(own, "memory.limit_in_bytes", "");
    put_file(own, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    put_file(own, "pids.max", "");
    put_file(own, "pids.events", "max 0\n");
    put_file(own, "cpu.cfs_period_us", "");
    put_file(own, "cpu.cfs_quota_us", "");
    put_file(own, "cgroup.procs", "");
    for (size_t i = 0; i < CGROUP_LIMITS; i++) {
        cg.v1[i] = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    assert_true(cgroup_limit(&cg, "x", (const uint64_t[]){1048576, 0, 150}, join, why, sizeof why));
    assert_true(join[CGROUP_MEMORY] >= 0 && join[CGROUP_CPU] >= 0);
    assert_int_equal(join[CGROUP_PROCESSES], -1);
    assert_file(own, "memory.limit_in_bytes", "1048576");
    assert_file(own, "pids.max", "");
    assert_file(own, "cpu.cfs_period_us", "100000");
    assert_file(own, "cpu.cfs_quota_us", "150000");
    assert_null(cgroup_reached(&cg, "x"));
    put_file(own, "pids.events", "max 1\n");
    assert_string_equal(cgroup_reached(&cg, "x"), "limits.processes");
    put_file(own, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    assert_string_equal(cgroup_reached(&cg, "x"), "limits.memoryBytes");
    cgroup_done(&cg);
    (void)close(join[CGROUP_MEMORY]);
    (void)close(join[CGROUP_CPU]);
    for (size_t i = 0; i < 7; i++) {
        static const char *const files[] = {
            "memory.limit_in_bytes", "memory.oom_control", "pids.max",    "pids.events",
            "cpu.cfs_period_us",     "cpu.cfs_quota_us",   "cgroup.procs"};
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", own, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(own), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cgroup_that_may_be_divided_is_found),
        cmocka_unit_test(what_is_in_a_cgroup_ends_with_it),
        cmocka_unit_test(without_a_cgroup_every_call_says_so),
        cmocka_unit_test(limits_are_written_as_the_kernel_reads_them),
        cmocka_unit_test(a_controller_that_closes_the_group_to_processes_is_put_off_again),
        cmocka_unit_test(limits_are_set_in_the_hierarchy_that_has_the_controller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

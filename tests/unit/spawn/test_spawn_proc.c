/* Processes and how they descend; what is found in /proc. */
#include "tests/support/cmocka.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/spawn/proc.h"

static struct proc_entry entries[16];
static struct proc_list list;

/* pid and parent; in the order of the pids, as proc_read leaves them. */
static void has(const pid_t (*pairs)[2], size_t n)
{
    list = (struct proc_list){.entries = entries, .n = n, .cap = 16};
    for (size_t i = 0; i < n; i++) {
        entries[i] = (struct proc_entry){.pid = pairs[i][0], .parent = pairs[i][1]};
    }
}

/* The pids that are marked, as "3 7 ". */
static const char *marked(void)
{
    static char text[128];
    int n = 0;

    text[0] = 0;
    for (size_t i = 0; i < list.n; i++) {
        n += entries[i].marked
                 ? snprintf(text + n, sizeof text - (size_t)n, "%d ", (int)entries[i].pid)
                 : 0;
    }
    return text;
}

static const pid_t family[][2] = {{1, 0}, {2, 1}, {3, 7}, {5, 2}, {7, 5}, {8, 1}, {9, 8}};
enum { FAMILY = 7 };

static void descendants_are_found_whatever_their_pids_and_the_root_is_none(void **state)
{
    (void)state;
    has(family, FAMILY);
    proc_mark_descendants(&list, 2);
    assert_string_equal(marked(), "3 5 7 ");
    proc_clear_marks(&list);
    assert_string_equal(marked(), "");
    proc_mark_descendants(&list, 9);
    assert_string_equal(marked(), "");
    proc_mark_descendants(&list, 0);
    assert_string_equal(marked(), "1 2 3 5 7 8 9 ");
    /* of what is marked already, too */
    proc_clear_marks(&list);
    entries[5].marked = true;
    proc_mark_descendants(&list, -1);
    assert_string_equal(marked(), "8 9 ");
}

static void ancestors_are_the_process_and_those_above_it(void **state)
{
    static const pid_t loop[][2] = {{3, 5}, {5, 3}};

    (void)state;
    has(family, FAMILY);
    proc_mark_ancestors(&list, 3);
    assert_string_equal(marked(), "1 2 3 5 7 ");
    proc_clear_marks(&list);
    proc_mark_ancestors(&list, 4);
    assert_string_equal(marked(), "");
    has(loop, 2); /* read while pids changed hands */
    proc_mark_ancestors(&list, 3);
    assert_string_equal(marked(), "3 5 ");
}

static void a_process_is_found_by_its_pid(void **state)
{
    (void)state;
    has(family, FAMILY);
    for (size_t i = 0; i < FAMILY; i++) {
        assert_ptr_equal(proc_find(&list, family[i][0]), &entries[i]);
    }
    assert_null(proc_find(&list, 4));
    assert_null(proc_find(&list, 10));
    has(family, 0);
    assert_null(proc_find(&list, 1));
}

/* A child that waits until its pipe ends. */
static pid_t starts(int *ret_end)
{
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[1]);
        (void)!read(ends[0], &byte, 1);
        _exit(0);
    }
    assert_int_equal(close(ends[0]), 0);
    *ret_end = ends[1];
    return pid;
}

static void the_list_has_who_lives_with_parent_session_and_start(void **state)
{
    struct proc_list all = {0};
    const struct proc_entry *own;
    struct proc_entry *child;
    int end = -1;
    const pid_t pid = starts(&end);
    siginfo_t info;

    (void)state;
    assert_int_equal(proc_read(&all, NULL), BT_OK);
    for (size_t i = 1; i < all.n; i++) {
        assert_true(all.entries[i - 1].pid < all.entries[i].pid);
    }
    own = proc_find(&all, getpid());
    child = proc_find(&all, pid);
    assert_true(own != NULL && child != NULL);
    assert_int_equal(own->parent, getppid());
    assert_int_equal(own->session, getsid(0));
    assert_int_equal(child->parent, getpid());
    assert_true(child->started >= own->started && own->started > 0);
    assert_false(own->zombie || own->exiting || own->marked || child->zombie);
    /* another process that got its pid is not signalled */
    child->started++;
    assert_false(proc_signal(child, SIGKILL));
    child->started--;
    assert_true(proc_signal(child, 0));
    assert_true(proc_signal(child, SIGKILL));
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(info.si_status, SIGKILL);
    assert_int_equal(proc_read(&all, NULL), BT_OK);
    child = proc_find(&all, pid);
    assert_non_null(child);
    assert_true(child->zombie);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(proc_read(&all, NULL), BT_OK);
    assert_null(proc_find(&all, pid));
    assert_false(proc_signal(&(struct proc_entry){.pid = pid}, 0));
    assert_int_equal(close(end), 0);
    proc_done(&all);
    assert_null(all.entries);
    proc_done(&all);
}

/* The environment that a program was started with, entry by entry. */
static void a_variable_is_found_whole(const char *self)
{
    char *argv[] = {(char[]){"x"}, (char[]){"--wait"}, NULL};
    char *env[] = {(char[]){"FIRST=1"}, (char[]){"SECOND=two"}, (char[]){"LAST="}, NULL};
    int ends[2];
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ends[0], 0);
        (void)dup2(ready[1], 1);
        (void)close(ends[1]);
        (void)close(ready[0]);
        (void)execve(self, argv, env);
        _exit(1);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_true(proc_has_env(pid, "FIRST=1"));
    assert_true(proc_has_env(pid, "SECOND=two"));
    assert_true(proc_has_env(pid, "LAST="));
    assert_false(proc_has_env(pid, "FIRST="));
    assert_false(proc_has_env(pid, "FIRST=12"));
    assert_false(proc_has_env(pid, "IRST=1"));
    assert_false(proc_has_env(pid, "THIRD=3"));
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(ready[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(proc_has_env(pid, "FIRST=1"));
}

static void a_variable_of_a_program_is_found_whole(void **state)
{
    (void)state;
    a_variable_is_found_whole("/proc/self/exe");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descendants_are_found_whatever_their_pids_and_the_root_is_none),
        cmocka_unit_test(ancestors_are_the_process_and_those_above_it),
        cmocka_unit_test(a_process_is_found_by_its_pid),
        cmocka_unit_test(the_list_has_who_lives_with_parent_session_and_start),
        cmocka_unit_test(a_variable_of_a_program_is_found_whole),
    };

    if (argc > 1 && strcmp(argv[1], "--wait") == 0) {
        char byte = 'r';
        (void)!write(1, &byte, 1);
        (void)!read(0, &byte, 1);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The supervisor's state directory is closed to files, whichever way leads to it. */
#include "tests/unit/agents/files_world.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "agents/sdk/guard.h"

static bool own_mounts;

static const char *at(const char *name)
{
    static char path[2][512];
    static int n;

    n = 1 - n;
    (void)snprintf(path[n], sizeof path[n], "%s/%s", tree, name);
    return path[n];
}

/* in/ is a root for reading, out/ for writing, and both contain what leads to the state. */
static int make(void **state)
{
    /* Before the roots are opened: a descriptor keeps to the mounts of its namespace. */
    own_mounts =
        unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    if (tree_make(state) != 0) {
        return -1;
    }
    assert_int_equal(mkdir(at("in/.baton"), 0700), 0);
    assert_int_equal(mkdir(at("in/.baton/log"), 0700), 0);
    assert_int_equal(mkdir(at("in/more"), 0700), 0);
    tree_text("in/.baton/token", "SECRET");
    tree_text("in/.baton/log/calc#1.log", "SECRET");
    tree_text("in/plain", "plain");
    return setenv("BATON_STATE", at("in/.baton"), 1);
}

static void denied(const char *json)
{
    tree_fails(tree_run(files_read, json), "PERMISSION_DENIED", "state directory");
    tree_files->read.walk = true;
    tree_fails(tree_run(files_read, json), "PERMISSION_DENIED", "state directory");
    tree_files->read.walk = false;
}

static void a_root_above_the_state_does_not_open_it(void **state)
{
    (void)state;
    denied("{\"path\":\"@/in/.baton/token\"}");
    denied("{\"path\":\".baton/token\"}");
    denied("{\"path\":\".baton/log/calc#1.log\"}");
    tree_fails(tree_run(files_read, "{\"path\":\"more/../.baton/./token\"}"), "PERMISSION_DENIED",
               "state directory");
    tree_fails(tree_run(files_list, "{\"path\":\".baton\"}"), "PERMISSION_DENIED",
               "state directory");
    tree_fails(tree_run(files_grep, "{\"path\":\".baton/token\",\"pattern\":\"S\"}"),
               "PERMISSION_DENIED", "state directory");
    steps_expect(tree_run(files_read, "{\"path\":\"plain\"}"), "\"plain\"");
}

static void links_do_not_open_it(void **state)
{
    (void)state;
    assert_int_equal(symlink("../.baton", at("in/more/dir")), 0);
    assert_int_equal(symlink("../.baton/token", at("in/more/file")), 0);
    assert_int_equal(link(at("in/.baton/token"), at("in/more/hard")), 0);
    assert_int_equal(link(at("in/plain"), at("in/more/plain")), 0);
    tree_fails(tree_run(files_read, "{\"path\":\"more/dir/token\"}"), "PERMISSION_DENIED",
               "state directory");
    tree_fails(tree_run(files_read, "{\"path\":\"more/file\"}"), "PERMISSION_DENIED",
               "state directory");
    denied("{\"path\":\"more/hard\"}");
    steps_expect(tree_run(files_read, "{\"path\":\"more/plain\"}"), "\"plain\"");
    assert_int_equal(unlink(at("in/more/hard")), 0);
}

static void a_recursive_list_passes_it_by(void **state)
{
    const char *reply = tree_run(files_list, "{\"path\":\".\",\"recursive\":true}");

    (void)state;
    steps_expect(reply, "\".baton\"");
    steps_expect(reply, "\"plain\"");
    assert_null(strstr(reply, "token"));
}

static void nothing_is_written_into_it(void **state)
{
    (void)state;
    assert_int_equal(setenv("BATON_STATE", at("out/state"), 1), 0);
    assert_int_equal(mkdir(at("out/state"), 0700), 0);
    tree_text("out/state/endpoints.json", "{}");
    assert_int_equal(symlink("state", at("out/way")), 0);
    tree_fails(tree_run(files_write, "{\"path\":\"state/endpoints.json\",\"text\":\"x\"}"),
               "PERMISSION_DENIED", "state directory");
    tree_fails(tree_run(files_write, "{\"path\":\"way/endpoints.json\",\"text\":\"x\"}"),
               "PERMISSION_DENIED", "state directory");
    tree_fails(tree_run(files_write, "{\"path\":\"state/a/b\",\"text\":\"x\",\"mkdirs\":true}"),
               "PERMISSION_DENIED", "state directory");
    assert_string_equal(tree_get("out/state/endpoints.json"), "{}");
    assert_int_equal(tree_count("out/state"), 1);
    steps_expect(tree_run(files_write, "{\"path\":\"c/d\",\"text\":\"x\",\"mkdirs\":true}"),
                 "\"completed\"");
    assert_int_equal(setenv("BATON_STATE", at("in/.baton"), 1), 0);
}

static void mounts_do_not_open_it(void **state)
{
    (void)state;
    if (!own_mounts) {
        print_message("SKIPPED: a bind mount needs root\n");
        skip();
    }
    assert_int_equal(mkdir(at("in/whole"), 0700), 0);
    assert_int_equal(mkdir(at("in/part"), 0700), 0);
    tree_text("in/one", "");
    assert_int_equal(mount(at("in/.baton"), at("in/whole"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount(at("in/.baton/log"), at("in/part"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount(at("in/.baton/token"), at("in/one"), NULL, MS_BIND, NULL), 0);
    denied("{\"path\":\"whole/token\"}");
    denied("{\"path\":\"part/calc#1.log\"}");
    denied("{\"path\":\"one\"}");
    steps_expect(tree_run(files_read, "{\"path\":\"plain\"}"), "\"plain\"");
    assert_int_equal(umount(at("in/whole")), 0);
    assert_int_equal(umount(at("in/part")), 0);
    assert_int_equal(umount(at("in/one")), 0);
}

static void without_a_state_directory_nothing_is_closed(void **state)
{
    (void)state;
    assert_int_equal(setenv("BATON_STATE", "/nonexistent/baton", 1), 0);
    steps_expect(tree_run(files_read, "{\"path\":\"plain\"}"), "\"plain\"");
    assert_int_equal(setenv("BATON_STATE", at("in/.baton"), 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_above_the_state_does_not_open_it),
        cmocka_unit_test(links_do_not_open_it),
        cmocka_unit_test(a_recursive_list_passes_it_by),
        cmocka_unit_test(nothing_is_written_into_it),
        cmocka_unit_test(mounts_do_not_open_it),
        cmocka_unit_test(without_a_state_directory_nothing_is_closed),
    };

    return cmocka_run_group_tests(tests, make, tree_remove);
}

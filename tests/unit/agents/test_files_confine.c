/* No path leaves its root, whatever its form and whatever file is there. */
#include "tests/unit/agents/files_world.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static void link_to(const char *target, const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", tree, name);
    (void)unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

static int make(void **state)
{
    char path[512];

    if (tree_make(state) != 0) {
        return -1;
    }
    tree_text("outside/secret", "SECRET");
    tree_text("in/a.txt", "inside");
    (void)snprintf(path, sizeof path, "%s/in/sub", tree);
    assert_int_equal(mkdir(path, 0755), 0);
    tree_text("in/sub/b.txt", "below");
    return 0;
}

/* Runs each case both ways: by openat2, and by the walk of systems without it. */
static void both(const char *json, const char *class, const char *words)
{
    tree_fails(tree_run(files_read, json), class, words);
    tree_files->read.walk = true;
    tree_fails(tree_run(files_read, json), class, words);
    tree_files->read.walk = false;
}

static void reads(const char *json, const char *words)
{
    steps_expect(tree_run(files_read, json), words);
    tree_files->read.walk = true;
    steps_expect(tree_run(files_read, json), words);
    tree_files->read.walk = false;
}

static void openat2_is_used_where_it_is_there(void **state)
{
    (void)state;
    assert_int_equal(tree_files->read.walk, confine_needs_walk(tree_files->read.roots[0].fd));
}

static void paths_below_the_root_are_read(void **state)
{
    (void)state;
    reads("{\"path\":\"@/in/a.txt\"}", "\"inside\"");
    reads("{\"path\":\"@/in//sub///b.txt\"}", "\"below\"");
    reads("{\"path\":\"@/in/./sub/./b.txt\"}", "\"below\"");
    reads("{\"path\":\"sub/b.txt\"}", "\"below\"");
}

static void dotdot_may_not_leave(void **state)
{
    (void)state;
    both("{\"path\":\"@/in/../outside/secret\"}", "PERMISSION_DENIED", "leads out");
    both("{\"path\":\"@/in/sub/../../outside/secret\"}", "PERMISSION_DENIED", "leads out");
    both("{\"path\":\"../outside/secret\"}", "PERMISSION_DENIED", "leads out");
    both("{\"path\":\"..\"}", "PERMISSION_DENIED", "leads out");
    /* The kernel allows ".." within the root; the walk rejects it. */
    steps_expect(tree_run(files_read, "{\"path\":\"sub/../a.txt\"}"), "\"inside\"");
}

static void absolute_paths_outside_are_denied(void **state)
{
    (void)state;
    both("{\"path\":\"@/outside/secret\"}", "PERMISSION_DENIED", "allowed is what lies below");
    both("{\"path\":\"/etc/passwd\"}", "PERMISSION_DENIED", "allowed is");
    both("{\"path\":\"@/in-not\"}", "PERMISSION_DENIED", "allowed is");
    both("{\"path\":\"@/outside/../in/a.txt\"}", "PERMISSION_DENIED", "allowed is");
}

static void links_may_stay_inside_and_not_leave(void **state)
{
    (void)state;
    link_to("../a.txt", "in/sub/in");
    link_to("sub", "in/dirlink");
    link_to("../outside/secret", "in/out");
    link_to("/etc/passwd", "in/abs");
    link_to("../outside", "in/outdir");
    link_to("loop", "in/loop");
    steps_expect(tree_run(files_read, "{\"path\":\"sub/in\"}"), "\"inside\"");
    steps_expect(tree_run(files_read, "{\"path\":\"dirlink/b.txt\"}"), "\"below\"");
    both("{\"path\":\"out\"}", "PERMISSION_DENIED", "leads out");
    both("{\"path\":\"abs\"}", "PERMISSION_DENIED", "leads out");
    both("{\"path\":\"outdir/secret\"}", "PERMISSION_DENIED", "leads out");
    tree_fails(tree_run(files_read, "{\"path\":\"loop\"}"), "PERMISSION_DENIED", "loop");
}

static void the_walk_follows_no_link_at_all(void **state)
{
    (void)state;
    link_to("../a.txt", "in/sub/in");
    tree_files->read.walk = true;
    tree_fails(tree_run(files_read, "{\"path\":\"sub/in\"}"), "PERMISSION_DENIED", "leads out");
    tree_files->read.walk = false;
}

static void magic_links_of_proc_are_denied(void **state)
{
    struct confine c = {0};
    struct bt_error err;
    struct stat st;
    int fd = -1;

    (void)state;
    assert_int_equal(confine_add(&c, "/proc/self", &err), BT_OK);
    assert_int_equal(confine_open(&c, STR_LIT("root"), CONFINE_DIR, &fd, &st, &err),
                     BT_UNAUTHORIZED);
    assert_int_equal(confine_open(&c, STR_LIT("exe"), CONFINE_FILE, &fd, &st, &err),
                     BT_UNAUTHORIZED);
    assert_int_equal(confine_open(&c, STR_LIT("status"), CONFINE_FILE, &fd, &st, &err), BT_OK);
    assert_int_equal(close(fd), 0);
    confine_done(&c);
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
    char path[512];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    (void)snprintf(path, sizeof path, "%s/in/fifo", tree);
    assert_int_equal(mkfifo(path, 0644), 0);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/in/socket", tree);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    both("{\"path\":\"fifo\"}", "VALIDATION_ERROR", "is a FIFO; expected a regular file");
    both("{\"path\":\"socket\"}", "VALIDATION_ERROR", "is a socket");
    both("{\"path\":\"sub\"}", "VALIDATION_ERROR", "is a directory; expected a regular file");
    both("{\"path\":\"@/in\"}", "VALIDATION_ERROR", "is a directory");
    assert_int_equal(close(s), 0);
}

static void devices_are_refused(void **state)
{
    struct confine c = {0};
    struct bt_error err;
    struct stat st;
    int fd = -1;

    (void)state;
    assert_int_equal(confine_add(&c, "/dev", &err), BT_OK);
    assert_int_equal(confine_open(&c, STR_LIT("null"), CONFINE_FILE, &fd, &st, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "a device"));
    confine_done(&c);
}

static void what_is_missing_is_not_found(void **state)
{
    (void)state;
    both("{\"path\":\"none\"}", "RESOURCE_NOT_FOUND", "there is no such");
    both("{\"path\":\"none/a\"}", "RESOURCE_NOT_FOUND", "there is no such");
    both("{\"path\":\"a.txt/b\"}", "RESOURCE_NOT_FOUND", "there is no such");
}

static void control_bytes_and_empty_paths_are_refused(void **state)
{
    struct bt_error err;
    struct stat st;
    int fd = -1;

    (void)state;
    both("{\"path\":\"a\\nb\"}", "VALIDATION_ERROR", "byte 2 is a control character");
    both("{\"path\":\"\\u007f\"}", "VALIDATION_ERROR", "control");
    both("{\"path\":\"\"}", "VALIDATION_ERROR", "expected 1 to");
    both("{}", "VALIDATION_ERROR", "expected 1 to");
    assert_int_equal(
        confine_open(&tree_files->read, (struct str){"a.txt\0x", 7}, CONFINE_FILE, &fd, &st, &err),
        BT_INVALID);
}

static void long_names_are_refused(void **state)
{
    char json[5200];
    char name[5001];

    (void)state;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    (void)snprintf(json, sizeof json, "{\"path\":\"%s\"}", name);
    both(json, "VALIDATION_ERROR", "expected 1 to 4095");
    (void)snprintf(json, sizeof json, "{\"path\":\"%.300s\"}", name);
    both(json, "VALIDATION_ERROR", "too long");
}

static void a_root_within_a_root_is_its_own(void **state)
{
    struct confine c = {0};
    struct bt_error err;
    struct stat st;
    char path[512];
    int fd = -1;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/in/", tree);
    assert_int_equal(confine_add(&c, path, &err), BT_OK);
    (void)snprintf(path, sizeof path, "%s/in/sub", tree);
    assert_int_equal(confine_add(&c, path, &err), BT_OK);
    (void)snprintf(path, sizeof path, "%s/in/sub/../a.txt", tree);
    assert_int_equal(confine_open(&c, str_from(path), CONFINE_FILE, &fd, &st, &err),
                     BT_UNAUTHORIZED);
    assert_int_equal(confine_open(&c, STR_LIT("b.txt"), CONFINE_FILE, &fd, &st, &err), BT_OK);
    assert_int_equal(close(fd), 0);
    confine_done(&c);
}

static void roots_are_absolute_directories(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"roots\":\"/tmp\"}",
        "{\"roots\":[\"tmp\"]}",
        "{\"roots\":[\"/does/not/exist\"]}",
        "{\"roots\":[\"/etc/passwd\"]}",
        "{\"roots\":[1]}",
        "{\"roots\":[\"/tmp\"],\"maxBytes\":0}",
        "{\"roots\":[\"/tmp\"],\"maxBytes\":99999999}",
        "{\"roots\":[\"/tmp\"],\"root\":1}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct files *f = NULL;
        struct bt_error err;
        if (files_new(bad[i], &f, &err) == BT_OK) {
            fail_msg("taken: %s", bad[i]);
        }
        assert_true(strlen(err.msg) > 5);
    }
}

/* ---- a race: names change into links out of the root and back during reads ---- */

static atomic_bool stop;

static void exchange(const char *one, const char *other)
{
    char a[512];
    char b[512];

    (void)snprintf(a, sizeof a, "%s/in/%s", tree, one);
    (void)snprintf(b, sizeof b, "%s/in/%s", tree, other);
    (void)renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static void *flip(void *self)
{
    (void)self;
    while (!atomic_load(&stop)) {
        exchange("flip", "flip-link");
        exchange("file", "file-link");
    }
    return NULL;
}

static int read_one(const char *json)
{
    const char *reply = tree_run(files_read, json);

    if (strstr(reply, "SECRET") != NULL) {
        fail_msg("it left the root: %s", reply);
    }
    return strstr(reply, "harmless") != NULL;
}

static void read_while_it_flips(bool walk)
{
    int dir = 0;
    int file = 0;

    tree_files->read.walk = walk;
    for (int i = 0; i < 3000; i++) {
        const char *reply;
        dir += read_one("{\"path\":\"flip/secret\"}");
        file += read_one("{\"path\":\"file\"}");
        reply = tree_run(files_list, "{\"path\":\".\",\"recursive\":true}");
        if (strstr(reply, "only-outside") != NULL) {
            fail_msg("the list left the root: %s", reply);
        }
    }
    tree_files->read.walk = false;
    assert_true(dir > 0 && file > 0);
}

static void a_race_of_renames_does_not_lead_out(void **state)
{
    char path[512];
    pthread_t thread;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/in/flip", tree);
    assert_int_equal(mkdir(path, 0755), 0);
    tree_text("in/flip/secret", "harmless");
    tree_text("in/file", "harmless");
    tree_text("outside/only-outside", "");
    link_to("../outside", "in/flip-link");
    link_to("../outside/secret", "in/file-link");
    assert_int_equal(pthread_create(&thread, NULL, flip, NULL), 0);
    read_while_it_flips(false);
    read_while_it_flips(true);
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openat2_is_used_where_it_is_there),
        cmocka_unit_test(paths_below_the_root_are_read),
        cmocka_unit_test(dotdot_may_not_leave),
        cmocka_unit_test(absolute_paths_outside_are_denied),
        cmocka_unit_test(links_may_stay_inside_and_not_leave),
        cmocka_unit_test(the_walk_follows_no_link_at_all),
        cmocka_unit_test(magic_links_of_proc_are_denied),
        cmocka_unit_test(what_is_no_file_is_refused_without_waiting),
        cmocka_unit_test(devices_are_refused),
        cmocka_unit_test(what_is_missing_is_not_found),
        cmocka_unit_test(control_bytes_and_empty_paths_are_refused),
        cmocka_unit_test(long_names_are_refused),
        cmocka_unit_test(a_root_within_a_root_is_its_own),
        cmocka_unit_test(roots_are_absolute_directories),
        cmocka_unit_test(a_race_of_renames_does_not_lead_out),
    };

    return cmocka_run_group_tests(tests, make, tree_remove);
}

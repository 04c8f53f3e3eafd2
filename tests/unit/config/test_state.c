/* The state directory: how it is found, and its token and endpoints under races, damage and unsafe
 * modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/client/state.h"

struct place {
    char dir[64];
    char token[96];
    char endpoints[96];
    struct bt_error err;
};

static int place_open(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    assert_non_null(p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/baton-state-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->token, sizeof p->token, "%s/token", p->dir);
    (void)snprintf(p->endpoints, sizeof p->endpoints, "%s/endpoints.json", p->dir);
    *state = p;
    return 0;
}

/* rmdir fails when a file was left behind, above all a temporary one. */
static int place_close(void **state)
{
    struct place *p = *state;
    int left;

    (void)unlink(p->token);
    (void)unlink(p->endpoints);
    left = rmdir(p->dir);
    free(p);
    return left;
}

static void write_bytes(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void expect_dir(const char *flag, const char *dir)
{
    struct bt_error err = {0};
    struct buf path;

    buf_init(&path, 8192);
    assert_int_equal(state_dir_find(flag, &path, &err), BT_OK);
    assert_string_equal(buf_cstr(&path), dir);
    buf_done(&path);
}

static void directory_is_found_by_flag_variable_xdg_and_home(void **state)
{
    char here[512];
    char expected[600];
    struct bt_error err = {0};
    struct buf path;

    (void)state;
    assert_int_equal(setenv("HOME", "/h", 1), 0);
    assert_int_equal(unsetenv("BATON_STATE"), 0);
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    expect_dir(NULL, "/h/.local/state/baton");
    assert_int_equal(setenv("XDG_STATE_HOME", "relative", 1), 0);
    expect_dir(NULL, "/h/.local/state/baton");
    assert_int_equal(setenv("XDG_STATE_HOME", "/xdg/", 1), 0);
    expect_dir("", "/xdg/baton");
    assert_int_equal(setenv("BATON_STATE", "/v", 1), 0);
    expect_dir(NULL, "/v");
    expect_dir("/f//", "/f");
    assert_non_null(getcwd(here, sizeof here));
    (void)snprintf(expected, sizeof expected, "%s/sub", here);
    expect_dir("sub", expected);
    assert_int_equal(unsetenv("BATON_STATE"), 0);
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    buf_init(&path, 8192);
    assert_int_equal(state_dir_find(NULL, &path, &err), BT_NOT_FOUND);
    buf_done(&path);
}

/* 4000 bytes; one more is named. */
static void a_path_has_its_length(void **state)
{
    char path[4003];
    struct bt_error err = {0};

    (void)state;
    for (size_t n = 4000; n <= 4001; n++) {
        const bool fits = n == 4000;
        struct buf found;
        memset(path, 'p', n);
        path[0] = '/';
        path[n] = 0;
        buf_init(&found, 8192);
        assert_int_equal(state_dir_find(path, &found, &err), fits ? BT_OK : BT_LIMIT);
        if (fits) {
            assert_string_equal(buf_cstr(&found), path);
            assert_int_equal(state_dir_make(path, &err), BT_IO); /* one name has 255 bytes */
        } else {
            assert_string_equal(err.msg,
                                "the path of the state directory is longer than 4000 bytes");
            assert_int_equal(state_dir_make(path, &err), BT_LIMIT);
            assert_non_null(strstr(err.msg, "...: a path is at most 4000 bytes"));
        }
        buf_done(&found);
    }
}

/* What the caller has no room for is no path that is cut. */
static void a_path_without_room_is_none(void **state)
{
    struct bt_error err = {0};
    struct buf found;

    (void)state;
    buf_init(&found, 8);
    assert_int_equal(state_dir_find("/12345678", &found, &err), BT_LIMIT);
    buf_done(&found);
}

static void directory_of_a_project_is_the_users_alone(void **state)
{
    struct place *p = *state;
    char here[512];
    char project[600];

    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(p->dir), 0);
    (void)snprintf(project, sizeof project, "%s/.baton", p->dir);
    assert_int_equal(setenv("HOME", "/h", 1), 0);
    assert_int_equal(unsetenv("BATON_STATE"), 0);
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    assert_int_equal(mkdir(".baton", 0700), 0);
    expect_dir(NULL, project);
    assert_int_equal(setenv("XDG_STATE_HOME", "/xdg", 1), 0);
    expect_dir(NULL, project);
    assert_int_equal(chmod(".baton", 0755), 0); /* as a checkout makes it */
    expect_dir(NULL, "/xdg/baton");
    assert_int_equal(chmod(".baton", 0700), 0);
    assert_int_equal(setenv("BATON_STATE", "/v", 1), 0);
    expect_dir(NULL, "/v");
    assert_int_equal(unsetenv("BATON_STATE"), 0);
    assert_int_equal(rename(".baton", "elsewhere"), 0);
    assert_int_equal(symlink("elsewhere", ".baton"), 0);
    expect_dir(NULL, "/xdg/baton");
    assert_int_equal(unlink(".baton"), 0);
    assert_int_equal(rmdir("elsewhere"), 0);
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    assert_int_equal(chdir(here), 0);
}

static void directory_is_made_private_with_its_parents(void **state)
{
    struct place *p = *state;
    char deep[128];
    struct stat st;

    (void)snprintf(deep, sizeof deep, "%s/a/b", p->dir);
    assert_int_equal(state_dir_make(deep, &p->err), BT_OK);
    assert_int_equal(state_dir_make(deep, &p->err), BT_OK);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(chmod(deep, 0777), 0);
    assert_int_equal(state_dir_make(deep, &p->err), BT_UNAUTHORIZED);
    assert_int_equal(rmdir(deep), 0);
    write_bytes(deep, "", 0600);
    assert_int_not_equal(state_dir_make(deep, &p->err), BT_OK);
    assert_int_equal(unlink(deep), 0);
    (void)snprintf(deep, sizeof deep, "%s/a", p->dir);
    assert_int_equal(rmdir(deep), 0);
}

/* Who may rename the state directory can put another one in its place. */
static void what_cannot_be_a_state_directory_is_named(void **state)
{
    struct place *p = *state;
    char path[128];

    write_bytes(p->token, "x", 0600);
    assert_int_equal(state_dir_make(p->token, &p->err), BT_INVALID);
    assert_non_null(strstr(p->err.msg, "is not a directory"));
    (void)snprintf(path, sizeof path, "%s/inside", p->token);
    assert_int_not_equal(state_dir_make(path, &p->err), BT_OK);
    assert_non_null(strstr(p->err.msg, "cannot be created"));
    assert_int_equal(chmod(p->dir, 0720), 0);
    assert_int_equal(state_dir_make(p->dir, &p->err), BT_UNAUTHORIZED);
    assert_non_null(strstr(p->err.msg, "others may write to it; run chmod 700"));
    assert_int_equal(chmod(p->dir, 0702), 0);
    assert_int_equal(state_dir_make(p->dir, &p->err), BT_UNAUTHORIZED);
    assert_int_equal(chmod(p->dir, 0755), 0);
    assert_int_equal(state_dir_make(p->dir, &p->err), BT_OK);
    if (geteuid() == 0) {
        assert_int_equal(chown(p->dir, 1, 1), 0);
        assert_int_equal(state_dir_make(p->dir, &p->err), BT_UNAUTHORIZED);
        assert_non_null(strstr(p->err.msg, "belongs to user 1, not to you (0)"));
        assert_int_equal(chown(p->dir, 0, 0), 0);
    }
}

/* As the token, beside it and another one. */
static void the_key_of_processes_is_made_once_and_private(void **state)
{
    struct place *p = *state;
    char one[STATE_TOKEN_LEN + 1];
    char two[STATE_TOKEN_LEN + 1];
    char token[STATE_TOKEN_LEN + 1];
    char path[96];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/processes.key", p->dir);
    assert_int_equal(state_processes_make(p->dir, one, &p->err), BT_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, STATE_TOKEN_LEN + 1);
    assert_int_equal(state_processes_make(p->dir, two, &p->err), BT_OK);
    assert_string_equal(one, two);
    assert_int_equal(state_token_make(p->dir, token, &p->err), BT_OK);
    assert_string_not_equal(one, token);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(state_processes_make(p->dir, two, &p->err), BT_OK);
    assert_string_not_equal(one, two);
    assert_int_equal(unlink(path), 0);
}

static void nobody_else_may_rename_what_is_above_the_state(void **state)
{
    struct place *p = *state;
    char deep[128];
    char middle[128];
    char link[128];

    (void)snprintf(deep, sizeof deep, "%s/a/b", p->dir);
    (void)snprintf(middle, sizeof middle, "%s/a", p->dir);
    (void)snprintf(link, sizeof link, "%s/link", p->dir);
    assert_int_equal(state_dir_make(deep, &p->err), BT_OK);
    assert_int_equal(chmod(middle, 0777), 0);
    assert_int_equal(state_dir_make(deep, &p->err), BT_UNAUTHORIZED);
    assert_non_null(strstr(p->err.msg, "everybody may write to it"));
    assert_int_equal(symlink(deep, link), 0);
    assert_int_equal(state_dir_make(link, &p->err), BT_UNAUTHORIZED);
    assert_int_equal(chmod(middle, 01777), 0); /* as /tmp */
    assert_int_equal(state_dir_make(deep, &p->err), BT_OK);
    assert_int_equal(state_dir_make(link, &p->err), BT_OK);
    assert_int_equal(chmod(middle, 0755), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(middle, 65533, 65533), 0);
        assert_int_equal(state_dir_make(deep, &p->err), BT_UNAUTHORIZED);
        assert_non_null(strstr(p->err.msg, "belongs to user 65533"));
        assert_int_equal(chown(middle, 0, 0), 0);
    }
    assert_int_equal(state_dir_make(deep, &p->err), BT_OK);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(rmdir(middle), 0);
}

static void token_is_made_once_and_private(void **state)
{
    struct place *p = *state;
    char one[STATE_TOKEN_LEN + 1];
    char two[STATE_TOKEN_LEN + 1];
    struct stat st;

    assert_int_equal(state_token_read(p->dir, one, &p->err), BT_NOT_FOUND);
    assert_int_equal(state_token_make(p->dir, one, &p->err), BT_OK);
    assert_int_equal(state_token_make(p->dir, two, &p->err), BT_OK);
    assert_string_equal(one, two);
    assert_int_equal(strlen(one), STATE_TOKEN_LEN);
    assert_int_equal(stat(p->token, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void processes_that_race_get_the_same_token(void **state)
{
    struct place *p = *state;
    char tokens[8][STATE_TOKEN_LEN + 1];
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    for (int i = 0; i < 8; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char token[STATE_TOKEN_LEN + 1] = "";
            if (state_token_make(p->dir, token, NULL) == BT_OK) {
                (void)!write(fds[1], token, sizeof token);
            }
            _exit(0);
        }
        assert_true(pid > 0);
    }
    for (int i = 0; i < 8; i++) {
        assert_true(wait(NULL) > 0);
    }
    (void)close(fds[1]);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(read(fds[0], tokens[i], sizeof tokens[i]), sizeof tokens[i]);
        assert_string_equal(tokens[i], tokens[0]);
    }
    (void)close(fds[0]);
}

static void careless_or_damaged_tokens_are_refused(void **state)
{
    struct place *p = *state;
    char token[STATE_TOKEN_LEN + 1] = "untouched";

    assert_int_equal(state_token_make(p->dir, token, &p->err), BT_OK);
    assert_int_equal(chmod(p->token, 0644), 0);
    assert_int_equal(state_token_read(p->dir, token, &p->err), BT_UNAUTHORIZED);
    write_bytes(p->token, "0123\n", 0600);
    assert_int_equal(state_token_make(p->dir, token, &p->err), BT_INVALID);
    write_bytes(p->token, "", 0600);
    assert_int_equal(state_token_read(p->dir, token, &p->err), BT_INVALID);
    for (size_t i = 0; i < STATE_TOKEN_LEN; i++) { /* one letter that is no digit, at any place */
        char text[STATE_TOKEN_LEN + 1];
        memset(text, i % 2 == 0 ? 'a' : '9', STATE_TOKEN_LEN);
        text[STATE_TOKEN_LEN] = 0;
        write_bytes(p->token, text, 0600);
        assert_int_equal(state_token_read(p->dir, token, &p->err), BT_OK);
        text[i] = "gAF/:`G "[i % 8];
        write_bytes(p->token, text, 0600);
        assert_int_equal(state_token_read(p->dir, token, &p->err), BT_INVALID);
    }
    assert_int_equal(unlink(p->token), 0);
    assert_int_equal(symlink("/dev/zero", p->token), 0);
    assert_int_not_equal(state_token_read(p->dir, token, &p->err), BT_OK);
}

static void endpoints_are_read_as_written_and_removed_by_their_owner(void **state)
{
    struct place *p = *state;
    struct state_endpoints e = {.control = "tcp://127.0.0.1:1",
                                .events = "tcp://127.0.0.1:2",
                                .version = "0.1.0",
                                .instance = uuid_new(),
                                .pid = 4294967296u};
    struct state_endpoints got;
    struct stat st;
    char spare[512];

    assert_int_equal(state_endpoints_read(p->dir, &got, &p->err), BT_NOT_FOUND);
    assert_int_equal(state_endpoints_remove(p->dir, e.instance, &p->err), BT_OK);
    assert_int_equal(state_endpoints_write(p->dir, &e, &p->err), BT_OK);
    assert_int_equal(state_endpoints_write(p->dir, &e, &p->err), BT_OK);
    assert_int_equal(state_endpoints_read(p->dir, &got, &p->err), BT_OK);
    assert_string_equal(got.control, e.control);
    assert_string_equal(got.events, e.events);
    assert_string_equal(got.version, e.version);
    assert_true(uuid_eq(got.instance, e.instance));
    assert_true(got.pid == e.pid);
    assert_int_equal(state_endpoints_remove(p->dir, uuid_new(), &p->err), BT_OK);
    assert_int_equal(access(p->endpoints, F_OK), 0);
    assert_int_equal(state_endpoints_remove(p->dir, e.instance, &p->err), BT_OK);
    assert_int_not_equal(access(p->endpoints, F_OK), 0);
    /* the block that the next start has when the disk is full */
    (void)snprintf(spare, sizeof spare, "%s/endpoints.spare", p->dir);
    assert_int_equal(stat(spare, &st), 0);
    assert_int_equal(st.st_size, 4096);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(unlink(spare), 0);
}

static void daemon_has_ended_when_its_process_has(void **state)
{
    struct state_endpoints e = {.pid = (uint64_t)getpid(), .pid_namespace = state_pid_namespace()};
    int fds[2];
    char byte;

    (void)state;
    assert_int_not_equal(e.pid_namespace, 0);
    assert_false(state_daemon_ended(&e));
    e.pid = 0; /* not said */
    assert_false(state_daemon_ended(&e));
    e.pid = UINT64_MAX;
    assert_false(state_daemon_ended(&e));
    assert_int_equal(pipe(fds), 0);
    e.pid = (uint64_t)fork();
    if (e.pid == 0) {
        _exit(0);
    }
    assert_int_equal(close(fds[1]), 0);
    assert_int_equal(read(fds[0], &byte, 1), 0); /* it has closed its descriptors */
    while (!state_daemon_ended(&e)) {            /* a zombie, in a moment */
    }
    e.pid_namespace++; /* another container: the number says nothing */
    assert_false(state_daemon_ended(&e));
    e.pid_namespace = 0;
    assert_true(state_daemon_ended(&e));
    assert_int_equal(waitpid((pid_t)e.pid, NULL, 0), (pid_t)e.pid);
    assert_true(state_daemon_ended(&e));
    (void)close(fds[0]);
}

static void token_may_go_to_its_owner_and_the_users_of_the_variable(void **state)
{
    uint32_t uids[STATE_TRUSTED_MAX];

    (void)state;
    (void)unsetenv("BATON_ALLOW_UIDS");
    assert_int_equal(state_trusted(7, uids), 1);
    assert_int_equal(uids[0], 7);
    assert_int_equal(
        setenv("BATON_ALLOW_UIDS", "1000,x,-1,4294967295,99999999999,,12 ,0x1,1001", 1), 0);
    assert_int_equal(state_trusted(7, uids), 3);
    assert_int_equal(uids[1], 1000);
    assert_int_equal(uids[2], 1001);
    assert_int_equal(setenv("BATON_ALLOW_UIDS", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18", 1),
                     0);
    assert_int_equal(state_trusted(7, uids), STATE_TRUSTED_MAX);
    (void)unsetenv("BATON_ALLOW_UIDS");
}

#define ID "\"0190F3C2-7A1B-7C3D-9E4F-0123456789AB\""
#define END(control, version, instance, pid)                                                       \
    "{\"control\":" control ",\"events\":\"\",\"version\":" version ",\"instance\":" instance      \
    ",\"pid\":" pid "}"

static void damaged_endpoints_are_told_with_their_file(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"control\":1}",
        "{\"control\":\"x\",\"events\":\"y\"}",
        END("\"\"", "\"v\"", ID, "1"),
        END("7", "\"v\"", ID, "1"),
        END("\"a\\u0000b\"", "\"v\"", ID, "1"),
        END("\"x\"", "\"\"", ID, "1"),
        END("\"x\"", "\"1234567890123456789012345678901x\"", ID, "1"),
        END("\"x\"", "\"v\"", "\"x\"", "1"),
        END("\"x\"", "\"v\"", ID, "\"1\""),
        END("\"x\"", "\"v\"", ID, "-1")};
    struct place *p = *state;
    struct state_endpoints got;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_bytes(p->endpoints, texts[i], 0600);
        assert_int_equal(state_endpoints_read(p->dir, &got, &p->err), BT_INVALID);
        assert_non_null(strstr(p->err.msg, p->endpoints));
    }
    write_bytes(p->endpoints, END("\"x\"", "\"123456789012345678901234567890x\"", ID, "1"), 0600);
    assert_int_equal(state_endpoints_read(p->dir, &got, &p->err), BT_OK);
    assert_true(got.pid == 1 && got.pid_namespace == 0 && got.events[0] == 0);
}

/* A spare block that is there stays. */
static void endpoints_that_are_removed_leave_one_spare_block(void **state)
{
    struct place *p = *state;
    struct state_endpoints e = {.control = "c", .version = "v", .instance = uuid_new(), .pid = 7};
    char spare[512];
    struct stat st;

    (void)snprintf(spare, sizeof spare, "%s/endpoints.spare", p->dir);
    p->err.code = BT_INVALID;
    assert_int_equal(state_endpoints_write(p->dir, &e, &p->err), BT_OK);
    assert_int_equal(p->err.code, BT_INVALID); /* nothing is said */
    write_bytes(spare, "kept", 0600);
    assert_int_equal(state_endpoints_remove(p->dir, e.instance, &p->err), BT_OK);
    assert_int_equal(access(p->endpoints, F_OK), -1);
    assert_true(stat(spare, &st) == 0 && st.st_size == 4);
    assert_int_equal(unlink(spare), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, place_open, place_close)
    const struct CMUnitTest tests[] = {
        TEST(directory_is_found_by_flag_variable_xdg_and_home),
        TEST(a_path_has_its_length),
        TEST(a_path_without_room_is_none),
        TEST(directory_of_a_project_is_the_users_alone),
        TEST(directory_is_made_private_with_its_parents),
        TEST(what_cannot_be_a_state_directory_is_named),
        TEST(the_key_of_processes_is_made_once_and_private),
        TEST(nobody_else_may_rename_what_is_above_the_state),
        TEST(token_is_made_once_and_private),
        TEST(processes_that_race_get_the_same_token),
        TEST(careless_or_damaged_tokens_are_refused),
        TEST(endpoints_are_read_as_written_and_removed_by_their_owner),
        TEST(damaged_endpoints_are_told_with_their_file),
        TEST(endpoints_that_are_removed_leave_one_spare_block),
        TEST(daemon_has_ended_when_its_process_has),
        TEST(token_may_go_to_its_owner_and_the_users_of_the_variable),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}

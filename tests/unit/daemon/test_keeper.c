/* Which shard of a node starts the agents, and what the others know of their processes. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/base/uuid.h"
#include "supervisor/keeper.h"

#define ONE "0190F3C2-7A1B-7C3D-9E4F-000000000001"
#define TWO "0190F3C2-7A1B-7C3D-9E4F-000000000002"

static char dir[64];
static struct process_keys keys = {.secret = {1, 2, 3}};

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/baton-keeper-XXXXXX");
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    static const char *const files[] = {"agents.lock", "agents.list", "agents.list.new"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    return rmdir(dir);
}

static void one_shard_has_its_agents(void **state)
{
    struct keeper k;
    bool taken = true;

    (void)state;
    keeper_init(&k, NULL);
    assert_true(keeper_has(&k));
    assert_true(keeper_take(&k, 0, &taken));
    assert_false(taken);
    assert_int_equal(k.look_at, MSEC_NEVER);
    keeper_add(&k, str_from(ONE), str_from("calc"));
    keeper_write(&k, str_from(""));
}

static void of_several_one_has_them_and_then_the_next(void **state)
{
    struct keeper a;
    struct keeper b;
    bool taken;

    (void)state;
    keeper_init(&a, dir);
    keeper_init(&b, dir);
    assert_true(keeper_take(&a, 100, &taken));
    assert_true(taken);
    assert_true(keeper_take(&a, 100, &taken));
    assert_false(taken); /* only the first time */
    assert_false(keeper_take(&b, 100, &taken));
    assert_int_equal(b.look_at, 350);
    (void)close(a.lock); /* its process ends */
    assert_false(keeper_take(&b, 349, &taken));
    assert_true(keeper_take(&b, 350, &taken));
    assert_true(taken);
    (void)close(b.lock);
}

static void expect(struct keeper *k, const char *ids)
{
    struct credential *at = NULL;
    char found[512] = "";
    uint32_t n = 0;

    assert_true(keeper_read(k, &keys, &at, &n));
    for (uint32_t i = 0; i < n; i++) {
        struct credential its;
        (void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s %s;", at[i].who.id,
                       at[i].who.agents[0]);
        assert_true(process_credential(&keys, str_from(at[i].who.id + strlen("process:")),
                                       str_from(at[i].who.agents[0]), &its));
        assert_memory_equal(its.key, at[i].key, sizeof its.key);
    }
    assert_string_equal(found, ids);
    free(at);
}

static void the_others_know_which_processes_live(void **state)
{
    struct keeper k;
    struct credential *at = NULL;
    uint32_t n = 0;

    (void)state;
    keeper_init(&k, dir);
    assert_false(keeper_read(&k, &keys, &at, &n)); /* there is no list yet */
    keeper_add(&k, str_from(ONE), str_from("calc"));
    expect(&k, "process:" ONE " calc;");
    assert_false(keeper_read(&k, &keys, &at, &n)); /* as before */
    keeper_add(&k, str_from(TWO), str_from("exec"));
    expect(&k, "process:" ONE " calc;process:" TWO " exec;");
    keeper_write(&k, str_from(TWO " exec\n"));
    expect(&k, "process:" TWO " exec;");
    keeper_write(&k, str_from(""));
    expect(&k, "");
}

/* Before a process exists its order is encoded, to see whether it fits. */
static void what_has_no_process_is_not_in_the_list(void **state)
{
    struct keeper k;
    struct credential *at = NULL;
    uint32_t n = 0;

    (void)state;
    keeper_init(&k, dir);
    keeper_add(&k, str_from(""), str_from("calc"));
    assert_false(keeper_read(&k, &keys, &at, &n));
}

/* A service manager may start a program without one: the first file has its number then. */
static void a_daemon_without_standard_input_keeps_agents_as_well(void **state)
{
    const int input = dup(STDIN_FILENO);
    struct keeper k;
    bool is_new = false;

    (void)state;
    assert_int_equal(close(STDIN_FILENO), 0);
    keeper_init(&k, dir);
    keeper_add(&k, str_from(ONE), str_from("calc"));
    expect(&k, "process:" ONE " calc;");
    keeper_write(&k, str_from(TWO " exec\n"));
    expect(&k, "process:" TWO " exec;");
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* each is closed */
    assert_true(keeper_take(&k, 1000, &is_new));
    assert_true(is_new);
    assert_int_equal(k.lock, STDIN_FILENO);
    assert_true(keeper_has(&k));
    assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(close(input), 0);
}

static void put_list(const char *text, size_t more)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/agents.list", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    for (size_t i = 0; i < more; i++) {
        assert_int_equal(fputc('\n', f), '\n');
    }
    assert_int_equal(fclose(f), 0);
}

/* A line that is not written to its end names nobody; ids have their lengths. */
static void only_whole_lines_of_the_list_count(void **state)
{
    static const char longest[] =
        "1234567890123456789012345678901234567890123456789012345678901234";
    char text[256];
    struct keeper k;

    (void)state;
    keeper_init(&k, dir);
    put_list(ONE " calc\n" TWO " ex", 0);
    expect(&k, "process:" ONE " calc;");
    put_list("", 3);
    expect(&k, "");
    (void)snprintf(text, sizeof text, ONE " %s\n", longest);
    put_list(text, 0);
    (void)snprintf(text, sizeof text, "process:" ONE " %s;", longest);
    expect(&k, text);
}

/* As long as two lines for each instance that there may be, and a byte longer. */
static void a_list_that_is_too_long_is_none(void **state)
{
    const size_t most = (size_t)2 * LIMIT_INSTANCES * (UUID_TEXT_LEN + LIMIT_ID_BYTES + 2);
    struct keeper k;
    struct credential *at = NULL;
    uint32_t n = 7;

    (void)state;
    keeper_init(&k, dir);
    put_list("", most + 1);
    assert_false(keeper_read(&k, &keys, &at, &n));
    put_list("", most);
    assert_true(keeper_read(&k, &keys, &at, &n));
    assert_int_equal(n, 0);
    free(at);
}

static void the_files_are_for_this_user_and_no_links(void **state)
{
    static const char *const files[] = {"agents.lock", "agents.list"};
    struct keeper k;
    struct credential *at = NULL;
    bool taken;
    uint32_t n = 0;
    char path[128];
    struct stat st;

    (void)state;
    keeper_init(&k, dir);
    assert_true(keeper_take(&k, 0, &taken));
    assert_int_equal(k.look_at, MSEC_NEVER);
    keeper_add(&k, str_from(ONE), str_from("calc"));
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    keeper_write(&k, str_from(TWO " exec\n"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    keeper_add(&k, str_from(ONE), str_from("calc")); /* logged, and no more */
    assert_false(keeper_read(&k, &keys, &at, &n));
    (void)close(k.lock);
    (void)snprintf(path, sizeof path, "%s/agents.lock", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    keeper_init(&k, dir);
    assert_false(keeper_take(&k, 0, &taken));
    assert_false(keeper_has(&k));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_shard_has_its_agents),
        TEST(of_several_one_has_them_and_then_the_next),
        TEST(the_others_know_which_processes_live),
        TEST(what_has_no_process_is_not_in_the_list),
        TEST(a_daemon_without_standard_input_keeps_agents_as_well),
        TEST(only_whole_lines_of_the_list_count),
        TEST(a_list_that_is_too_long_is_none),
        TEST(the_files_are_for_this_user_and_no_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

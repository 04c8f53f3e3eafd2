/* What a node writes down of its fleet: where its shards listen, the map for clients, and the
 * address of one shard of this host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/node/node_internal.h"
#include "tests/support/cmocka.h"

static char dir[64];
static struct node_options opt;
static struct node *n;

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/baton-map-XXXXXX");
    assert_non_null(mkdtemp(dir));
    opt = (struct node_options){.state_dir = dir, .name = "a", .remote = ""};
    n = calloc(1, sizeof *n);
    assert_non_null(n);
    *n = (struct node){.opt = &opt, .all = 3, .shards_n = 3, .instance = uuid_new()};
    buf_init(&n->written, 128 * 1024);
    buf_init(&n->places, 128 * 1024);
    for (uint32_t i = 0; i < 3; i++) {
        n->shards[i] = (struct journal_shard){.shard = i, .epoch = 10 + i};
    }
    return 0;
}

static int tear_down(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    for (uint32_t i = 0; i < n->nodes_n; i++) {
        free(n->nodes[i].places);
    }
    buf_done(&n->written);
    buf_done(&n->places);
    free(n);
    pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid ? 0 : -1;
}

static const char *path(const char *name)
{
    static char text[128];

    (void)snprintf(text, sizeof text, "%s/%s", dir, name);
    return text;
}

/* The file, or "" when there is none. */
static const char *content(const char *name)
{
    static char text[8192];
    FILE *f = fopen(path(name), "re");
    size_t len = 0;

    if (f != NULL) {
        len = fread(text, 1, sizeof text - 1, f);
        assert_int_equal(fclose(f), 0);
    }
    text[len] = 0;
    return text;
}

/* The shard runs as that process, and has written down where it listens, as this one. */
static void listens(uint32_t shard, pid_t pid, pid_t says)
{
    struct state_endpoints at = {.pid = (uint64_t)says, .instance = uuid_new(), .version = "x"};
    char of[NODE_PATH_MAX];
    struct bt_error err;

    node_shard_dir(n, shard, of);
    assert_int_equal(state_dir_make(of, &err), BT_OK);
    (void)snprintf(at.control, sizeof at.control, "tcp://127.0.0.1:%u", 100 + shard);
    (void)snprintf(at.events, sizeof at.events, "tcp://127.0.0.1:%u", 200 + shard);
    assert_int_equal(state_endpoints_write(of, &at, &err), BT_OK);
    n->children[shard].pid = pid;
}

static void leads(uint32_t shard, const char *node, bool led)
{
    (void)snprintf(n->shards[shard].node, sizeof n->shards[shard].node, "%s", node);
    n->shards[shard].led = led;
}

/* Another node, and what it says of its shards; NULL = nothing. */
static void has_node(const char *name, const char *places)
{
    struct journal_node *of = &n->nodes[n->nodes_n++];

    (void)snprintf(of->node, sizeof of->node, "%s", name);
    of->places = places != NULL ? strdup(places) : NULL;
}

static void a_shard_listens_at_the_port_of_its_number(void **state)
{
    static const struct {
        const char *url;
        uint32_t shard;
        const char *want;
    } cases[] = {{"tls+tcp://h:7000", 0, "tls+tcp://h:7000"},
                 {"tls+tcp://h:7000", 3, "tls+tcp://h:7003"},
                 {"tls+tcp://[::1]:7000", 1, "tls+tcp://[::1]:7001"},
                 {"tls+tcp://h:65535", 0, "tls+tcp://h:65535"},
                 {"tls+tcp://h:65534", 1, "tls+tcp://h:65535"},
                 {"tls+tcp://h:65535", 1, "tls+tcp://h:65535"},
                 {"tls+tcp://h:0", 2, "tls+tcp://h:0"},
                 {"tls+tcp://h:1", 2, "tls+tcp://h:3"},
                 {"tls+tcp://h:x", 2, "tls+tcp://h:x"},
                 {"tls+tcp://h:1x", 2, "tls+tcp://h:1x"},
                 {"h", 2, "h"},
                 {"", 2, ""}};
    char got[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        node_url(cases[i].url, cases[i].shard, got, sizeof got);
        assert_string_equal(got, cases[i].want);
    }
}

static void the_places_are_those_of_shards_that_run(void **state)
{
    (void)state;
    node_find_places(n);
    assert_string_equal(buf_cstr(&n->places), "[]");
    listens(0, 41, 41);
    listens(1, 42, 41); /* what an earlier process wrote */
    listens(2, 43, 43);
    opt.remote = "tls+tcp://h:7000";
    node_find_places(n);
    assert_string_equal(
        buf_cstr(&n->places),
        "[{\"shard\":0,\"control\":\"tcp://127.0.0.1:100\",\"events\":\"tcp://127.0.0.1:200\","
        "\"remote\":\"tls+tcp://h:7000\"},{\"shard\":2,\"control\":\"tcp://127.0.0.1:102\","
        "\"events\":\"tcp://127.0.0.1:202\",\"remote\":\"tls+tcp://h:7002\"}]");
    n->children[0].pid = 0; /* it has ended */
    n->all = 2;
    node_find_places(n);
    assert_string_equal(buf_cstr(&n->places), "[]");
}

static void the_map_names_who_leads_each_shard_and_where(void **state)
{
    struct stat st;

    (void)state;
    listens(0, 41, 41);
    node_find_places(n);
    leads(0, "a", true);
    leads(1, "b", true);
    leads(2, "", false);
    has_node("a", "[{\"shard\":1,\"control\":\"no\"}]"); /* of itself it knows better */
    has_node("b", "[{\"shard\":0,\"control\":\"no\"},{\"shard\":1,\"control\":\"tcp://b:1\","
                  "\"events\":\"tcp://b:2\",\"remote\":\"tls+tcp://b:3\"}]");
    assert_false(node_write_map(n));
    assert_string_equal(
        content("fleet.json"),
        "{\"version\":33,\"shards\":[{\"shard\":0,\"epoch\":10,\"node\":\"a\",\"control\":"
        "\"tcp://127.0.0.1:100\",\"remote\":\"\",\"events\":\"tcp://127.0.0.1:200\",\"here\":true},"
        "{\"shard\":1,\"epoch\":11,\"node\":\"b\",\"control\":\"tcp://b:1\",\"remote\":"
        "\"tls+tcp://b:3\",\"events\":\"tcp://b:2\",\"here\":false},"
        "{\"shard\":2,\"epoch\":12,\"node\":\"\",\"control\":\"\",\"remote\":\"\",\"events\":\"\","
        "\"here\":false}]}");
    assert_true(stat(path("fleet.json"), &st) == 0 && (st.st_mode & 0777) == 0600);
    leads(2, "b", true); /* led, and it is not said where */
    assert_false(node_write_map(n));
    free(n->nodes[1].places);
    n->nodes[1].places =
        strdup("[{\"shard\":1,\"control\":\"x\"},{\"shard\":2,\"control\":\"y\"}]");
    assert_true(node_write_map(n));
    n->all = 4; /* it grows */
    assert_false(node_write_map(n));
}

static void a_shard_that_is_not_led_has_no_address(void **state)
{
    static const char *const wrong[] = {
        "", "x", "{}", "[]", "[7]", "[{\"shard\":\"1\"}]", "[{\"control\":\"tcp://b:1\"}]"};

    (void)state;
    leads(1, "b", false);
    has_node("b", "[{\"shard\":1,\"control\":\"tcp://b:1\"}]");
    (void)node_write_map(n);
    assert_null(strstr(content("fleet.json"), "tcp://b:1"));
    leads(1, "c", true); /* by who is not there */
    (void)node_write_map(n);
    assert_null(strstr(content("fleet.json"), "tcp://b:1"));
    leads(1, "b", true);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        free(n->nodes[0].places);
        n->nodes[0].places = strdup(wrong[i]);
        assert_false(node_write_map(n));
        assert_non_null(strstr(content("fleet.json"),
                               "{\"shard\":1,\"epoch\":11,\"node\":\"b\",\"control\":\"\","));
    }
    free(n->nodes[0].places);
    n->nodes[0].places = NULL;
    assert_false(node_write_map(n));
}

/* A map that is as it was is not written again. */
static void the_map_is_written_when_it_changes(void **state)
{
    (void)state;
    (void)node_write_map(n);
    assert_int_equal(unlink(path("fleet.json")), 0);
    (void)node_write_map(n);
    assert_string_equal(content("fleet.json"), "");
    n->shards[2].epoch++;
    (void)node_write_map(n);
    assert_non_null(strstr(content("fleet.json"), "\"epoch\":13"));
    assert_int_equal(access(path("fleet.json.new"), F_OK), -1);
}

/* A link in its place is not followed. */
static void a_map_that_cannot_be_written_is_left(void **state)
{
    (void)state;
    assert_int_equal(symlink("elsewhere", path("fleet.json.new")), 0);
    (void)node_write_map(n);
    assert_int_equal(access(path("elsewhere"), F_OK), -1);
    assert_string_equal(content("fleet.json"), "");
}

/* A shard of this node before one of another; none that has an address for other hosts. */
static void the_endpoints_name_a_shard_of_this_host(void **state)
{
    struct state_endpoints at;
    struct bt_error err;

    (void)state;
    leads(0, "b", true);
    has_node("b", "[{\"shard\":0,\"control\":\"tcp://b:1\",\"remote\":\"tls+tcp://b:3\"}]");
    (void)node_write_map(n);
    assert_int_equal(state_endpoints_read(dir, &at, &err), BT_NOT_FOUND);
    free(n->nodes[0].places);
    n->nodes[0].places = strdup("[{\"shard\":0,\"control\":\"tcp://b:1\",\"remote\":\"\"}]");
    (void)node_write_map(n);
    assert_int_equal(state_endpoints_read(dir, &at, &err), BT_OK);
    assert_string_equal(at.control, "tcp://b:1");
    assert_string_equal(at.version, BATON_VERSION);
    assert_int_equal(at.pid, getpid());
    assert_true(uuid_eq(at.instance, n->instance));
    listens(1, 41, 41);
    listens(2, 42, 42);
    node_find_places(n);
    leads(1, "a", true);
    leads(2, "a", true);
    (void)node_write_map(n);
    assert_int_equal(state_endpoints_read(dir, &at, &err), BT_OK);
    assert_string_equal(at.control, "tcp://127.0.0.1:102");
    assert_int_equal(unlink(path("endpoints.json")), 0);
    (void)node_write_map(n); /* it is as it was */
    assert_string_equal(content("endpoints.json"), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_shard_listens_at_the_port_of_its_number),
        TEST(the_places_are_those_of_shards_that_run),
        TEST(the_map_names_who_leads_each_shard_and_where),
        TEST(a_shard_that_is_not_led_has_no_address),
        TEST(the_map_is_written_when_it_changes),
        TEST(a_map_that_cannot_be_written_is_left),
        TEST(the_endpoints_name_a_shard_of_this_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

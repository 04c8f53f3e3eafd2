/* The graph: merging is idempotent by key, all or nothing; walks are bounded and find every
 * shortest way. A random graph is compared with a search by hand. */
#include "tests/support/cmocka.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "agents/graph/graph.h"
#include "agents/sdk/card.h"
#include "tests/support/random.h"
#include "tests/unit/agents/steps.h"

static char dir[PATH_MAX];
static struct graph *graph;

static const char *run(const char *skill, const char *parameters)
{
    struct buf json;
    const char *reply = "";

    buf_init(&json, 8 * 1024 * 1024);
    buf_printf(&json, "{\"parameters\":%s}", parameters);
    for (size_t i = 0; i < graph_skill_count; i++) {
        if (strcmp(graph_skills[i].id, skill) == 0) {
            reply = steps_run(steps_make(skill, buf_cstr(&json)), graph_skills[i].run, graph);
        }
    }
    buf_done(&json);
    return reply;
}

static int begin(void **state)
{
    char settings[PATH_MAX + 64];
    struct bt_error err;

    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/baton-graph-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(settings, sizeof settings, "{\"database\":\"%s/sub/graph.db\"}", dir);
    if (graph_new(settings, &graph, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return 0;
}

static int end(void **state)
{
    char command[PATH_MAX];
    static const char *const names[] = {"sub/graph.db", "sub/graph.db-wal", "sub/graph.db-shm"};

    (void)state;
    graph_free(graph);
    steps_forget();
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(command, sizeof command, "%.200s/%s", dir, names[i]);
        (void)unlink(command);
    }
    (void)snprintf(command, sizeof command, "%.200s/sub", dir);
    (void)rmdir(command);
    return rmdir(dir);
}

static void the_card_is_one_that_a_supervisor_takes(void **state)
{
    const struct bt_agent_def def = {
        .agent_id = "graph", .skills = graph_skills, .skill_count = graph_skill_count};
    struct card card;
    struct bt_error err;

    (void)state;
    if (card_init(&card, &def, &err) != BT_OK || card_check_complete(&card, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    card_done(&card);
}

#define SHOP                                                                                       \
    "{\"entities\":[{\"key\":\"web\",\"kind\":\"service\",\"properties\":{\"port\":80}},"          \
    "{\"key\":\"api\",\"kind\":\"service\"},{\"key\":\"db\",\"kind\":\"store\",\"name\":\"The "    \
    "DB\"},"                                                                                       \
    "{\"key\":\"ops\",\"kind\":\"team\"}],\"relations\":["                                         \
    "{\"from\":\"web\",\"kind\":\"calls\",\"to\":\"api\"},"                                        \
    "{\"from\":\"api\",\"kind\":\"uses\",\"to\":\"db\"},"                                          \
    "{\"from\":\"ops\",\"kind\":\"owns\",\"to\":\"db\"},"                                          \
    "{\"from\":\"db\",\"kind\":\"feeds\",\"to\":\"web\"}]}"

static void merging_again_changes_nothing(void **state)
{
    (void)state;
    steps_expect(run("merge", SHOP),
                 "{\"entitiesAdded\":4,\"entitiesChanged\":0,\"entitiesUnchanged\":0,"
                 "\"relationsAdded\":4,\"relationsChanged\":0,\"relationsUnchanged\":0}");
    steps_expect(run("merge", SHOP),
                 "{\"entitiesAdded\":0,\"entitiesChanged\":0,\"entitiesUnchanged\":4,"
                 "\"relationsAdded\":0,\"relationsChanged\":0,\"relationsUnchanged\":4}");
    steps_expect(run("find", "{}"), "\"count\":4,\"truncated\":false");
}

static void what_is_given_is_merged_and_the_rest_stays(void **state)
{
    (void)state;
    steps_expect(run("merge", SHOP), "completed");
    steps_expect(run("merge", "{\"entities\":[{\"key\":\"web\",\"name\":\"Shop\",\"properties\":"
                              "{\"tls\":true,\"port\":null}}],\"relations\":[{\"from\":\"web\","
                              "\"kind\":\"calls\",\"to\":\"api\",\"properties\":{\"n\":2}}]}"),
                 "\"entitiesChanged\":1,\"entitiesUnchanged\":0,\"relationsAdded\":0,"
                 "\"relationsChanged\":1");
    steps_expect(run("find", "{\"text\":\"SHOP\"}"),
                 "{\"key\":\"web\",\"kind\":\"service\",\"name\":\"Shop\",\"properties\":{\"tls\":"
                 "true}}");
}

/* A mistake anywhere leaves all as it was. */
static void a_merge_is_whole_or_nothing(void **state)
{
    static const struct {
        const char *parameters, *part;
    } rows[] = {
        {"{\"entities\":[{\"key\":\"new\"}],\"relations\":[{\"from\":\"new\",\"kind\":\"x\",\"to\":"
         "\"nobody\"}]}",
         "relations[0]: to: there is no entity 'nobody'"},
        {"{\"entities\":[{\"key\":\"new\"},{\"name\":\"x\"}]}",
         "entities[1]: key: expected a text"},
        {"{\"entities\":[{\"key\":\"new\"},{\"key\":\"\"}]}", "entities[1]: key: expected"},
        {"{\"entities\":[{\"key\":\"new\",\"colour\":\"red\"}]}", "unknown member 'colour'"},
        {"{\"entities\":[{\"key\":\"new\",\"properties\":[1]}]}", "properties: expected an object"},
        {"{\"entities\":[\"new\"]}", "entities[0]: expected an object"},
        {"{\"entities\":{}}", "entities: expected a list"},
        {"{}", "give entities, relations, or both"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *reply = run("merge", rows[i].parameters);
        steps_expect(reply, "VALIDATION_ERROR");
        steps_expect(reply, rows[i].part);
    }
    steps_expect(run("find", "{}"), "\"count\":0");
}

static void neighbours_have_depth_direction_and_kinds(void **state)
{
    (void)state;
    steps_expect(run("merge", SHOP), "completed");
    steps_expect(
        run("neighbours", "{\"key\":\"web\",\"direction\":\"out\"}"),
        "\"entities\":[{\"key\":\"api\",\"kind\":\"service\",\"properties\":{},\"depth\":1,"
        "\"via\":[{\"from\":\"web\",\"kind\":\"calls\",\"to\":\"api\"}]}],\"count\":1");
    steps_expect(run("neighbours", "{\"key\":\"web\",\"direction\":\"in\"}"), "\"key\":\"db\"");
    steps_expect(run("neighbours", "{\"key\":\"web\",\"depth\":2}"), "\"count\":3");
    steps_expect(run("neighbours", "{\"key\":\"web\",\"depth\":2,\"kinds\":[\"calls\"]}"),
                 "\"count\":1");
    steps_expect(run("neighbours", "{\"key\":\"web\",\"depth\":8,\"limit\":1}"),
                 "[not whole: 1 of 3 entities");
    steps_expect(run("neighbours", "{\"key\":\"nobody\"}"), "key: there is no entity 'nobody'");
    steps_expect(run("neighbours", "{\"key\":\"web\",\"depth\":9}"), "depth: expected a number");
    steps_expect(run("neighbours", "{\"key\":\"web\",\"direction\":\"up\"}"),
                 "direction: expected");
}

static void every_shortest_path_is_found(void **state)
{
    (void)state;
    steps_expect(
        run("merge",
            "{\"entities\":[{\"key\":\"a\"},{\"key\":\"b\"},{\"key\":\"c\"},{\"key\":\"d\"},"
            "{\"key\":\"e\"},{\"key\":\"z\"}],\"relations\":["
            "{\"from\":\"a\",\"kind\":\"r\",\"to\":\"b\"},{\"from\":\"a\",\"kind\":\"r\","
            "\"to\":\"c\"},{\"from\":\"b\",\"kind\":\"r\",\"to\":\"d\"},{\"from\":\"c\","
            "\"kind\":\"r\",\"to\":\"d\"},{\"from\":\"c\",\"kind\":\"s\",\"to\":\"d\"},"
            "{\"from\":\"d\",\"kind\":\"r\",\"to\":\"e\"},{\"from\":\"e\",\"kind\":\"r\","
            "\"to\":\"a\"}]}"),
        "completed");
    steps_expect(run("paths", "{\"from\":\"a\",\"to\":\"d\",\"direction\":\"out\"}"),
                 "\"length\":2,\"count\":3,\"truncated\":false");
    steps_expect(run("paths", "{\"from\":\"a\",\"to\":\"d\",\"direction\":\"out\",\"limit\":2}"),
                 "\"count\":2,\"truncated\":true");
    steps_expect(run("paths", "{\"from\":\"a\",\"to\":\"e\",\"direction\":\"out\",\"depth\":2}"),
                 "\"paths\":[],\"count\":0");
    steps_expect(run("paths", "{\"from\":\"a\",\"to\":\"e\",\"direction\":\"out\",\"depth\":3}"),
                 "\"length\":3");
    steps_expect(run("paths", "{\"from\":\"a\",\"to\":\"e\"}"),
                 "[{\"from\":\"e\",\"kind\":\"r\",\"to\":\"a\"}]");
    steps_expect(run("paths", "{\"from\":\"a\",\"to\":\"z\"}"), "no path");
    steps_expect(run("paths", "{\"from\":\"a\",\"to\":\"a\"}"), "\"length\":0");
}

static void removing_takes_relations_along(void **state)
{
    (void)state;
    steps_expect(run("merge", SHOP), "completed");
    steps_expect(run("remove", "{\"relations\":[{\"from\":\"ops\",\"kind\":\"owns\",\"to\":\"db\"},"
                               "{\"from\":\"ops\",\"kind\":\"owns\",\"to\":\"web\"}]}"),
                 "\"entitiesRemoved\":0,\"relationsRemoved\":1");
    steps_expect(run("remove", "{\"entities\":[\"db\",\"nobody\"]}"),
                 "\"entitiesRemoved\":1,\"relationsRemoved\":2");
    steps_expect(run("find", "{}"), "\"count\":3");
    steps_expect(run("neighbours", "{\"key\":\"api\",\"depth\":3}"), "\"count\":1");
}

/* Keys and texts are values, never syntax. */
static void no_text_is_syntax(void **state)
{
    (void)state;
    steps_expect(run("merge",
                     "{\"entities\":[{\"key\":\"x' OR 1=1 --\",\"kind\":\"%\"},{\"key\":"
                     "\"\\u05e9\\\"\"}],\"relations\":[{\"from\":\"x' OR 1=1 --\",\"kind\":"
                     "\"';drop table entities\",\"to\":\"\\u05e9\\\"\"}]}"),
                 "\"relationsAdded\":1");
    steps_expect(run("find", "{\"text\":\"' OR\"}"), "\"count\":1");
    steps_expect(run("find", "{\"kind\":\"_\"}"), "\"count\":0");
    steps_expect(
        run("neighbours", "{\"key\":\"\\u05e9\\\"\",\"kinds\":[\"';drop table entities\"]}"),
        "\"count\":1");
}

enum { NODES = 40, EDGES = 70 };

static void a_random_graph_is_walked_as_by_hand(void **state)
{
    struct rng r = rng_seeded("test_graph");
    bool edge[NODES][NODES] = {{false}};
    int depth[NODES];
    struct buf json;
    const char *reply;
    cJSON *tree;
    const cJSON *one;

    (void)state;
    buf_init(&json, 1024 * 1024);
    buf_add_cstr(&json, "{\"entities\":[");
    for (int i = 0; i < NODES; i++) {
        buf_printf(&json, "%s{\"key\":\"n%d\"}", i > 0 ? "," : "", i);
    }
    buf_add_cstr(&json, "],\"relations\":[");
    for (int i = 0; i < EDGES; i++) {
        const unsigned a = (unsigned)(rng_next(&r) % NODES);
        const unsigned b = (unsigned)(rng_next(&r) % NODES);
        edge[a][b] = true;
        buf_printf(&json, "%s{\"from\":\"n%u\",\"kind\":\"r\",\"to\":\"n%u\"}", i > 0 ? "," : "", a,
                   b);
    }
    buf_add_cstr(&json, "]}");
    steps_expect(run("merge", buf_cstr(&json)), "completed");
    buf_done(&json);
    for (int i = 0; i < NODES; i++) {
        depth[i] = i == 0 ? 0 : -1;
    }
    for (int round = 0; round < 4; round++) {
        for (int a = 0; a < NODES; a++) {
            for (int b = 0; b < NODES && depth[a] == round; b++) {
                depth[b] = edge[a][b] && depth[b] < 0 ? round + 1 : depth[b];
            }
        }
    }
    reply = run("neighbours", "{\"key\":\"n0\",\"depth\":4,\"direction\":\"out\"}");
    tree = cJSON_Parse(reply);
    cJSON_ArrayForEach(
        one, cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "result"), "data"),
                                 "entities"))
    {
        const int node = (int)strtol(cJSON_GetObjectItem(one, "key")->valuestring + 1, NULL, 10);
        assert_int_equal(cJSON_GetObjectItem(one, "depth")->valueint, depth[node]);
        depth[node] = -1;
    }
    for (int i = 1; i < NODES; i++) {
        assert_int_equal(depth[i], -1); /* each that can be reached was there, once */
    }
    cJSON_Delete(tree);
}

static void answers_have_a_text_for_people(void **state)
{
    (void)state;
    steps_expect(run("find", "{}"), "\"text\":\"no entity fits\"");
    steps_expect(run("merge", SHOP), "\"text\":\"4 entities added, 0 changed; 4 relations added, "
                                     "0 changed\"");
    steps_expect(run("find", "{\"kind\":\"service\"}"), "\"text\":\"api\\nweb\\n\"");
    steps_expect(run("find", "{\"limit\":2}"), "more than 2 entities fit; set a higher limit");
    steps_expect(run("neighbours", "{\"key\":\"web\",\"direction\":\"out\"}"),
                 "\"text\":\"web -calls-> api\\n\"");
    steps_expect(run("neighbours", "{\"key\":\"ops\",\"direction\":\"in\"}"),
                 "\"text\":\"no neighbours\"");
    steps_expect(run("paths", "{\"from\":\"web\",\"to\":\"db\",\"direction\":\"out\"}"),
                 "\"text\":\"web -calls-> api, api -uses-> db\\n\"");
    steps_expect(run("remove", "{\"entities\":[\"db\"]}"),
                 "\"text\":\"1 entities and 3 relations removed\"");
}

static void a_merge_has_a_limit_of_items(void **state)
{
    struct buf json;

    (void)state;
    for (int n = GRAPH_ITEMS_MAX; n <= GRAPH_ITEMS_MAX + 1; n++) {
        buf_init(&json, 4 * 1024 * 1024);
        buf_add_cstr(&json, "{\"entities\":[");
        for (int i = 0; i < n; i++) {
            buf_printf(&json, "%s{\"key\":\"%d\"}", i > 0 ? "," : "", i);
        }
        buf_add_cstr(&json, "]}");
        steps_expect(run("merge", buf_cstr(&json)),
                     n == GRAPH_ITEMS_MAX
                         ? "\"entitiesAdded\":20000"
                         : "entities: more than 20000; merge them in several steps");
        buf_done(&json);
    }
}

static void settings_are_a_file_and_its_size(void **state)
{
    static const char *const bad[][2] = {
        {"{}", "database"},
        {"{\"database\":7}", "database"},
        {"{\"database\":\"/x.db\",\"maxBytes\":1048575}", "maxBytes"},
        {"{\"database\":\"/x.db\",\"colour\":1}", "colour"},
        {"[]", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct graph *g = NULL;
        struct bt_error err;
        if (graph_new(bad[i][0], &g, &err) == BT_OK || strstr(err.msg, bad[i][1]) == NULL) {
            fail_msg("%s: %s", bad[i][0], g != NULL ? "taken" : err.msg);
        }
    }
}

static void a_database_of_something_else_is_named(void **state)
{
    char path[PATH_MAX];
    FILE *f;

    (void)state;
    steps_expect(run("find", "{}"), "\"count\":0");
    (void)snprintf(path, sizeof path, "%.200s/sub/graph.db", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("this is no database, and it is long enough to be read as one by its head, is it",
                f);
    (void)fclose(f);
    steps_expect(run("find", "{}"), "is no database");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_card_is_one_that_a_supervisor_takes),
        cmocka_unit_test_setup_teardown(merging_again_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(what_is_given_is_merged_and_the_rest_stays, begin, end),
        cmocka_unit_test_setup_teardown(a_merge_is_whole_or_nothing, begin, end),
        cmocka_unit_test_setup_teardown(neighbours_have_depth_direction_and_kinds, begin, end),
        cmocka_unit_test_setup_teardown(every_shortest_path_is_found, begin, end),
        cmocka_unit_test_setup_teardown(removing_takes_relations_along, begin, end),
        cmocka_unit_test_setup_teardown(no_text_is_syntax, begin, end),
        cmocka_unit_test_setup_teardown(a_random_graph_is_walked_as_by_hand, begin, end),
        cmocka_unit_test_setup_teardown(answers_have_a_text_for_people, begin, end),
        cmocka_unit_test_setup_teardown(a_merge_has_a_limit_of_items, begin, end),
        cmocka_unit_test(settings_are_a_file_and_its_size),
        cmocka_unit_test_setup_teardown(a_database_of_something_else_is_named, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

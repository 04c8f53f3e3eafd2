/* Each allocation of a question to the graph fails in its turn: the answer is whole, or it says so,
 * and the graph has all of a merge or nothing. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <unistd.h>

#include "agents/graph/graph.h"
#include "tests/support/no_memory.h"

static char dir[] = "/tmp/baton-graph-XXXXXX";
static struct graph *graph;

#define MERGED                                                                                     \
    "{\"entities\":[{\"key\":\"web\",\"kind\":\"service\",\"name\":\"Shop\",\"properties\":{"      \
    "\"port\":80}},{\"key\":\"db\",\"kind\":\"store\"},{\"key\":\"api\"}],\"relations\":["         \
    "{\"from\":\"web\",\"kind\":\"calls\",\"to\":\"api\"},{\"from\":\"api\",\"kind\":\"uses\","    \
    "\"to\":\"db\",\"properties\":{\"n\":1}}]}"

static void merge_before(void)
{
    for (size_t i = 0; i < graph_skill_count; i++) {
        if (strcmp(graph_skills[i].id, "merge") == 0) {
            (void)steps_run(steps_make("merge", "{\"parameters\":" MERGED "}"), graph_skills[i].run,
                            graph);
        }
    }
}

static void every_answer_is_whole_or_says_that_there_is_no_memory(void **state)
{
    static const char *const asked[][2] = {
        {"find", "{}"},
        {"find", "{\"kind\":\"service\",\"text\":\"shop\"}"},
        {"neighbours", "{\"key\":\"web\",\"depth\":2}"},
        {"neighbours", "{\"key\":\"web\",\"kinds\":[\"calls\"],\"direction\":\"out\"}"},
        {"paths", "{\"from\":\"web\",\"to\":\"db\"}"},
        {"merge", MERGED},
        {"remove", "{\"entities\":[\"nobody\"]}"}};

    size_t done = 0;

    (void)state;
    merge_before();
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        char json[2000];
        (void)snprintf(json, sizeof json, "{\"parameters\":%s}", asked[i][1]);
        for (size_t k = 0; k < graph_skill_count; k++) {
            if (strcmp(graph_skills[k].id, asked[i][0]) == 0) {
                no_memory_each(asked[i][0], json, graph_skills[k].run, graph);
                done++;
            }
        }
    }
    assert_int_equal(done, sizeof asked / sizeof asked[0]);
}

static int begin(void **state)
{
    char settings[128];
    struct bt_error err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(settings, sizeof settings, "{\"database\":\"%s/graph.db\"}", dir);
    for (long n = 0;; n++) { /* without memory there is no agent */
        enum bt_code code;
        memory_failed = false;
        memory_left = n;
        code = graph_new(settings, &graph, &err);
        memory_left = -1;
        if (code == BT_OK && !memory_failed) {
            return 0;
        }
        if (code == BT_OK) {
            graph_free(graph);
        } else {
            assert_int_equal(code, BT_NOMEM);
        }
    }
}

static int end(void **state)
{
    static const char *const names[] = {"graph.db", "graph.db-wal", "graph.db-shm"};
    char path[128];

    (void)state;
    graph_free(graph);
    steps_forget();
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_whole_or_says_that_there_is_no_memory)};
    return cmocka_run_group_tests(tests, begin, end);
}

/* Each allocation of a question to the graph fails in its turn: the answer is whole, or it says so,
 * and the graph has all of a merge or nothing. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "agents/graph/graph.h"
#include "tests/unit/agents/steps.h"

/* Calls of malloc in this program go through these (linker option --wrap), cJSON's through its
 * hooks; SQLite's do not. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t n);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t n);
char *__wrap_strdup(const char *text);

static long countdown = -1; /* -1 = never */
static bool one_failed;

static bool fails(void)
{
    if (countdown < 0 || countdown-- > 0) {
        return false;
    }
    one_failed = true;
    return true;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *at, size_t n)
{
    return fails() ? NULL : __real_realloc(at, n);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

static void *hooked_malloc(size_t n)
{
    return __wrap_malloc(n);
}

static char dir[] = "/tmp/baton-graph-XXXXXX";
static struct graph *graph;

static bt_skill_run handler;
static long failing;

static void run_failing(struct bt_step *step, void *self)
{
    countdown = failing;
    handler(step, self);
    countdown = -1;
}

/* fail_at: the allocation of the handler that fails; -1 = none does. */
static const char *run(const char *skill, const char *parameters, long fail_at)
{
    char json[2000];
    struct bt_step *step;
    const char *reply = NULL;

    (void)snprintf(json, sizeof json, "{\"parameters\":%s}", parameters);
    step = steps_make(skill, json);
    for (size_t i = 0; i < graph_skill_count; i++) {
        if (strcmp(graph_skills[i].id, skill) == 0) {
            one_failed = false;
            failing = fail_at;
            handler = graph_skills[i].run;
            reply = steps_run(step, run_failing, graph);
        }
    }
    assert_non_null(reply);
    return reply;
}

#define MERGED                                                                                     \
    "{\"entities\":[{\"key\":\"web\",\"kind\":\"service\",\"name\":\"Shop\",\"properties\":{"      \
    "\"port\":80}},{\"key\":\"db\",\"kind\":\"store\"},{\"key\":\"api\"}],\"relations\":["         \
    "{\"from\":\"web\",\"kind\":\"calls\",\"to\":\"api\"},{\"from\":\"api\",\"kind\":\"uses\","    \
    "\"to\":\"db\",\"properties\":{\"n\":1}}]}"

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

    (void)state;
    (void)run("merge", MERGED, -1);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        char *whole = strdup(run(asked[i][0], asked[i][1], -1));
        long n = 0;
        for (one_failed = true; one_failed; n++) {
            const char *reply = run(asked[i][0], asked[i][1], n);
            assert_true(n < 5000);
            if (strcmp(reply, whole) != 0 &&
                (strstr(reply, "\"class\":\"SERVICE_UNAVAILABLE\"") == NULL ||
                 strstr(reply, "\"retryable\":true") == NULL)) {
                fail_msg("%s, allocation %ld: %s", asked[i][0], n, reply);
            }
        }
        assert_true(n > 5);
        free(whole);
    }
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
        one_failed = false;
        countdown = n;
        code = graph_new(settings, &graph, &err);
        countdown = -1;
        if (code == BT_OK && !one_failed) {
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
    cJSON_Hooks hooks = {hooked_malloc, free};

    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, begin, end);
}

/* The plans of the benches, and reading their events. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/shard.h"
#include "tests/bench/bench.h"

enum { PLAN_MS = 60000, EVENT_MS = 1000 };

struct text {
    FILE *f;
    char *at;
    size_t len;
};

/* t must not move before plan_end: the stream writes into it. */
static void plan_begin(struct text *t, uint32_t concurrency)
{
    t->f = open_memstream(&t->at, &t->len);
    if (t->f == NULL) {
        bench_die("out of memory for a plan");
    }
    (void)fprintf(t->f, "{\"policy\":{\"contextScope\":\"deps\",\"maxConcurrency\":%u},\"steps\":[",
                  concurrency);
}

static char *plan_end(struct text *t)
{
    (void)fputs("]}", t->f);
    if (fclose(t->f) != 0) {
        bench_die("out of memory for a plan");
    }
    return t->at;
}

static void step_begin(const struct text *t, uint32_t ix, const char *skill)
{
    (void)fprintf(t->f,
                  "%s{\"stepId\":\"s%u\",\"agentId\":\"echo\",\"skill\":\"%s\",\"task\":\"say\","
                  "\"dependsOn\":[",
                  ix > 0 ? "," : "", ix, skill);
}

char *bench_plan_steps(uint32_t n, bool chained, uint32_t concurrency)
{
    struct text t = {0};

    plan_begin(&t, concurrency);

    for (uint32_t i = 0; i < n; i++) {
        step_begin(&t, i, "echo");
        if (chained && i > 0) {
            (void)fprintf(t.f, "\"s%u\"", i - 1);
        }
        (void)fputs("]}", t.f);
    }
    return plan_end(&t);
}

char *bench_plan_spread(uint32_t n, uint32_t concurrency, uint32_t first, uint32_t agents)
{
    struct text t = {0};

    plan_begin(&t, concurrency);
    for (uint32_t i = 0; i < n; i++) {
        (void)fprintf(t.f,
                      "%s{\"stepId\":\"s%u\",\"agentId\":\"echo-%u\",\"skill\":\"echo\","
                      "\"task\":\"say\",\"dependsOn\":[]}",
                      i > 0 ? "," : "", i, first + i % agents);
    }
    return plan_end(&t);
}

char *bench_plan_fan(uint32_t width, uint32_t concurrency)
{
    struct text t = {0};

    plan_begin(&t, concurrency);

    step_begin(&t, 0, "echo");
    (void)fputs("]}", t.f);
    for (uint32_t i = 1; i <= width; i++) {
        step_begin(&t, i, "echo");
        (void)fputs("\"s0\"]}", t.f);
    }
    step_begin(&t, width + 1, "echo");
    for (uint32_t i = 1; i <= width; i++) {
        (void)fprintf(t.f, "%s\"s%u\"", i > 1 ? "," : "", i);
    }
    (void)fputs("]}", t.f);
    return plan_end(&t);
}

char *bench_plan_sleepy(uint32_t n, double ms)
{
    struct text t = {0};

    plan_begin(&t, 1);

    for (uint32_t i = 0; i < n; i++) {
        step_begin(&t, i, "echo");
        if (i > 0) {
            (void)fprintf(t.f, "\"s%u\"", i - 1);
        }
        (void)fprintf(t.f, "],\"parameters\":{\"ms\":%g},\"effects\":\"idempotent\"}", ms);
    }
    return plan_end(&t);
}

char *bench_plan_approval(void)
{
    struct text t = {0};

    plan_begin(&t, 1);

    step_begin(&t, 0, "approve");
    (void)fputs("]}", t.f);
    return plan_end(&t);
}

char *bench_plan_waiting(const char *policy)
{
    char *plan = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&plan, &len);

    if (f == NULL) {
        bench_die("out of memory for a plan");
    }
    (void)fprintf(f,
                  "{\"policy\":{%s},\"steps\":[{\"stepId\":\"s0\",\"agentId\":\"echo\","
                  "\"skill\":\"echo\",\"task\":\"say\"}]}",
                  policy);
    if (fclose(f) != 0) {
        bench_die("out of memory for a plan");
    }
    return plan;
}

/* The shard whose plans bench_submit makes, of so many; 0: whichever. */
static struct {
    uint32_t shard, shards;
} here;

void bench_submit_here(struct bt_client *c)
{
    struct bt_error err;
    char *json = NULL;
    cJSON *map;

    bench_check(bt_client_call(c, "fleet.map", NULL, &json, &err), "fleet.map", &err);
    map = cJSON_Parse(json);
    here.shard = (uint32_t)cJSON_GetNumberValue(cJSON_GetObjectItem(map, "shard"));
    here.shards = (uint32_t)cJSON_GetArraySize(cJSON_GetObjectItem(map, "shards"));
    cJSON_Delete(map);
    bt_free(json);
}

/* A new one that the shard has. */
static void make_key(char ret[UUID_TEXT_LEN + 1])
{
    do {
        uuid_format(uuid_new(), ret);
    } while (shard_of_key(str_from(ret), here.shards) != here.shard);
}

void bench_submit(struct bt_client *c, const char *plan, char ret_id[BT_ID_LEN + 1])
{
    struct bt_submit s = {.plan_json = plan};
    char key[UUID_TEXT_LEN + 1];
    struct bt_error err;
    char *json = NULL;

    if (here.shards > 1) {
        make_key(key);
        s.client_key = key;
    }
    if (bt_submit(c, &s, ret_id, &json, &err) != BT_OK) {
        bench_die("submit: %s: %.400s", err.msg, json != NULL ? json : "");
    }
    bt_free(json);
}

void bench_submit_many(struct bt_client *c, const char *plan, long n)
{
    struct bt_submit plans[BENCH_AT_ONCE_MAX] = {{.plan_json = plan}};
    struct bt_submitted results[BENCH_AT_ONCE_MAX];
    char keys[BENCH_AT_ONCE_MAX][UUID_TEXT_LEN + 1];
    struct bt_error err;

    for (long i = 0; i < n; i++) {
        plans[i].plan_json = plan;
        if (here.shards > 1) {
            make_key(keys[i]);
            plans[i].client_key = keys[i];
        }
    }
    bench_check(bt_submit_many(c, plans, (size_t)n, results, &err), "submit", &err);
    for (long i = 0; i < n; i++) {
        bt_free(results[i].json);
    }
}

bool bench_is_success(const struct bt_event *ev)
{
    if (strcmp(ev->type, "plan_completed") != 0) {
        return false;
    }
    if (strstr(ev->json, "\"outcome\":\"success\"") == NULL) {
        bench_die("a plan did not succeed: %.600s", ev->json);
    }
    return true;
}

struct bt_watch *bench_watch(struct bt_client *c)
{
    struct bt_watch *w = NULL;
    struct bt_error err;

    bench_check(bt_watch_open(c, NULL, UINT64_MAX, &w, &err), "watch", &err);
    return w;
}

void bench_until_done(struct bt_watch *w, const char *plan_id)
{
    uint64_t start = bench_now_ns();
    struct bt_event ev;
    struct bt_error err;

    for (;;) {
        enum bt_code code = bt_watch_next(w, EVENT_MS, &ev, &err);
        if (code == BT_OK && strcmp(ev.plan_id, plan_id) == 0 && bench_is_success(&ev)) {
            return;
        }
        if (code != BT_OK && code != BT_TIMEOUT) {
            bench_die("watch: %s", err.msg);
        }
        if (bench_now_ns() - start > PLAN_MS * 1000000ull) {
            bench_die("plan %s has not ended within %d ms", plan_id, PLAN_MS);
        }
    }
}

double bench_ask(struct bt_client *c, const char *type, const char *member)
{
    struct bt_error err;
    char *json = NULL;
    cJSON *tree;
    double v;

    bench_check(bt_client_call(c, type, NULL, &json, &err), type, &err);
    tree = cJSON_Parse(json);
    v = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(tree, member));
    cJSON_Delete(tree);
    bt_free(json);
    return v;
}

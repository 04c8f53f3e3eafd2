/* libbaton without memory: each allocation of a call fails in turn, and the call says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baton/client.h"
#include "tests/edge/client/fake.h"
#include "tests/support/cmocka.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t n);

BT_API const char *__lsan_default_suppressions(void);

/* nng loses a pipe that comes up while its dialer is being closed (N17), and a message when a peer
 * dies (N20). Other leaks are still reported. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so\n";
}

enum { MOST = 400 };

/* Of this thread: the daemon's has memory. */
static _Thread_local bool watched;
static _Thread_local long made, fails;

static bool is_out(void)
{
    return watched && ++made == fails;
}

void *__wrap_malloc(size_t n)
{
    return is_out() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return is_out() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *at, size_t n)
{
    return is_out() ? NULL : __real_realloc(at, n);
}

static struct fake fake;

static const char *says(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                        struct str *bytes)
{
    const struct str type = doc_string(doc_get(request, STR_LIT("type")));

    (void)n, (void)shard, (void)bytes;
    f->n = 0;
    f->log[0] = 0;
    if (str_is(type, "fleet.map")) {
        (void)snprintf(f->room, sizeof f->room,
                       "'type':'fleet.map.ok','ok':true,'shards':[{'shard':0,'control':'%s'},"
                       "{'shard':1,'control':'%s'}]",
                       f->url[0], f->url[1]);
        return f->room;
    }
    return str_is(type, "plans.submit")
               ? "'type':'plans.submit.ok','ok':true,'answers':[{'ok':true,'planId':'a'},"
                 "{'ok':true,'planId':'b'}]"
           : str_is(type, "events.read")
               ? "'type':'events.read.ok','ok':true,'events':[],'nextSeq':1,'lastSeq':0"
               : "'type':'plan.list.ok','ok':true,'plans':[],'planId':'p','lastSeq':3";
}

static enum bt_code list(struct bt_client *c, struct bt_error *err)
{
    char *json = NULL;
    const enum bt_code code = bt_client_call(c, "plan.list", NULL, &json, err);

    assert_true(code != BT_OK || json != NULL);
    bt_free(json);
    return code;
}

static enum bt_code get(struct bt_client *c, struct bt_error *err)
{
    char *json = NULL;
    const enum bt_code code = bt_client_call(c, "plan.get", "{\"planId\":\"x\"}", &json, err);

    assert_true(code != BT_OK || json != NULL);
    bt_free(json);
    return code;
}

static enum bt_code submit(struct bt_client *c, struct bt_error *err)
{
    static const struct bt_submit plans[] = {{.goal = "g", .client_key = "k"},
                                             {.goal = "g", .client_key = "k"}};
    struct bt_submitted results[2];
    const enum bt_code code = bt_submit_many(c, plans, 2, results, err);

    for (int i = 0; i < 2; i++) {
        assert_true((results[i].err.code == BT_OK) == (results[i].plan_id[0] != 0));
        bt_free(results[i].json);
    }
    return code;
}

static enum bt_code watch(struct bt_client *c, struct bt_error *err)
{
    struct bt_watch *w = NULL;
    enum bt_code code = bt_watch_open(c, NULL, UINT64_MAX, &w, err);

    if (code == BT_OK) {
        struct bt_event ev;
        code = bt_watch_next(w, 0, &ev, err);
        code = code == BT_TIMEOUT ? BT_OK : code;
        bt_watch_close(w);
    }
    return code;
}

static void without_memory_a_call_says_so(void **state)
{
    static enum bt_code (*const calls[])(struct bt_client *, struct bt_error *) = {list, get,
                                                                                   submit, watch};
    struct bt_error err;

    (void)state;
    for (int fleet = 0; fleet < 2; fleet++) {
        fake_start(&fake, says);
        if (fleet == 1) {
            fake_is_fleet(&fake);
        }
        for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
            bool all = false;
            for (long i = 1; !all; i++) {
                struct bt_client *c = NULL;
                enum bt_code code;
                assert_true(i < MOST);
                made = 0;
                fails = i;
                watched = true;
                code = bt_client_open(fake.dir, &c, &err);
                if (code == BT_OK) {
                    code = calls[k](c, &err);
                }
                bt_client_close(c);
                watched = false;
                all = made < fails;
                if (all) {
                    assert_int_equal(code, BT_OK);
                } else if (code != BT_OK && code != BT_NOMEM) {
                    fail_msg("fleet %d call %zu allocation %ld: %s", fleet, k, i, err.msg);
                }
            }
        }
        fake_stop(&fake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_a_call_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Webhooks and incoming hooks: what the files of the gateway say, and orders that go into them. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/api/hooks/files.h"
#include "tests/support/house/house.h"

static char dir[64];

static const char *path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* A file of the state directory, "'" for '"', and so many spaces behind it. */
static void put(const char *name, const char *text, size_t spaces)
{
    FILE *f = fopen(path_of(name), "we");

    assert_non_null(f);
    for (; *text != 0; text++) {
        (void)fputc(*text == '\'' ? '"' : *text, f);
    }
    for (size_t i = 0; i < spaces; i++) {
        (void)fputc(' ', f);
    }
    assert_int_equal(fclose(f), 0);
}

static const char *get(const char *name)
{
    static char text[HOOK_FILE_MAX + 1];
    FILE *f = fopen(path_of(name), "re");
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    assert_int_equal(fclose(f), 0);
    return text;
}

static struct house *open_house(void)
{
    struct engine_options opt = house_options();

    (void)snprintf(dir, sizeof dir, "/tmp/baton-test-hooks-XXXXXX");
    assert_non_null(mkdtemp(dir));
    opt.state_dir = dir;
    return house_open_with(&opt);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void close_house(struct house *h)
{
    house_close(h);
    assert_int_equal(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void before_the_gateway_has_started_there_are_no_hooks(void **state)
{
    struct house *h = open_house();

    (void)state;
    house_says(h, house_ok(h, "webhook.list", " "), "webhooks.#=0; after=-");
    house_says(h, house_ok(h, "hook.list", " "), "hooks.#=0");
    house_refused(h, "NOT_FOUND", "name: there is no webhook 'w'", "webhook.test", "'name':'w'");
    house_refused(h, "NOT_FOUND", "name: there is no webhook 'w'", "webhook.resend", "'name':'w'");
    close_house(h);
}

static void a_webhook_is_as_its_files_say(void **state)
{
    struct house *h = open_house();

    (void)state;
    assert_int_equal(mkdir(path_of("webhooks"), 0700), 0);
    put("webhooks/all.json",
        "{'url':'https://x/y','body':'chat','planId':'p','topics':['a','b'],'made':5,'fromSeq':9}",
        0);
    put("webhooks/all.at",
        "{'made':5,'seq':77,'tries':3,'why':'refused','dueMs':1700000060000,'tested':4,"
        "'testStatus':503,'testWhy':'busy'}",
        0);
    house_says(h, house_ok(h, "webhook.list", " "),
               "webhooks.#=1; webhooks.0.name=all; webhooks.0.url=https://x/y; "
               "webhooks.0.body=chat; webhooks.0.planId=p; webhooks.0.topics.#=2; "
               "webhooks.0.topics.0=a; webhooks.0.topics.1=b; webhooks.0.status=failing; "
               "webhooks.0.seq=77; webhooks.0.tries=3; webhooks.0.reason=refused; "
               "webhooks.0.nextTry=2023-11-14T22:14:20.000Z; webhooks.0.tested=4; "
               "webhooks.0.testStatus=503; webhooks.0.testReason=busy; after=-");
    put("webhooks/all.at", "{'made':5,'seq':78,'tries':0,'dueMs':1700000060000}", 0);
    house_says(h, house_ok(h, "webhook.list", " "),
               "webhooks.0.status=ok; webhooks.0.seq=78; webhooks.0.tries=0; webhooks.0.nextTry=-; "
               "webhooks.0.tested=-; webhooks.0.testStatus=-");
    put("webhooks/all.at", "{'made':5,'seq':78,'tries':1,'dueMs':0}", 0);
    house_says(h, house_ok(h, "webhook.list", " "),
               "webhooks.0.status=failing; webhooks.0.nextTry=-; webhooks.0.testStatus=-");
    put("webhooks/all.at",
        "{'made':5,'seq':78,'tries':4,'parked':true,'dueMs':1700000060000,'tested':1,"
        "'testStatus':1000}",
        0);
    house_says(h, house_ok(h, "webhook.list", " "),
               "webhooks.0.status=parked; webhooks.0.tries=4; webhooks.0.nextTry=-; "
               "webhooks.0.tested=1; webhooks.0.testStatus=0");
    put("webhooks/all.at",
        "{'made':5,'seq':78,'tries':4,'parked':false,'tested':1,"
        "'testStatus':999}",
        0);
    house_says(h, house_ok(h, "webhook.list", " "),
               "webhooks.0.status=failing; webhooks.0.testStatus=999");
    close_house(h);
}

/* Its progress is that of an older one of its name, or there is none yet. */
static void a_new_webhook_has_sent_nothing(void **state)
{
    static const char *const at[] = {"{'made':4,'seq':77,'tries':3}", "{'seq':77}", "[1]", ""};
    struct house *h = open_house();

    (void)state;
    assert_int_equal(mkdir(path_of("webhooks"), 0700), 0);
    put("webhooks/w.json", "{'made':5,'fromSeq':9}", 0);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        house_says(h, house_ok(h, "webhook.list", " "),
                   "webhooks.0.status=ok; webhooks.0.seq=8; webhooks.0.tries=0; "
                   "webhooks.0.tested=-; webhooks.0.topics.#=-");
        put("webhooks/w.at", at[i], 0);
    }
    put("webhooks/w.json", "{'made':5}", 0);
    house_says(h, house_ok(h, "webhook.list", " "), "webhooks.0.seq=0");
    put("webhooks/w.json", "{'made':5,'fromSeq':1}", 0);
    house_says(h, house_ok(h, "webhook.list", " "), "webhooks.0.seq=0");
    close_house(h);
}

static void a_file_of_32_kib_is_read_and_a_longer_one_is_not(void **state)
{
    static const char *const bad[] = {"{'url'", "[]", "7", ""};
    static const char text[] = "{'url':'u','topics':7}";
    struct house *h = open_house();

    (void)state;
    assert_int_equal(mkdir(path_of("webhooks"), 0700), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put("webhooks/w.json", bad[i], 0);
        house_says(h, house_ok(h, "webhook.list", " "),
                   "webhooks.#=1; webhooks.0.name=w; webhooks.0.status=unreadable; "
                   "webhooks.0.url=-");
        house_refused(h, "INVALID", "w.json: expected an object of JSON", "webhook.test",
                      "'name':'w'");
        assert_string_equal(get("webhooks/w.json"), house_text(h, "%s", bad[i]));
    }
    put("webhooks/w.json", text, HOOK_FILE_MAX + 1 - (sizeof text - 1));
    house_says(h, house_ok(h, "webhook.list", " "), "webhooks.0.status=unreadable");
    house_refused(h, "LIMIT", "w.json: has more than 32768 bytes", "webhook.test", "'name':'w'");
    put("webhooks/w.json", text, HOOK_FILE_MAX - (sizeof text - 1));
    house_says(h, house_ok(h, "webhook.list", " "),
               "webhooks.0.status=ok; webhooks.0.url=u; webhooks.0.topics.#=-");
    assert_int_equal(unlink(path_of("webhooks/w.json")), 0);
    assert_int_equal(mkdir(path_of("webhooks/w.json"), 0700), 0);
    house_says(h, house_ok(h, "webhook.list", " "), "webhooks.0.status=unreadable");
    house_refused(h, "INVALID", "w.json: expected a file that can be read", "webhook.test",
                  "'name':'w'");
    close_house(h);
}

static void texts_and_topics_of_a_webhook_are_cut(void **state)
{
    struct house *h = open_house();
    char text[4096];
    int n;

    (void)state;
    assert_int_equal(mkdir(path_of("webhooks"), 0700), 0);
    n = snprintf(text, sizeof text, "{'url':'%02100d','body':'%020d','planId':'%070d','topics':[",
                 0, 0, 0);
    for (int i = 0; i < 17; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "%s'%0*d'", i > 0 ? "," : "", 64 + i % 2,
                      i);
    }
    (void)snprintf(text + n, sizeof text - (size_t)n, "]}");
    put("webhooks/w.json", text, 0);
    house_says(h, house_ok(h, "webhook.list", " "),
               house_text(h,
                          "webhooks.0.url=%02048d; webhooks.0.body=%016d; webhooks.0.planId=%064d; "
                          "webhooks.0.topics.#=16; webhooks.0.topics.0=%064d; "
                          "webhooks.0.topics.14=%064d; webhooks.0.topics.15=%064d",
                          0, 0, 0, 0, 14, 1));
    close_house(h);
}

static void a_list_has_pages_in_the_order_of_names(void **state)
{
    static const char *const names[] = {"c", "a", "b", "a-1", "d_2"};
    static const char *const others[] = {".json", "A.json", "x.txt", "y", "e f.json"};
    struct house *h = open_house();

    (void)state;
    assert_int_equal(mkdir(path_of("webhooks"), 0700), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        put(house_text(h, "webhooks/%s.json", names[i]), "{}", 0);
        put(house_text(h, "webhooks/%s", others[i]), "{}", 0);
    }
    house_says(h, house_ok(h, "webhook.list", " "),
               "webhooks.#=5; webhooks.0.name=a; webhooks.1.name=a-1; webhooks.2.name=b; "
               "webhooks.3.name=c; webhooks.4.name=d_2; after=-");
    house_says(h, house_ok(h, "webhook.list", "'limit':2"),
               "webhooks.#=2; webhooks.1.name=a-1; after=a-1");
    house_says(h, house_ok(h, "webhook.list", "'limit':2,'after':'a-1'"),
               "webhooks.#=2; webhooks.0.name=b; webhooks.1.name=c; after=c");
    house_says(h, house_ok(h, "webhook.list", "'limit':2,'after':'c'"),
               "webhooks.#=1; webhooks.0.name=d_2; after=-");
    house_says(h, house_ok(h, "webhook.list", "'limit':3,'after':'a-1'"), "webhooks.#=3; after=-");
    house_says(h, house_ok(h, "webhook.list", "'after':'zz'"), "webhooks.#=0; after=-");
    close_house(h);
}

static void a_page_has_100_webhooks_and_a_directory_512(void **state)
{
    struct house *h = open_house();

    (void)state;
    assert_int_equal(mkdir(path_of("webhooks"), 0700), 0);
    for (int i = 0; i < HOOK_NAMES_MAX; i++) {
        put(house_text(h, "webhooks/w%03d.json", i), "{}", 0);
    }
    house_says(h, house_ok(h, "webhook.list", " "),
               "webhooks.#=100; webhooks.99.name=w099; after=w099");
    house_says(h, house_ok(h, "webhook.list", "'after':'w411'"),
               "webhooks.#=100; webhooks.99.name=w511; after=-");
    put(house_text(h, "webhooks/w%03d.json", HOOK_NAMES_MAX), "{}", 0);
    house_refused(h, "LIMIT", "webhooks: has more than 512 webhooks", "webhook.list", " ");
    close_house(h);
}

/* The clock says when; two orders of one moment are two. */
static void an_order_goes_into_the_file_and_leaves_the_rest(void **state)
{
    struct house *h = open_house();

    (void)state;
    assert_int_equal(mkdir(path_of("webhooks"), 0700), 0);
    put("webhooks/w.json", "{'url':'u','secret':'s'}", 0);
    house_says(h, house_ok(h, "webhook.test", "'name':'w'"), "name=w; order=1700000000000");
    house_says(h, house_ok(h, "webhook.test", "'name':'w'"), "name=w; order=1700000000001");
    house_says(h, house_ok(h, "webhook.resend", "'name':'w'"), "name=w; order=1700000000000");
    house_says(h, get("webhooks/w.json"),
               "url=u; secret=s; test=1700000000001; resend.order=1700000000000; "
               "resend.fromSeq=0");
    house_says(h, house_ok(h, "webhook.resend", "'name':'w','fromSeq':12"),
               "name=w; order=1700000000001");
    house_says(h, get("webhooks/w.json"),
               "url=u; secret=s; test=1700000000001; resend.order=1700000000001; "
               "resend.fromSeq=12");
    house_wait(h, 1000);
    house_says(h, house_ok(h, "webhook.test", "'name':'w'"), "order=1700000001000");
    house_says(h, get("webhooks/w.json"), "test=1700000001000; resend.order=1700000000001");
    house_refused(h, "INVALID", "name: expected 1 to 64 characters a-z 0-9 _ -", "webhook.test",
                  "'name':'../w'");
    house_refused(h, "INVALID", "name: expected 1 to 64 characters a-z 0-9 _ -", "webhook.resend",
                  "'name':'W'");
    close_house(h);
}

static void incoming_hooks_are_as_the_gateway_says(void **state)
{
    struct house *h = open_house();
    char text[4096];
    int n;

    (void)state;
    put("hooks.json",
        "{'hooks':[{'name':'ci','scheme':'hmac','started':3,'refused':4,'lastMs':1700000000000,"
        "'lastStatus':202,'lastPlanId':'p'},{'name':'two','scheme':'token','lastStatus':999},"
        "{'name':'three','scheme':'token','lastStatus':1000}]}",
        0);
    house_says(h, house_ok(h, "hook.list", " "),
               "hooks.#=3; hooks.0.name=ci; hooks.0.scheme=hmac; hooks.0.started=3; "
               "hooks.0.refused=4; hooks.0.lastAt=2023-11-14T22:13:20.000Z; "
               "hooks.0.lastStatus=202; hooks.0.lastPlanId=p; hooks.1.name=two; "
               "hooks.1.started=0; hooks.1.lastAt=-; hooks.1.lastStatus=999; "
               "hooks.2.lastStatus=-");
    for (int hooks = 64; hooks <= 65; hooks++) {
        n = snprintf(text, sizeof text, "{'hooks':[");
        for (int i = 0; i < hooks; i++) {
            n += snprintf(text + n, sizeof text - (size_t)n, "%s{'name':'h%d'}", i > 0 ? "," : "",
                          i);
        }
        (void)snprintf(text + n, sizeof text - (size_t)n, "]}");
        put("hooks.json", text, 0);
        house_says(h, house_ok(h, "hook.list", " "), "hooks.#=64; hooks.63.name=h63");
    }
    put("hooks.json", "{'hooks':[", 0);
    house_refused(h, "INVALID", "hooks.json: expected an object of JSON", "hook.list", " ");
    close_house(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_gateway_has_started_there_are_no_hooks),
        cmocka_unit_test(a_webhook_is_as_its_files_say),
        cmocka_unit_test(a_new_webhook_has_sent_nothing),
        cmocka_unit_test(a_file_of_32_kib_is_read_and_a_longer_one_is_not),
        cmocka_unit_test(texts_and_topics_of_a_webhook_are_cut),
        cmocka_unit_test(a_list_has_pages_in_the_order_of_names),
        cmocka_unit_test(a_page_has_100_webhooks_and_a_directory_512),
        cmocka_unit_test(an_order_goes_into_the_file_and_leaves_the_rest),
        cmocka_unit_test(incoming_hooks_are_as_the_gateway_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

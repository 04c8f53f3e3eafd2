/* Webhooks without a daemon, a receiver and a loop: what they read, send and write. Of one test
 * program; each has its own. */
#ifndef TESTS_GATEWAY_QUEUES_WORLD_H
#define TESTS_GATEWAY_QUEUES_WORLD_H

#include "protocol/base/clock.h"
#include "supervisor/gateway/a2a/a2a.h"
#include "supervisor/gateway/json.h"
#include "supervisor/gateway/webhook/sign.h"
#include "supervisor/gateway/webhook/webhook_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define OPS "\"made\":1,\"url\":\"http://r/\",\"secretFile\":\"%s/secret\""

enum { NOW = 100000, PATH_BYTES = 160, TEXT_BYTES = 4096, SCAN_MS = 500, READ_MS = 5000 };

static char dir[64];
static struct webhooks *w;
static msec now;

/* ---- the way out ---- */

static struct {
    struct egress_spec last;
    uint32_t n;
    enum bt_code says;
    char headers[TEXT_BYTES], body[TEXT_BYTES], url[TEXT_BYTES];
} post;

enum bt_code egress_post(struct egress *e, const struct egress_spec *spec, struct bt_error *err)
{
    size_t n = 0;

    (void)e;
    post.last = *spec;
    post.n++;
    post.headers[0] = 0;
    for (size_t i = 0; spec->headers[i] != NULL; i++) {
        n += (size_t)snprintf(post.headers + n, sizeof post.headers - n, "%s\n", spec->headers[i]);
    }
    (void)snprintf(post.url, sizeof post.url, "%s", spec->url);
    (void)snprintf(post.body, sizeof post.body, "%.*s", STR_ARG(spec->body));
    return post.says == BT_OK ? BT_OK : err_set(err, post.says, "too many are out");
}

static void answered(unsigned status)
{
    post.last.done(post.last.self, status, 0, "refused");
}

/* ---- the reader of events ---- */

static struct {
    void (*take)(void *self, struct doc event);
    void *self;
    uint32_t added, shards, shard;
} watch;

void watch_add(struct watch *unused, void (*take)(void *self, struct doc event), void *self)
{
    (void)unused;
    watch.take = take;
    watch.self = self;
    watch.added++;
}

uint32_t watch_shards(const struct watch *unused)
{
    (void)unused;
    return watch.shards;
}

uint32_t watch_shard(const struct watch *unused)
{
    (void)unused;
    return watch.shard;
}

static void happens(const char *json)
{
    char text[TEXT_BYTES];
    struct buf doc;

    (void)snprintf(text, sizeof text, "%s", json);
    for (char *c = text; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    buf_init(&doc, 4 * TEXT_BYTES);
    assert_int_equal(json_to_doc(str_from(text), NULL, &doc, NULL), BT_OK);
    watch.take(watch.self, doc_from_buf(&doc));
    buf_done(&doc);
}

/* ---- the words of A2A ---- */

bool a2a_push_wants(struct doc event)
{
    return !str_is(doc_string(doc_get(event, STR_LIT("type"))), "noise");
}

bool a2a_push_ends(struct doc event)
{
    return str_is(doc_string(doc_get(event, STR_LIT("type"))), "plan_completed");
}

void a2a_push_body(const struct a2a_push *p, struct buf *out)
{
    buf_printf(out, "%s %s %s %.*s %s", p->modern ? "1.0" : "0.3", p->plan, p->context,
               STR_ARG(doc_string(doc_get(p->event, STR_LIT("type")))),
               p->answer.ptr != NULL ? "with its result" : "alone");
}

/* ---- files ---- */

static void write_file(const char *name, const char *text, mode_t mode)
{
    char path[PATH_BYTES];
    char new_[PATH_BYTES + 8];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)snprintf(new_, sizeof new_, "%s.new", path);
    f = fopen(new_, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    assert_int_equal(chmod(new_, mode), 0);
    assert_int_equal(rename(new_, path), 0);
}

/* STATE/webhooks/NAME.json: OPS and more members. */
static void put_hook(const char *name, const char *more)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    int n = snprintf(text, sizeof text, "{" OPS, dir);

    (void)snprintf(text + n, sizeof text - (size_t)n, "%s%s}", more[0] != 0 ? "," : "", more);
    (void)snprintf(path, sizeof path, "webhooks/%s.json", name);
    write_file(path, text, 0600);
}

static bool is_there(const char *name)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/webhooks/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void remove_file(const char *name)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/webhooks/%s", dir, name);
    assert_int_equal(unlink(path), 0);
}

static struct hook_state saved(const char *name, uint32_t shard, uint64_t made)
{
    static struct hook_spec spec;
    struct hook_state state;

    spec.made = made;
    (void)hook_state_read(dir, name, shard, &spec, &state);
    return state;
}

static int begin(void **state)
{
    struct bt_error err;
    char path[PATH_BYTES];

    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/test_queues-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/webhooks", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file("secret", SECRET "\n", 0600);
    memset(&watch, 0, sizeof watch);
    memset(&post, 0, sizeof post);
    watch.shards = 1;
    now = NOW;
    rig_begin("");
    return webhooks_new(dir, "http://page", NULL, NULL, &w, &err) == BT_OK ? 0 : -1;
}

static int end(void **state)
{
    char path[PATH_BYTES];
    DIR *d;
    const struct dirent *e;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/webhooks", dir);
    d = opendir(path);
    while (d != NULL && (e = readdir(d)) != NULL) {
        (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    (void)closedir(d);
    (void)rmdir(path);
    (void)snprintf(path, sizeof path, "%s/secret", dir);
    (void)unlink(path);
    for (int i = 0; i < HOOK_PLACES; i++) {
        if (w->hooks[i] != NULL) {
            buf_done(&w->hooks[i]->page);
            buf_done(&w->hooks[i]->answer);
            free(w->hooks[i]);
        }
    }
    free(w);
    rig_end();
    return rmdir(dir);
}

static void turn(msec ms)
{
    now += ms;
    webhooks_run(w, now);
}

#define E(n, type) "{'seq':" #n ",'eventId':'E" #n "','type':'" type "'}"
#define PAGE(next, last, events) "{'events':[" events "],'nextSeq':" #next ",'lastSeq':" #last "}"
#endif

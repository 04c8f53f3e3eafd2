#include "tests/edge/client/fake.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/client/state.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "tests/support/cmocka.h"

const char FAKE_HANGS_UP[] = "";
const char FAKE_GARBAGE[] = "HTTP/1.1 400 Bad Request";

static void must(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "the fake daemon: %s\n", what);
        abort();
    }
}

/* {v, id, ...fields, bytes} */
static void write_answer(const struct fake *f, const char *fields, struct doc request,
                         struct str bytes, struct buf *out)
{
    char json[FAKE_ROOM + 64];
    struct buf doc;
    struct buf another;
    struct doc_cursor c;
    struct doc_head head;

    buf_init(&another, 64);
    doc_put_cstr(&another, "another");
    (void)snprintf(json, sizeof json, "{%s}", fields);
    for (char *at = json; (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
    buf_init(&doc, sizeof json * 8);
    must(json_to_doc(str_from(json), NULL, &doc, NULL) == BT_OK, json);
    c = doc_cursor(doc_from_buf(&doc));
    must(doc_next(&c, &head), json);
    doc_put_map(out, head.n + 1 + (f->no_id ? 0 : 1) + (bytes.ptr != NULL ? 1 : 0));
    doc_put_cstr(out, "v");
    doc_put_u64(out, 1);
    if (!f->no_id) {
        doc_put_cstr(out, "id");
        doc_put_doc(out, f->other_id ? doc_from_buf(&another) : doc_get(request, STR_LIT("id")));
    }
    for (uint32_t i = 0; i < 2 * head.n; i++) {
        doc_put_doc(out, doc_skip(&c));
    }
    if (bytes.ptr != NULL) {
        doc_put_cstr(out, "bytes");
        doc_put_bin(out, bytes.ptr, bytes.len);
    }
    must(buf_check(out, NULL) == BT_OK, "an answer is too long");
    buf_done(&doc);
    buf_done(&another);
}

static void take_request(struct fake *f, const struct link_event *ev)
{
    struct str body = link_msg_bytes(ev->msg);
    const bool sealed = f->opens != NULL && f->opens(f, body, &body);
    const struct doc request = {(const uint8_t *)body.ptr, body.len};
    const struct str type = doc_string(doc_get(request, STR_LIT("type")));
    const uint32_t shard = ev->server == f->servers[0] ? 0 : 1;
    const size_t len = strlen(f->log);
    struct str bytes = {NULL, 0};
    const char *fields;
    struct buf out;

    must(f->n < FAKE_REQUESTS_MAX && len + type.len + 8 < sizeof f->log, "too many requests");
    (void)snprintf(f->log + len, sizeof f->log - len, "%u %.*s; ", shard, STR_ARG(type));
    fields = f->says(f, f->n++, shard, request, &bytes);
    if (fields == FAKE_HANGS_UP) {
        link_server_hang_up(ev->server, link_msg_pipe(ev->msg));
    } else if (fields == FAKE_GARBAGE) {
        must(link_answer(ev->server, ev->request, FAKE_GARBAGE, strlen(FAKE_GARBAGE)), "an answer");
    } else if (fields != NULL) {
        buf_init(&out, 2 * (size_t)LIMIT_CONTROL_BYTES);
        write_answer(f, fields, request, bytes, &out);
        if (sealed) {
            f->seals(f, &out);
        }
        must(link_answer(ev->server, ev->request, out.at, out.len), "a request is answered once");
        buf_done(&out);
    }
    link_msg_free(ev->msg);
}

static void *serve(void *self)
{
    struct fake *f = self;
    struct link_event ev;

    for (;;) {
        struct pollfd fds[2] = {{.fd = link_fd(f->link), .events = POLLIN},
                                {.fd = f->stop[0], .events = POLLIN}};
        while (link_next(f->link, &ev)) {
            if (ev.type == LINK_REQUEST) {
                take_request(f, &ev);
            }
        }
        must(poll(fds, 2, -1) >= 0, "poll");
        if (fds[1].revents != 0) {
            return NULL;
        }
    }
}

/* With them it can hang up. */
static const struct link_peer_limits peers = {
    .peers = 64, .unfinished_bytes = 1024 * 1024, .unfinished_ms = 15000};

static void start(struct fake *f, const struct link_limits *limits, const char *url,
                  const char *(*says)(struct fake *f, uint32_t n, uint32_t shard,
                                      struct doc request, struct str *bytes))
{
    struct state_endpoints at = {.pid = (uint64_t)getpid(), .version = "fake"};
    char token[STATE_TOKEN_LEN + 1];
    struct bt_error err;

    memset(f, 0, sizeof *f);
    f->says = says;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/baton-fake-XXXXXX");
    must(mkdtemp(f->dir) != NULL && pipe2(f->stop, O_CLOEXEC) == 0, "a directory");
    must(link_new(64, &f->link, &err) == BT_OK, "a link");
    for (uint32_t i = 0; i < FAKE_SHARDS; i++) {
        must(link_server_open(f->link, url, 8, limits, f, &f->servers[i], &err) == BT_OK, err.msg);
        (void)snprintf(f->url[i], sizeof f->url[i], "%.*s%s", (int)(strrchr(url, ':') - url), url,
                       strrchr(link_server_url(f->servers[i]), ':'));
    }
    (void)snprintf(at.control, sizeof at.control, "%s", f->url[0]);
    must(state_token_make(f->dir, token, &err) == BT_OK, err.msg);
    at.pid_namespace = state_pid_namespace();
    must(state_endpoints_write(f->dir, &at, &err) == BT_OK, err.msg);
    must(pthread_create(&f->thread, NULL, serve, f) == 0, "a thread");
}

void fake_start(struct fake *f, const char *(*says)(struct fake *f, uint32_t n, uint32_t shard,
                                                    struct doc request, struct str *bytes))
{
    const struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES, .peers = peers};

    start(f, &limits, "tcp://127.0.0.1:0", says);
}

void fake_start_tls(struct fake *f, const char *pem, const char *ca,
                    const char *(*says)(struct fake *f, uint32_t n, uint32_t shard,
                                        struct doc request, struct str *bytes))
{
    const struct link_limits limits = {
        .recv_max = LIMIT_STEP_BYTES, .cert_file = pem, .ca_file = ca, .peers = peers};

    start(f, &limits, "tls+tcp://localhost:0", says);
}

void fake_is_fleet(struct fake *f)
{
    char path[96];
    int fd;

    (void)snprintf(path, sizeof path, "%s/fleet.json", f->dir);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    must(fd >= 0 && close(fd) == 0, path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void fake_stop(struct fake *f)
{
    must(write(f->stop[1], "x", 1) == 1 && pthread_join(f->thread, NULL) == 0, "its thread");
    link_free(f->link);
    (void)close(f->stop[0]);
    (void)close(f->stop[1]);
    (void)nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#include "tests/support/house/fake_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "protocol/base/assert.h"

const char *const fake_control_url = "tcp://127.0.0.1:7117";
int fake_link_inside;
const char *const fake_events_url = "tcp://127.0.0.1:7118";

struct link_msg {
    struct buf bytes;
    uint32_t pipe;
};

struct link_pub {
    struct link *link;
};

struct link {
    struct link_limits limits[2]; /* of the server, and of the publisher */
    struct link_event *inbox;
    uint32_t first, n, cap;
    /* those that listen: of this host, and of others; and those that dial */
    struct link_server servers[FAKE_SERVERS_MAX];
    uint32_t servers_n;
    int fd; /* of link_fd; -1: nobody asked */
    struct fake_trust trust;
    struct link_pub pub;
    struct link_lane *lanes[FAKE_LANES_MAX];
    uint32_t lanes_n;
    struct fake_answer answers[FAKE_ANSWERS_MAX];
    uint32_t answers_n;
    struct fake_frame *frames[FAKE_FRAMES_MAX];
    uint32_t frames_n;
    bool forgets_frames;
    uint16_t next_port;
};

static void *must(void *p)
{
    ASSERT(p != NULL);
    return p;
}

static struct link_msg *message(const void *bytes, size_t len)
{
    struct link_msg *m = must(calloc(1, sizeof *m));

    buf_init(&m->bytes, len + 1);
    buf_add(&m->bytes, bytes, len);
    m->pipe = 1;
    return m;
}

static void push(struct link *l, struct link_event ev)
{
    if (l->first + l->n == l->cap) {
        l->cap = l->cap == 0 ? 64 : l->cap * 2;
        l->inbox = must(realloc(l->inbox, l->cap * sizeof *l->inbox));
    }
    l->inbox[l->first + l->n++] = ev;
    if (l->fd >= 0) {
        ASSERT(eventfd_write(l->fd, 1) == 0);
    }
}

/* ---- the test's end ---- */

void fake_link_request(struct link *l, bool remote, uint64_t request, const void *bytes, size_t len)
{
    push(l, (struct link_event){.type = LINK_REQUEST,
                                .server = &l->servers[remote ? 1 : 0],
                                .request = request,
                                .msg = message(bytes, len)});
}

void fake_server_request(struct link_server *s, uint32_t pipe, uint64_t request, const void *bytes,
                         size_t len)
{
    struct link_msg *m = message(bytes, len);

    m->pipe = pipe;
    push(s->link,
         (struct link_event){.type = LINK_REQUEST, .server = s, .request = request, .msg = m});
}

struct link_server *fake_link_server(struct link *l, uint32_t i)
{
    return i < l->servers_n ? &l->servers[i] : NULL;
}

static enum bt_code servers_fail = BT_OK;

void fake_link_fail_servers(enum bt_code code)
{
    servers_fail = code;
}

static uint32_t closed_pipe; /* no pipe has number 0 */

void fake_pipe_closed(uint32_t pipe)
{
    closed_pipe = pipe;
}

const struct fake_trust *fake_link_trust(const struct link *l)
{
    return &l->trust;
}

uint32_t fake_link_answers(const struct link *l)
{
    return l->answers_n;
}

const struct fake_answer *fake_link_answer(const struct link *l, uint32_t i)
{
    return &l->answers[i];
}

const struct buf *fake_link_answer_to(const struct link *l, uint64_t request)
{
    for (uint32_t i = 0; i < l->answers_n; i++) {
        if (l->answers[i].request == request) {
            return &l->answers[i].bytes;
        }
    }
    return NULL;
}

const struct link_limits *fake_link_limits(const struct link *l, bool events)
{
    return &l->limits[events];
}

uint32_t fake_link_lanes(const struct link *l)
{
    return l->lanes_n;
}

struct link_lane *fake_link_lane(const struct link *l, uint32_t i)
{
    return l->lanes[i];
}

void fake_lane_up(struct link_lane *lane)
{
    ASSERT(!lane->up && !lane->retired);
    lane->up = true;
    push(lane->link, (struct link_event){.type = LINK_UP, .lane = lane, .owner = lane->owner});
}

void fake_lane_down(struct link_lane *lane, bool sent)
{
    lane->up = false;
    if (lane->outstanding && !lane->retired) {
        push(lane->link, (struct link_event){
                             .type = LINK_LOST, .lane = lane, .owner = lane->owner, .sent = sent});
    }
    lane->outstanding = false;
    if (!lane->retired) {
        push(lane->link,
             (struct link_event){.type = LINK_DOWN, .lane = lane, .owner = lane->owner});
    }
}

void fake_lane_replaced(struct link_lane *lane, bool sent)
{
    ASSERT(lane->outstanding && !lane->retired);
    push(lane->link, (struct link_event){.type = LINK_DOWN, .lane = lane, .owner = lane->owner});
    push(lane->link, (struct link_event){.type = LINK_UP, .lane = lane, .owner = lane->owner});
    push(lane->link,
         (struct link_event){.type = LINK_LOST, .lane = lane, .owner = lane->owner, .sent = sent});
    lane->outstanding = false;
}

void fake_lane_answer(struct link_lane *lane, const void *bytes, size_t len)
{
    ASSERT(lane->outstanding);
    lane->outstanding = false;
    if (!lane->retired) {
        push(lane->link, (struct link_event){.type = LINK_ANSWER,
                                             .lane = lane,
                                             .owner = lane->owner,
                                             .msg = message(bytes, len)});
    }
}

void fake_lane_refuse(struct link_lane *lane, enum bt_code code)
{
    lane->refuses = code;
}

void fake_link_forget_frames(struct link *l)
{
    l->forgets_frames = true;
}

uint32_t fake_link_frames(const struct link *l)
{
    return l->frames_n;
}

const struct fake_frame *fake_link_frame(const struct link *l, uint32_t i)
{
    return l->frames[i];
}

/* ---- the end of the code under test ---- */

enum bt_code link_new(uint32_t inbox_cap, struct link **ret, struct bt_error *err)
{
    (void)inbox_cap;
    (void)err;
    fake_link_inside++;
    *ret = must(calloc(1, sizeof **ret));
    fake_link_inside--;
    (*ret)->next_port = 30000;
    (*ret)->fd = -1;
    return BT_OK;
}

int link_fd(const struct link *l)
{
    return l->fd;
}

void fake_link_wakes(struct link *l)
{
    ASSERT(l->fd < 0);
    l->fd = eventfd(l->n, EFD_CLOEXEC | EFD_NONBLOCK);
    ASSERT(l->fd >= 0);
}

bool link_next(struct link *l, struct link_event *ret)
{
    while (l->n > 0) {
        *ret = l->inbox[l->first];
        l->inbox[l->first++].msg = NULL; /* one that the receiver loses is a leak */
        l->n--;
        if (l->n == 0) {
            l->first = 0;
        }
        if (ret->lane == NULL || !ret->lane->retired) {
            return true;
        }
        link_msg_free(ret->msg); /* retired lanes emit nothing */
    }
    if (l->fd >= 0) {
        eventfd_t count;
        (void)eventfd_read(l->fd, &count);
    }
    return false;
}

bool link_wait(struct link *l, msec timeout_ms)
{
    (void)timeout_ms;
    return l->n > 0;
}

void link_free(struct link *l)
{
    if (l == NULL) {
        return;
    }
    while (l->n > 0) {
        link_msg_free(l->inbox[l->first++].msg);
        l->n--;
    }
    free(l->inbox);
    if (l->fd >= 0) {
        (void)close(l->fd);
    }
    for (uint32_t i = 0; i < l->lanes_n; i++) {
        buf_done(&l->lanes[i]->sent);
        free(l->lanes[i]);
    }
    for (uint32_t i = 0; i < l->answers_n; i++) {
        buf_done(&l->answers[i].bytes);
    }
    for (uint32_t i = 0; i < l->frames_n; i++) {
        buf_done(&l->frames[i]->body);
        free(l->frames[i]);
    }
    free(l);
}

void link_trust(struct link *l, const uint32_t *uids, uint32_t n)
{
    ASSERT(n <= FAKE_TRUST_MAX);
    l->trust.n = n;
    memcpy(l->trust.uids, uids, n * sizeof *uids);
}

struct str link_msg_bytes(const struct link_msg *m)
{
    return (struct str){(const char *)m->bytes.at, m->bytes.len};
}

void link_msg_peer(const struct link_msg *m, char ret[LINK_PEER_MAX + 1])
{
    (void)m;
    (void)snprintf(ret, LINK_PEER_MAX + 1, "127.0.0.1:4711");
}

uint32_t link_msg_pipe(const struct link_msg *m)
{
    return m->pipe;
}

void link_msg_free(struct link_msg *m)
{
    if (m != NULL) {
        buf_done(&m->bytes);
        free(m);
    }
}

static enum bt_code server_new(struct link *l, const char *url, uint32_t n,
                               const struct link_limits *lim, struct link_server **ret,
                               struct bt_error *err)
{
    if (servers_fail != BT_OK) {
        return err_set(err, servers_fail, "no such address");
    }
    ASSERT(l->servers_n < FAKE_SERVERS_MAX);
    *ret = &l->servers[l->servers_n++];
    **ret = (struct link_server){.link = l, .contexts = n, .limits = *lim};
    (void)snprintf((*ret)->url, sizeof(*ret)->url, "%s", url);
    return BT_OK;
}

enum bt_code link_server_open(struct link *l, const char *url, uint32_t n,
                              const struct link_limits *lim, void *owner, struct link_server **ret,
                              struct bt_error *err)
{
    const bool remote = l->servers_n > 0;

    (void)owner;
    l->limits[0] = *lim;
    return server_new(l, remote ? url : fake_control_url, n, lim, ret, err);
}

enum bt_code link_server_dial(struct link *l, const char *url, uint32_t n,
                              const struct link_limits *lim, void *owner, struct link_server **ret,
                              struct bt_error *err)
{
    (void)owner;
    return server_new(l, url, n, lim, ret, err);
}

void link_server_retire(struct link_server *s)
{
    s->retired = true;
}

const char *link_server_url(const struct link_server *s)
{
    return s->url;
}

bool link_answer(struct link_server *s, uint64_t request, const void *bytes, size_t len)
{
    struct link *l = s->link;

    ASSERT(fake_link_answer_to(l, request) == NULL && l->answers_n < FAKE_ANSWERS_MAX);
    fake_link_inside++;
    l->answers[l->answers_n].request = request;
    buf_init(&l->answers[l->answers_n].bytes, len + 1);
    buf_add(&l->answers[l->answers_n++].bytes, bytes, len);
    fake_link_inside--;
    return true;
}

static struct link_lane *lane_new(struct link *l, void *owner)
{
    struct link_lane *lane;

    fake_link_inside++;
    lane = must(calloc(1, sizeof *lane));
    fake_link_inside--;
    ASSERT(l->lanes_n < FAKE_LANES_MAX);
    lane->link = l;
    lane->owner = owner;
    buf_init(&lane->sent, 16 * 1024 * 1024);
    l->lanes[l->lanes_n++] = lane;
    return lane;
}

enum bt_code link_lane_dial(struct link *l, const char *url, const struct link_limits *lim,
                            void *owner, struct link_lane **ret, struct bt_error *err)
{
    (void)err;
    *ret = lane_new(l, owner);
    (*ret)->dials = true;
    (*ret)->limits = *lim;
    (void)snprintf((*ret)->url, sizeof(*ret)->url, "%s", url);
    return BT_OK;
}

enum bt_code link_lane_listen(struct link *l, const char *url, const struct link_limits *lim,
                              void *owner, struct link_lane **ret, struct bt_error *err)
{
    (void)url;
    (void)lim;
    (void)err;
    *ret = lane_new(l, owner);
    (void)snprintf((*ret)->url, sizeof(*ret)->url, "tcp://127.0.0.1:%u", l->next_port++);
    return BT_OK;
}

const char *link_lane_url(const struct link_lane *lane)
{
    return lane->url;
}

enum bt_code link_lane_send(struct link_lane *lane, const void *bytes, size_t len,
                            struct bt_error *err)
{
    if (lane->refuses != BT_OK) {
        return err_set(err, lane->refuses, "not sent");
    }
    if (lane->outstanding) {
        return err_set(err, BT_BUSY, "a request is outstanding");
    }
    if (!lane->up) {
        return err_set(err, BT_UNAVAILABLE, "no pipe");
    }
    fake_link_inside++;
    buf_clear(&lane->sent);
    buf_add(&lane->sent, bytes, len);
    fake_link_inside--;
    lane->outstanding = true;
    return BT_OK;
}

bool link_lane_is_up(const struct link_lane *lane)
{
    return lane->up;
}

void link_lane_hang_up(struct link_lane *lane, const char *from)
{
    (void)from;
    lane->hung_up++;
}

bool link_lane_stranger(const struct link_lane *lane, uint32_t *ret_uid)
{
    (void)lane;
    (void)ret_uid;
    return false;
}

void link_lane_retire(struct link_lane *lane)
{
    if (lane != NULL) {
        lane->retired = true;
    }
}

enum bt_code link_pub_open(struct link *l, const char *url, const struct link_limits *lim,
                           struct link_pub **ret, struct bt_error *err)
{
    (void)url;
    (void)err;
    l->limits[1] = *lim;
    l->pub.link = l;
    *ret = &l->pub;
    return BT_OK;
}

const char *link_pub_url(const struct link_pub *p)
{
    (void)p;
    return fake_events_url;
}

void link_publish(struct link_pub *p, struct str topic, const void *body, size_t len)
{
    struct link *l = p->link;
    struct fake_frame *f;

    if (l->forgets_frames) {
        return;
    }
    fake_link_inside++;
    f = must(calloc(1, sizeof *f));
    ASSERT(l->frames_n < FAKE_FRAMES_MAX);
    (void)snprintf(f->topic, sizeof f->topic, "%.*s", STR_ARG(topic));
    buf_init(&f->body, len + 1);
    buf_add(&f->body, body, len);
    fake_link_inside--;
    l->frames[l->frames_n++] = f;
}

enum bt_code link_canary_start(msec period_ms, struct bt_error *err)
{
    (void)period_ms;
    (void)err;
    return BT_OK;
}

msec link_canary_age(void)
{
    return 0;
}

const char *link_library_version(void)
{
    return "none";
}

bool link_pipe_is_open(uint32_t pipe)
{
    return pipe != 0 && pipe != closed_pipe;
}

void link_server_hang_up(struct link_server *s, uint32_t pipe)
{
    (void)s;
    (void)pipe;
}

/* Clients of the daemon's table of sessions, in one process and in virtual time. */
#ifndef UNIT_SESSIONS_RIG_H
#define UNIT_SESSIONS_RIG_H

#include <stdio.h>
#include <stdlib.h>

#include "protocol/auth/session.h"
#include "supervisor/auth/sessions.h"
#include "tests/support/cmocka.h"

enum { NOW = 1000000, WALL = 5000000 };

static const struct session_time at_start = {NOW, WALL};
static const struct session_peer peer_one = {{"127.0.0.1:1", 11}, 1};

struct client {
    struct auth_session s;
    const char *id;
    uint8_t key[AUTH_KEY_BYTES];
};

static inline struct sessions *new_table(void)
{
    struct sessions *s = NULL;

    assert_int_equal(sessions_new(&s, NULL), BT_OK);
    return s;
}

/* Credentials c0, c1, ... with the keys of client_of. */
static inline struct credential *some(uint32_t n)
{
    struct credential *c = calloc(n + 1, sizeof *c);

    assert_non_null(c);
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(c[i].who.id, sizeof c[i].who.id, "c%u", i);
        c[i].who.role = ROLE_SUBMITTER;
        memset(c[i].key, (int)i + 1, sizeof c[i].key);
    }
    return c;
}

static inline struct client client_of(const char *id, int key)
{
    struct client c = {.id = id};

    memset(c.key, key, sizeof c.key);
    return c;
}

static inline enum bt_code begin_at(struct sessions *s, struct client *c, const char *peer,
                                    struct session_time time)
{
    char nonce_c[65];
    char sid[33];
    char nonce_s[65];
    char proof[65];
    char previous[65] = "";
    struct session_begun b;

    assert_int_equal(auth_session_begin(&c->s, nonce_c, NULL), BT_OK);
    assert_int_equal(
        sessions_begin(s, str_from(c->id), c->s.handshake.nonce_c, str_from(peer), time, &b, NULL),
        BT_OK);
    auth_hex(b.sid, 16, sid);
    auth_hex(b.nonce_s, 32, nonce_s);
    auth_hex(b.proof, 32, proof);
    if (b.has_previous) {
        auth_hex(b.previous, 32, previous);
    }
    const struct auth_begun begun = {str_from(sid), str_from(nonce_s), str_from(proof),
                                     str_from(previous)};
    return auth_session_finish(&c->s, c->key, &begun, NULL);
}

static inline void begin(struct sessions *s, struct client *c)
{
    assert_int_equal(begin_at(s, c, "127.0.0.1:1", at_start), BT_OK);
}

/* The next request of the client; its bytes in *out. */
static inline void seal_next(struct client *c, struct buf *out)
{
    buf_clear(out);
    assert_int_equal(auth_session_seal(&c->s, STR_LIT("body"), out, NULL), BT_OK);
}

static inline enum bt_code open_bytes(struct sessions *s, struct str bytes,
                                      struct session_time time)
{
    struct seal seal;
    struct str body;

    return sessions_open(s, bytes, peer_one, time, &seal, &body, NULL);
}

static inline enum bt_code ask_at(struct sessions *s, struct client *c, struct session_time time)
{
    struct buf out;
    enum bt_code code;

    buf_init(&out, 1000);
    seal_next(c, &out);
    code = open_bytes(s, buf_str(&out), time);
    buf_done(&out);
    return code;
}

static inline enum bt_code ask(struct sessions *s, struct client *c)
{
    return ask_at(s, c, at_start);
}

static uint32_t closed_pipe;
static uint32_t hung_up[64];
static uint32_t hung_up_n;

static inline bool is_open(void *self, uint32_t pipe)
{
    (void)self;
    return pipe != closed_pipe;
}

static inline void hang_up(void *self, uint32_t pipe)
{
    (void)self;
    hung_up[hung_up_n++ % 64] = pipe;
}

static inline struct sessions *table_with(enum quota quota, uint64_t limit)
{
    struct sessions *s = new_table();
    struct credential *c = some(2);

    c[1].who.quotas[quota] = limit;
    hung_up_n = closed_pipe = 0;
    sessions_hook(s, &(struct session_hooks){NULL, is_open, hang_up});
    (void)sessions_set(s, c, 2, at_start);
    return s;
}

/* One more request, over this connection; what it is charged. */
static inline enum bt_code charge(struct sessions *s, struct client *c, uint32_t pipe, size_t bytes,
                                  msec now, struct quota_over *ret)
{
    struct seal seal;
    struct str body;
    struct buf out;
    enum bt_code code;

    buf_init(&out, 1000);
    seal_next(c, &out);
    code = sessions_open(s, buf_str(&out), (struct session_peer){STR_LIT("127.0.0.1:1"), pipe},
                         (struct session_time){now, WALL}, &seal, &body, NULL);
    assert_int_equal(code, BT_OK);
    buf_done(&out);
    return sessions_charge(s, &seal, bytes, now, ret, NULL);
}
#endif

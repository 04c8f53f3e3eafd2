/*
 * The cost of a sealed request: nanoseconds to seal and to check a body of 300 bytes, and of one of
 * 64 KiB, and of a handshake on both sides. One line of JSON per case. A request and its answer are
 * two of each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "protocol/auth/session.h"
#include "supervisor/auth/sessions.h"

enum { ROUNDS = 20000, LARGE = 65536 };

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void need(bool ok)
{
    if (!ok) {
        (void)fputs("bench_seal: failed\n", stderr);
        exit(1);
    }
}

static void begin(struct sessions *s, struct auth_session *client)
{
    const uint8_t key[AUTH_KEY_BYTES] = {0};
    char texts[4][65];
    struct session_begun b;

    need(auth_session_begin(client, texts[0], NULL) == BT_OK);
    need(sessions_begin(s, STR_LIT("a"), client->handshake.nonce_c, STR_LIT("h:1"),
                        (struct session_time){1, 1}, &b, NULL) == BT_OK);
    auth_hex(b.sid, sizeof b.sid, texts[1]);
    auth_hex(b.nonce_s, sizeof b.nonce_s, texts[2]);
    auth_hex(b.proof, sizeof b.proof, texts[3]);
    const struct auth_begun begun = {
        str_from(texts[1]), str_from(texts[2]), str_from(texts[3]), {NULL, 0}};
    need(auth_session_finish(client, key, &begun, NULL) == BT_OK);
}

static void handshakes(struct sessions *s)
{
    const uint64_t from = now_ns();
    struct auth_session client;

    for (int i = 0; i < ROUNDS / 10; i++) {
        begin(s, &client);
    }
    (void)printf("{\"case\": \"handshake\", \"ns\": %.0f}\n",
                 (double)(now_ns() - from) / (ROUNDS / 10));
}

static void bodies(struct sessions *s, size_t len)
{
    static char body[LARGE];
    struct auth_session client;
    struct seal seal;
    struct str found;
    struct buf out;
    uint64_t sealing = 0;
    uint64_t checking = 0;

    begin(s, &client);
    buf_init(&out, SEAL_HEADER_BYTES + LARGE);
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t from = now_ns();
        buf_clear(&out);
        need(auth_session_seal(&client, (struct str){body, len}, &out, NULL) == BT_OK);
        const uint64_t sealed = now_ns();
        need(sessions_open(s, buf_str(&out), (struct session_peer){STR_LIT("h:1"), 0},
                           (struct session_time){1, 1}, &seal, &found, NULL) == BT_OK);
        sealing += sealed - from;
        checking += now_ns() - sealed;
    }
    (void)printf("{\"case\": \"body\", \"bytes\": %zu, \"seal_ns\": %.0f, \"check_ns\": %.0f}\n",
                 len, (double)sealing / ROUNDS, (double)checking / ROUNDS);
    buf_done(&out);
}

int main(void)
{
    struct credential *c = calloc(1, sizeof *c);
    struct sessions *s = NULL;

    need(c != NULL && sessions_new(&s, NULL) == BT_OK);
    c->who.id[0] = 'a';
    (void)sessions_set(s, c, 1, (struct session_time){1, 1});
    handshakes(s);
    bodies(s, 300);
    bodies(s, LARGE);
    sessions_free(s);
    return 0;
}

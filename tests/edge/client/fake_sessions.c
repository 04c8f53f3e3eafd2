#include "tests/edge/client/fake_sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "tests/support/cmocka.h"

enum { NOW = 1000 };

static const struct session_time at = {NOW, NOW};
static struct seal seal; /* of the request that is answered */
struct sessions *fake_sessions;
_Atomic uint32_t fake_ends_at;
_Atomic bool fake_ends_always;
_Atomic bool fake_had_token;

struct credential fake_credential(int key)
{
    struct credential c = {.who = {.id = "ci", .role = ROLE_ADMIN}, .created = 1};

    memset(c.key, key, sizeof c.key);
    return c;
}

static void know(void)
{
    struct credential *c = calloc(1, sizeof *c);

    *c = fake_credential(FAKE_KEY);
    (void)sessions_set(fake_sessions, NULL, 0, at);
    (void)sessions_set(fake_sessions, c, 1, at);
}

void fake_sessions_open(void)
{
    fake_ends_at = 0;
    fake_ends_always = fake_had_token = false;
    assert_int_equal(sessions_new(&fake_sessions, NULL), BT_OK);
    know();
}

void fake_sessions_close(void)
{
    sessions_free(fake_sessions);
}

/* ---- in its thread ---- */

static bool opens(struct fake *f, struct str bytes, struct str *ret_body)
{
    const struct session_peer peer = {STR_LIT("127.0.0.1:1"), 1};
    struct bt_error err;

    if (!seal_is_sealed(bytes)) {
        return false;
    }
    if (f->n == fake_ends_at || fake_ends_always) {
        know();
    }
    if (sessions_open(fake_sessions, bytes, peer, at, &seal, ret_body, &err) != BT_OK) {
        *ret_body = STR_LIT("\x80"); /* msgpack: {} */
        return false;
    }
    return true;
}

static void seals(struct fake *f, struct buf *io_answer)
{
    struct buf out;

    (void)f;
    buf_init(&out, SEAL_HEADER_BYTES + LIMIT_STEP_BYTES);
    for (int i = 0; i < SEAL_HEADER_BYTES; i++) {
        buf_add_byte(&out, 0);
    }
    buf_add(&out, io_answer->at, io_answer->len);
    if (!sessions_seal(fake_sessions, &seal, out.at, io_answer->len)) {
        abort();
    }
    buf_clear(io_answer);
    buf_add(io_answer, out.at, out.len);
    buf_done(&out);
}

void fake_seals(struct fake *f)
{
    f->opens = opens;
    f->seals = seals;
}

const char *fake_begins(struct fake *f, struct doc request)
{
    const struct str type = doc_string(doc_get(request, STR_LIT("type")));
    uint8_t nonce[AUTH_NONCE_BYTES];
    struct session_begun b;
    char sid[2 * AUTH_SID_BYTES + 1];
    char nonce_s[2 * AUTH_NONCE_BYTES + 1];
    char proof[2 * AUTH_KEY_BYTES + 1];

    fake_had_token = fake_had_token || doc_get(request, STR_LIT("token")).ptr != NULL;
    f->no_id = type.ptr == NULL;
    if (type.ptr == NULL) {
        return "'type':'error','ok':false,'error':{'code':'UNAUTHORIZED','class':'UNKNOWN',"
               "'message':'m','retryable':false}";
    }
    if (!str_is(type, "auth.begin")) {
        return NULL;
    }
    if (!auth_unhex(doc_string(doc_get(request, STR_LIT("nonceC"))), nonce, sizeof nonce) ||
        sessions_begin(fake_sessions, doc_string(doc_get(request, STR_LIT("credential"))), nonce,
                       STR_LIT("127.0.0.1:1"), at, &b, NULL) != BT_OK) {
        abort();
    }
    auth_hex(b.sid, sizeof b.sid, sid);
    auth_hex(b.nonce_s, sizeof b.nonce_s, nonce_s);
    auth_hex(b.proof, sizeof b.proof, proof);
    (void)snprintf(f->room, sizeof f->room,
                   "'type':'auth.begin.ok','ok':true,'sid':'%s','nonceS':'%s','proof':'%s'", sid,
                   nonce_s, proof);
    return f->room;
}

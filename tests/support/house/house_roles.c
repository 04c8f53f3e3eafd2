/* Requests of credentials: one of each role, whose requests are sealed as on the wire. */
#include <stdlib.h>
#include <string.h>

#include "protocol/auth/session.h"
#include "supervisor/auth/sessions.h"
#include "tests/support/house/house_internal.h"

static const struct {
    const char *id;
    enum role role;
    uint64_t requests, plans; /* quotas; 0 = those of its role */
} credentials[] = {
    {"observer", ROLE_OBSERVER, 0, 0}, {"submitter", ROLE_SUBMITTER, 0, 0},
    {"other", ROLE_SUBMITTER, 0, 0},   {"reviewer", ROLE_REVIEWER, 0, 0},
    {"agent", ROLE_AGENT, 0, 0},       {"admin", ROLE_ADMIN, 0, 0},
    {"poor", ROLE_SUBMITTER, 4, 1},    {"twin", ROLE_AGENT, 0, 0},
};

enum { CREDENTIALS = sizeof credentials / sizeof credentials[0] };

struct house_roles {
    struct sessions *table;
    struct auth_session sessions[CREDENTIALS];
    int now; /* -1 = the token */
};

static void key_of(int i, uint8_t ret[AUTH_KEY_BYTES])
{
    memset(ret, i + 1, AUTH_KEY_BYTES);
}

struct sessions *house_roles_new(struct house *h)
{
    struct credential *list = calloc(CREDENTIALS, sizeof *list);
    struct house_roles *r = calloc(1, sizeof *r);

    assert_true(list != NULL && r != NULL);
    assert_int_equal(sessions_new(&r->table, NULL), BT_OK);
    for (int i = 0; i < CREDENTIALS; i++) {
        struct identity *who = &list[i].who;
        memcpy(who->id, credentials[i].id, strlen(credentials[i].id) + 1);
        who->role = credentials[i].role;
        who->agents_n = credentials[i].role == ROLE_AGENT ? 1 : 0;
        memcpy(who->agents[0], "calc", 5);
        for (int q = 0; q < QUOTA_COUNT; q++) {
            who->quotas[q] = QUOTA_BY_ROLE;
        }
        if (credentials[i].requests > 0) {
            who->quotas[QUOTA_REQUESTS] = credentials[i].requests;
            who->quotas[QUOTA_PLANS] = credentials[i].plans;
        }
        key_of(i, list[i].key);
    }
    (void)sessions_set(r->table, list, CREDENTIALS, (struct session_time){h->now, h->wall});
    r->now = -1;
    h->roles = r;
    return r->table;
}

void house_roles_done(struct house *h)
{
    sessions_free(h->roles->table);
    free(h->roles);
}

static void begin(struct house *h, int i)
{
    struct auth_session *s = &h->roles->sessions[i];
    char nonce_c[2 * AUTH_NONCE_BYTES + 1];
    char sid[2 * AUTH_SID_BYTES + 1];
    char nonce_s[2 * AUTH_NONCE_BYTES + 1];
    char proof[2 * AUTH_KEY_BYTES + 1];
    uint8_t key[AUTH_KEY_BYTES];
    struct session_begun b;

    key_of(i, key);
    assert_int_equal(auth_session_begin(s, nonce_c, NULL), BT_OK);
    assert_int_equal(sessions_begin(h->roles->table, str_from(credentials[i].id),
                                    s->handshake.nonce_c, STR_LIT("127.0.0.1:4711"),
                                    (struct session_time){h->now, h->wall}, &b, NULL),
                     BT_OK);
    auth_hex(b.sid, AUTH_SID_BYTES, sid);
    auth_hex(b.nonce_s, AUTH_NONCE_BYTES, nonce_s);
    auth_hex(b.proof, AUTH_KEY_BYTES, proof);
    const struct auth_begun begun = {str_from(sid), str_from(nonce_s), str_from(proof), {"", 0}};
    assert_int_equal(auth_session_finish(s, key, &begun, NULL), BT_OK);
}

const char *house_as(struct house *h, const char *credential)
{
    const int before = h->roles->now;

    h->roles->now = -1;
    for (int i = 0; credential != NULL && i < CREDENTIALS; i++) {
        if (strcmp(credentials[i].id, credential) == 0) {
            h->roles->now = i;
        }
    }
    assert_true(credential == NULL || h->roles->now >= 0);
    if (h->roles->now >= 0 && !h->roles->sessions[h->roles->now].open) {
        begin(h, h->roles->now);
    }
    return before < 0 ? NULL : credentials[before].id;
}

bool house_is_sealed(const struct house *h)
{
    return h->roles->now >= 0;
}

void house_seal(struct house *h, const char *body, struct buf *out)
{
    assert_int_equal(
        auth_session_seal(&h->roles->sessions[h->roles->now], str_from(body), out, NULL), BT_OK);
}

/* What is inside the seal of the last request's answer; a refusal may have none. */
struct str house_unseal(const struct house *h, struct str bytes)
{
    struct str body = bytes;

    if (h->roles->now >= 0 && seal_is_sealed(bytes)) {
        assert_true(auth_session_open(&h->roles->sessions[h->roles->now], bytes, &body));
    }
    return body;
}

struct house_sealed house_sealed(struct house *h, const char *type)
{
    struct house_sealed ret;
    struct buf out;

    buf_init(&out, LIMIT_STEP_BYTES);
    house_seal(h, house_text(h, "{'v':1,'type':'%s','id':'q'}", type), &out);
    ret = (struct house_sealed){house_keep(h, out.at, out.len), out.len};
    buf_done(&out);
    return ret;
}

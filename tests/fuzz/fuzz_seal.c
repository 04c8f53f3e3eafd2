/* Hostile bytes as a sealed body: the header's reader, the table of sessions, the client, and files
 * of credentials. Nothing here has a right MAC, so nothing may be accepted. */
#include <stdlib.h>

#include "protocol/auth/session.h"
#include "supervisor/auth/sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static struct sessions *table(struct session_begun *begun)
{
    static struct sessions *s;
    static struct session_begun b;
    const struct session_time time = {1000, 1000};
    const uint8_t nonce[AUTH_NONCE_BYTES] = {1};

    if (s == NULL) {
        struct credential *c = calloc(1, sizeof *c);
        require(c != NULL && sessions_new(&s, NULL) == BT_OK);
        c->who.id[0] = 'a';
        (void)sessions_set(s, c, 1, time);
        require(sessions_begin(s, STR_LIT("a"), nonce, STR_LIT("h:1"), time, &b, NULL) == BT_OK);
    }
    *begun = b;
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char magic[] = "\xC1"
                                "BT\x01";
    const struct session_time time = {1000, 1000};
    struct auth_session client = {.open = true};
    struct session_begun begun;
    struct sessions *s = table(&begun);
    struct credential c;
    struct seal seal;
    struct str body;
    struct buf known;
    const struct str bytes = {(const char *)data, size};

    require(sessions_open(s, bytes, (struct session_peer){STR_LIT("h:1"), 0}, time, &seal, &body,
                          NULL) != BT_OK);
    require(!auth_session_open(&client, bytes, &body));
    buf_init(&known, size + sizeof magic + sizeof begun.sid); /* and as one of its own sessions */
    buf_add(&known, magic, sizeof magic - 1);
    buf_add(&known, begun.sid, sizeof begun.sid);
    buf_add(&known, data, size);
    require(sessions_open(s, buf_str(&known), (struct session_peer){STR_LIT("h:1"), 0}, time, &seal,
                          &body, NULL) != BT_OK);
    buf_done(&known);
    if (credential_parse(bytes, &c, NULL) == BT_OK) {
        require(credential_id_ok(str_from(c.who.id), NULL) &&
                c.who.agents_n <= IDENTITY_AGENTS_MAX && (unsigned)c.who.role < ROLE_COUNT);
    }
    return 0;
}

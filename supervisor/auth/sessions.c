#include "supervisor/auth/sessions.h"

#include <stdlib.h>

#include "protocol/auth/handshake.h"

enum { SLOTS = SESSIONS_MAX + SESSIONS_PENDING_MAX, BUCKETS = 128 };

enum state { FREE, PENDING, PROVED };

#define NOBODY UINT32_MAX /* the index of no credential */

struct session {
    enum state state;
    uint32_t of;                      /* index of its credential; NOBODY: an id that nobody has */
    char claimed[LIMIT_ID_BYTES + 1]; /* the id that it was begun with */
    uint8_t sid[AUTH_SID_BYTES];
    struct auth_mac_key key;
    struct auth_mac_key previous; /* PENDING: the session key of the key before a rotation */
    bool has_previous;
    bool by_previous; /* PROVED: with that key */
    bool counted;     /* PROVED: it is within the quota of connections */
    uint64_t n;       /* of its last request */
    msec used;        /* PENDING: when it began */
    uint64_t peer;    /* a hash */
    uint32_t pipe;    /* of its last request */
};

/* Failures of a host or an id; hosts and ids with the same place share. */
struct bucket {
    msec from;
    uint32_t n;
};

/* Failures of one connection, or of one host; another one takes its place. */
struct failing {
    uint64_t of;
    msec from;
    uint32_t n;
};

struct sessions {
    struct session at[SLOTS];
    uint32_t proved;
    struct credential *credentials;
    uint32_t credentials_n;
    struct quota_minute *usage; /* of each credential */
    struct session_hooks hooks;
    uint8_t secret[AUTH_KEY_BYTES]; /* makes the keys of ids that nobody has */
    struct bucket failures[BUCKETS];
    struct failing connections[BUCKETS], hosts[BUCKETS];
};

enum bt_code sessions_new(struct sessions **ret, struct bt_error *err)
{
    struct sessions *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for sessions");
    }
    if (!auth_random(s->secret, sizeof s->secret)) {
        free(s);
        return err_set(err, BT_INTERNAL, "no random bytes for sessions");
    }
    *ret = s;
    return BT_OK;
}

static void forget_credentials(struct sessions *s)
{
    if (s->credentials != NULL) {
        explicit_bzero(s->credentials, s->credentials_n * sizeof s->credentials[0]);
    }
    free(s->credentials);
    free(s->usage);
}

void sessions_hook(struct sessions *s, const struct session_hooks *hooks)
{
    s->hooks = *hooks;
}

void sessions_free(struct sessions *s)
{
    if (s != NULL) {
        forget_credentials(s);
        explicit_bzero(s, sizeof *s);
        free(s);
    }
}

uint32_t sessions_count(const struct sessions *s)
{
    return s->proved;
}

/* ---- credentials ---- */

static uint32_t find(const struct credential *at, uint32_t n, struct str id)
{
    for (uint32_t i = 0; i < n; i++) {
        if (str_is(id, at[i].who.id)) {
            return i;
        }
    }
    return NOBODY;
}

static bool has_previous(const struct credential *c, msec wall)
{
    return c->previous_until != 0 && wall < c->previous_until;
}

static void hang_up(const struct sessions *s, uint32_t pipe)
{
    if (s->hooks.hang_up != NULL && pipe != 0) {
        s->hooks.hang_up(s->hooks.self, pipe);
    }
}

static void end(struct sessions *s, struct session *session)
{
    s->proved -= session->state == PROVED;
    explicit_bzero(session, sizeof *session);
}

/* Whether a session of the credential `was` goes on with `is`. A handshake goes on when no key has
 * changed: those of both are in its entry. */
static bool goes_on(const struct session *session, const struct credential *was,
                    const struct credential *is, msec wall)
{
    const uint8_t *key = session->by_previous ? was->previous : was->key;

    if (!credential_is_valid(is, wall)) {
        return false;
    }
    if (session->state == PENDING) {
        return auth_equal(was->key, is->key, AUTH_KEY_BYTES) &&
               session->has_previous == has_previous(is, wall) &&
               auth_equal(was->previous, is->previous, AUTH_KEY_BYTES);
    }
    if (auth_equal(key, is->key, AUTH_KEY_BYTES)) {
        return true;
    }
    return has_previous(is, wall) && auth_equal(key, is->previous, AUTH_KEY_BYTES);
}

/* The minutes of the credentials that stay go on. Without memory none is counted. */
static struct quota_minute *usage_of(const struct sessions *s, const struct credential *at,
                                     uint32_t n)
{
    struct quota_minute *usage = calloc(n + 1, sizeof *usage);

    for (uint32_t i = 0; i < n && usage != NULL && s->usage != NULL; i++) {
        const uint32_t was = find(s->credentials, s->credentials_n, str_from(at[i].who.id));
        if (was != NOBODY) {
            usage[i] = s->usage[was];
        }
    }
    return usage;
}

uint32_t sessions_set(struct sessions *s, struct credential *at, uint32_t n,
                      struct session_time time)
{
    struct quota_minute *usage = usage_of(s, at, n);
    uint32_t ended = 0;

    for (uint32_t i = 0; i < SLOTS; i++) {
        struct session *session = &s->at[i];
        const struct credential *was;
        if (session->state == FREE || session->of == NOBODY) {
            continue;
        }
        was = &s->credentials[session->of];
        const uint32_t now_at = find(at, n, str_from(was->who.id));
        if (now_at == NOBODY || !goes_on(session, was, &at[now_at], time.wall)) {
            ended += session->state == PROVED;
            hang_up(s, session->pipe);
            end(s, session);
            continue;
        }
        session->by_previous =
            session->state == PROVED && !auth_equal(session->by_previous ? was->previous : was->key,
                                                    at[now_at].key, AUTH_KEY_BYTES);
        session->of = now_at;
    }
    forget_credentials(s);
    s->credentials = at;
    s->credentials_n = n;
    s->usage = usage;
    return ended;
}

/* ---- failures ---- */

static struct str host_of(struct str peer)
{
    while (peer.len > 0 && peer.ptr[peer.len - 1] != ':') {
        peer.len--;
    }
    return peer;
}

/* One more failure of this host or id; true: it had too many. */
static bool is_too_often(struct sessions *s, struct str of, msec now)
{
    struct bucket *b = &s->failures[str_hash(of) % BUCKETS];

    if (now - b->from >= SESSIONS_FAILURES_MS) {
        *b = (struct bucket){.from = now};
    }
    return ++b->n > SESSIONS_FAILURES_MAX;
}

static uint32_t count_failure(struct failing at[BUCKETS], uint64_t of, msec now)
{
    struct failing *f = &at[of % BUCKETS];

    if (f->of != of || now - f->from >= SESSIONS_FAILURES_MS) {
        *f = (struct failing){.of = of, .from = now};
    }
    return ++f->n;
}

bool sessions_failed(struct sessions *s, struct session_peer peer, bool forged, msec now)
{
    const struct str host = host_of(peer.address);
    const bool connection = count_failure(s->connections, peer.pipe, now) > SESSIONS_FAILURES_MAX;
    const bool flood =
        forged && count_failure(s->hosts, str_hash(host), now) > SESSIONS_FAILURES_HOST_MAX;

    if (connection || flood) {
        hang_up(s, peer.pipe);
    }
    return is_too_often(s, host, now);
}

/* The reasons look the same. A right MAC passes whatever failed before it: nobody is locked out. */
static enum bt_code refuse(struct sessions *s, const struct session *session,
                           struct session_peer peer, msec now, struct bt_error *err)
{
    bool often = sessions_failed(s, peer, session != NULL, now);

    if (session != NULL && session->of != NOBODY) {
        often = is_too_often(s, str_from(s->credentials[session->of].who.id), now) || often;
    }
    return err_set(err, often ? BT_BUSY : BT_UNAUTHORIZED,
                   "the request proves no session: it has ended, or the MAC is wrong; begin again "
                   "with auth.begin");
}

/* ---- the table ---- */

static bool is_over(const struct session *session, msec now)
{
    const msec longest = session->state == PENDING ? SESSIONS_PENDING_MS : SESSIONS_IDLE_MS;

    return now >= session->used && now - session->used >= longest;
}

/* Of the entries that `of` counts, the one used longest ago. */
static struct session *oldest(struct sessions *s, enum state state, bool any, uint32_t of)
{
    struct session *found = NULL;

    for (uint32_t i = 0; i < SLOTS; i++) {
        struct session *session = &s->at[i];
        if (session->state == state && (any || session->of == of) &&
            (found == NULL || session->used < found->used)) {
            found = session;
        }
    }
    return found;
}

/* The oldest pending entry of the peer that has most. */
static struct session *pushed_out(struct sessions *s)
{
    struct session *pending[SESSIONS_PENDING_MAX];
    struct session *found = NULL;
    uint32_t most = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < SLOTS; i++) {
        if (s->at[i].state == PENDING) { /* take leaves no more than pending has room for */
            pending[n++] = &s->at[i];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < n; k++) {
            same += pending[k]->peer == pending[i]->peer;
        }
        if (same > most || (same == most && pending[i]->used < found->used)) {
            found = pending[i];
            most = same;
        }
    }
    return found;
}

/* A free entry for a handshake. */
static struct session *take(struct sessions *s, msec now)
{
    struct session *free_one = NULL;
    uint32_t pending = 0;

    for (uint32_t i = 0; i < SLOTS; i++) {
        struct session *session = &s->at[i];
        if (session->state != FREE && is_over(session, now)) {
            end(s, session);
        }
        pending += session->state == PENDING;
        free_one = free_one == NULL && session->state == FREE ? session : free_one;
    }
    if (pending >= SESSIONS_PENDING_MAX) {
        free_one = pushed_out(s);
        end(s, free_one);
    }
    return free_one;
}

/* The entry with this sid, whose first two bytes are its place. */
static struct session *lookup(const struct sessions *s, const uint8_t sid[AUTH_SID_BYTES])
{
    const uint32_t ix = (uint32_t)sid[0] << 8 | sid[1];
    const struct session *session = ix < SLOTS ? &s->at[ix] : NULL;

    return session != NULL && session->state != FREE &&
                   memcmp(session->sid, sid, AUTH_SID_BYTES) == 0
               ? (struct session *)(uintptr_t)session
               : NULL;
}

struct str sessions_claimed(const struct sessions *s, const struct seal *seal)
{
    const struct session *session = lookup(s, seal->sid);

    return str_from(session != NULL ? session->claimed : "");
}

/* ---- the handshake ---- */

/* The keys of an id. Those of one that nobody has are made up, in the same time. */
static bool keys_of(struct sessions *s, struct str id, struct session *session, msec wall,
                    uint8_t key[AUTH_KEY_BYTES], uint8_t previous[AUTH_KEY_BYTES])
{
    const uint32_t ix = find(s->credentials, s->credentials_n, id);
    const struct credential *c = ix == NOBODY ? NULL : &s->credentials[ix];

    if (!auth_hmac(s->secret, &id, 1, key)) {
        return false;
    }
    session->of = NOBODY;
    memcpy(previous, key, AUTH_KEY_BYTES);
    if (c != NULL && credential_is_valid(c, wall)) {
        session->of = ix;
        session->has_previous = has_previous(c, wall);
        memcpy(key, c->key, AUTH_KEY_BYTES);
        memcpy(previous, session->has_previous ? c->previous : c->key, AUTH_KEY_BYTES);
    }
    return true;
}

static bool derive(struct session *session, const struct handshake *h,
                   const uint8_t key[AUTH_KEY_BYTES], const uint8_t previous[AUTH_KEY_BYTES],
                   struct session_begun *ret)
{
    return handshake_proof(key, h, ret->proof) && handshake_mac_key(key, h, &session->key) &&
           handshake_proof(previous, h, ret->previous) &&
           handshake_mac_key(previous, h, &session->previous);
}

enum bt_code sessions_begin(struct sessions *s, struct str id,
                            const uint8_t nonce_c[AUTH_NONCE_BYTES], struct str peer,
                            struct session_time time, struct session_begun *ret,
                            struct bt_error *err)
{
    struct session *session = take(s, time.now);
    const size_t ix = (size_t)(session - s->at);
    uint8_t key[AUTH_KEY_BYTES];
    uint8_t previous[AUTH_KEY_BYTES];
    struct handshake h;
    bool ok;

    memcpy(h.nonce_c, nonce_c, AUTH_NONCE_BYTES);
    ok = auth_random(h.nonce_s, sizeof h.nonce_s) && auth_random(h.sid, sizeof h.sid);
    h.sid[0] = (uint8_t)(ix >> 8);
    h.sid[1] = (uint8_t)ix;
    ok = ok && keys_of(s, id, session, time.wall, key, previous) &&
         derive(session, &h, key, previous, ret);
    explicit_bzero(key, sizeof key);
    explicit_bzero(previous, sizeof previous);
    if (!ok) {
        end(s, session);
        return err_set(err, BT_INTERNAL, "the handshake cannot be made now");
    }
    memcpy(session->sid, h.sid, sizeof h.sid);
    memcpy(ret->sid, h.sid, sizeof h.sid);
    memcpy(ret->nonce_s, h.nonce_s, sizeof h.nonce_s);
    ret->has_previous = session->has_previous;
    if (id.len <= LIMIT_ID_BYTES) {
        memcpy(session->claimed, id.ptr, id.len); /* of an entry that is empty */
    }
    session->state = PENDING;
    session->used = time.now;
    session->peer = str_hash(peer);
    return BT_OK;
}

/* ---- requests ---- */

/* Sessions of the credential whose connection has ended end, too: others may have their places. */
static void end_left(struct sessions *s, uint32_t of)
{
    for (uint32_t i = 0; i < SLOTS && s->hooks.is_open != NULL; i++) {
        if (s->at[i].state == PROVED && s->at[i].of == of &&
            !s->hooks.is_open(s->hooks.self, s->at[i].pipe)) {
            end(s, &s->at[i]);
        }
    }
}

static uint32_t proved_of(const struct sessions *s, uint32_t of, bool counted)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < SLOTS; i++) {
        n += s->at[i].state == PROVED && s->at[i].of == of && (s->at[i].counted || !counted);
    }
    return n;
}

/* The first right MAC of an entry. */
static void prove(struct sessions *s, struct session *session, bool by_previous)
{
    if (proved_of(s, session->of, false) >= SESSIONS_PER_CREDENTIAL) {
        end_left(s, session->of);
    }
    if (proved_of(s, session->of, false) >= SESSIONS_PER_CREDENTIAL) {
        end(s, oldest(s, PROVED, false, session->of));
    } else if (s->proved >= SESSIONS_MAX) {
        end(s, oldest(s, PROVED, true, 0));
    }
    if (by_previous) {
        session->key = session->previous;
    }
    session->state = PROVED;
    session->by_previous = by_previous;
    s->proved++;
}

/* The credential, and the key that the session was begun with, are valid. */
static bool is_valid(const struct sessions *s, const struct session *session, msec wall)
{
    const struct credential *c = &s->credentials[session->of];

    return credential_is_valid(c, wall) && (!session->by_previous || has_previous(c, wall));
}

enum bt_code sessions_open(struct sessions *s, struct str bytes, struct session_peer peer,
                           struct session_time time, struct seal *ret, struct str *ret_body,
                           struct bt_error *err)
{
    struct session *session;
    bool by_previous = false;
    bool ok;

    if (!seal_read(bytes, ret, ret_body)) {
        return refuse(s, NULL, peer, time.now, err);
    }
    session = lookup(s, ret->sid);
    if (session != NULL && is_over(session, time.now)) {
        end(s, session);
        session = NULL;
    }
    if (session == NULL) {
        return refuse(s, NULL, peer, time.now, err);
    }
    ok = seal_check(&session->key, SEAL_REQUEST, bytes);
    if (!ok && session->state == PENDING && session->has_previous) {
        ok = by_previous = seal_check(&session->previous, SEAL_REQUEST, bytes);
    }
    if (!ok || session->of == NOBODY) {
        return refuse(s, session, peer, time.now, err);
    }
    if (session->state == PENDING) {
        prove(s, session, by_previous);
    }
    if (!is_valid(s, session, time.wall)) {
        end(s, session);
        return refuse(s, NULL, peer, time.now, err);
    }
    if (ret->n <= session->n) {
        return err_set(err, BT_UNAUTHORIZED, "n: expected more than %llu, got %llu",
                       (unsigned long long)session->n, (unsigned long long)ret->n);
    }
    session->n = ret->n;
    session->used = time.now;
    session->pipe = peer.pipe;
    return BT_OK;
}

/* ---- quotas ---- */

static enum bt_code count_connection(struct sessions *s, struct session *session,
                                     struct quota_over *ret, struct bt_error *err)
{
    const struct identity *who = &s->credentials[session->of].who;
    const uint64_t limit = identity_quota(who, QUOTA_CONNECTIONS, 0);

    if (!session->counted && limit > 0 && proved_of(s, session->of, true) >= limit) {
        end_left(s, session->of);
    }
    if (!session->counted && limit > 0 && proved_of(s, session->of, true) >= limit) {
        return quota_refuse((struct quota_over){QUOTA_CONNECTIONS, limit, SESSIONS_FULL_MS},
                            BT_BUSY, ret, err);
    }
    session->counted = true;
    return BT_OK;
}

enum bt_code sessions_charge(struct sessions *s, const struct seal *seal, size_t bytes, msec now,
                             struct quota_over *ret, struct bt_error *err)
{
    struct session *session = lookup(s, seal->sid);
    const struct identity *who;
    struct quota_minute *usage;
    enum bt_code code;

    if (session == NULL || session->state != PROVED || s->usage == NULL) {
        return BT_OK;
    }
    who = &s->credentials[session->of].who;
    usage = &s->usage[session->of];
    code = count_connection(s, session, ret, err);
    if (code == BT_OK) {
        code = quota_check(usage, who, (struct quota_use){QUOTA_REQUESTS, 1}, now, ret, err);
    }
    if (code == BT_OK) {
        code = quota_check(usage, who, (struct quota_use){QUOTA_BYTES, bytes}, now, ret, err);
    }
    if (code == BT_OK) {
        quota_add(usage, (struct quota_use){QUOTA_REQUESTS, 1}, now);
        quota_add(usage, (struct quota_use){QUOTA_BYTES, bytes}, now);
    }
    return code;
}

void sessions_count_event(struct sessions *s, struct str id, msec now)
{
    const uint32_t at = s->usage != NULL ? find(s->credentials, s->credentials_n, id) : NOBODY;

    if (at != NOBODY) {
        quota_add(&s->usage[at], (struct quota_use){QUOTA_EVENTS, 1}, now);
    }
}

enum bt_code sessions_events_left(const struct sessions *s, struct str id, msec now,
                                  struct quota_over *ret, struct bt_error *err)
{
    const uint32_t at = s->usage != NULL ? find(s->credentials, s->credentials_n, id) : NOBODY;

    return at == NOBODY ? BT_OK
                        : quota_check(&s->usage[at], &s->credentials[at].who,
                                      (struct quota_use){QUOTA_EVENTS, 1}, now, ret, err);
}

const struct identity *sessions_identity(const struct sessions *s, struct str id, msec wall)
{
    const uint32_t at = find(s->credentials, s->credentials_n, id);

    return at != NOBODY && credential_is_valid(&s->credentials[at], wall) ? &s->credentials[at].who
                                                                          : NULL;
}

const struct identity *sessions_who(const struct sessions *s, const struct seal *seal, msec wall)
{
    const struct session *session = lookup(s, seal->sid);

    return session != NULL && session->state == PROVED && is_valid(s, session, wall)
               ? &s->credentials[session->of].who
               : NULL;
}

bool sessions_seal(const struct sessions *s, const struct seal *seal, uint8_t *at, size_t len)
{
    const struct session *session = lookup(s, seal->sid);

    return session != NULL && session->state == PROVED &&
           seal_write(&session->key, SEAL_ANSWER, seal, at, len);
}

/* The daemon's table of sessions: which entry goes when one more comes, which failures are too
 * many, and what a change of the credentials leaves. */
#include "tests/unit/auth/sessions_rig.h"

/* Two hosts, and the connections of a peer, that share no place of the counters. */
static const struct session_peer here = {{"127.0.0.1:1", 11}, 7};
static const struct session_peer there = {{"10.0.0.9:1", 10}, 8};

static struct session_time after(msec ms)
{
    return (struct session_time){NOW + ms, WALL};
}

/* Opens the next request over this connection; its seal in *ret. */
static enum bt_code open_over(struct sessions *s, struct client *c, struct session_peer peer,
                              struct session_time time, struct seal *ret)
{
    struct str body;
    struct buf out;
    enum bt_code code;

    buf_init(&out, 1000);
    seal_next(c, &out);
    code = sessions_open(s, buf_str(&out), peer, time, ret, &body, NULL);
    buf_done(&out);
    return code;
}

static enum bt_code forge_over(struct sessions *s, struct client *c, struct session_peer peer,
                               msec ms)
{
    struct seal seal;

    c->s.open = true;
    return open_over(s, c, peer, after(ms), &seal);
}

/* ---- which entry goes ---- */

static void as_many_handshakes_as_there_are_places_push_out_none(void **state)
{
    struct sessions *s = new_table();
    struct client *c = calloc(SESSIONS_PENDING_MAX + 1, sizeof *c);

    (void)state;
    assert_non_null(c);
    for (int more = 0; more < 2; more++) {
        (void)sessions_set(s, some(1), 1, at_start);
        for (uint32_t i = 0; i < SESSIONS_PENDING_MAX + (uint32_t)more; i++) {
            c[i] = client_of("c0", 1);
            assert_int_equal(begin_at(s, &c[i], "h:1", after(i)), BT_OK);
        }
        assert_int_equal(ask_at(s, &c[0], after(300)), more == 0 ? BT_OK : BT_UNAUTHORIZED);
        assert_int_equal(ask_at(s, &c[1], after(300)), BT_OK);
        sessions_free(s);
        s = new_table();
    }
    free(c);
    sessions_free(s);
}

static void of_peers_with_as_many_handshakes_the_oldest_goes(void **state)
{
    struct sessions *s = new_table();
    struct client c[4];

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    for (uint32_t i = 0; i < SESSIONS_PENDING_MAX; i++) {
        struct client other = client_of("c0", 1);
        const uint32_t of = i % 2;
        assert_int_equal(begin_at(s, &other, of == 0 ? "a:1" : "b:1", after(1000 - i)), BT_OK);
        c[i % 4] = other;
    }
    c[0] = client_of("c0", 1); /* the oldest is the last one of b */
    assert_int_equal(begin_at(s, &c[0], "c:1", after(1000)), BT_OK);
    assert_int_equal(ask_at(s, &c[3], after(1000)), BT_UNAUTHORIZED);
    assert_int_equal(ask_at(s, &c[2], after(1000)), BT_OK);
    assert_int_equal(ask_at(s, &c[1], after(1000)), BT_OK);
    assert_int_equal(ask_at(s, &c[0], after(1000)), BT_OK);
    sessions_free(s);
}

static void a_handshake_that_nobody_finished_leaves_its_place_after_its_time(void **state)
{
    struct sessions *s = new_table();
    struct client legal = client_of("c0", 1);
    struct client other = client_of("c0", 9);

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    assert_int_equal(begin_at(s, &legal, "a:1", after(1)), BT_OK);
    for (uint32_t i = 0; i < SESSIONS_PENDING_MAX - 1; i++) {
        (void)begin_at(s, &other, "b:1", at_start);
    }
    for (uint32_t i = 0; i < SESSIONS_PENDING_MAX - 1; i++) {
        char peer[16];
        (void)snprintf(peer, sizeof peer, "%u:1", i);
        (void)begin_at(s, &other, peer, after(SESSIONS_PENDING_MS));
    }
    assert_int_equal(ask_at(s, &legal, after(SESSIONS_PENDING_MS)), BT_OK);
    sessions_free(s);
}

static void an_idle_session_leaves_its_place_when_another_begins(void **state)
{
    struct sessions *s = new_table();
    struct client c = client_of("c0", 1);

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    begin(s, &c);
    assert_int_equal(ask(s, &c), BT_OK);
    assert_int_equal(begin_at(s, &c, "h:1", after(SESSIONS_IDLE_MS - 1)), BT_OK);
    assert_int_equal(sessions_count(s), 1);
    assert_int_equal(begin_at(s, &c, "h:1", after(SESSIONS_IDLE_MS)), BT_OK);
    assert_int_equal(sessions_count(s), 0);
    sessions_free(s);
}

/* One connection has ended: its session goes, although another is idle for longer. */
static void one_session_too_many_takes_the_place_of_one_whose_connection_has_ended(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);
    struct client *c = calloc(SESSIONS_PER_CREDENTIAL + 1, sizeof *c);
    struct client other = client_of("c1", 2);
    struct seal seal;

    (void)state;
    assert_non_null(c);
    begin(s, &other);
    assert_int_equal(open_over(s, &other, (struct session_peer){here.address, 3}, at_start, &seal),
                     BT_OK);
    for (uint32_t i = 0; i <= SESSIONS_PER_CREDENTIAL; i++) {
        c[i] = client_of("c0", 1);
        closed_pipe = i == SESSIONS_PER_CREDENTIAL ? 3 : 0;
        assert_int_equal(begin_at(s, &c[i], "h:1", after(i)), BT_OK);
        assert_int_equal(
            open_over(s, &c[i], (struct session_peer){here.address, i + 1}, after(i), &seal),
            BT_OK);
    }
    assert_int_equal(ask(s, &c[0]), BT_OK);
    assert_int_equal(ask(s, &c[2]), BT_UNAUTHORIZED);
    assert_int_equal(ask(s, &other), BT_OK); /* that of another credential stays */
    free(c);
    sessions_free(s);
}

/* The same without an end of a connection; one of another credential is idle for longer. */
static void one_session_too_many_ends_none_of_another_credential(void **state)
{
    struct sessions *s = new_table();
    struct client other = client_of("c1", 2);
    struct client c;

    (void)state;
    (void)sessions_set(s, some(2), 2, at_start);
    begin(s, &other);
    assert_int_equal(ask(s, &other), BT_OK);
    for (uint32_t i = 0; i <= SESSIONS_PER_CREDENTIAL; i++) {
        c = client_of("c0", 1);
        assert_int_equal(begin_at(s, &c, "h:1", after(1 + i)), BT_OK);
        assert_int_equal(ask_at(s, &c, after(1 + i)), BT_OK);
    }
    assert_int_equal(ask(s, &other), BT_OK);
    assert_int_equal(sessions_count(s), SESSIONS_PER_CREDENTIAL + 1);
    sessions_free(s);
}

/* An entry that is pushed out leaves nothing to the one that takes its place. */
static void an_entry_that_is_taken_is_empty(void **state)
{
    const uint8_t nonce[AUTH_NONCE_BYTES] = {1};
    char long_id[LIMIT_ID_BYTES + 2];
    struct sessions *s = new_table();
    struct credential *at = some(1);
    struct session_begun b;
    struct seal seal = {.n = 1};

    (void)state;
    memset(long_id, 'x', sizeof long_id);
    long_id[LIMIT_ID_BYTES + 1] = 0;
    at[0].previous_until = WALL + 1;
    (void)sessions_set(s, at, 1, at_start);
    for (uint32_t i = 0; i < SESSIONS_PENDING_MAX; i++) {
        assert_int_equal(
            sessions_begin(s, STR_LIT("c0"), nonce, STR_LIT("h:1"), at_start, &b, NULL), BT_OK);
        assert_true(b.has_previous);
    }
    assert_int_equal(
        sessions_begin(s, str_from(long_id), nonce, STR_LIT("h:1"), at_start, &b, NULL), BT_OK);
    assert_false(b.has_previous);
    memcpy(seal.sid, b.sid, sizeof seal.sid);
    assert_string_equal(sessions_claimed(s, &seal).ptr, "");
    sessions_free(s);
}

/* ---- failures ---- */

/* It claims nothing: it is no forged request, however many come. */
static void a_handshake_that_is_too_late_is_not_forged(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);
    struct client *c = calloc(2 * SESSIONS_FAILURES_HOST_MAX, sizeof *c);
    struct seal seal;

    (void)state;
    assert_non_null(c);
    for (uint32_t i = 0; i < 2 * SESSIONS_FAILURES_HOST_MAX; i++) {
        c[i] = client_of("c1", 2);
        begin(s, &c[i]);
    }
    for (uint32_t i = 0; i < 2 * SESSIONS_FAILURES_HOST_MAX; i++) {
        assert_int_not_equal(open_over(s, &c[i], (struct session_peer){here.address, 1000 + i},
                                       after(SESSIONS_PENDING_MS), &seal),
                             BT_OK);
    }
    assert_int_equal(hung_up_n, 0);
    free(c);
    sessions_free(s);
}

static void failures_of_one_host_are_not_those_of_another(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);

    (void)state;
    for (uint32_t i = 0; i < SESSIONS_FAILURES_MAX; i++) {
        const struct session_peer peer = {
            i % 2 == 0 ? STR_LIT("127.0.0.1:1") : STR_LIT("127.0.0.1:23"), 100 + i};
        assert_false(sessions_failed(s, peer, false, NOW));
    }
    assert_false(sessions_failed(s, there, false, NOW));
    assert_true(sessions_failed(s, here, false, NOW + SESSIONS_FAILURES_MS - 1));
    assert_false(sessions_failed(s, here, false, NOW + SESSIONS_FAILURES_MS));
    assert_int_equal(hung_up_n, 0);
    sessions_free(s);
}

static void forged_requests_for_one_id_count_from_whatever_host(void **state)
{
    struct sessions *s = new_table();
    struct client c = client_of("c0", 9);
    char address[32];

    (void)state;
    (void)sessions_set(s, some(2), 2, at_start);
    (void)begin_at(s, &c, "h:1", at_start);
    for (uint32_t i = 0; i <= SESSIONS_FAILURES_MAX; i++) {
        (void)snprintf(address, sizeof address, "10.2.%u.1:1", i);
        assert_int_equal(forge_over(s, &c, (struct session_peer){str_from(address), 100 + i}, 0),
                         i < SESSIONS_FAILURES_MAX ? BT_UNAUTHORIZED : BT_BUSY);
    }
    c = client_of("c1", 9); /* another id, another host */
    (void)begin_at(s, &c, "h:1", at_start);
    assert_int_equal(forge_over(s, &c, there, 0), BT_UNAUTHORIZED);
    c = client_of("nobody", 9); /* an id that nobody has is not counted at all */
    (void)begin_at(s, &c, "h:1", at_start);
    for (uint32_t i = 0; i <= SESSIONS_FAILURES_MAX; i++) {
        (void)snprintf(address, sizeof address, "10.1.%u.1:1", i);
        assert_int_equal(forge_over(s, &c, (struct session_peer){str_from(address), 200 + i}, 0),
                         BT_UNAUTHORIZED);
    }
    sessions_free(s);
}

/* A client whose session has ended claims nothing; one that has a wrong MAC does. */
static void a_wrong_mac_is_forged_and_a_session_that_has_ended_is_not(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);
    struct client liar = client_of("c0", 9);
    struct client lost = client_of("c1", 2);

    (void)state;
    begin(s, &lost);
    lost.s.handshake.sid[5] ^= 1; /* of no session */
    (void)begin_at(s, &liar, "h:1", at_start);
    for (uint32_t i = 0; i < 2 * SESSIONS_FAILURES_HOST_MAX; i++) {
        (void)forge_over(s, &lost, (struct session_peer){there.address, 1000 + i}, 0);
    }
    assert_int_equal(hung_up_n, 0);
    for (uint32_t i = 0; i <= SESSIONS_FAILURES_HOST_MAX; i++) {
        (void)forge_over(s, &liar, (struct session_peer){here.address, 2000 + i}, 0);
    }
    assert_int_equal(hung_up_n, 1);
    assert_int_equal(hung_up[0], 2000 + SESSIONS_FAILURES_HOST_MAX);
    sessions_free(s);
}

static void a_flood_of_one_host_ends_with_its_ten_seconds(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);

    (void)state;
    for (uint32_t i = 0; i < SESSIONS_FAILURES_HOST_MAX; i++) {
        (void)sessions_failed(s, (struct session_peer){here.address, 1000 + i}, true, NOW);
    }
    (void)sessions_failed(s, here, true, NOW + SESSIONS_FAILURES_MS);
    assert_int_equal(hung_up_n, 0);
    for (uint32_t i = 1; i < SESSIONS_FAILURES_HOST_MAX; i++) {
        (void)sessions_failed(s, (struct session_peer){here.address, 1000 + i}, true,
                              NOW + SESSIONS_FAILURES_MS);
    }
    (void)sessions_failed(s, there, true, NOW + SESSIONS_FAILURES_MS);
    assert_int_equal(hung_up_n, 0);
    (void)sessions_failed(s, here, true, NOW + 2 * SESSIONS_FAILURES_MS - 1);
    assert_int_equal(hung_up_n, 1);
    sessions_free(s);
}

/* ---- changes of the credentials ---- */

/* The minute of a credential goes on wherever it is in the list. */
static void a_minute_goes_on_when_the_list_changes(void **state)
{
    struct sessions *s = table_with(QUOTA_REQUESTS, 2);
    struct client c = client_of("c1", 2);
    struct client d = client_of("c2", 3);
    struct credential *next = some(3);
    struct quota_over q = {.limit = 0};

    (void)state;
    begin(s, &c);
    assert_int_equal(charge(s, &c, 7, 1, NOW, &q), BT_OK);
    next[0] = next[1];
    next[0].who.quotas[QUOTA_REQUESTS] = 2;
    next[1] = next[2];
    next[1].who.quotas[QUOTA_REQUESTS] = 2;
    assert_int_equal(sessions_set(s, next, 2, at_start), 0);
    begin(s, &d); /* it is where the other was, with a minute of its own */
    assert_int_equal(charge(s, &d, 8, 1, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &d, 8, 1, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 1, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 1, NOW, &q), BT_BUSY);
    sessions_free(s);
}

static void a_handshake_that_ends_was_no_session(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);
    struct client c = client_of("c1", 2);
    struct client stranger = client_of("nobody", 1);

    (void)state;
    (void)begin_at(s, &stranger, "h:1", at_start); /* of an id that nobody has */
    begin(s, &c);
    assert_int_equal(sessions_set(s, some(1), 1, at_start), 0);
    assert_int_equal(hung_up_n, 0); /* it has no connection yet */
    assert_int_equal(ask(s, &c), BT_UNAUTHORIZED);
    stranger.s.open = true;
    assert_int_equal(ask(s, &stranger), BT_UNAUTHORIZED);
    sessions_free(s);
}

/* Who moves to another connection is hung up on there. */
static void the_connection_of_a_session_is_that_of_its_last_request(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);
    struct client c = client_of("c1", 2);
    struct quota_over q;

    (void)state;
    begin(s, &c);
    assert_int_equal(charge(s, &c, 7, 1, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 9, 1, NOW, &q), BT_OK);
    assert_int_equal(sessions_set(s, some(0), 0, at_start), 1);
    assert_int_equal(hung_up_n, 1);
    assert_int_equal(hung_up[0], 9);
    sessions_free(s);
}

/* Key 1, then 77 with 1 as the previous one, then back, or on to 88. */
static struct credential *keys(int key, int previous, msec until)
{
    struct credential *c = some(1);

    memset(c[0].key, key, AUTH_KEY_BYTES);
    memset(c[0].previous, previous, AUTH_KEY_BYTES);
    c[0].previous_until = until;
    return c;
}

static void a_session_goes_on_while_its_key_is_one_of_the_two(void **state)
{
    static const struct session_time last = {NOW, WALL + 99};
    static const struct session_time over = {NOW, WALL + 100};

    (void)state;
    for (int next = 0; next < 4; next++) {
        struct sessions *s = new_table();
        struct client c = client_of("c0", 1);
        (void)sessions_set(s, keys(77, 1, WALL + 100), 1, at_start);
        begin(s, &c); /* with the key of before */
        assert_int_equal(ask(s, &c), BT_OK);
        assert_int_equal(sessions_set(s, keys(77, 1, WALL + 100), 1, at_start), 0); /* the same */
        if (next == 0) {
            assert_int_equal(ask_at(s, &c, last), BT_OK);
            assert_int_equal(ask_at(s, &c, over), BT_UNAUTHORIZED);
        } else if (next == 1) { /* back: it is the key again, without an end */
            assert_int_equal(sessions_set(s, keys(1, 77, WALL + 100), 1, at_start), 0);
            assert_int_equal(ask_at(s, &c, over), BT_OK);
        } else if (next == 2) { /* on: it is none of them */
            assert_int_equal(sessions_set(s, keys(88, 77, WALL + 100), 1, at_start), 1);
            assert_int_equal(ask(s, &c), BT_UNAUTHORIZED);
        } else { /* the same keys, read after the end of the previous one */
            assert_int_equal(sessions_set(s, keys(77, 1, WALL + 100), 1, over), 1);
        }
        sessions_free(s);
    }
}

/* ---- what is no session ---- */

static void what_has_not_proved_itself_has_no_identity_and_no_answers(void **state)
{
    struct sessions *s = table_with(QUOTA_REQUESTS, 1);
    struct client c = client_of("c1", 2);
    struct quota_over q = {.limit = 0};
    uint8_t answer[SEAL_HEADER_BYTES + 2] = {0};
    struct seal seal = {.n = 1};

    (void)state;
    begin(s, &c);
    memcpy(seal.sid, c.s.handshake.sid, sizeof seal.sid);
    for (int i = 0; i < 2; i++) {
        assert_null(sessions_who(s, &seal, WALL));
        assert_false(sessions_seal(s, &seal, answer, 2));
        for (int k = 0; k < 3; k++) { /* nothing is charged */
            assert_int_equal(sessions_charge(s, &seal, 1, NOW, &q, NULL), BT_OK);
        }
        seal.sid[9] ^= 1; /* then of no session at all */
    }
    seal.sid[0] = seal.sid[1] = 0xFF;
    assert_null(sessions_who(s, &seal, WALL));
    assert_string_equal(sessions_claimed(s, &seal).ptr, "");
    assert_int_equal(charge(s, &c, 7, 1, NOW, &q), BT_OK);
    sessions_free(s);
}

static void a_session_has_the_identity_of_a_valid_credential_only(void **state)
{
    struct sessions *s = new_table();
    struct credential *at = some(2);
    struct client c = client_of("c1", 2);
    struct seal seal;

    (void)state;
    at[1].expires = WALL + 100;
    (void)sessions_set(s, at, 2, at_start);
    begin(s, &c);
    assert_int_equal(open_over(s, &c, here, (struct session_time){NOW, WALL + 99}, &seal), BT_OK);
    assert_string_equal(sessions_who(s, &seal, WALL + 99)->id, "c1");
    assert_null(sessions_who(s, &seal, WALL + 100));
    assert_string_equal(sessions_identity(s, STR_LIT("c1"), WALL + 99)->id, "c1");
    assert_null(sessions_identity(s, STR_LIT("c1"), WALL + 100));
    assert_null(sessions_identity(s, STR_LIT("c2"), WALL));
    c = client_of("c1", 2);
    begin(s, &c); /* and it proves itself when it is too late */
    assert_int_equal(open_over(s, &c, here, (struct session_time){NOW, WALL + 100}, &seal),
                     BT_UNAUTHORIZED);
    assert_int_equal(sessions_count(s), 1);
    sessions_free(s);
}

static void a_session_says_what_id_it_was_begun_with(void **state)
{
    char id[LIMIT_ID_BYTES + 2];
    struct seal seal = {.n = 1};

    (void)state;
    memset(id, 'x', sizeof id);
    id[LIMIT_ID_BYTES + 1] = 0;
    for (int i = 0; i < 2; i++) { /* nobody has it; one of 65 bytes is not kept */
        struct sessions *s = new_table();
        struct client c = client_of(id, 1);
        assert_int_equal(begin_at(s, &c, "h:1", at_start), BT_UNAUTHORIZED);
        memcpy(seal.sid, c.s.handshake.sid, sizeof seal.sid);
        assert_true(str_eq(sessions_claimed(s, &seal), str_from(i == 0 ? "" : id)));
        sessions_free(s);
        id[LIMIT_ID_BYTES] = 0;
    }
}

/* ---- quotas ---- */

static void a_request_that_is_refused_is_not_counted(void **state)
{
    struct sessions *s = new_table();
    struct credential *at = some(1);
    struct client c = client_of("c0", 1);
    struct quota_over q = {.limit = 0};

    (void)state;
    at[0].who.quotas[QUOTA_REQUESTS] = 2;
    at[0].who.quotas[QUOTA_BYTES] = 100;
    (void)sessions_set(s, at, 1, at_start);
    begin(s, &c);
    assert_int_equal(charge(s, &c, 7, 101, NOW, &q), BT_LIMIT);
    assert_int_equal(q.quota, QUOTA_BYTES);
    assert_int_equal(q.after, 0);
    assert_int_equal(charge(s, &c, 7, 60, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 41, NOW, &q), BT_BUSY); /* neither a request nor its bytes */
    assert_int_equal(charge(s, &c, 7, 40, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 0, NOW, &q), BT_BUSY);
    assert_int_equal(q.quota, QUOTA_REQUESTS);
    sessions_free(s);
}

static void so_many_connections_are_within_the_quota_and_one_more_is_not(void **state)
{
    struct sessions *s = table_with(QUOTA_CONNECTIONS, 2);
    struct client c[4];
    struct client other = client_of("c0", 1);
    struct quota_over q = {.limit = 0};

    (void)state;
    begin(s, &other);
    assert_int_equal(charge(s, &other, 1, 1, NOW, &q), BT_OK); /* of another credential */
    for (uint32_t i = 0; i < 4; i++) {
        c[i] = client_of("c1", 2);
        begin(s, &c[i]);
        if (i == 3) {
            closed_pipe = 10 + 1;
        }
        assert_int_equal(charge(s, &c[i], 10 + i, 1, NOW, &q), i == 2 ? BT_BUSY : BT_OK);
        assert_int_equal(charge(s, &c[0], 10, 1, NOW, &q), BT_OK); /* it is counted once */
    }
    assert_int_equal(ask(s, &c[1]), BT_UNAUTHORIZED); /* its connection has ended */
    assert_int_equal(charge(s, &c[2], 12, 1, NOW, &q), BT_BUSY);
    sessions_free(s);
}

static void a_refusal_says_which_quota_and_when_to_come_again(void **state)
{
    static const struct {
        struct quota_over over;
        const char *text;
    } cases[] = {
        {{QUOTA_REQUESTS, 2, 1},
         "requests: more than the quota of this credential, 2 a minute; "
         "try again in 1 s"},
        {{QUOTA_BYTES, 9, 1000},
         "bytes: more than the quota of this credential, 9 a minute; "
         "try again in 1 s"},
        {{QUOTA_EVENTS, 9, 1001},
         "events: more than the quota of this credential, 9 a minute; "
         "try again in 2 s"},
        {{QUOTA_BYTES, 9, 0}, "bytes: more than the quota of this credential, 9 a minute"},
        {{QUOTA_CONNECTIONS, 3, SESSIONS_FULL_MS},
         "connections: more than the quota of this credential, 3"},
    };
    struct quota_over over;
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(quota_refuse(cases[i].over, BT_BUSY, &over, &err), BT_BUSY);
        assert_int_equal(err.code, BT_BUSY);
        assert_string_equal(err.msg, cases[i].text);
        assert_int_equal(over.quota, cases[i].over.quota);
        assert_int_equal(over.limit, cases[i].over.limit);
        assert_int_equal(over.after, cases[i].over.after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_handshakes_as_there_are_places_push_out_none),
        cmocka_unit_test(of_peers_with_as_many_handshakes_the_oldest_goes),
        cmocka_unit_test(a_handshake_that_nobody_finished_leaves_its_place_after_its_time),
        cmocka_unit_test(an_idle_session_leaves_its_place_when_another_begins),
        cmocka_unit_test(one_session_too_many_takes_the_place_of_one_whose_connection_has_ended),
        cmocka_unit_test(one_session_too_many_ends_none_of_another_credential),
        cmocka_unit_test(an_entry_that_is_taken_is_empty),
        cmocka_unit_test(a_handshake_that_is_too_late_is_not_forged),
        cmocka_unit_test(failures_of_one_host_are_not_those_of_another),
        cmocka_unit_test(forged_requests_for_one_id_count_from_whatever_host),
        cmocka_unit_test(a_wrong_mac_is_forged_and_a_session_that_has_ended_is_not),
        cmocka_unit_test(a_flood_of_one_host_ends_with_its_ten_seconds),
        cmocka_unit_test(a_minute_goes_on_when_the_list_changes),
        cmocka_unit_test(a_handshake_that_ends_was_no_session),
        cmocka_unit_test(the_connection_of_a_session_is_that_of_its_last_request),
        cmocka_unit_test(a_session_goes_on_while_its_key_is_one_of_the_two),
        cmocka_unit_test(what_has_not_proved_itself_has_no_identity_and_no_answers),
        cmocka_unit_test(a_session_has_the_identity_of_a_valid_credential_only),
        cmocka_unit_test(a_session_says_what_id_it_was_begun_with),
        cmocka_unit_test(a_request_that_is_refused_is_not_counted),
        cmocka_unit_test(so_many_connections_are_within_the_quota_and_one_more_is_not),
        cmocka_unit_test(a_refusal_says_which_quota_and_when_to_come_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

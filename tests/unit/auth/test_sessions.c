/* The daemon's table of sessions, in virtual time: proofs, bounds, ends, rotation and revocation.
 */
#include "tests/unit/auth/sessions_rig.h"

static void a_request_is_of_the_identity_that_proved_itself(void **state)
{
    struct sessions *s = new_table();
    struct client c = client_of("c1", 2);
    uint8_t answer[SEAL_HEADER_BYTES + 2] = {0};
    struct seal seal;
    struct str body;
    struct buf out;

    (void)state;
    (void)sessions_set(s, some(3), 3, at_start);
    begin(s, &c);
    assert_int_equal(sessions_count(s), 0);
    buf_init(&out, 1000);
    seal_next(&c, &out);
    assert_int_equal(sessions_open(s, buf_str(&out), peer_one, at_start, &seal, &body, NULL),
                     BT_OK);
    assert_int_equal(sessions_count(s), 1);
    assert_true(str_is(body, "body"));
    assert_string_equal(sessions_who(s, &seal, WALL)->id, "c1");
    memcpy(answer + SEAL_HEADER_BYTES, "ok", 2);
    assert_true(sessions_seal(s, &seal, answer, 2));
    assert_true(auth_session_open(&c.s, (struct str){(char *)answer, sizeof answer}, &body));
    assert_true(str_is(body, "ok"));
    buf_done(&out);
    sessions_free(s);
}

static void a_replayed_or_reordered_request_is_refused(void **state)
{
    struct sessions *s = new_table();
    struct client c = client_of("c0", 1);
    struct buf first;
    struct buf second;

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    begin(s, &c);
    buf_init(&first, 1000);
    buf_init(&second, 1000);
    seal_next(&c, &first);
    seal_next(&c, &second);
    assert_int_equal(open_bytes(s, buf_str(&second), at_start), BT_OK);
    assert_int_equal(open_bytes(s, buf_str(&second), at_start), BT_UNAUTHORIZED);
    assert_int_equal(open_bytes(s, buf_str(&first), at_start), BT_UNAUTHORIZED);
    assert_int_equal(ask(s, &c), BT_OK); /* it goes on for its owner */
    buf_done(&first);
    buf_done(&second);
    sessions_free(s);
}

static void a_changed_byte_is_refused_and_ends_nothing(void **state)
{
    struct sessions *s = new_table();
    struct client c = client_of("c0", 1);
    struct buf out;

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    begin(s, &c);
    buf_init(&out, 1000);
    seal_next(&c, &out);
    for (size_t i = 0; i < out.len; i++) {
        out.at[i] ^= 1;
        assert_int_not_equal(open_bytes(s, buf_str(&out), at_start), BT_OK);
        out.at[i] ^= 1;
        assert_int_not_equal(open_bytes(s, (struct str){(char *)out.at, i}, at_start), BT_OK);
    }
    assert_int_equal(sessions_count(s), 0);
    assert_int_equal(open_bytes(s, buf_str(&out), at_start), BT_OK);
    buf_done(&out);
    sessions_free(s);
}

static void an_unknown_id_and_a_wrong_key_look_the_same(void **state)
{
    struct sessions *s = new_table();
    struct client stranger = client_of("nobody", 1);
    struct client liar = client_of("c0", 9);

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    assert_int_equal(begin_at(s, &stranger, "h:1", at_start), BT_UNAUTHORIZED);
    assert_int_equal(begin_at(s, &liar, "h:1", at_start), BT_UNAUTHORIZED);
    stranger.s.open = liar.s.open = true;
    assert_int_equal(ask(s, &stranger), BT_UNAUTHORIZED);
    assert_int_equal(ask(s, &liar), BT_UNAUTHORIZED);
    sessions_free(s);
}

static void a_session_ends_when_it_was_idle_for_so_long(void **state)
{
    struct sessions *s = new_table();
    struct client c = client_of("c0", 1);

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    begin(s, &c);
    assert_int_equal(ask_at(s, &c, (struct session_time){NOW + SESSIONS_PENDING_MS - 1, WALL}),
                     BT_OK);
    const msec used = NOW + SESSIONS_PENDING_MS - 1;
    assert_int_equal(ask_at(s, &c, (struct session_time){used + SESSIONS_IDLE_MS - 1, WALL}),
                     BT_OK);
    assert_int_equal(ask_at(s, &c, (struct session_time){used + 2 * SESSIONS_IDLE_MS - 1, WALL}),
                     BT_UNAUTHORIZED);
    assert_int_equal(sessions_count(s), 0);
    begin(s, &c);
    assert_int_equal(ask_at(s, &c, (struct session_time){NOW + SESSIONS_PENDING_MS, WALL}),
                     BT_UNAUTHORIZED);
    sessions_free(s);
}

static void a_credential_opens_nothing_from_its_end_on(void **state)
{
    struct sessions *s = new_table();
    struct credential *some_of = some(1);
    struct client c = client_of("c0", 1);

    (void)state;
    some_of[0].expires = WALL + 100;
    (void)sessions_set(s, some_of, 1, at_start);
    begin(s, &c);
    assert_int_equal(ask_at(s, &c, (struct session_time){NOW, WALL + 99}), BT_OK);
    assert_int_equal(ask_at(s, &c, (struct session_time){NOW, WALL + 100}), BT_UNAUTHORIZED);
    assert_int_equal(begin_at(s, &c, "h:1", (struct session_time){NOW, WALL + 100}),
                     BT_UNAUTHORIZED);
    assert_int_equal(begin_at(s, &c, "h:1", (struct session_time){NOW, WALL + 99}), BT_OK);
    sessions_free(s);
}

static void a_revoked_credential_ends_its_sessions_and_no_others(void **state)
{
    struct sessions *s = new_table();
    struct credential *next = some(2);
    struct client c = client_of("c0", 1);
    struct client other = client_of("c1", 2);

    (void)state;
    (void)sessions_set(s, some(2), 2, at_start);
    begin(s, &c);
    begin(s, &other);
    assert_int_equal(ask(s, &c), BT_OK);
    assert_int_equal(ask(s, &other), BT_OK);
    next[0].revoked = WALL;
    assert_int_equal(sessions_set(s, next, 2, at_start), 1);
    assert_int_equal(ask(s, &c), BT_UNAUTHORIZED);
    assert_int_equal(ask(s, &other), BT_OK);
    assert_int_equal(sessions_set(s, some(0), 0, at_start), 1); /* its file is gone */
    assert_int_equal(ask(s, &other), BT_UNAUTHORIZED);
    sessions_free(s);
}

/* Agents that start together change the list while others are in their handshakes. */
static void a_handshake_outlives_the_change_of_another_credential(void **state)
{
    struct sessions *s = new_table();
    struct client c = client_of("c1", 2);
    struct credential *others = some(3);

    (void)state;
    (void)sessions_set(s, some(2), 2, at_start);
    begin(s, &c);
    others[0].revoked = 1;
    (void)sessions_set(s, others, 3, at_start);
    assert_int_equal(ask(s, &c), BT_OK);
    sessions_free(s);
}

static void a_handshake_ends_when_its_credential_changes(void **state)
{
    for (int how = 0; how < 4; how++) {
        struct sessions *s = new_table();
        struct client c = client_of("c1", 2);
        struct credential *changed = some(2);

        (void)state;
        (void)sessions_set(s, some(2), 2, at_start);
        begin(s, &c);
        if (how == 0) {
            changed[1].key[31] ^= 1;
        } else if (how == 1) {
            changed[1].revoked = 1;
        } else if (how == 2) {
            changed[1].previous_until = WALL + 1;
        }
        (void)sessions_set(s, changed, how == 3 ? 1 : 2, at_start);
        assert_int_equal(ask(s, &c), BT_UNAUTHORIZED);
        sessions_free(s);
    }
}

/* ---- quotas, and what the table does to connections ---- */

static void a_quota_of_a_minute_ends_with_its_minute(void **state)
{
    struct sessions *s = table_with(QUOTA_REQUESTS, 2);
    struct client c = client_of("c1", 2);
    struct quota_over q = {.limit = 0};

    (void)state;
    begin(s, &c);
    assert_int_equal(charge(s, &c, 7, 100, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 100, NOW + 5, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 100, NOW + 10, &q), BT_BUSY);
    assert_int_equal(q.quota, QUOTA_REQUESTS);
    assert_int_equal(q.limit, 2);
    assert_int_equal(q.after, QUOTA_MINUTE_MS - 10);
    assert_int_equal(charge(s, &c, 7, 100, NOW + QUOTA_MINUTE_MS - 1, &q), BT_BUSY);
    assert_int_equal(q.after, 1);
    (void)sessions_set(s, some(2), 2, at_start); /* without the quota */
    assert_int_equal(charge(s, &c, 7, 100, NOW + QUOTA_MINUTE_MS - 1, &q), BT_OK);
    sessions_free(s);
    s = table_with(QUOTA_REQUESTS, 1);
    begin(s, &c);
    assert_int_equal(charge(s, &c, 7, 100, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 100, NOW + QUOTA_MINUTE_MS, &q), BT_OK);
    sessions_free(s);
}

static void bytes_are_counted_to_the_last(void **state)
{
    struct sessions *s = table_with(QUOTA_BYTES, 1000);
    struct client c = client_of("c1", 2);
    struct quota_over q = {.limit = 0};

    (void)state;
    begin(s, &c);
    assert_int_equal(charge(s, &c, 7, 1001, NOW, &q), BT_LIMIT);
    assert_int_equal(charge(s, &c, 7, 999, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 2, NOW, &q), BT_BUSY);
    assert_int_equal(charge(s, &c, 7, 1, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &c, 7, 1, NOW, &q), BT_BUSY);
    sessions_free(s);
}

static void events_are_counted_for_a_credential_and_its_minute(void **state)
{
    struct sessions *s = table_with(QUOTA_EVENTS, 3);
    struct client c = client_of("c1", 2);
    struct quota_over q = {.limit = 0};

    (void)state;
    begin(s, &c);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sessions_events_left(s, STR_LIT("c1"), NOW + 7, &q, NULL), BT_OK);
        sessions_count_event(s, STR_LIT("c1"), NOW);
        sessions_count_event(s, STR_LIT("c0"), NOW); /* without a quota */
        sessions_count_event(s, STR_LIT("gone"), NOW);
    }
    assert_int_equal(sessions_events_left(s, STR_LIT("c1"), NOW + 7, &q, NULL), BT_BUSY);
    assert_int_equal(q.quota, QUOTA_EVENTS);
    assert_int_equal(q.limit, 3);
    assert_int_equal(q.after, QUOTA_MINUTE_MS - 7);
    assert_int_equal(charge(s, &c, 7, 100, NOW + 8, &q), BT_OK); /* it may look */
    assert_int_equal(sessions_events_left(s, STR_LIT("c0"), NOW, &q, NULL), BT_OK);
    assert_int_equal(sessions_events_left(s, STR_LIT("gone"), NOW, &q, NULL), BT_OK);
    assert_int_equal(sessions_events_left(s, STR_LIT("c1"), NOW + QUOTA_MINUTE_MS - 1, &q, NULL),
                     BT_BUSY);
    assert_int_equal(q.after, 1);
    assert_int_equal(sessions_events_left(s, STR_LIT("c1"), NOW + QUOTA_MINUTE_MS, &q, NULL),
                     BT_OK);
    sessions_free(s);
}

static void a_connection_that_has_ended_leaves_its_place(void **state)
{
    struct sessions *s = table_with(QUOTA_CONNECTIONS, 1);
    struct client a = client_of("c1", 2);
    struct client b = client_of("c1", 2);
    struct quota_over q = {.limit = 0};

    (void)state;
    begin(s, &a);
    begin(s, &b);
    assert_int_equal(charge(s, &a, 7, 1, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &b, 8, 1, NOW, &q), BT_BUSY);
    assert_int_equal(q.quota, QUOTA_CONNECTIONS);
    assert_int_equal(q.limit, 1);
    assert_int_equal(q.after, SESSIONS_FULL_MS); /* soon: it may have ended */
    assert_int_equal(charge(s, &a, 7, 1, NOW, &q), BT_OK);
    closed_pipe = 7;
    assert_int_equal(charge(s, &b, 8, 1, NOW, &q), BT_OK);
    sessions_free(s);
}

static void a_revocation_hangs_up_on_its_connections_alone(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);
    struct client a = client_of("c0", 1);
    struct client b = client_of("c1", 2);
    struct credential *now = some(2);
    struct quota_over q;

    (void)state;
    begin(s, &a);
    begin(s, &b);
    assert_int_equal(charge(s, &a, 7, 1, NOW, &q), BT_OK);
    assert_int_equal(charge(s, &b, 8, 1, NOW, &q), BT_OK);
    now[1].revoked = 1;
    assert_int_equal(sessions_set(s, now, 2, at_start), 1);
    assert_int_equal(hung_up_n, 1);
    assert_int_equal(hung_up[0], 8);
    sessions_free(s);
}

static void a_connection_is_hung_up_on_at_its_eleventh_failure(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);
    const struct session_peer peer = {STR_LIT("127.0.0.1:1"), 7};
    const struct session_peer other = {STR_LIT("127.0.0.1:2"), 8};

    (void)state;
    for (int i = 0; i < SESSIONS_FAILURES_MAX; i++) {
        (void)sessions_failed(s, peer, false, NOW + SESSIONS_FAILURES_MS - 1);
    }
    assert_int_equal(hung_up_n, 0);
    (void)sessions_failed(s, other, false, NOW + SESSIONS_FAILURES_MS - 1);
    assert_int_equal(hung_up_n, 0);
    (void)sessions_failed(s, peer, false, NOW + SESSIONS_FAILURES_MS - 1);
    assert_int_equal(hung_up_n, 1);
    assert_int_equal(hung_up[0], 7);
    (void)sessions_failed(s, peer, false, NOW + 2 * SESSIONS_FAILURES_MS);
    assert_int_equal(hung_up_n, 1);
    sessions_free(s);
}

static void a_flood_of_forged_requests_is_hung_up_on_and_lost_sessions_are_not(void **state)
{
    struct sessions *s = table_with(QUOTA_PLANS, 0);
    struct session_peer peer = {STR_LIT("127.0.0.1:1"), 0};

    (void)state;
    for (uint32_t i = 0; i < 500; i++) { /* clients that come back after a restart, one each */
        peer.pipe = 1000 + i;
        (void)sessions_failed(s, peer, false, NOW);
    }
    assert_int_equal(hung_up_n, 0);
    for (uint32_t i = 0; i < SESSIONS_FAILURES_HOST_MAX; i++) {
        peer.pipe = 2000 + i;
        (void)sessions_failed(s, peer, true, NOW);
    }
    assert_int_equal(hung_up_n, 0);
    (void)sessions_failed(s, peer, true, NOW);
    assert_int_equal(hung_up_n, 1);
    sessions_free(s);
}

static void the_key_before_a_rotation_is_valid_until_its_end(void **state)
{
    struct sessions *s = new_table();
    struct credential *next = some(1);
    struct client was = client_of("c0", 1);
    struct client is = client_of("c0", 77);
    struct client during = client_of("c0", 1);

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    begin(s, &was);
    assert_int_equal(ask(s, &was), BT_OK);
    memcpy(next[0].previous, next[0].key, AUTH_KEY_BYTES);
    memset(next[0].key, 77, AUTH_KEY_BYTES);
    next[0].previous_until = WALL + 100;
    assert_int_equal(sessions_set(s, next, 1, at_start), 0);
    begin(s, &is);
    begin(s, &during);
    const struct session_time last = {NOW, WALL + 99};
    const struct session_time after = {NOW, WALL + 100};
    assert_int_equal(ask_at(s, &was, last), BT_OK);
    assert_int_equal(ask_at(s, &during, last), BT_OK);
    assert_int_equal(ask_at(s, &is, after), BT_OK);
    assert_int_equal(ask_at(s, &was, after), BT_UNAUTHORIZED);
    assert_int_equal(ask_at(s, &during, after), BT_UNAUTHORIZED);
    assert_int_equal(begin_at(s, &was, "h:1", after), BT_UNAUTHORIZED);
    sessions_free(s);
}

static void one_session_more_ends_the_one_that_is_longest_idle(void **state)
{
    struct sessions *s = new_table();
    struct client *c = calloc(SESSIONS_PER_CREDENTIAL + 1, sizeof *c);

    (void)state;
    assert_non_null(c);
    (void)sessions_set(s, some(2), 2, at_start);
    for (uint32_t i = 0; i <= SESSIONS_PER_CREDENTIAL; i++) {
        const struct session_time time = {NOW + i, WALL};
        c[i] = client_of("c0", 1);
        assert_int_equal(begin_at(s, &c[i], "h:1", time), BT_OK);
        assert_int_equal(ask_at(s, &c[i], time), BT_OK);
        assert_int_equal(sessions_count(s),
                         i < SESSIONS_PER_CREDENTIAL ? i + 1 : SESSIONS_PER_CREDENTIAL);
    }
    assert_int_equal(ask(s, &c[0]), BT_UNAUTHORIZED);
    assert_int_equal(ask(s, &c[1]), BT_OK);
    free(c);
    sessions_free(s);
}

static void the_table_is_bounded_over_all_credentials(void **state)
{
    const uint32_t credentials = SESSIONS_MAX / SESSIONS_PER_CREDENTIAL + 1;
    struct sessions *s = new_table();
    struct client first = {.id = NULL};
    struct client c;
    char id[16];

    (void)state;
    (void)sessions_set(s, some(credentials), credentials, at_start);
    for (uint32_t i = 0; i <= SESSIONS_MAX; i++) {
        const struct session_time time = {NOW + i, WALL};
        const uint32_t of =
            credentials - 1 - i / SESSIONS_PER_CREDENTIAL; /* the oldest: the last */
        (void)snprintf(id, sizeof id, "c%u", of);
        c = client_of(id, (int)of + 1);
        assert_int_equal(begin_at(s, &c, "h:1", time), BT_OK);
        assert_int_equal(ask_at(s, &c, time), BT_OK);
        first = i == 0 ? c : first;
    }
    assert_int_equal(sessions_count(s), SESSIONS_MAX);
    assert_int_equal(ask(s, &first), BT_UNAUTHORIZED);
    assert_int_equal(ask(s, &c), BT_OK);
    sessions_free(s);
}

static void a_flood_of_handshakes_pushes_out_itself(void **state)
{
    struct sessions *s = new_table();
    struct client legal = client_of("c0", 1);
    struct client stranger = client_of("c0", 9);

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    assert_int_equal(begin_at(s, &legal, "127.0.0.1:7", at_start), BT_OK);
    for (uint32_t i = 0; i < 4 * SESSIONS_PENDING_MAX; i++) {
        const struct session_time time = {NOW + i, WALL};
        assert_int_equal(begin_at(s, &stranger, "127.0.0.1:8", time), BT_UNAUTHORIZED);
    }
    assert_int_equal(ask(s, &legal), BT_OK);
    sessions_free(s);
}

static void failures_are_too_many_for_a_log_but_lock_nobody_out(void **state)
{
    struct sessions *s = new_table();
    struct client legal = client_of("c0", 1);
    struct client liar = client_of("c0", 9);
    const struct session_time later = {NOW + SESSIONS_FAILURES_MS, WALL};

    (void)state;
    (void)sessions_set(s, some(1), 1, at_start);
    (void)begin_at(s, &liar, "127.0.0.1:1", at_start);
    for (uint32_t i = 0; i <= SESSIONS_FAILURES_MAX; i++) {
        liar.s.open = true;
        assert_int_equal(ask(s, &liar), i < SESSIONS_FAILURES_MAX ? BT_UNAUTHORIZED : BT_BUSY);
    }
    begin(s, &legal);
    assert_int_equal(ask(s, &legal), BT_OK);
    assert_int_equal(ask_at(s, &liar, later), BT_UNAUTHORIZED);
    sessions_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_of_the_identity_that_proved_itself),
        cmocka_unit_test(a_replayed_or_reordered_request_is_refused),
        cmocka_unit_test(a_changed_byte_is_refused_and_ends_nothing),
        cmocka_unit_test(an_unknown_id_and_a_wrong_key_look_the_same),
        cmocka_unit_test(a_session_ends_when_it_was_idle_for_so_long),
        cmocka_unit_test(a_credential_opens_nothing_from_its_end_on),
        cmocka_unit_test(a_revoked_credential_ends_its_sessions_and_no_others),
        cmocka_unit_test(a_handshake_outlives_the_change_of_another_credential),
        cmocka_unit_test(a_handshake_ends_when_its_credential_changes),
        cmocka_unit_test(a_quota_of_a_minute_ends_with_its_minute),
        cmocka_unit_test(bytes_are_counted_to_the_last),
        cmocka_unit_test(events_are_counted_for_a_credential_and_its_minute),
        cmocka_unit_test(a_connection_that_has_ended_leaves_its_place),
        cmocka_unit_test(a_revocation_hangs_up_on_its_connections_alone),
        cmocka_unit_test(a_connection_is_hung_up_on_at_its_eleventh_failure),
        cmocka_unit_test(a_flood_of_forged_requests_is_hung_up_on_and_lost_sessions_are_not),
        cmocka_unit_test(the_key_before_a_rotation_is_valid_until_its_end),
        cmocka_unit_test(one_session_more_ends_the_one_that_is_longest_idle),
        cmocka_unit_test(the_table_is_bounded_over_all_credentials),
        cmocka_unit_test(a_flood_of_handshakes_pushes_out_itself),
        cmocka_unit_test(failures_are_too_many_for_a_log_but_lock_nobody_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

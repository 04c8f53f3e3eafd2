/*
 * HMAC, HKDF, the handshake and sealed bodies: known answers, and everything that is refused. The
 * answers come from Python's hmac and hashlib, with
 *
 *     key = bytes(range(32)); nc = bytes(range(32, 64)); ns = bytes(range(64, 96))
 *     sid = bytes(range(96, 112))
 *     proof = hmac.digest(key, b'S' + nc + ns + sid, 'sha256')
 *     prk = hmac.digest(nc + ns, key, 'sha256')
 *     sk = hmac.digest(prk, b'baton session 1' + sid + b'\1', 'sha256')
 *     mac = hmac.digest(sk, b'Q' + sid + bytes(range(1, 9)) + b'hello', 'sha256')
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "protocol/auth/session.h"

struct rig {
    uint8_t key[AUTH_KEY_BYTES];
    struct handshake h;
    struct seal seal;
    uint8_t session_key[AUTH_KEY_BYTES];
    struct auth_mac_key mac_key;           /* of session_key */
    uint8_t sealed[SEAL_HEADER_BYTES + 5]; /* "hello", as a request */
};

static void count_up(uint8_t *ret, size_t n, uint8_t from)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = (uint8_t)(from + i);
    }
}

static struct str bytes_of(const struct rig *r)
{
    return (struct str){(const char *)r->sealed, sizeof r->sealed};
}

static void arrange(struct rig *r)
{
    count_up(r->key, sizeof r->key, 0);
    count_up(r->h.nonce_c, sizeof r->h.nonce_c, 32);
    count_up(r->h.nonce_s, sizeof r->h.nonce_s, 64);
    count_up(r->h.sid, sizeof r->h.sid, 96);
    memcpy(r->seal.sid, r->h.sid, sizeof r->seal.sid);
    r->seal.n = 0x0102030405060708;
    assert_true(handshake_session_key(r->key, &r->h, r->session_key));
    assert_true(auth_mac_key_make(r->session_key, &r->mac_key));
    memcpy(r->sealed + SEAL_HEADER_BYTES, "hello", 5);
    assert_true(seal_write(&r->mac_key, SEAL_REQUEST, &r->seal, r->sealed, 5));
}

static void assert_hex(const uint8_t *bytes, const char *want)
{
    char hex[2 * AUTH_KEY_BYTES + 1];

    auth_hex(bytes, AUTH_KEY_BYTES, hex);
    assert_string_equal(hex, want);
}

static void hmac_and_hkdf_have_the_known_answers(void **state)
{
    const struct str parts[] = {STR_LIT("what do ya want "), STR_LIT("for nothing?")};
    uint8_t key[AUTH_KEY_BYTES];
    uint8_t mac[AUTH_KEY_BYTES];
    char salt[80];
    char info[80];

    (void)state;
    count_up(key, sizeof key, 0);
    assert_true(auth_hmac(key, parts, 2, mac));
    assert_hex(mac, "099805f4ac310786968565c098db515cc50862b420ae31e20238312344bed36a");
    count_up((uint8_t *)salt, sizeof salt, 0x60);
    count_up((uint8_t *)info, sizeof info, 0xb0);
    assert_true(auth_hkdf(key, (struct str){salt, 80}, (struct str){info, 80}, mac));
    assert_hex(mac, "8a7141ef32a9057f2b399ee37f18a80ce0848c0fc9de046cac1c7866fe73f603");
}

static void the_handshake_has_the_known_answers(void **state)
{
    struct rig r;
    uint8_t proof[AUTH_KEY_BYTES];

    (void)state;
    arrange(&r);
    assert_true(handshake_proof(r.key, &r.h, proof));
    assert_hex(proof, "ddf6adef15f13f930b20fd36345e9a611ae930d50ab0e59792449364f7e52684");
    assert_hex(r.session_key, "56148bbb726f162b93e7ba3466e3b0e26d373b7858cf74e2a9f64ae8126a7e57");
}

static void a_sealed_body_has_the_known_bytes(void **state)
{
    struct rig r;

    (void)state;
    arrange(&r);
    assert_memory_equal(r.sealed,
                        "\xC1"
                        "BT"
                        "\x01",
                        4);
    assert_memory_equal(r.sealed + 4, r.h.sid, 16);
    assert_memory_equal(r.sealed + 20, "\1\2\3\4\5\6\7\10", 8);
    assert_hex(r.sealed + 28, "d9e2bc084b205e7e85c49d3874287dbc16a0ad26bc7eaab0488de4ba8f2b8273");
    assert_true(seal_write(&r.mac_key, SEAL_ANSWER, &r.seal, r.sealed, 5));
    assert_hex(r.sealed + 28, "67368b8b75159541f3bbb357f9079ed187b16f49c2cbb479994f226f814daf62");
}

static void a_body_that_was_changed_in_one_bit_is_refused(void **state)
{
    struct rig r;
    struct seal seal;
    struct str body;

    (void)state;
    arrange(&r);
    for (size_t i = 0; i < 8 * sizeof r.sealed; i++) {
        r.sealed[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_false(seal_read(bytes_of(&r), &seal, &body) &&
                     seal_check(&r.mac_key, SEAL_REQUEST, bytes_of(&r)));
        r.sealed[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    assert_true(seal_read(bytes_of(&r), &seal, &body));
    assert_true(seal_check(&r.mac_key, SEAL_REQUEST, bytes_of(&r)));
    assert_true(str_is(body, "hello"));
    assert_true(seal.n == r.seal.n);
}

static void a_shorter_or_reflected_body_is_refused(void **state)
{
    struct rig r;
    struct seal seal;
    struct str body;

    (void)state;
    arrange(&r);
    for (size_t n = 0; n < sizeof r.sealed; n++) {
        const struct str cut = {(const char *)r.sealed, n};
        assert_false(seal_read(cut, &seal, &body) && seal_check(&r.mac_key, SEAL_REQUEST, cut));
    }
    assert_false(seal_check(&r.mac_key, SEAL_ANSWER, bytes_of(&r)));
}

static void the_first_byte_tells_a_sealed_body_from_others(void **state)
{
    (void)state;
    assert_true(seal_is_sealed(STR_LIT("\xC1")));
    assert_false(seal_is_sealed(STR_LIT("")));
    assert_false(seal_is_sealed(STR_LIT("{\"v\":1}")));
    assert_false(seal_is_sealed(STR_LIT("\x81\xa1v\x01")));
}

/* ---- the client's side ---- */

static struct auth_session begun(const struct rig *r, const uint8_t *key, const uint8_t *previous,
                                 enum bt_code want)
{
    struct auth_session s = {.handshake = r->h};
    uint8_t proof[AUTH_KEY_BYTES];
    char sid[33];
    char nonce[65];
    char one[65];
    char two[65] = "";
    struct bt_error err;

    auth_hex(r->h.sid, 16, sid);
    auth_hex(r->h.nonce_s, 32, nonce);
    assert_true(handshake_proof(key, &r->h, proof));
    auth_hex(proof, 32, one);
    if (previous != NULL) {
        assert_true(handshake_proof(previous, &r->h, proof));
        auth_hex(proof, 32, two);
    }
    const struct auth_begun b = {str_from(sid), str_from(nonce), str_from(one), str_from(two)};
    assert_int_equal(auth_session_finish(&s, r->key, &b, &err), want);
    assert_int_equal(s.open, want == BT_OK);
    return s;
}

static void a_daemon_without_the_key_is_refused(void **state)
{
    struct rig r;
    uint8_t other[AUTH_KEY_BYTES] = {7};

    (void)state;
    arrange(&r);
    (void)begun(&r, r.key, NULL, BT_OK);
    (void)begun(&r, other, NULL, BT_UNAUTHORIZED);
    (void)begun(&r, other, r.key, BT_OK); /* a rotation: the client has the key before it */
    (void)begun(&r, other, other, BT_UNAUTHORIZED);
}

/* Each member of the answer, too short, too long and with what is no digit. */
static void a_damaged_answer_to_the_handshake_is_refused_as_that(void **state)
{
    static const char *const damages[] = {"0", "zz", "00ff"};
    struct bt_error err;
    struct rig r;
    uint8_t proof[AUTH_KEY_BYTES];
    char sid[2 * AUTH_SID_BYTES + 1], nonce[2 * AUTH_NONCE_BYTES + 1];
    char right[2 * AUTH_KEY_BYTES + 1];

    (void)state;
    arrange(&r);
    auth_hex(r.h.sid, AUTH_SID_BYTES, sid);
    auth_hex(r.h.nonce_s, AUTH_NONCE_BYTES, nonce);
    assert_true(handshake_proof(r.key, &r.h, proof));
    auth_hex(proof, AUTH_KEY_BYTES, right);
    for (size_t i = 0; i < 3; i++) {
        for (int member = 0; member < 4; member++) {
            struct auth_session s = {.handshake = r.h};
            struct str of[4] = {str_from(sid), str_from(nonce), str_from(right), {"", 0}};
            of[member] = str_from(damages[i]);
            const struct auth_begun b = {of[0], of[1], of[2], of[3]};
            assert_int_equal(auth_session_finish(&s, r.key, &b, &err), BT_PROTOCOL);
            assert_string_equal(err.msg, "the answer to auth.begin is damaged");
            assert_false(s.open);
        }
    }
}

/* Small letters alone: another spelling of a proof is another text. */
static void hexadecimal_digits_are_these_and_no_others(void **state)
{
    static const char digits[] = "0123456789abcdef";

    (void)state;
    for (int c = 0; c < 256; c++) {
        const char *digit = c != 0 ? strchr(digits, c) : NULL;
        for (size_t at = 0; at < 4; at++) {
            char text[] = "0000";
            uint8_t bytes[2] = {9, 9};
            text[at] = (char)c;
            assert_int_equal(auth_unhex((struct str){text, 4}, bytes, 2), digit != NULL);
            if (digit != NULL) {
                assert_int_equal(bytes[0] << 8 | bytes[1], (digit - digits) << (12 - 4 * at));
            }
        }
    }
}

static void an_answer_counts_for_the_last_request_alone(void **state)
{
    struct rig r;
    struct auth_session s;
    struct buf out;
    struct seal seal;
    struct str body;
    struct bt_error err;

    (void)state;
    arrange(&r);
    s = begun(&r, r.key, NULL, BT_OK);
    buf_init(&out, 1000);
    assert_int_equal(auth_session_seal(&s, STR_LIT("hello"), &out, &err), BT_OK);
    assert_true(seal_read(buf_str(&out), &seal, &body));
    assert_int_equal(seal.n, 1);
    assert_false(auth_session_open(&s, buf_str(&out), &body)); /* reflected */
    assert_true(seal_write(&s.key, SEAL_ANSWER, &seal, r.sealed, 5));
    assert_true(auth_session_open(&s, bytes_of(&r), &body));
    assert_true(str_is(body, "hello"));
    buf_clear(&out);
    assert_int_equal(auth_session_seal(&s, STR_LIT("x"), &out, &err), BT_OK);
    assert_false(auth_session_open(&s, bytes_of(&r), &body)); /* the answer before, once more */
    assert_false(auth_session_open(&s, STR_LIT("{\"ok\":true}"), &body));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hmac_and_hkdf_have_the_known_answers),
        cmocka_unit_test(the_handshake_has_the_known_answers),
        cmocka_unit_test(a_sealed_body_has_the_known_bytes),
        cmocka_unit_test(a_body_that_was_changed_in_one_bit_is_refused),
        cmocka_unit_test(a_shorter_or_reflected_body_is_refused),
        cmocka_unit_test(the_first_byte_tells_a_sealed_body_from_others),
        cmocka_unit_test(a_daemon_without_the_key_is_refused),
        cmocka_unit_test(a_damaged_answer_to_the_handshake_is_refused_as_that),
        cmocka_unit_test(hexadecimal_digits_are_these_and_no_others),
        cmocka_unit_test(an_answer_counts_for_the_last_request_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

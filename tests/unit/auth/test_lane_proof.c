/* The proof on a lane: known answers, and that nothing else is one. */
#include <string.h>

#include "protocol/auth/lane.h"
#include "tests/support/cmocka.h"

#define SESSION_KEY STR_LIT("0123456789abcdef0123")
/* By Python: hmac.new(hmac.new(bytes(32), key, "sha256").digest(), b"S" + ..., "sha256"). */
#define OF_SUPERVISOR "94a5075c8b6b46710caba038bd324d50e5f6c5775577d8a2ad4ce235415cd5ab"
#define OF_AGENT "6d31d4e3f3cae7b95bf082c88c70c62c2fb6e9052c1b182b78c88fd4d1489412"

static struct lane_proof known(void)
{
    struct lane_proof p = {.lane = 0x0102030405060708, .epoch = 0x1112131415161718};

    for (int i = 0; i < AUTH_NONCE_BYTES; i++) {
        p.nonce_s[i] = (uint8_t)(1 + i);
        p.nonce_a[i] = (uint8_t)(101 + i);
    }
    return p;
}

static bool fits(enum lane_side side, const struct lane_proof *p, const char *proof)
{
    return lane_proof_check(SESSION_KEY, side, p, str_from(proof));
}

static void each_side_has_its_known_proof(void **state)
{
    const struct lane_proof p = known();
    uint8_t made[AUTH_KEY_BYTES];
    char hex[2 * AUTH_KEY_BYTES + 1];

    (void)state;
    assert_true(lane_proof_make(SESSION_KEY, LANE_SIDE_SUPERVISOR, &p, made));
    auth_hex(made, sizeof made, hex);
    assert_string_equal(hex, OF_SUPERVISOR);
    assert_true(lane_proof_make(SESSION_KEY, LANE_SIDE_AGENT, &p, made));
    auth_hex(made, sizeof made, hex);
    assert_string_equal(hex, OF_AGENT);
    assert_true(fits(LANE_SIDE_SUPERVISOR, &p, OF_SUPERVISOR));
    assert_true(fits(LANE_SIDE_AGENT, &p, OF_AGENT));
    assert_false(fits(LANE_SIDE_SUPERVISOR, &p, OF_AGENT));
    assert_false(fits(LANE_SIDE_AGENT, &p, OF_SUPERVISOR));
    assert_false(
        lane_proof_check(STR_LIT("0123456789abcdef0124"), LANE_SIDE_AGENT, &p, STR_LIT(OF_AGENT)));
    assert_false(
        lane_proof_check(STR_LIT("0123456789abcdef012"), LANE_SIDE_AGENT, &p, STR_LIT(OF_AGENT)));
}

static void a_proof_is_of_one_lane_of_one_epoch_and_its_nonces(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8 * sizeof(struct lane_proof); i++) {
        struct lane_proof p = known();
        uint8_t bytes[sizeof p];

        memcpy(bytes, &p, sizeof p);
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        memcpy(&p, bytes, sizeof p);
        assert_false(fits(LANE_SIDE_AGENT, &p, OF_AGENT));
    }
}

static void another_text_is_no_proof(void **state)
{
    const struct lane_proof p = known();
    char text[] = OF_AGENT "00";

    (void)state;
    assert_false(fits(LANE_SIDE_AGENT, &p, text)); /* longer */
    text[2 * AUTH_KEY_BYTES] = 0;
    assert_true(fits(LANE_SIDE_AGENT, &p, text));
    for (size_t i = 0; i < 2 * AUTH_KEY_BYTES; i++) {
        const char was = text[i];
        text[i] = was == '0' ? '1' : '0';
        assert_false(fits(LANE_SIDE_AGENT, &p, text));
        text[i] = 'g';
        assert_false(fits(LANE_SIDE_AGENT, &p, text));
        text[i] = was;
    }
    text[2 * AUTH_KEY_BYTES - 1] = 0;
    assert_false(fits(LANE_SIDE_AGENT, &p, text));
    assert_false(fits(LANE_SIDE_AGENT, &p, ""));
    assert_false(lane_proof_check(SESSION_KEY, LANE_SIDE_AGENT, &p, (struct str){NULL, 0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_side_has_its_known_proof),
        cmocka_unit_test(a_proof_is_of_one_lane_of_one_epoch_and_its_nonces),
        cmocka_unit_test(another_text_is_no_proof),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Seeds of NATS: the public key of one, and which bytes are none. */
#include <stdio.h>
#include <string.h>

#include "supervisor/bridge/nkey.h"
#include "tests/support/cmocka.h"

/* Of NATS' own manual (configuration/securing_nats/auth_intro/nkey_auth). */
static const char SEED[] = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
static const char PUBLIC[] = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

static void a_seed_has_its_public_key(void **state)
{
    char key[NKEY_PUBLIC_LEN + 1];

    (void)state;
    assert_true(nkey_public(SEED, key));
    assert_string_equal(key, PUBLIC);
}

static void every_letter_of_a_seed_counts(void **state)
{
    char key[NKEY_PUBLIC_LEN + 1] = "";
    char text[NKEY_SEED_LEN + 2];

    (void)state;
    for (size_t i = 0; i < NKEY_SEED_LEN; i++) {
        for (const char *other = "A71a="; *other != 0; other++) {
            (void)snprintf(text, sizeof text, "%s", SEED);
            if (text[i] != *other) {
                text[i] = *other;
                assert_false(nkey_public(text, key));
            }
        }
        (void)snprintf(text, sizeof text, "%s", SEED);
        text[i] = 0; /* and none is missing */
        assert_false(nkey_public(text, key));
    }
    (void)snprintf(text, sizeof text, "%sA", SEED);
    assert_false(nkey_public(text, key));
    assert_string_equal(key, "");
}

/* Others with right checksums, by Python's base64. */
static void a_seed_is_of_a_user(void **state)
{
    static const char *const others[] = {
        PUBLIC, "SAAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4HYMHI" /* of an account */,
        "SOAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H2AJA" /* of an operator */,
        "TUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H2TK4" /* of no seed */, ""};
    char key[NKEY_PUBLIC_LEN + 1];

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(nkey_public(others[i], key));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_has_its_public_key),
        cmocka_unit_test(every_letter_of_a_seed_counts),
        cmocka_unit_test(a_seed_is_of_a_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

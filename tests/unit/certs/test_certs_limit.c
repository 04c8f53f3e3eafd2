/* How many certificates an authority revokes: seconds, because so many are made. */
#include "supervisor/certs/certs_internal.h"
#include "tests/unit/certs/certs_rig.h"

/* Certificates with the same key: what they say is not looked at. */
static void as_many_are_revoked_as_a_list_has(void **state)
{
    struct authority *a = NULL;
    struct cert c;
    char issued[100];
    uint32_t n = 0;

    (void)state;
    init(ca);
    assert_int_equal(issue("first", &c), BT_OK);
    assert_int_equal(certs_authority_load(ca, &a, &err), BT_OK);
    (void)snprintf(issued, sizeof issued, "%s/issued", ca);
    for (int i = 0; i < CERTS_REVOKED_MAX; i++) {
        unsigned char pem[CERTS_PEM_MAX];
        struct cert want = {.name = "many", .client = true, .from = NOW, .until = NOW + DAY_MS};
        (void)snprintf(want.serial, sizeof want.serial, "40000000%08x", (unsigned)i);
        assert_int_equal(certs_sign(a, &want, &a->key, false, pem, &err), BT_OK);
        FILE *f = fopen(path(issued, want.serial), "we");
        assert_true(f != NULL && fputs((char *)pem, f) >= 0 && fclose(f) == 0);
    }
    certs_authority_free(a);
    assert_int_equal(certs_revoke(ca, "many", to, NOW, &n, &err), BT_OK);
    assert_int_equal(n, CERTS_REVOKED_MAX);
    assert_int_equal(certs_revoke(ca, "many", to, NOW, &n, &err), BT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(certs_revoke(ca, "first", to, NOW, &n, &err), BT_LIMIT);
    assert_string_equal(err.msg,
                        "1000 certificates are revoked, the limit: make another authority");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_many_are_revoked_as_a_list_has, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

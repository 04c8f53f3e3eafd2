/* Whose certificate is taken: only that of an authority that the settings or the system name. */
#include <stdio.h>
#include <string.h>

#include "tests/edge/llm/world.h"

static enum bt_code ask(const char *host, bool with_ca, struct bt_error *err)
{
    char settings[1024];
    struct world_answer a;
    struct llm_client *c;
    char ca[256] = "";

    if (with_ca) {
        (void)snprintf(ca, sizeof ca, ",\"caFile\":\"%s/cert.pem\"", world_dir());
    }
    (void)snprintf(settings, sizeof settings,
                   "{\"providers\":[{\"api\":\"openai\",\"model\":\"m\",\"attempts\":1,"
                   "\"baseUrl\":\"https://%s:%d/ok/v1\"%s}]}",
                   host, world_port(), ca);
    c = world_client_of(settings);
    world_ask(c, false, 5000, &a);
    *err = a.err;
    world_done(c, &a);
    return a.code;
}

static void certificate_of_a_known_authority_is_taken(void **state)
{
    struct bt_error err;

    (void)state;
    if (ask("localhost", true, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static void self_signed_and_foreign_names_are_refused(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(ask("localhost", false, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "certificate"));
    assert_int_equal(ask("127.0.0.1", true, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "127.0.0.1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificate_of_a_known_authority_is_taken),
        cmocka_unit_test(self_signed_and_foreign_names_are_refused),
    };

    return cmocka_run_group_tests(tests, world_start_tls, world_stop);
}

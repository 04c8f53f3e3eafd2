/* Certificates: accepted only from an authority that the settings or the system name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/edge/model/world.h"

static enum bt_code ask(const char *host, const char *ca_file, struct bt_error *err)
{
    char settings[1024];
    struct world_answer a;
    struct llm_client *c;
    char ca[256] = "";

    if (ca_file != NULL) {
        (void)snprintf(ca, sizeof ca, ",\"caFile\":\"%s/%s\"", world_dir(), ca_file);
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
    if (ask("localhost", "cert.pem", &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static void self_signed_and_foreign_names_are_refused(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(ask("localhost", NULL, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "certificate is refused"));
    assert_non_null(strstr(err.msg, "caFile names an authority of your own"));
    assert_int_equal(ask("127.0.0.1", "cert.pem", &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "127.0.0.1"));
}

static void file_of_authorities_that_is_not_there_is_named(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(ask("localhost", "nothing.pem", &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "caFile"));
    assert_non_null(strstr(err.msg, "nothing.pem"));
}

/* Its name and its authority are right: only its time has expired. */
static void expired_certificate_is_refused(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(ask("expired.localhost", "expired.pem", &err), BT_INVALID);
    if (strstr(err.msg, "has expired") == NULL) {
        fail_msg("%s", err.msg);
    }
}

/* A rejected certificate is final: no retry, no fallback to plain HTTP, and the key was not
 * sent. */
static void refused_certificate_is_final(void **state)
{
    char settings[1024];
    struct world_answer a;
    struct llm_client *c;

    (void)state;
    assert_int_equal(setenv("TLS_KEY", CANARY, 1), 0);
    (void)snprintf(settings, sizeof settings,
                   "{\"providers\":[{\"api\":\"openai\",\"model\":\"m\",\"attempts\":3,"
                   "\"keyEnv\":\"TLS_KEY\",\"baseUrl\":\"https://localhost:%d/ok/v1\"}]}",
                   world_port());
    c = world_client_of(settings);
    world_ask(c, false, 5000, &a);
    assert_int_equal(a.code, BT_INVALID);
    assert_int_equal(a.reply.calls, 1);
    assert_int_equal(a.reply.usage.input, 0);
    world_done(c, &a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificate_of_a_known_authority_is_taken),
        cmocka_unit_test(expired_certificate_is_refused),
        cmocka_unit_test(file_of_authorities_that_is_not_there_is_named),
        cmocka_unit_test(refused_certificate_is_final),
        cmocka_unit_test(self_signed_and_foreign_names_are_refused),
    };

    return cmocka_run_group_tests(tests, world_start_tls, world_stop);
}

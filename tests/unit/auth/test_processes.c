/* The credentials of processes: the same again for the same process, and no other. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/auth/processes.h"
#include "tests/support/cmocka.h"

static const struct process_keys keys = {{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                          11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                          22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};
static const char INSTANCE[] = "018F3E5C-7B1A-7000-8000-0123456789AB";

static struct credential of(const char *instance, const char *agent)
{
    struct credential c;

    assert_true(process_credential(&keys, str_from(instance), str_from(agent), &c));
    return c;
}

/* The key by Python's hmac. */
static void the_key_is_made_of_secret_instance_and_agent(void **state)
{
    const struct credential c = of(INSTANCE, "calc");
    char hex[2 * AUTH_KEY_BYTES + 1];

    (void)state;
    auth_hex(c.key, sizeof c.key, hex);
    assert_string_equal(hex, "b44eec90de842755626ffd9d5f9247cc"
                             "8ea1486605209c896b4d29ed3fd740ec");
    assert_string_equal(c.who.id, "process:018F3E5C-7B1A-7000-8000-0123456789AB");
    assert_int_equal(c.who.role, ROLE_AGENT);
    assert_memory_not_equal(c.key, of(INSTANCE, "calc2").key, AUTH_KEY_BYTES);
    assert_memory_not_equal(c.key, of("018F3E5C-7B1A-7000-8000-0123456789AC", "calc").key,
                            AUTH_KEY_BYTES);
}

static void it_is_its_own_agent_alone(void **state)
{
    const struct credential c = of(INSTANCE, "calc");

    (void)state;
    assert_true(identity_may_be_agent(&c.who, STR_LIT("calc")));
    assert_false(identity_may_be_agent(&c.who, STR_LIT("calc2")));
    assert_false(identity_may_be_agent(&c.who, STR_LIT("")));
    assert_false(credential_id_ok(str_from(c.who.id), NULL)); /* no file may have the id */
}

static void a_name_of_64_bytes_fits_and_one_more_does_not(void **state)
{
    char name[LIMIT_ID_BYTES + 2];
    struct credential c;

    (void)state;
    memset(name, 'a', sizeof name);
    name[LIMIT_ID_BYTES + 1] = 0;
    assert_false(process_credential(&keys, str_from(INSTANCE), str_from(name), &c));
    name[LIMIT_ID_BYTES] = 0;
    assert_true(process_credential(&keys, str_from(INSTANCE), str_from(name), &c));
    assert_true(identity_may_be_agent(&c.who, str_from(name)));
}

static void a_process_is_given_its_id_and_the_digits_of_its_key(void **state)
{
    const struct credential c = of(INSTANCE, "calc");
    char hex[2 * AUTH_KEY_BYTES + 1];
    char id[PROCESS_TEXT_BYTES];
    char key[PROCESS_TEXT_BYTES];
    char name[LIMIT_ID_BYTES + 2];

    (void)state;
    auth_hex(c.key, sizeof c.key, hex);
    assert_true(
        process_prove((void *)(uintptr_t)&keys, str_from(INSTANCE), STR_LIT("calc"), id, key));
    assert_string_equal(id, c.who.id);
    assert_string_equal(key, hex);
    memset(name, 'a', sizeof name);
    assert_false(process_prove((void *)(uintptr_t)&keys, str_from(INSTANCE),
                               (struct str){name, LIMIT_ID_BYTES + 1}, id, key));
}

/* "process:" and the id of the instance. */
static void an_instance_of_55_bytes_fits_and_one_more_does_not(void **state)
{
    char instance[LIMIT_ID_BYTES];
    struct credential c;

    (void)state;
    memset(instance, 'i', sizeof instance);
    instance[56] = 0;
    assert_false(process_credential(&keys, str_from(instance), STR_LIT("calc"), &c));
    instance[55] = 0;
    assert_true(process_credential(&keys, str_from(instance), STR_LIT("calc"), &c));
    assert_int_equal(strlen(c.who.id), LIMIT_ID_BYTES - 1);
}

static void write_key(const char *path, const char *text)
{
    const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

/* The processes that live on prove themselves to the daemon that starts next. */
static void the_secret_is_made_once_and_read_from_then_on(void **state)
{
    static const char digits[] =
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
    static const uint8_t nothing[AUTH_KEY_BYTES];
    char dir[] = "/tmp/baton-processes-XXXXXX";
    char path[64];
    struct process_keys made = {{0}};
    struct process_keys again = {{0}};
    struct bt_error err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/processes.key", dir);
    assert_int_equal(process_keys_open(dir, &made, &err), BT_OK);
    assert_int_equal(process_keys_open(dir, &again, &err), BT_OK);
    assert_memory_equal(made.secret, again.secret, AUTH_KEY_BYTES);
    assert_memory_not_equal(made.secret, nothing, AUTH_KEY_BYTES);
    write_key(path, digits);
    assert_int_equal(process_keys_open(dir, &again, &err), BT_OK);
    assert_memory_equal(again.secret, keys.secret, AUTH_KEY_BYTES);
    write_key(path, "00010203");
    assert_int_equal(process_keys_open(dir, &again, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "processes.key: is damaged"));
    assert_true(unlink(path) == 0 && rmdir(dir) == 0);
    assert_int_not_equal(process_keys_open(dir, &again, &err), BT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_is_made_of_secret_instance_and_agent),
        cmocka_unit_test(it_is_its_own_agent_alone),
        cmocka_unit_test(a_process_is_given_its_id_and_the_digits_of_its_key),
        cmocka_unit_test(a_name_of_64_bytes_fits_and_one_more_does_not),
        cmocka_unit_test(an_instance_of_55_bytes_fits_and_one_more_does_not),
        cmocka_unit_test(the_secret_is_made_once_and_read_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

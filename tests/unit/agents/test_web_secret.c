/* Keys: their sources, and the texts that they are redacted in. */
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/web/secret.h"

#define KEY "sk-live/0123456789"

static char dir[] = "/tmp/baton-secret-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

/* Loads a key from a file with that content; removes the file. */
static enum bt_code from_file(const char *content, mode_t mode, bool credential, struct secrets *s,
                              const char **ret, struct bt_error *err)
{
    char path[64];
    enum bt_code code;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/key", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(content, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
    code = credential ? secrets_load(s, SECRET_CREDENTIAL, "key", ret, err)
                      : secrets_load(s, SECRET_FILE, path, ret, err);
    assert_int_equal(unlink(path), 0);
    return code;
}

static void key_comes_from_a_file_that_only_its_owner_reads(void **state)
{
    struct secrets s = {0};
    struct bt_error err;
    const char *key = NULL;
    char path[64];

    (void)state;
    assert_int_equal(from_file(KEY "\r\n", 0600, false, &s, &key, &err), BT_OK);
    assert_string_equal(key, KEY);
    assert_int_equal(from_file(KEY "\n", 0400, false, &s, &key, &err), BT_OK);
    assert_int_equal(s.n, 1); /* the same one */
    assert_int_equal(from_file(KEY, 0640, false, &s, &key, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "chmod 600"));
    assert_int_equal(from_file(KEY, 0604, false, &s, &key, &err), BT_INVALID);
    assert_int_equal(secrets_load(&s, SECRET_FILE, dir, &key, &err), BT_INVALID);
    (void)snprintf(path, sizeof path, "%s/none", dir);
    assert_int_equal(secrets_load(&s, SECRET_FILE, path, &key, &err), BT_NOT_FOUND);
    secrets_done(&s);
}

static void what_is_no_key_is_refused_without_being_shown(void **state)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "two words",
                                      "sk-line\nX-Header: 1",
                                      "sk-\x01\x02\x03\x04\x05\x06",
                                      "schl\xc3\xbcssel-schluessel"};
    struct secrets s = {0};
    struct bt_error err;
    const char *key = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(from_file(bad[i], 0600, false, &s, &key, &err), BT_INVALID);
        assert_null(strstr(err.msg, "words"));
    }
    assert_null(key);
    secrets_done(&s);
}

static void key_comes_from_a_credential_of_systemd(void **state)
{
    struct secrets s = {0};
    struct bt_error err;
    const char *key = NULL;

    (void)state;
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    assert_int_equal(from_file(KEY, 0400, true, &s, &key, &err), BT_NOT_FOUND);
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", dir, 1), 0);
    assert_int_equal(from_file(KEY, 0400, true, &s, &key, &err), BT_OK);
    assert_string_equal(key, KEY);
    assert_int_equal(from_file(KEY, 0440, true, &s, &key, &err), BT_OK); /* the mask of an ACL */
    assert_int_equal(from_file(KEY, 0444, true, &s, &key, &err), BT_INVALID);
    assert_int_equal(secrets_load(&s, SECRET_CREDENTIAL, "../key", &key, &err), BT_INVALID);
    secrets_done(&s);
}

static void variable_is_wiped_after_it_was_read(void **state)
{
    struct secrets s = {0};
    struct bt_error err;
    const char *key = NULL;
    char *place;

    (void)state;
    assert_int_equal(secrets_load(&s, SECRET_ENV, "NO_SUCH_KEY", &key, &err), BT_NOT_FOUND);
    assert_int_equal(setenv("A_KEY", KEY, 1), 0);
    place = getenv("A_KEY");
    assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_OK);
    assert_string_equal(key, KEY);
    secrets_forget_env("A_KEY");
    assert_null(getenv("A_KEY"));
    assert_int_equal(place[0], 0);
    secrets_forget_env("A_KEY");
    secrets_done(&s);
}

static void redacted(const struct secrets *s, const char *text, const char *expected)
{
    struct buf b;

    buf_init(&b, 100); /* the text may grow: marks are longer than some keys */
    buf_add_cstr(&b, text);
    secrets_redact(s, &b);
    assert_string_equal(buf_cstr(&b), expected);
    buf_done(&b);
}

static void keys_are_taken_out_of_texts(void **state)
{
    struct secrets s = {.at = {strdup(KEY), strdup("12345678")}, .n = 2};
    struct bt_error err = {.msg = "key " KEY " is wrong"};

    (void)state;
    redacted(&s, "", "");
    redacted(&s, "nothing here, sk-live but no more", "nothing here, sk-live but no more");
    redacted(&s, KEY, "[redacted]");
    redacted(&s, "a " KEY " b " KEY, "a [redacted] b [redacted]");
    redacted(&s, KEY KEY, "[redacted][redacted]");
    redacted(&s, "sk-live\\/0123456789!", "[redacted]!"); /* as JSON writes it */
    redacted(&s, "cut: sk-live/01234", "cut: [redacted]");
    redacted(&s, "cut: sk-li", "cut: sk-li"); /* too short to be useful */
    redacted(&s, "12345678", "[redacted]");
    redacted(&s,
             "1234567812345678123456781234567812345678123456781234567812345678123456781234567"
             "812345678",
             "[redacted][redacted][redacted][redacted][redacted][redacted][redacted][redacted]"
             "[redacted][redacted][redacted]");
    secrets_redact_error(&s, &err);
    assert_string_equal(err.msg, "key [redacted] is wrong");
    secrets_done(&s);
}

/* B19: the text of an error quoted the key without its last letter. */
static void half_a_key_is_a_key(void **state)
{
    struct secrets s = {.at = {strdup(KEY), strdup("12345678")}, .n = 2};
    const char key[] = KEY;
    char text[64];

    (void)state;
    for (size_t n = 0; n < sizeof key; n++) {
        (void)snprintf(text, sizeof text, "'%.*s' is wrong", (int)n, key);
        redacted(&s, text, n >= (sizeof key) / 2 ? "'[redacted]' is wrong" : text);
    }
    redacted(&s, "{\"m\":\"\\\"sk-live\\/012345\\\"\"}", "{\"m\":\"\\\"[redacted]\\\"\"}");
    redacted(&s, "1234567 and 123456789", "1234567 and [redacted]9");
    secrets_done(&s);
}

static void half_a_key_may_come_in_pieces(void **state)
{
    struct secrets s = {.at = {strdup(KEY)}, .n = 1};
    const struct str text = STR_LIT("a sk-live/01234 b sk-live/0123456789 c sk-li");

    (void)state;
    for (size_t cut = 0; cut <= text.len; cut++) {
        struct buf out;
        size_t at;
        buf_init(&out, 200);
        at = secrets_redact_stream(&s, (struct str){text.ptr, cut}, ' ', false, &out);
        (void)secrets_redact_stream(&s, (struct str){text.ptr + at, text.len - at},
                                    at > 0 ? text.ptr[at - 1] : ' ', true, &out);
        assert_string_equal(buf_cstr(&out), "a [redacted] b [redacted] c sk-li");
        buf_done(&out);
    }
    secrets_done(&s);
}

static void short_keys_are_taken_out_where_they_stand_alone(void **state)
{
    struct secrets s = {.at = {strdup("k"), strdup("sk-1")}, .n = 2};

    (void)state;
    redacted(&s, "k", "[redacted]");
    redacted(&s, "key k: \"k\", Bearer k", "key [redacted]: \"[redacted]\", Bearer [redacted]");
    redacted(&s, "kk okay k2 \xC3\xA4k", "kk okay k2 \xC3\xA4k");
    redacted(&s, "wrong: sk-1.", "wrong: [redacted].");
    redacted(&s, "ask-1 sk-12", "ask-1 sk-12");
    secrets_done(&s);
}

static void a_short_key_waits_for_the_byte_after_it(void **state)
{
    struct secrets s = {.at = {strdup("abc")}, .n = 1};
    struct buf out;

    (void)state;
    buf_init(&out, 100);
    assert_int_equal(secrets_redact_stream(&s, STR_LIT("x abc"), ' ', false, &out), 2);
    assert_int_equal(secrets_redact_stream(&s, STR_LIT("abcd abc"), ' ', false, &out), 5);
    assert_int_equal(secrets_redact_stream(&s, STR_LIT("abc"), ' ', true, &out), 3);
    assert_int_equal(secrets_redact_stream(&s, STR_LIT("abc"), 'x', true, &out), 3);
    assert_string_equal(buf_cstr(&out), "x abcd [redacted]abc");
    buf_done(&out);
    secrets_done(&s);
}

static void a_key_of_one_character_is_a_key(void **state)
{
    struct secrets s = {0};
    struct bt_error err;
    const char *key = NULL;

    (void)state;
    assert_int_equal(from_file("k", 0600, false, &s, &key, &err), BT_OK);
    assert_string_equal(key, "k");
    secrets_done(&s);
}

/* The first test: the limit of a process does not come back. */
static void who_holds_a_key_leaves_no_core_dump(void **state)
{
    struct secrets s = {0};
    struct rlimit limit;
    struct bt_error err;
    const char *key = NULL;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    if (limit.rlim_max == 0) {
        skip();
    }
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_CORE, &limit), 0);
    assert_int_equal(setenv("A_KEY", KEY, 1), 0);
    assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_OK);
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 0);
    assert_int_equal(limit.rlim_max, 0);
    secrets_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_holds_a_key_leaves_no_core_dump),
        cmocka_unit_test(key_comes_from_a_file_that_only_its_owner_reads),
        cmocka_unit_test(what_is_no_key_is_refused_without_being_shown),
        cmocka_unit_test(key_comes_from_a_credential_of_systemd),
        cmocka_unit_test(variable_is_wiped_after_it_was_read),
        cmocka_unit_test(keys_are_taken_out_of_texts),
        cmocka_unit_test(half_a_key_is_a_key),
        cmocka_unit_test(half_a_key_may_come_in_pieces),
        cmocka_unit_test(short_keys_are_taken_out_where_they_stand_alone),
        cmocka_unit_test(a_short_key_waits_for_the_byte_after_it),
        cmocka_unit_test(a_key_of_one_character_is_a_key),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

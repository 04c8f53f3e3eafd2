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
    limit.rlim_max = limit.rlim_max == 0 ? 4096 : limit.rlim_max; /* root may raise it again */
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_CORE, &limit) != 0) {
        skip();
    }
    assert_int_equal(setenv("A_KEY", KEY, 1), 0);
    key = KEY;
    assert_int_equal(secrets_load(&s, SECRET_NONE, "A_KEY", &key, &err), BT_OK);
    assert_null(key);
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    assert_true(limit.rlim_cur > 0); /* nothing was loaded */
    assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_OK);
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 0);
    assert_int_equal(limit.rlim_max, 0);
    secrets_done(&s);
}

static void a_key_belongs_to_its_user_or_to_root(void **state)
{
    struct secrets s = {0};
    struct bt_error err;
    const char *key = NULL;
    char path[64];
    FILE *f;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/other", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(KEY, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() != 0) {
        assert_int_equal(unlink(path), 0);
        skip();
    }
    assert_int_equal(secrets_load(&s, SECRET_FILE, path, &key, &err), BT_OK);
    assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
    assert_int_equal(secrets_load(&s, SECRET_FILE, path, &key, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "the key belongs to another user"));
    assert_int_equal(unlink(path), 0);
    secrets_done(&s);
}

static void a_key_has_at_most_its_bytes_and_a_process_its_keys(void **state)
{
    static char text[SECRET_BYTES_MAX + 8];
    struct secrets s = {0};
    struct bt_error err;
    const char *key = NULL;

    (void)state;
    for (int i = 0; i < SECRETS_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "key%d", i);
        assert_int_equal(setenv("A_KEY", name, 1), 0);
        assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_OK);
        assert_string_equal(key, name);
    }
    assert_int_equal(setenv("A_KEY", "key0", 1), 0); /* one that it has */
    assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_OK);
    assert_string_equal(key, "key0");
    assert_int_equal(setenv("A_KEY", "one-more", 1), 0);
    assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_LIMIT);
    assert_non_null(strstr(err.msg, "the environment variable A_KEY: at most 16 keys"));
    assert_int_equal(s.n, SECRETS_MAX);
    secrets_done(&s);
    assert_int_equal(s.n, 0);
    memset(text, 'k', SECRET_BYTES_MAX);
    assert_int_equal(from_file(text, 0600, false, &s, &key, &err), BT_OK);
    assert_int_equal(strlen(key), SECRET_BYTES_MAX);
    text[SECRET_BYTES_MAX] = '\n';
    assert_int_equal(from_file(text, 0600, false, &s, &key, &err), BT_OK);
    text[SECRET_BYTES_MAX] = 'k';
    assert_int_equal(from_file(text, 0600, false, &s, &key, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "expected a key of 1 to 4096 printable characters"));
    memset(text, 'k', sizeof text - 1); /* what stands behind it must not make it shorter */
    assert_int_equal(from_file(text, 0600, false, &s, &key, &err), BT_INVALID);
    secrets_done(&s);
}

static const char *granted(void *of, const char *name)
{
    return strcmp(name, "A_KEY") == 0 ? of : NULL;
}

static void who_is_asked_first_comes_before_the_environment(void **state)
{
    struct secrets s = {0};
    struct bt_error err;
    const char *key = NULL;
    char own[] = "granted-key";

    (void)state;
    assert_int_equal(setenv("A_KEY", "of-the-environment", 1), 0);
    assert_int_equal(setenv("B_KEY", "another", 1), 0);
    secrets_ask_first(granted, own);
    assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_OK);
    assert_string_equal(key, "granted-key");
    assert_int_equal(secrets_load(&s, SECRET_ENV, "B_KEY", &key, &err), BT_OK);
    assert_string_equal(key, "another");
    secrets_ask_first(NULL, NULL);
    assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_OK);
    assert_string_equal(key, "of-the-environment");
    assert_int_equal(setenv("A_KEY", "", 1), 0);
    assert_int_equal(secrets_load(&s, SECRET_ENV, "A_KEY", &key, &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "the environment variable A_KEY is not set"));
    secrets_done(&s);
}

/* ---- keys of a process that starts later ---- */

static enum bt_code probe(const char *const *env, const char *cwd, enum secret_source source,
                          const char *name, struct bt_error *err)
{
    return secret_probe(&(struct secret_view){.env = env, .cwd = cwd}, source, name, err);
}

static void a_probe_sees_the_environment_of_the_other_process(void **state)
{
    static const char *const env[] = {"AA_KEY=wrong", "A_KEY=sk-1", "OWN",           "OWNER=x",
                                      "EMPTY=",       "GONE",       "BAD=two words", NULL};
    struct bt_error err;

    (void)state;
    assert_int_equal(setenv("OWN", "sk-2", 1), 0);
    assert_int_equal(setenv("MINE", "sk-3", 1), 0);
    assert_int_equal(unsetenv("GONE"), 0);
    assert_int_equal(probe(env, NULL, SECRET_ENV, "A_KEY", &err), BT_OK);
    assert_int_equal(probe(env, NULL, SECRET_ENV, "OWN", &err), BT_OK);
    assert_int_equal(probe(env, NULL, SECRET_ENV, "OWNER", &err), BT_OK);
    assert_int_equal(probe(env, NULL, SECRET_ENV, "MINE", &err), BT_NOT_FOUND);
    assert_int_equal(probe(env, NULL, SECRET_ENV, "GONE", &err), BT_NOT_FOUND);
    assert_int_equal(probe(env, NULL, SECRET_ENV, "EMPTY", &err), BT_NOT_FOUND);
    assert_int_equal(probe(env, NULL, SECRET_ENV, "A_KE", &err), BT_NOT_FOUND);
    assert_int_equal(probe(NULL, NULL, SECRET_ENV, "MINE", &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "the environment variable MINE is not set"));
    assert_int_equal(probe(env, NULL, SECRET_ENV, "BAD", &err), BT_INVALID);
    assert_null(strstr(err.msg, "words"));
    assert_int_equal(probe(env, NULL, SECRET_NONE, "MINE", &err), BT_OK);
}

static void a_probe_looks_at_a_file_and_does_not_read_it(void **state)
{
    char path[64];
    char credentials[128];
    static char deep[5000];
    const char *env[] = {credentials, NULL};
    struct bt_error err;
    FILE *f;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/probed", dir);
    (void)snprintf(credentials, sizeof credentials, "CREDENTIALS_DIRECTORY=%s", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs("no key at all", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(probe(NULL, "/nowhere", SECRET_FILE, path, &err), BT_OK);
    assert_int_equal(probe(NULL, dir, SECRET_FILE, "probed", &err), BT_OK);
    assert_int_equal(probe(NULL, "/nowhere", SECRET_FILE, "probed", &err), BT_NOT_FOUND);
    assert_int_equal(probe(NULL, NULL, SECRET_FILE, "probed", &err), BT_NOT_FOUND);
    assert_int_equal(probe(env, NULL, SECRET_CREDENTIAL, "probed", &err), BT_OK);
    assert_int_equal(probe(NULL, NULL, SECRET_CREDENTIAL, "probed", &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "CREDENTIALS_DIRECTORY is not set"));
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(probe(NULL, dir, SECRET_FILE, "probed", &err), BT_INVALID);
    assert_int_equal(probe(env, NULL, SECRET_CREDENTIAL, "probed", &err), BT_OK);
    assert_int_equal(unlink(path), 0);
    memset(deep, 'x', sizeof deep - 1);
    assert_int_equal(probe(NULL, dir, SECRET_FILE, deep, &err), BT_LIMIT);
    assert_non_null(strstr(err.msg, "the path is too long"));
}

static void a_credential_is_a_name_in_its_directory(void **state)
{
    static const char *const bad[] = {"a/b", "/etc/passwd", ".", "..", ".hidden"};
    static char deep[1100];
    char env_text[64];
    const char *env[] = {env_text, NULL};
    struct bt_error err;
    size_t room;

    (void)state;
    (void)snprintf(env_text, sizeof env_text, "CREDENTIALS_DIRECTORY=%s", dir);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(probe(env, NULL, SECRET_CREDENTIAL, bad[i], &err), BT_INVALID);
        assert_non_null(strstr(err.msg, "expected a name, not a path"));
    }
    room = 1024 - strlen(dir) - 1; /* of directory, '/' and name, with the end */
    memset(deep, 'x', room);
    assert_int_equal(probe(env, NULL, SECRET_CREDENTIAL, deep, &err), BT_LIMIT);
    assert_non_null(strstr(err.msg, "its path is too long"));
    deep[room - 1] = 0;
    assert_int_not_equal(probe(env, NULL, SECRET_CREDENTIAL, deep, &err), BT_LIMIT);
    (void)snprintf(env_text, sizeof env_text, "CREDENTIALS_DIRECTORY=relative");
    assert_int_equal(probe(env, NULL, SECRET_CREDENTIAL, "key", &err), BT_NOT_FOUND);
}

/* ---- the edges of redacting ---- */

static void a_text_that_is_whole_stays_as_it_is(void **state)
{
    struct secrets s = {.at = {strdup(KEY)}, .n = 1};
    struct bt_error err = {.msg = ""};
    struct buf b;

    (void)state;
    buf_init(&b, 30);
    buf_add_cstr(&b, "nothing in it");
    secrets_redact(&s, &b);
    assert_int_equal(b.max, 30); /* it was not written anew */
    buf_add_cstr(&b, "and more than there is room for");
    assert_true(b.bad != BT_OK);
    secrets_redact(&s, &b);
    assert_true(b.bad != BT_OK);
    buf_done(&b);
    memset(err.msg, 'x', sizeof err.msg - 1);
    secrets_redact_error(&s, &err);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    memcpy(err.msg + sizeof err.msg - 1 - strlen(KEY), KEY, strlen(KEY) + 1);
    secrets_redact_error(&s, &err);
    assert_non_null(strstr(err.msg, "[redacted]"));
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1 - strlen(KEY) + strlen("[redacted]"));
    secrets_redact_error(&s, NULL);
    secrets_done(&s);
}

static void a_text_has_at_most_its_bytes_with_marks_too(void **state)
{
    struct secrets s = {.at = {strdup("k")}, .n = 1};
    struct buf b;

    (void)state;
    buf_init(&b, 9);
    buf_add_cstr(&b, "k k k k k"); /* nine bytes become 54 */
    secrets_redact(&s, &b);
    assert_null(strchr(buf_cstr(&b), 'k'));
    buf_done(&b);
    secrets_done(&s);
}

static void contained_is_a_key_anywhere(void **state)
{
    struct secrets s = {.at = {strdup(KEY), strdup("k1")}, .n = 2};

    (void)state;
    assert_true(secrets_contained(&s, STR_LIT("x " KEY)));
    assert_true(secrets_contained(&s, STR_LIT(KEY)));
    assert_true(secrets_contained(&s, STR_LIT("a k1")));
    assert_false(secrets_contained(&s, STR_LIT("ak1 k")));
    assert_false(secrets_contained(&s, STR_LIT("")));
    secrets_done(&s);
}

static void a_key_of_eight_characters_is_found_within_words(void **state)
{
    struct secrets s = {.at = {strdup("12345678"), strdup("abcdefg")}, .n = 2};
    struct secrets seventeen = {.at = {strdup("abcdefghi01234567")}, .n = 1};
    struct secrets slash = {.at = {strdup("a\\b/cdefghij")}, .n = 1};

    (void)state;
    redacted(&s, "x12345678x abcdefg xabcdefg abcdefgx",
             "x[redacted]x [redacted] xabcdefg abcdefgx");
    redacted(&seventeen, "abcdefghx abcdefghix", "abcdefghx [redacted]x"); /* half is nine of 17 */
    redacted(&slash, "a\\b/cdefghij a\\b\\/cdefghij", "[redacted] [redacted]");
    secrets_done(&s);
    secrets_done(&seventeen);
    secrets_done(&slash);
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
        cmocka_unit_test(a_key_belongs_to_its_user_or_to_root),
        cmocka_unit_test(a_key_has_at_most_its_bytes_and_a_process_its_keys),
        cmocka_unit_test(who_is_asked_first_comes_before_the_environment),
        cmocka_unit_test(a_probe_sees_the_environment_of_the_other_process),
        cmocka_unit_test(a_probe_looks_at_a_file_and_does_not_read_it),
        cmocka_unit_test(a_credential_is_a_name_in_its_directory),
        cmocka_unit_test(a_text_that_is_whole_stays_as_it_is),
        cmocka_unit_test(a_text_has_at_most_its_bytes_with_marks_too),
        cmocka_unit_test(contained_is_a_key_anywhere),
        cmocka_unit_test(a_key_of_eight_characters_is_found_within_words),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

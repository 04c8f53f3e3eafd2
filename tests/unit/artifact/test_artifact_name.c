/* Names, paths and URIs of files: of every byte, at each length, and whatever an agent may say. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "protocol/artifact/artifact.h"

#define PLAN "0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool is_one_of(int byte, const char *set)
{
    return byte != 0 && strchr(set, byte) != NULL;
}

static void a_name_has_letters_digits_and_three_marks(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        const char name[] = {'x', (char)byte, 'x'};
        const bool is = is_one_of(byte, LETTERS "_.-");
        assert_int_equal(artifact_name_ok((struct str){name, 3}), is);
        assert_int_equal(artifact_name_ok((struct str){name + 1, 1}), is && byte != '.');
    }
}

static void a_name_has_1_to_100_bytes(void **state)
{
    char name[ARTIFACT_NAME_MAX + 1];

    (void)state;
    memset(name, 'n', sizeof name);
    assert_false(artifact_name_ok((struct str){name, 0}));
    assert_false(artifact_name_ok((struct str){NULL, 0}));
    assert_true(artifact_name_ok((struct str){name, 1}));
    assert_true(artifact_name_ok((struct str){name, 100}));
    assert_false(artifact_name_ok((struct str){name, 101}));
}

static enum bt_code file_name(struct str step, struct str name, char ret[ARTIFACT_FILE_MAX + 1],
                              struct bt_error *err)
{
    return artifact_file_name(step, UINT64_MAX, 7, name, ret, err);
}

static void the_name_of_a_file_has_step_revision_and_attempt(void **state)
{
    char file[ARTIFACT_FILE_MAX + 1];
    struct bt_error err;

    (void)state;
    assert_int_equal(file_name(STR_LIT("each[0]"), STR_LIT("a.csv"), file, &err), BT_OK);
    assert_string_equal(file, "each[0]@18446744073709551615.7@a.csv");
    assert_int_equal(artifact_file_name(STR_LIT("s"), 0, UINT64_MAX, STR_LIT("b"), file, &err),
                     BT_OK);
    assert_string_equal(file, "s@0.18446744073709551615@b");
}

static void a_name_that_is_none_is_told(void **state)
{
    char file[ARTIFACT_FILE_MAX + 1];
    char name[82];
    char expected[300];
    struct bt_error err;

    (void)state;
    memset(name, '/', sizeof name);
    for (int n = 79; n < 82; n++) {
        (void)snprintf(expected, sizeof expected,
                       "artifact '%.*s': expected a name of 1 to 100 bytes of [A-Za-z0-9_.-], not "
                       "beginning with a dot",
                       n > 80 ? 80 : n, name);
        assert_int_equal(file_name(STR_LIT("s"), (struct str){name, (size_t)n}, file, &err),
                         BT_INVALID);
        assert_string_equal(err.msg, expected);
    }
    assert_int_equal(file_name(STR_LIT("s"), (struct str){NULL, 0}, file, &err), BT_INVALID);
    assert_string_equal(err.msg, "artifact '': expected a name of 1 to 100 bytes of "
                                 "[A-Za-z0-9_.-], not beginning with a dot");
}

static void the_name_of_a_file_has_255_bytes_at_most(void **state)
{
    static const char tail[] = "@18446744073709551615.7@rows.csv";
    char file[ARTIFACT_FILE_MAX + 1];
    char step[ARTIFACT_FILE_MAX];
    struct bt_error err;
    const size_t n = ARTIFACT_FILE_MAX - (sizeof tail - 1);

    (void)state;
    memset(step, 's', sizeof step);
    assert_int_equal(file_name((struct str){step, n}, STR_LIT("rows.csv"), file, &err), BT_OK);
    assert_int_equal(strlen(file), ARTIFACT_FILE_MAX);
    assert_string_equal(file + n, tail);
    assert_int_equal(file_name((struct str){step, n + 1}, STR_LIT("rows.csv"), file, &err),
                     BT_LIMIT);
    assert_string_equal(err.msg, "artifact 'rows.csv': the name of its file is too long");
}

/* ---- URIs ---- */

static void a_uri_has_each_byte_of_the_path_or_its_escape(void **state)
{
    struct buf uri;
    char path[ARTIFACT_PATH_MAX + 1];

    (void)state;
    buf_init(&uri, 4000);
    for (int byte = 1; byte < 256; byte++) {
        const char dir[] = {'/', 'd', (char)byte, 'd', 0};
        const char file[] = {(char)byte, 'f', 0};
        char one[4];
        char expected[64];
        (void)snprintf(one, sizeof one, is_one_of(byte, LETTERS "_.-/@~") ? "%c" : "%%%02X", byte);
        (void)snprintf(expected, sizeof expected, "file:///d%sd/%sf", one, one);
        buf_clear(&uri);
        artifact_uri(dir, file, &uri);
        assert_string_equal(buf_cstr(&uri), expected);
        assert_true(artifact_uri_path(buf_str(&uri), path));
        (void)snprintf(expected, sizeof expected, "%s/%s", dir, file);
        assert_string_equal(path, expected);
    }
    buf_done(&uri);
}

static void a_uri_is_a_path_or_it_is_none(void **state)
{
    static const struct {
        const char *uri;
        const char *path; /* NULL: it is none */
    } uris[] = {
        {"file:///", "/"},
        {"file:///a", "/a"},
        {"file:////a//b", "//a//b"},
        {"file:///%2f%2F", "///"},
        {"file:///%41", "/A"},
        {"file:///%4a%4A%4f%4F", "/JJOO"},
        {"file:///%90%09", "/\x90\t"},
        {"file:///%aF%Fa", "/\xaf\xfa"},
        {"file:///%%41", NULL},
        {"file:///%25", "/%"},
        {"file:///%", NULL},
        {"file:///%4", NULL},
        {"file:///%4/", NULL},
        {"file:///%/4", NULL},
        {"file:///%4:", NULL},
        {"file:///%:4", NULL},
        {"file:///%4@", NULL},
        {"file:///%@4", NULL},
        {"file:///%4G", NULL},
        {"file:///%G4", NULL},
        {"file:///%4`", NULL},
        {"file:///%`4", NULL},
        {"file:///%4g", NULL},
        {"file:///%g4", NULL},
        {"file:///%00", NULL},
        {"file:///a%00b", NULL},
        {"file://", NULL},
        {"file://a", NULL},
        {"file:/a", NULL},
        {"File:///a", NULL},
        {"http://a", NULL},
        {"", NULL},
        {"/a", NULL},
        {"file://host/a", NULL},
        {"fil", NULL},
        {"file://%2Fa", NULL},
    };
    char path[ARTIFACT_PATH_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        const bool is = artifact_uri_path(str_from(uris[i].uri), path);
        if (is != (uris[i].path != NULL) || (is && strcmp(path, uris[i].path) != 0)) {
            fail_msg("%s", uris[i].uri);
        }
        assert_int_equal(artifact_is_below("", str_from(uris[i].uri)), is);
    }
    assert_false(artifact_uri_path((struct str){"file:///a\0b", 11}, path));
    /* What follows the text is no part of it. */
    assert_false(artifact_uri_path((struct str){"file:///a%41", 10}, path));
    assert_false(artifact_uri_path((struct str){"file:///a%41", 11}, path));
    assert_false(artifact_uri_path((struct str){"file:///a", 7}, path));
    assert_false(artifact_uri_path((struct str){NULL, 0}, path));
}

static void a_path_has_2048_bytes_at_most(void **state)
{
    char path[ARTIFACT_PATH_MAX + 1];
    char uri[7 + ARTIFACT_PATH_MAX + 1];

    (void)state;
    memset(uri, '/', sizeof uri);
    memcpy(uri, "file://", 7);
    assert_true(artifact_uri_path((struct str){uri, 7 + ARTIFACT_PATH_MAX}, path));
    assert_int_equal(strlen(path), ARTIFACT_PATH_MAX);
    assert_false(artifact_uri_path((struct str){uri, 7 + ARTIFACT_PATH_MAX + 1}, path));
}

static void below_a_directory_is_what_follows_its_name_and_a_slash(void **state)
{
    (void)state;
    assert_true(artifact_is_below("/a/b", STR_LIT("file:///a/b/c")));
    assert_true(artifact_is_below("/a/b", STR_LIT("file:///a/b/")));
    assert_true(artifact_is_below("/a b", STR_LIT("file:///a%20b/c/d")));
    assert_false(artifact_is_below("/a/b", STR_LIT("file:///a/b")));
    assert_false(artifact_is_below("/a/b", STR_LIT("file:///a/bc")));
    assert_false(artifact_is_below("/a/b", STR_LIT("file:///a/c/b")));
    assert_false(artifact_is_below("/a/b", STR_LIT("file:///A/b/c")));
    assert_false(artifact_is_below("/a/b", STR_LIT("/a/b/c")));
}

static bool locate(const char *root, const char *uri, struct artifact_place *ret)
{
    struct bt_error err = {.msg = ""};
    char expected[300];
    const enum bt_code code = artifact_locate(root, str_from(uri), ret, &err);

    if (code != BT_OK) {
        (void)snprintf(expected, sizeof expected,
                       "'%.200s': is no artifact of a plan; expected the uri of a result's "
                       "artifact",
                       uri);
        assert_int_equal(code, BT_UNAUTHORIZED);
        assert_string_equal(err.msg, expected);
    }
    return code == BT_OK;
}

static void a_file_of_a_plan_has_its_id_and_a_name(void **state)
{
    static const char *const files[] = {
        "f", "s@1.1@rows.csv", "each[0]@1.1@x", "~", "-", "@", "[", "]", "_", "a.", "a..", "x~"};
    static const char *const others[] = {
        "",   ".",   "..",   ".part-0", ".ended", "a/b",     "a/",
        "/a", "a b", "a%25", "a:",      "a,b",    "a%C3%A4",
    };
    struct artifact_place at;
    char uri[600];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const bool is = strchr(files[i], '~') == NULL;
        (void)snprintf(uri, sizeof uri, "file:///r/" PLAN "/%s", files[i]);
        memset(&at, 'x', sizeof at);
        assert_int_equal(locate("/r", uri, &at), is);
        if (is) {
            assert_string_equal(at.plan, PLAN);
            assert_string_equal(at.file, files[i]);
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)snprintf(uri, sizeof uri, "file:///r/" PLAN "/%s", others[i]);
        assert_false(locate("/r", uri, &at));
    }
    for (size_t n = ARTIFACT_FILE_MAX; n <= ARTIFACT_FILE_MAX + 1; n++) {
        (void)snprintf(uri, sizeof uri, "file:///r/" PLAN "/%*s", (int)n, "");
        memset(strrchr(uri, '/') + 1, 'f', n);
        assert_int_equal(locate("/r", uri, &at), n == ARTIFACT_FILE_MAX);
    }
    assert_int_equal(strlen(at.file), ARTIFACT_FILE_MAX);
}

static void what_is_no_file_of_a_plan_is_told(void **state)
{
    static const char *const uris[] = {
        "",
        "x",
        "file:///r",
        "file:///r/" PLAN,
        "file:///r/f",
        "file:///r//f",
        "file:///q/" PLAN "/f",
        "file:///r/q/" PLAN "/f",
        "file:///r" PLAN "/f",
        "file:///r/" PLAN "0/f",
        "file:///r/199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B/f",
        "file:///r/0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5G/f",
        "file:///r/0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b/f", /* an id has large letters */
        "file:///r/0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5b/f",
    };
    struct artifact_place at;
    char uri[202];
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        assert_false(locate("/r", uris[i], &at));
    }
    for (size_t n = 199; n <= 201; n++) { /* a long one is cut */
        memset(uri, 'u', n);
        uri[n] = 0;
        assert_false(locate("/r", uri, &at));
    }
    assert_int_equal(artifact_locate("/r", (struct str){NULL, 0}, &at, &err), BT_UNAUTHORIZED);
    assert_string_equal(err.msg, "'': is no artifact of a plan; expected the uri of a result's "
                                 "artifact");
}

static void a_file_was_below_any_directory_of_that_name(void **state)
{
    static const char *const uris[] = {
        "file:///artifacts/" PLAN "/f",
        "file:///a/artifacts/" PLAN "/f",
        "file:///a%20b/c/artifacts/" PLAN "/f",
        "file:///artifacts/artifacts/" PLAN "/f",
    };
    static const char *const others[] = {
        "",
        "artifacts/" PLAN "/f",
        "file:///f",
        "file:///" PLAN "/f",
        "file:///x/" PLAN "/f",
        "file:///an/artifact/" PLAN "/f",
        "file:///myartifacts/" PLAN "/f",
        "file:///artifacts2/" PLAN "/f",
        "file:///artifacts/x/" PLAN "/f",
        "file:///artifacts/" PLAN,
        "file:///artifacts/" PLAN "/",
        "file:///artifacts/" PLAN "/.f",
        "file:///artifacts/" PLAN "/f/g",
        "file:///artifacts/x/f",
        "file:///artifacts",
        "file:///artifacts/f",
        "file:////" PLAN "/f",
        "file://///",
    };
    struct artifact_place at;

    (void)state;
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        memset(&at, 'x', sizeof at);
        assert_true(artifact_was(str_from(uris[i]), &at));
        assert_string_equal(at.plan, PLAN);
        assert_string_equal(at.file, "f");
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (artifact_was(str_from(others[i]), &at)) {
            fail_msg("%s", others[i]);
        }
    }
}

/* ---- SHA-256 ---- */

/* The sums are those of sha256sum. */
static void a_checksum_is_the_expected_one_in_letters_of_either_case(void **state)
{
    static const char sum[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    static const char large[] = "2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824";
    const struct {
        struct str expected;
        bool is;
    } sums[] = {
        {str_from(sum), true},
        {str_from(large), true},
        {{sum, sizeof sum - 2}, false},
        {{sum, sizeof sum}, false},
        {STR_LIT("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9825"), false},
        {STR_LIT("3cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"), false},
        {{NULL, 0}, false}};

    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        struct artifact_digest *d = artifact_digest_new();
        char ret[ARTIFACT_SHA256_LEN + 1];
        artifact_digest_add(d, "hel", 3);
        artifact_digest_add(d, "", 0);
        artifact_digest_add(d, "lo", 2);
        assert_int_equal(artifact_digest_is(d, sums[i].expected, ret), sums[i].is);
        assert_string_equal(ret, sum);
        artifact_digest_free(d);
    }
    artifact_digest_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_letters_digits_and_three_marks),
        cmocka_unit_test(a_name_has_1_to_100_bytes),
        cmocka_unit_test(the_name_of_a_file_has_step_revision_and_attempt),
        cmocka_unit_test(a_name_that_is_none_is_told),
        cmocka_unit_test(the_name_of_a_file_has_255_bytes_at_most),
        cmocka_unit_test(a_uri_has_each_byte_of_the_path_or_its_escape),
        cmocka_unit_test(a_uri_is_a_path_or_it_is_none),
        cmocka_unit_test(a_path_has_2048_bytes_at_most),
        cmocka_unit_test(below_a_directory_is_what_follows_its_name_and_a_slash),
        cmocka_unit_test(a_file_of_a_plan_has_its_id_and_a_name),
        cmocka_unit_test(what_is_no_file_of_a_plan_is_told),
        cmocka_unit_test(a_file_was_below_any_directory_of_that_name),
        cmocka_unit_test(a_checksum_is_the_expected_one_in_letters_of_either_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

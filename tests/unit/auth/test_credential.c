/* Credential files: what is written is read, and what is damaged, shared or foreign is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/client/credential.h"

struct place {
    char dir[64], file[160];
    struct bt_error err;
};

static int set_up(void **state)
{
    static struct place p;

    (void)snprintf(p.dir, sizeof p.dir, "/tmp/baton-credential-XXXXXX");
    assert_non_null(mkdtemp(p.dir));
    (void)snprintf(p.file, sizeof p.file, "%s/credentials/ci", p.dir);
    *state = &p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    char path[200];

    (void)unlink(p->file);
    (void)snprintf(path, sizeof path, "%s/copy", p->dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/credentials", p->dir);
    (void)rmdir(path);
    return rmdir(p->dir);
}

static struct credential example(void)
{
    struct credential c = {
        .who = {.id = "ci", .role = ROLE_AGENT, .agents_n = 2, .agents = {"calc*", "\"\xc3\xa4"}},
        .created = 1000,
        .expires = 2000};

    assert_int_equal(credential_new_key(&c, NULL), BT_OK);
    return c;
}

static void what_is_stored_is_loaded_with_everything(void **state)
{
    struct place *p = *state;
    struct credential c = example();
    struct credential found = {.created = 0};
    struct stat st;

    assert_int_equal(credential_rotate(&c, 3000, NULL), BT_OK);
    assert_int_equal(credential_store(p->dir, &c, false, &p->err), BT_OK);
    assert_int_equal(credential_load(p->dir, "ci", &found, &p->err), BT_OK);
    assert_memory_equal(&found, &c, sizeof c);
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(credential_store(p->dir, &c, false, &p->err), BT_CONFLICT);
    c.revoked = 5;
    assert_int_equal(credential_store(p->dir, &c, true, &p->err), BT_OK);
    assert_int_equal(credential_load(p->dir, "ci", &found, &p->err), BT_OK);
    assert_int_equal(found.revoked, 5);
}

static void a_copy_has_the_key_and_not_the_one_before(void **state)
{
    struct place *p = *state;
    struct credential c = example();
    struct credential found;
    char copy[160];

    assert_int_equal(credential_rotate(&c, 3000, NULL), BT_OK);
    (void)snprintf(copy, sizeof copy, "%s/copy", p->dir);
    assert_int_equal(credential_write(copy, &c, false, &p->err), BT_OK);
    assert_int_equal(credential_write(copy, &c, false, &p->err), BT_CONFLICT);
    assert_int_equal(credential_read(copy, &found, &p->err), BT_OK);
    assert_memory_equal(found.key, c.key, sizeof c.key);
    assert_int_equal(found.previous_until, 0);
}

static void a_file_that_others_may_read_is_refused(void **state)
{
    struct place *p = *state;
    const struct credential c = example();
    struct credential found;

    assert_int_equal(credential_store(p->dir, &c, false, &p->err), BT_OK);
    assert_int_equal(chmod(p->file, 0640), 0);
    assert_int_equal(credential_read(p->file, &found, &p->err), BT_UNAUTHORIZED);
    assert_non_null(strstr(p->err.msg, "chmod 600"));
    assert_int_equal(chmod(p->file, 0600), 0);
    if (geteuid() != 0) {
        print_message("SKIP: only root can give a file to another user\n");
        return;
    }
    assert_int_equal(chown(p->file, 65534, 65534), 0);
    assert_int_equal(credential_read(p->file, &found, &p->err), BT_UNAUTHORIZED);
    assert_non_null(strstr(p->err.msg, "belongs to user 65534"));
}

static void a_directory_that_others_may_enter_is_refused(void **state)
{
    struct place *p = *state;
    const struct credential c = example();
    char dir[160];

    assert_int_equal(credential_store(p->dir, &c, false, &p->err), BT_OK);
    (void)snprintf(dir, sizeof dir, "%s/credentials", p->dir);
    assert_int_equal(chmod(dir, 0755), 0);
    assert_int_equal(credential_store(p->dir, &c, true, &p->err), BT_UNAUTHORIZED);
    assert_non_null(strstr(p->err.msg, "chmod 700"));
}

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void a_damaged_text_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *json, *says;
    } bad[] = {
        {"", "line 1 column 1"},
        {"[]", "JSON object"},
        {"{}", "id is missing"},
        {"{\"id\":\"a\",\"role\":\"admin\",\"createdMs\":1}", "key is missing"},
        {"{\"id\":\"../a\",\"role\":\"admin\",\"key\":\"" KEY "\",\"createdMs\":1}",
         "id: is damaged"},
        {"{\"id\":\"local\",\"role\":\"admin\",\"key\":\"" KEY "\",\"createdMs\":1}",
         "id: is damaged"},
        {"{\"id\":\"a\",\"role\":\"root\",\"key\":\"" KEY "\",\"createdMs\":1}",
         "role: is damaged"},
        {"{\"id\":\"a\",\"role\":\"admin\",\"key\":\"" KEY "0\",\"createdMs\":1}",
         "key: is damaged"},
        {"{\"id\":\"a\",\"role\":\"admin\",\"key\":\"" KEY "\",\"createdMs\":-1}",
         "createdMs: is damaged"},
        {"{\"id\":\"a\",\"role\":\"admin\",\"key\":\"" KEY "\",\"createdMs\":1,\"x\":1}",
         "x: no such member"},
        {"{\"id\":\"a\",\"role\":\"admin\",\"key\":\"" KEY "\",\"createdMs\":1,\"agents\":[\"\"]}",
         "agents: is damaged"},
        {"{\"id\":\"a\",\"role\":\"admin\",\"key\":\"" KEY
         "\",\"createdMs\":1,\"previousUntilMs\":9}",
         "belong together"},
    };
    struct place *p = *state;
    struct credential found;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(credential_parse(str_from(bad[i].json), &found, &p->err), BT_INVALID);
        if (strstr(p->err.msg, bad[i].says) == NULL) {
            fail_msg("%s: %s", bad[i].json, p->err.msg);
        }
    }
    assert_int_equal(credential_parse(STR_LIT("{\"id\":\"a\",\"role\":\"admin\",\"key\":\"" KEY
                                              "\",\"createdMs\":1}"),
                                      &found, &p->err),
                     BT_OK);
}

static void take(void *self, const char *name, const struct credential *c,
                 const struct bt_error *why)
{
    char *out = self;
    const size_t n = strlen(out);

    (void)snprintf(out + n, 200 - n, "%s:%s ", name, c != NULL ? "ok" : bt_code_name(why->code));
}

#define HEAD "{\"id\":\"a\",\"role\":\"admin\",\"key\":\"" KEY "\",\"createdMs\":1,"

static void each_member_has_its_form(void **state)
{
    static const struct {
        const char *json, *says;
    } bad[] = {
        {HEAD "\"quotas\":7}", "quotas: is damaged"},
        {HEAD "\"quotas\":{\"what\":1}}", "quotas: is damaged"},
        {HEAD "\"quotas\":{\"plans\":-1}}", "quotas: is damaged"},
        {HEAD "\"quotas\":{\"plans\":\"1\"}}", "quotas: is damaged"},
        {HEAD "\"quotas\":{\"plans\":9223372036854775808}}", "quotas: is damaged"},
        {HEAD "\"sees\":\"a\"}", "sees: is damaged"},
        {HEAD "\"sees\":[7]}", "sees: is damaged"},
        {HEAD "\"expiresMs\":\"1\"}", "expiresMs: is damaged"},
        {HEAD "\"revokedMs\":1.5}", "revokedMs: is damaged"},
        {HEAD "\"expiresMs\":9223372036854775808}", "expiresMs: is damaged"},
        {HEAD "\"previousKey\":\"00\",\"previousUntilMs\":1}", "previousKey: is damaged"},
        {HEAD "\"previousKey\":\"" KEY "\"}", "belong together"},
        {"{\"id\":\"a\",\"key\":\"" KEY "\",\"createdMs\":1}", "role is missing"},
        {"{\"id\":\"a\",\"role\":\"admin\",\"key\":\"" KEY "\"}", "createdMs is missing"},
    };
    struct place *p = *state;
    struct credential found;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(credential_parse(str_from(bad[i].json), &found, &p->err), BT_INVALID);
        if (strstr(p->err.msg, bad[i].says) == NULL) {
            fail_msg("%s: %s", bad[i].json, p->err.msg);
        }
    }
    assert_int_equal(
        credential_parse(STR_LIT(HEAD "\"expiresMs\":9223372036854775807,\"revokedMs\":3,"
                                      "\"previousKey\":\"" KEY "\",\"previousUntilMs\":4,"
                                      "\"sees\":[\"x\",\"y*\"],\"agents\":[\"z\"],\"quotas\":"
                                      "{\"plans\":9223372036854775807,\"bytes\":0}}"),
                         &found, &p->err),
        BT_OK);
    assert_true(found.created == 1 && found.expires == INT64_MAX && found.revoked == 3 &&
                found.previous_until == 4 && found.previous[1] == 0x11);
    assert_true(found.who.sees_n == 2 && found.who.agents_n == 1);
    assert_string_equal(found.who.sees[1], "y*");
    assert_string_equal(found.who.agents[0], "z");
    assert_true(found.who.quotas[QUOTA_PLANS] == INT64_MAX && found.who.quotas[QUOTA_BYTES] == 0 &&
                found.who.quotas[QUOTA_EVENTS] == QUOTA_BY_ROLE);
}

/* So many globs, and names of so many bytes. */
static void globs_have_their_bounds(void **state)
{
    struct place *p = *state;
    struct credential found;
    char json[4096];

    for (uint32_t more = 0; more < 2; more++) {
        for (int member = 0; member < 2; member++) {
            size_t n = (size_t)snprintf(json, sizeof json, HEAD "\"%s\":[",
                                        member == 0 ? "agents" : "sees");
            for (uint32_t i = 0; i < IDENTITY_AGENTS_MAX + more; i++) {
                n += (size_t)snprintf(json + n, sizeof json - n, "%s\"g%u\"", i > 0 ? "," : "", i);
            }
            (void)snprintf(json + n, sizeof json - n, "]}");
            assert_int_equal(credential_parse(str_from(json), &found, &p->err),
                             more == 0 ? BT_OK : BT_INVALID);
            (void)snprintf(json, sizeof json, HEAD "\"sees\":[\"%0*d\"]}",
                           LIMIT_ID_BYTES + (int)more, 7);
            assert_int_equal(credential_parse(str_from(json), &found, &p->err),
                             more == 0 ? BT_OK : BT_INVALID);
        }
    }
}

/* What is granted, and quotas that were set; those of the role are not written. */
static void grants_and_quotas_are_kept(void **state)
{
    struct place *p = *state;
    struct credential c = example();
    struct credential found;

    for (int i = 0; i < QUOTA_COUNT; i++) {
        c.who.quotas[i] = i % 2 == 0 ? QUOTA_BY_ROLE : (uint64_t)i;
    }
    c.who.sees_n = 2;
    (void)snprintf(c.who.sees[0], sizeof c.who.sees[0], "ann");
    (void)snprintf(c.who.sees[1], sizeof c.who.sees[1], "ci-*");
    assert_int_equal(credential_store(p->dir, &c, false, &p->err), BT_OK);
    assert_int_equal(credential_load(p->dir, "ci", &found, &p->err), BT_OK);
    assert_memory_equal(&found, &c, sizeof c);
    assert_int_equal(credential_load(p->dir, "../ci", &found, &p->err), BT_INVALID);
    assert_int_equal(credential_load(p->dir, "none", &found, &p->err), BT_NOT_FOUND);
    assert_int_equal(credential_read("", &found, &p->err), BT_INVALID);
    assert_string_equal(p->err.msg, ": is no file");
    assert_int_equal(credential_read("/", &found, &p->err), BT_INVALID);
    assert_int_equal(credential_write("x/", &c, true, &p->err), BT_INVALID);
}

static void an_id_is_the_name_of_a_file(void **state)
{
    static const char *const good[] = {"a", "Z", "0", "aZ09._-", "9-"};
    static const char *const bad[] = {"",   ".a", "-a", "_a", "a/b", "a b", "a,b", "local",
                                      "a:", "a@", "a[", "a`", "a{",  "/a",  ":a",  "\xc3\xa4"};
    struct place *p = *state;
    char id[LIMIT_ID_BYTES + 2];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        p->err.code = BT_OK;
        assert_true(credential_id_ok(str_from(good[i]), &p->err));
        assert_int_equal(p->err.code, BT_OK); /* nothing is said */
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(credential_id_ok(str_from(bad[i]), &p->err));
        assert_int_equal(p->err.code, BT_INVALID);
    }
    memset(id, 'x', sizeof id);
    id[LIMIT_ID_BYTES + 1] = 0;
    assert_false(credential_id_ok(str_from(id), NULL));
    id[LIMIT_ID_BYTES] = 0;
    assert_true(credential_id_ok(str_from(id), NULL));
}

static void a_path_that_is_too_long_is_none(void **state)
{
    const struct credential c = example();
    struct place *p = *state;
    struct credential found;
    char out[200] = "";
    char *dir = malloc(8192);

    assert_non_null(dir);
    memset(dir, 'd', 8192);
    dir[8191] = 0;
    assert_int_equal(credential_store(dir, &c, true, &p->err), BT_LIMIT);
    assert_string_equal(p->err.msg, "the path is too long");
    assert_int_equal(credential_load(dir, "ci", &found, &p->err), BT_LIMIT);
    assert_int_equal(credential_each(dir, take, out, &p->err), BT_LIMIT);
    dir[8190] = '/';
    assert_int_equal(credential_read(dir, &found, &p->err), BT_INVALID);
    assert_int_equal(credential_write(dir, &c, true, &p->err), BT_INVALID);
    free(dir);
}

static void a_credential_is_valid_before_its_end(void **state)
{
    struct credential c = {.expires = 0};

    (void)state;
    assert_true(credential_is_valid(&c, UINT64_MAX));
    c.expires = 10;
    assert_true(credential_is_valid(&c, 9));
    assert_false(credential_is_valid(&c, 10));
    c.revoked = 1;
    assert_false(credential_is_valid(&c, 9));
}

static void a_file_under_another_name_is_no_credential(void **state)
{
    struct place *p = *state;
    const struct credential c = example();
    char other[160];
    char out[200] = "";

    assert_int_equal(credential_each(p->dir, take, out, &p->err), BT_OK); /* no directory */
    assert_int_equal(credential_store(p->dir, &c, false, &p->err), BT_OK);
    (void)snprintf(other, sizeof other, "%s/credentials/other", p->dir);
    assert_int_equal(link(p->file, other), 0);
    assert_int_equal(credential_each(p->dir, take, out, &p->err), BT_OK);
    assert_string_equal(out, "ci:ok other:INVALID ");
    assert_int_equal(unlink(other), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_stored_is_loaded_with_everything),
        TEST(a_copy_has_the_key_and_not_the_one_before),
        TEST(a_file_that_others_may_read_is_refused),
        TEST(a_directory_that_others_may_enter_is_refused),
        TEST(a_damaged_text_is_refused_with_its_place),
        TEST(each_member_has_its_form),
        TEST(globs_have_their_bounds),
        TEST(grants_and_quotas_are_kept),
        TEST(a_credential_is_valid_before_its_end),
        TEST(an_id_is_the_name_of_a_file),
        TEST(a_path_that_is_too_long_is_none),
        TEST(a_file_under_another_name_is_no_credential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

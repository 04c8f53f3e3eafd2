/* Where a journal is: a directory, or an address with a scheme. */
#include "tests/unit/journal/journal_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void refused(const char *url, const char *says)
{
    struct journal *j = NULL;
    struct bt_error err;

    assert_int_equal(journal_open(url, &(struct journal_options){.lease_ms = 1000}, &j, &err),
                     BT_INVALID);
    assert_null(j);
    if (strstr(err.msg, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    }
}

static void a_directory_is_opened_with_and_without_its_scheme(void **state)
{
    char root[] = "/tmp/journal_address.XXXXXX";
    char url[128];
    char file[128];
    struct bt_error err;
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(root));
    for (int i = 0; i < 2; i++) {
        struct journal *j = NULL;
        (void)snprintf(url, sizeof url, "%s%s/%d:a", i == 0 ? "" : "sqlite:", root, i);
        assert_ok(journal_open(url, &(struct journal_options){0}, &j, &err), err);
        journal_close(j);
        (void)snprintf(file, sizeof file, "%s/%d:a/journal.db", root, i);
        assert_int_equal(stat(file, &st), 0);
    }
    fixture_remove_tree(root);
}

static void another_scheme_is_refused_and_the_right_ones_are_named(void **state)
{
    (void)state;
    refused("mysql://root:secret@host/db",
            "a journal cannot be at \"mysql:...\": give a directory, sqlite:DIR, or "
            "postgresql://HOST/DATABASE");
}

#ifndef BATON_POSTGRES
static void a_build_without_postgresql_says_so(void **state)
{
    (void)state;
    refused("postgresql:///db", "built without PostgreSQL: build it with -DBATON_POSTGRES=ON");
}
#else
static void a_server_that_is_not_there_is_named_and_the_password_is_not(void **state)
{
    struct journal *j = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(journal_open("postgresql://someone:secret@127.0.0.1:1/db",
                                  &(struct journal_options){0}, &j, &err),
                     BT_UNAVAILABLE);
    assert_null(j);
    assert_non_null(strstr(err.msg, "cannot connect to PostgreSQL"));
    assert_null(strstr(err.msg, "secret"));
}

static void a_durability_that_the_server_cannot_keep_is_refused(void **state)
{
    struct journal *j = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(journal_open("postgresql:///db",
                                  &(struct journal_options){.durability = DURABILITY_PROCESS}, &j,
                                  &err),
                     BT_INVALID);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_is_opened_with_and_without_its_scheme),
        cmocka_unit_test(another_scheme_is_refused_and_the_right_ones_are_named),
#ifndef BATON_POSTGRES
        cmocka_unit_test(a_build_without_postgresql_says_so),
#else
        cmocka_unit_test(a_server_that_is_not_there_is_named_and_the_password_is_not),
        cmocka_unit_test(a_durability_that_the_server_cannot_keep_is_refused),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* An authority in a directory: what it issues, what it refuses, and files that are not its own. */
#include "tests/unit/certs/certs_rig.h"

static void a_certificate_is_for_its_hosts_use_and_days(void **state)
{
    struct cert c;
    struct cert read;
    struct stat st;

    (void)state;
    init(ca);
    assert_int_equal(issue("n", &c), BT_OK);
    assert_true(stat(path(to, "n.pem"), &st) == 0 && (st.st_mode & 0777) == 0600);
    assert_int_equal(certs_read(path(to, "n.pem"), &read, &err), BT_OK);
    assert_string_equal(read.name, "n");
    assert_string_equal(read.serial, c.serial);
    assert_int_equal(read.hosts_n, 2);
    assert_string_equal(read.hosts[0], "a.example");
    assert_true(read.server && !read.client && !read.ca);
    assert_true(read.from == NOW - CERTS_BACKDATED_MS);
    assert_in_range(read.until - NOW, (CERTS_LEAF_DAYS - 1) * (msec)DAY_MS,
                    CERTS_LEAF_DAYS * (msec)DAY_MS);
}

static void there_is_one_authority_and_its_key_is_its_own(void **state)
{
    struct cert c;

    (void)state;
    assert_int_equal(issue("n", &c), BT_NOT_FOUND);
    init(ca);
    assert_int_equal(certs_init(ca, NULL, 0, NOW, &c, &err), BT_CONFLICT);
    assert_int_equal(issue("n", &c), BT_OK); /* the first one is as it was */
    assert_int_equal(issue("n", &c), BT_CONFLICT);
    assert_int_equal(chmod(path(ca, "ca.key"), 0640), 0);
    assert_int_equal(issue("m", &c), BT_UNAUTHORIZED);
    assert_non_null(strstr(err.msg, "chmod 600"));
}

static void a_directory_of_another_authority_is_left_alone(void **state)
{
    char other[80];
    char found[PEM_MAX];
    struct cert c;
    FILE *f;
    size_t n;

    (void)state;
    init(ca);
    (void)snprintf(other, sizeof other, "%s/other", top);
    init(other);
    f = fopen(path(other, "ca.pem"), "re");
    assert_non_null(f);
    n = fread(found, 1, sizeof found, f);
    assert_int_equal(fclose(f), 0);
    f = fopen(path(to, "ca.pem"), "we");
    assert_true(f != NULL && fwrite(found, 1, n, f) == n && fclose(f) == 0);
    assert_int_equal(issue("n", &c), BT_CONFLICT);
    assert_non_null(strstr(err.msg, "of another authority"));
    assert_true(access(path(to, "n.pem"), F_OK) != 0); /* nothing was issued into it */
    assert_int_equal(truncate(path(to, "ca.pem"), 10), 0);
    assert_int_equal(issue("n", &c), BT_CONFLICT);
    assert_int_equal(unlink(path(to, "ca.pem")), 0);
    assert_int_equal(issue("n", &c), BT_OK);
}

static void a_revoked_certificate_is_on_the_list_of_both_directories(void **state)
{
    struct cert first;
    struct cert second;
    struct cert *all = NULL;
    uint32_t n = 0;

    (void)state;
    init(ca);
    assert_int_equal(issue("n", &first), BT_OK);
    assert_int_equal(issue("m", &second), BT_OK);
    assert_int_equal(certs_revoke(ca, "none", to, NOW, &n, &err), BT_NOT_FOUND);
    assert_int_equal(certs_revoke(ca, first.serial, to, NOW, &n, &err), BT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(certs_revoke(ca, "n", to, NOW, &n, &err), BT_OK);
    assert_int_equal(n, 0); /* it was on it */
    assert_int_equal(certs_list(ca, &all, &n, &err), BT_OK);
    assert_int_equal(n, 3);
    assert_int_equal(certs_mark_revoked(ca, all, n, &err), BT_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(all[i].revoked == (strcmp(all[i].serial, first.serial) == 0));
    }
    free(all);
    /* The list stands behind the authority; a renewal still knows whose it is. */
    assert_int_equal(certs_renew(ca, &(struct certs_ask){.name = "m", .to = to}, NOW, &first, &err),
                     BT_OK);
    assert_string_not_equal(first.serial, second.serial);
    assert_int_equal(first.hosts_n, 2);
    assert_int_equal(certs_revoke(ca, "m", ca, NOW, &n, &err), BT_CONFLICT); /* its own file */
}

static void what_is_no_certificate_is_refused_by_what_it_is(void **state)
{
    struct cert c;

    (void)state;
    assert_int_equal(certs_read(path(to, "none"), &c, &err), BT_NOT_FOUND);
    assert_int_equal(certs_read(to, &c, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "is not a regular file"));
    fill(path(to, "f"), PEM_MAX - 1);
    assert_int_equal(certs_read(path(to, "f"), &c, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "is larger than a certificate and its key"));
    fill(path(to, "f"), PEM_MAX - 2);
    assert_int_equal(certs_read(path(to, "f"), &c, &err), BT_INVALID);
    assert_null(strstr(err.msg, "is larger"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_certificate_is_for_its_hosts_use_and_days),
        TEST(there_is_one_authority_and_its_key_is_its_own),
        TEST(a_directory_of_another_authority_is_left_alone),
        TEST(a_revoked_certificate_is_on_the_list_of_both_directories),
        TEST(what_is_no_certificate_is_refused_by_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is asked of an authority at its bounds, and its list of revoked certificates as another
 * program reads it. */
#include <mbedtls/x509_crl.h>
#include <mbedtls/x509_crt.h>

#include "supervisor/certs/certs_internal.h"
#include "tests/unit/certs/certs_rig.h"

static struct certs_ask ask_of(const char *name)
{
    return (struct certs_ask){.name = name, .client = true, .to = to};
}

static enum bt_code ask(const struct certs_ask *want, struct cert *ret)
{
    const enum bt_code code = certs_issue(ca, want, NOW, ret, &err);
    char name[CERTS_NAME_MAX + 16];

    if (code == BT_OK) { /* it may be asked for again */
        (void)snprintf(name, sizeof name, "%s.pem", want->name);
        assert_int_equal(unlink(path(want->to, name)), 0);
    }
    return code;
}

static void says(const char *words)
{
    if (strstr(err.msg, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
    }
}

static uint32_t mode_of(const char *file)
{
    struct stat st;

    assert_int_equal(stat(file, &st), 0);
    return st.st_mode & 07777;
}

/* ---- what is asked ---- */

static void a_name_is_one_of_a_file(void **state)
{
    static const char *const bad[] = {"", ".a", "-a", "ca", "a/b", "a b", "a,b", "\xc3\xa4"};
    static const char *const good[] = {"a", "A.b_c-9", "_", "caa", "c"};
    char name[CERTS_NAME_MAX + 2];
    struct cert c;

    (void)state;
    init(ca);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct certs_ask want = ask_of(bad[i]);
        assert_int_equal(ask(&want, &c), BT_INVALID);
        says("': expected at most 63 letters, digits, '.', '_' and '-', not 'ca'");
        assert_int_equal(certs_renew(ca, &want, NOW, &c, &err), BT_INVALID);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct certs_ask want = ask_of(good[i]);
        assert_int_equal(ask(&want, &c), BT_OK);
        assert_string_equal(c.name, good[i]);
    }
    memset(name, 'n', sizeof name);
    name[CERTS_NAME_MAX + 1] = 0;
    struct certs_ask want = ask_of(name);
    assert_int_equal(ask(&want, &c), BT_INVALID);
    name[CERTS_NAME_MAX] = 0;
    assert_int_equal(ask(&want, &c), BT_OK);
    assert_string_equal(c.name, name);
}

static void a_host_is_a_name_or_an_address(void **state)
{
    static const char *const bad[] = {"", ".a", "-a", "a:80", "a_b", "a b", "[::1]", "::g"};
    static const char *const good[] = {"a", "A.b-9", "127.0.0.1", "::1", "fd00::a"};
    char host[CERTS_HOST_MAX + 2];
    const char *hosts[CERTS_HOSTS_MAX + 1];
    struct certs_ask want = ask_of("n");
    struct cert c;

    (void)state;
    init(ca);
    want.hosts = hosts;
    for (uint32_t i = 0; i < CERTS_HOSTS_MAX + 1; i++) {
        hosts[i] = "a";
    }
    want.hosts_n = 2;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hosts[1] = bad[i];
        assert_int_equal(ask(&want, &c), BT_INVALID);
        says("': expected a name or an address, without a port");
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        hosts[1] = good[i];
        assert_int_equal(ask(&want, &c), BT_OK);
        assert_string_equal(c.hosts[1], good[i]);
    }
    memset(host, 'h', sizeof host);
    host[CERTS_HOST_MAX + 1] = 0;
    hosts[1] = host;
    assert_int_equal(ask(&want, &c), BT_INVALID);
    host[CERTS_HOST_MAX] = 0;
    assert_int_equal(ask(&want, &c), BT_OK);
    hosts[1] = "a";
    want.hosts_n = CERTS_HOSTS_MAX + 1;
    want.name = "many";
    assert_int_equal(ask(&want, &c), BT_LIMIT);
    says("--host: at most 16");
    want.hosts_n = CERTS_HOSTS_MAX;
    assert_int_equal(certs_issue(ca, &want, NOW, &c, &err), BT_OK);
    assert_int_equal(certs_read(path(to, "many.pem"), &c, &err), BT_OK);
    assert_int_equal(c.hosts_n, CERTS_HOSTS_MAX);
}

static void a_certificate_is_for_something(void **state)
{
    struct certs_ask want = ask_of("n");
    const char *const host = "h";
    struct cert c;

    (void)state;
    init(ca);
    want.client = false;
    assert_int_equal(ask(&want, &c), BT_INVALID);
    says("what is it for?");
    want.server = true;
    assert_int_equal(ask(&want, &c), BT_INVALID);
    says("--server needs --host");
    want.client = true;
    assert_int_equal(ask(&want, &c), BT_INVALID);
    want.hosts = &host;
    want.hosts_n = 1;
    assert_int_equal(ask(&want, &c), BT_OK);
    assert_true(c.server && c.client && !c.ca);
}

static void so_many_days_are_asked_for_and_no_more(void **state)
{
    struct certs_ask want = ask_of("n");
    struct cert c;

    (void)state;
    assert_int_equal(certs_init(ca, NULL, CERTS_DAYS_MAX + 1, NOW, &c, &err), BT_INVALID);
    says("--days is 1 to 36500");
    assert_int_equal(certs_init(ca, "-", 1, NOW, &c, &err), BT_INVALID);
    assert_int_equal(access(ca, F_OK), -1); /* nothing was made */
    assert_int_equal(certs_init(ca, "Mine.1", CERTS_DAYS_MAX, NOW, &c, &err), BT_OK);
    assert_string_equal(c.name, "Mine.1");
    assert_true(c.until == NOW + CERTS_DAYS_MAX * (msec)DAY_MS);
    want.days = CERTS_DAYS_MAX + 1;
    assert_int_equal(ask(&want, &c), BT_INVALID);
    says("--days: expected 1 to 36500");
    want.days = CERTS_DAYS_MAX;
    assert_int_equal(certs_issue(ca, &want, NOW, &c, &err), BT_OK);
    assert_true(c.until == NOW + CERTS_DAYS_MAX * (msec)DAY_MS);
    assert_int_equal(certs_read(path(to, "n.pem"), &c, &err), BT_OK);
    assert_true(c.until == NOW + CERTS_DAYS_MAX * (msec)DAY_MS); /* beyond 2050, too */
    want = ask_of("m");
    want.days = 1;
    assert_int_equal(ask(&want, &c), BT_OK);
    assert_true(c.until == NOW + DAY_MS && c.from == NOW - CERTS_BACKDATED_MS);
}

static void an_authority_is_called_by_its_serial_and_has_its_ten_years(void **state)
{
    char name[32];
    struct cert c;
    struct cert found;

    (void)state;
    assert_int_equal(certs_init(ca, NULL, 0, NOW + 999, &c, &err), BT_OK);
    (void)snprintf(name, sizeof name, "Baton CA %.6s", c.serial + 2);
    assert_string_equal(c.name, name);
    assert_true(c.until == NOW + CERTS_CA_DAYS * (msec)DAY_MS); /* whole seconds */
    assert_int_equal(certs_read(path(ca, "ca.pem"), &found, &err), BT_OK);
    assert_true(found.ca && !found.server && !found.client);
    assert_string_equal(found.name, name);
    assert_string_equal(found.serial, c.serial);
    assert_int_equal(strlen(c.serial), CERTS_SERIAL_LEN);
    assert_int_equal(mode_of(ca), 0700);
    assert_int_equal(mode_of(path(ca, "issued")), 0700);
    assert_int_equal(mode_of(path(ca, "ca.key")), 0600);
    assert_int_equal(mode_of(path(ca, "ca.pem")), 0644);
}

/* Nothing is valid before or after its authority; from its end on it issues nothing. */
static void an_authority_issues_until_its_end(void **state)
{
    struct certs_ask want = ask_of("a");
    struct cert c;
    const msec end = NOW + DAY_MS;

    (void)state;
    assert_int_equal(certs_init(ca, NULL, 1, NOW, &c, &err), BT_OK);
    assert_int_equal(certs_issue(ca, &want, end - 1, &c, &err), BT_OK);
    assert_true(c.until == end);
    want.name = "b";
    assert_int_equal(certs_issue(ca, &want, end, &c, &err), BT_INVALID);
    says("has expired; make another one in another directory");
    assert_int_equal(certs_issue(ca, &want, NOW - 1000, &c, &err), BT_OK);
    assert_true(c.from == NOW - CERTS_BACKDATED_MS);
    want.name = "c";
    assert_int_equal(certs_issue(ca, &want, NOW + 1000, &c, &err), BT_OK);
    assert_true(c.from == NOW + 1000 - CERTS_BACKDATED_MS);
}

static void a_year_of_five_digits_is_no_date(void **state)
{
    struct cert c;

    (void)state;
    assert_int_equal(certs_init(ca, NULL, CERTS_DAYS_MAX, UINT64_C(253402300000000), &c, &err),
                     BT_INTERNAL);
    says("a certificate cannot be made");
    assert_int_equal(access(path(ca, "ca.pem"), F_OK), -1);
}

/* ---- the files ---- */

static void a_key_of_another_authority_is_refused(void **state)
{
    const struct certs_ask want = ask_of("n");
    char other[80];
    char from[200];
    struct cert c;

    (void)state;
    init(ca);
    (void)snprintf(other, sizeof other, "%s/other", top);
    init(other);
    (void)snprintf(from, sizeof from, "%s/ca.key", other);
    assert_int_equal(rename(from, path(ca, "ca.key")), 0);
    assert_int_equal(ask(&want, &c), BT_INVALID);
    says("ca.key is not the key of ca.pem");
    says(ca);
    fill(path(ca, "ca.key"), 10);
    assert_int_equal(ask(&want, &c), BT_INVALID);
    says("ca.key is not the key of ca.pem");
    fill(path(ca, "ca.pem"), 10);
    assert_int_equal(ask(&want, &c), BT_INVALID);
    says("ca.pem: ");
    assert_int_equal(unlink(path(ca, "ca.key")), 0);
    assert_int_equal(ask(&want, &c), BT_NOT_FOUND);
    says("has no authority; make one with: baton certs init");
}

static void a_directory_is_made_and_what_is_in_it_stays(void **state)
{
    char deep[100];
    struct certs_ask want = ask_of("n");
    struct cert c;

    (void)state;
    init(ca);
    (void)snprintf(deep, sizeof deep, "%s/new", to);
    want.to = deep;
    assert_int_equal(certs_issue(ca, &want, NOW, &c, &err), BT_OK);
    assert_int_equal(mode_of(deep), 0700);
    assert_int_equal(mode_of(path(deep, "ca.pem")), 0644);
    assert_int_equal(mode_of(path(deep, "n.pem")), 0600);
    assert_int_equal(ask(&want, &c), BT_CONFLICT);
    says("exists already; to replace it: baton certs renew n");
    (void)snprintf(deep, sizeof deep, "%s/none/new", to);
    assert_int_equal(ask(&want, &c), BT_NOT_FOUND);
    fill(path(top, "file"), 1);
    (void)snprintf(deep, sizeof deep, "%s/file", top);
    assert_int_not_equal(ask(&want, &c), BT_OK);
}

static void nothing_is_left_of_a_file_that_is_written(void **state)
{
    unsigned char got[CERTS_PEM_MAX];
    const char *file;
    char part[220];

    (void)state;
    file = path(to, "f");
    (void)snprintf(part, sizeof part, "%s.%u", file, (unsigned)getpid());
    fill(part, 3); /* of a process with our number that was killed */
    assert_int_equal(certs_file_write(file, "one", 3, 0600, false, &err), BT_OK);
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(certs_file_write(file, "two", 3, 0644, false, &err), BT_CONFLICT);
    says("exists already; it is not overwritten");
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(certs_file_read(file, true, got, &err), BT_OK);
    assert_string_equal((char *)got, "one");
    assert_int_equal(certs_file_write(file, "three", 5, 0644, true, &err), BT_OK);
    assert_int_equal(certs_file_read(file, false, got, &err), BT_OK);
    assert_string_equal((char *)got, "three");
    assert_int_equal(certs_file_read(file, true, got, &err), BT_UNAUTHORIZED);
    assert_int_equal(certs_file_write(path(to, "none/f"), "x", 1, 0600, true, &err), BT_NOT_FOUND);
    says("cannot be written");
}

static void a_path_has_room_for_the_name_beside_it(void **state)
{
    char dir[CERTS_PATH_MAX + 8];
    char ret[CERTS_PATH_MAX];

    (void)state;
    memset(dir, 'd', sizeof dir);
    dir[CERTS_PATH_MAX - 8 - 3] = 0;
    assert_int_equal(certs_path(dir, "ab", ret, &err), BT_INVALID);
    says("ddd: too long");
    dir[CERTS_PATH_MAX - 8 - 4] = 0;
    assert_int_equal(certs_path(dir, "ab", ret, &err), BT_OK);
    assert_int_equal(strlen(ret), CERTS_PATH_MAX - 8 - 1);
}

/* ---- list and renew ---- */

static void a_list_has_the_oldest_first_and_renewal_the_newest(void **state)
{
    static const msec begin[] = {50, 0, 20, 20, 90, 20};
    static const uint32_t days[] = {9, 9, 9, 3, 9, 30};
    static const int order[] = {1, 3, 2, 5, 0, 4};
    struct cert made[6];
    struct cert *all = NULL;
    uint32_t n = 0;
    const char *host = "h0";

    (void)state;
    init(ca);
    for (int i = 0; i < 6; i++) {
        char name[8];
        struct certs_ask want;
        (void)snprintf(name, sizeof name, "n%d", i % 2);
        want = ask_of(name);
        want.days = days[i];
        want.hosts = &host;
        want.hosts_n = i == 5 ? 1 : 0;
        (void)unlink(path(to, i % 2 == 0 ? "n0.pem" : "n1.pem"));
        assert_int_equal(certs_issue(ca, &want, NOW + begin[i] * 60000, &made[i], &err), BT_OK);
    }
    assert_int_equal(certs_list(ca, &all, &n, &err), BT_OK);
    assert_int_equal(n, 7);
    assert_true(all[0].ca);
    for (uint32_t i = 1; i < n; i++) {
        assert_string_equal(all[i].serial, made[order[i - 1]].serial);
    }
    free(all);
    const struct certs_ask want = ask_of("n1");
    assert_int_equal(certs_renew(ca, &want, NOW + 1000000, &made[0], &err), BT_OK);
    assert_int_equal(made[0].hosts_n, 1); /* as the last one in that order */
    assert_string_equal(made[0].hosts[0], "h0");
    assert_true(made[0].client && !made[0].server);
    const struct certs_ask none = ask_of("none");
    assert_int_equal(certs_renew(ca, &none, NOW, &made[0], &err), BT_NOT_FOUND);
    says("has issued no certificate 'none'; see: baton certs show");
}

static void what_is_damaged_among_the_issued_is_named(void **state)
{
    struct cert c;
    struct cert *all = NULL;
    uint32_t n = 0;
    char issued[100];

    (void)state;
    assert_int_equal(certs_list(ca, &all, &n, &err), BT_NOT_FOUND);
    says("has no authority; make one with: baton certs init");
    init(ca);
    assert_int_equal(issue("n", &c), BT_OK);
    (void)snprintf(issued, sizeof issued, "%s/issued", ca);
    fill(path(issued, "short"), 3); /* of nobody: its name is no serial */
    assert_int_equal(certs_list(ca, &all, &n, &err), BT_OK);
    assert_int_equal(n, 2);
    free(all);
    fill(path(issued, "0123456789abcdef"), 3);
    assert_int_equal(certs_list(ca, &all, &n, &err), BT_INVALID);
    says("0123456789abcdef");
}

/* ---- anybody's certificate ---- */

static void a_name_that_is_no_text_is_shown_as_question_marks(void **state)
{
    struct cert want = {.name = "a\x01\x1f ~\x7f\x80z",
                        .serial = "41",
                        .client = true,
                        .from = NOW,
                        .until = NOW + DAY_MS};
    struct authority *a = NULL;
    unsigned char pem[CERTS_PEM_MAX];
    struct cert c;

    (void)state;
    init(ca);
    assert_int_equal(certs_authority_load(ca, &a, &err), BT_OK);
    assert_int_equal(certs_sign(a, &want, &a->key, false, pem, &err), BT_OK);
    assert_int_equal(certs_file_write(path(to, "f"), pem, strlen((char *)pem), 0600, true, &err),
                     BT_OK);
    if (certs_read(path(to, "f"), &c, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(c.name, "a?? ~??z");
    assert_string_equal(c.serial, "41"); /* shorter than ours */
    assert_true(!c.server && c.client && c.hosts_n == 0);
    certs_authority_free(a);
}

/* ---- the list of revoked certificates ---- */

/* The certificate as others check it, with the list of that file. */
static uint32_t flags_of(const char *cert, const char *dir, const char *name)
{
    char list[200];
    mbedtls_x509_crt crt;
    mbedtls_x509_crt authority;
    mbedtls_x509_crl crl;
    uint32_t flags = 0;

    (void)snprintf(list, sizeof list, "%s/%s", dir, name);
    mbedtls_x509_crt_init(&crt);
    mbedtls_x509_crt_init(&authority);
    mbedtls_x509_crl_init(&crl);
    assert_int_equal(mbedtls_x509_crt_parse_file(&crt, path(to, cert)), 0);
    assert_int_equal(mbedtls_x509_crt_parse_file(&authority, path(ca, "ca.pem")), 0);
    assert_int_equal(mbedtls_x509_crl_parse_file(&crl, list), 0);
    (void)mbedtls_x509_crt_verify(&crt, &authority, &crl, NULL, &flags, NULL, NULL);
    mbedtls_x509_crt_free(&crt);
    mbedtls_x509_crt_free(&authority);
    mbedtls_x509_crl_free(&crl);
    return flags &
           (MBEDTLS_X509_BADCERT_REVOKED | MBEDTLS_X509_BADCRL_NOT_TRUSTED |
            MBEDTLS_X509_BADCRL_BAD_MD | MBEDTLS_X509_BADCRL_BAD_PK | MBEDTLS_X509_BADCRL_BAD_KEY);
}

static bool is_time(const mbedtls_x509_time *t, msec at)
{
    const time_t seconds = (time_t)(at / 1000);
    struct tm tm;

    assert_non_null(gmtime_r(&seconds, &tm));
    return t->year == tm.tm_year + 1900 && t->mon == tm.tm_mon + 1 && t->day == tm.tm_mday &&
           t->hour == tm.tm_hour && t->min == tm.tm_min && t->sec == tm.tm_sec;
}

/* Of each: when it was revoked; the years 2049 and 2050 are written in two ways. */
static void a_list_says_when_each_was_revoked_and_is_valid_as_its_authority(void **state)
{
    static const msec at[] = {NOW, UINT64_C(2524607999000), UINT64_C(2524608000000)};
    static const char *const names[] = {"a", "b", "c"};
    struct cert authority;
    struct cert c[3];
    mbedtls_x509_crl crl;
    const mbedtls_x509_crl_entry *e;
    uint32_t n = 0;

    (void)state;
    assert_int_equal(certs_init(ca, NULL, CERTS_DAYS_MAX, NOW, &authority, &err), BT_OK);
    assert_int_equal(issue("other", &c[0]), BT_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(issue(names[i], &c[i]), BT_OK);
        assert_int_equal(certs_revoke(ca, names[i], to, at[i], &n, &err), BT_OK);
        assert_int_equal(n, 1);
    }
    assert_int_equal(mode_of(path(ca, "crl.pem")), 0644);
    assert_int_equal(mode_of(path(to, "ca.pem")), 0644);
    mbedtls_x509_crl_init(&crl);
    assert_int_equal(mbedtls_x509_crl_parse_file(&crl, path(ca, "crl.pem")), 0);
    assert_true(is_time(&crl.this_update, at[2]));
    assert_true(is_time(&crl.next_update, authority.until));
    e = &crl.entry;
    for (int i = 0; i < 3; i++, e = e->next) {
        char serial[CERTS_SERIAL_LEN + 1] = "";
        assert_non_null(e);
        assert_int_equal(e->serial.len, CERTS_SERIAL_LEN / 2);
        for (size_t k = 0; k < e->serial.len; k++) {
            (void)snprintf(serial + 2 * k, 3, "%02x", e->serial.p[k]);
        }
        assert_string_equal(serial, c[i].serial);
        assert_true(is_time(&e->revocation_date, at[i]));
    }
    assert_null(e);
    mbedtls_x509_crl_free(&crl);
    assert_int_equal(flags_of("other.pem", ca, "crl.pem"), 0);
    assert_int_equal(flags_of("b.pem", ca, "crl.pem"), MBEDTLS_X509_BADCERT_REVOKED);
    assert_int_equal(flags_of("b.pem", to, "ca.pem"), MBEDTLS_X509_BADCERT_REVOKED);
}

static void a_name_means_all_its_certificates_and_never_the_authority(void **state)
{
    struct cert c;
    struct cert *all = NULL;
    uint32_t n = 9;

    (void)state;
    assert_int_equal(certs_init(ca, "mine", 0, NOW, &c, &err), BT_OK);
    assert_int_equal(issue("n", &c), BT_OK);
    assert_int_equal(certs_renew(ca, &(struct certs_ask){.name = "n", .to = to}, NOW, &c, &err),
                     BT_OK);
    assert_int_equal(certs_revoke(ca, "mine", to, NOW, &n, &err), BT_NOT_FOUND);
    says("has issued no certificate 'mine'; see: baton certs show");
    assert_int_equal(access(path(ca, "crl.pem"), F_OK), -1);
    assert_int_equal(certs_list(ca, &all, &n, &err), BT_OK);
    assert_int_equal(certs_mark_revoked(ca, all, n, &err), BT_OK); /* without a list */
    assert_true(n == 3 && !all[1].revoked && !all[2].revoked);
    assert_int_equal(certs_revoke(ca, "n", to, NOW, &n, &err), BT_OK);
    assert_int_equal(n, 2);
    free(all);
    fill(path(ca, "crl.pem"), 9);
    assert_int_equal(certs_revoke(ca, "n", to, NOW, &n, &err), BT_INVALID);
    says("crl.pem: is no list of revoked certificates: ");
    assert_int_equal(certs_mark_revoked(ca, NULL, 0, &err), BT_INVALID);
}

static void a_list_is_given_to_a_directory_of_the_authority_only(void **state)
{
    char linked[100];
    struct cert c;
    uint32_t n = 0;

    (void)state;
    init(ca);
    assert_int_equal(issue("n", &c), BT_OK);
    assert_int_equal(certs_revoke(ca, "n", top, NOW, &n, &err), BT_NOT_FOUND);
    says("does not exist: --to is the directory of the `ca` of the daemon");
    assert_int_equal(access(path(ca, "crl.pem"), F_OK), 0); /* it is revoked nevertheless */
    (void)snprintf(linked, sizeof linked, "%s/linked", top);
    assert_int_equal(symlink(ca, linked), 0);
    assert_int_equal(certs_revoke(ca, "n", linked, NOW, &n, &err), BT_CONFLICT);
    says("is the authority's own: let the daemon have a copy of it");
    fill(path(to, "ca.pem"), 100);
    assert_int_equal(certs_revoke(ca, "n", to, NOW, &n, &err), BT_CONFLICT);
    says("is of another authority");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_is_one_of_a_file),
        TEST(a_host_is_a_name_or_an_address),
        TEST(a_certificate_is_for_something),
        TEST(so_many_days_are_asked_for_and_no_more),
        TEST(an_authority_is_called_by_its_serial_and_has_its_ten_years),
        TEST(an_authority_issues_until_its_end),
        TEST(a_year_of_five_digits_is_no_date),
        TEST(a_key_of_another_authority_is_refused),
        TEST(a_directory_is_made_and_what_is_in_it_stays),
        TEST(nothing_is_left_of_a_file_that_is_written),
        TEST(a_path_has_room_for_the_name_beside_it),
        TEST(a_list_has_the_oldest_first_and_renewal_the_newest),
        TEST(what_is_damaged_among_the_issued_is_named),
        TEST(a_name_that_is_no_text_is_shown_as_question_marks),
        TEST(a_list_says_when_each_was_revoked_and_is_valid_as_its_authority),
        TEST(a_name_means_all_its_certificates_and_never_the_authority),
        TEST(a_list_is_given_to_a_directory_of_the_authority_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

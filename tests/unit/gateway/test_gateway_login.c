/* The two halves of a page's log-in, and the key that they are sealed with. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/gateway/login.h"
#include "tests/support/cmocka.h"

static struct login login = {.key = {1, 2, 3}};
static char half[2 * LOGIN_HALF_BYTES + 1];

static struct buf sealed(const char *bearer, msec until)
{
    struct buf cookie;

    buf_init(&cookie, LOGIN_COOKIE_MAX);
    assert_true(login_seal(&login, str_from(bearer), until, half, &cookie));
    return cookie;
}

static bool opens(const struct login *l, const char *page, struct str cookie, msec now,
                  const char *expected)
{
    struct buf out;
    bool ok;

    buf_init(&out, LOGIN_BEARER_MAX);
    ok = login_unseal(l, str_from(page), cookie, now, &out);
    if (ok) {
        assert_true(str_is(buf_str(&out), expected));
    }
    buf_done(&out);
    return ok;
}

static void both_halves_give_back_what_was_sealed(void **unused)
{
    struct buf cookie = sealed("ann:00ff", 1000);

    (void)unused;
    assert_null(strstr(buf_cstr(&cookie), "ann"));
    assert_true(opens(&login, half, buf_str(&cookie), 0, "ann:00ff"));
    assert_true(opens(&login, half, buf_str(&cookie), 999, "ann:00ff"));
    assert_false(opens(&login, half, buf_str(&cookie), 1000, ""));
    buf_done(&cookie);
}

static void one_half_alone_or_of_another_log_in_opens_nothing(void **unused)
{
    static const struct login other = {.key = {9}};
    struct buf first = sealed("token", 1000);
    char page[sizeof half];
    struct buf second;

    (void)unused;
    memcpy(page, half, sizeof page);
    second = sealed("token", 1000);
    assert_false(str_eq(buf_str(&first), buf_str(&second)));
    assert_false(opens(&login, page, buf_str(&second), 0, ""));
    assert_false(opens(&login, half, buf_str(&first), 0, ""));
    assert_false(opens(&other, half, buf_str(&second), 0, ""));
    assert_false(opens(&login, "", buf_str(&second), 0, ""));
    assert_false(opens(&login, half, STR_LIT(""), 0, ""));
    assert_false(opens(&login, "zz", buf_str(&second), 0, ""));
    buf_done(&first);
    buf_done(&second);
}

static void no_changed_digit_of_the_cookie_opens_it(void **unused)
{
    struct buf cookie = sealed("0123456789abcdef", 1000);

    (void)unused;
    for (size_t i = 0; i < cookie.len; i++) {
        const uint8_t was = cookie.at[i];
        cookie.at[i] = was == '0' ? '1' : '0';
        assert_false(opens(&login, half, buf_str(&cookie), 0, ""));
        cookie.at[i] = 'g';
        assert_false(opens(&login, half, buf_str(&cookie), 0, ""));
        cookie.at[i] = was;
    }
    for (size_t n = 0; n < cookie.len; n++) {
        assert_false(opens(&login, half, (struct str){(const char *)cookie.at, n}, 0, ""));
    }
    assert_true(opens(&login, half, buf_str(&cookie), 0, "0123456789abcdef"));
    buf_done(&cookie);
}

static void a_bearer_has_at_most_200_bytes(void **unused)
{
    char text[LOGIN_BEARER_MAX + 2];
    struct buf cookie;

    (void)unused;
    memset(text, 'x', sizeof text);
    text[LOGIN_BEARER_MAX + 1] = 0;
    buf_init(&cookie, LOGIN_COOKIE_MAX);
    assert_false(login_seal(&login, str_from(text), 1, half, &cookie));
    text[LOGIN_BEARER_MAX] = 0;
    assert_true(login_seal(&login, str_from(text), 1, half, &cookie));
    assert_int_equal(cookie.len, LOGIN_COOKIE_MAX);
    assert_true(opens(&login, half, buf_str(&cookie), 0, text));
    buf_done(&cookie);
}

static void a_cookie_is_found_by_its_whole_name(void **unused)
{
    static const char header[] = "xbaton-1=no; baton-11=no;baton-1=yes ; baton-1=late";

    (void)unused;
    assert_true(str_is(login_cookie_find(str_from(header), "baton-1"), "yes"));
    assert_int_equal(login_cookie_find(str_from(header), "baton-2").len, 0);
    assert_int_equal(login_cookie_find(STR_LIT("baton-1"), "baton-1").len, 0);
    assert_int_equal(login_cookie_find(STR_LIT(""), "baton-1").len, 0);
}

static void the_key_is_made_once_and_is_its_owners_alone(void **unused)
{
    char dir[] = "/tmp/baton-login-XXXXXX";
    char path[64];
    struct login first, again;
    struct bt_error err;
    struct stat st;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/%s", dir, LOGIN_FILE);
    assert_int_equal(login_open(dir, &first, &err), BT_OK);
    assert_int_equal(login_open(dir, &again, &err), BT_OK);
    assert_memory_equal(first.key, again.key, sizeof first.key);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(login_open(dir, &again, &err), BT_INVALID);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, 31), 0);
    assert_int_equal(login_open(dir, &again, &err), BT_INVALID);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(login_open(dir, &again, &err), BT_OK);
    assert_memory_not_equal(first.key, again.key, sizeof first.key);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_halves_give_back_what_was_sealed),
        cmocka_unit_test(one_half_alone_or_of_another_log_in_opens_nothing),
        cmocka_unit_test(no_changed_digit_of_the_cookie_opens_it),
        cmocka_unit_test(a_bearer_has_at_most_200_bytes),
        cmocka_unit_test(a_cookie_is_found_by_its_whole_name),
        cmocka_unit_test(the_key_is_made_once_and_is_its_owners_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

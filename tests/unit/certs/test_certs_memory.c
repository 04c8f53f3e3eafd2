/* Without memory an authority refuses with that reason, keeps what it has, and leaks nothing. */
#include <mbedtls/ctr_drbg.h>

#include "tests/support/memory.h"
#include "tests/unit/certs/certs_rig.h"

enum { MOST = 100 };

int __real_mbedtls_ctr_drbg_seed(mbedtls_ctr_drbg_context *of,
                                 int (*entropy)(void *, unsigned char *, size_t), void *self,
                                 const unsigned char *more, size_t n);
int __wrap_mbedtls_ctr_drbg_seed(mbedtls_ctr_drbg_context *of,
                                 int (*entropy)(void *, unsigned char *, size_t), void *self,
                                 const unsigned char *more, size_t n);
int __real_mbedtls_ctr_drbg_random(void *self, unsigned char *at, size_t n);
int __wrap_mbedtls_ctr_drbg_random(void *self, unsigned char *at, size_t n);

static bool seed_fails;
static long random_fails; /* the number of the call; 0 = none */

int __wrap_mbedtls_ctr_drbg_seed(mbedtls_ctr_drbg_context *of,
                                 int (*entropy)(void *, unsigned char *, size_t), void *self,
                                 const unsigned char *more, size_t n)
{
    return seed_fails ? MBEDTLS_ERR_CTR_DRBG_ENTROPY_SOURCE_FAILED
                      : __real_mbedtls_ctr_drbg_seed(of, entropy, self, more, n);
}

int __wrap_mbedtls_ctr_drbg_random(void *self, unsigned char *at, size_t n)
{
    return random_fails > 0 && --random_fails == 0 ? MBEDTLS_ERR_CTR_DRBG_ENTROPY_SOURCE_FAILED
                                                   : __real_mbedtls_ctr_drbg_random(self, at, n);
}

static void is_refused(enum bt_code code)
{
    assert_true(code == BT_NOMEM || code == BT_INTERNAL);
    assert_non_null(strstr(err.msg, code == BT_NOMEM ? "out of memory for" : "cannot be made"));
}

/* 1 when every allocation of the call was made to fail once. */
#define EACH_FAILS(call)                                                                           \
    for (long i = 1;; i++) {                                                                       \
        enum bt_code code;                                                                         \
        assert_true(i < MOST);                                                                     \
        memory_begin(i);                                                                           \
        code = call;                                                                               \
        if (!memory_end()) {                                                                       \
            assert_int_equal(code, BT_OK);                                                         \
            break;                                                                                 \
        }                                                                                          \
        is_refused(code);                                                                          \
    }

static enum bt_code list(void)
{
    struct cert *all = NULL;
    uint32_t n = 0;
    enum bt_code code = certs_list(ca, &all, &n, &err);

    code = code == BT_OK ? certs_mark_revoked(ca, all, n, &err) : code;
    free(all);
    return code;
}

static void each_call_says_that_it_has_no_memory(void **state)
{
    struct cert c;
    uint32_t n = 0;
    const struct certs_ask again = {.name = "n", .to = to};

    (void)state;
    EACH_FAILS(certs_init(ca, NULL, 0, NOW, &c, &err))
    EACH_FAILS(issue("n", &c))
    EACH_FAILS(certs_renew(ca, &again, NOW, &c, &err))
    EACH_FAILS(certs_revoke(ca, c.serial, to, NOW, &n, &err))
    EACH_FAILS(certs_revoke(ca, "n", to, NOW, &n, &err))
    EACH_FAILS(list())
    assert_int_equal(certs_read(path(to, "n.pem"), &c, &err), BT_OK);
}

/* Serial, key and signature: each needs some. */
static void without_random_numbers_nothing_is_made(void **state)
{
    struct cert c;
    bool serial = false;
    bool made = false;

    (void)state;
    seed_fails = true;
    assert_int_equal(certs_init(ca, NULL, 0, NOW, &c, &err), BT_IO);
    assert_ptr_equal(strstr(err.msg, "no random numbers: "), err.msg);
    seed_fails = false;
    for (long i = 1; !made; i++) {
        enum bt_code code;
        assert_true(i < MOST);
        random_fails = i;
        code = certs_init(ca, NULL, 0, NOW, &c, &err);
        made = random_fails > 0;
        random_fails = 0;
        assert_true(made == (code == BT_OK));
        assert_true(made || access(path(ca, "ca.pem"), F_OK) != 0);
        assert_true(made || code == BT_IO || code == BT_INTERNAL);
        serial = serial || code == BT_IO;
    }
    assert_true(serial);
}

/* As many descriptors as before, whatever was asked for. */
static void each_call_gives_its_descriptors_back(void **state)
{
    const int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct cert c;
    uint32_t n = 0;

    (void)state;
    assert_true(before >= 0 && close(before) == 0);
    assert_int_equal(issue("n", &c), BT_NOT_FOUND);
    init(ca);
    assert_int_equal(certs_init(ca, NULL, 0, NOW, &c, &err), BT_CONFLICT);
    assert_int_equal(issue("n", &c), BT_OK);
    assert_int_equal(issue("n", &c), BT_CONFLICT);
    assert_int_equal(certs_revoke(ca, "n", to, NOW, &n, &err), BT_OK);
    assert_int_equal(list(), BT_OK);
    assert_int_equal(certs_read(to, &c, &err), BT_INVALID);
    assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), before);
    assert_int_equal(close(before), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_call_says_that_it_has_no_memory),
        TEST(without_random_numbers_nothing_is_made),
        TEST(each_call_gives_its_descriptors_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

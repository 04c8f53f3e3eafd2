/* The rooms of credentials and sessions without memory or random numbers, and what of keys is left
 * in memory: nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/auth/processes.h"
#include "supervisor/auth/store.h"
#include "tests/support/memory.h"
#include "tests/unit/auth/sessions_rig.h"

enum { MOST = 200, KEY = 0x5A };

static char dir[64];
static char logged[65536];
static size_t logged_n;

#define ZEROS_64 "0000000000000000000000000000000000000000000000000000000000000000"

/* ---- what fails, and what is wiped ---- */

ssize_t __real_getrandom(void *at, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *at, size_t n, unsigned flags);
bool __real_handshake_mac_key(const uint8_t key[AUTH_KEY_BYTES], const struct handshake *h,
                              struct auth_mac_key *ret);
bool __wrap_handshake_mac_key(const uint8_t key[AUTH_KEY_BYTES], const struct handshake *h,
                              struct auth_mac_key *ret);
void __real_explicit_bzero(void *at, size_t n);
void __wrap_explicit_bzero(void *at, size_t n);

static int random_fails; /* the number of the call; 0 = none */
static int random_errno = EIO;
static bool random_short; /* a byte less than was asked for */
static int hash_fails;
static uint8_t wiped_key[AUTH_KEY_BYTES];
static int wiped; /* calls that had this key in their bytes */

ssize_t __wrap_getrandom(void *at, size_t n, unsigned flags)
{
    if (random_fails > 0 && --random_fails == 0) {
        errno = random_errno;
        return -1;
    }
    return __real_getrandom(at, random_short ? n - 1 : n, flags);
}

bool __wrap_handshake_mac_key(const uint8_t key[AUTH_KEY_BYTES], const struct handshake *h,
                              struct auth_mac_key *ret)
{
    return (hash_fails == 0 || --hash_fails > 0) && __real_handshake_mac_key(key, h, ret);
}

void __wrap_explicit_bzero(void *at, size_t n)
{
    wiped += memmem(at, n, wiped_key, sizeof wiped_key) != NULL;
    __real_explicit_bzero(at, n);
}

static void keep_line(enum log_level level, const char *event, const char *text, void *self)
{
    (void)level, (void)self;
    if (sizeof logged - logged_n > 600) {
        logged_n += (size_t)snprintf(logged + logged_n, 600, "%s %.500s\n", event, text);
    }
}

static void run_rm(void)
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static int set_up(void **state)
{
    struct bt_error err;
    char id[16];

    (void)state;
    log_setup(LOG_INFO, keep_line, NULL);
    logged[logged_n = 0] = 0;
    (void)snprintf(dir, sizeof dir, "/tmp/baton-memory-XXXXXX");
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 17; i++) { /* the list grows twice */
        struct credential c = {.who = {.role = ROLE_SUBMITTER}, .created = 1};
        (void)snprintf(id, sizeof id, "c%d", i);
        (void)snprintf(c.who.id, sizeof c.who.id, "%s", id);
        memset(c.key, KEY, sizeof c.key);
        assert_int_equal(credential_store(dir, &c, true, &err), BT_OK);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    memory_watched = false;
    memory_secret = NULL;
    random_fails = hash_fails = 0;
    log_setup(LOG_ERR, NULL, NULL);
    run_rm();
    return 0;
}

static uint32_t known(struct sessions *s)
{
    char id[16];
    uint32_t n = 0;

    for (int i = 0; i < 17; i++) {
        (void)snprintf(id, sizeof id, "c%d", i);
        n += sessions_identity(s, str_from(id), WALL) != NULL;
    }
    return n;
}

static void says(const char *words)
{
    if (strstr(logged, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", logged, words);
    }
}

/* ---- without memory ---- */

/* All that the daemon does with credentials: a store, a change, processes, and a request. */
static enum bt_code use(uint32_t *ret_known, bool *ret_charged)
{
    struct sessions *s = NULL;
    struct auth_store *store = NULL;
    struct bt_error err = {.code = BT_OK};
    enum bt_code code = sessions_new(&s, &err);
    struct credential *of;

    if (code == BT_OK) {
        code = auth_store_new(dir, s, NULL, at_start, &store, &err);
    }
    assert_int_equal(code, err.code);
    if (code == BT_OK) {
        of = __real_calloc(1, sizeof *of);
        *of = (struct credential){.who = {.id = "process:1", .role = ROLE_AGENT}};
        auth_store_processes(store, of, 1, at_start);
        *ret_known = known(s);
        assert_true(*ret_known == 0 || sessions_identity(s, STR_LIT("process:1"), WALL) != NULL);
        sessions_count_event(s, STR_LIT("c0"), NOW);
        *ret_charged = sessions_events_left(s, STR_LIT("c0"), NOW, NULL, &err) == BT_OK;
        auth_store_processes(store, NULL, 0, at_start);
    }
    auth_store_free(store);
    sessions_free(s);
    return code;
}

static void without_memory_no_credential_is_known_and_none_is_leaked(void **state)
{
    uint32_t n = 0;
    bool charged = false;
    bool refused = false;
    bool some_known = false;
    bool none_known = false;

    (void)state;
    for (long i = 1; i <= MOST; i++) {
        enum bt_code code;
        n = 0;
        memory_begin(i);
        code = use(&n, &charged);
        if (!memory_end()) {
            assert_int_equal(code, BT_OK);
            assert_int_equal(n, 17);
            assert_true(some_known && none_known && refused);
            return;
        }
        assert_true(code == BT_OK || code == BT_NOMEM);
        assert_true(code != BT_OK || charged);
        refused = refused || code == BT_NOMEM;
        some_known = some_known || (n > 0 && n < 17);
        none_known = none_known || (code == BT_OK && n == 0);
        if (code == BT_OK && n < 17) {
            says("auth.credential");
            says("memory");
        }
        logged[logged_n = 0] = 0;
    }
    fail_msg("more than %d allocations", MOST);
}

/* ---- without random numbers ---- */

static void without_random_numbers_there_is_neither_a_table_nor_a_handshake(void **state)
{
    const uint8_t nonce[AUTH_NONCE_BYTES] = {1};
    struct session_begun b;
    struct bt_error err;
    struct sessions *s = NULL;
    struct credential *at = some(1);

    (void)state;
    random_fails = 1;
    assert_int_equal(sessions_new(&s, &err), BT_INTERNAL);
    assert_string_equal(err.msg, "no random bytes for sessions");
    s = new_table();
    memset(at[0].previous, 9, AUTH_KEY_BYTES);
    at[0].previous_until = WALL + 1;
    (void)sessions_set(s, at, 1, at_start);
    for (int i = 0; i < 4; i++) {
        random_fails = i < 2 ? i + 1 : 0;
        hash_fails = i < 2 ? 0 : i - 1;
        assert_int_equal(
            sessions_begin(s, STR_LIT("c0"), nonce, STR_LIT("h:1"), at_start, &b, &err),
            BT_INTERNAL);
        assert_string_equal(err.msg, "the handshake cannot be made now");
        /* nothing of it is in the next one, which has the same place */
        assert_int_equal(
            sessions_begin(s, STR_LIT("nobody"), nonce, STR_LIT("h:1"), at_start, &b, &err), BT_OK);
        assert_false(b.has_previous);
    }
    sessions_free(s);
}

static void a_client_without_memory_or_random_numbers_opens_no_session(void **state)
{
    const struct auth_begun begun = {
        STR_LIT("00000000000000000000000000000000"), STR_LIT(ZEROS_64), STR_LIT(ZEROS_64), {"", 0}};
    const uint8_t key[AUTH_KEY_BYTES] = {1};
    char nonce[2 * AUTH_NONCE_BYTES + 1];
    struct auth_session s;
    struct bt_error err;

    (void)state;
    random_fails = 1;
    assert_int_equal(auth_session_begin(&s, nonce, &err), BT_INTERNAL);
    assert_string_equal(err.msg, "no random bytes for a handshake");
    assert_int_equal(auth_session_begin(&s, nonce, &err), BT_OK);
    hash_fails = 1;
    assert_int_equal(auth_session_finish(&s, key, &begun, &err), BT_NOMEM);
    assert_string_equal(err.msg, "out of memory for a handshake");
    assert_false(s.open);
    hash_fails = 0;
    assert_int_equal(auth_session_finish(&s, key, &begun, &err), BT_UNAUTHORIZED);
    assert_false(s.open);
}

static void a_signal_while_random_numbers_are_made_is_no_failure(void **state)
{
    uint8_t bytes[8];

    (void)state;
    random_fails = 1;
    random_errno = EINTR;
    assert_true(auth_random(bytes, sizeof bytes));
    random_fails = 1;
    random_errno = EIO;
    assert_false(auth_random(bytes, sizeof bytes));
    random_short = true;
    assert_false(auth_random(bytes, sizeof bytes));
    random_short = false;
}

/* ---- keys in memory ---- */

static void no_block_is_given_back_with_a_key_in_it(void **state)
{
    uint8_t key[AUTH_KEY_BYTES];
    uint32_t n;
    bool charged;

    (void)state;
    memset(key, KEY, sizeof key);
    memory_secret = key;
    memory_secret_n = sizeof key;
    memory_begin(0);
    assert_int_equal(use(&n, &charged), BT_OK);
    (void)memory_end();
    assert_int_equal(memory_told, 0);
}

/* The session key of a table: the one of its client. */
static void a_table_is_wiped_with_its_sessions(void **state)
{
    struct client c = client_of("c0", 1);
    struct sessions *s;
    struct auth_mac_key key;

    (void)state;
    memory_begin(0);
    s = new_table();
    (void)sessions_set(s, some(1), 1, at_start);
    begin(s, &c);
    assert_int_equal(ask(s, &c), BT_OK);
    key = c.s.key;
    memory_secret = &key;
    memory_secret_n = sizeof key;
    memory_told = 0;
    sessions_free(s);
    sessions_free(NULL);
    auth_store_free(NULL);
    (void)memory_end();
    assert_int_equal(memory_told, 0);
}

static void copies_of_keys_on_the_stack_are_wiped(void **state)
{
    static struct process_keys keys;
    char id[PROCESS_TEXT_BYTES];
    char hex[PROCESS_TEXT_BYTES];
    struct credential *at = some(1);
    struct client c = client_of("c0", KEY);
    struct sessions *s = new_table();
    struct credential process;
    struct bt_error err;

    (void)state;
    memset(at[0].key, KEY, AUTH_KEY_BYTES);
    memset(at[0].previous, KEY, AUTH_KEY_BYTES);
    at[0].previous_until = WALL + 1;
    (void)sessions_set(s, at, 1, at_start);
    memset(wiped_key, KEY, sizeof wiped_key);
    wiped = 0;
    begin(s, &c);
    assert_int_equal(wiped, 2); /* the key, and the one before it */
    sessions_free(s);
    assert_int_equal(process_keys_open(dir, &keys, &err), BT_OK);
    assert_true(process_credential(&keys, STR_LIT("i"), STR_LIT("a"), &process));
    memcpy(wiped_key, process.key, sizeof wiped_key);
    wiped = 0;
    assert_true(process_prove(&keys, STR_LIT("i"), STR_LIT("a"), id, hex));
    assert_int_equal(wiped, 1);
    auth_hex(keys.secret, 16, hex); /* half of the digits, which are as many as a key */
    memcpy(wiped_key, hex, sizeof wiped_key);
    wiped = 0;
    assert_int_equal(process_keys_open(dir, &keys, &err), BT_OK);
    assert_int_equal(wiped, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_memory_no_credential_is_known_and_none_is_leaked),
        TEST(without_random_numbers_there_is_neither_a_table_nor_a_handshake),
        TEST(a_client_without_memory_or_random_numbers_opens_no_session),
        TEST(a_signal_while_random_numbers_are_made_is_no_failure),
        TEST(no_block_is_given_back_with_a_key_in_it),
        TEST(a_table_is_wiped_with_its_sessions),
        TEST(copies_of_keys_on_the_stack_are_wiped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is known of a server of NATS before anything is sent: whose files are taken, and what the
 * numbers of libnats are in sentences. */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/bridge/nats.h"
#include "tests/support/cmocka.h"

static char dir[64];
static char file[96];
static struct bt_error err;

static int set_up(void **state)
{
    (void)state;
    (void)unsetenv("CREDENTIALS_DIRECTORY");
    (void)snprintf(dir, sizeof dir, "/tmp/baton-nats-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof file, "%s/secret", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(file);
    return rmdir(dir);
}

static void write_secret(const char *text, mode_t mode)
{
    const int fd = open(file, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

/* Nobody listens at the server of these options. */
static enum bt_code open_with(struct options opt)
{
    struct nats *n = NULL;

    opt.servers[0] = "nats://127.0.0.1:1";
    opt.servers_n = 1;
    return nats_open(&opt, &n, &err);
}

static void says(const char *words)
{
    if (strstr(err.msg, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
    }
}

static void each_failure_is_said_by_what_can_be_done(void **state)
{
    static const struct {
        natsStatus s;
        jsErrCode js;
        const char *text;
        enum bt_code code;
        const char *want;
    } cases[] = {
        {NATS_ERR, JSStreamWrongLastMsgIDErr, "t", BT_BUSY,
         "w: the stream has changed meanwhile (t)"},
        {NATS_ERR, JSStreamWrongLastSequenceErr, "t", BT_BUSY,
         "w: the stream has changed meanwhile (t)"},
        {NATS_ERR, JSStreamNotMatchErr, "t", BT_CONFLICT, "w: t"},
        {NATS_ERR, JSStreamSealedErr, "t", BT_CONFLICT, "w: t"},
        {NATS_ERR, JSStreamSubjectOverlapErr, "t", BT_CONFLICT, "w: t"},
        {NATS_ERR, JSNotEnabledErr, "t", BT_UNAUTHORIZED, "w: t; start the server with JetStream"},
        {NATS_ERR, JSNotEnabledForAccountErr, "t", BT_UNAUTHORIZED,
         "w: t; start the server with JetStream"},
        {NATS_ERR, JSStreamMessageExceedsMaximumErr, "t", BT_INVALID,
         "w: t; give the stream a larger max_msg_size"},
        {NATS_ERR, JSInsufficientResourcesErr, "t", BT_LIMIT, "w: t (JetStream 10023)"},
        {NATS_CONNECTION_AUTH_FAILED, 0, "t", BT_UNAUTHORIZED, "w: t"},
        {NATS_NOT_PERMITTED, 0, "t", BT_UNAUTHORIZED, "w: t"},
        {NATS_SSL_ERROR, 0, "t", BT_UNAUTHORIZED, "w: t"},
        {NATS_SECURE_CONNECTION_REQUIRED, 0, "t", BT_UNAUTHORIZED, "w: t"},
        {NATS_SECURE_CONNECTION_WANTED, 0, "t", BT_UNAUTHORIZED, "w: t"},
        {NATS_NO_MEMORY, 0, "t", BT_NOMEM, "w: out of memory"},
        {NATS_TIMEOUT, 0, "t", BT_UNAVAILABLE, "w: t"},
        {NATS_TIMEOUT, 0, NULL, BT_UNAVAILABLE, "w: Timeout"},
        {NATS_TIMEOUT, 0, "", BT_UNAVAILABLE, "w: Timeout"},
        {NATS_TIMEOUT, 0, "(conn.c:2088): t", BT_UNAVAILABLE, "w: t"}, /* a place in its source */
        {NATS_TIMEOUT, 0, "(t", BT_UNAVAILABLE, "w: (t"},
        {NATS_TIMEOUT, 0, "t (x): y", BT_UNAVAILABLE, "w: t (x): y"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(nats_explain(cases[i].s, cases[i].js, cases[i].text, "w", &err),
                         cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_ptr_equal(strstr(err.msg, cases[i].want), err.msg);
    }
}

static void without_a_server_the_address_is_named(void **state)
{
    (void)state;
    assert_int_equal(open_with((struct options){.name = "main"}), BT_UNAVAILABLE);
    says("the server at nats://127.0.0.1:1: ");
    nats_free(NULL);
}

/* Each way to prove oneself: a file that is missing, one that others may read, one that is right.
 */
static void a_file_with_a_secret_is_its_owners(void **state)
{
    static const char seed[] = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n";
    const struct options ways[] = {{.creds = file},
                                   {.nkey = file},
                                   {.user = "u", .password_file = file},
                                   {.token_file = file}};
    static const char *const names[] = {"--creds ", "--nkey ", "--password-file ", "--token-file "};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        (void)unlink(file);
        assert_int_equal(open_with(ways[i]), BT_INVALID);
        assert_ptr_equal(strstr(err.msg, names[i]), err.msg);
        says("No such file");
        write_secret(seed, 0640);
        assert_int_equal(open_with(ways[i]), BT_INVALID);
        assert_ptr_equal(strstr(err.msg, names[i]), err.msg);
        says("it must be a file that only its owner can read (chmod 600)");
        write_secret(seed, 0600);
        assert_int_equal(open_with(ways[i]), BT_UNAVAILABLE); /* it is asked for then */
    }
    write_secret("no seed\n", 0600);
    assert_int_equal(open_with(ways[1]), BT_INVALID);
    says("its first line is no seed of a user (SU...)");
    write_secret("", 0600);
    assert_int_equal(open_with(ways[2]), BT_INVALID);
    says("--password-file ");
}

/* systemd lets only its unit in, whatever the mode says. */
static void a_file_of_the_service_manager_may_be_of_any_mode(void **state)
{
    static const struct {
        const char *own; /* what the variable has after the directory, or as a whole */
        bool whole, taken;
    } cases[] = {{"", false, true},
                 {"x", false, false},
                 {"/", false, false},
                 {"tmp", true, false},
                 {"", true, false}};
    const struct options way = {.token_file = file};
    char text[128];

    (void)state;
    write_secret("token\n", 0640);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(text, sizeof text, "%s%s", cases[i].whole ? "" : dir, cases[i].own);
        assert_int_equal(setenv("CREDENTIALS_DIRECTORY", text, 1), 0);
        assert_int_equal(open_with(way), cases[i].taken ? BT_UNAVAILABLE : BT_INVALID);
    }
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", dir, 1), 0);
    (void)snprintf(text, sizeof text, "%s/../%s/secret", dir, dir + sizeof "/tmp");
    const struct options around = {.token_file = text};
    assert_int_equal(open_with(around), BT_INVALID);
}

static void of_tls_each_file_is_named(void **state)
{
    struct options opt = {.tls = true, .tls_ca = file};

    (void)state;
    assert_int_equal(open_with(opt), BT_INVALID);
    says("--tls-ca ");
    says("No such file");
    write_secret("no certificate", 0600);
    assert_int_equal(open_with(opt), BT_INVALID);
    says("--tls-ca ");
    if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) != 0) {
        print_message("SKIP: this system has no list of authorities\n");
        return;
    }
    opt.tls_ca = NULL; /* the system's */
    assert_int_equal(open_with(opt), BT_UNAVAILABLE);
    opt.tls_cert = opt.tls_key = file;
    assert_int_equal(open_with(opt), BT_INVALID);
    says("--tls-cert ");
    write_secret("no certificate", 0644);
    assert_int_equal(open_with(opt), BT_INVALID);
    says("--tls-key ");
    says("only its owner can read");
}

/* ---- what libnats is told ---- */

static const char *refuses; /* the function that fails */
static uint32_t told;       /* calls with the values that they must have */
static char secret_told[64];

static natsStatus tell(const char *name, bool right)
{
    if (!right) {
        fail_msg("%s got another value", name);
    }
    told++;
    return refuses != NULL && strcmp(refuses, name) == 0 ? NATS_NO_MEMORY : NATS_OK;
}

/* When the test says which it is. */
static bool is_secret(const char *text)
{
    return secret_told[0] == 0 || strcmp(text, secret_told) == 0;
}

#define TOLD(name, right, parameters, arguments)                                                   \
    natsStatus __real_natsOptions_##name parameters;                                               \
    natsStatus __wrap_natsOptions_##name parameters;                                               \
    natsStatus __wrap_natsOptions_##name parameters                                                \
    {                                                                                              \
        const natsStatus st = tell(#name, right);                                                  \
        return st != NATS_OK ? st : __real_natsOptions_##name arguments;                           \
    }
TOLD(SetServers, n == 1 && strncmp(servers[0], "nats://127.0.0.1:", 17) == 0,
     (natsOptions * o, const char **servers, int n), (o, servers, n))
TOLD(SetName, strcmp(name, "baton-bridge-nats") == 0, (natsOptions * o, const char *name),
     (o, name))
TOLD(SetTimeout, ms == 3000, (natsOptions * o, int64_t ms), (o, ms))
TOLD(SetMaxReconnect, n == -1, (natsOptions * o, int n), (o, n))
TOLD(SetReconnectWait, ms == 100, (natsOptions * o, int64_t ms), (o, ms))
TOLD(SetPingInterval, ms == 5000, (natsOptions * o, int64_t ms), (o, ms))
TOLD(SetErrorHandler, fn != NULL && self != NULL, (natsOptions * o, natsErrHandler fn, void *self),
     (o, fn, self))
TOLD(SetReconnectBufSize, n == 0, (natsOptions * o, int n), (o, n))
TOLD(SetFailRequestsOnDisconnect, on, (natsOptions * o, bool on), (o, on))
TOLD(SetSecure, on, (natsOptions * o, bool on), (o, on))
TOLD(SetUserCredentialsFromFiles, strcmp(a, file) == 0 && b == NULL,
     (natsOptions * o, const char *a, const char *b), (o, a, b))
TOLD(SetNKeyFromSeed, key[0] == 'U' && strlen(key) == 56 && strcmp(seed, file) == 0,
     (natsOptions * o, const char *key, const char *seed), (o, key, seed))
TOLD(SetUserInfo, strcmp(user, "u") == 0 && is_secret(password),
     (natsOptions * o, const char *user, const char *password), (o, user, password))
TOLD(SetToken, is_secret(token), (natsOptions * o, const char *token), (o, token))

static void a_connection_is_made_with_what_it_needs_or_not_at_all(void **state)
{
    static const char *const NAMES[] = {"SetServers",
                                        "SetName",
                                        "SetTimeout",
                                        "SetMaxReconnect",
                                        "SetReconnectWait",
                                        "SetPingInterval",
                                        "SetErrorHandler",
                                        "SetReconnectBufSize",
                                        "SetFailRequestsOnDisconnect"};
    const struct options plain = {.name = "main"};

    (void)state;
    told = 0;
    refuses = NULL;
    assert_int_equal(open_with(plain), BT_UNAVAILABLE);
    assert_int_equal(told, 9);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        refuses = NAMES[i];
        assert_int_equal(open_with(plain), BT_NOMEM);
        assert_string_equal(err.msg, "--server: out of memory");
    }
    refuses = NULL;
}

static void a_proof_is_the_first_line_of_its_file(void **state)
{
    static const char seed[] = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    static const char *const NAMES[] = {"SetUserCredentialsFromFiles", "SetNKeyFromSeed",
                                        "SetUserInfo", "SetToken"};
    const struct options ways[] = {{.creds = file},
                                   {.nkey = file},
                                   {.user = "u", .password_file = file},
                                   {.token_file = file}};
    char text[128];

    (void)state;
    (void)snprintf(secret_told, sizeof secret_told, "%s", seed);
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(text, sizeof text, "%s\r\nmore\n", seed);
        write_secret(text, 0600);
        told = 0;
        refuses = NULL;
        assert_int_equal(open_with(ways[i]), BT_UNAVAILABLE);
        assert_int_equal(told, 10);
        refuses = NAMES[i];
        assert_int_equal(open_with(ways[i]), BT_NOMEM);
        assert_string_equal(err.msg, "the proof for the server: out of memory");
    }
    secret_told[0] = 0;
    refuses = NULL;
}

/* ---- a server ---- */

/* A server of one connection, in a thread: it says what it is, and answers pings. */
struct server {
    pthread_t thread;
    int listens;
    _Atomic int has; /* its connection */
    char url[64];
};

static void *serve(void *self)
{
    struct server *s = self;
    static const char info[] =
        "INFO {\"server_id\":\"fake\",\"version\":\"2.9.0\",\"max_payload\":1048576,"
        "\"headers\":true}\r\n";
    char text[4096];
    ssize_t n;

    s->has = accept(s->listens, NULL, NULL);
    if (s->has < 0 || write(s->has, info, sizeof info - 1) != sizeof info - 1) {
        return NULL;
    }
    while ((n = read(s->has, text, sizeof text - 1)) > 0) {
        text[n] = 0;
        if (strstr(text, "PING") != NULL && write(s->has, "PONG\r\n", 6) != 6) {
            break;
        }
    }
    return NULL;
}

static void start_server(struct server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;

    s->listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listens, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listens, 1), 0);
    assert_int_equal(getsockname(s->listens, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(s->url, sizeof s->url, "nats://127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void end_server(struct server *s)
{
    (void)close(s->listens);
    (void)shutdown(s->has, SHUT_RDWR);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    (void)close(s->has);
}

/* What libnats is told on its threads. */
static void until(bool (*is)(struct nats *n), struct nats *n)
{
    const struct timespec tick = {.tv_nsec = 1000000};

    for (int i = 0; !is(n); i++) {
        assert_true(i < 10000);
        (void)nanosleep(&tick, NULL);
    }
}

static bool is_down(struct nats *n)
{
    return !nats_is_up(n);
}

static bool has_said(struct nats *n)
{
    return nats_error(n, NATS_TIMEOUT, 0, "w", &err) == BT_UNAUTHORIZED;
}

static void a_failure_is_said_with_what_the_server_said_before(void **state)
{
    static const char refusal[] = "-ERR 'Permissions Violation for Publish to \"x\"'\r\n";
    struct options opt = {.servers_n = 1};
    struct server s;
    struct nats *n = NULL;

    (void)state;
    start_server(&s);
    opt.servers[0] = s.url;
    assert_int_equal(nats_open(&opt, &n, &err), BT_OK);
    assert_true(nats_is_up(n) && !nats_is_closed(n) && nats_connection(n) != NULL);
    assert_int_equal(nats_error(n, NATS_TIMEOUT, 0, "w", &err), BT_UNAVAILABLE);
    says("w: Timeout");
    assert_int_equal(write(s.has, refusal, sizeof refusal - 1), sizeof refusal - 1);
    until(has_said, n);
    says("w: ");
    says("Permissions Violation for Publish to");
    assert_int_equal(nats_error(n, NATS_NO_RESPONDERS, 0, "w", &err), BT_UNAUTHORIZED);
    assert_int_equal(nats_error(n, NATS_INVALID_ARG, 0, "w", &err), BT_UNAVAILABLE);
    says("w: Invalid Argument");
    assert_int_equal(nats_error(n, NATS_TIMEOUT, JSStreamSealedErr, "w", &err), BT_CONFLICT);
    end_server(&s);
    until(is_down, n);
    assert_int_equal(nats_error(n, NATS_INVALID_ARG, 0, "w", &err), BT_UNAVAILABLE);
    assert_string_equal(err.msg, "w: the connection to the server is lost");
    assert_int_equal(nats_error(n, NATS_ERR, JSStreamSealedErr, "w", &err), BT_CONFLICT);
    nats_free(n);
}

static void a_server_that_cannot_be_trusted_is_not_used(void **state)
{
    struct options opt = {.servers_n = 1, .tls = true, .name = "main"};
    struct server s;
    struct nats *n = NULL;

    (void)state;
    if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) != 0) {
        print_message("SKIP: this system has no list of authorities\n");
        return;
    }
    refuses = NULL;
    start_server(&s);
    opt.servers[0] = s.url;
    assert_int_equal(nats_open(&opt, &n, &err), BT_UNAUTHORIZED); /* it has no TLS */
    says("the server at nats://127.0.0.1:");
    end_server(&s);
    refuses = "SetSecure";
    opt.servers[0] = "nats://127.0.0.1:1";
    assert_int_equal(nats_open(&opt, &n, &err), BT_INVALID);
    assert_null(n);
    refuses = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_failure_is_said_by_what_can_be_done),
        TEST(without_a_server_the_address_is_named),
        TEST(a_file_with_a_secret_is_its_owners),
        TEST(a_file_of_the_service_manager_may_be_of_any_mode),
        TEST(of_tls_each_file_is_named),
        TEST(a_connection_is_made_with_what_it_needs_or_not_at_all),
        TEST(a_proof_is_the_first_line_of_its_file),
        TEST(a_server_that_cannot_be_trusted_is_not_used),
        TEST(a_failure_is_said_with_what_the_server_said_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* MCP over stdin and stdout: which gateway it talks to, what it sends for each line, and what it
 * prints. curl is the test's; each test is a process of its own, because the room keeps its session
 * as long as the process. */
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/client/listener.h"
#include "protocol/client/state.h"
#include "supervisor/gateway/mcp/mcp_internal.h"
#include "supervisor/gateway/mcp/stdio.h"
#include "tests/support/cmocka.h"

enum { TEXT = 16384, ANSWERS_MAX = 80, LOOK_MS = 20, START_MS = 15000, CHILD = 4242 };

/* What comes for a request whose body has `of` in it; the first that fits. */
struct said {
    const char *of;
    const char *headers; /* lines */
    const char *parts[3];
    long status;
    CURLcode code;
    const char *why;
};

static struct {
    char dir[64];
    pthread_mutex_t lock;
    const struct said *said;
    char asked[TEXT]; /* "URL headers body\n" */
    uint32_t requests, busy, most, closed;
    bool blocks; /* requests end when 64 are out, or no more come */
    bool trusts, of_us;
    uint64_t now;
    pid_t forks; /* what fork returns; 0 = it is not called */
    uint32_t looks, comes_at;
    enum bt_code code;
    struct bt_error err;
    char *out;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- curl ---- */

struct easy {
    const char *url, *body;
    char *why;
    curl_off_t len;
    struct curl_slist *headers;
    curl_write_callback on_bytes, on_header;
    void *bytes_self, *header_self;
    int (*check)(void *self, char *peer, char *own, int peer_port, int own_port);
    void *check_self;
    const char *proxy;
    long status, quiet;
};

CURL *__wrap_curl_easy_init(void);
CURLcode __wrap_curl_easy_setopt(CURL *curl, CURLoption option, ...);
CURLcode __wrap_curl_easy_perform(CURL *curl);
CURLcode __wrap_curl_easy_getinfo(CURL *curl, CURLINFO info, ...);
void __wrap_curl_easy_cleanup(CURL *curl);

CURL *__wrap_curl_easy_init(void)
{
    struct easy *e = calloc(1, sizeof *e);

    assert_non_null(e);
    return (CURL *)e;
}

CURLcode __wrap_curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    struct easy *e = (struct easy *)curl;
    va_list args;

    va_start(args, option);
    switch ((int)option) {
    case CURLOPT_URL:
        e->url = va_arg(args, const char *);
        break;
    case CURLOPT_NOSIGNAL:
        e->quiet = va_arg(args, long);
        break;
    case CURLOPT_PROXY:
        e->proxy = va_arg(args, const char *);
        break;
    case CURLOPT_PREREQFUNCTION:
        e->check = va_arg(args, int (*)(void *, char *, char *, int, int));
        break;
    case CURLOPT_PREREQDATA:
        e->check_self = va_arg(args, void *);
        break;
    case CURLOPT_POSTFIELDS:
        e->body = va_arg(args, const char *);
        break;
    case CURLOPT_POSTFIELDSIZE_LARGE:
        e->len = va_arg(args, curl_off_t);
        break;
    case CURLOPT_HTTPHEADER:
        e->headers = va_arg(args, struct curl_slist *);
        break;
    case CURLOPT_WRITEFUNCTION:
        e->on_bytes = va_arg(args, curl_write_callback);
        break;
    case CURLOPT_WRITEDATA:
        e->bytes_self = va_arg(args, void *);
        break;
    case CURLOPT_HEADERFUNCTION:
        e->on_header = va_arg(args, curl_write_callback);
        break;
    case CURLOPT_HEADERDATA:
        e->header_self = va_arg(args, void *);
        break;
    case CURLOPT_ERRORBUFFER:
        e->why = va_arg(args, char *);
        break;
    default:
        fail_msg("option %d", (int)option);
    }
    va_end(args);
    return CURLE_OK;
}

static void write_asked(const struct easy *e)
{
    size_t n = strlen(world.asked);

    n += (size_t)snprintf(world.asked + n, sizeof world.asked - n, "%s", e->url);
    for (const struct curl_slist *h = e->headers; h != NULL; h = h->next) {
        n += (size_t)snprintf(world.asked + n, sizeof world.asked - n, "|%s", h->data);
    }
    n += (size_t)snprintf(world.asked + n, sizeof world.asked - n, " %.*s\n", (int)e->len, e->body);
    assert_true(n < sizeof world.asked);
}

static CURLcode speak(struct easy *e, const struct said *s)
{
    char line[256];

    for (const char *at = s->headers; at != NULL && *at != 0;) {
        const size_t n = strcspn(at, "\n") + (strchr(at, '\n') != NULL);
        memcpy(line, at, n);
        assert_int_equal(e->on_header(line, 1, n, e->header_self), n);
        at += n;
    }
    for (size_t i = 0; i < 3 && s->parts[i] != NULL; i++) {
        char *copy = strdup(s->parts[i]);
        assert_int_equal(e->on_bytes(copy, 1, strlen(copy), e->bytes_self), strlen(copy));
        free(copy);
    }
    e->status = s->status;
    if (s->why != NULL) {
        (void)snprintf(e->why, CURL_ERROR_SIZE, "%s", s->why);
    }
    return s->code;
}

CURLcode __wrap_curl_easy_perform(CURL *curl)
{
    struct easy *e = (struct easy *)curl;
    char peer[] = "127.0.0.1", own[] = "127.0.0.1";
    const struct said *s = world.said;
    const struct timespec tick = {.tv_nsec = 1000000};

    assert_int_equal(e->quiet, 1);
    assert_string_equal(e->proxy, "");
    if (e->check(e->check_self, peer, own, 80, 5000) != CURL_PREREQFUNC_OK) {
        return CURLE_ABORTED_BY_CALLBACK;
    }
    (void)pthread_mutex_lock(&world.lock);
    world.requests++;
    world.busy++;
    world.most = world.busy > world.most ? world.busy : world.most;
    if (!world.blocks) {
        write_asked(e);
    }
    (void)pthread_mutex_unlock(&world.lock);
    while (s->of != NULL && memmem(e->body, (size_t)e->len, s->of, strlen(s->of)) == NULL) {
        s++;
    }
    for (int i = 0; world.blocks && i < 200; i++) { /* the others come meanwhile */
        struct timespec left;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &tick, &left);
    }
    (void)pthread_mutex_lock(&world.lock);
    world.busy--;
    (void)pthread_mutex_unlock(&world.lock);
    return speak(e, s);
}

CURLcode __wrap_curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
    va_list args;

    assert_int_equal(info, CURLINFO_RESPONSE_CODE);
    va_start(args, info);
    *va_arg(args, long *) = ((struct easy *)curl)->status;
    va_end(args);
    return CURLE_OK;
}

void __wrap_curl_easy_cleanup(CURL *curl)
{
    free(curl);
}

/* ---- the system ---- */

msec __wrap_clock_mono_ms(void);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);

msec __wrap_clock_mono_ms(void)
{
    return world.now;
}

pid_t __wrap_fork(void)
{
    assert_true(world.forks != 0);
    return world.forks;
}

static void write_address(const char *url, const char *pid)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/gateway.json", world.dir);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f, "{\"url\":%s,\"pid\":%s}", url, pid);
    (void)fclose(f);
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    assert_null(left);
    assert_int_equal(t->tv_sec, 0);
    assert_int_equal(t->tv_nsec, LOOK_MS * 1000000L);
    world.now += LOOK_MS;
    if (++world.looks == world.comes_at) {
        write_address("\"http://127.0.0.1:99\"", "4242");
    }
    return 0;
}

bool listener_is_ours(const char *dir, const char *url)
{
    assert_string_equal(dir, world.dir);
    assert_non_null(strstr(url, "/mcp"));
    return world.of_us;
}

bool listener_peer_is_ours(const char *dir, const char *peer, uint16_t port, const char *own,
                           uint16_t own_port)
{
    assert_string_equal(dir, world.dir);
    assert_string_equal(peer, "127.0.0.1");
    assert_string_equal(own, "127.0.0.1");
    assert_int_equal(port, 80);
    assert_int_equal(own_port, 5000);
    return world.trusts;
}

void mcp_error(struct buf *out, struct doc id, int code, struct str message)
{
    buf_printf(out, "error %llu %d %.*s", (unsigned long long)doc_head(id).u, code,
               STR_ARG(message));
}

/* ---- the tests ---- */

static void run(const char *lines)
{
    FILE *const in = stdin;
    FILE *const out = stdout;
    size_t n = 0;

    world.asked[0] = 0;
    free(world.out);
    stdin = lines[0] != 0 ? fmemopen((void *)(uintptr_t)lines, strlen(lines), "r")
                          : fopen("/dev/null", "r");
    stdout = open_memstream(&world.out, &n);
    world.code = mcp_stdio(world.dir, &world.err);
    (void)fclose(stdin);
    (void)fclose(stdout);
    stdin = in;
    stdout = out;
}

static void printed(const char *want)
{
    if (world.code != BT_OK || strcmp(world.out, want) != 0) {
        fail_msg("%s; printed:\n%s", world.code == BT_OK ? "" : world.err.msg, world.out);
    }
}

static void set_up(void)
{
    struct bt_error err;
    char token[STATE_TOKEN_LEN + 1];

    (void)snprintf(world.dir, sizeof world.dir, "/tmp/baton-stdio-XXXXXX");
    assert_non_null(mkdtemp(world.dir));
    assert_int_equal(state_token_make(world.dir, token, &err), BT_OK);
    write_address("\"http://127.0.0.1:88\"", "1");
    world.trusts = world.of_us = true;
    world.now = 1000;
}

static void tear_down(void)
{
    static const char *const FILES[] = {"gateway.json", "token"};
    char path[128];

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", world.dir, FILES[i]);
        (void)unlink(path);
    }
    (void)rmdir(world.dir);
    free(world.out);
    world.out = NULL;
}

/* In a process of its own. */
static void apart(void (*test)(void))
{
    const pid_t pid = __real_fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        const struct CMUnitTest one[] = {
            {"apart", (CMUnitTestFunction)(void (*)(void))test, NULL, NULL, NULL}};
        int failed;
        set_up();
        failed = cmocka_run_group_tests(one, NULL, NULL);
        tear_down();
        (void)fflush(NULL);
        _exit(failed);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define ALONE(name)                                                                                \
    static void in_##name(void);                                                                   \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        apart(in_##name);                                                                          \
    }                                                                                              \
    static void in_##name(void)

ALONE(each_line_is_a_request_and_its_answer_a_line)
{
    static const struct said SAID[] = {
        {"\"id\":1", "", {"{\"jsonrpc\":", "\"2.0\"}"}, 200, CURLE_OK, NULL},
        {NULL, "", {NULL}, 202, CURLE_OK, NULL}};
    char token[STATE_TOKEN_LEN + 1];
    char want[512];

    world.said = SAID;
    run("{\"id\":1}\r\n\n\r\n{\"id\":2}");
    printed("{\"jsonrpc\":\"2.0\"}\n");
    assert_int_equal(state_token_read(world.dir, token, &world.err), BT_OK);
    (void)snprintf(want, sizeof want,
                   "http://127.0.0.1:88/mcp|Authorization: Bearer %s|Content-Type: "
                   "application/json|Accept: application/json, text/event-stream {\"id\":1}\n",
                   token);
    assert_non_null(strstr(world.asked, want));
    assert_int_equal(world.requests, 2);
}

ALONE(the_handshake_comes_first_and_its_session_goes_with_what_follows)
{
    static const struct said SAID[] = {
        {"\"initialize\"",
         "HTTP/1.1 200 OK\r\nmcp-session-id: s-1\r\n",
         {"{\"jsonrpc\":\"2.0\",\"result\":{\"protocolVersion\":\"2025-11-25\"}}"},
         200,
         CURLE_OK,
         NULL},
        {NULL, "Mcp-Session-Id: other\r\n", {"{\"jsonrpc\":\"2.0\"}"}, 200, CURLE_OK, NULL}};
    const char *second;

    world.said = SAID;
    run("{\"id\":1,\"method\":\"initialize\"}\n{\"id\":2}\n{\"id\":3}\n");
    assert_int_equal(world.code, BT_OK);
    second = strchr(world.asked, '\n');
    assert_null(memmem(world.asked, (size_t)(second - world.asked), "session", 7));
    assert_null(strstr(world.asked, "other"));
    for (int i = 0; i < 2; i++) {
        second = strstr(second + 1, "|mcp-session-id: s-1|MCP-Protocol-Version: 2025-11-25 {");
        assert_non_null(second);
    }
}

ALONE(a_version_has_less_than_32_bytes)
{
    static const struct said SAID[] = {
        {"\"id\":1",
         "",
         {"{\"jsonrpc\":1,\"result\":{\"protocolVersion\":\"1234567890123456789012345678901\"}}"},
         200,
         CURLE_OK,
         NULL},
        {"\"id\":3",
         "",
         {"{\"jsonrpc\":1,\"result\":{\"protocolVersion\":\"12345678901234567890123456789012\"}}"},
         200,
         CURLE_OK,
         NULL},
        {"\"id\":4",
         "",
         {"{\"jsonrpc\":1,\"result\":{\"protocolVersion\":\"\"}}"},
         200,
         CURLE_OK,
         NULL},
        {"\"id\":5", "", {"{\"jsonrpc\""}, 200, CURLE_OK, NULL},
        {NULL, "", {NULL}, 202, CURLE_OK, NULL}};

    world.said = SAID;
    run("{\"id\":1,\"m\":\"initialize\"}\n{\"id\":3,\"m\":\"initialize\"}\n"
        "{\"id\":4,\"m\":\"initialize\"}\n{\"id\":5,\"m\":\"initialize\"}\n{\"id\":2}\n");
    assert_non_null(
        strstr(world.asked, "|MCP-Protocol-Version: 1234567890123456789012345678901 {\"id\":2}"));
}

ALONE(events_are_printed_as_they_come)
{
    static const struct said SAID[] = {
        {NULL,
         "content-type: text/event-stream; x\r\n",
         {"event: message\ndata: {\"a\"", ":1}\n\ndata: {\"b\":2}\nda",
          "ta: {\"c\":3}\ndata: \ndata: {\"d\""},
         200,
         CURLE_OK,
         NULL}};

    world.said = SAID;
    run("{\"id\":1}\n");
    printed("{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
}

ALONE(who_waits_for_an_answer_gets_one)
{
    static const struct said SAID[] = {
        {"\"id\":1", "", {"no route"}, 404, CURLE_OK, NULL},
        {"\"id\":2", "", {NULL}, 0, CURLE_COULDNT_CONNECT, "refused"},
        {"\"id\":3", "", {"{\"code\":\"BUSY\"}"}, 300, CURLE_OK, NULL},
        {"\"id\":4", "", {"ok"}, 299, CURLE_OK, NULL},              /* nothing to say */
        {"\"id\":5", "", {"[\"jsonrpc\"]"}, 200, CURLE_OK, NULL},   /* no message */
        {"\"id\":6", "", {"{\"jsonrpc\":6}"}, 404, CURLE_OK, NULL}, /* it is an answer */
        {NULL, "", {NULL}, 500, CURLE_OK, NULL}};
    static const char *const WANT[] = {"error 1 -32603 no route\n", "error 2 -32603 refused\n",
                                       "error 3 -32603 {\"code\":\"BUSY\"}\n", "{\"jsonrpc\":6}\n"};
    size_t len = 0;

    world.said = SAID;
    run("{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n{\"id\":5}\n{\"id\":6}\n{\"note\":1}\n{"
        "\n");
    for (size_t i = 0; i < sizeof WANT / sizeof WANT[0]; i++) {
        assert_non_null(strstr(world.out, WANT[i]));
        len += strlen(WANT[i]);
    }
    assert_int_equal(strlen(world.out), len);
}

ALONE(nothing_is_sent_to_a_port_of_another_user)
{
    static const struct said SAID[] = {{NULL, "", {NULL}, 200, CURLE_OK, NULL}};

    world.said = SAID;
    world.trusts = false;
    run("{\"id\":1}\n");
    printed("error 1 -32603 http://127.0.0.1:88/mcp is of another user: nothing was sent to it\n");
    assert_int_equal(world.requests, 0);
}

ALONE(sixty_four_requests_are_out_at_once)
{
    static const struct said SAID[] = {{NULL, "", {"{\"jsonrpc\":1}"}, 200, CURLE_OK, NULL}};
    struct buf lines;

    buf_init(&lines, TEXT);
    for (int i = 0; i < 66; i++) {
        buf_printf(&lines, "{\"id\":%d}\n", i);
    }
    world.said = SAID;
    world.blocks = true;
    run(buf_cstr(&lines));
    buf_done(&lines);
    assert_int_equal(world.code, BT_OK);
    assert_int_equal(world.requests, 66);
    assert_int_equal(world.most, 64);
    assert_int_equal(world.busy, 0); /* all were waited for */
}

/* ---- which gateway ---- */

ALONE(a_gateway_that_runs_is_used)
{
    world.forks = 0;
    run("");
    printed("");
}

/* One of the test's own begins: its address is there at the third look. */
static void starts_one(void)
{
    world.forks = CHILD;
    world.comes_at = world.looks + 3;
    run("");
    printed("");
    assert_int_equal(world.looks, world.comes_at);
}

ALONE(without_one_it_starts_one_and_waits_for_its_address)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/gateway.json", world.dir);
    assert_int_equal(unlink(path), 0);
    starts_one();
    write_address("\"http://127.0.0.1:88\"", "99999999"); /* nobody */
    starts_one();
    write_address("\"\"", "1");
    starts_one();
    write_address("\"http://127.0.0.1:88\"", "0");
    starts_one();
    write_address("\"http://127.0.0.1:88\"", "\"1\"");
    starts_one();
    write_address("\"http://127.0.0.1:88\"", "1.5");
    starts_one();
    write_address("{", "1"); /* no JSON */
    starts_one();
    write_address("\"http://127.0.0.1:88\"", "1");
    world.of_us = false; /* another program has its port */
    starts_one();
}

ALONE(an_address_has_less_than_290_bytes)
{
    char url[320] = "\"http://";

    memset(url + 8, 'h', 290);
    (void)snprintf(url + 1 + 289, 2, "\"");
    write_address(url, "1");
    world.forks = 0; /* 289 */
    run("");
    printed("");
    memset(url + 8, 'h', 290);
    (void)snprintf(url + 1 + 290, 2, "\"");
    write_address(url, "1");
    starts_one();
}

ALONE(a_gateway_has_fifteen_seconds_to_begin)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/gateway.json", world.dir);
    assert_int_equal(unlink(path), 0);
    world.forks = CHILD;
    run("");
    assert_int_equal(world.code, BT_UNAVAILABLE);
    assert_non_null(strstr(world.err.msg, "no gateway could be started for /tmp/"));
    assert_int_equal(world.looks, START_MS / LOOK_MS);
    world.looks = 0;
    world.forks = -1;
    run("");
    assert_int_equal(world.code, BT_UNAVAILABLE);
    assert_int_equal(world.looks, 0);
}

ALONE(a_gateway_with_tls_is_left_to_the_client)
{
    write_address("\"https://127.0.0.1:88\"", "1");
    run("");
    assert_int_equal(world.code, BT_UNAVAILABLE);
    assert_non_null(strstr(world.err.msg,
                           "the gateway at https://127.0.0.1:88/mcp speaks TLS; clients of MCP "
                           "use it directly"));
}

ALONE(without_a_token_there_is_no_daemon)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/token", world.dir);
    assert_int_equal(unlink(path), 0);
    run("{\"id\":1}\n");
    assert_int_equal(world.code, BT_NOT_FOUND);
    assert_int_equal(world.requests, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_a_request_and_its_answer_a_line),
        cmocka_unit_test(the_handshake_comes_first_and_its_session_goes_with_what_follows),
        cmocka_unit_test(a_version_has_less_than_32_bytes),
        cmocka_unit_test(events_are_printed_as_they_come),
        cmocka_unit_test(who_waits_for_an_answer_gets_one),
        cmocka_unit_test(nothing_is_sent_to_a_port_of_another_user),
        cmocka_unit_test(sixty_four_requests_are_out_at_once),
        cmocka_unit_test(a_gateway_that_runs_is_used),
        cmocka_unit_test(without_one_it_starts_one_and_waits_for_its_address),
        cmocka_unit_test(an_address_has_less_than_290_bytes),
        cmocka_unit_test(a_gateway_has_fifteen_seconds_to_begin),
        cmocka_unit_test(a_gateway_with_tls_is_left_to_the_client),
        cmocka_unit_test(without_a_token_there_is_no_daemon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a call asks libcurl for, and what it makes of libcurl's word: the test is libcurl. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>

#include "agents/web/call_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/heap.h"

enum { OPTIONS_MAX = 64 };

static struct {
    int refused;   /* the number of the option that is refused, from 1; 0 = none */
    int no_memory; /* the number of the header that there is no memory for */
    bool no_handle, no_url;
    CURLcode result;
    const char *reason;     /* put into the buffer for it */
    const char *answers[8]; /* header lines of each answer, "|" between them */
    int performed;

    int n, headers;
    struct {
        CURLoption option;
        long number;
        void *object;
    } at[OPTIONS_MAX];
} libcurl;

static CURLcode on_option(CURLoption option, long number, void *object)
{
    libcurl.n++;
    if (libcurl.n == libcurl.refused) {
        return CURLE_UNKNOWN_OPTION;
    }
    assert_true(libcurl.n <= OPTIONS_MAX);
    libcurl.at[libcurl.n - 1].option = option;
    libcurl.at[libcurl.n - 1].number = number;
    libcurl.at[libcurl.n - 1].object = object;
    return CURLE_OK;
}

CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list args;
    CURLcode code;

    (void)easy;
    va_start(args, option);
    if (option < CURLOPTTYPE_OBJECTPOINT) {
        code = on_option(option, va_arg(args, long), NULL);
    } else if (option >= CURLOPTTYPE_OFF_T) {
        code = on_option(option, (long)va_arg(args, curl_off_t), NULL);
    } else {
        code = on_option(option, 0, va_arg(args, void *));
    }
    va_end(args);
    return code;
}

/* -1 when it was not asked for. */
static int asked(CURLoption option)
{
    for (int i = 0; i < libcurl.n; i++) {
        if (libcurl.at[i].option == option) {
            return i;
        }
    }
    return -1;
}

static void *object(CURLoption option)
{
    assert_true(asked(option) >= 0);
    return libcurl.at[asked(option)].object;
}

static long number(CURLoption option)
{
    assert_true(asked(option) >= 0);
    return libcurl.at[asked(option)].number;
}

CURLcode __wrap_curl_easy_perform(CURL *easy);
CURLcode __wrap_curl_easy_perform(CURL *easy)
{
    const char *lines = libcurl.answers[libcurl.performed++];
    size_t (*on_header)(char *, size_t, size_t, void *);

    (void)easy;
    *(void **)&on_header = object(CURLOPT_HEADERFUNCTION);
    while (lines != NULL && *lines != 0) {
        char line[256];
        const size_t n = strcspn(lines, "|");
        (void)snprintf(line, sizeof line, "%.*s\r\n", (int)n, lines);
        (void)on_header(line, 1, strlen(line), object(CURLOPT_HEADERDATA));
        lines += n + (lines[n] != 0 ? 1 : 0);
    }
    if (libcurl.reason != NULL) {
        (void)snprintf(object(CURLOPT_ERRORBUFFER), CURL_ERROR_SIZE, "%s", libcurl.reason);
    }
    return libcurl.result;
}

CURL *__real_curl_easy_init(void);
CURL *__wrap_curl_easy_init(void);
CURL *__wrap_curl_easy_init(void)
{
    return libcurl.no_handle ? NULL : __real_curl_easy_init();
}

CURLU *__real_curl_url(void);
CURLU *__wrap_curl_url(void);
CURLU *__wrap_curl_url(void)
{
    return libcurl.no_url ? NULL : __real_curl_url();
}

struct curl_slist *__real_curl_slist_append(struct curl_slist *list, const char *line);
struct curl_slist *__wrap_curl_slist_append(struct curl_slist *list, const char *line);
struct curl_slist *__wrap_curl_slist_append(struct curl_slist *list, const char *line)
{
    return ++libcurl.headers == libcurl.no_memory ? NULL : __real_curl_slist_append(list, line);
}

/* ---- calls ---- */

static const char *const HOSTS[] = {"127.0.0.1", "own.example", NULL};
static const struct web_policy POLICY = {.hosts = HOSTS, .ca_file = "/etc/my.pem"};
static const char *const HEADERS[] = {"X-A: 1", "X-B: 2", NULL};
static const char *const SECRET[] = {"Authorization: s", NULL};
static const struct web_request POST = {.method = "POST",
                                        .url = "https://own.example/a",
                                        .headers = HEADERS,
                                        .secret_headers = SECRET,
                                        .body = {"12345", 5},
                                        .timeout_ms = 60000,
                                        .max_bytes = 100};
static struct web_response r;
static struct bt_error err;

static int begin(void **state)
{
    (void)state;
    memset(&libcurl, 0, sizeof libcurl);
    libcurl.answers[0] = "HTTP/1.1 200 OK";
    return 0;
}

static int end(void **state)
{
    (void)state;
    web_response_done(&r);
    return 0;
}

static enum bt_code call(const struct web_request *request)
{
    web_response_done(&r);
    libcurl.n = libcurl.headers = libcurl.performed = 0;
    err = (struct bt_error){.msg = ""};
    return web_call(&POLICY, request, &r, &err);
}

static void says(const char *part)
{
    if (strstr(err.msg, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    }
}

static void libcurl_is_told_what_it_must_not_do_by_itself(void **state)
{
    (void)state;
    assert_int_equal(call(&POST), BT_OK);
    assert_int_equal(number(CURLOPT_FOLLOWLOCATION), 0);
    assert_int_equal(number(CURLOPT_NOSIGNAL), 1); /* threads call at the same time */
    assert_string_equal(object(CURLOPT_PROXY), "");
    assert_string_equal(object(CURLOPT_PROTOCOLS_STR), "http,https");
    assert_int_equal(number(CURLOPT_SSLVERSION), CURL_SSLVERSION_TLSv1_2);
    assert_int_equal(number(CURLOPT_CONNECTTIMEOUT_MS), 10000);
    assert_in_range(number(CURLOPT_TIMEOUT_MS), 50000, 60000);
    assert_int_equal(number(CURLOPT_NOPROGRESS), 0);
    assert_string_equal(object(CURLOPT_CAINFO), "/etc/my.pem");
    assert_string_equal(object(CURLOPT_ACCEPT_ENCODING), "gzip, deflate");
    assert_string_equal(object(CURLOPT_CUSTOMREQUEST), "POST");
    assert_int_equal(number(CURLOPT_POST), 1);
    assert_int_equal(number(CURLOPT_POSTFIELDSIZE_LARGE), 5);
    assert_int_equal(asked(CURLOPT_NOBODY), -1);
}

static void a_head_asks_for_no_body(void **state)
{
    struct web_request head = POST;

    (void)state;
    head.method = "HEAD";
    assert_int_equal(call(&head), BT_OK);
    assert_int_equal(number(CURLOPT_NOBODY), 1);
    assert_int_equal(asked(CURLOPT_POST), -1);
    assert_int_equal(asked(CURLOPT_CUSTOMREQUEST), -1);
}

/* An option that is left out could be the one that keeps a call within its bounds. */
static void a_call_without_one_of_its_options_is_none(void **state)
{
    struct web_request head = POST;
    const struct web_request *const both[] = {&POST, &head};

    (void)state;
    head.method = "HEAD";
    for (size_t i = 0; i < 2; i++) {
        int options;
        libcurl.refused = 0;
        assert_int_equal(call(both[i]), BT_OK);
        options = libcurl.n;
        assert_true(options > 20);
        for (int k = 1; k <= options; k++) {
            libcurl.refused = k;
            assert_int_equal(call(both[i]), BT_NOMEM);
            says("refused the options of a call");
            assert_int_equal(libcurl.performed, 0);
            assert_int_equal(libcurl.n, k);
        }
    }
}

static void without_memory_nothing_is_sent(void **state)
{
    (void)state;
    for (int k = 1; k <= 4; k++) { /* Expect, two headers, a secret one */
        libcurl.no_memory = k;
        assert_int_equal(call(&POST), BT_NOMEM);
        assert_int_equal(libcurl.performed, 0);
        assert_int_equal(libcurl.headers, k);
    }
    libcurl.no_memory = 5;
    assert_int_equal(call(&POST), BT_OK);
    libcurl.no_handle = true;
    assert_int_equal(call(&POST), BT_NOMEM);
    assert_int_equal(libcurl.performed, 0);
    libcurl.no_url = true;
    assert_int_equal(call(&POST), BT_NOMEM);
    says("out of memory for an address");
    assert_int_equal(web_resolve("https://a/", "b", (char[WEB_URL_MAX]){""}, &err), BT_INVALID);
    assert_false(web_same_origin("https://a/", "https://a/"));
}

static void each_word_of_libcurl_has_its_code(void **state)
{
    static const struct {
        CURLcode result;
        const char *reason;
        enum bt_code code;
        const char *says;
    } cases[] = {
        {CURLE_OPERATION_TIMEDOUT, "slow", BT_TIMEOUT, "no complete answer within 60000 ms: slow"},
        {CURLE_OUT_OF_MEMORY, "full", BT_NOMEM, "out of memory for a call"},
        {CURLE_URL_MALFORMAT, "bad", BT_INVALID, "bad"},
        {CURLE_UNSUPPORTED_PROTOCOL, "old", BT_INVALID, "old"},
        {CURLE_PEER_FAILED_VERIFICATION, "self-signed", BT_INVALID,
         "the server's certificate is refused: self-signed; caFile names an authority"},
        {CURLE_SSL_CACERT_BADFILE, "no file", BT_INVALID, "caFile cannot be read: no file"},
        {CURLE_COULDNT_CONNECT, "nobody", BT_UNAVAILABLE, "nobody"},
        {CURLE_RECV_ERROR, "cut", BT_UNAVAILABLE, "cut"},
        {CURLE_COULDNT_RESOLVE_HOST, NULL, BT_UNAVAILABLE, "resolve host"}, /* its own words */
    };

    (void)state;
    libcurl.answers[0] = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        libcurl.result = cases[i].result;
        libcurl.reason = cases[i].reason;
        assert_int_equal(call(&POST), cases[i].code);
        says(cases[i].says);
        assert_int_equal(libcurl.performed, 1);
    }
}

static void no_way_leads_from_https_to_http(void **state)
{
    (void)state;
    libcurl.answers[0] = "HTTP/1.1 307 x|Location: http://127.0.0.1/";
    assert_int_equal(call(&POST), BT_INVALID);
    says("redirect to http://127.0.0.1/: expected an https address, not http after https");
    assert_int_equal(libcurl.performed, 1);
    libcurl.answers[0] = "HTTP/1.1 307 x|Location: https://127.0.0.1/";
    libcurl.answers[1] = "HTTP/1.1 200 OK";
    assert_int_equal(call(&POST), BT_OK);
    assert_int_equal(libcurl.performed, 2);
    assert_string_equal(r.url, "https://127.0.0.1/");
}

static void lines_that_are_no_headers_are_none(void **state)
{
    (void)state;
    libcurl.answers[0] = "HTTP/1.1 200 OK|no colon|: no name|a: 1|HTTP/";
    assert_int_equal(call(&POST), BT_OK);
    assert_string_equal(buf_cstr(&r.headers), ""); /* the last line is an answer of its own */
    assert_int_equal(r.status, 0);
    libcurl.answers[0] = "HTTP/1.1 999|no colon|: no name|b:2|HTTP:3";
    assert_int_equal(call(&POST), BT_OK);
    assert_string_equal(buf_cstr(&r.headers), "b: 2\nhttp: 3\n");
    assert_int_equal(r.status, 999);
    libcurl.answers[0] = "HTTP/1.1 1000 x";
    assert_int_equal(call(&POST), BT_OK);
    assert_int_equal(r.status, 0);
}

/* The sockets of a call are those of its policy, and no child gets them. */
static void a_socket_is_made_for_addresses_that_may_be_called(void **state)
{
    static const char *const local[] = {"127.0.0.1", NULL};
    static const struct web_policy policy = {.hosts = HOSTS, .addresses = local};
    struct exchange x = {.policy = &policy};
    curl_socket_t (*on_socket)(void *, curlsocktype, struct curl_sockaddr *);
    struct curl_sockaddr at = {
        .family = AF_INET, .socktype = SOCK_STREAM, .addrlen = sizeof at.addr};
    int fd;

    (void)state;
    assert_int_equal(call(&POST), BT_OK);
    *(void **)&on_socket = object(CURLOPT_OPENSOCKETFUNCTION);
    at.addr = (struct sockaddr){.sa_family = AF_INET, .sa_data = {0, 80, 127, 0, 0, 1}};
    fd = on_socket(&x, CURLSOCKTYPE_IPCXN, &at);
    assert_true(fd >= 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    (void)close(fd);
    at.addr.sa_data[5] = 2;
    assert_int_equal(on_socket(&x, CURLSOCKTYPE_IPCXN, &at), CURL_SOCKET_BAD);
    assert_int_equal(x.end, WEB_REFUSED);
}

static void call_twice(void *self)
{
    (void)self;
    libcurl.answers[0] = "HTTP/1.1 307 x|Location: https://127.0.0.1/";
    libcurl.answers[1] = "HTTP/1.1 200 OK|a: b";
    assert_int_equal(call(&POST), BT_OK);
    web_response_done(&r);
}

static void a_call_is_given_back(void **state)
{
    (void)state;
    heap_is_given_back(call_twice, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(libcurl_is_told_what_it_must_not_do_by_itself),
        TEST(a_head_asks_for_no_body),
        TEST(a_call_without_one_of_its_options_is_none),
        TEST(without_memory_nothing_is_sent),
        TEST(each_word_of_libcurl_has_its_code),
        TEST(no_way_leads_from_https_to_http),
        TEST(lines_that_are_no_headers_are_none),
        TEST(a_socket_is_made_for_addresses_that_may_be_called),
        TEST(a_call_is_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

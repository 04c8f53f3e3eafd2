/* A thread for each request that is out, because one may run for hours and others overtake it. */
#include "supervisor/gateway/mcp/stdio.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/listener.h"
#include "protocol/client/state.h"
#include "supervisor/gateway/address.h"
#include "supervisor/gateway/mcp/mcp_internal.h"

enum { OUT_AT_ONCE = 64, START_MS = 15000, LOOK_MS = 20, STATE_FILE_MAX = 4096 };

struct bridge {
    const char *dir; /* the state directory */
    char url[300];
    char auth[STATE_TOKEN_LEN + 64];
    pthread_mutex_t lock; /* of what follows, and of stdout */
    pthread_cond_t less;
    uint32_t out;
    char session[80], version[80]; /* whole headers; "" = none yet */
};

struct message {
    struct bridge *b;
    char *line;
    size_t len;
    struct buf answer; /* what is not printed yet */
    bool is_stream;
    bool is_first; /* initialize */
    bool printed;
};

/* ---- one message ---- */

static void print_line(struct message *m, struct str line)
{
    (void)pthread_mutex_lock(&m->b->lock);
    (void)fwrite(line.ptr, 1, line.len, stdout);
    (void)fputc('\n', stdout);
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&m->b->lock);
    m->printed = true;
}

/* Whole lines of a stream: "data: {...}". */
static void print_stream(struct message *m)
{
    static const char data[] = "data: ";
    const uint8_t *end;
    size_t from = 0;

    while (from < m->answer.len &&
           (end = memchr(m->answer.at + from, '\n', m->answer.len - from)) != NULL) {
        const struct str line = {(const char *)m->answer.at + from,
                                 (size_t)(end - m->answer.at) - from};
        if (line.len >= sizeof data && memcmp(line.ptr, data, sizeof data - 1) == 0) {
            print_line(m, (struct str){line.ptr + sizeof data - 1, line.len - sizeof data + 1});
        }
        from += line.len + 1;
    }
    memmove(m->answer.at, m->answer.at + from, m->answer.len - from);
    buf_truncate(&m->answer, m->answer.len - from);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *self)
{
    struct message *m = self;

    buf_add(&m->answer, bytes, size * n);
    if (m->is_stream && m->answer.len > 0) {
        print_stream(m);
    }
    return buf_check(&m->answer, NULL) == BT_OK ? size * n : 0;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *self)
{
    static const char session[] = "Mcp-Session-Id:";
    static const char type[] = "Content-Type: text/event-stream";
    struct message *m = self;
    size_t len = size * n;

    if (len >= sizeof type - 1 && strncasecmp(bytes, type, sizeof type - 1) == 0) {
        m->is_stream = true;
    }
    if (m->is_first && len >= sizeof session - 1 &&
        strncasecmp(bytes, session, sizeof session - 1) == 0) {
        while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r')) {
            len--;
        }
        (void)snprintf(m->b->session, sizeof m->b->session, "%.*s", (int)len, bytes);
    }
    return size * n;
}

/* Who waits for an answer gets one. */
static void print_failure(struct message *m, const char *why)
{
    struct buf doc;
    struct buf line;
    struct doc id = {.ptr = NULL};

    buf_init(&doc, json_doc_capacity(m->len));
    buf_init(&line, 64 * 1024);
    if (json_to_doc((struct str){m->line, m->len}, NULL, &doc, NULL) == BT_OK) {
        id = doc_get(doc_from_buf(&doc), STR_LIT("id"));
    }
    if (id.ptr != NULL) {
        mcp_error(&line, id, RPC_INTERNAL, str_from(why));
        print_line(m, buf_str(&line));
    } else {
        log_warn("mcp.stdio", "%s", why);
    }
    buf_done(&doc);
    buf_done(&line);
}

static void note_version(struct message *m)
{
    struct buf doc;
    struct str version;

    buf_init(&doc, json_doc_capacity(m->answer.len));
    if (json_to_doc(buf_str(&m->answer), NULL, &doc, NULL) == BT_OK) {
        version = doc_string(doc_path(doc_from_buf(&doc), STR_LIT("result.protocolVersion")));
        if (version.len > 0 && version.len < 32) {
            (void)snprintf(m->b->version, sizeof m->b->version, "MCP-Protocol-Version: %.*s",
                           (int)version.len, version.ptr);
        }
    }
    buf_done(&doc);
}

static struct curl_slist *headers_of(const struct bridge *b)
{
    struct curl_slist *all = curl_slist_append(NULL, b->auth);

    all = curl_slist_append(all, "Content-Type: application/json");
    all = curl_slist_append(all, "Accept: application/json, text/event-stream");
    if (b->session[0] != 0) {
        all = curl_slist_append(all, b->session);
    }
    return b->version[0] != 0 ? curl_slist_append(all, b->version) : all;
}

/* Nothing is sent to who took the port of a gateway that is gone. */
static int check_peer(void *bridge, char *peer, char *own, int peer_port, int own_port)
{
    const struct bridge *b = bridge;

    return listener_peer_is_ours(b->dir, peer, (uint16_t)peer_port, own, (uint16_t)own_port)
               ? CURL_PREREQFUNC_OK
               : CURL_PREREQFUNC_ABORT;
}

static void pass_on(struct message *m)
{
    CURL *easy = curl_easy_init();
    struct curl_slist *headers = headers_of(m->b);
    char why[CURL_ERROR_SIZE] = "";
    CURLcode code = CURLE_OUT_OF_MEMORY;
    long status = 0;

    if (easy != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_URL, m->b->url);
        (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
        (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, check_peer);
        (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, m->b);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, m->line);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)m->len);
        (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, m);
        (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, m);
        (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
        code = curl_easy_perform(easy);
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_cleanup(easy);
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        (void)snprintf(why, sizeof why, "%s is of another user: nothing was sent to it", m->b->url);
    }
    curl_slist_free_all(headers);
    if (m->is_first) {
        note_version(m);
    }
    if (code == CURLE_OK && !m->is_stream && m->answer.len > 0 && m->answer.at[0] == '{' &&
        memmem(m->answer.at, m->answer.len, "\"jsonrpc\"", 9) != NULL) {
        print_line(m, buf_str(&m->answer));
    } else if (code != CURLE_OK || status >= 300) {
        print_failure(m, code != CURLE_OK ? why : buf_cstr(&m->answer));
    }
}

static void message_free(struct message *m)
{
    buf_done(&m->answer);
    free(m->line);
    free(m);
}

static void *message_run(void *self)
{
    struct message *m = self;
    struct bridge *b = m->b;

    pass_on(m);
    message_free(m);
    (void)pthread_mutex_lock(&b->lock);
    b->out--;
    (void)pthread_cond_broadcast(&b->less);
    (void)pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void wait_until_out(struct bridge *b, uint32_t most)
{
    (void)pthread_mutex_lock(&b->lock);
    while (b->out > most) {
        (void)pthread_cond_wait(&b->less, &b->lock);
    }
    (void)pthread_mutex_unlock(&b->lock);
}

static void take_line(struct bridge *b, const char *line, size_t len)
{
    struct message *m = calloc(1, sizeof *m);
    pthread_t thread;

    if (m == NULL || (m->line = strndup(line, len)) == NULL) {
        free(m);
        return;
    }
    m->b = b;
    m->len = len;
    m->is_first = memmem(line, len, "\"initialize\"", 12) != NULL;
    buf_init(&m->answer, 4 * LIMIT_STEP_BYTES);
    wait_until_out(b, OUT_AT_ONCE - 1);
    if (m->is_first) { /* what follows needs its session */
        pass_on(m);
        message_free(m);
        return;
    }
    (void)pthread_mutex_lock(&b->lock);
    b->out++;
    (void)pthread_mutex_unlock(&b->lock);
    if (pthread_create(&thread, NULL, message_run, m) == 0) {
        (void)pthread_detach(thread);
    } else {
        (void)message_run(m);
    }
}

/* ---- the gateway ---- */

/* Whether the state directory names one that runs; `pid` 0 = any. */
static bool read_address(const char *dir, pid_t pid, char url[300])
{
    char path[STATE_FILE_MAX + 32];
    char text[1024];
    struct buf doc;
    struct doc_head of;
    bool found = false;
    FILE *f;
    size_t n;

    (void)snprintf(path, sizeof path, "%s/" ADDRESS_FILE, dir);
    f = fopen(path, "r");
    if (f == NULL) {
        return false;
    }
    n = fread(text, 1, sizeof text, f);
    (void)fclose(f);
    buf_init(&doc, json_doc_capacity(sizeof text));
    if (json_to_doc((struct str){text, n}, NULL, &doc, NULL) == BT_OK) {
        const struct doc d = doc_from_buf(&doc);
        const struct str at = doc_string(doc_get(d, STR_LIT("url")));
        const struct doc number = doc_get(d, STR_LIT("pid"));
        of = number.ptr != NULL ? doc_head(number) : (struct doc_head){.kind = DOC_NIL};
        found = at.len > 0 && at.len < 290 && of.kind == DOC_UINT && of.u > 0 &&
                (pid != 0 ? of.u == (uint64_t)pid : kill((pid_t)of.u, 0) == 0);
        (void)snprintf(url, 300, "%.*s/mcp", (int)at.len, at.ptr);
    }
    buf_done(&doc);
    return found;
}

/* One of our own, which ends with us. */
static enum bt_code start_gateway(const char *dir, char url[300], struct bt_error *err)
{
    const struct timespec wait = {.tv_nsec = LOOK_MS * 1000000L};
    const msec until = clock_mono_ms() + START_MS;
    const pid_t parent = getpid();
    const pid_t pid = fork();

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == parent) {
            (void)dup2(STDERR_FILENO, STDOUT_FILENO);
            (void)execl("/proc/self/exe", "baton-gateway", "--state", dir, (char *)NULL);
        }
        _exit(1);
    }
    while (pid > 0 && clock_mono_ms() < until) {
        if (read_address(dir, pid, url)) {
            return BT_OK;
        }
        (void)nanosleep(&wait, NULL);
    }
    return err_set(err, BT_UNAVAILABLE, "no gateway could be started for %s", dir);
}

enum bt_code mcp_stdio(const char *state_dir, struct bt_error *err)
{
    static struct bridge b = {.lock = PTHREAD_MUTEX_INITIALIZER, .less = PTHREAD_COND_INITIALIZER};
    char token[STATE_TOKEN_LEN + 1];
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    enum bt_code code = state_token_read(state_dir, token, err);

    if (code == BT_OK && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        code = err_set(err, BT_NOMEM, "out of memory for HTTP");
    }
    b.dir = state_dir;
    if (code == BT_OK &&
        (!read_address(state_dir, 0, b.url) || !listener_is_ours(state_dir, b.url))) {
        code = start_gateway(state_dir, b.url, err);
    }
    if (code == BT_OK && strncmp(b.url, "http://", 7) != 0) {
        code = err_set(err, BT_UNAVAILABLE,
                       "the gateway at %s speaks TLS; clients of MCP use it directly", b.url);
    }
    if (code != BT_OK) {
        return code;
    }
    (void)snprintf(b.auth, sizeof b.auth, "Authorization: Bearer %s", token);
    explicit_bzero(token, sizeof token);
    while ((n = getline(&line, &cap, stdin)) > 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) {
            n--;
        }
        if (n > 0) {
            take_line(&b, line, (size_t)n);
        }
    }
    free(line);
    wait_until_out(&b, 0);
    return fflush(stdout) == 0 && !ferror(stdout)
               ? BT_OK
               : err_set(err, BT_IO, "the output could not be written");
}

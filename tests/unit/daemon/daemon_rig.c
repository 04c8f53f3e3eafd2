#include "tests/unit/daemon/daemon_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/entry.h"

enum { NOW = 1000000, WAITS_LIMIT = 2000, TOLD_MAX = 1 << 20, CASE_MS = 20000, ANSWERS_TOLD = 8 };

struct daemon_world dw;
static char *told; /* shared with the test */

void daemon_note(const char *fmt, ...)
{
    const size_t at = strlen(told);
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(told + at, TOLD_MAX - at - 2, fmt, args);
    va_end(args);
    told[strlen(told) + 1] = 0;
    told[strlen(told)] = '\n';
}

void daemon_forget(void)
{
    told[0] = 0;
}

void daemon_report(enum packet_type type, const char *instance, pid_t pid, int status)
{
    static struct packet p;

    p = (struct packet){.type = type, .instance = instance, .pid = pid, .status = status};
    rig_send(&p);
}

/* What the spawner was told to do. */
void daemon_orders(void)
{
    static const char *const names[] = {[PACKET_SHUTDOWN] = "shutdown",
                                        [PACKET_START] = "start",
                                        [PACKET_SIGNAL] = "signal",
                                        [PACKET_KILL_TREE] = "kill",
                                        [PACKET_REGISTERED] = "registered"};
    static uint8_t in[PACKET_BYTES + 1];
    static struct packet got;
    struct bt_error err;
    ssize_t n;

    while (rig.conn >= 0 && (n = recv(rig.conn, in, sizeof in, MSG_DONTWAIT)) > 0) {
        MUST(packet_decode(in, (size_t)n, &got, &err) == BT_OK);
        daemon_note("> %s %s%s", names[got.type], got.name,
                    got.type == PACKET_SIGNAL && got.status == SIGTERM ? "TERM" : "");
        if (!dw.is->lives && (got.type == PACKET_SIGNAL || got.type == PACKET_KILL_TREE)) {
            daemon_report(PACKET_EXITED, got.instance, 77, SIGTERM);
        }
        if (got.type == PACKET_START) {
            (void)snprintf(dw.instance, sizeof dw.instance, "%s", got.instance);
        }
    }
}

/* ---- its wait ---- */

void daemon_ask(const char *type, const char *fields)
{
    char bytes[4096];
    const struct str token = dw.d->opt->engine.token;

    (void)snprintf(bytes, sizeof bytes, "{'v':1,'type':'%s','id':'q','token':'%.*s'%s}", type,
                   STR_ARG(token), fields);
    for (char *at = bytes; *at != 0; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    fake_link_request(dw.d->link, false, ++dw.requests, bytes, strlen(bytes));
}

static void tell_value(const char *text, const char *key, char ret[64])
{
    const char *at = strstr(text, key);

    ret[0] = 0;
    if (at != NULL) {
        at += strlen(key);
        (void)snprintf(ret, 64, " %.*s", (int)strcspn(at, "\","), at);
    }
}

static void tell_answers(void)
{
    char type[64];
    char code[64];
    char why[64];

    if (fake_link_answers(dw.d->link) > dw.answers + ANSWERS_TOLD) {
        daemon_note("< %u answers", fake_link_answers(dw.d->link) - dw.answers);
        dw.answers = fake_link_answers(dw.d->link);
    }
    while (dw.answers < fake_link_answers(dw.d->link)) {
        const struct fake_answer *a = fake_link_answer(dw.d->link, dw.answers++);
        char *text = strndup((const char *)a->bytes.at, a->bytes.len);
        MUST(text != NULL);
        tell_value(text, "\"type\":\"", type);
        tell_value(text, "\"code\":\"", code);
        tell_value(text, "\"message\":\"", why);
        daemon_note("< answer to %llu:%s%s%s", (unsigned long long)a->request, type, code, why);
        if (strstr(text, "\"planId\":\"") != NULL) {
            tell_value(text, "\"planId\":\"", type);
            (void)snprintf(dw.plan, sizeof dw.plan, "%s", type + 1);
        }
        free(text);
    }
}

static void look_at(const struct pollfd *fds, int timeout)
{
    const int spawner =
        engine_is_stalled(dw.d->engine) && !dw.d->stop.asked ? -1 : spawn_fd(dw.d->spawn);
    const int want[WATCH_COUNT] = {link_fd(dw.d->link), spawner, dw.signals_fd, dw.credentials_fd};

    for (int i = 0; i < WATCH_COUNT; i++) {
        MUST(fds[i].fd == want[i] && fds[i].events == POLLIN && fds[i].revents == 0);
    }
    MUST(dw.d->silence.waited_from == dw.now);
    MUST(engine_hooks(dw.d->engine)->projections == api_projections(dw.d->api));
    if (dw.is->waits) {
        daemon_note("  wait %d", timeout);
    }
}

/* Its start is. */
static bool is_told(const struct daemon_case *is)
{
    return is->starts;
}

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    int ready;

    if (dw.is == NULL || dw.d == NULL || fds != dw.d->watch) {
        return __real_poll(fds, n, timeout);
    }
    MUST(n == WATCH_COUNT);
    if (dw.waits == 0 && !is_told(dw.is)) {
        daemon_forget();
    }
    daemon_orders();
    tell_answers();
    look_at(fds, timeout);
    if (++dw.waits > WAITS_LIMIT) {
        daemon_note("BROKEN: it does not end");
        _Exit(97);
    }
    if (dw.is->at != NULL) {
        dw.is->at(dw.waits);
    } else if (dw.waits == 1) {
        (void)raise(SIGTERM);
    }
    ready = __real_poll(fds, n, 0);
    dw.now += dw.late_ms + (ready != 0 ? 0 : timeout > 0 ? (msec)timeout : 1);
    dw.late_ms = 0;
    return ready;
}

/* ---- a case ---- */

static void write_config(const char *yaml, char ret[128])
{
    FILE *f;

    (void)snprintf(ret, 128, "%s/baton.yaml", rig.dir);
    f = fopen(ret, "we");
    assert_non_null(f);
    assert_true(fputs(yaml != NULL ? yaml : "", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(ret, 0600), 0);
}

static void run_child(const struct daemon_case *is)
{
    static char args[256];
    static char path[128];
    char config[128];
    char *words[16] = {(char *)(uintptr_t) "batond",
                       (char *)(uintptr_t) "--state",
                       rig.dir,
                       (char *)(uintptr_t) "--config",
                       config,
                       NULL};
    int n = 5;
    int code;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)fcntl(rig.listener, F_SETFL, O_NONBLOCK); /* who connects has connected */
    (void)clearenv();
    (void)setenv("HOME", rig.dir, 1);
    if (is->full != NULL) {
        (void)setenv(DAEMON_REPLACED, is->full, 1);
    }
    write_config(is->yaml, config);
    dw = (struct daemon_world){.is = is,
                               .now = NOW,
                               .room = -1,
                               .ready = {-1, -1},
                               .signals_fd = -1,
                               .credentials_fd = -1};
    (void)snprintf(args, sizeof args, "%s", is->args != NULL ? is->args : "");
    for (char *at = args, *end; *at != 0 && n < 15; at = end) {
        end = at + strcspn(at, " ");
        end += *end != 0 ? (*end = 0, 1) : 0;
        words[n] = at;
        if (strncmp(at, "DIR", 3) == 0) {
            (void)snprintf(path, sizeof path, "%s%s", rig.dir, at + 3);
            words[n] = path;
        }
        n++;
    }
    words[n] = NULL;
    if (is->before != NULL) {
        is->before();
    }
    log_setup(LOG_INFO, NULL, NULL);
    code = batond_entry(n, words);
    if (dw.d != NULL && dw.d->engine != NULL && dw.d->link != NULL) {
        daemon_orders();
        tell_answers();
    }
    daemon_note("= %d", code);
    _Exit(0);
}

/* Texts of this run, by what they are. */
static void add_masked(struct buf *out, const char *text)
{
    for (const char *at = text; *at != 0;) {
        if (strncmp(at, rig.dir, strlen(rig.dir)) == 0) {
            buf_add_cstr(out, "DIR");
            at += strlen(rig.dir);
        } else if (strspn(at, "0123456789ABCDEF-") == UUID_TEXT_LEN && at[8] == '-') {
            buf_add_cstr(out, "ID");
            at += UUID_TEXT_LEN;
        } else {
            buf_add_byte(out, (uint8_t)*at++);
        }
    }
}

/* It has no alarm: the daemon blocks that signal. */
static void end_in_time(pid_t pid)
{
    struct pollfd fd = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

    assert_true(fd.fd >= 0);
    if (__real_poll(&fd, 1, CASE_MS) == 0) {
        (void)kill(pid, SIGKILL);
    }
    (void)close(fd.fd);
}

void daemon_tell(const struct daemon_case *is, struct buf *out)
{
    int status = 0;
    pid_t pid;

    if (told == NULL) {
        told = mmap(NULL, TOLD_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(told != MAP_FAILED);
    }
    told[0] = 0;
    assert_int_equal(rig_open(NULL), 0);
    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        run_child(is);
    }
    end_in_time(pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    buf_printf(out, "## %s\n", is->title);
    add_masked(out, told);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        buf_printf(out, "BROKEN: status %x\n", (unsigned)status);
    }
    buf_add_cstr(out, "\n");
    rig.s = NULL;
    assert_int_equal(rig_close(NULL), 0);
}

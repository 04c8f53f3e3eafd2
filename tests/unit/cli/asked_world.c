#include "tests/unit/cli/asked_world.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "protocol/base/utf8.h"
#include "tests/support/cmocka.h"

enum { WAITS_MAX = 400 };

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_raise(int signal_number);
msec __wrap_clock_mono_ms(void);

static msec now_ms = WORLD_START_MS;
static FILE *told;
static world_next_fn next_happening;
static bool scripted;
static int master = -1, slave = -1;
static char streams[4];
static struct termios at_first;

void world_begin(FILE *asked, world_next_fn next, bool is_scripted)
{
    told = asked;
    next_happening = next;
    scripted = is_scripted;
}

bool world_is_scripted(void)
{
    return scripted;
}

msec world_ms(void)
{
    return now_ms;
}

msec __wrap_clock_mono_ms(void)
{
    return now_ms;
}

/* ---- what happens ---- */

static void send_signal(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"INT", SIGINT},   {"TERM", SIGTERM}, {"HUP", SIGHUP},
                   {"QUIT", SIGQUIT}, {"TSTP", SIGTSTP}, {"CONT", SIGCONT}};

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (strcmp(signals[i].name, name) == 0) {
            (void)fflush(told);
            (void)kill(getpid(), signals[i].number);
        }
    }
}

/* Turns "\r", "\n" and "\xNN" into bytes. */
static size_t unescape(const char *text, char *ret)
{
    size_t n = 0;

    while (*text != 0) {
        if (strncmp(text, "\\x", 2) == 0 && isxdigit((unsigned char)text[2]) &&
            isxdigit((unsigned char)text[3])) {
            const char digits[] = {text[2], text[3], 0};
            ret[n++] = (char)strtol(digits, NULL, 16);
            text += 4;
        } else if (strncmp(text, "\\r", 2) == 0 || strncmp(text, "\\n", 2) == 0) {
            ret[n++] = text[1] == 'r' ? '\r' : '\n';
            text += 2;
        } else {
            ret[n++] = *text++;
        }
    }
    return n;
}

/* The keys have arrived when it returns. */
static void type_keys(const char *text)
{
    struct pollfd arrived = {.fd = slave, .events = POLLIN};
    struct termios how = {0};
    char keys[4096];
    const size_t n = strlen(text) < sizeof keys ? unescape(text, keys) : 0;

    (void)tcgetattr(slave, &how);
    (void)fprintf(told, "> keys %s%s\n", (how.c_lflag & ICANON) != 0 ? "by line" : "one by one",
                  (how.c_lflag & ECHO) != 0 ? ", with echo" : "");
    if (write(master, keys, n) == (ssize_t)n) {
        (void)__real_poll(&arrived, 1, 2000);
    }
}

static void resize(int fd, const char *text)
{
    char *end = NULL;
    struct winsize size = {.ws_col = (unsigned short)strtoul(text, &end, 10)};

    size.ws_row = (unsigned short)strtoul(end + (*end == 'x'), NULL, 10);
    (void)ioctl(fd, TIOCSWINSZ, &size);
}

static void write_file(const char *line, const char *mode)
{
    const size_t n = strcspn(line, " ");
    const char *text = line + n + (line[n] != 0);
    const size_t len = strlen(text);
    const bool open_end = len >= 2 && strcmp(text + len - 2, "\\c") == 0;
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof path, "%.*s", (int)n, line);
    f = fopen(path, mode);
    if (f != NULL) {
        (void)fprintf(f, "%.*s%s", (int)(open_end ? len - 2 : len), text, open_end ? "" : "\n");
        (void)fclose(f);
    }
}

static void move_file(const char *line)
{
    const size_t n = strcspn(line, " ");
    char from[256];

    (void)snprintf(from, sizeof from, "%.*s", (int)n, line);
    if (strcmp(line + n, " -") == 0) {
        (void)unlink(from);
    } else {
        (void)rename(from, line + n + 1);
    }
}

void world_wait(uint64_t timeout_ms)
{
    const char *happening = next_happening();
    static uint64_t last_ms = 250;
    static int waits;

    if (scripted && timeout_ms != last_ms && timeout_ms > 0) {
        (void)fprintf(told, "> wait %llu\n", (unsigned long long)timeout_ms);
        last_ms = timeout_ms;
    }
    if (scripted && ++waits > WAITS_MAX) {
        (void)fprintf(told, "> waits for ever\n");
        (void)fflush(told);
        _exit(98);
    }
    if (happening == NULL || happening[0] == '-') {
        now_ms += timeout_ms;
    } else if (happening[0] == '+') {
        now_ms += strtoull(happening + 1, NULL, 10);
    } else if (strncmp(happening, "kill ", 5) == 0) {
        send_signal(happening + 5);
    } else if (strncmp(happening, "keys ", 5) == 0) {
        type_keys(happening + 5);
    } else if (strncmp(happening, "size ", 5) == 0) {
        resize(slave, happening + 5);
        (void)fflush(told);
        (void)kill(getpid(), SIGWINCH);
    } else if (strncmp(happening, "put ", 4) == 0) {
        write_file(happening + 4, "we");
    } else if (strncmp(happening, "add ", 4) == 0) {
        write_file(happening + 4, "ae");
    } else if (strncmp(happening, "move ", 5) == 0) {
        move_file(happening + 5);
    }
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    world_wait((uint64_t)wanted->tv_sec * 1000 + (uint64_t)wanted->tv_nsec / 1000000);
    return 0;
}

/* A process that stops itself goes on at once. */
int __wrap_raise(int signal_number)
{
    struct sigaction action;

    (void)sigaction(signal_number, NULL, &action);
    (void)fprintf(told, "> raise %d%s\n", signal_number,
                  action.sa_handler == SIG_DFL ? "" : ", which it catches");
    return 0;
}

/* ---- the terminal ---- */

void world_terminal_open(const char *text)
{
    const char *which = strchr(text, ' ');

    (void)snprintf(streams, sizeof streams, "%.3s", which != NULL ? which + 1 : "012");
    master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0);
    assert_true(grantpt(master) == 0 && unlockpt(master) == 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    resize(slave, text);
    assert_int_equal(tcgetattr(slave, &at_first), 0);
}

void world_terminal_take(void)
{
    for (const char *s = streams; slave >= 0 && *s != 0; s++) {
        (void)dup2(slave, *s - '0');
    }
}

static void put_byte(struct buf *out, unsigned char byte, unsigned char next, bool is_text)
{
    if (byte == 0x1b) {
        buf_add_cstr(out, "\\e");
    } else if (byte == '\r' && next == '\n') {
        return;
    } else if (byte == '\r') {
        buf_add_cstr(out, "\\r");
    } else if (byte < 0x20 || byte == 0x7f || !is_text) {
        buf_printf(out, "\\x%02x", byte);
    } else {
        buf_add_byte(out, byte);
    }
}

void world_terminal_read(struct buf *out)
{
    static unsigned char text[1 << 18];
    struct termios at_last;
    size_t n = 0;
    size_t whole = 0;
    ssize_t got = 0;

    if (master < 0) {
        return;
    }
    (void)close(slave);
    do {
        n += got > 0 ? (size_t)got : 0;
        got = read(master, text + n, sizeof text - 1 - n);
    } while (got > 0 || (got < 0 && errno == EINTR));
    text[n] = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || text[i - 1] == '\n') {
            buf_add_cstr(out, ": ");
        }
        if (i >= whole) { /* characters up to there */
            whole = i + utf8_prefix((const char *)text + i, n - i);
        }
        if (text[i] == '\n') {
            buf_add_byte(out, '\n');
        } else {
            put_byte(out, text[i], text[i + 1], i < whole);
        }
    }
    buf_add_cstr(out, n > 0 && text[n - 1] != '\n' ? "\\\n" : "");
    if (tcgetattr(master, &at_last) == 0 && at_last.c_lflag != at_first.c_lflag) {
        buf_add_cstr(out, ": (the terminal is left changed)\n");
    }
    (void)close(master);
    master = slave = -1;
}

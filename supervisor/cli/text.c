/* How things look: marks, colours, times, and text that cannot play tricks on a terminal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/limits.h"
#include "supervisor/cli/cli.h"
#include "supervisor/config/yaml.h"

static const struct {
    const char *status;
    const char *mark;
    const char *color;
} looks[] = {
    {"completed", "✓", "\033[32m"}, {"failed", "✗", "\033[31m"},    {"skipped", "-", "\033[33m"}, {"cancelled", "-", "\033[33m"},
    {"waiting", "?", "\033[35m"},   {"in_progress", "▸", "\033[36m"}, {"running", "▸", "\033[36m"}, {"pending", "·", ""},
    {"up", "✓", "\033[32m"},        {"down", "✗", "\033[31m"},       {"draining", "-", "\033[33m"},
};

const char *cli_mark(const char *status)
{
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        if (strcmp(looks[i].status, status) == 0) {
            return looks[i].mark;
        }
    }
    return "·";
}

const char *cli_color(const struct cli *cli, const char *status)
{
    for (size_t i = 0; cli->color && i < sizeof looks / sizeof looks[0]; i++) {
        if (strcmp(looks[i].status, status) == 0) {
            return looks[i].color;
        }
    }
    return "";
}

const char *cli_color_off(const struct cli *cli)
{
    return cli->color ? "\033[0m" : "";
}

void cli_format_ms(double ms, char *ret, size_t cap)
{
    if (ms < 1000) {
        (void)snprintf(ret, cap, "%.0f ms", ms);
    } else if (ms < 120000) {
        (void)snprintf(ret, cap, "%.1f s", ms / 1000);
    } else {
        (void)snprintf(ret, cap, "%.0f min", ms / 60000);
    }
}

void cli_print_safe(const char *text)
{
    bool tty = isatty(STDOUT_FILENO) == 1;

    for (const unsigned char *p = (const unsigned char *)text; *p != 0; p++) {
        bool control = (*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7F || (*p == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0);
        (void)fputc(tty && control ? '?' : *p, stdout);
    }
}

char *cli_read_file(const char *path, size_t max, size_t *ret_len)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct buf bytes;
    ssize_t n = 1;

    if (fd < 0) {
        cli_say("%s: %s", path, strerror(errno));
        return NULL;
    }
    buf_init(&bytes, max);
    while (n > 0 && bytes.bad == BT_OK) {
        char part[65536];
        n = read(fd, part, sizeof part);
        if (n > 0) {
            buf_add(&bytes, part, (size_t)n);
        }
    }
    if (n < 0 || bytes.bad != BT_OK) {
        cli_say("%s: %s", path, n < 0 ? strerror(errno) : "the file is too large for a plan");
        buf_done(&bytes);
    }
    if (fd != STDIN_FILENO) {
        (void)close(fd);
    }
    (void)buf_cstr(&bytes);
    return bytes.max == max && (n < 0 || bytes.bad != BT_OK) ? NULL : (char *)buf_take(&bytes, ret_len);
}

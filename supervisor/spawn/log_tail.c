#include "supervisor/spawn/log_tail.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/utf8.h"
#include "supervisor/spawn/redact_patterns.h"

enum { TAIL_MAX = 4096 };

uint64_t log_tail_begin(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* Replaces control characters and bytes that are not UTF-8 by '?': people read the line in a
 * terminal. */
static void clean(char *text, size_t len)
{
    size_t at = 0;

    while (at < len) {
        const size_t good = utf8_prefix(text + at, len - at);
        at += good;
        if (at < len) {
            text[at++] = '?';
        }
    }
    for (at = 0; at < len; at++) {
        const unsigned char c = (unsigned char)text[at];
        if (c < ' ' || c == 0x7f) {
            text[at] = '?';
        } else if (c == 0xc2 && at + 1 < len && (unsigned char)text[at + 1] < 0xa0) {
            text[at] = '?'; /* C1: terminals interpret them too */
            text[at + 1] = '?';
        }
    }
}

static bool is_blank(char c)
{
    return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

void log_tail(const char *path, uint64_t from, char *ret, size_t cap)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char tail[TAIL_MAX];
    struct stat st;
    bool whole = true;
    size_t end = 0;
    size_t start;

    ret[0] = 0;
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        const uint64_t size = (uint64_t)st.st_size;
        const uint64_t first = from <= size ? from : 0;
        const uint64_t at = size - first > TAIL_MAX ? size - TAIL_MAX : first;
        const ssize_t n = pread(fd, tail, sizeof tail, (off_t)at);
        end = n > 0 ? (size_t)n : 0;
        whole = at == first;
    }
    (void)close(fd);
    while (end > 0 && is_blank(tail[end - 1])) {
        end--;
    }
    for (start = end; start > 0 && tail[start - 1] != '\n'; start--) {
    }
    if (!whole && start == 0) {
        while (start < end && !is_blank(tail[start])) {
            /* skips the rest of a word whose beginning is cut off: it may be part of a key */
            start++;
        }
    }
    while (start < end && is_blank(tail[start])) {
        start++;
    }
    clean(tail + start, end - start);
    redact_patterns((struct str){tail + start, end - start}, ret, cap);
}

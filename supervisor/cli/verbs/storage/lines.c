#include "supervisor/cli/verbs/storage/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "protocol/artifact/artifact.h"
#include "protocol/base/buf.h"
#include "protocol/base/utf8.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/form.h"
#include "supervisor/cli/common/json.h"

#define HEAD "{\"kind\":\"baton export\",\"format\":"

bool export_sum_add(struct export_sum *sum, struct str body)
{
    struct artifact_digest *d = artifact_digest_new();

    if (d == NULL) {
        cli_error("out of memory");
        return false;
    }
    artifact_digest_add(d, sum->hash, strlen(sum->hash));
    artifact_digest_add(d, body.ptr, body.len);
    artifact_digest_end(d, sum->hash);
    artifact_digest_free(d);
    sum->lines++;
    return true;
}

bool export_put(FILE *to, struct export_sum *sum, struct str body)
{
    struct buf line;
    bool good;

    buf_init(&line, SIZE_MAX / 2);
    cli_put_json(&line, body);
    good = buf_check(&line, NULL) == BT_OK && export_sum_add(sum, buf_str(&line));
    if (good) {
        (void)fprintf(to, "{\"n\":%" PRIu64 ",\"hash\":\"%.*s\",", sum->lines, EXPORT_HASH_SHOWN,
                      sum->hash);
        (void)fwrite(line.at + 1, 1, line.len - 1, to);
        (void)fputc('\n', to);
    }
    buf_done(&line);
    return good;
}

static bool hex4(const char *at, const char *end, uint32_t *ret)
{
    *ret = 0;
    for (int i = 2; i < 6; i++) {
        const char *digits = "0123456789abcdef";
        const char *found = end - at >= 6 && at[i] != 0 ? strchr(digits, at[i]) : NULL;
        if (found == NULL) {
            return false;
        }
        *ret = *ret << 4 | (uint32_t)(found - digits);
    }
    return at[0] == '\\' && at[1] == 'u';
}

static size_t utf8_put(uint32_t c, char *to)
{
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint32_t first[] = {0, 0, 0xC0, 0xE0, 0xF0};

    for (size_t i = n; i-- > 1; c >>= 6) {
        to[i] = (char)(0x80 | (c & 0x3F));
    }
    to[0] = (char)(first[n] | c);
    return n;
}

/* What export_put has escaped, as the daemon gave it: never longer, so in its place. A line of
 * before, which has such characters as they are, stays. */
static struct str plain(char *line, size_t len)
{
    const char *end = line + len;
    char *to = line;

    for (const char *at = line; at < end;) {
        uint32_t c, low;
        size_t used = 6;
        if (*at != '\\' || !hex4(at, end, &c)) {
            const size_t n = *at == '\\' && end - at > 1 ? 2 : 1;
            memmove(to, at, n);
            to += n;
            at += n;
            continue;
        }
        if (c >= 0xD800 && c < 0xDC00 && hex4(at + used, end, &low) && low >= 0xDC00 &&
            low < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            used = 12;
        }
        if (c >= 0x7F && utf8_is_unsafe(c)) {
            to += utf8_put(c, to);
        } else {
            memmove(to, at, used);
            to += used;
        }
        at += used;
    }
    return (struct str){line, (size_t)(to - line)};
}

bool export_is(struct str body, const char *kind)
{
    char start[48];
    const int n = snprintf(start, sizeof start, "{\"kind\":\"%s\"", kind);

    return body.len > (size_t)n && memcmp(body.ptr, start, (size_t)n) == 0;
}

static bool broken(const struct export_file *f, const char *why)
{
    cli_error("%s:%" PRIu64 ": %s; %s", f->name, f->sum.lines + 1, why,
              f->again ? "the file was changed while it was imported" : "nothing was imported");
    return false;
}

/* Takes number and hash off the line; they must be those of the lines before it. */
static bool open_line(struct export_file *f, char *line, size_t len, struct str *ret)
{
    char shown[EXPORT_HASH_SHOWN + 1];
    unsigned long long n = 0;
    int used = 0;

    if (sscanf(line, "{\"n\":%20llu,\"hash\":\"%16[0-9a-f]\",%n", &n, shown, &used) != 2 ||
        used == 0 || (size_t)used >= len) {
        return broken(f, "not a line of an export of baton");
    }
    if (n != f->sum.lines + 1) {
        char why[96];
        (void)snprintf(why, sizeof why, "this is line %llu: lines are missing or in another order",
                       n);
        return broken(f, why);
    }
    line[used - 1] = '{';
    *ret = (struct str){line + used - 1, len - (size_t)used + 1};
    if (!export_sum_add(&f->sum, *ret)) {
        return false;
    }
    if (memcmp(shown, f->sum.hash, EXPORT_HASH_SHOWN) != 0) {
        f->sum.lines--;
        return broken(f, "its hash is wrong: this line was changed after it was written");
    }
    *ret = plain(line + used - 1, ret->len);
    return true;
}

static bool check_head(struct export_file *f, struct str body)
{
    char *end = NULL;
    unsigned long format;

    if (body.len <= strlen(HEAD) || memcmp(body.ptr, HEAD, strlen(HEAD)) != 0) {
        f->sum.lines--;
        return broken(f, "not the first line of an export of baton");
    }
    format = strtoul(body.ptr + strlen(HEAD), &end, 10);
    if (format != EXPORT_FORMAT) {
        char why[96];
        (void)snprintf(why, sizeof why,
                       "format %lu, written by a newer Baton; this one knows format %d", format,
                       EXPORT_FORMAT);
        f->sum.lines--;
        return broken(f, why);
    }
    return true;
}

/* With its line feed; -1 at the end of the file, or on an error. A line that is too long is cut, so
 * that a file of one endless line does not take all memory. */
static ssize_t read_line(struct export_file *f)
{
    size_t n = 0;
    int c = 0;

    if (f->line == NULL) {
        f->line = malloc(EXPORT_LINE_MAX + 1);
        if (f->line == NULL) {
            return -1;
        }
    }
    while (n < EXPORT_LINE_MAX && c != '\n' && (c = getc_unlocked(f->from)) != EOF) {
        f->line[n++] = (char)c;
    }
    f->line[n] = 0;
    return n > 0 && ferror(f->from) == 0 ? (ssize_t)n : -1;
}

bool export_next(struct export_file *f, struct str *ret_body)
{
    ssize_t len;

    *ret_body = (struct str){NULL, 0};
    errno = 0;
    len = read_line(f);
    if (len < 0) {
        return f->ended || broken(f, errno != 0 ? strerror(errno)
                                                : "the file ends here: its last lines are missing");
    }
    if (f->ended) {
        return broken(f, "nothing may follow the last line");
    }
    if (len == EXPORT_LINE_MAX && f->line[len - 1] != '\n') {
        return broken(f, "the line is longer than any of an export of baton");
    }
    if (f->line[len - 1] != '\n') {
        return broken(f, "the file ends in the middle of this line");
    }
    f->line[--len] = 0;
    if (memchr(f->line, 0, (size_t)len) != NULL) {
        return broken(f, "a zero byte: this line was changed after it was written");
    }
    if (!open_line(f, f->line, (size_t)len, ret_body)) {
        return false;
    }
    if (f->sum.lines == 1) {
        return check_head(f, *ret_body) && export_next(f, ret_body);
    }
    if (export_is(*ret_body, "sum")) {
        f->ended = true;
        return export_next(f, ret_body);
    }
    return true;
}

bool export_rewind(struct export_file *f)
{
    f->sum = (struct export_sum){.lines = 0};
    f->ended = false;
    f->again = true;
    if (fseek(f->from, 0, SEEK_SET) != 0) {
        cli_error("%s: %s", f->name, strerror(errno));
        return false;
    }
    return true;
}

/* ---- of the daemon ---- */

enum cli_exit export_ask(struct cli *cli, const struct cJSON *fields,
                         bool (*fn)(struct str body, void *self), void *self)
{
    char cursor[320] = "";
    enum cli_exit code;

    do {
        cJSON *ask = cJSON_Duplicate(fields, true);
        cJSON *answer = NULL;
        const char *at;
        (void)cJSON_AddStringToObject(ask, "cursor", cursor);
        code = cli_call(cli, "journal.export", ask, &answer);
        for (at = json_text(answer, "lines", ""); code == CLI_OK && *at != 0;) {
            const size_t n = strcspn(at, "\n");
            if (n > 1 && !fn((struct str){at, n}, self)) {
                code = CLI_INTERNAL;
            }
            at += n + (at[n] == '\n');
        }
        (void)snprintf(cursor, sizeof cursor, "%s", json_text(answer, "cursor", ""));
        cJSON_Delete(answer);
    } while (code == CLI_OK && cursor[0] != 0);
    return code;
}

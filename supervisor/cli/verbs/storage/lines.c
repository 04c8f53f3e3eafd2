#include "supervisor/cli/verbs/storage/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "protocol/artifact/artifact.h"

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
    if (!export_sum_add(sum, body)) {
        return false;
    }
    (void)fprintf(to, "{\"n\":%" PRIu64 ",\"hash\":\"%.*s\",", sum->lines, EXPORT_HASH_SHOWN,
                  sum->hash);
    (void)fwrite(body.ptr + 1, 1, body.len - 1, to);
    (void)fputc('\n', to);
    return true;
}

bool export_is(struct str body, const char *kind)
{
    char start[48];
    const int n = snprintf(start, sizeof start, "{\"kind\":\"%s\"", kind);

    return body.len > (size_t)n && memcmp(body.ptr, start, (size_t)n) == 0;
}

static bool broken(const struct export_file *f, const char *why)
{
    cli_error("%s:%" PRIu64 ": %s; nothing was imported", f->name, f->sum.lines + 1, why);
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

bool export_next(struct export_file *f, struct str *ret_body)
{
    ssize_t len;

    *ret_body = (struct str){NULL, 0};
    errno = 0;
    len = getline(&f->line, &f->cap, f->from);
    if (len < 0) {
        return f->ended ||
               broken(f, ferror(f->from) != 0 ? strerror(errno)
                                              : "the file ends here: its last lines are missing");
    }
    if (f->ended) {
        return broken(f, "nothing may follow the last line");
    }
    if (len == 0 || f->line[len - 1] != '\n') {
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
    if (fseek(f->from, 0, SEEK_SET) != 0) {
        cli_error("%s: %s", f->name, strerror(errno));
        return false;
    }
    return true;
}

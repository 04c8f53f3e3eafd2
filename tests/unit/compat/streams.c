#include "tests/unit/compat/streams.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

static char *read_file(const char *name, const char *ending)
{
    char path[512];
    char *text;
    FILE *f;
    long n;

    (void)snprintf(path, sizeof path, "%s/%s.%s", STREAMS, name, ending);
    f = fopen(path, "rb");
    if (f == NULL) {
        return NULL;
    }
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    n = ftell(f);
    rewind(f);
    text = malloc((size_t)n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    text[n] = 0;
    (void)fclose(f);
    return text;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct stream *)a)->name, ((const struct stream *)b)->name);
}

size_t streams_read(struct stream *ret)
{
    DIR *d = opendir(STREAMS);
    const struct dirent *entry;
    size_t n = 0;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".events") != 0) {
            continue;
        }
        assert_true(n < STREAMS_MAX);
        struct stream *s = &ret[n++];
        *s = (struct stream){0};
        (void)snprintf(s->name, sizeof s->name, "%.*s", (int)(dot - entry->d_name), entry->d_name);
        s->text = read_file(s->name, "events");
        assert_non_null(s->text);
        for (char *p = s->text; *p != 0; p++) {
            assert_true(s->n < STREAM_LINES);
            s->lines[s->n++] = p;
            p = strchr(p, '\n');
            assert_non_null(p);
            *p = 0;
        }
    }
    (void)closedir(d);
    qsort(ret, n, sizeof *ret, by_name);
    return n;
}

void streams_free(struct stream *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(all[i].text);
    }
}

char *stream_golden(const char *name, const char *vocabulary)
{
    return read_file(name, vocabulary);
}

void stream_golden_write(const char *name, const char *vocabulary, const char *text)
{
    char path[512];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s.%s", STREAMS, name, vocabulary);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

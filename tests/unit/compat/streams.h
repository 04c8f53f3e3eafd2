/*
 * Streams of events that daemons published, one JSON object per line, and their translations.
 * tests/e2e/test_vocabulary.py recorded them and names those made by hand.
 */
#ifndef UNIT_COMPAT_STREAMS_H
#define UNIT_COMPAT_STREAMS_H

#include <stddef.h>

enum { STREAMS_MAX = 64, STREAM_LINES = 256 };

struct stream {
    char name[64];
    char *text; /* the lines, each with a terminating zero */
    const char *lines[STREAM_LINES];
    size_t n;
};

/* Reads all streams, ordered by name; returns their number. */
size_t streams_read(struct stream *ret);
void streams_free(struct stream *all, size_t n);
/* Reads the file NAME.VOCABULARY, which the caller frees; NULL when it does not exist. */
char *stream_golden(const char *name, const char *vocabulary);
void stream_golden_write(const char *name, const char *vocabulary, const char *text);
#endif

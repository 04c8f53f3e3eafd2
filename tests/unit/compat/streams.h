/*
 * Streams of events that daemons published, one JSON object per line, and what they are in each
 * vocabulary. tests/e2e/test_vocabulary.py recorded them and says what is made by hand.
 */
#ifndef CLIENT_STREAMS_H
#define CLIENT_STREAMS_H

#include <stddef.h>

enum { STREAMS_MAX = 64, STREAM_LINES = 256 };

struct stream {
    char name[64];
    char *text; /* the lines, each with its zero */
    const char *lines[STREAM_LINES];
    size_t n;
};

/* All of them, in the order of their names; returns how many. */
size_t streams_read(struct stream *ret);
void streams_free(struct stream *all, size_t n);
/* The file NAME.VOCABULARY; free() it. NULL when it is not there. */
char *stream_golden(const char *name, const char *vocabulary);
void stream_golden_write(const char *name, const char *vocabulary, const char *text);
#endif

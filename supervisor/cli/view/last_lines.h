/* The last n of many texts, for --tail. */
#ifndef CLI_LAST_LINES_H
#define CLI_LAST_LINES_H

#include <stdbool.h>
#include <stddef.h>

enum { LAST_LINES_MAX = 100000 };

struct last_lines {
    char **at; /* a ring */
    size_t cap, n, first;
    bool failed; /* out of memory: some are missing */
};

/* Keeps the last n, at most LAST_LINES_MAX. False when out of memory. End with last_lines_done. */
bool last_lines_init(struct last_lines *l, size_t n);
/* Takes a copy of the text. */
void last_lines_add(struct last_lines *l, const char *text);
/* Passes them on in their order, and forgets them. */
void last_lines_pass(struct last_lines *l, void (*take)(const char *text, void *self), void *self);
/* Prints them on stdout as they are, in their order, and forgets them. */
void last_lines_print(struct last_lines *l);
void last_lines_done(struct last_lines *l);
#endif

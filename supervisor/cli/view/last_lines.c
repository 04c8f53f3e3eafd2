#include "supervisor/cli/view/last_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/cli/common/cli.h"

bool last_lines_init(struct last_lines *l, size_t n)
{
    *l = (struct last_lines){.cap = n < LAST_LINES_MAX ? n : LAST_LINES_MAX};
    l->at = calloc(l->cap + 1, sizeof *l->at);
    return l->at != NULL;
}

void last_lines_add(struct last_lines *l, const char *text)
{
    char *copy;
    size_t place;

    if (l->cap == 0) {
        return;
    }
    copy = strdup(text);
    if (copy == NULL) {
        l->failed = true;
        return;
    }
    if (l->n == l->cap) {
        free(l->at[l->first]);
        l->first = (l->first + 1) % l->cap;
        l->n--;
    }
    place = (l->first + l->n++) % l->cap;
    l->at[place] = copy;
}

void last_lines_pass(struct last_lines *l, void (*take)(const char *text, void *self), void *self)
{
    if (l->failed) {
        cli_error("out of memory: some lines are left out");
    }
    for (; l->n > 0; l->n--) {
        take(l->at[l->first], self);
        free(l->at[l->first]);
        l->first = (l->first + 1) % l->cap;
    }
}

static void print(const char *text, void *self)
{
    (void)self;
    (void)fputs(text, stdout);
}

void last_lines_print(struct last_lines *l)
{
    last_lines_pass(l, print, NULL);
}

void last_lines_done(struct last_lines *l)
{
    for (; l->n > 0; l->n--) {
        free(l->at[l->first]);
        l->first = (l->first + 1) % l->cap;
    }
    free(l->at);
    *l = (struct last_lines){.n = 0};
}

/* Files of what a test says, kept beside it: with BATON_WRITE in the environment they are written
 * anew, for a person to read the difference; else they must be the same. */
#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

enum { GOLDEN_MAX = 4 * 1024 * 1024 };

/* The text of the file, to be freed. Fails the test when it is not there, or longer. */
static inline char *golden_read(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = calloc(1, GOLDEN_MAX + 1);

    assert_non_null(text);
    if (f == NULL) {
        fail_msg("%s cannot be opened", path);
        return text;
    }
    assert_true(fread(text, 1, GOLDEN_MAX, f) < GOLDEN_MAX);
    assert_int_equal(fclose(f), 0);
    return text;
}

/* was: what golden_read gave. Names the first line that is another one. */
static inline void golden_keep(const char *path, const char *was, const char *is)
{
    size_t at = 0;

    if (getenv("BATON_WRITE") != NULL) {
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        assert_true(fputs(is, f) >= 0);
        assert_int_equal(fclose(f), 0);
        return;
    }
    for (size_t i = 0; was[i] != 0 && was[i] == is[i]; i++) {
        at = was[i] == '\n' ? i + 1 : at;
    }
    if (strcmp(was, is) != 0) {
        fail_msg("%s: kept:\n%.*s\nnow:\n%.*s", path, (int)strcspn(was + at, "\n"), was + at,
                 (int)strcspn(is + at, "\n"), is + at);
    }
}
#endif

#include "protocol/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void assert_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "<0>%s:%d: assertion failed: %s\n", file, line, what);
    abort();
}

/* File name patterns: * (any run), ? (one character), [abc], [a-z], [!a]. Pure. Time is at most the
 * product of the lengths. */
#ifndef FILES_GLOB_H
#define FILES_GLOB_H

#include <stdbool.h>

bool glob_match(const char *pattern, const char *name);
#endif

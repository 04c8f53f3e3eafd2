/* File name patterns: * (any run), ? (one character), [abc], [a-z], [!a]. Time is bounded by the
 * product of the lengths. Pure. */
#ifndef FILES_GLOB_H
#define FILES_GLOB_H

#include <stdbool.h>

bool glob_match(const char *pattern, const char *name);
#endif

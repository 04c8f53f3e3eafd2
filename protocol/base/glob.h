/* Globs: "*" stands for any characters, "?" for one byte. Pure. */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include "protocol/base/str.h"

/* Whether the whole text fits. The time is at most glob.len * text.len. */
bool glob_fits(struct str glob, struct str text);
#endif

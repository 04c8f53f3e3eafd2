/*
 * The class of a failure whose agent named none (M041): its code first, then the words of its
 * message, whole words only ("generate" and "separate" are about no rate), and numbers only where
 * they stand as a status ("HTTP 404", not "404 rows"). Pure.
 */
#ifndef DISPATCH_CLASSIFY_H
#define DISPATCH_CLASSIFY_H

#include "protocol/base/err.h"
#include "protocol/base/str.h"

/* CLASS_UNKNOWN when neither has a hint. Looks at the first 4 KiB of the message. */
enum err_class classify_error(struct str code, struct str message);
#endif

/* The name of a webhook or an incoming hook, as requests and the files of the state directory have
 * it. */
#ifndef WIRE_HOOK_NAME_H
#define WIRE_HOOK_NAME_H

#include <stdbool.h>

#include "protocol/base/str.h"

enum { HOOK_NAME_MAX = 64 };

/* 1 to HOOK_NAME_MAX of a-z 0-9 _ - */
bool hook_name_ok(struct str name);
#endif

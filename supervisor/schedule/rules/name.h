/* The rule of a schedule's name, for who puts one and who imports one. */
#ifndef SCHEDULE_RULES_NAME_H
#define SCHEDULE_RULES_NAME_H

#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum { SCHEDULE_NAME_MAX = 64 };

/* BT_INVALID names what is right. */
BT_MUST_CHECK enum bt_code schedule_name_check(struct str name, struct bt_error *err);
#endif

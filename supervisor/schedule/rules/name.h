/* The rule of a schedule's name, for who puts one and who imports one. */
#ifndef SCHEDULE_RULES_NAME_H
#define SCHEDULE_RULES_NAME_H

#include "protocol/base/str.h"

enum { SCHEDULE_NAME_MAX = 64 };

/* What is right, for who refuses another one. */
#define SCHEDULE_NAME_RULE                                                                         \
    "name: expected 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit"

bool schedule_name_fits(struct str name);
#endif

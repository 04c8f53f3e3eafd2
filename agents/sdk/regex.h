/* Regular expressions for agents (PCRE2, UTF-8), with a limit on the backtracking of each match.
 * One thread per regex. */
#ifndef SDK_REGEX_H
#define SDK_REGEX_H

#include <stdbool.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

struct regex;

enum { REGEX_PATTERN_MAX = 4096, REGEX_GROUPS_MAX = 32 };

/* BT_INVALID names the position in the pattern. */
BT_MUST_CHECK enum bt_code regex_new(struct str pattern, bool ignore_case, struct regex **ret,
                                     struct bt_error *err);
void regex_free(struct regex *re);
/* Whether the pattern matches anywhere in the subject, which must be UTF-8. BT_LIMIT: it backtracks
 * too much on this text. */
BT_MUST_CHECK enum bt_code regex_find(struct regex *re, struct str subject, bool *ret_found,
                                      struct bt_error *err);
/* A group of the last match (0 = the whole match); {NULL, 0} when it did not participate. Points
 * into the subject. */
struct str regex_group(const struct regex *re, uint32_t ix);
/* The number of groups without group 0. */
uint32_t regex_groups(const struct regex *re);
/* The name of a group; NULL when it has none. Valid as long as the regex. */
const char *regex_group_name(const struct regex *re, uint32_t ix);
#endif

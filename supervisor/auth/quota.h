/* What a credential has used of its quotas in a minute. The minute begins with the first use in it.
 * Pure. */
#ifndef AUTH_QUOTA_H
#define AUTH_QUOTA_H

#include "protocol/auth/identity.h"
#include "protocol/base/err.h"
#include "protocol/base/msec.h"

enum { QUOTA_MINUTE_MS = 60000 };

struct quota_minute {
    msec from;
    uint64_t of[QUOTA_COUNT];
};

struct quota_use {
    enum quota quota;
    uint64_t n;
};

struct quota_over {
    enum quota quota;
    uint64_t limit;
    msec after; /* when to ask again; 0 = never so */
};

/* Whether so much more is within the quota. BT_BUSY: not in this minute. BT_LIMIT: in none. */
BT_MUST_CHECK enum bt_code quota_check(const struct quota_minute *u, const struct identity *who,
                                       struct quota_use more, msec now, struct quota_over *ret,
                                       struct bt_error *err);
void quota_add(struct quota_minute *u, struct quota_use more, msec now);
/* `over` as *ret and in words; returns `code`. */
enum bt_code quota_refuse(struct quota_over over, enum bt_code code, struct quota_over *ret,
                          struct bt_error *err);
#endif

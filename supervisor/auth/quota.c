#include "supervisor/auth/quota.h"

#include <stdio.h>

static bool is_past(const struct quota_minute *u, msec now)
{
    return now - u->from >= QUOTA_MINUTE_MS;
}

enum bt_code quota_refuse(struct quota_over over, enum bt_code code, struct quota_over *ret,
                          struct bt_error *err)
{
    char again[48] = "";

    *ret = over;
    if (over.after > 0 && over.quota != QUOTA_CONNECTIONS) {
        (void)snprintf(again, sizeof again, "; try again in %llu s",
                       (unsigned long long)(over.after + 999) / 1000);
    }
    return err_set(err, code, "%s: more than the quota of this credential, %llu%s%s",
                   quota_name(over.quota), (unsigned long long)over.limit,
                   over.quota == QUOTA_CONNECTIONS ? "" : " a minute", again);
}

enum bt_code quota_check(const struct quota_minute *u, const struct identity *who,
                         struct quota_use more, msec now, struct quota_over *ret,
                         struct bt_error *err)
{
    const uint64_t limit = identity_quota(who, more.quota, 0);
    const uint64_t used = is_past(u, now) ? 0 : u->of[more.quota];

    if (limit > 0 && more.n > limit) {
        return quota_refuse((struct quota_over){more.quota, limit, 0}, BT_LIMIT, ret, err);
    }
    return limit == 0 || used + more.n <= limit
               ? BT_OK
               : quota_refuse(
                     (struct quota_over){more.quota, limit, u->from + QUOTA_MINUTE_MS - now},
                     BT_BUSY, ret, err);
}

void quota_add(struct quota_minute *u, struct quota_use more, msec now)
{
    if (is_past(u, now)) {
        *u = (struct quota_minute){.from = now};
    }
    u->of[more.quota] += more.n;
}

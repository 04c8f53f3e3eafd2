#include "supervisor/engine/schedule_key.h"

bool schedule_of_key(struct str key, struct str *ret_name, struct str *ret_time)
{
    static const char TRIGGER[] = "trigger/";
    const char *own = memchr(key.ptr != NULL ? key.ptr : "", 0x1f, key.len);
    const char *slash;

    if (own != NULL) { /* the key of a credential: its id comes first */
        key.len -= (size_t)(own + 1 - key.ptr);
        key.ptr = own + 1;
    }
    if (key.len <= sizeof SCHEDULE_KEYS - 1 ||
        memcmp(key.ptr, SCHEDULE_KEYS, sizeof SCHEDULE_KEYS - 1) != 0) {
        return false;
    }
    key.ptr += sizeof SCHEDULE_KEYS - 1;
    key.len -= sizeof SCHEDULE_KEYS - 1;
    slash = memchr(key.ptr, '/', key.len);
    if (slash == NULL || slash == key.ptr) {
        return false;
    }
    *ret_name = (struct str){key.ptr, (size_t)(slash - key.ptr)};
    *ret_time = (struct str){slash + 1, key.len - ret_name->len - 1};
    if (ret_time->len >= sizeof TRIGGER - 1 &&
        memcmp(ret_time->ptr, TRIGGER, sizeof TRIGGER - 1) == 0) {
        ret_time->len = 0;
    }
    return true;
}

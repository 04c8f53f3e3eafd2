#include "supervisor/schedule/rules/name.h"

enum bt_code schedule_name_check(struct str name, struct bt_error *err)
{
    bool ok = name.len > 0 && name.len <= SCHEDULE_NAME_MAX;

    for (size_t i = 0; i < name.len && ok; i++) {
        const char c = name.ptr[i];
        const bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        ok = letter || (i > 0 && (c == '.' || c == '_' || c == '-'));
    }
    return ok ? BT_OK
              : err_set(err, BT_INVALID,
                        "name: expected 1 to %d of A-Z a-z 0-9 . _ -, the first a letter or digit",
                        SCHEDULE_NAME_MAX);
}

#include "supervisor/schedule/rules/name.h"

bool schedule_name_fits(struct str name)
{
    bool ok = name.len > 0 && name.len <= SCHEDULE_NAME_MAX;

    for (size_t i = 0; i < name.len && ok; i++) {
        const char c = name.ptr[i];
        const bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        ok = letter || (i > 0 && (c == '.' || c == '_' || c == '-'));
    }
    return ok;
}

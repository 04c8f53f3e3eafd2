#include "protocol/wire/hook_name.h"

bool hook_name_ok(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) {
            return false;
        }
    }
    return name.len > 0 && name.len <= HOOK_NAME_MAX;
}

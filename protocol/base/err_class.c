#include <string.h>

#include "protocol/base/err.h"

static const struct {
    const char *name;
    bool retryable;
} classes[] = {
#define CLASS(name, retryable, sentence) [CLASS_##name] = {#name, retryable},
#include "protocol/errors.def"
};
_Static_assert(sizeof classes / sizeof classes[0] == CLASS_COUNT, "an entry per class");

const char *err_class_name(enum err_class c)
{
    return (unsigned)c < CLASS_COUNT ? classes[c].name : "UNKNOWN";
}

enum err_class err_class_from_name(const char *name, size_t len)
{
    for (int i = 0; i < CLASS_COUNT; i++) {
        if (strlen(classes[i].name) == len && memcmp(classes[i].name, name, len) == 0) {
            return (enum err_class)i;
        }
    }
    return CLASS_UNKNOWN;
}

bool err_class_retryable(enum err_class c)
{
    return (unsigned)c < CLASS_COUNT && classes[c].retryable;
}

#include "protocol/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/utf8.h"

static const struct {
    const char *name;
    bool retryable;
    uint32_t wait_ms;
} codes[] = {
#define CODE(name, retryable, wait_ms, sentence) [BT_##name] = {#name, retryable, wait_ms},
#include "protocol/errors.def"
};
_Static_assert(sizeof codes / sizeof codes[0] == BT_CODE_COUNT, "an entry per code");

const char *bt_code_name(enum bt_code code)
{
    return (unsigned)code < BT_CODE_COUNT ? codes[code].name : "INTERNAL";
}

bool err_code_retryable(enum bt_code code)
{
    return (unsigned)code < BT_CODE_COUNT && codes[code].retryable;
}

uint32_t err_code_wait_ms(enum bt_code code)
{
    return (unsigned)code < BT_CODE_COUNT ? codes[code].wait_ms : 0;
}

enum bt_code err_code_from_name(const char *name, size_t len)
{
    for (int i = 0; i < BT_CODE_COUNT; i++) {
        if (strlen(codes[i].name) == len && memcmp(codes[i].name, name, len) == 0) {
            return (enum bt_code)i;
        }
    }
    return BT_INTERNAL;
}

/* Cuts a sentence that filled the buffer at a whole character, because messages must be UTF-8. */
static void trim(char *msg)
{
    size_t len = strlen(msg);
    size_t at = len;

    if (len < BT_ERROR_MSG_MAX - 1) {
        return;
    }
    while (at > 0 && len - at < 4 && ((unsigned char)msg[at - 1] & 0xC0) == 0x80) {
        at--;
    }
    if (at > 0 && !utf8_valid(msg + at - 1, len - at + 1)) {
        msg[at - 1] = 0;
    }
}

enum bt_code err_set(struct bt_error *err, enum bt_code code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        err->code = code;
        (void)vsnprintf(err->msg, sizeof err->msg, fmt, args);
        va_end(args);
        trim(err->msg);
    }
    return code;
}

enum bt_code err_wrap(struct bt_error *err, const char *fmt, ...)
{
    char inner[BT_ERROR_MSG_MAX];
    va_list args;
    int n;

    if (err == NULL) {
        return BT_INTERNAL;
    }
    memcpy(inner, err->msg, sizeof inner);
    va_start(args, fmt);
    n = vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->msg - 2) {
        (void)snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s", inner);
    }
    trim(err->msg);
    return err->code;
}

enum bt_code err_errno(struct bt_error *err, int errnum, const char *fmt, ...)
{
    enum bt_code code = errnum == ENOENT ? BT_NOT_FOUND : errnum == ENOMEM ? BT_NOMEM : BT_IO;
    va_list args;
    int n;

    if (err == NULL) {
        return code;
    }
    err->code = code;
    va_start(args, fmt);
    n = vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->msg - 2) {
        (void)snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s", strerror(errnum));
    }
    trim(err->msg);
    return code;
}

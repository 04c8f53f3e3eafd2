/* JSON pointers in URI fragments (RFC 6901, section 6). */
#include "protocol/jsonschema/compile_internal.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes %XX. Returns false for a broken or a zero escape. ret has room for the whole fragment. */
static bool percent_decode(const char *from, char *ret)
{
    for (; *from != '\0'; from++) {
        if (*from == '%') {
            int high = hex_value(from[1]);
            int low = high < 0 ? -1 : hex_value(from[2]);
            if (low < 0 || high * 16 + low == 0) {
                return false;
            }
            *ret++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *ret++ = *from;
        }
    }
    *ret = '\0';
    return true;
}

/* Decodes ~0 and ~1 of the token up to the next '/'. Returns the end of the token, or NULL for a
 * broken escape. */
static const char *read_token(const char *from, char *ret)
{
    for (; *from != '\0' && *from != '/'; from++) {
        if (*from == '~') {
            from++;
            if (*from != '0' && *from != '1') {
                return NULL;
            }
            *ret++ = *from == '0' ? '~' : '/';
        } else {
            *ret++ = *from;
        }
    }
    *ret = '\0';
    return from;
}

static cJSON *array_at(const cJSON *array, const char *token)
{
    uint32_t ix = 0;

    if (token[0] == '\0' || (token[0] == '0' && token[1] != '\0')) {
        return NULL;
    }
    for (const char *at = token; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || ix > SCHEMA_VALUES) {
            return NULL;
        }
        ix = ix * 10 + (uint32_t)(*at - '0');
    }
    return cJSON_GetArrayItem(array, (int)ix);
}

cJSON *schema_pointer(cJSON *root, const char *ref)
{
    char text[SCHEMA_POINTER_BYTES + 1];
    char token[SCHEMA_POINTER_BYTES + 1];
    const char *at = text;

    if (!percent_decode(ref[0] == '#' ? ref + 1 : ref, text)) {
        return NULL;
    }
    while (root != NULL && *at == '/') {
        at = read_token(at + 1, token);
        if (at == NULL) {
            return NULL;
        }
        if (cJSON_IsArray(root)) {
            root = array_at(root, token);
        } else {
            root = cJSON_IsObject(root) ? cJSON_GetObjectItemCaseSensitive(root, token) : NULL;
        }
    }
    return *at == '\0' ? root : NULL;
}

/* An HTTP request's address and body: parsed, found a route for, and its fields gathered. What is
 * taken must be what was sent: each part of the path, encoded again, is read as the same. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "supervisor/gateway/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct uri uri, again;

static void check_parts(void)
{
    char text[3 * URI_BYTES_MAX + 64] = "";
    struct bt_error err;
    size_t n = 0;

    for (uint32_t i = 0; i < uri.segments_n; i++) {
        const struct str part = uri.segments[i];
        text[n++] = '/';
        for (size_t k = 0; k < part.len; k++) {
            n += (size_t)snprintf(text + n, 4, "%%%02x", (unsigned char)part.ptr[k]);
        }
        ASSERT(part.len > 0 && !str_is(part, ".") && !str_is(part, ".."));
        ASSERT(memchr(part.ptr, 0, part.len) == NULL);
    }
    if (n > 0 && n <= URI_BYTES_MAX) {
        ASSERT(uri_parse((struct str){text, n}, &again, &err) == BT_OK);
        ASSERT(again.segments_n == uri.segments_n);
        for (uint32_t i = 0; i < uri.segments_n; i++) {
            ASSERT(str_eq(again.segments[i], uri.segments[i]));
        }
    }
}

static void gather(const struct route *route, const struct route_params *params, struct str body)
{
    const struct fields_from from = {.route = route, .params = params, .uri = &uri, .body = body};
    char field[FIELD_NAME_MAX + 1];
    struct bt_error err;
    struct buf out;

    buf_init(&out, LIMIT_STEP_BYTES);
    (void)fields_gather(&from, &out, field, &err);
    ASSERT(strlen(field) <= FIELD_NAME_MAX);
    buf_done(&out);
}

/* METHOD byte, address, line feed, body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    const char *end = size > 1 ? memchr(text, '\n', size - 1) : NULL;
    struct route_params params;
    const struct route *route;
    struct bt_error err;
    uint32_t allowed;

    if (size < 2) {
        return 0;
    }
    end = end == NULL ? text + size - 1 : end;
    if (uri_parse((struct str){text, (size_t)(end - text)}, &uri, &err) != BT_OK) {
        return 0;
    }
    check_parts();
    route = route_find(&uri, (enum http_method)(data[0] % HTTP_METHOD_COUNT), &params, &allowed);
    if (route != NULL) {
        const size_t left = size - 1 - (size_t)(end - text);
        gather(route, &params, (struct str){end + (left > 0), left > 0 ? left - 1 : 0});
    }
    return 0;
}

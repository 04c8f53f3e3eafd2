/* Hostile bytes as the beginning of a request: what is found lies in the bytes that were looked at,
 * and where the whole body is one that the reader takes, both find the same. */
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "protocol/wire/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void require_within(struct str s, const char *from, size_t len)
{
    require(s.len == 0 || (s.ptr >= from && s.ptr + s.len <= from + len));
}

/* A string that the peek has found is the reader's; one without escapes is always found. */
static void require_same(const struct msg_reader *r, const char *key, struct str found)
{
    const struct doc body = {r->body, r->len};
    const struct str read = doc_string(doc_get(body, str_from(key)));

    require(found.len == 0 || (read.ptr != NULL && str_eq(read, found)));
    require(r->form == WIRE_JSON || read.ptr == NULL || str_eq(read, found));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t look = size > 0 ? data[size - 1] * 8u : 0;
    char *exact = malloc(size + 1); /* so that a byte too far is seen */
    struct msg_reader reader;
    struct msg_peek part;
    struct msg_peek whole;
    struct bt_error err;

    require(exact != NULL);
    memcpy(exact, data, size);
    exact = realloc(exact, size > 0 ? size : 1);
    require(exact != NULL);
    part = msg_peek(exact, size, look);
    require_within(part.type, exact, look < size ? look : size);
    require_within(part.token, exact, look < size ? look : size);
    require_within(part.id, exact, look < size ? look : size);
    require_within(part.plan_id, exact, look < size ? look : size);
    whole = msg_peek(exact, size, size);
    require(whole.whole || !part.whole);
    if (msg_reader_init(&reader, exact, size, LIMIT_STEP_BYTES, &err) == BT_OK) {
        require(whole.whole);
        require_same(&reader, "type", whole.type);
        require_same(&reader, "token", whole.token);
        require_same(&reader, "id", whole.id);
        require_same(&reader, "planId", whole.plan_id);
    }
    msg_reader_done(&reader);
    free(exact);
    return 0;
}

/* Hostile bytes as a body: guard, then every message reads it; what could be read is written and
 * read again. */
#include <stdlib.h>

#include "protocol/limits.h"
#include "protocol/wire/mp_validate.h"
#include "protocol/wire/msg_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* What was read must be written, and read back to the same bytes. Only the JSON form may be over a
 * cap on the way back: bytes grow to base64, short floats to long ones. */
static void write_and_read_again(enum msg_type type, const void *body, enum wire_form form)
{
    union {
        struct msg_agent_view widest;
        uint8_t bytes[2048];
    } back;
    struct msg_part parts[2] = {{type, body}, {type, &back}};
    struct bt_error err;
    struct msg_reader reader;
    struct buf once;
    struct buf twice;

    buf_init(&once, 1 << 24);
    buf_init(&twice, 1 << 24);
    require(msg_write(&once, form, &parts[0], 1, &err) == BT_OK);
    require(msg_reader_init(&reader, once.at, once.len, 1 << 24, &err) == BT_OK);
    if (msg_read(&reader, type, &back, &err) == BT_OK) {
        require(msg_write(&twice, form, &parts[1], 1, &err) == BT_OK);
        require(once.len == twice.len && memcmp(once.at, twice.at, once.len) == 0);
    } else {
        require(form == WIRE_JSON && err.code == BT_LIMIT);
    }
    msg_reader_done(&reader);
    buf_done(&once);
    buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    union {
        struct msg_agent_view widest;
        uint8_t bytes[2048];
    } body;
    struct bt_error err;
    struct msg_reader reader;

    if (msg_reader_init(&reader, data, size, LIMIT_STEP_BYTES, &err) != BT_OK) {
        return 0;
    }
    require(mp_validate(reader.body, reader.len, NULL, &err) == BT_OK);
    for (unsigned type = 0; type < MSG_TYPE_COUNT; type++) {
        require(msg_table[type].size <= sizeof body);
        if (msg_read(&reader, (enum msg_type)type, &body, &err) == BT_OK) {
            write_and_read_again((enum msg_type)type, &body, WIRE_MSGPACK);
            write_and_read_again((enum msg_type)type, &body, WIRE_JSON);
        }
    }
    msg_reader_done(&reader);
    return 0;
}

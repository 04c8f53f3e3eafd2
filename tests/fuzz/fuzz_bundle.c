/* Hostile bytes as a bundle: what is accepted is read to its last byte, and made again the same. */
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bundle_reader r;
    struct bt_error err;
    struct str body;
    struct buf again;
    uint64_t tag;

    if (size > BUNDLE_FULL_BYTES || /* may be more than bundle_add puts together */
        bundle_open(&r, (struct str){(const char *)data, size}, &err) != BT_OK) {
        return 0;
    }
    buf_init(&again, BUNDLE_BYTES_MAX);
    bundle_begin(&again);
    while (bundle_next(&r, &tag, &body)) {
        if (!bundle_add(&again, BUNDLE_ITEMS_MAX, tag, body)) {
            abort();
        }
    }
    if (again.len != size || memcmp(again.at, data, size) != 0) {
        abort();
    }
    buf_done(&again);
    return 0;
}

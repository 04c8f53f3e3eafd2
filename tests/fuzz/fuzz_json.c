/* Text as JSON: what is accepted passes the guard, is written, and reads back to the very same
 * bytes. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "protocol/wire/doc.h"
#include "protocol/wire/mp_validate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void through_a_tree(struct doc d)
{
    struct bt_error err;
    struct cJSON *tree = NULL;
    struct buf back;

    buf_init(&back, 1 << 20);
    if (doc_to_cjson(d, &tree, &err) == BT_OK) {
        require(cjson_to_doc(tree, &back, &err) == BT_OK);
        cJSON_Delete(tree);
    }
    buf_done(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct bt_error err;
    struct buf doc;
    struct buf json;
    struct buf again;

    buf_init(&doc, json_doc_capacity(size));
    buf_init(&json, 1 << 24);
    buf_init(&again, 1 << 24);
    if (json_to_doc(text, NULL, &doc, &err) == BT_OK) {
        require(mp_validate(doc.at, doc.len, NULL, &err) == BT_OK);
        require(doc_to_json(doc_from_buf(&doc), size % 2 == 0, &json, &err) == BT_OK);
        require(json_to_doc(buf_str(&json), NULL, &again, &err) == BT_OK);
        require(doc.len == again.len && memcmp(doc.at, again.at, doc.len) == 0);
        through_a_tree(doc_from_buf(&doc));
    } else {
        require(doc.len == 0);
    }
    buf_done(&doc);
    buf_done(&json);
    buf_done(&again);
    return 0;
}

#include "agents/http/result.h"

#include "agents/sdk/documents/pointer.h"

/* A pointer of the settings: a text without a zero byte. */
static struct doc at_pointer(struct doc d, struct str pointer)
{
    char text[HTTP_PATH_MAX];

    if (pointer.len >= sizeof text) {
        return (struct doc){0};
    }
    memcpy(text, pointer.ptr, pointer.len);
    text[pointer.len] = 0;
    return pointer_get(d, text);
}

void result_item(const struct http_action *action, struct doc item, struct buf *out)
{
    struct doc_cursor c = doc_cursor(action->fields);
    struct doc_head head;

    if (action->fields.ptr == NULL || !doc_next(&c, &head)) {
        doc_put_doc(out, item);
        return;
    }
    doc_put_map(out, head.n);
    for (uint32_t i = 0; i < head.n; i++) {
        doc_put_str(out, doc_string(doc_skip(&c)));
        doc_put_doc(out, at_pointer(item, doc_string(doc_skip(&c))));
    }
}

static void put_value(const struct http_action *action, struct doc value, struct buf *out)
{
    const struct doc_head head = doc_head(value);
    struct doc_cursor c = doc_cursor(value);
    struct doc_head skipped;

    if (head.kind != DOC_ARRAY) {
        result_item(action, value, out);
        return;
    }
    (void)doc_next(&c, &skipped);
    doc_put_array(out, head.n);
    for (uint32_t i = 0; i < head.n; i++) {
        result_item(action, doc_skip(&c), out);
    }
}

static enum bt_code missing(struct str pointer, struct bt_error *err)
{
    return err_set(err, BT_NOT_FOUND, "the answer has no %.*s, which the action's result names",
                   STR_ARG(pointer));
}

static enum bt_code pick_map(const struct http_action *action, struct doc body, struct buf *out,
                             struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(action->result_map);
    struct doc_head head;

    (void)doc_next(&c, &head);
    doc_put_map(out, head.n);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        const struct str pointer = doc_string(doc_skip(&c));
        const struct doc value = at_pointer(body, pointer);
        if (value.ptr == NULL) {
            return missing(pointer, err);
        }
        doc_put_str(out, name);
        put_value(action, value, out);
    }
    return buf_check(out, err);
}

enum bt_code result_pick(const struct http_action *action, struct doc body, struct buf *out,
                         struct bt_error *err)
{
    struct doc value = body;

    if (action->result_map.ptr != NULL) {
        return pick_map(action, body, out, err);
    }
    if (action->result != NULL) {
        value = pointer_get(body, action->result);
        if (value.ptr == NULL) {
            return missing(str_from(action->result), err);
        }
    }
    put_value(action, value, out);
    return buf_check(out, err);
}

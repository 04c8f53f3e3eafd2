#include "agents/sdk/markdown.h"

#include <cjson/cJSON.h>

#include "agents/sdk/table.h"
#include "protocol/base/utf8.h"
#include "protocol/wire/doc.h"

/* What would order a terminal about, turn text around or hide in it is a mark. */
static void scrub(struct buf *out, size_t from)
{
    if (buf_cstr(out)[0] != 0 && out->len > from) {
        utf8_scrub((char *)out->at + from);
    }
}

void markdown_heading(const char *marks, const char *text, struct buf *out)
{
    const size_t from = out->len;

    buf_add_cstr(out, marks);
    for (; *text != 0; text++) {
        buf_add_byte(out, *text == '\n' || *text == '\r' ? ' ' : (uint8_t)*text);
    }
    scrub(out, from);
    buf_add_cstr(out, "\n\n");
}

void markdown_end_paragraph(struct buf *out)
{
    while (out->len > 0 && out->at[out->len - 1] == '\n') {
        buf_truncate(out, out->len - 1);
    }
    buf_add_cstr(out, "\n\n");
}

static enum bt_code put_plain(const cJSON *value, struct buf *out, struct bt_error *err)
{
    if (cJSON_IsString(value) || cJSON_IsNumber(value)) {
        table_put_text(value, out);
        return BT_OK;
    }
    return cjson_to_json(value, out, err);
}

static enum bt_code put_table(const cJSON *value, struct buf *out, struct bt_error *err)
{
    struct table t = {0};
    enum bt_code code = table_read(value, &t, err);

    if (code == BT_OK) {
        table_to_markdown(&t, t.rows_n, SIZE_MAX, "", out); /* over 3 MiB the step fails */
    }
    table_done(&t);
    return code;
}

static enum bt_code put_list(const cJSON *list, struct buf *out, struct bt_error *err)
{
    const cJSON *item;
    enum bt_code code = BT_OK;

    cJSON_ArrayForEach(item, list)
    {
        if (code == BT_OK) {
            size_t from;
            buf_add_cstr(out, "- ");
            from = out->len;
            code = put_plain(item, out, err);
            for (size_t i = from; i < out->len; i++) { /* one item, one line */
                out->at[i] = out->at[i] == '\n' || out->at[i] == '\r' ? ' ' : out->at[i];
            }
            buf_add_byte(out, '\n');
        }
    }
    return code;
}

static enum bt_code put_value(const cJSON *value, struct buf *out, struct bt_error *err)
{
    bool table = cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(value, "rows"));

    if (cJSON_IsArray(value)) {
        if (cJSON_IsArray(value->child) || cJSON_IsObject(value->child)) {
            return put_table(value, out, err);
        }
        return put_list(value, out, err);
    }
    return table ? put_table(value, out, err) : put_plain(value, out, err);
}

enum bt_code markdown_value(const cJSON *value, struct buf *out, struct bt_error *err)
{
    const size_t from = out->len;
    const enum bt_code code = put_value(value, out, err);

    scrub(out, from);
    return code;
}

enum bt_code markdown_section(const cJSON *section, struct buf *out, struct bt_error *err)
{
    const cJSON *heading = cJSON_GetObjectItemCaseSensitive(section, "heading");
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(section, "text");
    const cJSON *table = cJSON_GetObjectItemCaseSensitive(section, "table");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(section, "list");
    const size_t from = out->len;
    enum bt_code code = BT_OK;

    if (!cJSON_IsObject(section) || (heading != NULL && !cJSON_IsString(heading))) {
        return err_set(err, BT_INVALID, "expected {heading, text?, table?, list?}");
    }
    if (heading != NULL) {
        markdown_heading("## ", heading->valuestring, out);
    }
    if (text != NULL) {
        code = markdown_value(text, out, err);
        markdown_end_paragraph(out);
    }
    if (code == BT_OK && table != NULL) {
        code = put_table(table, out, err);
        buf_add_cstr(out, "\n");
    }
    if (code == BT_OK && list != NULL) {
        code = cJSON_IsArray(list) ? put_list(list, out, err)
                                   : err_set(err, BT_INVALID, "list: expected a list");
        buf_add_cstr(out, "\n");
    }
    scrub(out, from);
    return code;
}

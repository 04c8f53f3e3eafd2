/* render: a Markdown report from sections, from a template and data, or around a text. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/files/files.h"
#include "agents/sdk/input.h"
#include "agents/sdk/table.h"
#include "protocol/wire/doc.h"

enum { SECTIONS_MAX = 200, KEY_MAX = 256 };

/* A heading is one line. */
static void put_heading(struct buf *out, const char *marks, const char *text)
{
    buf_add_cstr(out, marks);
    for (; *text != 0; text++) {
        buf_add_byte(out, *text == '\n' || *text == '\r' ? ' ' : (uint8_t)*text);
    }
    buf_add_cstr(out, "\n\n");
}

/* Ends a paragraph with one blank line, whatever its end was. */
static void end_paragraph(struct buf *out)
{
    while (out->len > 0 && out->at[out->len - 1] == '\n') {
        buf_truncate(out, out->len - 1);
    }
    buf_add_cstr(out, "\n\n");
}

static enum bt_code put_plain(const cJSON *value, struct buf *out, struct bt_error *err)
{
    char number[64];

    if (cJSON_IsString(value)) {
        buf_add_cstr(out, value->valuestring);
        return BT_OK;
    }
    if (cJSON_IsNumber(value)) {
        buf_add_cstr(out, table_text(value, number, sizeof number));
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

/* Renders a value: a list of plain values as a list, other lists and {columns, rows} as a table. */
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

/* ---- sections ---- */

static enum bt_code put_section(const cJSON *section, struct buf *out, struct bt_error *err)
{
    const cJSON *heading = cJSON_GetObjectItemCaseSensitive(section, "heading");
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(section, "text");
    const cJSON *table = cJSON_GetObjectItemCaseSensitive(section, "table");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(section, "list");
    enum bt_code code = BT_OK;

    if (!cJSON_IsObject(section) || (heading != NULL && !cJSON_IsString(heading))) {
        return err_set(err, BT_INVALID, "expected {heading, text?, table?, list?}");
    }
    if (heading != NULL) {
        put_heading(out, "## ", heading->valuestring);
    }
    if (text != NULL) {
        code = put_value(text, out, err);
        end_paragraph(out);
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
    return code;
}

static enum bt_code put_sections(const cJSON *sections, struct buf *out, struct bt_error *err)
{
    const cJSON *section;
    int i = 0;
    enum bt_code code = BT_OK;

    cJSON_ArrayForEach(section, sections)
    {
        if (code == BT_OK && i == SECTIONS_MAX) {
            code = err_set(err, BT_LIMIT, "at most %d", SECTIONS_MAX);
        } else if (code == BT_OK) {
            code = put_section(section, out, err);
        }
        if (code != BT_OK) {
            return err_wrap(err, "sections[%d]", i);
        }
        i++;
    }
    return code;
}

/* ---- a template ---- */

/* The member "a.0.b" of the data; NULL when there is none. */
static const cJSON *find(const cJSON *data, const char *path)
{
    char key[KEY_MAX];

    while (data != NULL && *path != 0) {
        size_t n = strcspn(path, ".");
        if (n == 0 || n >= sizeof key) {
            return NULL;
        }
        memcpy(key, path, n);
        key[n] = 0;
        if (cJSON_IsArray(data)) {
            char *end;
            long ix = strtol(key, &end, 10);
            data = *end == 0 && ix >= 0 && ix < 1000000 ? cJSON_GetArrayItem(data, (int)ix) : NULL;
        } else {
            data = cJSON_GetObjectItemCaseSensitive(data, key);
        }
        path += n + (path[n] == '.');
    }
    return data;
}

/* Copies the text between the braces, without blanks around it. */
static bool read_key(const char *at, const char *end, char key[KEY_MAX])
{
    while (at < end && *at == ' ') {
        at++;
    }
    while (end > at && end[-1] == ' ') {
        end--;
    }
    if (at == end || (size_t)(end - at) >= KEY_MAX) {
        return false;
    }
    memcpy(key, at, (size_t)(end - at));
    key[end - at] = 0;
    return true;
}

static enum bt_code put_template(const char *at, const cJSON *data, struct buf *out,
                                 struct bt_error *err)
{
    enum bt_code code = BT_OK;

    while (code == BT_OK) {
        const char *open = strstr(at, "{{");
        const char *close = open == NULL ? NULL : strstr(open, "}}");
        char key[KEY_MAX];
        const cJSON *value;
        if (close == NULL) {
            buf_add_cstr(out, at);
            return BT_OK;
        }
        buf_add(out, at, (size_t)(open - at));
        value = read_key(open + 2, close, key) ? find(data, key) : NULL;
        if (value == NULL) {
            return err_set(err, BT_INVALID, "template: the data has no '%.*s'",
                           close - open > 80 ? 80 : (int)(close - open - 2), open + 2);
        }
        code = put_value(value, out, err);
        at = close + 2;
    }
    return code;
}

/* ---- the skill ---- */

static enum bt_code render(struct bt_step *step, const cJSON *params, struct buf *out,
                           struct bt_error *err)
{
    const cJSON *template = cJSON_GetObjectItemCaseSensitive(params, "template");
    const cJSON *sections = cJSON_GetObjectItemCaseSensitive(params, "sections");
    const char *title = bt_step_param_string(step, "title", NULL);
    const char *text = template == NULL && sections == NULL
                           ? input_text(step, "text")
                           : bt_step_param_string(step, "text", NULL);
    enum bt_code code = BT_OK;

    if (template != NULL && !cJSON_IsString(template)) {
        return err_set(err, BT_INVALID, "template: expected a text");
    }
    if (template == NULL && sections == NULL && text == NULL) {
        return err_set(
            err, BT_INVALID,
            "give sections, a template or a text, or let a step before this one make it");
    }
    if (title != NULL) {
        put_heading(out, "# ", title);
    }
    if (text != NULL) {
        buf_add_cstr(out, text);
        end_paragraph(out);
    }
    if (template != NULL) {
        code = put_template(template->valuestring, cJSON_GetObjectItemCaseSensitive(params, "data"),
                            out, err);
    }
    if (code == BT_OK && sections != NULL) {
        code = put_sections(sections, out, err);
    }
    return code;
}

void files_render(struct bt_step *step, void *self)
{
    cJSON *params = NULL;
    struct buf text;
    struct bt_error err;
    enum bt_code code = input_parameters(step, &params, &err);

    (void)self;
    buf_init(&text, LIMIT_RESULT_BYTES);
    if (code == BT_OK) {
        code = render(step, params, &text, &err);
    }
    if (code == BT_OK) {
        while (text.len > 1 && text.at[text.len - 1] == '\n' && text.at[text.len - 2] == '\n') {
            buf_truncate(&text, text.len - 1);
        }
        files_reply(step, NULL, &text);
    } else {
        bt_step_fail_error(step, &err);
    }
    cJSON_Delete(params);
    buf_done(&text);
}

/* render: a Markdown report from sections, from a template and data, or around a text. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/files/files.h"
#include "agents/sdk/input.h"
#include "agents/sdk/markdown.h"
#include "protocol/wire/doc.h"

enum { SECTIONS_MAX = 200, KEY_MAX = 256 };

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
            code = markdown_section(section, out, err);
        }
        if (code != BT_OK) {
            return err_wrap(err, "sections[%d]", i);
        }
        i++;
    }
    return code;
}

/* ---- a template ---- */

/* The member "a.0.b" of the data, for a path that fits a key; NULL when there is none. */
static const cJSON *find(const cJSON *data, const char *path)
{
    char key[KEY_MAX];

    while (data != NULL && *path != 0) {
        size_t n = strcspn(path, ".");
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
        code = markdown_value(value, out, err);
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
        markdown_heading("# ", title, out);
    }
    if (text != NULL) {
        buf_add_cstr(out, text);
        markdown_end_paragraph(out);
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

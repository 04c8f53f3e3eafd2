#include "supervisor/cli/common/form.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/json_tame.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/config/yaml_write.h"

enum { YAML_BYTES_MAX = 256 << 20 };

static const char *const names[] = {
    [CLI_TABLE] = "table", [CLI_JSON] = "json", [CLI_JSONL] = "jsonl", [CLI_YAML] = "yaml"};
const char cli_form_names[] = "json, jsonl, table or yaml";

static struct {
    enum cli_form as;
    cJSON *list; /* NULL = no list is open */
    bool printed, documents;
} form;

int cli_form_find(const char *name)
{
    for (int i = CLI_TABLE; i <= CLI_YAML; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

void cli_form_set(enum cli_form as)
{
    form.as = as;
}

bool cli_has_printed(void)
{
    return form.printed;
}

void cli_put_json(struct buf *out, struct str text)
{
    const size_t from = out->len;

    buf_add_str(out, text);
    json_tame(out, from);
}

static void put_line(const char *json)
{
    struct buf out;

    buf_init(&out, SIZE_MAX / 2);
    cli_put_json(&out, str_from(json));
    (void)puts(buf_cstr(&out));
    buf_done(&out);
}

static void print_line(const cJSON *value)
{
    struct bt_error err;
    char *text = cjson_print(value, false, &err);

    if (text != NULL) {
        put_line(text);
    } else {
        cli_error("%s", err.msg);
    }
    cJSON_free(text);
}

static void print_yaml(const cJSON *value)
{
    struct buf out;
    struct bt_error err;

    buf_init(&out, YAML_BYTES_MAX);
    if (yaml_write(value, &out, &err) == BT_OK) {
        (void)fputs(form.documents ? "---\n" : "", stdout);
        (void)fwrite(out.at, 1, out.len, stdout);
        form.documents = true;
    } else {
        cli_error("%s", err.msg);
    }
    buf_done(&out);
}

void cli_print_json(const cJSON *value)
{
    const cJSON *v;

    form.printed = true;
    if (form.list != NULL) {
        (void)cJSON_AddItemToArray(form.list, cJSON_Duplicate(value, true));
    } else if (form.as == CLI_YAML) {
        print_yaml(value);
    } else if (form.as == CLI_JSONL && cJSON_IsArray(value)) {
        cJSON_ArrayForEach(v, value)
        {
            print_line(v);
        }
    } else {
        print_line(value);
    }
}

bool cli_print_json_text(const char *json)
{
    struct bt_error err;
    cJSON *value = NULL;

    if (form.as != CLI_YAML && form.list == NULL && json[0] == '{') {
        form.printed = true;
        put_line(json);
        return true;
    }
    if (json_parse_exact(str_from(json), &value, &err) != BT_OK) {
        return false;
    }
    cli_print_json(value);
    cJSON_Delete(value);
    return true;
}

void cli_list_begin(void)
{
    form.list = cJSON_CreateArray();
}

void cli_list_item(void)
{
    form.printed = false;
}

void cli_list_end(void)
{
    cJSON *list = form.list;

    form.list = NULL;
    cli_print_json(list);
    cJSON_Delete(list);
}

/* Values of other people's making: as text that is safe for a terminal, and cut between values. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/view/review.h"

void review_safe(const char *text, size_t len, bool lines, struct buf *out)
{
    size_t n;

    for (size_t i = 0; i < len; i += n) {
        const uint32_t c = utf8_char(text + i, len - i, &n);
        if (utf8_is_unsafe(c)) {
            buf_printf(out, "<U+%04X>", (unsigned)c);
        } else if (!lines && (c == '\n' || c == '\t')) {
            buf_add_cstr(out, c == '\n' ? "\\n" : "\\t");
        } else {
            buf_add(out, text + i, n);
        }
    }
}

/* ---- cut ---- */

struct cutter {
    struct buf *out;
    size_t end;    /* of out, where the value has to end */
    uint64_t lost; /* values that were left out */
};

static void put_string(struct cutter *c, const char *text)
{
    const size_t len = strlen(text);
    const size_t room = c->end > c->out->len + 48 ? c->end - c->out->len - 48 : 16;
    const size_t keep = len <= room ? len : utf8_cut(text, len, room);
    cJSON *part = cJSON_CreateString("");
    struct buf copy;
    char *json;

    buf_init(&copy, keep + 1);
    buf_add(&copy, text, keep);
    cJSON_Delete(part);
    part = cJSON_CreateString(buf_cstr(&copy));
    json = cJSON_PrintUnformatted(part);
    if (json != NULL) {
        const size_t n = strlen(json);
        review_safe(json, keep < len ? n - 1 : n, false, c->out);
        if (keep < len) {
            buf_printf(c->out, "… %zu more bytes\"", len - keep);
        }
    }
    cJSON_free(json);
    cJSON_Delete(part);
    buf_done(&copy);
}

static void put_value(struct cutter *c, const cJSON *v);

static void put_children(struct cutter *c, const cJSON *v)
{
    const int n = cJSON_GetArraySize(v);
    const cJSON *child;
    int i = 0;

    buf_add_cstr(c->out, cJSON_IsArray(v) ? "[" : "{");
    cJSON_ArrayForEach(child, v)
    {
        buf_add_cstr(c->out, i > 0 ? "," : "");
        if (c->out->len + 32 > c->end) {
            buf_printf(c->out, "… %d more", n - i);
            c->lost += (uint64_t)(n - i);
            break;
        }
        if (child->string != NULL) {
            put_string(c, child->string);
            buf_add_byte(c->out, ':');
        }
        put_value(c, child);
        i++;
    }
    buf_add_cstr(c->out, cJSON_IsArray(v) ? "]" : "}");
}

static void put_value(struct cutter *c, const cJSON *v)
{
    char *json;

    if (cJSON_IsString(v)) {
        put_string(c, v->valuestring);
    } else if (cJSON_IsArray(v) || cJSON_IsObject(v)) {
        put_children(c, v);
    } else {
        json = cjson_print(v, false, NULL);
        buf_add_cstr(c->out, json != NULL ? json : "null");
        cJSON_free(json);
    }
}

void review_value(const cJSON *value, size_t max, struct buf *out)
{
    struct cutter c = {.out = out, .end = max == 0 ? SIZE_MAX : out->len + max};
    char *json;

    if (max != 0) {
        put_value(&c, value);
        return;
    }
    json = cjson_print(value, true, NULL);
    if (json != NULL) {
        review_safe(json, strlen(json), true, out);
    }
    cJSON_free(json);
}

/* Descriptions of values and types for messages. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/utf8.h"
#include "protocol/jsonschema/check_internal.h"

enum { SHOWN_BYTES = 40, NUMBER_TEXT = 32 };

/* Prints the shortest form that reads back as the same number. */
static void describe_number(struct buf *out, double v)
{
    char text[NUMBER_TEXT];

    (void)snprintf(text, sizeof text, "%.15g", v);
    if (strtod(text, NULL) != v) {
        (void)snprintf(text, sizeof text, "%.17g", v);
    }
    buf_add_cstr(out, text);
}

/* Escapes control characters, which would disturb a terminal or a log. */
static void describe_string(struct buf *out, const char *text)
{
    size_t len = strlen(text);
    size_t shown = len;

    if (len > SHOWN_BYTES) {
        shown = utf8_valid(text, len) ? utf8_cut(text, len, SHOWN_BYTES) : 0;
    }
    buf_add_byte(out, '"');
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f) {
            buf_printf(out, "\\u%04x", c);
        } else if (c == '"' || c == '\\') {
            buf_printf(out, "\\%c", c);
        } else {
            buf_add_byte(out, c);
        }
    }
    buf_add_cstr(out, shown < len ? "...\"" : "\"");
}

void describe_value(struct buf *out, const cJSON *v)
{
    switch (node_type(v)) {
    case TYPE_NULL:
        buf_add_cstr(out, "null");
        break;
    case TYPE_BOOLEAN:
        buf_add_cstr(out, cJSON_IsTrue(v) ? "true" : "false");
        break;
    case TYPE_NUMBER:
        describe_number(out, v->valuedouble);
        break;
    case TYPE_STRING:
        describe_string(out, v->valuestring);
        break;
    case TYPE_ARRAY:
        buf_add_cstr(out, v->child == NULL ? "an empty array" : "an array");
        break;
    default:
        buf_add_cstr(out, v->child == NULL ? "an empty object" : "an object");
        break;
    }
}

void describe_types(struct buf *out, uint32_t types)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {
        {TYPE_OBJECT, "an object"}, {TYPE_ARRAY, "an array"},     {TYPE_STRING, "a string"},
        {TYPE_NUMBER, "a number"},  {TYPE_INTEGER, "an integer"}, {TYPE_BOOLEAN, "true or false"},
        {TYPE_NULL, "null"},
    };
    const char *between = "";

    if ((types & TYPE_NUMBER) != 0) {
        types &= ~(uint32_t)TYPE_INTEGER;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((types & names[i].bit) != 0) {
            types &= ~names[i].bit;
            buf_add_cstr(out, between);
            buf_add_cstr(out, names[i].name);
            between = (types & (types - 1)) == 0 ? " or " : ", ";
        }
    }
}

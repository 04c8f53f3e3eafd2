/* The text format of Prometheus, version 0.0.4. */
#include "supervisor/gateway/telemetry/telemetry.h"

void text_family(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void text_label(struct buf *out, const char *name, struct str value, bool first)
{
    buf_add_cstr(out, first ? "{" : ",");
    buf_add_cstr(out, name);
    buf_add_cstr(out, "=\"");
    for (size_t i = 0; i < value.len; i++) {
        const char c = value.ptr[i];
        if (c == '\n') {
            buf_add_cstr(out, "\\n");
            continue;
        }
        if (c == '\\' || c == '"') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, (uint8_t)c);
    }
    buf_add_byte(out, '"');
}

#include "agents/web/sse.h"

void sse_init(struct sse *s, size_t max)
{
    *s = (struct sse){.has_data = false};
    buf_init(&s->line, max);
    buf_init(&s->data, max);
}

void sse_done(struct sse *s)
{
    buf_done(&s->line);
    buf_done(&s->data);
}

enum bt_code sse_check(const struct sse *s, struct bt_error *err)
{
    const enum bt_code code = buf_check(&s->line, err);

    return code == BT_OK ? buf_check(&s->data, err) : code;
}

static bool end_event(struct sse *s, bool (*see)(void *self, struct str data), void *self)
{
    bool on = true;

    if (s->has_data && s->data.len > 0) { /* an event without data only opens the stream */
        on = see(self, buf_str(&s->data));
    }
    buf_clear(&s->data);
    s->has_data = false;
    return on;
}

static bool end_line(struct sse *s, bool (*see)(void *self, struct str data), void *self)
{
    struct str line = buf_str(&s->line);
    bool on = true;

    if (line.len == 0) {
        on = end_event(s, see, self);
    } else if (line.len >= 5 && memcmp(line.ptr, "data:", 5) == 0) {
        const size_t skip = line.len > 5 && line.ptr[5] == ' ' ? 6 : 5;
        if (s->has_data) {
            buf_add_byte(&s->data, '\n');
        }
        buf_add(&s->data, line.ptr + skip, line.len - skip);
        s->has_data = true;
    }
    buf_clear(&s->line);
    return on && s->data.bad == BT_OK;
}

bool sse_take(struct sse *s, struct str bytes, bool (*see)(void *self, struct str data), void *self)
{
    for (size_t i = 0; i < bytes.len; i++) {
        const char c = bytes.ptr[i];
        const bool second = c == '\n' && s->after_cr;
        s->after_cr = c == '\r';
        if (c != '\n' && c != '\r') {
            buf_add_byte(&s->line, (uint8_t)c);
            if (s->line.bad != BT_OK) {
                return false;
            }
        } else if (!second && !end_line(s, see, self)) {
            return false;
        }
    }
    return true;
}

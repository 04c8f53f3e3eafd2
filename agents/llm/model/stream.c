#include "agents/llm/model/stream.h"

void stream_init(struct stream *s, bool lines, size_t max_bytes, stream_take take, void *self)
{
    *s = (struct stream){.lines = lines, .take = take, .self = self};
    buf_init(&s->line, max_bytes);
    buf_init(&s->data, max_bytes);
}

void stream_done(struct stream *s)
{
    buf_done(&s->line);
    buf_done(&s->data);
}

/* An empty line ends an event: its data lines, joined, are one value. */
static enum bt_code end_event(struct stream *s, struct bt_error *err)
{
    struct str data = str_trimmed(buf_str(&s->data));
    enum bt_code code = buf_check(&s->data, err);

    if (code == BT_OK && str_is(data, "[DONE]")) {
        s->ended = true;
    } else if (code == BT_OK && data.len > 0 && !s->ended) {
        code = s->take(s->self, data, true, err);
    }
    buf_clear(&s->data);
    return code;
}

/* Skips event names, ids, retry times and comments: the data has everything. */
static enum bt_code event_line(struct stream *s, struct str line, struct bt_error *err)
{
    if (line.len == 0) {
        return end_event(s, err);
    }
    if (line.len >= 5 && memcmp(line.ptr, "data:", 5) == 0) {
        if (s->data.len > 0) {
            buf_add_byte(&s->data, '\n');
        }
        buf_add_str(&s->data, (struct str){line.ptr + 5, line.len - 5});
    }
    return buf_check(&s->data, err);
}

static enum bt_code end_line(struct stream *s, struct bt_error *err)
{
    struct str line = buf_str(&s->line);
    enum bt_code code = buf_check(&s->line, err);

    if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    if (code == BT_OK && s->kind == STREAM_EVENTS) {
        code = event_line(s, line, err);
    } else if (code == BT_OK && str_trimmed(line).len > 0) {
        code = s->take(s->self, str_trimmed(line), true, err);
    }
    buf_clear(&s->line);
    return code;
}

/* Skips spaces and a byte order mark before the byte that decides the format; returns how many. */
static size_t decide(struct stream *s, struct str bytes)
{
    size_t i = 0;

    while (i < bytes.len && (str_is_space(bytes.ptr[i]) || (uint8_t)bytes.ptr[i] >= 0x80)) {
        i++;
    }
    if (i == bytes.len) {
        return i;
    }
    if (bytes.ptr[i] == '{' || bytes.ptr[i] == '[') {
        s->kind = s->lines ? STREAM_LINES : STREAM_WHOLE;
    } else {
        s->kind = strchr("der:i", bytes.ptr[i]) != NULL ? STREAM_EVENTS : STREAM_WHOLE;
    }
    return i;
}

enum bt_code stream_feed(struct stream *s, struct str bytes, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (s->kind == STREAM_UNKNOWN) {
        size_t dropped = decide(s, bytes);
        if (s->kind == STREAM_UNKNOWN) {
            return BT_OK;
        }
        bytes = (struct str){bytes.ptr + dropped, bytes.len - dropped};
    }
    if (s->kind == STREAM_WHOLE) {
        buf_add_str(&s->line, bytes);
        return buf_check(&s->line, err);
    }
    while (code == BT_OK && bytes.len > 0) {
        const char *end = memchr(bytes.ptr, '\n', bytes.len);
        size_t n = end == NULL ? bytes.len : (size_t)(end - bytes.ptr);
        buf_add_str(&s->line, (struct str){bytes.ptr, n});
        code = buf_check(&s->line, err);
        if (end == NULL) {
            break;
        }
        bytes = (struct str){end + 1, bytes.len - n - 1};
        if (code == BT_OK) {
            code = end_line(s, err);
        }
    }
    return code;
}

enum bt_code stream_end(struct stream *s, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (s->kind == STREAM_WHOLE) {
        struct str whole = str_trimmed(buf_str(&s->line));
        return whole.len > 0 ? s->take(s->self, whole, false, err) : BT_OK;
    }
    if (s->kind != STREAM_UNKNOWN && s->line.len > 0) {
        code = end_line(s, err);
    }
    return code == BT_OK && s->kind == STREAM_EVENTS ? end_event(s, err) : code;
}

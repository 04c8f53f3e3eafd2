#include "agents/llm/answer_stream.h"

#include "protocol/base/clock.h"

enum { PIECE = 200, PIECE_MS = 100, HELD_MAX = 32 * 1024 * 1024 };

void answer_stream_init(struct answer_stream *t, struct bt_step *step, const char *title)
{
    *t = (struct answer_stream){.step = step, .title = title};
    buf_init(&t->held, HELD_MAX);
}

void answer_stream_done(struct answer_stream *t)
{
    buf_done(&t->held);
}

static void flush_held(struct answer_stream *t)
{
    if (t->held.bad == BT_OK && t->held.len > 0) {
        bt_step_stream(t->step, (const char *)t->held.at, t->held.len);
        t->sent = true;
    }
    buf_clear(&t->held);
    t->due = msec_add(clock_mono_ms(), PIECE_MS);
}

static bool has_title(struct str text)
{
    return text.len >= 2 && text.ptr[0] == '#' && text.ptr[1] == ' ';
}

/* Starts to stream once the held bytes are known to be text; adds the title first. */
static void open_text(struct answer_stream *t)
{
    struct str text = buf_str(&t->held);

    if (text.len < 2 || text.ptr[0] == '{' || text.ptr[0] == '[' || text.ptr[0] == '`') {
        return;
    }
    if (t->title != NULL && !has_title(text)) {
        bt_step_stream(t->step, t->title, strlen(t->title));
        bt_step_stream(t->step, "\n\n", 2);
        t->sent = true;
    }
    t->open = true;
    t->due = msec_add(clock_mono_ms(), PIECE_MS);
}

void answer_stream_add(struct answer_stream *t, bool reset, struct str piece)
{
    if (reset) {
        answer_stream_reset(t);
        return;
    }
    buf_add_str(&t->held, piece);
    if (!t->open) {
        open_text(t);
    }
    if (t->open && t->held.len >= PIECE) {
        flush_held(t);
    }
}

void answer_stream_tick(struct answer_stream *t)
{
    if (t->open && t->held.len > 0 && clock_mono_ms() >= t->due) {
        flush_held(t);
    }
}

void answer_stream_reset(struct answer_stream *t)
{
    buf_clear(&t->held);
    if (t->sent) {
        bt_step_stream_reset(t->step);
    }
    t->sent = false;
    t->open = false;
}

static void add_last_line(struct buf *out, const char *line)
{
    if (line != NULL) {
        buf_printf(out, "\n\n%s\n", line);
    }
}

void answer_stream_finish(struct answer_stream *t, struct str text, const char *last_line,
                          struct buf *ret)
{
    if (t->title != NULL && !has_title(text)) {
        buf_printf(ret, "%s\n\n", t->title);
    }
    buf_add_str(ret, text);
    add_last_line(ret, last_line);
    if (!t->open) { /* nothing was streamed yet */
        buf_clear(&t->held);
        buf_add_str(&t->held, buf_str(ret));
    } else {
        add_last_line(&t->held, last_line);
    }
    flush_held(t);
}

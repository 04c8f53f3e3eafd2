/* Streams the answer's text while the handler produces it. Keeps the text until the supervisor
 * confirms it, piece by piece. A piece whose answer was lost is sent again. */
#include "agents/sdk/step.h"
#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"

enum { STREAM_WAITING_MAX = 1024 * 1024, FLUSH_POLL_MS = 25 };

void bt_step_stream(struct bt_step *s, const char *text, size_t len)
{
    bool wake;

    if (len == 0 || !utf8_valid(text, len)) {
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    if (s->stream.text.max == 0) {
        buf_init(&s->stream.text, STREAM_WAITING_MAX);
    }
    if (!s->stream.closed) {
        buf_add(&s->stream.text, text, len);
        s->stream.closed = s->stream.text.bad != BT_OK; /* text after a gap is not sent */
    }
    wake = !s->notified;
    s->notified = true;
    (void)pthread_mutex_unlock(&s->lock);
    if (wake && s->notify != NULL) {
        s->notify(s, s->runtime);
    }
}

void bt_step_stream_reset(struct bt_step *s)
{
    (void)pthread_mutex_lock(&s->lock);
    if (!s->stream.closed) {
        s->stream.text.len = s->stream.sent; /* the piece in transit still waits for its answer */
        s->stream.reset = s->stream.n != 0;
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static bool has_unconfirmed(const struct bt_step *s)
{
    return !s->stream.closed && s->stream.text.len > 0;
}

bool step_stream_waits(struct bt_step *s)
{
    bool yes;

    (void)pthread_mutex_lock(&s->lock);
    yes = has_unconfirmed(s);
    (void)pthread_mutex_unlock(&s->lock);
    return yes;
}

size_t step_stream_piece(struct bt_step *s, struct step_progress *ret)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&s->lock);
    if (has_unconfirmed(s)) {
        const char *text = (const char *)s->stream.text.at;
        if (s->stream.sent == 0) {
            s->stream.sent = utf8_cut(text, s->stream.text.len, STEP_PROGRESS_TEXT_MAX);
            s->stream.n = ++s->progress.n;
            s->stream.piece_reset = s->stream.reset;
            s->stream.reset = false;
        }
        n = s->stream.sent;
        memcpy(ret->text, text, n);
        ret->text[n] = 0;
        ret->n = s->stream.n;
        ret->reset = s->stream.piece_reset;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

void step_stream_answered(struct bt_step *s, bool accepted)
{
    struct buf *b = &s->stream.text;

    (void)pthread_mutex_lock(&s->lock);
    if (s->stream.sent > 0 && accepted) {
        memmove(b->at, b->at + s->stream.sent, b->len - s->stream.sent);
        b->len -= s->stream.sent;
    } else if (s->stream.sent > 0) {
        s->stream.closed = true;
    }
    s->stream.sent = 0;
    (void)pthread_cond_signal(&s->piece_answered);
    (void)pthread_mutex_unlock(&s->lock);
}

bool bt_step_stream_flush(struct bt_step *s, uint64_t max_ms)
{
    msec until = msec_add(clock_mono_ms(), max_ms);
    bool done;

    (void)pthread_mutex_lock(&s->lock);
    /* Without a supervisor no text is confirmed; in a loop of the program's own not while this one
     * waits. */
    while (s->notify != NULL && s->finished == NULL && has_unconfirmed(s) &&
           !bt_step_cancelled(s) && clock_mono_ms() < until) {
        uint64_t at = clock_mono_ns() + (uint64_t)FLUSH_POLL_MS * 1000000u;
        struct timespec slice = {.tv_sec = (time_t)(at / 1000000000u),
                                 .tv_nsec = (long)(at % 1000000000u)};
        (void)pthread_cond_timedwait(&s->piece_answered, &s->lock, &slice);
    }
    done = !s->stream.closed && s->stream.text.len == 0;
    (void)pthread_mutex_unlock(&s->lock);
    return done;
}

/* A timeline on a terminal. */
#include <string.h>

#include "supervisor/cli/picture/timeline_internal.h"

enum {
    SECOND = 1000,
    MINUTE = 60 * SECOND,
    HOUR = 60 * MINUTE,
    DAY = 24 * HOUR,
    TICK_COLUMNS = 10,
    NAME_MIN = 8,
    BAR_MIN = 5,
    TEXT_BYTES_MAX = 65536
};

static const struct kind {
    const char *name;
    const char *glyph, *ascii;
    const char *color;
    const char *fill;
} kinds[TIMELINE_KINDS] = {
    [TIMELINE_QUEUED] = {"queued", "·", ".", "", "#d0d0d0"},
    [TIMELINE_WAITING] = {"waiting", "─", "-", "\033[33m", "#f0e2b0"},
    [TIMELINE_BACKOFF] = {"backoff", "~", "~", "\033[33m", "#e0b93c"},
    [TIMELINE_ASKED] = {"asking an agent", "░", "o", "\033[34m", "#9db8e8"},
    [TIMELINE_RUNNING] = {"running", "█", "#", "\033[36m", "#2f9db8"},
    [TIMELINE_ADOPTED] = {"adopted", "▓", "%", "\033[34m", "#4b6cb7"},
    [TIMELINE_PERSON] = {"waiting for a person", "?", "?", "\033[35m", "#b07cc6"},
};

const char *timeline_kind_name(enum timeline_kind kind)
{
    return kinds[kind].name;
}

const char *kind_fill(enum timeline_kind kind)
{
    return kinds[kind].fill;
}

void kinds_used(const struct timeline *t, bool ret[TIMELINE_KINDS])
{
    memset(ret, 0, TIMELINE_KINDS * sizeof *ret);
    for (uint32_t i = 0; i < t->n_spans; i++) {
        ret[t->spans[i].kind] = true;
    }
}

double axis_step(double length_ms, int most)
{
    static const double steps[] = {1,
                                   2,
                                   5,
                                   10,
                                   20,
                                   50,
                                   100,
                                   200,
                                   500,
                                   SECOND,
                                   2. * SECOND,
                                   5. * SECOND,
                                   10. * SECOND,
                                   15. * SECOND,
                                   30. * SECOND,
                                   MINUTE,
                                   2. * MINUTE,
                                   5. * MINUTE,
                                   10. * MINUTE,
                                   15. * MINUTE,
                                   30. * MINUTE,
                                   HOUR,
                                   2. * HOUR,
                                   3. * HOUR,
                                   6. * HOUR,
                                   12. * HOUR,
                                   DAY};
    const size_t n = sizeof steps / sizeof steps[0];
    double step = steps[0];

    for (size_t i = 0; i < n && step * most < length_ms; i++) {
        step = steps[i];
    }
    while (step * most < length_ms) {
        step *= 2;
    }
    return step;
}

void axis_time(double ms, double step, struct buf *out)
{
    if (ms <= 0) {
        buf_add_byte(out, '0');
    } else if (step < SECOND) {
        buf_printf(out, "%.0f ms", ms);
    } else if (step < MINUTE) {
        buf_printf(out, "%.0f s", ms / SECOND);
    } else if (step < HOUR) {
        buf_printf(out, "%.0f min", ms / MINUTE);
    } else if (step < DAY) {
        buf_printf(out, "%.0f h", ms / HOUR);
    } else {
        buf_printf(out, "%.0f d", ms / DAY);
    }
}

struct columns {
    int name, bar, note;
};

/* What each kind takes of one character. */
struct cell {
    float ms[TIMELINE_KINDS];
    bool used[TIMELINE_KINDS];
};

static int widest(const struct timeline *t, bool notes, const struct look *look, struct buf *text)
{
    int most = 0;

    for (uint32_t i = 0; i < t->n_rows; i++) {
        buf_clear(text);
        look_clean(notes ? t->rows[i].note : t->rows[i].name, look->ascii, text);
        const int n = look_columns(buf_cstr(text));
        most = n > most ? n : most;
    }
    return most;
}

static struct columns share(const struct timeline *t, const struct look *look, struct buf *text)
{
    struct columns c = {.name = widest(t, false, look, text) + 2,
                        .note = widest(t, true, look, text)};
    const int name_max = look->width / 4 > NAME_MIN ? look->width / 4 : NAME_MIN;
    const int note_max = look->width / 4;

    c.name = c.name > name_max ? name_max : c.name;
    c.note = c.note > note_max ? note_max : c.note;
    c.bar = look->width - c.name - 1 - (c.note > 0 ? c.note + 1 : 0);
    c.bar = c.bar < BAR_MIN ? BAR_MIN : c.bar;
    return c;
}

/* Ticks with their times; each begins in its column. */
static void put_axis(const struct timeline *t, const struct look *look, const struct columns *c,
                     struct buf *text, struct buf *out)
{
    const double step =
        axis_step(t->length_ms, c->bar / TICK_COLUMNS > 0 ? c->bar / TICK_COLUMNS : 1);
    int at = 0;

    look_blanks(out, c->name + 1);
    for (double ms = 0; ms <= t->length_ms; ms += step) {
        const int column = (int)(ms / t->length_ms * c->bar);
        buf_clear(text);
        axis_time(ms, step, text);
        if (column >= at && column + 1 + look_columns(buf_cstr(text)) <= c->bar) {
            look_blanks(out, column - at);
            buf_add_cstr(out, look->ascii ? "|" : "│");
            buf_add_cstr(out, buf_cstr(text));
            at = column + 1 + look_columns(buf_cstr(text));
        }
    }
    look_end_line(out);
}

static void add_span(const struct timeline_span *s, const struct timeline *t, struct cell *cells,
                     int n)
{
    const double per_cell = t->length_ms / n;
    const int at = (int)(s->from / per_cell);
    const int first = at < n ? at : n - 1;

    for (int i = first; i < n && (i == first || i * per_cell < s->to); i++) {
        const double from = s->from > i * per_cell ? s->from : i * per_cell;
        const double to = s->to < (i + 1) * per_cell ? s->to : (i + 1) * per_cell;
        cells[i].used[s->kind] = true;
        cells[i].ms[s->kind] += (float)(to > from ? to - from : 0);
    }
}

/* What takes most of the character's time; TIMELINE_KINDS for nothing. Work is shown before waits,
 * and people before both, however short. */
static enum timeline_kind shown(const struct cell *cell)
{
    enum timeline_kind best = TIMELINE_KINDS;

    for (int kind = 0; kind < TIMELINE_KINDS; kind++) {
        const bool work = kind >= TIMELINE_RUNNING;
        if (cell->used[kind] && (best == TIMELINE_KINDS || cell->ms[kind] >= cell->ms[best] ||
                                 (work && best < TIMELINE_RUNNING))) {
            best = (enum timeline_kind)kind;
        }
    }
    return best;
}

static void put_bar(const struct look *look, const struct cell *cells, int n, struct buf *out)
{
    const char *color = "";

    for (int i = 0; i < n; i++) {
        const enum timeline_kind kind = shown(&cells[i]);
        const char *next = look->color && kind < TIMELINE_KINDS ? kinds[kind].color : "";
        if (next != color) {
            buf_add_cstr(out, color[0] != 0 ? look_color_off(look) : "");
            buf_add_cstr(out, next);
            color = next;
        }
        buf_add_cstr(out, kind == TIMELINE_KINDS ? " "
                          : look->ascii          ? kinds[kind].ascii
                                                 : kinds[kind].glyph);
    }
    buf_add_cstr(out, color[0] != 0 ? look_color_off(look) : "");
}

static void put_row(const struct timeline *t, uint32_t row, const struct look *look,
                    const struct columns *c, const struct cell *cells, struct buf *text,
                    struct buf *out)
{
    const struct timeline_row *r = &t->rows[row];

    buf_add_cstr(out, look_color(look, r->status));
    buf_add_cstr(out, look_mark(r->status, look->ascii));
    buf_add_cstr(out, look_color(look, r->status)[0] != 0 ? look_color_off(look) : "");
    buf_add_byte(out, ' ');
    buf_clear(text);
    look_clean(r->name, look->ascii, text);
    look_fit(buf_cstr(text), c->name - 2, look->ascii, true, out);
    buf_add_byte(out, ' ');
    put_bar(look, cells, c->bar, out);
    if (c->note > 0) {
        buf_add_byte(out, ' ');
        buf_clear(text);
        look_clean(r->note, look->ascii, text);
        look_fit(buf_cstr(text), c->note, look->ascii, true, out);
    }
    look_end_line(out);
}

static void put_legend(const struct timeline *t, const struct look *look, struct buf *out)
{
    bool used[TIMELINE_KINDS];
    bool first = true;

    kinds_used(t, used);
    for (int kind = 0; kind < TIMELINE_KINDS; kind++) {
        if (used[kind]) {
            buf_printf(out, "%s%s%s%s %s", first ? "" : "   ", look->color ? kinds[kind].color : "",
                       look->ascii ? kinds[kind].ascii : kinds[kind].glyph,
                       look->color && kinds[kind].color[0] != 0 ? look_color_off(look) : "",
                       kinds[kind].name);
            first = false;
        }
    }
    if (!first) {
        buf_add_byte(out, '\n');
    }
}

/* The spans of each row, one row after the other: at[row] to at[row + 1]. */
static const struct timeline_span **by_row(const struct timeline *t, uint32_t *at,
                                           struct arena *arena)
{
    const struct timeline_span **spans = arena_alloc(arena, (t->n_spans + 1) * sizeof *spans);

    for (uint32_t i = 0; i < t->n_spans; i++) {
        at[t->spans[i].row + 2]++;
    }
    for (uint32_t i = 2; i < t->n_rows + 2; i++) {
        at[i] += at[i - 1];
    }
    for (uint32_t i = 0; spans != NULL && i < t->n_spans; i++) {
        spans[at[t->spans[i].row + 1]++] = &t->spans[i];
    }
    return spans;
}

enum bt_code timeline_text(const struct timeline *t, const struct look *look, struct arena *arena,
                           struct buf *out, struct bt_error *err)
{
    uint32_t *at = arena_alloc(arena, ((size_t)t->n_rows + 3) * sizeof *at);
    const struct timeline_span **spans = at != NULL ? by_row(t, at, arena) : NULL;
    struct columns c;
    struct cell *cells;
    struct buf text;

    buf_init(&text, TEXT_BYTES_MAX);
    c = share(t, look, &text);
    cells = arena_alloc(arena, (size_t)c.bar * sizeof *cells);
    if (spans == NULL || cells == NULL) {
        buf_done(&text);
        return err_set(err, BT_NOMEM, "out of memory for the drawing");
    }
    buf_clear(&text);
    look_clean(t->title, look->ascii, &text);
    look_fit(buf_cstr(&text), look->width, look->ascii, false, out);
    look_end_line(out);
    put_axis(t, look, &c, &text, out);
    for (uint32_t row = 0; row < t->n_rows; row++) {
        memset(cells, 0, (size_t)c.bar * sizeof *cells);
        for (uint32_t i = at[row]; i < at[row + 1]; i++) {
            add_span(spans[i], t, cells, c.bar);
        }
        put_row(t, row, look, &c, cells, &text, out);
    }
    put_legend(t, look, out);
    buf_done(&text);
    return buf_check(out, err);
}

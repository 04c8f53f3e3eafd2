/* What stands in the boxes, and how a condition is spread over lines. */
#include <string.h>

#include "supervisor/cli/picture/layout_internal.h"

enum { WHEN_COLUMNS = 26 }; /* a box is not made wider for a condition: it goes on in a next line */

bool layout_wrap(const char *text, int columns, int line, struct buf *ret)
{
    const char *at = text;

    for (int i = 0; *at != 0; i++) {
        buf_clear(ret);
        while (*at != 0) {
            const size_t len = ret->len;
            const size_t word = strcspn(at, " ");
            buf_add_cstr(ret, len > 0 ? " " : "");
            buf_add(ret, at, word);
            if (len > 0 && look_columns(buf_cstr(ret)) > columns && i + 1 < WHEN_ROWS) {
                buf_truncate(ret, len);
                break;
            }
            at += word;
            at += strspn(at, " ");
        }
        if (i == line) {
            return true;
        }
    }
    buf_clear(ret);
    return false;
}

void layout_wrap_all(struct layout *l, const struct label *labels)
{
    struct buf text;

    buf_init(&text, LABEL_BYTES_MAX);
    for (uint32_t i = 0; i < l->n_layers; i++) {
        struct layer *layer = &l->layers[i];
        for (uint32_t k = 0; k < layer->n; k++) {
            const uint32_t step = layer->nodes[k];
            int lines = 0;
            while (lines < WHEN_ROWS &&
                   layout_wrap(labels[step].when, l->nodes[step].width - BOX_FRAME, lines, &text)) {
                lines++;
            }
            layer->when_rows = lines > layer->when_rows ? lines : layer->when_rows;
        }
    }
    buf_done(&text);
}

int layout_box_rows(const struct layer *layer)
{
    return BOX_ROWS + layer->when_rows;
}

struct label *layout_labels(const struct graph *g, bool ascii, struct arena *arena)
{
    struct label *labels = arena_alloc(arena, (g->n + 1) * sizeof *labels);
    struct buf text;

    buf_init(&text, LABEL_BYTES_MAX);
    for (uint32_t i = 0; labels != NULL && i < g->n; i++) {
        const char *mark = look_mark(g->steps[i].status, ascii);
        buf_clear(&text);
        if (mark[0] != ' ') {
            buf_printf(&text, "%s ", mark);
        }
        look_clean(g->steps[i].id, ascii, &text);
        labels[i].id = arena_str(arena, str_from(buf_cstr(&text))).ptr;
        buf_clear(&text);
        look_clean(g->steps[i].detail, ascii, &text);
        labels[i].detail = arena_str(arena, str_from(buf_cstr(&text))).ptr;
        buf_clear(&text);
        if (g->steps[i].when != NULL) {
            buf_add_cstr(&text, "if ");
            look_clean(g->steps[i].when, ascii, &text);
        }
        labels[i].when = arena_str(arena, str_from(buf_cstr(&text))).ptr;
        if (labels[i].id == NULL || labels[i].detail == NULL || labels[i].when == NULL) {
            labels = NULL;
            break;
        }
        const int a = look_columns(labels[i].id);
        const int b = look_columns(labels[i].detail);
        const int when = look_columns(labels[i].when);
        const int c = when < WHEN_COLUMNS ? when : WHEN_COLUMNS;
        labels[i].columns = a > b ? a : b;
        labels[i].columns = c > labels[i].columns ? c : labels[i].columns;
    }
    buf_done(&text);
    return labels;
}

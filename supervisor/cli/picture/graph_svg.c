/* A graph as SVG: the same layout as on a terminal, without a limit of its width. */
#include "supervisor/cli/picture/layout_internal.h"
#include "supervisor/cli/picture/svg_internal.h"

enum { COLUMN_PX = 8, ROW_PX = 18, EDGE_PX = 16, TITLE_PX = 28 };

static int x_of(int column)
{
    return EDGE_PX + column * COLUMN_PX;
}

/* Text cut to the columns of its box. */
static void put_line(const char *clean, const char *class, int x, int y, int columns,
                     struct buf *text, struct buf *out)
{
    buf_clear(text);
    look_fit(clean, columns, false, false, text);
    buf_printf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    look_xml(buf_cstr(text), out);
    buf_add_cstr(out, "</text>");
}

static void put_box(const struct layout *l, const struct label *labels, const struct node *node,
                    int y, int rows, struct buf *text, struct buf *out)
{
    const struct graph_step *step = &l->graph->steps[node->step];
    const int x = x_of(node->x);
    struct buf line;

    buf_add_cstr(out, "<g><title>");
    svg_text(step->id, text, out);
    buf_add_cstr(out, step->detail[0] != 0 ? " (" : "");
    svg_text(step->detail, text, out);
    buf_add_cstr(out, step->detail[0] != 0 ? ")" : "");
    buf_add_cstr(out, step->when != NULL ? " if " : "");
    svg_text(step->when != NULL ? step->when : "", text, out);
    buf_add_cstr(out, step->status[0] != 0 ? ": " : "");
    svg_text(step->status, text, out);
    buf_printf(out,
               "</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\" "
               "stroke=\"%s\"/>",
               x, y, node->width * COLUMN_PX, rows * ROW_PX - ROW_PX / 2, look_fill(step->status),
               look_stroke(step->status));
    put_line(labels[node->step].id, "i", x + 2 * COLUMN_PX, y + 26, node->width - BOX_FRAME, text,
             out);
    put_line(labels[node->step].detail, "d", x + 2 * COLUMN_PX, y + 46, node->width - BOX_FRAME,
             text, out);
    buf_init(&line, LABEL_BYTES_MAX);
    for (int i = 0; layout_wrap(labels[node->step].when, node->width - BOX_FRAME, i, &line); i++) {
        put_line(buf_cstr(&line), "d", x + 2 * COLUMN_PX, y + 46 + (i + 1) * ROW_PX,
                 node->width - BOX_FRAME, text, out);
    }
    buf_done(&line);
    buf_add_cstr(out, "</g>\n");
}

/* box: the height of the boxes above, top: their lower edge. */
static void put_link(const struct graph *g, const struct layout *l, const struct link *link,
                     int top, int box, int tracks, struct buf *out)
{
    const struct node *from = &l->nodes[link->from];
    const bool bend = l->nodes[link->to].bend;
    const int rows = tracks > 0 ? tracks : 1;
    const int begin = top - (from->bend ? box : ROW_PX / 2);
    const int end = top + (rows + 1) * ROW_PX;

    const bool dashed = !bend && g->steps[l->nodes[link->to].step].when != NULL;
    buf_printf(out, "<path%s%s d=\"M%d %dV%dH%dV%d\"/>\n", bend ? "" : " marker-end=\"url(#a)\"",
               dashed ? " stroke-dasharray=\"4 4\"" : "", x_of(from->column), begin,
               top + from->track * ROW_PX + ROW_PX / 2, x_of(link->column), end);
}

/* A dot where a line branches, so that no crossing looks like one. */
static void put_branches(const struct layout *l, const struct net *net, int top, struct buf *out)
{
    const struct node *node = &l->nodes[net->node];
    const int y = top + net->track * ROW_PX + ROW_PX / 2;
    const bool ends = node->column == net->left || node->column == net->right;

    for (uint32_t i = 0; i < node->n_out; i++) {
        const int c = l->links[node->out_at + i].column;
        if ((c > net->left && c < net->right) || c == node->column) {
            buf_printf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"3\"/>\n", x_of(c), y);
        }
    }
    if (!ends && node->n_out > 1) {
        buf_printf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"3\"/>\n", x_of(node->column), y);
    }
}

enum bt_code graph_svg(const struct graph *g, struct arena *arena, struct buf *out,
                       struct bt_error *err)
{
    struct label *labels = layout_labels(g, false, arena);
    struct layout l;
    struct buf text;
    bool fits = true;
    int y = EDGE_PX + TITLE_PX;
    int height;
    enum bt_code code;

    if (labels == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the drawing");
    }
    code = layout_make(g, labels, 0, arena, &l, &fits, err);
    if (code != BT_OK) {
        return code;
    }
    height = y + EDGE_PX;
    for (uint32_t i = 0; i < l.n_layers; i++) {
        const int tracks = l.layers[i].tracks;
        height += (layout_box_rows(&l.layers[i]) +
                   (i + 1 < l.n_layers ? (tracks > 0 ? tracks : 1) + 1 : 0)) *
                  ROW_PX;
    }
    buf_init(&text, SVG_TEXT_MAX);
    svg_open(g->title, l.width * COLUMN_PX + 2 * EDGE_PX, height, &text, out);
    for (uint32_t i = 0; i < l.n_layers; i++) {
        const struct layer *layer = &l.layers[i];
        const int rows = (layer->tracks > 0 ? layer->tracks : 1) + 1;
        const int box = layout_box_rows(layer) * ROW_PX;
        for (uint32_t k = 0; k < layer->n; k++) {
            const struct node *node = &l.nodes[layer->nodes[k]];
            for (uint32_t j = 0; j < node->n_out; j++) {
                put_link(g, &l, &l.links[node->out_at + j], y + box, box, layer->tracks, out);
            }
            if (!node->bend) {
                put_box(&l, labels, node, y, layout_box_rows(layer), &text, out);
            }
        }
        for (uint32_t k = 0; k < layer->n_nets; k++) {
            put_branches(&l, &layer->nets[k], y + box, out);
        }
        y += box + rows * ROW_PX;
    }
    buf_add_cstr(out, "</svg>\n");
    buf_done(&text);
    return buf_check(out, err);
}

/* What all SVG pictures have: head, styles, title. */
#include "supervisor/cli/picture/svg_internal.h"

#include "supervisor/cli/picture/look.h"

enum { TITLE_COLUMNS = 40, CHARACTER_PX = 8 };

void svg_text(const char *raw, struct buf *text, struct buf *out)
{
    buf_clear(text);
    look_clean(raw, false, text);
    look_xml(buf_cstr(text), out);
}

void svg_open(const char *title, int width, int height, struct buf *text, struct buf *out)
{
    int columns = width / CHARACTER_PX - 4;
    struct buf clean;

    columns = columns < TITLE_COLUMNS ? TITLE_COLUMNS : columns;
    width = width < (TITLE_COLUMNS + 4) * CHARACTER_PX ? (TITLE_COLUMNS + 4) * CHARACTER_PX : width;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
               "height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>",
               width, height, width, height);
    svg_text(title, text, out);
    buf_printf(out,
               "</title>\n<style>text{font:13px ui-monospace,\"DejaVu Sans Mono\",monospace;"
               "fill:#222}.d{fill:#666}.h{font-weight:bold}path{fill:none;stroke:#666;"
               "shape-rendering:crispEdges}circle{fill:#666}</style>\n"
               "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
               "markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
               "style=\"fill:#666;stroke:none\"/></marker></defs>\n"
               "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
               "<text class=\"h\" x=\"16\" y=\"26\">",
               width, height);
    buf_init(&clean, SVG_TEXT_MAX);
    look_clean(title, false, &clean);
    buf_clear(text);
    look_fit(buf_cstr(&clean), columns, false, false, text);
    look_xml(buf_cstr(text), out);
    buf_done(&clean);
    buf_add_cstr(out, "</text>\n");
}

/* What all SVG pictures have. */
#ifndef PICTURE_SVG_H
#define PICTURE_SVG_H

#include "protocol/base/buf.h"

enum { SVG_TEXT_MAX = 1 << 20 }; /* bytes of the scratch buffer `text` */

/* Appends the head: styles, a white ground, the title, of which the picture shows as much as its
 * width takes. text is scratch; sizes are in pixels. */
void svg_open(const char *title, int width, int height, struct buf *text, struct buf *out);
/* Appends any text as text of XML. */
void svg_text(const char *raw, struct buf *text, struct buf *out);
#endif

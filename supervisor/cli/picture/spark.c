/* Sparklines. */
#include "supervisor/cli/picture/spark.h"

#include <string.h>

enum { LEVELS = 8 };

void spark_add(struct spark *s, double value)
{
    if (s->n == SPARK_VALUES) {
        memmove(s->at, s->at + 1, (SPARK_VALUES - 1) * sizeof *s->at);
        s->n--;
    }
    s->at[s->n++] = value;
}

void spark_put(const struct spark *s, int columns, double top, const struct look *look,
               struct buf *out)
{
    static const char *const bars[LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char ascii[LEVELS + 1] = "_.:-=+*#";
    const uint32_t shown = columns <= 0 ? 0 : s->n < (uint32_t)columns ? s->n : (uint32_t)columns;
    const double *at = s->at + s->n - shown;
    const bool given = top > 0;

    for (uint32_t i = 0; !given && i < shown; i++) {
        top = at[i] > top ? at[i] : top;
    }
    for (int i = (int)shown; i < columns; i++) {
        buf_add_byte(out, ' ');
    }
    buf_add_cstr(out, look->color && shown > 0 ? "\033[36m" : "");
    for (uint32_t i = 0; i < shown; i++) {
        const double part = top > 0 ? at[i] / top : 0;
        const int level = part <= 0 ? 0 : part >= 1 ? LEVELS - 1 : 1 + (int)(part * (LEVELS - 1));
        const int bar = level < LEVELS ? level : LEVELS - 1;
        if (look->ascii) {
            buf_add_byte(out, (uint8_t)ascii[bar]);
        } else {
            buf_add_cstr(out, bars[bar]);
        }
    }
    buf_add_cstr(out, look->color && shown > 0 ? look_color_off(look) : "");
}

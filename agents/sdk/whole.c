#include "agents/sdk/whole.h"

#include <stdarg.h>
#include <stdio.h>

enum { SENTENCE_MAX = 1024 };

void whole_mark(struct bt_step *step, struct buf *text, const char *fmt, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    if (text->len > 0 && text->at[text->len - 1] != '\n') {
        buf_add_byte(text, '\n');
    }
    buf_printf(text, "[not whole: %s]\n", sentence);
    bt_step_reply_truncated(step);
}

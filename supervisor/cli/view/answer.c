#include "supervisor/cli/view/answer.h"

#include <stdio.h>
#include <string.h>

#include "protocol/limits.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/text.h"

void answer_init(struct answer *a)
{
    *a = (struct answer){.open = false};
    buf_init(&a->text, LIMIT_STEP_BYTES);
}

void answer_done(struct answer *a)
{
    buf_done(&a->text);
}

static void print(struct answer *a, const char *text)
{
    size_t n = strlen(text);

    if (n > 0) {
        cli_print_safe(text);
        a->open = text[n - 1] != '\n';
        (void)fflush(stdout);
    }
}

void answer_piece(struct answer *a, uint64_t index, const char *text)
{
    if (index == 0 && a->text.len > 0) {
        answer_break(a);
        answer_clear(a);
    }
    buf_add_cstr(&a->text, text);
    print(a, text);
}

void answer_whole(struct answer *a, const char *text)
{
    size_t shown = a->text.bad == BT_OK ? a->text.len : 0;

    if (shown > 0 && strncmp(text, (const char *)a->text.at, shown) == 0) {
        text += shown; /* only the part that is not printed yet */
    } else {
        answer_break(a);
    }
    print(a, text);
    if (a->open || (shown == 0 && text[0] == 0)) {
        (void)fputc('\n', stdout);
    }
    a->open = false;
    (void)fflush(stdout);
    answer_clear(a);
}

void answer_break(struct answer *a)
{
    if (a->open) {
        (void)fputc('\n', stdout);
        (void)fflush(stdout);
        a->open = false;
    }
}

void answer_clear(struct answer *a)
{
    buf_clear(&a->text);
}

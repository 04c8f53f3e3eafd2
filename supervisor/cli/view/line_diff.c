#include "supervisor/cli/view/line_diff.h"

#include <stdint.h>
#include <stdlib.h>

/* Lines of the part that differs; their product is the memory. */
enum { LINES_MAX = 2000 };

struct lines {
    struct str *at;
    size_t n;
};

static bool split(struct str text, struct lines *ret)
{
    size_t n = 1;
    size_t from = 0;

    for (size_t i = 0; i < text.len; i++) {
        n += text.ptr[i] == '\n';
    }
    *ret = (struct lines){.at = calloc(n, sizeof *ret->at)};
    for (size_t i = 0; ret->at != NULL && i <= text.len; i++) {
        if (i == text.len || text.ptr[i] == '\n') {
            ret->at[ret->n++] = (struct str){text.ptr + from, i - from};
            from = i + 1;
        }
    }
    return ret->at != NULL;
}

static void put(struct buf *out, const char *mark, struct str line)
{
    buf_add_cstr(out, mark);
    buf_add_str(out, line);
    buf_add_byte(out, '\n');
}

/* The part between the common beginning and the common end. */
static void middle(const struct str *a, size_t n, const struct str *b, size_t m, struct buf *out)
{
    uint16_t *longest =
        n <= LINES_MAX && m <= LINES_MAX ? calloc((n + 1) * (m + 1), sizeof *longest) : NULL;
    size_t i = 0;
    size_t j = 0;

    for (size_t x = n; longest != NULL && x-- > 0;) {
        for (size_t y = m; y-- > 0;) {
            const uint16_t down = longest[(x + 1) * (m + 1) + y];
            const uint16_t right = longest[x * (m + 1) + y + 1];
            longest[x * (m + 1) + y] = str_eq(a[x], b[y])
                                           ? (uint16_t)(longest[(x + 1) * (m + 1) + y + 1] + 1)
                                       : down > right ? down
                                                      : right;
        }
    }
    while (i < n || j < m) {
        if (longest != NULL && i < n && j < m && str_eq(a[i], b[j])) {
            put(out, "  ", a[i]);
            i++;
            j++;
        } else if (i < n && (j == m || longest == NULL ||
                             longest[(i + 1) * (m + 1) + j] >= longest[i * (m + 1) + j + 1])) {
            put(out, "- ", a[i++]);
        } else {
            put(out, "+ ", b[j++]);
        }
    }
    free(longest);
}

void line_diff(struct str before, struct str after, struct buf *out)
{
    struct lines a = {.n = 0};
    struct lines b = {.n = 0};
    size_t head = 0;
    size_t tail = 0;

    if (!split(before, &a) || !split(after, &b)) {
        out->bad = BT_NOMEM;
    } else {
        while (head < a.n && head < b.n && str_eq(a.at[head], b.at[head])) {
            put(out, "  ", a.at[head++]);
        }
        while (tail < a.n - head && tail < b.n - head &&
               str_eq(a.at[a.n - 1 - tail], b.at[b.n - 1 - tail])) {
            tail++;
        }
        middle(a.at + head, a.n - head - tail, b.at + head, b.n - head - tail, out);
        for (size_t i = a.n - tail; i < a.n; i++) {
            put(out, "  ", a.at[i]);
        }
    }
    free(a.at);
    free(b.at);
}

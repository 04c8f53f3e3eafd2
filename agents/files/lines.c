#include "agents/files/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol/base/utf8.h"

static void init(struct lines *l, int fd)
{
    *l = (struct lines){.fd = fd, .eof = fd < 0};
    buf_init(&l->line, LINES_LINE_MAX);
    buf_init(&l->repaired, (size_t)LINES_LINE_MAX * 4);
}

enum bt_code lines_of_file(struct lines *l, int fd, struct bt_error *err)
{
    init(l, fd);
    l->block = malloc(LINES_BLOCK);
    if (l->block == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a block of the file");
    }
    l->at = l->block;
    l->end = l->block;
    return BT_OK;
}

void lines_of_text(struct lines *l, struct str text)
{
    init(l, -1);
    l->at = (const uint8_t *)text.ptr;
    l->end = text.len > 0 ? l->at + text.len : l->at;
}

void lines_done(struct lines *l)
{
    free(l->block);
    l->block = NULL;
    buf_done(&l->line);
    buf_done(&l->repaired);
}

static enum bt_code fill(struct lines *l, struct bt_error *err)
{
    ssize_t n;

    do {
        n = read(l->fd, l->block, LINES_BLOCK);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_errno(err, errno, "reading");
    }
    l->at = l->block;
    l->end = l->block + n;
    l->eof = n == 0;
    if (n > 0 && memchr(l->block, 0, (size_t)n) != NULL) {
        return err_set(err, BT_INVALID, "it is a binary file (it has zero bytes); expected text");
    }
    return BT_OK;
}

/* Reads the bytes up to the next "\n". */
static enum bt_code gather(struct lines *l, bool *ret_any, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (;;) {
        const uint8_t *stop;
        if (l->at == l->end) {
            code = l->eof ? BT_OK : fill(l, err);
            if (code != BT_OK || l->at == l->end) {
                return code;
            }
        }
        *ret_any = true;
        stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
        buf_add(&l->line, l->at, (size_t)((stop == NULL ? l->end : stop) - l->at));
        if (l->line.bad == BT_LIMIT) {
            return err_set(err, BT_LIMIT,
                           "line %llu has more than %d bytes, which is no line of a text; split it",
                           (unsigned long long)l->number + 1, LINES_LINE_MAX);
        }
        l->at = stop == NULL ? l->end : stop + 1;
        if (stop != NULL) {
            return buf_check(&l->line, err);
        }
    }
}

enum bt_code lines_next(struct lines *l, struct str *ret, bool *ret_more, struct bt_error *err)
{
    bool any = false;
    enum bt_code code;

    buf_clear(&l->line);
    code = gather(l, &any, err);
    *ret_more = code == BT_OK && any;
    if (!*ret_more) {
        return code;
    }
    l->number++;
    if (l->line.len > 0 && l->line.at[l->line.len - 1] == '\r') {
        buf_truncate(&l->line, l->line.len - 1);
    }
    *ret = buf_str(&l->line);
    if (!utf8_valid(ret->ptr, ret->len) ||
        (ret->len > 0 && memchr(ret->ptr, 0, ret->len) != NULL)) {
        buf_clear(&l->repaired);
        l->replaced += buf_add_repaired(&l->repaired, *ret);
        code = buf_check(&l->repaired, err);
        *ret = buf_str(&l->repaired);
    }
    return code;
}

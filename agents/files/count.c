/* count: how many lines and words a file or a text has, streaming. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/files/files.h"
#include "agents/sdk/input.h"

enum { BLOCK = 64 * 1024 };

struct tally {
    uint64_t lines, words;
    bool inside;     /* a word goes on in the next block */
    bool unfinished; /* the last byte was no line end */
};

static void add(struct tally *t, const uint8_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool blank = at[i] == ' ' || (at[i] >= '\t' && at[i] <= '\r');
        t->lines += at[i] == '\n';
        t->words += !blank && !t->inside;
        t->inside = !blank;
    }
    t->unfinished = n > 0 ? at[n - 1] != '\n' : t->unfinished;
}

static enum bt_code count_file(struct bt_step *step, int fd, struct tally *t, struct bt_error *err)
{
    uint8_t *block = malloc(BLOCK);
    enum bt_code code = block == NULL ? err_set(err, BT_NOMEM, "out of memory for a block") : BT_OK;
    ssize_t n = 1;

    while (code == BT_OK && n > 0) {
        do {
            n = read(fd, block, BLOCK);
        } while (n < 0 && errno == EINTR);
        if (n < 0) {
            code = err_errno(err, errno, "reading");
        } else if (memchr(block, 0, (size_t)n) != NULL) {
            code =
                err_set(err, BT_INVALID, "it is a binary file (it has zero bytes); expected text");
        } else if (bt_step_cancelled(step)) {
            code =
                err_set(err, BT_CANCELLED, "cancelled at line %llu", (unsigned long long)t->lines);
        } else {
            add(t, block, (size_t)n);
        }
    }
    free(block);
    return code;
}

static void reply(struct bt_step *step, const struct tally *t)
{
    struct str unit = files_param(step, "unit");
    struct buf data;
    struct buf text;

    buf_init(&data, LIMIT_CONTROL_BYTES);
    buf_init(&text, LIMIT_CONTROL_BYTES);
    doc_put_map(&data, 2);
    files_put_count(&data, "lines", t->lines);
    files_put_count(&data, "words", t->words);
    buf_printf(&text, "%llu", (unsigned long long)(str_is(unit, "words") ? t->words : t->lines));
    files_reply(step, &data, &text);
    buf_done(&data);
    buf_done(&text);
}

void files_count(struct bt_step *step, void *self)
{
    const struct files *f = self;
    struct str path = files_param(step, "path");
    const char *text = path.ptr == NULL ? input_text(step, "text") : NULL;
    struct tally t = {0};
    struct bt_error err;
    struct stat st;
    int fd = -1;
    enum bt_code code = BT_OK;

    if (text != NULL) {
        add(&t, (const uint8_t *)text, strlen(text));
    } else if (path.ptr == NULL) {
        code = err_set(&err, BT_INVALID, "there is nothing to count: give a path or a text");
    } else {
        code = confine_open(&f->read, path, CONFINE_FILE, &fd, &st, &err);
        code = code == BT_OK ? count_file(step, fd, &t, &err) : code;
    }
    if (code == BT_OK) {
        t.lines += t.unfinished;
        reply(step, &t);
    } else {
        bt_step_fail_error(step, &err);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

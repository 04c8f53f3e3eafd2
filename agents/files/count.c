/* count: how many lines and words a file or a text has, streaming. */
#include <unistd.h>

#include "agents/files/files.h"
#include "agents/files/lines.h"
#include "agents/sdk/input.h"

enum { POLL_LINES = 4096 };

struct tally {
    uint64_t lines, words;
};

static uint64_t count_words(struct str line)
{
    uint64_t n = 0;
    bool inside = false;

    for (size_t i = 0; i < line.len; i++) {
        const char c = line.ptr[i];
        const bool blank = c == ' ' || (c >= '\t' && c <= '\r');
        n += !blank && !inside;
        inside = !blank;
    }
    return n;
}

static enum bt_code run(struct bt_step *step, struct lines *lines, struct tally *ret,
                        struct bt_error *err)
{
    bool more = true;
    enum bt_code code = BT_OK;

    while (code == BT_OK && more) {
        struct str line = {"", 0};
        code = lines_next(lines, &line, &more, err);
        if (code == BT_OK && more) {
            ret->lines++;
            ret->words += count_words(line);
        }
        if (ret->lines % POLL_LINES == 1 && bt_step_cancelled(step)) {
            return err_set(err, BT_CANCELLED, "cancelled at line %llu",
                           (unsigned long long)ret->lines);
        }
    }
    return code;
}

static void reply(struct bt_step *step, const struct lines *lines, const struct tally *t)
{
    struct str unit = files_param(step, "unit");
    struct buf data;
    struct buf text;

    buf_init(&data, LIMIT_CONTROL_BYTES);
    buf_init(&text, LIMIT_CONTROL_BYTES);
    doc_put_map(&data, 3);
    files_put_count(&data, "lines", t->lines);
    files_put_count(&data, "words", t->words);
    files_put_count(&data, "cutLines", lines->cut);
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
    struct lines lines = {.fd = -1};
    struct tally t = {0};
    struct bt_error err;
    struct stat st;
    int fd = -1;
    enum bt_code code;

    if (text != NULL) {
        lines_of_text(&lines, str_from(text));
        code = BT_OK;
    } else if (path.ptr == NULL) {
        code = err_set(&err, BT_INVALID, "there is nothing to count: give a path or a text");
    } else {
        code = confine_open(&f->read, path, CONFINE_FILE, &fd, &st, &err);
        code = code == BT_OK ? lines_of_file(&lines, fd, &err) : code;
    }
    code = code == BT_OK ? run(step, &lines, &t, &err) : code;
    if (code == BT_OK) {
        reply(step, &lines, &t);
    } else {
        bt_step_fail_error(step, &err);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    lines_done(&lines);
}

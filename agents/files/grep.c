/* grep: streams a file and returns the lines that match a pattern. */
#include <unistd.h>

#include "agents/files/files.h"
#include "agents/files/lines.h"
#include "agents/sdk/regex.h"

enum { MATCHES_DEFAULT = 10000, MATCHES_MAX = 20000, CONTEXT_MAX = 10, POLL_LINES = 256 };

/* The last lines, as context before a match. */
struct ring {
    struct buf line[CONTEXT_MAX];
    uint64_t number[CONTEXT_MAX];
    uint32_t size;
    uint32_t n; /* number of lines in the ring */
    uint32_t next;
};

struct search {
    struct bt_step *step;
    struct regex *re;
    struct lines lines;
    uint32_t limit;
    uint32_t context;
    struct ring ring;
    uint32_t after;     /* context lines still to add after the last match */
    uint64_t shown;     /* number of the last line in the text */
    struct buf matches; /* msgpack of the elements of `matches` */
    struct buf text;
    uint32_t n;     /* number of those elements */
    uint64_t count; /* all lines that matched */
    bool truncated;
};

static void ring_add(struct ring *r, uint64_t number, struct str line)
{
    if (r->size > 0) {
        buf_clear(&r->line[r->next]);
        buf_add_str(&r->line[r->next], line);
        r->number[r->next] = number;
        r->next = (r->next + 1) % r->size;
        r->n = r->n < r->size ? r->n + 1 : r->n;
    }
}

static void show(struct search *s, uint64_t number, char mark, struct str line)
{
    if (s->context > 0) {
        if (s->shown > 0 && number > s->shown + 1) {
            buf_add_cstr(&s->text, "--\n");
        }
        buf_printf(&s->text, "%llu%c", (unsigned long long)number, mark);
    }
    buf_add_str(&s->text, line);
    buf_add_byte(&s->text, '\n');
    s->shown = number;
}

static void show_before(struct search *s)
{
    const struct ring *r = &s->ring;

    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t at = (r->next + r->size - r->n + i) % r->size;
        if (r->number[at] > s->shown) {
            show(s, r->number[at], '-', buf_str(&r->line[at]));
        }
    }
}

static void take(struct search *s, struct str line, bool found)
{
    const uint64_t number = s->lines.number;

    s->count += found;
    if (found && !s->truncated && (s->n == s->limit || s->text.len + line.len > FILES_TEXT_MAX)) {
        s->truncated = true;
        s->after = 0;
    }
    if (found && !s->truncated) {
        show_before(s);
        show(s, number, ':', line);
        doc_put_map(&s->matches, 2);
        files_put_count(&s->matches, "line", number);
        files_put_text(&s->matches, "text", line);
        s->n++;
        s->after = s->context;
    } else if (s->after > 0) {
        show(s, number, '-', line);
        s->after--;
    }
    if (!s->truncated) {
        ring_add(&s->ring, number, line);
    }
}

static enum bt_code run(struct search *s, struct bt_error *err)
{
    bool more = true;
    enum bt_code code = BT_OK;

    while (code == BT_OK && more) {
        struct str line;
        bool found = false;
        code = lines_next(&s->lines, &line, &more, err);
        if (code != BT_OK || !more) {
            break;
        }
        if (s->lines.number % POLL_LINES == 0 && bt_step_cancelled(s->step)) {
            return err_set(err, BT_CANCELLED, "cancelled at line %llu",
                           (unsigned long long)s->lines.number);
        }
        code = regex_find(s->re, line, &found, err);
        if (code != BT_OK) {
            return err_wrap(err, "line %llu", (unsigned long long)s->lines.number);
        }
        take(s, line, found);
    }
    return code;
}

static void reply(struct search *s, struct str path)
{
    struct buf data;

    buf_init(&data, LIMIT_STEP_BYTES);
    doc_put_map(&data, 7);
    files_put_text(&data, "path", path);
    files_put_count(&data, "count", s->count);
    files_put_count(&data, "lines", s->lines.number);
    files_put_count(&data, "cutLines", s->lines.cut);
    files_put_count(&data, "replaced", s->lines.replaced);
    files_put_bool(&data, "truncated", s->truncated);
    doc_put_cstr(&data, "matches");
    doc_put_array(&data, s->n);
    buf_add_str(&data, buf_str(&s->matches));
    if (s->matches.bad != BT_OK) {
        data.bad = s->matches.bad;
    }
    files_reply(s->step, &data, &s->text);
    buf_done(&data);
}

static void search_init(struct search *s)
{
    buf_init(&s->matches, LIMIT_RESULT_BYTES);
    buf_init(&s->text, LIMIT_RESULT_BYTES);
    s->ring.size = s->context;
    for (uint32_t i = 0; i < CONTEXT_MAX; i++) {
        buf_init(&s->ring.line[i], (size_t)LINES_LINE_MAX * 4);
    }
}

static void search_done(struct search *s)
{
    buf_done(&s->matches);
    buf_done(&s->text);
    for (uint32_t i = 0; i < CONTEXT_MAX; i++) {
        buf_done(&s->ring.line[i]);
    }
    lines_done(&s->lines);
    regex_free(s->re);
}

void files_grep(struct bt_step *step, void *self)
{
    const struct files *f = self;
    struct str path = files_param(step, "path");
    struct search s = {.step = step,
                       .limit = files_param_count(step, "limit", MATCHES_DEFAULT, MATCHES_MAX),
                       .context = files_param_count(step, "context", 0, CONTEXT_MAX)};
    struct bt_error err;
    struct stat st;
    int fd = -1;
    enum bt_code code;

    search_init(&s);
    code = regex_new(files_param(step, "pattern"), bt_step_param_bool(step, "ignoreCase", false),
                     &s.re, &err);
    if (code == BT_OK) {
        code = confine_open(&f->read, path, CONFINE_FILE, &fd, &st, &err);
    }
    if (code == BT_OK) {
        code = lines_of_file(&s.lines, fd, &err);
        if (code == BT_OK) {
            code = run(&s, &err);
        }
        if (code != BT_OK) {
            (void)err_wrap(&err, "'%.*s'", path.len > 200 ? 200 : (int)path.len, path.ptr);
        }
        (void)close(fd);
    }
    if (code == BT_OK) {
        reply(&s, path);
    } else {
        bt_step_fail_error(step, &err);
    }
    search_done(&s);
}

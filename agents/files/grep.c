/* grep: streams a file and returns the lines that match a pattern. */
#include <unistd.h>

#include "agents/files/artifact.h"
#include "agents/files/files.h"
#include "agents/files/lines.h"
#include "agents/sdk/regex.h"
#include "agents/sdk/whole.h"

enum {
    MATCHES_MAX = 35000, /* five values each: a result has LIMIT_NODES of them */
    CONTEXT_MAX = 10,
    POLL_LINES = 256,
    BYTES_MAX = LIMIT_RESULT_BYTES - 64 * 1024, /* of the text and the data together */
    MATCH_BYTES = 32                            /* of a match in the data, beside its line */
};

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
    struct bt_artifact *to; /* gets the lines instead of matches and text; or NULL */
    bool limited;           /* the step asked for a limit */
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
        if (r->line[at].bad != BT_OK) {
            s->text.bad = r->line[at].bad; /* there was no memory for the line */
        } else if (r->number[at] > s->shown) {
            show(s, r->number[at], '-', buf_str(&r->line[at]));
        }
    }
}

static void take(struct search *s, struct str line, bool found)
{
    const uint64_t number = s->lines.number;

    s->count += found;
    if (found && !s->truncated &&
        (s->n == s->limit ||
         (s->to == NULL &&
          s->text.len + s->matches.len + 2 * line.len + MATCH_BYTES > BYTES_MAX))) {
        s->truncated = true;
        s->after = 0;
    }
    if (found && !s->truncated) {
        show_before(s);
        show(s, number, ':', line);
        if (s->to == NULL) {
            doc_put_map(&s->matches, 2);
            files_put_count(&s->matches, "line", number);
            files_put_text(&s->matches, "text", line);
        }
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
        if (s->to != NULL && s->text.len > 0) {
            code = bt_artifact_write(s->to, s->text.at, s->text.len, err);
            buf_clear(&s->text);
        }
    }
    return code;
}

/* Runs with the lines in a file of the plan. */
static enum bt_code run_artifact(struct search *s, struct bt_error *err)
{
    enum bt_code code = bt_artifact_create(s->step, "lines.txt", "text/plain", &s->to, err);

    if (code != BT_OK) {
        return code;
    }
    code = run(s, err);
    if (code != BT_OK) {
        bt_artifact_abort(s->to);
        return code;
    }
    buf_printf(&s->text, "%u lines", s->n);
    return bt_artifact_commit(s->to, err);
}

/* Over a cap that the step did not ask for. */
static enum bt_code too_large(const struct search *s, struct bt_error *err)
{
    return err_set(
        err, BT_LIMIT,
        "result_too_large: %llu lines match, and a result holds %d lines and 3 MiB, %u "
        "of these; use artifact: true, narrow the pattern, or set `limit` to get the first "
        "ones",
        (unsigned long long)s->count, MATCHES_MAX, s->n);
}

static void reply(struct search *s, struct str path)
{
    struct buf data;

    if (s->truncated) {
        whole_mark(s->step, &s->text,
                   "the first %u of %llu lines that match; raise `limit` (at most %d), or narrow "
                   "the pattern",
                   s->n, (unsigned long long)s->count, MATCHES_MAX);
    }
    buf_init(&data, LIMIT_STEP_BYTES);
    doc_put_map(&data, s->to == NULL ? 6 : 5);
    files_put_text(&data, "path", path);
    files_put_count(&data, "count", s->count);
    files_put_count(&data, "lines", s->lines.number);
    files_put_count(&data, "replaced", s->lines.replaced);
    files_put_bool(&data, "truncated", s->truncated);
    if (s->to == NULL) {
        doc_put_cstr(&data, "matches");
        doc_put_array(&data, s->n);
        buf_add_str(&data, buf_str(&s->matches));
    }
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
    const bool artifact = files_wants_artifact(step);
    const uint32_t most = artifact ? UINT32_MAX - 1 : MATCHES_MAX;
    struct search s = {.step = step,
                       .limit = files_param_count(step, "limit", most, most),
                       .limited = bt_step_has_param(step, "limit"),
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
            code = artifact ? run_artifact(&s, &err) : run(&s, &err);
        }
        if (code == BT_OK && s.truncated && !s.limited) {
            code = too_large(&s, &err);
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

/* csv: turns lines into rows, by the named groups of a pattern or by a delimiter. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/cells/csv.h"
#include "agents/files/artifact.h"
#include "agents/files/files.h"
#include "agents/files/lines.h"
#include "agents/files/rows.h"
#include "agents/sdk/input.h"
#include "agents/sdk/regex.h"
#include "agents/sdk/whole.h"
#include "protocol/base/utf8.h"

enum { POLL_LINES = 256 };

struct source {
    struct bt_step *step;
    int fd; /* -1 = the text */
    struct str text;
    struct str path; /* for error messages; empty for a text */
    uint64_t replaced;
    struct bt_artifact *to; /* gets the rows; or NULL */
};

static enum bt_code start_rows(struct source *src, struct rows *r, struct bt_error *err)
{
    struct doc params = src->step->req.parameters;
    const struct rows_wish wish = {
        .columns = doc_get(params, STR_LIT("columns")),
        .where = doc_get(params, STR_LIT("where")),
        .types = doc_get(params, STR_LIT("types")),
        .limit = files_param_count(src->step, "limit", 0,
                                   src->to == NULL ? ROWS_VALUES_MAX : UINT32_MAX)};
    enum bt_code code = rows_init(r, &wish, err);

    return code == BT_OK && src->to != NULL ? rows_to(r, src->to, err) : code;
}

/* ---- by a pattern ---- */

static enum bt_code name_groups(const struct regex *re, struct rows *r, uint32_t *group,
                                struct bt_error *err)
{
    for (uint32_t i = 1; i <= regex_groups(re); i++) {
        const char *name = regex_group_name(re, i);
        if (name != NULL) {
            group[r->n] = i;
            r->columns[r->n++] = str_from(name);
        }
    }
    return r->n > 0 ? BT_OK
                    : err_set(err, BT_INVALID,
                              "pattern: name its groups, they are the columns: (?<day>\\S+)");
}

static enum bt_code match_lines(struct source *src, struct regex *re, const uint32_t *group,
                                struct rows *r, struct lines *l, struct bt_error *err)
{
    struct str cells[REGEX_GROUPS_MAX + 1];
    enum bt_code code = BT_OK;

    while (code == BT_OK && r->more < ROWS_MORE_MAX) {
        struct str line;
        bool more = false;
        bool found = false;
        code = lines_next(l, &line, &more, err);
        if (code != BT_OK || !more) {
            break;
        }
        if (l->number % POLL_LINES == 0 && bt_step_cancelled(src->step)) {
            return err_set(err, BT_CANCELLED, "cancelled at line %llu",
                           (unsigned long long)l->number);
        }
        code = regex_find(re, line, &found, err);
        if (code != BT_OK) {
            return err_wrap(err, "line %llu", (unsigned long long)l->number);
        }
        if (!found) {
            r->skipped++;
            continue;
        }
        for (uint32_t i = 0; i < r->n; i++) {
            cells[i] = regex_group(re, group[i]);
        }
        code = rows_add(r, cells, err);
    }
    return code;
}

static enum bt_code by_pattern(struct source *src, struct str pattern, struct rows *r,
                               struct regex **ret_re, struct bt_error *err)
{
    uint32_t group[REGEX_GROUPS_MAX + 1];
    struct lines l = {0};
    enum bt_code code =
        regex_new(pattern, bt_step_param_bool(src->step, "ignoreCase", false), ret_re, err);

    if (code == BT_OK) {
        code = name_groups(*ret_re, r, group, err);
    }
    if (code == BT_OK) {
        code = start_rows(src, r, err);
    }
    if (code == BT_OK && src->fd >= 0) {
        code = lines_of_file(&l, src->fd, err);
    } else if (code == BT_OK) {
        lines_of_text(&l, src->text);
    }
    if (code == BT_OK) {
        code = match_lines(src, *ret_re, group, r, &l, err);
    }
    src->replaced = l.replaced;
    lines_done(&l);
    return code;
}

/* ---- by a delimiter ---- */

/* A CSV text, read block by block. */
struct feed {
    struct source *src;
    struct csv csv;
    uint8_t *block; /* of a file; or NULL */
    struct str left;
    bool last;
    struct buf names; /* the columns' names, which rows borrow */
    struct buf repaired;
    struct str cells[ROWS_COLUMNS_MAX];
};

static enum bt_code fill(struct feed *f, struct bt_error *err)
{
    ssize_t n;

    do {
        n = read(f->src->fd, f->block, LINES_BLOCK);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_errno(err, errno, "reading");
    }
    f->left = (struct str){(const char *)f->block, (size_t)n};
    f->last = n == 0;
    return BT_OK;
}

static enum bt_code next_record(struct feed *f, bool *ret_record, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    *ret_record = false;
    while (code == BT_OK && !*ret_record) {
        if (f->left.len == 0 && !f->last) {
            code = fill(f, err);
        }
        if (code == BT_OK) {
            code = csv_next(&f->csv, &f->left, f->last, ret_record, err);
        }
        if (code == BT_OK && !*ret_record && f->last) {
            break;
        }
    }
    return code;
}

/* Puts the record's fields into cells as UTF-8. */
static enum bt_code take_cells(struct feed *f, struct bt_error *err)
{
    size_t end[ROWS_COLUMNS_MAX];
    bool valid = true;

    for (uint32_t i = 0; i < f->csv.n; i++) {
        f->cells[i] = csv_cell(&f->csv, i);
        valid = valid && utf8_valid(f->cells[i].ptr, f->cells[i].len);
    }
    if (valid) {
        return BT_OK;
    }
    buf_clear(&f->repaired);
    for (uint32_t i = 0; i < f->csv.n; i++) {
        f->src->replaced += buf_add_repaired(&f->repaired, f->cells[i]);
        end[i] = f->repaired.len;
    }
    for (uint32_t i = 0; i < f->csv.n && f->repaired.bad == BT_OK; i++) {
        size_t start = i == 0 ? 0 : end[i - 1];
        f->cells[i] = (struct str){(const char *)f->repaired.at + start, end[i] - start};
    }
    return buf_check(&f->repaired, err);
}

/* The caller's names replace the header line that the text lacks. */
static enum bt_code given_names(struct feed *f, struct rows *r, struct bt_error *err)
{
    struct doc columns = doc_get(f->src->step->req.parameters, STR_LIT("columns"));
    uint32_t n = columns.ptr == NULL ? 0 : doc_head(columns).n;

    if (n == 0 || n > ROWS_COLUMNS_MAX) {
        return err_set(err, BT_INVALID,
                       "columns: a text without a header line needs their names, at most %d",
                       ROWS_COLUMNS_MAX);
    }
    for (r->n = 0; r->n < n; r->n++) {
        r->columns[r->n] = doc_string(doc_at(columns, r->n));
    }
    return BT_OK;
}

static enum bt_code header_names(struct feed *f, struct rows *r, struct bt_error *err)
{
    bool record = false;
    enum bt_code code = next_record(f, &record, err);

    if (code == BT_OK && !record) {
        code = err_set(err, BT_INVALID, "CSV: there is no header line");
    }
    if (code == BT_OK) {
        code = take_cells(f, err);
    }
    for (uint32_t i = 0; i < f->csv.n && code == BT_OK; i++) {
        buf_add_str(&f->names, f->cells[i]);
    }
    if (code == BT_OK) {
        code = buf_check(&f->names, err);
    }
    for (size_t at = 0; code == BT_OK && r->n < f->csv.n; at += f->cells[r->n++].len) {
        struct str name = {(const char *)f->names.at + at, f->cells[r->n].len};
        if (name.len == 0) {
            return err_set(err, BT_INVALID, "CSV header: column %u has no name; give it one",
                           r->n + 1);
        }
        for (uint32_t i = 0; i < r->n; i++) {
            if (str_eq(r->columns[i], name)) {
                return err_set(err, BT_INVALID, "CSV header: the column '%.*s' is there twice",
                               (int)utf8_cut(name.ptr, name.len, 80), name.ptr);
            }
        }
        r->columns[r->n] = name;
    }
    return code == BT_OK && r->n == 1 && files_param(f->src->step, "delimiter").ptr == NULL
               ? csv_check_only_name(r->columns[0], err)
               : code;
}

static enum bt_code take_records(struct feed *f, struct rows *r, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    bool record = true;

    for (uint64_t i = 0; code == BT_OK && r->more < ROWS_MORE_MAX; i++) {
        code = next_record(f, &record, err);
        if (code != BT_OK || !record) {
            break;
        }
        if (i % POLL_LINES == 0 && bt_step_cancelled(f->src->step)) {
            return err_set(err, BT_CANCELLED, "cancelled at line %llu",
                           (unsigned long long)f->csv.line);
        }
        if (f->csv.n > r->n) {
            return err_set(err, BT_INVALID, "CSV record %llu: %u fields under a header of %u",
                           (unsigned long long)i + (f->names.len > 0 ? 2 : 1), f->csv.n, r->n);
        }
        code = take_cells(f, err);
        for (uint32_t k = f->csv.n; k < r->n; k++) {
            f->cells[k] = (struct str){NULL, 0};
        }
        if (code == BT_OK) {
            code = rows_add(r, f->cells, err);
        }
    }
    r->skipped = f->csv.blank;
    return code;
}

static enum bt_code by_delimiter(struct feed *f, struct rows *r, struct bt_error *err)
{
    struct source *src = f->src;
    char delimiter = ',';
    enum bt_code code = csv_delimiter(files_param(src->step, "delimiter"), &delimiter, err);

    csv_init(&f->csv, delimiter);
    buf_init(&f->names, CSV_RECORD_MAX * 3);
    buf_init(&f->repaired, CSV_RECORD_MAX * 3);
    f->left = src->text;
    f->last = src->fd < 0;
    if (code == BT_OK && src->fd >= 0) {
        f->block = malloc(LINES_BLOCK);
        code = f->block == NULL ? err_set(err, BT_NOMEM, "out of memory for a block of the file")
                                : BT_OK;
    }
    if (code == BT_OK) {
        code = bt_step_param_bool(src->step, "header", true) ? header_names(f, r, err)
                                                             : given_names(f, r, err);
    }
    if (code == BT_OK) {
        code = start_rows(src, r, err);
    }
    return code == BT_OK ? take_records(f, r, err) : code;
}

static void feed_done(struct feed *f)
{
    csv_done(&f->csv);
    buf_done(&f->names);
    buf_done(&f->repaired);
    free(f->block);
}

/* ---- the skill ---- */

static enum bt_code open_source(struct bt_step *step, const struct files *f, struct source *src,
                                struct bt_error *err)
{
    struct stat st;
    const char *text;

    *src = (struct source){.step = step, .fd = -1, .path = files_param(step, "path")};
    if (src->path.ptr != NULL) {
        return confine_open(&f->read, src->path, CONFINE_FILE, &src->fd, &st, err);
    }
    text = input_text(step, "text");
    if (text == NULL) {
        return err_set(err, BT_INVALID, "give path or text, or let a step before this one read it");
    }
    src->text = str_from(text);
    return BT_OK;
}

static void reply(struct bt_step *step, const struct rows *r, uint64_t replaced)
{
    struct buf data;
    struct buf text;

    buf_init(&data, LIMIT_STEP_BYTES);
    buf_init(&text, 4096);
    rows_put(r, replaced, &data);
    buf_printf(&text, "%u rows of %u columns; %llu lines were no rows", r->count, r->pick_n,
               (unsigned long long)r->skipped);
    if (r->more > 0) {
        whole_mark(step, &text,
                   "the first %u rows; %s%llu more are there; raise `limit`, or narrow the rows by "
                   "where",
                   r->count, r->more == ROWS_MORE_MAX ? "at least " : "",
                   (unsigned long long)r->more);
    }
    files_reply(step, &data, &text);
    buf_done(&data);
    buf_done(&text);
}

/* What one call needs; too large for a stack. */
struct job {
    struct rows rows;
    struct feed feed;
};

static enum bt_code read_rows(struct job *job, struct source *src, struct str pattern,
                              struct regex **ret_re, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    job->feed.src = src;
    if (files_wants_artifact(src->step)) {
        code = bt_artifact_create(src->step, "rows.csv", "text/csv", &src->to, err);
    }
    if (code == BT_OK) {
        code = pattern.ptr != NULL ? by_pattern(src, pattern, &job->rows, ret_re, err)
                                   : by_delimiter(&job->feed, &job->rows, err);
    }
    if (code == BT_OK) {
        code = rows_end(&job->rows, err);
    }
    if (code == BT_OK && src->to != NULL) {
        return bt_artifact_commit(src->to, err);
    }
    bt_artifact_abort(src->to);
    return code;
}

void files_csv(struct bt_step *step, void *self)
{
    struct str pattern = files_param(step, "pattern");
    struct job *job = calloc(1, sizeof *job);
    struct regex *re = NULL;
    struct source src = {.fd = -1};
    struct bt_error err;
    enum bt_code code = job == NULL ? err_set(&err, BT_NOMEM, "out of memory for rows")
                                    : open_source(step, self, &src, &err);

    if (code == BT_OK) {
        code = read_rows(job, &src, pattern, &re, &err);
        if (code != BT_OK && src.path.ptr != NULL) {
            (void)err_wrap(&err, "'%.*s'", src.path.len > 200 ? 200 : (int)src.path.len,
                           src.path.ptr);
        }
    }
    if (code == BT_OK) {
        reply(step, &job->rows, src.replaced);
    } else {
        bt_step_fail_error(step, &err);
    }
    if (src.fd >= 0) {
        (void)close(src.fd);
    }
    if (job != NULL) {
        rows_done(&job->rows);
        feed_done(&job->feed);
    }
    free(job);
    regex_free(re);
}

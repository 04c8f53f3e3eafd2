/* csv: turns lines into rows, by the named groups of a pattern or by a delimiter. */
#include <stdlib.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "agents/files/files.h"
#include "agents/files/lines.h"
#include "agents/files/rows.h"
#include "agents/sdk/input.h"
#include "agents/sdk/regex.h"
#include "agents/sdk/table.h"

enum { CSV_FILE_MAX = 16 * 1024 * 1024, POLL_LINES = 256 };

struct source {
    struct bt_step *step;
    int fd; /* -1 = the text */
    struct str text;
    struct str path; /* for error messages; empty for a text */
};

static enum bt_code start_rows(struct source *src, struct rows *r, struct bt_error *err)
{
    struct doc params = src->step->req.parameters;

    return rows_init(r, doc_get(params, STR_LIT("columns")), doc_get(params, STR_LIT("where")),
                     files_param_count(src->step, "limit", 0, ROWS_VALUES_MAX), err);
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

    while (code == BT_OK && !r->full) {
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
    lines_done(&l);
    return code;
}

/* ---- by a delimiter ---- */

static enum bt_code read_delimiter(struct str given, char *ret, struct bt_error *err)
{
    *ret = given.len == 1 ? given.ptr[0] : ',';
    if (str_is(given, "\\t") || str_is(given, "tab")) {
        *ret = '\t';
    } else if (given.ptr != NULL &&
               (given.len != 1 || strchr("\"\r\n", *ret) != NULL || (unsigned char)*ret >= 0x80)) {
        return err_set(err, BT_INVALID, "delimiter: expected one ASCII character, or tab");
    }
    return BT_OK;
}

/* The caller's column names replace the header line that the file lacks. */
static enum bt_code put_header(struct source *src, char delimiter, struct buf *out,
                               struct bt_error *err)
{
    struct doc columns = doc_get(src->step->req.parameters, STR_LIT("columns"));

    if (bt_step_param_bool(src->step, "header", true)) {
        return BT_OK;
    }
    if (columns.ptr == NULL || doc_head(columns).n == 0) {
        return err_set(err, BT_INVALID, "columns: a text without a header line needs their names");
    }
    for (uint32_t i = 0; i < doc_head(columns).n; i++) {
        if (i > 0) {
            buf_add_byte(out, (uint8_t)delimiter);
        }
        table_csv_field(doc_string(doc_at(columns, i)), delimiter, out);
    }
    buf_add_byte(out, '\n');
    return BT_OK;
}

static enum bt_code put_file(int fd, struct buf *out, struct bt_error *err)
{
    struct buf raw;
    enum bt_code code;

    buf_init(&raw, CSV_FILE_MAX + 512 * 1024);
    code = files_read_bytes(fd, 0, (size_t)CSV_FILE_MAX + 1, &raw, err);
    if (code == BT_OK && raw.len > CSV_FILE_MAX) {
        code = err_set(err, BT_LIMIT, "the file has more than %d MiB; use a pattern, which streams",
                       CSV_FILE_MAX / 1024 / 1024);
    }
    if (code == BT_OK && raw.len > 0 && memchr(raw.at, 0, raw.len) != NULL) {
        code = err_set(err, BT_INVALID, "it is a binary file (it has zero bytes); expected text");
    }
    if (code == BT_OK) {
        struct str s = buf_str(&raw);
        size_t bom = s.len >= 3 && memcmp(s.ptr, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        (void)buf_add_repaired(out, (struct str){s.ptr + bom, s.len - bom});
    }
    buf_done(&raw);
    return code;
}

/* The cells of one record; false when all are empty: a blank line is not a row. */
static bool take_cells(const cJSON *record, struct str *cells, uint32_t n)
{
    const cJSON *cell = record->child;
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        cells[i] = cJSON_IsString(cell) ? str_from(cell->valuestring) : (struct str){NULL, 0};
        any = any || cells[i].len > 0;
        cell = cell == NULL ? NULL : cell->next;
    }
    return any;
}

static enum bt_code take_table(struct source *src, const struct table *t, struct rows *r,
                               struct bt_error *err)
{
    struct str cells[ROWS_COLUMNS_MAX];
    enum bt_code code;

    for (int i = 0; i < t->n && i < ROWS_COLUMNS_MAX; i++) {
        r->columns[r->n++] = str_from(t->columns[i]);
    }
    code = start_rows(src, r, err);
    for (int i = 0; i < t->rows_n && code == BT_OK && !r->full; i++) {
        if (take_cells(t->rows[i], cells, r->n)) {
            code = rows_add(r, cells, err);
        } else {
            r->skipped++;
        }
    }
    return code;
}

static enum bt_code by_delimiter(struct source *src, struct rows *r, struct table *t,
                                 struct bt_error *err)
{
    char delimiter = ',';
    struct buf text;
    enum bt_code code = read_delimiter(files_param(src->step, "delimiter"), &delimiter, err);

    buf_init(&text, (size_t)CSV_FILE_MAX * 3 + LIMIT_CONTROL_BYTES);
    if (code == BT_OK) {
        code = put_header(src, delimiter, &text, err);
    }
    if (code == BT_OK && src->fd >= 0) {
        code = put_file(src->fd, &text, err);
    } else if (code == BT_OK) {
        buf_add_str(&text, src->text);
    }
    if (code == BT_OK) {
        code = buf_check(&text, err);
    }
    if (code == BT_OK) {
        code = table_read_csv(buf_cstr(&text), delimiter, t, err);
    }
    buf_done(&text);
    return code == BT_OK ? take_table(src, t, r, err) : code;
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

static void reply(struct bt_step *step, const struct rows *r)
{
    struct buf data;
    struct buf text;

    buf_init(&data, LIMIT_STEP_BYTES);
    buf_init(&text, 1024);
    rows_put(r, &data);
    buf_printf(&text, "%u rows of %u columns; %llu lines were no rows%s", r->count, r->pick_n,
               (unsigned long long)r->skipped, r->full ? "; there are more" : "");
    files_reply(step, &data, &text);
    buf_done(&data);
    buf_done(&text);
}

void files_csv(struct bt_step *step, void *self)
{
    struct str pattern = files_param(step, "pattern");
    struct rows *r = calloc(1, sizeof *r);
    struct regex *re = NULL;
    struct table t = {0};
    struct source src = {.fd = -1};
    struct bt_error err;
    enum bt_code code = r == NULL ? err_set(&err, BT_NOMEM, "out of memory for rows")
                                  : open_source(step, self, &src, &err);

    if (code == BT_OK) {
        code = pattern.ptr != NULL ? by_pattern(&src, pattern, r, &re, &err)
                                   : by_delimiter(&src, r, &t, &err);
        if (code != BT_OK && src.path.ptr != NULL) {
            (void)err_wrap(&err, "'%.*s'", src.path.len > 200 ? 200 : (int)src.path.len,
                           src.path.ptr);
        }
    }
    if (code == BT_OK) {
        reply(step, r);
    } else {
        bt_step_fail_error(step, &err);
    }
    if (src.fd >= 0) {
        (void)close(src.fd);
    }
    if (r != NULL) {
        rows_done(r);
    }
    free(r);
    regex_free(re);
    table_done(&t);
}

#include "agents/cells/csv.h"

#include "protocol/base/utf8.h"

static const uint8_t mark[] = {0xEF, 0xBB, 0xBF};

void csv_init(struct csv *c, char delimiter)
{
    *c = (struct csv){.delimiter = delimiter, .line = 1};
    buf_init(&c->text, CSV_RECORD_MAX);
}

void csv_done(struct csv *c)
{
    buf_done(&c->text);
}

struct str csv_cell(const struct csv *c, uint32_t ix)
{
    size_t start = ix == 0 ? 0 : c->end[ix - 1];

    return c->text.at == NULL ? (struct str){"", 0}
                              : (struct str){(const char *)c->text.at + start, c->end[ix] - start};
}

enum bt_code csv_delimiter(struct str given, char *ret, struct bt_error *err)
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

enum bt_code csv_check_only_name(struct str name, struct bt_error *err)
{
    static const char others[] = ";\t|";

    for (const char *c = others; *c != 0; c++) {
        if (memchr(name.ptr, *c, name.len) != NULL) {
            return err_set(err, BT_INVALID,
                           "CSV header: one column, '%.*s'; set delimiter to \"%.*s\", or to \",\" "
                           "when that is its name",
                           (int)utf8_cut(name.ptr, name.len, 80), name.ptr, *c == '\t' ? 3 : 1,
                           *c == '\t' ? "tab" : c);
        }
    }
    return BT_OK;
}

static enum bt_code end_field(struct csv *c, struct bt_error *err)
{
    if (c->n == CSV_FIELDS_MAX) {
        return err_set(err, BT_LIMIT, "CSV line %llu: more than %d fields",
                       (unsigned long long)c->line, CSV_FIELDS_MAX);
    }
    c->end[c->n++] = c->text.len;
    c->state = CSV_FIELD;
    return BT_OK;
}

/* An unquoted delimiter or line end, or the first byte of the text. True: the record is complete.
 */
static enum bt_code end_plain(struct csv *c, char byte, bool *ret_record, struct bt_error *err)
{
    enum bt_code code = end_field(c, err);

    if (code == BT_OK && byte != c->delimiter) {
        c->line++;
        c->after_cr = byte == '\r';
        *ret_record = true;
    }
    return code;
}

static enum bt_code after_quote(struct csv *c, char byte, bool *ret_record, struct bt_error *err)
{
    if (byte == '"') {
        buf_add_byte(&c->text, '"');
        c->state = CSV_QUOTED;
        return BT_OK;
    }
    if (byte == c->delimiter || byte == '\n' || byte == '\r') {
        return end_plain(c, byte, ret_record, err);
    }
    return err_set(err, BT_INVALID,
                   "CSV line %llu: characters after a closing quote; a quote inside a quoted field "
                   "is written twice (RFC 4180)",
                   (unsigned long long)c->line);
}

static bool is_special(const struct csv *c, char byte)
{
    return byte == 0 ||
           (c->state == CSV_QUOTED ? byte == '"'
                                   : byte == c->delimiter || byte == '\n' || byte == '\r');
}

/* Appends the bytes up to the next special one. */
static void take_run(struct csv *c, struct str *in)
{
    size_t n = 0;

    while (n < in->len && !is_special(c, in->ptr[n])) {
        c->line += in->ptr[n] == '\n'; /* only in quotes */
        n++;
    }
    buf_add(&c->text, in->ptr, n);
    in->ptr += n;
    in->len -= n;
}

/* Takes one byte, or a run of ordinary ones. */
static enum bt_code take(struct csv *c, struct str *in, bool *ret_record, struct bt_error *err)
{
    char byte = in->ptr[0];

    if (byte == 0) {
        return err_set(err, BT_INVALID,
                       "CSV line %llu: a zero byte; it is a binary file or UTF-16, expected "
                       "text in UTF-8",
                       (unsigned long long)c->line);
    }
    if (c->state == CSV_FIELD && byte != '"') {
        c->state = CSV_PLAIN;
    }
    if ((c->state == CSV_PLAIN || c->state == CSV_QUOTED) && !is_special(c, byte)) {
        take_run(c, in);
        return BT_OK;
    }
    in->ptr++;
    in->len--;
    if (c->state == CSV_FIELD) {
        c->state = CSV_QUOTED;
        c->opened = c->line;
        return BT_OK;
    }
    if (c->state == CSV_QUOTED) {
        c->state = CSV_QUOTE;
        return BT_OK;
    }
    return c->state == CSV_QUOTE ? after_quote(c, byte, ret_record, err)
                                 : end_plain(c, byte, ret_record, err);
}

/* It is no mark: its bytes so far are text. */
static void keep_mark(struct csv *c)
{
    buf_add(&c->text, mark, c->bom);
    c->state = c->bom > 0 ? CSV_PLAIN : c->state;
    c->bom = sizeof mark;
}

/* Skips what may stand before a record: the mark, the rest of a line end, blank lines. False: no
 * byte is left. */
static bool begin_record(struct csv *c, struct str *in)
{
    while (c->bom < sizeof mark && in->len > 0) {
        if ((uint8_t)in->ptr[0] != mark[c->bom]) {
            keep_mark(c);
            break;
        }
        c->bom++;
        in->ptr++;
        in->len--;
    }
    while (c->state == CSV_BETWEEN && in->len > 0 && (in->ptr[0] == '\n' || in->ptr[0] == '\r')) {
        bool rest = in->ptr[0] == '\n' && c->after_cr;
        c->after_cr = in->ptr[0] == '\r';
        c->line += !rest;
        c->blank += !rest;
        in->ptr++;
        in->len--;
    }
    return in->len > 0;
}

static enum bt_code end_of_text(struct csv *c, bool *ret_record, struct bt_error *err)
{
    if (c->state == CSV_QUOTED) {
        return err_set(err, BT_INVALID,
                       "CSV line %llu: a quoted field begins here and has no closing quote",
                       (unsigned long long)c->opened);
    }
    if (c->bom < sizeof mark) {
        keep_mark(c);
    }
    if (c->state == CSV_BETWEEN) {
        return BT_OK;
    }
    *ret_record = true;
    return end_field(c, err);
}

enum bt_code csv_next(struct csv *c, struct str *in, bool last, bool *ret_record,
                      struct bt_error *err)
{
    enum bt_code code = BT_OK;

    *ret_record = false;
    if (c->done) {
        c->done = false;
        c->n = 0;
        c->state = CSV_BETWEEN;
        buf_clear(&c->text);
    }
    while (in->len > 0 && code == BT_OK && !*ret_record) {
        if (c->state == CSV_BETWEEN) {
            if (!begin_record(c, in)) {
                break;
            }
            c->state = c->state == CSV_BETWEEN ? CSV_FIELD : c->state;
            c->after_cr = false;
        }
        code = take(c, in, ret_record, err);
    }
    if (code == BT_OK && !*ret_record && last && in->len == 0) {
        code = end_of_text(c, ret_record, err);
    }
    if (code == BT_OK && c->text.bad == BT_LIMIT) {
        code = err_set(err, BT_LIMIT,
                       "CSV line %llu: a record over %d MiB; is a closing quote missing?",
                       (unsigned long long)(c->opened > 0 ? c->opened : c->line),
                       CSV_RECORD_MAX / 1024 / 1024);
    }
    c->done = *ret_record;
    return code == BT_OK ? buf_check(&c->text, err) : code;
}

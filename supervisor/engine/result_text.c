#include "supervisor/engine/result_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/share.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"

enum {
    DEPTH_MAX = 4,     /* levels into which a cut goes down; deeper values stay or go as a whole */
    INNER_MIN = 32,    /* less of a value within another is left out */
    SHARED_MAX = 64,   /* members of a map among which the room is shared */
    SHARE_MIN = 128,   /* a smaller share is no use: then the first members stay */
    NAME_MAX_LEN = 32, /* of a member in the mark */
    NOTES_MAX = 3,     /* places that the mark names */
};

/* One cut. `piece` holds one value while it is measured. */
struct cutter {
    struct buf *out;
    struct buf piece;
    struct result_cut *cut;
    uint32_t notes;
    struct bt_error *err;
    enum bt_code code;
};

/* ---- the mark ---- */

/* Names come from agents: only a plain one may stand in a line of the supervisor. */
static bool is_plain(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-' || c == '.')) {
            return false;
        }
    }
    return name.len > 0 && name.len <= NAME_MAX_LEN;
}

static void note(struct cutter *c, uint64_t left, uint64_t of, const char *unit, struct str where)
{
    const size_t used = strlen(c->cut->what);
    char *at = c->cut->what + used;
    const size_t room = sizeof c->cut->what - used;

    c->notes++;
    if (c->notes > NOTES_MAX) {
        if (c->notes == NOTES_MAX + 1) {
            (void)snprintf(at, room, ", and more");
        }
        return;
    }
    (void)snprintf(at, room, "%s%llu of %llu %s%s%.*s", used > 0 ? ", " : "",
                   (unsigned long long)left, (unsigned long long)of, unit,
                   is_plain(where) ? " of " : "", is_plain(where) ? (int)where.len : 0,
                   is_plain(where) ? where.ptr : "");
}

/* ---- values ---- */

/* The value as JSON in c->piece. */
static size_t measure(struct cutter *c, struct doc d)
{
    buf_clear(&c->piece);
    if (c->code == BT_OK) {
        c->code = doc_to_json(d, false, &c->piece, c->err);
    }
    return c->piece.len;
}

static void put_piece(struct cutter *c)
{
    buf_add_str(c->out, buf_str(&c->piece));
}

static bool cut_value(struct cutter *c, struct doc d, size_t room, struct str where,
                      uint32_t depth);

/* Characters become up to six bytes of JSON, so the length that fits is found by trying. */
static bool cut_string(struct cutter *c, struct str s, size_t room, struct str where)
{
    size_t keep = utf8_cut(s.ptr, s.len, room - 2);
    struct buf part;

    buf_init(&part, s.len + 16);
    for (;;) {
        buf_clear(&part);
        doc_put_str(&part, (struct str){s.ptr, keep});
        const size_t n = measure(c, doc_from_buf(&part));
        if (n <= room || keep == 0 || c->code != BT_OK) {
            break;
        }
        const size_t less = (size_t)((double)keep * ((double)room / (double)n));
        keep = utf8_cut(s.ptr, s.len, less < keep ? less : keep - 1);
    }
    buf_done(&part);
    if (keep == 0) {
        return false;
    }
    put_piece(c);
    note(c, s.len - keep, s.len, "bytes", where);
    return true;
}

static bool cut_list(struct cutter *c, struct doc d, size_t room, struct str where, uint32_t depth)
{
    const size_t from = c->out->len;
    struct doc_cursor at = doc_cursor(d);
    struct doc_head head;
    uint32_t put = 0;

    (void)doc_next(&at, &head);
    const uint32_t n = head.n;
    buf_add_byte(c->out, '[');
    for (; put < n; put++) {
        const struct doc item = doc_skip(&at);
        const size_t used = c->out->len - from + (put > 0) + 1;
        const size_t left = room > used ? room - used : 0;
        if (measure(c, item) > left) {
            /* A list of one long thing: as much of it as fits. */
            put += put == 0 && cut_value(c, item, left, where, depth + 1);
            break;
        }
        if (put > 0) {
            buf_add_byte(c->out, ',');
        }
        put_piece(c);
    }
    buf_add_byte(c->out, ']');
    if (put < n) {
        note(c, n - put, n, "items", where);
    }
    return true;
}

/* What each member of a map may take with its key, its colon and its comma. */
static size_t share_room(struct cutter *c, struct doc d, size_t room, size_t *lens)
{
    struct doc_cursor at = doc_cursor(d);
    struct doc_head head;

    (void)doc_next(&at, &head);
    const uint32_t n = head.n;
    if (n > SHARED_MAX) {
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        lens[i] = measure(c, doc_skip(&at)) + 2;
        lens[i] += measure(c, doc_skip(&at));
    }
    const size_t share = share_fair(lens, n, room);
    return share < SHARE_MIN ? 0 : share;
}

static bool cut_map(struct cutter *c, struct doc d, size_t room, struct str where, uint32_t depth)
{
    const size_t from = c->out->len;
    size_t lens[SHARED_MAX];
    const size_t share = share_room(c, d, room > 2 ? room - 2 : 0, lens);
    struct doc_cursor at = doc_cursor(d);
    struct doc_head head;
    uint32_t put = 0;

    (void)doc_next(&at, &head);
    const uint32_t n = head.n;
    buf_add_byte(c->out, '{');
    for (uint32_t i = 0; i < n; i++) {
        const struct doc key = doc_skip(&at);
        const struct doc value = doc_skip(&at);
        const size_t before = c->out->len;
        const size_t used = before - from + (put > 0) + 1; /* with the brace at the end */
        size_t left = room > used ? room - used : 0;
        const size_t head_len = measure(c, key) + 1;
        left = share > 0 && share - 1 < left ? share - 1 : left;
        if (head_len >= left || c->code != BT_OK) {
            continue;
        }
        if (put > 0) {
            buf_add_byte(c->out, ',');
        }
        put_piece(c);
        buf_add_byte(c->out, ':');
        bool fits = measure(c, value) <= left - head_len;
        if (fits) {
            put_piece(c);
        } else if (share > 0) {
            fits = cut_value(c, value, left - head_len, doc_string(key), depth + 1);
        }
        if (!fits) {
            buf_truncate(c->out, before);
        }
        put += fits;
    }
    buf_add_byte(c->out, '}');
    if (put < n) {
        note(c, n - put, n, "members", where);
    }
    return true;
}

/* Appends what fits of a value that does not fit; false: nothing does. */
static bool cut_value(struct cutter *c, struct doc d, size_t room, struct str where, uint32_t depth)
{
    const struct doc_head head = doc_head(d);

    if (depth > DEPTH_MAX || room < (depth == 0 ? 2 : INNER_MIN) || c->code != BT_OK) {
        return false;
    }
    if (head.kind == DOC_ARRAY) {
        return cut_list(c, d, room, where, depth);
    }
    if (head.kind == DOC_MAP) {
        return cut_map(c, d, room, where, depth);
    }
    /* Half a number is another number. */
    return head.kind == DOC_STR && room > 2 && cut_string(c, head.str, room, where);
}

/* ---- results ---- */

/* Artifacts that are no files are URLs, or data in place. */
static struct doc part_of(struct doc result)
{
    const struct doc artifacts = doc_get(result, STR_LIT("artifacts"));
    struct doc d = doc_get(result, STR_LIT("text"));

    d = d.ptr != NULL ? d : doc_get(result, STR_LIT("data"));
    return d.ptr != NULL || doc_path(artifacts, STR_LIT("0.bytes")).ptr != NULL ? d : artifacts;
}

enum bt_code result_files_put(struct doc result, struct buf *out, struct bt_error *err)
{
    const struct doc list = doc_get(result, STR_LIT("artifacts"));
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head = {.kind = DOC_NIL};

    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return BT_OK;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc a = doc_skip(&c);
        const struct doc bytes = doc_get(a, STR_LIT("bytes"));
        const struct str type = doc_string(doc_get(a, STR_LIT("mediaType")));
        if (bytes.ptr != NULL && doc_head(bytes).kind == DOC_UINT) {
            buf_add_cstr(out, out->len > 0 && out->at[out->len - 1] != '\n' ? "\n" : "");
            buf_printf(out, "[artifact %.*s: %llu bytes%s%.*s]",
                       STR_ARG(doc_string(doc_get(a, STR_LIT("name")))),
                       (unsigned long long)doc_head(bytes).u, type.len > 0 ? ", " : "",
                       STR_ARG(type));
        }
    }
    return buf_check(out, err);
}

/* A template takes the data of a result that has both. */
static const char *member_of(struct doc result)
{
    const bool both = doc_get(result, STR_LIT("text")).ptr != NULL &&
                      doc_get(result, STR_LIT("data")).ptr != NULL;

    return both ? ".text" : "";
}

/* The text as it is, or the JSON in *made. */
static enum bt_code whole_text(struct doc d, struct buf *made, struct str *ret,
                               struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (d.ptr == NULL) {
        *ret = (struct str){"", 0};
    } else if (doc_head(d).kind == DOC_STR) {
        *ret = doc_string(d);
    } else {
        code = doc_to_json(d, false, made, err);
        *ret = buf_str(made);
    }
    return code;
}

/* The lines of the files, as they stand after the text. */
static enum bt_code files_after(struct doc result, struct str text, struct buf *files,
                                struct bt_error *err)
{
    if (text.len > 0 && doc_path(result, STR_LIT("artifacts.0.bytes")).ptr != NULL) {
        buf_add_byte(files, '\n');
    }
    return result_files_put(result, files, err);
}

enum bt_code result_text_length(struct doc result, uint64_t *ret, struct bt_error *err)
{
    const struct doc d = part_of(result);
    struct buf made;
    struct buf files;
    struct str text;

    buf_init(&made, d.len * 8 + 64); /* a byte of a document is at most six of text */
    buf_init(&files, LIMIT_RESULT_BYTES);
    enum bt_code code = whole_text(d, &made, &text, err);
    code = code == BT_OK ? files_after(result, text, &files, err) : code;
    *ret = code == BT_OK ? text.len + files.len : 0;
    buf_done(&files);
    buf_done(&made);
    return code;
}

/* The end of the last line in the last quarter of what fits, or of the last character. */
static size_t text_end(struct str text, size_t max)
{
    const size_t keep = utf8_cut(text.ptr, text.len, max);
    const char *line = keep == 0 ? NULL : memrchr(text.ptr, '\n', keep);

    return line != NULL && (size_t)(line - text.ptr) >= keep / 4 * 3 ? (size_t)(line - text.ptr)
                                                                     : keep;
}

static enum bt_code put_cut(struct doc d, struct str text, size_t max, struct buf *out,
                            struct result_cut *ret, struct bt_error *err)
{
    struct cutter c = {.out = out, .cut = ret, .err = err, .code = BT_OK};
    const enum doc_kind kind = doc_head(d).kind;
    const size_t from = out->len;

    buf_init(&c.piece, d.len * 8 + 64);
    if (kind == DOC_STR) {
        const size_t keep = text_end(text, max);
        buf_add(out, text.ptr, keep);
        note(&c, text.len - keep, text.len, "bytes", (struct str){"", 0});
    } else if (!cut_value(&c, d, max, (struct str){"", 0}, 0)) {
        note(&c, text.len, text.len, "bytes", (struct str){"", 0});
    }
    ret->shown = out->len - from;
    buf_done(&c.piece);
    return c.code != BT_OK ? c.code : buf_check(out, err);
}

enum bt_code result_text_put(struct doc result, size_t max, struct buf *out, struct result_cut *ret,
                             struct bt_error *err)
{
    const struct doc d = part_of(result);
    struct buf made;
    struct buf files;
    struct str text = {"", 0};

    *ret = (struct result_cut){.member = member_of(result)};
    buf_init(&made, d.len * 8 + 64);
    buf_init(&files, LIMIT_RESULT_BYTES);
    enum bt_code code = whole_text(d, &made, &text, err);
    code = code == BT_OK ? files_after(result, text, &files, err) : code;
    if (code == BT_OK) {
        const size_t room = files.len < max ? max - files.len : max;
        ret->whole = text.len + files.len;
        ret->shown = text.len;
        if (text.len <= room) {
            buf_add_str(out, text);
            code = buf_check(out, err);
        } else {
            code = put_cut(d, text, room, out, ret, err);
        }
        if (code == BT_OK && files.len < max) {
            buf_add_str(out, buf_str(&files));
            ret->shown += files.len;
            code = buf_check(out, err);
        }
    }
    buf_done(&files);
    buf_done(&made);
    return code;
}

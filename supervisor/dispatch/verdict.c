#include "supervisor/dispatch/verdict.h"

#include "protocol/base/utf8.h"

enum { MISSING_TEXT_MAX = 200 };

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* What stands around a word without being part of one: "**Yes**, because" begins with "Yes". */
static bool is_ornament(char c)
{
    return str_is_space(c) || c == '"' || c == '\'' || c == '*' || c == '_' || c == '`' ||
           c == '#' || c == '(';
}

static bool word_is(struct str word, const char *lower)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if (c != lower[i]) { /* also at the end of `lower` */
            return false;
        }
    }
    return lower[word.len] == 0;
}

/* The first word: letters up to something that ends a word. "yes-but" and "ok_ish" are other words.
 */
static bool begins_with_yes(struct str text)
{
    static const char *const words[] = {"yes",  "pass", "passed",    "ok",
                                        "okay", "true", "sufficient"};
    size_t at = 0;
    size_t n = 0;

    while (at < text.len && is_ornament(text.ptr[at])) {
        at++;
    }
    while (at + n < text.len && is_letter(text.ptr[at + n])) {
        n++;
    }
    if (at + n < text.len && text.ptr[at + n] == '_' &&
        (at + n + 1 == text.len || !is_letter(text.ptr[at + n + 1]))) {
        /* _yes_: an ornament again */
    } else if (at + n < text.len) {
        unsigned char c = (unsigned char)text.ptr[at + n];
        if (c >= 0x80 || c == '-' || c == '_' || c == '/' || c == '?' || (c >= '0' && c <= '9') ||
            (c == '\'' && at + n + 1 < text.len && is_letter(text.ptr[at + n + 1]))) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (word_is((struct str){text.ptr + at, n}, words[i])) {
            return true;
        }
    }
    return false;
}

/* Models like to put their JSON between fences. */
static struct str without_fence(struct str s)
{
    const char *line;

    s = str_trimmed(s);
    if (s.len < 6 || memcmp(s.ptr, "```", 3) != 0 || memcmp(s.ptr + s.len - 3, "```", 3) != 0) {
        return s;
    }
    line = memchr(s.ptr, '\n', s.len);
    if (line == NULL) {
        return s;
    }
    s.len -= (size_t)(line - s.ptr) + 3;
    s.ptr = line;
    return str_trimmed(s);
}

/* What is longer is cut, with a mark. */
static void add_cut(struct buf *out, struct str s, size_t max)
{
    static const char mark[] = " ...";

    if (s.len > max) {
        buf_add(out, s.ptr, utf8_cut(s.ptr, s.len, max - (sizeof mark - 1)));
        buf_add_cstr(out, mark);
    } else {
        buf_add_str(out, s);
    }
}

/* The texts of a list, trimmed: others are left out. Returns how many there are, of which the first
 * VERDICT_MISSING_MAX are in `all`. */
static uint32_t list_texts(struct doc d, struct str all[VERDICT_MISSING_MAX])
{
    struct doc_cursor c = doc_cursor(d);
    struct doc_head head;
    uint32_t n = 0;

    if (d.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return 0;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str s = str_trimmed(doc_string(doc_skip(&c)));
        if (s.len > 0 && n++ < VERDICT_MISSING_MAX) {
            all[n - 1] = s;
        }
    }
    return n;
}

/* The list of what is missing; of one that is too long the last entry says how many more. */
static void take_missing(struct doc d, struct buf *missing, struct buf *text)
{
    struct str all[VERDICT_MISSING_MAX];
    const uint32_t total = list_texts(d, all);
    const uint32_t shown = total > VERDICT_MISSING_MAX ? VERDICT_MISSING_MAX - 1u : total;
    const uint32_t n = total > VERDICT_MISSING_MAX ? VERDICT_MISSING_MAX : total;
    struct buf one;
    struct buf list;

    if (n == 0) {
        return;
    }
    buf_init(&one, MISSING_TEXT_MAX);
    buf_init(&list, (VERDICT_MISSING_MAX + 1) * (MISSING_TEXT_MAX + 2));
    buf_add_cstr(&list, "missing: ");
    doc_put_array(missing, n);
    for (uint32_t i = 0; i < n; i++) {
        buf_clear(&one);
        if (i < shown) {
            add_cut(&one, all[i], MISSING_TEXT_MAX);
        } else {
            buf_printf(&one, "and %u more", total - shown);
        }
        doc_put_str(missing, buf_str(&one));
        buf_add_cstr(&list, i > 0 ? ", " : "");
        buf_add_str(&list, buf_str(&one));
    }
    if (text->len == 0) {
        add_cut(text, buf_str(&list), VERDICT_TEXT_MAX);
    }
    buf_done(&one);
    buf_done(&list);
}

/* One member's word: a boolean, or a text that begins with one. */
static enum verdict said(struct doc d)
{
    struct doc_head head = doc_head(d);

    if (d.ptr == NULL) {
        return VERDICT_UNREADABLE;
    }
    if (head.kind == DOC_BOOL) {
        return head.b ? VERDICT_YES : VERDICT_NO;
    }
    if (head.kind == DOC_STR && head.str.len > 0) {
        return begins_with_yes(head.str) ? VERDICT_YES : VERDICT_NO;
    }
    return VERDICT_UNREADABLE;
}

static enum verdict read_map(struct doc d, struct buf *text, struct buf *missing)
{
    static const char *const words[] = {"passed", "sufficient", "ok"};
    static const char *const reasons[] = {"diagnosis", "reason", "feedback"};
    enum verdict v = VERDICT_UNREADABLE;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        enum verdict one = said(doc_get(d, str_from(words[i])));
        if (one == VERDICT_NO || v == VERDICT_UNREADABLE) {
            v = one;
        }
    }
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0] && v != VERDICT_UNREADABLE; i++) {
        struct str s = str_trimmed(doc_string(doc_get(d, str_from(reasons[i]))));
        if (s.len > 0) {
            add_cut(text, s, VERDICT_TEXT_MAX);
            break;
        }
    }
    if (v == VERDICT_NO) {
        take_missing(doc_get(d, STR_LIT("missing")), missing, text);
    }
    return v;
}

static enum verdict read_doc(struct doc d, struct buf *text, struct buf *missing);

static enum verdict read_text(struct str s, struct buf *text, struct buf *missing)
{
    enum verdict v = VERDICT_UNREADABLE;
    struct str json = without_fence(s);
    struct buf parsed;

    s = str_trimmed(s);
    if (s.len == 0) {
        return VERDICT_UNREADABLE;
    }
    if (json.len > 0 && (json.ptr[0] == '{' || json.ptr[0] == '"')) {
        buf_init(&parsed, json_doc_capacity(json.len));
        if (json_to_doc(json, NULL, &parsed, NULL) == BT_OK) {
            v = read_doc(doc_from_buf(&parsed), text, missing);
        }
        buf_done(&parsed);
    }
    if (v == VERDICT_UNREADABLE) {
        buf_clear(text);
        buf_clear(missing);
        v = begins_with_yes(s) ? VERDICT_YES : VERDICT_NO;
        add_cut(text, s, VERDICT_TEXT_MAX);
    }
    return v;
}

static enum verdict read_doc(struct doc d, struct buf *text, struct buf *missing)
{
    struct doc_head head = doc_head(d);

    if (head.kind == DOC_MAP) {
        return read_map(d, text, missing);
    }
    if (head.kind == DOC_STR) {
        struct str s = str_trimmed(head.str);
        /* No JSON inside a JSON string: that would go on for ever. */
        add_cut(text, s, VERDICT_TEXT_MAX);
        return s.len == 0 ? VERDICT_UNREADABLE : begins_with_yes(s) ? VERDICT_YES : VERDICT_NO;
    }
    return said(d);
}

enum verdict verdict_read(const struct msg_result *result, struct buf *text, struct buf *missing)
{
    enum verdict v = VERDICT_UNREADABLE;

    if (result->data.ptr != NULL) {
        v = doc_head(result->data).kind == DOC_STR
                ? read_text(doc_string(result->data), text, missing)
                : read_doc(result->data, text, missing);
    }
    if (v == VERDICT_UNREADABLE && result->text.len > 0) {
        v = read_text(result->text, text, missing);
    } else if (v != VERDICT_UNREADABLE && text->len == 0) {
        add_cut(text, str_trimmed(result->text), VERDICT_TEXT_MAX);
    }
    if (v == VERDICT_UNREADABLE) {
        buf_clear(text);
        buf_add_cstr(text, "the answer is no verdict: expected data {\"passed\": true or false, "
                           "\"diagnosis\": text}, or a text that begins with yes or no");
    } else if (v == VERDICT_NO && text->len == 0) {
        buf_add_cstr(text, "the answer was no, without a reason");
    }
    return v;
}

struct doc answer_map(const struct msg_result *result, struct buf *parsed)
{
    struct str json = without_fence(result->text);

    if (result->data.ptr != NULL && doc_head(result->data).kind == DOC_MAP) {
        return result->data;
    }
    if (result->data.ptr != NULL && doc_head(result->data).kind == DOC_STR) {
        json = without_fence(doc_string(result->data));
    }
    if (json.len == 0 || json.ptr[0] != '{' || json_to_doc(json, NULL, parsed, NULL) != BT_OK) {
        return (struct doc){NULL, 0};
    }
    return doc_from_buf(parsed);
}

bool answer_impossible(struct doc answer, struct buf *text)
{
    struct str why = doc_string(doc_get(answer, STR_LIT("impossible")));

    if (why.len == 0) {
        return false;
    }
    buf_add_cstr(text, "Mission impossible: ");
    add_cut(text, why, VERDICT_TEXT_MAX - text->len);
    return true;
}

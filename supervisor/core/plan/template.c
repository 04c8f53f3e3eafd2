/* Finding templates. One pass, no copies. */
#include "supervisor/core/plan/template.h"

#include "protocol/base/assert.h"

static struct str cut(struct str s, size_t from, size_t to)
{
    return (struct str){s.ptr + from, to - from};
}

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct str trimmed(struct str s)
{
    while (s.len > 0 && blank(s.ptr[0])) {
        s = cut(s, 1, s.len);
    }
    while (s.len > 0 && blank(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

static bool segments_ok(struct str ref)
{
    size_t in_segment = 0;
    for (size_t i = 0; i < ref.len; i++) {
        const unsigned char c = (unsigned char)ref.ptr[i];
        if (c < 0x20 || c == 0x7f || c == '{' || c == '}' || c == '[' || c == ']') {
            return false;
        }
        if (c == '.' && in_segment == 0) {
            return false;
        }
        in_segment = c == '.' ? 0 : in_segment + 1;
    }
    return in_segment > 0;
}

/* The kind and the reference of the text between the braces. */
static enum template_kind inside(struct str word, struct str body, struct str *ret_ref)
{
    body = trimmed(body);
    if (body.len < word.len || memcmp(body.ptr, word.ptr, word.len) != 0) {
        return TEMPLATE_FOREIGN;
    }
    body = cut(body, word.len, body.len);
    if (body.len == 0 || (body.len == 1 && body.ptr[0] == '.')) {
        return TEMPLATE_NO_STEP;
    }
    if (body.ptr[0] == '[') {
        return TEMPLATE_BAD_PATH;
    }
    if (body.ptr[0] != '.') {
        return TEMPLATE_FOREIGN;
    }
    *ret_ref = cut(body, 1, body.len);
    return segments_ok(*ret_ref) ? TEMPLATE_OK : TEMPLATE_BAD_PATH;
}

/* The index of the next two equal characters c, or text.len. */
static size_t find_pair(struct str text, size_t from, char c)
{
    while (from + 1 < text.len) {
        const char *hit = memchr(text.ptr + from, c, text.len - from - 1);
        if (hit == NULL) {
            break;
        }
        if (hit[1] == c) {
            return (size_t)(hit - text.ptr);
        }
        from = (size_t)(hit - text.ptr) + 1;
    }
    return text.len;
}

bool template_next_of(struct str word, struct str text, size_t *from, struct template_ref *ret)
{
    size_t open = find_pair(text, *from, '{');
    if (open == text.len) {
        return false;
    }
    while (open + 2 < text.len && text.ptr[open + 2] == '{') {
        open++; /* {{{x}}}: the innermost pair */
    }
    const size_t next_open = find_pair(text, open + 2, '{');
    const size_t close = find_pair(cut(text, 0, next_open), open + 2, '}');
    const bool closed = close < next_open;
    *ret = (struct template_ref){.at = open};
    struct str ref = {NULL, 0};
    if (closed) {
        ret->len = close + 2 - open;
        ret->kind = inside(word, cut(text, open + 2, close), &ref);
    } else {
        ret->len = next_open - open;
        ret->kind = inside(word, cut(text, open + 2, next_open), &ref);
        ret->kind = ret->kind == TEMPLATE_FOREIGN ? TEMPLATE_FOREIGN : TEMPLATE_NOT_CLOSED;
    }
    ret->text = cut(text, open, open + ret->len);
    ret->ref = ret->kind == TEMPLATE_OK ? ref : (struct str){NULL, 0};
    *from = open + ret->len;
    return true;
}

bool template_next(struct str text, size_t *from, struct template_ref *ret)
{
    return template_next_of(STR_LIT("results"), text, from, ret);
}

/* "{{item}}": the word and nothing else. */
static bool is_bare(const struct template_ref *t, struct str word)
{
    if (t->kind != TEMPLATE_NO_STEP || t->text.len < 4 || str_is(word, "results")) {
        return false;
    }
    const struct str inner = trimmed(cut(t->text, 2, t->text.len - 2));
    return inner.len == word.len;
}

bool template_next_in(const struct str *words, uint32_t n, struct str text, size_t *from,
                      struct template_ref *ret, uint32_t *ret_word)
{
    const size_t start = *from;
    *ret_word = n;
    for (uint32_t i = 0; i < n; i++) {
        *from = start;
        if (!template_next_of(words[i], text, from, ret)) {
            return false;
        }
        if (ret->kind == TEMPLATE_FOREIGN) {
            continue;
        }
        if (is_bare(ret, words[i])) {
            ret->kind = TEMPLATE_OK;
            ret->ref = (struct str){"", 0};
        }
        *ret_word = i;
        return true;
    }
    return n > 0;
}

bool template_only_of(struct str word, struct str text, struct template_ref *ret)
{
    size_t from = 0;
    return template_next_of(word, text, &from, ret) && ret->kind == TEMPLATE_OK && ret->at == 0 &&
           ret->len == text.len;
}

bool template_split(struct str ref, struct str *id, struct str *path)
{
    if (id->ptr == NULL) {
        *id = ref;
        *path = (struct str){ref.ptr + ref.len, 0};
        return ref.len > 0;
    }
    size_t n = id->len;
    while (n > 0 && id->ptr[n - 1] != '.') {
        n--;
    }
    if (n == 0) {
        return false;
    }
    *id = cut(ref, 0, n - 1);
    *path = cut(ref, n, ref.len);
    return true;
}

const char *template_kind_text(enum template_kind k)
{
    static const char *const texts[] = {
        [TEMPLATE_OK] = "",
        [TEMPLATE_NOT_CLOSED] = "is not closed; write {{results.<stepId>}}",
        [TEMPLATE_NO_STEP] = "names no step; write {{results.<stepId>}}",
        [TEMPLATE_BAD_PATH] = "has a bad path; write {{results.<stepId>.name.0.name}}",
        [TEMPLATE_FOREIGN] = "",
    };
    _Static_assert(sizeof texts / sizeof texts[0] == TEMPLATE_KIND_COUNT, "a text for each");
    ASSERT((unsigned)k < TEMPLATE_KIND_COUNT);
    return texts[k];
}

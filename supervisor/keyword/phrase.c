#include "supervisor/keyword/phrase.h"

bool phrase_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool punctuation(char c)
{
    return c == ',' || c == ':' || c == ';' || c == '.' || c == '!' || c == '?';
}

struct str phrase_cut(struct str s, size_t from, size_t to)
{
    return (struct str){s.len == 0 ? s.ptr : s.ptr + from, to - from}; /* NULL has no offset */
}

struct str phrase_strip(struct str s)
{
    while (s.len > 0 && phrase_blank(s.ptr[0])) {
        s = phrase_cut(s, 1, s.len);
    }
    while (s.len > 0 && phrase_blank(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

size_t phrase_begins(struct str text, const char *words)
{
    size_t i = 0;
    for (; words[i] != '\0'; i++) {
        if (i >= text.len || lower(text.ptr[i]) != words[i]) {
            return 0;
        }
    }
    return i == text.len || phrase_blank(text.ptr[i]) ||
                   (punctuation(text.ptr[i]) &&
                    (i + 1 == text.len || phrase_blank(text.ptr[i + 1])))
               ? i
               : 0;
}

size_t phrase_quote(struct str text, size_t at)
{
    const char c = text.ptr[at];
    if (c != '"' && c != '`' && (c != '\'' || (at > 0 && !phrase_blank(text.ptr[at - 1])))) {
        return 0;
    }
    for (size_t i = at + 1; i < text.len && text.ptr[i] != '\n'; i++) {
        if (text.ptr[i] == c) {
            return i + 1;
        }
    }
    return 0;
}

bool phrase_word(struct str text, size_t *at, struct str *ret)
{
    while (*at < text.len && phrase_blank(text.ptr[*at])) {
        (*at)++;
    }
    const size_t start = *at;
    while (*at < text.len && !phrase_blank(text.ptr[*at])) {
        const size_t quoted = phrase_quote(text, *at);
        *at = quoted > 0 ? quoted : *at + 1;
    }
    size_t end = *at;
    while (end > start && punctuation(text.ptr[end - 1])) {
        end--;
    }
    *ret = phrase_cut(text, start, end);
    return *at > start;
}

size_t phrase_find(struct str text, const char *const *phrases, size_t n, size_t *ret_len)
{
    struct str word;
    size_t at = 0;
    while (phrase_word(text, &at, &word)) {
        const size_t start = (size_t)(word.ptr - text.ptr);
        const struct str rest = phrase_cut(text, start, text.len);
        for (size_t i = 0; i < n; i++) {
            *ret_len = phrase_begins(rest, phrases[i]);
            if (*ret_len > 0) {
                return start;
            }
        }
    }
    return PHRASE_NONE;
}

size_t phrase_comma(struct str text)
{
    for (size_t i = 0; i + 1 < text.len;) {
        const size_t quoted = phrase_quote(text, i);
        if (text.ptr[i] == ',' && phrase_blank(text.ptr[i + 1])) {
            return i;
        }
        i = quoted > 0 ? quoted : i + 1;
    }
    return PHRASE_NONE;
}

bool phrase_is(struct str word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n && word.len > 0; i++) {
        if (words[i][0] == lower(word.ptr[0]) && phrase_begins(word, words[i]) == word.len) {
            return true;
        }
    }
    return false;
}

bool phrase_gerund(struct str word)
{
    static const char *const nouns[] = {"anything", "evening", "everything", "meeting",
                                        "morning",  "nothing", "something",  "string",
                                        "thing",    "warning", "during"};
    static const char *const ending[] = {"ing"};
    return word.len >= 5 && phrase_is(phrase_cut(word, word.len - 3, word.len), ending, 1) &&
           !phrase_is(word, PHRASE_LIST(nouns));
}

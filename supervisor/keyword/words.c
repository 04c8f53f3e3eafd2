#include "supervisor/keyword/words.h"

#include "protocol/base/utf8.h"

/* ---- tokens ---- */

static bool one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool between(char c)
{
    switch (c) {
    case ' ':
    case '\t':
    case '\r':
    case '\n':
    case '"':
    case '`':
    case '\'':
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case '<':
    case '>':
    case '|':
        return true;
    default:
        return false;
    }
}

bool token_next(struct str text, size_t *at, struct str *ret)
{
    while (*at < text.len && between(text.ptr[*at])) {
        (*at)++;
    }
    const size_t start = *at;
    if (start >= text.len) {
        *ret = STR_LIT("");
        return false;
    }
    while (*at < text.len && !between(text.ptr[*at])) {
        (*at)++;
    }
    size_t end = *at;
    while (end > start && one_of(text.ptr[end - 1], ",;:.!?")) {
        end--;
    }
    *ret = (struct str){text.ptr + start, end - start};
    return *at > start;
}

static bool letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool starts(struct str s, const char *with)
{
    const struct str w = str_from(with);
    return s.len >= w.len && memcmp(s.ptr, w.ptr, w.len) == 0;
}

/* The extension of a name, or empty: 1 to 5 letters or digits, one letter at least, after
 * something. */
static struct str extension(struct str token)
{
    size_t n = 0;
    bool letters = false;
    while (n < token.len && letter_or_digit(token.ptr[token.len - 1 - n])) {
        const char c = token.ptr[token.len - 1 - n];
        letters = letters || c > '9';
        n++;
    }
    const bool dotted = n < token.len && token.ptr[token.len - 1 - n] == '.';
    if (!dotted || !letters || n < 1 || n > 5 || n + 2 > token.len) {
        return (struct str){"", 0};
    }
    return (struct str){token.ptr + token.len - n, n};
}

bool token_is_url(struct str token)
{
    return starts(token, "http://") || starts(token, "https://") || starts(token, "www.");
}

bool token_is_path(struct str token)
{
    if (token_is_url(token)) {
        return false;
    }
    const bool rooted = (starts(token, "/") || starts(token, "./") || starts(token, "../") ||
                         starts(token, "~/")) &&
                        token.len > 1;
    /* "and/or" is no path; "e.g" and "3.5" are no names. */
    return rooted || extension(token).len >= 2;
}

/* ---- words ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool in_word(char c)
{
    return letter_or_digit(c) || (unsigned char)c >= 0x80;
}

static bool vowel(char c)
{
    return one_of(c, "aeiouy");
}

static bool has_vowel(const struct word *w, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (vowel(w->text[i]) || (unsigned char)w->text[i] >= 0x80) {
            return true;
        }
    }
    return false;
}

static bool ends(const struct word *w, const char *with)
{
    const size_t n = strlen(with);
    return w->len >= n && memcmp(w->text + w->len - n, with, n) == 0;
}

static void singular(struct word *w)
{
    if (w->len < 4 || ends(w, "ss") || ends(w, "us") || ends(w, "is")) {
        return;
    }
    if (ends(w, "ies") && !ends(w, "eies") && !ends(w, "aies")) {
        w->len -= 2;
        w->text[w->len - 1] = 'y';
    } else if (ends(w, "ches") || ends(w, "shes") || ends(w, "xes") || ends(w, "sses")) {
        w->len -= 2;
    } else if (ends(w, "s")) {
        w->len -= 1;
    }
}

static void verb(struct word *w)
{
    const size_t drop = ends(w, "ing") ? 3 : ends(w, "ed") ? 2 : 0;
    if (drop == 0 || w->len < drop + 3 || !has_vowel(w, w->len - drop)) {
        return;
    }
    w->len -= drop;
    const char last = w->text[w->len - 1];
    if (last == w->text[w->len - 2] && !vowel(last) && !one_of(last, "lsz")) {
        w->len--; /* running -> run */
    }
}

static void show(struct word *w)
{
    /* A word may be cut in the middle of a character. */
    size_t n = w->len;
    while (n > 0 && !utf8_valid(w->text, n)) {
        n--;
    }
    memcpy(w->shown, w->text, n);
    w->shown[n] = '\0';
}

static void stem(struct word *w)
{
    singular(w);
    verb(w);
    if (w->len > 4 && ends(w, "e")) {
        w->len--; /* compute, computed, computing */
    }
}

static bool stop_word(const struct word *w)
{
    static const char *const words[] = {
        "a",    "an",    "and",   "are",   "as",   "at",     "be",   "by", "for",  "from", "in",
        "into", "is",    "it",    "its",   "me",   "my",     "of",   "on", "or",   "our",  "out",
        "that", "the",   "them",  "this",  "to",   "us",     "was",  "we", "were", "with", "you",
        "your", "their", "these", "those", "then", "please", "some", "so"};
    enum { LONGEST = 6 };
    for (size_t i = 0; i < sizeof words / sizeof words[0] && w->len <= LONGEST; i++) {
        /* Each word of each card comes here: most are told apart by their first letter. */
        if (words[i][0] == w->text[0] &&
            str_eq((struct str){w->text, w->len}, str_from(words[i]))) {
            return true;
        }
    }
    return false;
}

/* The next part of a token: "countByDay", "count_by_day", "count-by-day" are three words. */
static bool next_part(struct str *token, struct word *ret)
{
    size_t i = 0;
    ret->len = 0;
    while (i < token->len && !in_word(token->ptr[i])) {
        i++;
    }
    const size_t start = i;
    for (; i < token->len && in_word(token->ptr[i]); i++) {
        const char c = token->ptr[i];
        const bool hump = i > start && c >= 'A' && c <= 'Z' && token->ptr[i - 1] >= 'a' &&
                          token->ptr[i - 1] <= 'z';
        if (hump) {
            break;
        }
        if (ret->len < WORD_MAX) {
            ret->text[ret->len++] = lower(c);
        }
    }
    *token = (struct str){token->ptr + i, token->len - i};
    return ret->len > 0;
}

void words_init(struct words *w, struct str text)
{
    /* An empty text may have no address, to which nothing may be added. */
    *w = (struct words){.text = text.ptr == NULL ? STR_LIT("") : text, .token = STR_LIT("")};
}

static void set_word(struct word *w, struct str s)
{
    w->len = 0;
    for (size_t i = 0; i < s.len && i < WORD_MAX; i++) {
        w->text[w->len++] = lower(s.ptr[i]);
    }
    show(w);
}

bool words_next(struct words *w, struct word *ret)
{
    for (;;) {
        if (w->pending[0] != '\0') {
            set_word(ret, str_from(w->pending));
            w->pending[0] = '\0';
            return true;
        }
        while (next_part(&w->token, ret)) {
            if (!stop_word(ret)) {
                show(ret);
                stem(ret);
                return true;
            }
        }
        if (!token_next(w->text, &w->at, &w->token)) {
            return false;
        }
        const bool url = token_is_url(w->token);
        if (url || token_is_path(w->token)) {
            const struct str ext = url ? (struct str){"", 0} : extension(w->token);
            memcpy(w->pending, ext.ptr, ext.len);
            w->pending[ext.len] = '\0';
            w->token = (struct str){w->token.ptr, 0};
            set_word(ret, url ? STR_LIT("url") : STR_LIT("file"));
            return true;
        }
    }
}

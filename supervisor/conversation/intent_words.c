#include "supervisor/conversation/intent_words.h"

#include <stddef.h>

enum { DIGITS_MAX = 9 };

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

/* ' and the typographic one (E2 80 99). */
static size_t apostrophe(struct str text, size_t at)
{
    if (text.ptr[at] == '\'') {
        return 1;
    }
    return at + 2 < text.len && memcmp(text.ptr + at, "\xE2\x80\x99", 3) == 0 ? 3 : 0;
}

static size_t read_word(struct str text, size_t at, struct intent_word *w)
{
    size_t n = 0;

    while (at < text.len) {
        size_t skip = apostrophe(text, at);
        uint8_t c = (uint8_t)text.ptr[at];
        if (skip > 0) {
            at += skip;
            continue;
        }
        if (!is_letter(c)) {
            break;
        }
        if (n < INTENT_WORD_BYTES) {
            w->text[n] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
        }
        n++;
        at++;
    }
    w->text[n < INTENT_WORD_BYTES ? n : INTENT_WORD_BYTES] = 0;
    return n > INTENT_WORD_BYTES ? 0 : at;
}

bool intent_words_read(struct str text, struct intent_words *ret)
{
    size_t at = 0;

    ret->n = ret->i = 0;
    while (text.len > 0 && memchr(".!? \t\r\n", text.ptr[text.len - 1], 7) != NULL) {
        text.len--;
    }
    while (at < text.len) {
        struct intent_word *w = &ret->at[ret->n];
        uint8_t c = (uint8_t)text.ptr[at];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            at++;
            continue;
        }
        if (ret->n == INTENT_WORDS_MAX) {
            return false;
        }
        w->at = (uint32_t)at;
        if (is_letter(c)) {
            at = read_word(text, at, w);
            if (at == 0) {
                return false;
            }
        } else {
            w->text[0] = (char)c;
            w->text[1] = 0;
            at++;
        }
        w->end = (uint32_t)at;
        ret->n++;
    }
    return true;
}

/* How many words of w the phrase takes from here; 0 = it does not stand here. */
static uint32_t fits(const struct intent_words *w, const char *phrase, size_t len)
{
    uint32_t i = w->i;
    size_t at = 0;

    while (at < len) {
        const char *space = memchr(phrase + at, ' ', len - at);
        size_t n = space != NULL ? (size_t)(space - phrase) - at : len - at;
        if (i == w->n || strlen(w->at[i].text) != n || memcmp(w->at[i].text, phrase + at, n) != 0) {
            return 0;
        }
        i++;
        at += n + 1;
    }
    return i - w->i;
}

bool intent_eat(struct intent_words *w, const char *phrases)
{
    while (*phrases != 0) {
        size_t len = strcspn(phrases, "|");
        uint32_t n = fits(w, phrases, len);
        if (n > 0) {
            w->i += n;
            return true;
        }
        phrases += len + (phrases[len] == '|');
    }
    return false;
}

void intent_eat_all(struct intent_words *w, const char *phrases)
{
    while (intent_eat(w, phrases)) {
    }
}

static bool digits(const char *text, uint32_t *ret, const char **ret_rest)
{
    uint32_t v = 0;
    size_t n = 0;

    for (; text[n] >= '0' && text[n] <= '9' && n < DIGITS_MAX; n++) {
        v = v * 10 + (uint32_t)(text[n] - '0');
    }
    *ret = v;
    *ret_rest = text + n;
    return n > 0;
}

bool intent_eat_number(struct intent_words *w, uint32_t *ret)
{
    static const char *const NAMES[] = {
        "",          "one|first",     "two|second",   "three|third", "four|fourth", "five|fifth",
        "six|sixth", "seven|seventh", "eight|eighth", "nine|ninth",  "ten|tenth"};
    const char *rest;

    if (intent_at_end(w)) {
        return false;
    }
    if (digits(w->at[w->i].text, ret, &rest)) {
        bool whole = *rest == 0 || strcmp(rest, "st") == 0 || strcmp(rest, "nd") == 0 ||
                     strcmp(rest, "rd") == 0 || strcmp(rest, "th") == 0;
        w->i += whole;
        return whole;
    }
    for (uint32_t i = 1; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (intent_eat(w, NAMES[i])) {
            *ret = i;
            return true;
        }
    }
    return false;
}

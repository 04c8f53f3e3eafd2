#include "supervisor/keyword/expression.h"

#include "supervisor/keyword/phrase.h"

enum { DEPTH_MAX = 32 };

struct reader {
    struct str text;
    size_t at;
    unsigned depth;
    bool calculates; /* an operator, a function or parentheses were there */
};

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char peek(const struct reader *r)
{
    return r->at < r->text.len ? r->text.ptr[r->at] : '\0';
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->text.len && phrase_blank(r->text.ptr[r->at])) {
        r->at++;
    }
}

static bool read_number(struct reader *r)
{
    const size_t start = r->at;
    while (digit(peek(r))) {
        r->at++;
    }
    if (r->at == start) {
        return false;
    }
    if (peek(r) == '.' && r->at + 1 < r->text.len && digit(r->text.ptr[r->at + 1])) {
        for (r->at++; digit(peek(r)); r->at++) {
        }
    }
    return true;
}

static bool read_sum(struct reader *r);

/* "(...)": one expression, or several of a function. */
static bool read_group(struct reader *r, bool several)
{
    r->at++;
    r->depth++;
    r->calculates = true;
    if (r->depth > DEPTH_MAX) {
        return false;
    }
    for (;;) {
        if (!read_sum(r)) {
            return false;
        }
        skip_blanks(r);
        const char c = peek(r);
        r->at += c != '\0';
        if (c == ')') {
            r->depth--;
            return true;
        }
        if (c != ',' || !several) {
            return false;
        }
    }
}

static bool read_operand(struct reader *r)
{
    skip_blanks(r);
    if (peek(r) == '-' || peek(r) == '+') {
        r->at++;
    }
    if (peek(r) == '(') {
        return read_group(r, false);
    }
    const size_t start = r->at;
    while (letter(peek(r)) || (r->at > start && digit(peek(r)))) {
        r->at++;
    }
    return r->at > start ? peek(r) == '(' && read_group(r, true) : read_number(r);
}

/* Ends behind the last operand: blanks and words behind it are not its. */
static bool read_sum(struct reader *r)
{
    if (!read_operand(r)) {
        return false;
    }
    for (;;) {
        const size_t end = r->at;
        skip_blanks(r);
        const char c = peek(r);
        if (c == '\0' || strchr("+-*/%^", c) == NULL) {
            r->at = end;
            return true;
        }
        r->at++;
        if (!read_operand(r)) {
            return false;
        }
        r->calculates = true;
    }
}

static bool is_end(const struct reader *r)
{
    size_t at = r->at;
    while (at < r->text.len && strchr(",;:.!?=", r->text.ptr[at]) != NULL) {
        at++;
    }
    return at == r->text.len || phrase_blank(r->text.ptr[at]);
}

static bool is_date(struct str s)
{
    static const char form[] = "0000-00-00";
    for (size_t i = 0; i < sizeof form - 1; i++) {
        if (i >= s.len || (form[i] == '0' ? !digit(s.ptr[i]) : s.ptr[i] != form[i])) {
            return false;
        }
    }
    return true;
}

bool expression_find(struct str text, struct str *ret)
{
    struct str word;
    size_t at = 0;
    size_t tried = 0; /* what one attempt has read, another does not read again */
    while (phrase_word(text, &at, &word)) {
        const size_t start = (size_t)(word.ptr - text.ptr);
        struct reader r = {.text = text, .at = start};
        if (word.len == 0 || start < tried || is_date(word)) {
            continue;
        }
        if (read_sum(&r) && r.calculates && is_end(&r)) {
            *ret = phrase_cut(text, start, r.at);
            return true;
        }
        tried = r.at;
    }
    return false;
}

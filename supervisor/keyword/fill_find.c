/* What a clause has for a parameter. */
#include "supervisor/keyword/fill_parts.h"

#include <string.h>

#include "supervisor/keyword/words.h"

/* Schemas come from agents: what is looked at is bounded. */
enum { CHOICES_MAX = 32, WORDS_MAX = 16, CLAUSE_WORDS_MAX = 48 };

static bool is_number(struct str s)
{
    size_t digits = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            return false;
        }
        digits++;
    }
    return digits > 0 && digits <= 15;
}

bool fill_token(struct str clause, bool (*is)(struct str), size_t *at, struct str *ret)
{
    while (token_next(clause, at, ret)) {
        if (is(*ret)) {
            return true;
        }
    }
    return false;
}

bool fill_quoted(struct str clause, size_t *from, struct str *ret)
{
    for (size_t i = *from; i < clause.len; i++) {
        const char c = clause.ptr[i];
        const bool opens =
            c == '"' || c == '`' || (c == '\'' && (i == 0 || clause.ptr[i - 1] == ' '));
        const char *end = opens ? memchr(clause.ptr + i + 1, c, clause.len - i - 1) : NULL;
        if (end != NULL) {
            *ret = (struct str){clause.ptr + i + 1, (size_t)(end - clause.ptr) - i - 1};
            *from = (size_t)(end - clause.ptr) + 1;
            return true;
        }
    }
    return false;
}

bool fill_number(struct str clause, struct str *ret)
{
    size_t from = 0;
    size_t at = 0;
    struct str quote = {clause.ptr, 0};
    bool more = fill_quoted(clause, &from, &quote);
    while (fill_token(clause, is_number, &at, ret)) {
        while (more && quote.ptr + quote.len < ret->ptr) {
            more = fill_quoted(clause, &from, &quote);
        }
        if (!more || ret->ptr < quote.ptr) {
            return true;
        }
    }
    return false;
}

uint64_t fill_number_of(struct str digits)
{
    uint64_t n = 0;
    for (size_t i = 0; i < digits.len; i++) {
        n = n * 10 + (uint64_t)(digits.ptr[i] - '0');
    }
    return n;
}

struct clause_words {
    struct word at[CLAUSE_WORDS_MAX];
    uint32_t n;
};

static void read_words(struct str clause, struct clause_words *ret)
{
    struct words words;
    ret->n = 0;
    words_init(&words, clause);
    while (ret->n < CLAUSE_WORDS_MAX && words_next(&words, &ret->at[ret->n])) {
        ret->n++;
    }
}

/* How many words of `of` stand in the clause. */
static uint32_t words_in(struct str of, const struct clause_words *clause)
{
    struct words wanted;
    struct word w;
    uint32_t n = 0;
    words_init(&wanted, of);
    for (uint32_t i = 0; i < WORDS_MAX && words_next(&wanted, &w); i++) {
        for (uint32_t c = 0; c < clause->n; c++) {
            const struct word *there = &clause->at[c];
            if (str_eq((struct str){w.text, w.len}, (struct str){there->text, there->len})) {
                n++;
                break;
            }
        }
    }
    return n;
}

bool fill_choice(struct doc property, struct str clause, struct doc *ret)
{
    const struct doc values = doc_get(property, STR_LIT("enum"));
    const struct doc more = doc_get(property, STR_LIT("x-baton-words"));
    struct clause_words words;
    uint32_t best = 0;
    read_words(clause, &words);
    for (uint32_t i = 0; i < CHOICES_MAX; i++) {
        const struct doc value = doc_at(values, i);
        const struct str name = doc_string(value);
        if (value.ptr == NULL) {
            break;
        }
        if (name.ptr == NULL) {
            continue;
        }
        const uint32_t n =
            words_in(name, &words) + words_in(doc_string(doc_get(more, name)), &words);
        if (n > best) {
            best = n;
            *ret = value;
        }
    }
    return best > 0;
}

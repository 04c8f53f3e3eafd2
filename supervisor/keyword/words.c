/* Words: their stems, those that are no evidence, and what is no word but a value. */
#include <libstemmer.h>
#include <strings.h>

#include "protocol/base/utf8.h"
#include "supervisor/keyword/keyword_internal.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool text_in_word(char c)
{
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           (unsigned char)c >= 0x80;
}

bool text_is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* ---- lists ---- */

bool word_in(struct str word, const char *list)
{
    for (size_t n = 0; *list != '\0'; list += n + (list[n] == ' ')) {
        n = strcspn(list, " ");
        if (n == word.len && strncasecmp(word.ptr, list, n) == 0) {
            return true;
        }
    }
    return false;
}

bool word_is_frame(struct str word)
{
    const char *mark = memchr(word.ptr, '\'', word.len); /* "what's", "I'd" */
    word.len = mark != NULL ? (size_t)(mark - word.ptr) : word.len;
    return word_in(word, "a about all also am an another any are as at be between both by can "
                         "could does each every everything for from has have he her here hers "
                         "him his how i in inside into is it its just kindly know let lets like "
                         "many may me might mine much must my need of on onto our per please "
                         "shall she should so some thank thanks that the their them there these "
                         "they this those through to too us via want we what whats which will "
                         "with within would you your");
}

/* ---- values ---- */

static bool begins(struct str s, const char *with)
{
    const size_t n = strlen(with);
    return s.len > n && memcmp(s.ptr, with, n) == 0;
}

bool text_is_url(struct str s)
{
    return begins(s, "http://") || begins(s, "https://") || begins(s, "www.");
}

bool text_is_path(struct str s)
{
    const char *dot = memrchr(s.ptr, '.', s.len); /* an extension: 2 to 5 letters or digits */
    const size_t n = dot == NULL ? 0 : s.len - (size_t)(dot - s.ptr) - 1;
    bool name = dot > s.ptr && n >= 2 && n <= 5 && memchr(s.ptr, '@', s.len) == NULL &&
                !text_is_number((struct str){dot + 1, n});
    for (size_t i = 1; i <= n && name; i++) {
        name = text_in_word(dot[i]);
    }
    return !text_is_url(s) &&
           (name || begins(s, "/") || begins(s, "./") || begins(s, "../") || begins(s, "~/"));
}

bool text_is_number(struct str s)
{
    size_t i = s.len > 1 && text_is_one_of(s.ptr[0], "-+") ? 1 : 0;
    const bool number = i < s.len && text_is_one_of(s.ptr[i], "0123456789");
    while (i < s.len && text_is_one_of(s.ptr[i], "0123456789.,:-/%TZ")) {
        i++;
    }
    return number && i == s.len;
}

bool words_next(struct str text, size_t *at, struct str *ret)
{
    while (*at < text.len && !text_in_word(text.ptr[*at])) {
        const char c = text.ptr[(*at)++];
        const bool path = c == '/' && (*at < 2 || text_is_one_of(text.ptr[*at - 2], BLANKS));
        const char *quote = c == '"' ? memchr(text.ptr + *at, '"', text.len - *at) : NULL;
        *at = quote != NULL ? (size_t)(quote - text.ptr) + 1 : *at;
        while (path && *at < text.len && !text_is_one_of(text.ptr[*at], BLANKS)) {
            (*at)++;
        }
    }
    const size_t from = *at;
    bool hump = false; /* "countByDay" */
    while (*at < text.len && text_in_word(text.ptr[*at]) && !hump) {
        (*at)++;
        hump = *at < text.len && text.ptr[*at - 1] >= 'a' && text.ptr[*at - 1] <= 'z' &&
               text.ptr[*at] >= 'A' && text.ptr[*at] <= 'Z';
    }
    *ret = (struct str){*at > from ? text.ptr + from : "", *at - from};
    return *at > from;
}

/* ---- terms ---- */

/* Stems; the second stands for both: verbs that ask for the same work, and a few nouns. */
static const char *const synonyms[][2] = {
    {"calcul", "comput"},    {"evalu", "comput"},   {"display", "show"},     {"view", "show"},
    {"print", "show"},       {"locat", "find"},     {"eras", "delet"},       {"remov", "delet"},
    {"summaris", "summar"},  {"summari", "summar"}, {"folder", "directori"}, {"averag", "mean"},
    {"percentag", "percent"}};
enum { SYNONYMS = sizeof synonyms / sizeof synonyms[0] };

/* Valid until the next call. */
static struct str stem_of(struct goal *g, struct str word)
{
    sb_symbol text[WORD_BYTES];
    const size_t n = utf8_cut(word.ptr, word.len, sizeof text);
    for (size_t i = 0; i < n; i++) {
        text[i] = (sb_symbol)lower(word.ptr[i]);
    }
    const sb_symbol *stem = sb_stemmer_stem(g->stemmer, text, (int)n);
    const int len = sb_stemmer_length(g->stemmer);
    struct str s = {(const char *)stem, stem == NULL ? 0 : (size_t)len};
    for (size_t i = 0; i < SYNONYMS; i++) {
        s = str_is(s, synonyms[i][0]) ? str_from(synonyms[i][1]) : s;
    }
    return s;
}

/* Cards have many words and goals few: most are told apart by two letters, which no English stem
 * changes (but for dying, lying and tying). */
static bool *begin_of(struct goal *g, struct str word)
{
    const unsigned a = word.len > 0 ? (unsigned char)lower(word.ptr[0]) : 0;
    const unsigned b = word.len > 1 ? (unsigned char)lower(word.ptr[1]) : 0;
    return &g->begins[(a * 31 + b) % TERM_BEGINS];
}

uint32_t goal_term(struct goal *g, struct str word)
{
    if (!*begin_of(g, word)) {
        return TERM_NONE;
    }
    const struct str stem = stem_of(g, word);
    uint32_t i = 0;
    while (i < g->n_terms && !str_eq(g->terms[i].stem, stem)) {
        i++;
    }
    return i < g->n_terms ? i : TERM_NONE;
}

enum bt_code goal_nomem(struct goal *g)
{
    return g->code = err_set(g->err, BT_NOMEM, "out of memory for a plan");
}

struct str goal_keep(struct goal *g, struct str text)
{
    const struct str kept = arena_str(g->arena, text);
    g->code = kept.ptr != NULL ? g->code : goal_nomem(g);
    return kept.ptr != NULL ? kept : STR_LIT("");
}

uint32_t goal_add_term(struct goal *g, struct str word)
{
    *begin_of(g, word) = true;
    const uint32_t known = goal_term(g, word);
    if (known != TERM_NONE) {
        return known;
    }
    if (g->n_terms == TERMS_MAX) {
        g->code = err_set(g->err, BT_LIMIT,
                          "the goal has more than %d different words; give a plan", TERMS_MAX);
        return TERM_NONE;
    }
    const struct str stem = goal_keep(g, stem_of(g, word));
    *begin_of(g, stem) = true;
    for (size_t i = 0; i < SYNONYMS; i++) {
        *begin_of(g, str_from(synonyms[i][0])) |= str_is(stem, synonyms[i][1]);
    }
    g->terms[g->n_terms] = (struct term){.stem = stem};
    return g->n_terms++;
}

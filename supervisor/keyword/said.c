#include "supervisor/keyword/said.h"

#include "supervisor/keyword/expression.h"
#include "supervisor/keyword/phrase.h"

/* ---- classes of words ---- */

/* Not told apart from a request ("could you read a.txt?"): those words are left out below. */
bool said_is_question(struct str text)
{
    static const char *const words[] = {
        "what", "what's", "which",   "who",   "who's", "whom",   "whose", "when", "where",
        "why",  "how",    "is",      "are",   "was",   "were",   "does",  "did",  "has",
        "have", "am",     "where's", "how's", "isn't", "aren't", "when's"};
    struct str word;
    size_t at = 0;
    return phrase_word(text, &at, &word) && phrase_is(word, PHRASE_LIST(words));
}

/* Words that hold a clause together: no evidence for a skill, and none against it. */
static bool is_frame(struct str token)
{
    static const char *const words[] = {
        "what",  "which",  "who",  "whom",  "whose", "when", "where", "why",     "how",
        "many",  "much",   "does", "did",   "done",  "can",  "could", "should",  "would",
        "will",  "shall",  "may",  "might", "must",  "has",  "have",  "having",  "had",
        "been",  "being",  "am",   "i",     "he",    "she",  "they",  "him",     "her",
        "his",   "hers",   "mine", "yours", "ours",  "let",  "lets",  "there",   "here",
        "any",   "all",    "each", "every", "both",  "also", "too",   "kindly",  "again",
        "thank", "thanks", "want", "need",  "like",  "just", "if",    "whether", "s",
        "ll",    "re",     "ve",   "isn",   "aren",  "know", "give"};
    return phrase_is(token, PHRASE_LIST(words));
}

/* What follows one of these says how, where or for whom; "of" and "per" go with what stands before
 * them. */
static bool is_preposition(struct str token)
{
    static const char *const words[] = {
        "to",     "for",     "with",    "as",    "into",  "onto",    "in",
        "at",     "on",      "from",    "about", "until", "till",    "since",
        "via",    "through", "towards", "by",    "like",  "without", "against",
        "before", "after",   "during",  "under", "below", "inside",  "within"};
    return phrase_is(token, PHRASE_LIST(words));
}

static bool is_and(struct str token)
{
    static const char *const words[] = {"and", "or", "&"};
    return phrase_is(token, PHRASE_LIST(words));
}

/* Stems (words.h); the second of each pair stands for both. */
void said_unify(struct word *w)
{
    static const char *const pairs[][2] = {
        {"display", "show"},    {"view", "show"},         {"print", "show"},
        {"calculat", "comput"}, {"summaris", "summariz"}, {"locat", "find"},
        {"eras", "delet"},      {"remov", "delet"},       {"folder", "directory"},
        {"averag", "mean"},     {"percentag", "percent"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i][0][0] == w->text[0] &&
            str_eq((struct str){w->text, w->len}, str_from(pairs[i][0]))) {
            w->len = strlen(pairs[i][1]);
            memcpy(w->text, pairs[i][1], w->len);
        }
    }
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

bool said_is_number(struct str token)
{
    size_t i = token.len > 1 && (token.ptr[0] == '-' || token.ptr[0] == '+') ? 1 : 0;
    if (i == token.len || !digit(token.ptr[i])) {
        return false;
    }
    for (; i < token.len; i++) {
        const char c = token.ptr[i];
        const bool iso = (c == 'T' || c == 'Z') && i >= 10;
        if (!digit(c) && strchr(".,:-/%+*^=", c) == NULL && !iso) {
            return false;
        }
    }
    return true;
}

/* ---- one after the other ---- */

void said_begin(struct said_reader *r, struct str text)
{
    *r = (struct said_reader){
        .text = text.ptr == NULL ? STR_LIT("") : text, .expression = {"", 0}, .piece = {"", 0}};
}

static bool inside(struct str token, struct str of)
{
    return of.len > 0 && token.ptr >= of.ptr && token.ptr < of.ptr + of.len;
}

/* The next token outside quotes and arithmetic, or a quote. */
static bool next_token(struct said_reader *r, bool *quote)
{
    *quote = false;
    for (;;) {
        while (token_next(r->piece, &r->piece_at, &r->token)) {
            if (!inside(r->token, r->expression)) {
                return true;
            }
        }
        if (!phrase_word(r->text, &r->at, &r->piece)) {
            return false;
        }
        r->piece_at = 0;
        const size_t start = (size_t)(r->piece.ptr - r->text.ptr);
        if (r->piece.len > 1 && phrase_quote(r->text, start) > 0) {
            r->token = phrase_cut(r->piece, 1, r->piece.len - 1);
            r->piece_at = r->piece.len;
            *quote = true;
            return true;
        }
    }
}

static enum said_kind kind_of(struct str token, bool quote)
{
    if (quote) {
        return SAID_QUOTE;
    }
    if (token_is_url(token)) {
        return SAID_URL;
    }
    return token_is_path(token) ? SAID_PATH : said_is_number(token) ? SAID_NUMBER : SAID_WORD;
}

bool said_next(struct said_reader *r, enum said_kind *kind, struct word *ret)
{
    bool quote;
    for (;;) {
        *kind = SAID_WORD;
        if (r->in_words && words_next(&r->words, ret)) {
            said_unify(ret);
            return true;
        }
        r->in_words = false;
        if (!next_token(r, &quote)) {
            return false;
        }
        *kind = kind_of(r->token, quote);
        if (*kind != SAID_WORD) {
            return true;
        }
        words_init(&r->words, r->token);
        r->in_words = true;
    }
}

/* ---- a clause ---- */

struct listener {
    struct said *said;
    bool aside;  /* a preposition or a value was there */
    bool joined; /* "and" was there */
    bool number; /* stood directly before */
    bool word;   /* stood directly before */
    bool many;   /* "how many": it asks for a count */
};

static void hear_words(struct listener *l, struct str token)
{
    struct said *s = l->said;
    struct words words;
    struct word w;
    words_init(&words, token);
    while (s->n < SAID_WORDS_MAX && words_next(&words, &w)) {
        said_unify(&w);
        s->at[s->n++] = (struct said_word){w, l->aside, l->joined, l->number};
        l->joined = l->number = false;
    }
}

/* Who answers has to know of counting, whatever the first word is. */
static void hear_many(struct listener *l)
{
    l->aside = true;
    hear_words(l, STR_LIT("count"));
}

static void hear(struct listener *l, struct str token, bool quote)
{
    static const char *const auxiliary[] = {"do"}; /* but "do a thing" */
    static const char *const many[] = {"many"};
    struct said *s = l->said;
    const enum said_kind kind = kind_of(token, quote);
    s->path = s->path || kind == SAID_PATH;
    s->url = s->url || kind == SAID_URL;
    if (kind != SAID_WORD) {
        if (l->word) {
            s->at[s->n - 1].joined = false; /* "and compress a.log" is another thing to do */
        }
        l->word = false;
        l->aside = l->aside || s->n > 0;
        l->joined = false;
        l->number = kind == SAID_NUMBER;
        return;
    }
    l->word = false;
    if (is_and(token)) {
        l->joined = s->n > 0;
    } else if (is_preposition(token)) {
        l->aside = l->aside || s->n > 0;
    } else if (!is_frame(token) && !(s->question && phrase_is(token, auxiliary, 1))) {
        const uint32_t n = s->n;
        hear_words(l, token);
        l->word = s->n > n;
    }
    l->many = l->many || (s->question && phrase_is(token, many, 1));
    l->number = false;
}

static void read_up_to(struct str clause, uint32_t words, struct said *ret)
{
    struct listener l = {.said = ret};
    struct said_reader r;
    bool quote;
    *ret = (struct said){.question = said_is_question(clause), .expression = {"", 0}};
    (void)expression_find(clause, &ret->expression);
    said_begin(&r, clause);
    r.expression = ret->expression;
    while (ret->n < words && next_token(&r, &quote)) {
        hear(&l, r.token, quote);
    }
    if (l.many) {
        hear_many(&l);
    }
}

void said_read(struct str clause, struct said *ret)
{
    read_up_to(clause, SAID_WORDS_MAX + 1, ret); /* values may come behind the last word */
}

void said_read_first(struct str clause, struct said *ret)
{
    read_up_to(clause, 1, ret);
}

/* ---- words in values ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || digit(c) || (unsigned char)c >= 0x80;
}

bool said_has(struct str text, struct str stem)
{
    size_t i = 0;
    while (i < text.len) {
        const size_t start = i;
        while (i < text.len && is_letter(text.ptr[i])) {
            i++;
        }
        struct words words;
        struct word w;
        words_init(&words, phrase_cut(text, start, i));
        while (words_next(&words, &w)) {
            said_unify(&w);
            if (str_eq((struct str){w.text, w.len}, stem)) {
                return true;
            }
        }
        i += i < text.len && !is_letter(text.ptr[i]);
    }
    return false;
}

#include "supervisor/keyword/clauses.h"

#include "supervisor/keyword/phrase.h"

/* ---- list marks ---- */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What an item of a list is numbered with: 3 of "3." or of "(c)"; 0 = it is not. */
struct mark {
    size_t len;
    uint32_t number;
    char kind; /* '1', 'a' or '-' */
};

/* "1." "2)" "(3)" "1.2" "1.2." "a)" "(a)" before a blank. */
static struct mark numbered(struct str s)
{
    const size_t open = s.len > 0 && s.ptr[0] == '(' ? 1 : 0;
    size_t n = open;
    struct mark mark = {.kind = '1'};
    bool dotted = false;
    while (n < s.len && n < open + 6 && (digit(s.ptr[n]) || (s.ptr[n] == '.' && n > open))) {
        dotted = dotted || s.ptr[n] == '.';
        mark.number = digit(s.ptr[n]) ? mark.number % 1000 * 10 + (uint32_t)(s.ptr[n] - '0') : 0;
        n++;
    }
    if (n > open && s.ptr[n - 1] == '.') { /* "1." alone: the last number counts */
        mark.number = 0;
        for (size_t i = open; i + 1 < n; i++) {
            mark.number =
                digit(s.ptr[i]) ? mark.number % 1000 * 10 + (uint32_t)(s.ptr[i] - '0') : 0;
        }
    }
    if (n == open && n < s.len && s.ptr[n] >= 'a' && s.ptr[n] <= 'z') {
        mark = (struct mark){.kind = 'a', .number = (uint32_t)(s.ptr[n] - 'a') + 1};
        n++;
    }
    const bool closed = n < s.len && s.ptr[n] == ')';
    n += closed ? 1 : 0;
    const bool fits = closed || (dotted && open == 0 && mark.kind == '1');
    if (!fits || n <= open || n >= s.len || !phrase_blank(s.ptr[n])) {
        return (struct mark){.len = 0};
    }
    mark.len = n;
    return mark;
}

/* "-" "*" "+" and the round bullet, with "[ ]" behind it or not. */
static size_t bullet(struct str s)
{
    static const char round[] = "\xe2\x80\xa2";
    size_t n = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '*' || s.ptr[0] == '+') ? 1 : 0;
    n = n == 0 && s.len >= 3 && memcmp(s.ptr, round, 3) == 0 ? 3 : n;
    if (n == 0 || n >= s.len || !phrase_blank(s.ptr[n])) {
        return 0;
    }
    return s.len >= n + 4 && memcmp(s.ptr + n, " [ ]", 4) == 0 ? n + 4 : n;
}

static struct mark mark_of(struct str s)
{
    const size_t n = bullet(s);
    return n > 0 ? (struct mark){.len = n, .kind = '-'} : numbered(s);
}

/* ---- the edges of a piece ---- */

static size_t leading_word(struct str s, bool *then)
{
    static const char *const orders[] = {"then",       "next",       "and then",
                                         "finally",    "afterwards", "and finally",
                                         "after that", "lastly",     "subsequently"};
    static const char *const polite[] = {"first",      "firstly",       "and",
                                         "please",     "also",          "can you",
                                         "could you",  "would you",     "start by",
                                         "begin by",   "i want you to", "i would like you to",
                                         "you should", "to begin with", "to start with"};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        const size_t n = phrase_begins(s, orders[i]);
        if (n > 0) {
            *then = true;
            return n;
        }
    }
    for (size_t i = 0; i < sizeof polite / sizeof polite[0]; i++) {
        const size_t n = phrase_begins(s, polite[i]);
        if (n > 0) {
            return n;
        }
    }
    return 0;
}

/* Without punctuation, and without an "and" that nothing follows. */
static struct str without_end(struct str s)
{
    for (bool again = true; again;) {
        while (s.len > 0 &&
               (phrase_blank(s.ptr[s.len - 1]) || strchr(",;.!:?", s.ptr[s.len - 1]) != NULL)) {
            s.len--;
        }
        again = s.len > 4 && phrase_blank(s.ptr[s.len - 4]) &&
                phrase_begins(phrase_cut(s, s.len - 3, s.len), "and") == 3;
        s.len -= again ? 4 : 0;
    }
    return s;
}

struct str clauses_trim(struct str s, bool *then)
{
    bool ignored;
    then = then == NULL ? &ignored : then;
    for (bool again = true; again;) {
        size_t drop = mark_of(s).len;
        while (drop < s.len && (phrase_blank(s.ptr[drop]) || s.ptr[drop] == ',' ||
                                s.ptr[drop] == ';' || s.ptr[drop] == ':')) {
            drop++;
        }
        drop = drop == 0 ? leading_word(s, then) : drop;
        again = drop > 0;
        s = phrase_cut(s, drop, s.len);
    }
    return without_end(s);
}

/* ---- where pieces end ---- */

struct splitter {
    struct str goal;
    size_t from;      /* where the piece began */
    struct mark mark; /* of the last item of a list, for the next one on the same line */
    bool then;        /* the next piece comes then */
};

/* "e.g. " and "3. " and one letter do not end a sentence. */
static bool ends_sentence(const struct splitter *s, size_t at)
{
    size_t start = at;
    bool dots = false;
    while (start > s->from && !phrase_blank(s->goal.ptr[start - 1])) {
        start--;
        dots = dots || s->goal.ptr[start] == '.';
    }
    const size_t len = at - start;
    const bool digits = len > 0 && digit(s->goal.ptr[start]) && len <= 2;
    return len > 1 && !digits && !(dots && len <= 3);
}

static size_t connector(const struct splitter *s, size_t at)
{
    static const char *const words[] = {"and then",   "then",        "after that",
                                        "afterwards", "and finally", "finally"};
    static const char *const openers[] = {"if",    "when",   "once", "as soon as",
                                          "after", "before", "while"};
    const struct str rest = phrase_cut(s->goal, at, s->goal.len);
    size_t n = 0;
    if (at == 0 || !phrase_blank(s->goal.ptr[at - 1])) {
        return 0;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0] && n == 0; i++) {
        n = phrase_begins(rest, words[i]);
    }
    if (n == 0 && at > 1 && s->goal.ptr[at - 2] == ',') { /* "the next day" is none */
        n = phrase_begins(rest, "next");
    }
    if (n == 0) {
        return 0;
    }
    const struct str piece = clauses_trim(phrase_cut(s->goal, s->from, at), NULL);
    for (size_t i = 0; i < sizeof openers / sizeof openers[0]; i++) {
        if (phrase_begins(piece, openers[i]) > 0) {
            return 0;
        }
    }
    return piece.len == 0 ? 0 : n;
}

/* "1) read x 2) count y": the mark that follows the last one. */
static bool next_item(const struct splitter *s, size_t at)
{
    if (s->mark.len == 0 || s->mark.kind == '-' || at == 0 || !phrase_blank(s->goal.ptr[at - 1])) {
        return false;
    }
    const struct mark mark = numbered(phrase_cut(s->goal, at, s->goal.len));
    return mark.len > 0 && mark.kind == s->mark.kind && mark.number == s->mark.number + 1;
}

/* Length of the separator at `at`; 0 = none here. *ret_then: what follows comes then. */
static size_t separator(const struct splitter *s, size_t at, bool *ret_then)
{
    const char c = s->goal.ptr[at];
    const bool last = at + 1 >= s->goal.len;
    *ret_then = false;
    if (c == '\n' || c == ';') {
        return 1;
    }
    if ((c == '.' || c == '!' || c == '?') && (last || phrase_blank(s->goal.ptr[at + 1]))) {
        return c != '.' || ends_sentence(s, at) ? 1 : 0;
    }
    *ret_then = true;
    if (c == '-' && !last && s->goal.ptr[at + 1] == '>') {
        return 2;
    }
    return connector(s, at);
}

/* A piece begins at `at`; on a new line nothing is known of list marks. */
static void begin(struct splitter *s, size_t at, bool line)
{
    size_t first = at;
    s->from = at;
    while (first < s->goal.len && phrase_blank(s->goal.ptr[first]) && s->goal.ptr[first] != '\n') {
        first++;
    }
    const struct mark mark = mark_of(phrase_cut(s->goal, first, s->goal.len));
    if (line || mark.len > 0) {
        s->mark = mark;
    }
}

/* The piece that ends at `at`. False when nothing is left of it. */
static bool take(struct splitter *s, size_t at, struct piece *ret)
{
    const struct str raw = phrase_cut(s->goal, s->from, at);
    const struct str bare = phrase_strip(raw);
    *ret = (struct piece){.then = s->then,
                          .listed = mark_of(bare).len > 0,
                          .indent = bare.len > 0 ? (uint32_t)(bare.ptr - raw.ptr) : 0,
                          .colon = bare.len > 0 && bare.ptr[bare.len - 1] == ':' &&
                                   at < s->goal.len && s->goal.ptr[at] == '\n'};
    ret->text = clauses_trim(raw, &ret->then);
    return ret->text.len > 0;
}

/* Length of what ends the piece at `at`; 0 = it goes on. An item of a list is itself the end. */
static bool ends(const struct splitter *s, size_t at, size_t *ret_skip, bool *ret_then)
{
    *ret_skip = 0;
    *ret_then = false;
    if (at == s->goal.len || (at > s->from && next_item(s, at))) {
        return true;
    }
    *ret_skip = separator(s, at, ret_then);
    return *ret_skip > 0;
}

uint32_t clauses_split(struct str goal, struct piece ret[CLAUSES_MAX])
{
    struct splitter s = {.goal = goal};
    uint32_t n = 0;
    size_t at = 0;
    begin(&s, 0, true);
    for (;;) {
        size_t skip;
        bool then;
        struct piece piece;
        const size_t quoted = at < goal.len ? phrase_quote(goal, at) : 0;
        if (quoted != 0) {
            at = quoted;
            continue;
        }
        if (!ends(&s, at, &skip, &then)) {
            at++;
            continue;
        }
        if (take(&s, at, &piece)) {
            if (n == CLAUSES_MAX) {
                return n + 1;
            }
            ret[n++] = piece;
            s.then = false;
        }
        if (at == goal.len) {
            return n;
        }
        s.then = s.then || then;
        begin(&s, at + skip, goal.ptr[at] == '\n');
        at += skip;
    }
}

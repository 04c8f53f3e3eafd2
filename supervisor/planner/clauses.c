#include "supervisor/planner/clauses.h"

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static struct str cut(struct str s, size_t from, size_t to)
{
    return (struct str){s.ptr + from, to - from};
}

/* The length of `words` when the text begins with them, case ignored, as whole words; else 0. */
static size_t begins(struct str text, const char *words)
{
    size_t i = 0;
    for (; words[i] != '\0'; i++) {
        if (i >= text.len || lower(text.ptr[i]) != words[i]) {
            return 0;
        }
    }
    return i == text.len || blank(text.ptr[i]) || text.ptr[i] == ',' || text.ptr[i] == ':' ? i : 0;
}

/* ---- the edges of a clause ---- */

/* "1." "2)" "-" "*" before a blank. */
static size_t list_mark(struct str s)
{
    size_t n = 0;
    while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9') {
        n++;
    }
    const bool number = n > 0 && n < s.len && (s.ptr[n] == '.' || s.ptr[n] == ')');
    const bool dash = n == 0 && s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '*');
    return (number || dash) && n + 1 < s.len && blank(s.ptr[n + 1]) ? n + 1 : 0;
}

static struct str trimmed(struct str s)
{
    static const char *const leading[] = {"first",      "then", "next",   "and then",  "finally",
                                          "afterwards", "and",  "please", "after that"};
    for (bool again = true; again;) {
        size_t drop = list_mark(s);
        while (drop < s.len && (blank(s.ptr[drop]) || s.ptr[drop] == ',' || s.ptr[drop] == ';' ||
                                s.ptr[drop] == ':')) {
            drop++;
        }
        for (size_t i = 0; i < sizeof leading / sizeof leading[0] && drop == 0; i++) {
            drop = begins(s, leading[i]);
        }
        again = drop > 0;
        s = cut(s, drop, s.len);
    }
    while (s.len > 0 && (blank(s.ptr[s.len - 1]) || strchr(",;.!:", s.ptr[s.len - 1]) != NULL)) {
        s.len--;
    }
    return s;
}

/* ---- where clauses end ---- */

/* The quote that opens at `at`, as the character that closes it; 0 = none. It has to be closed on
 * the same line. */
static char quote_at(struct str goal, size_t at)
{
    const char c = goal.ptr[at];
    if (c != '"' && c != '`' && (c != '\'' || (at > 0 && !blank(goal.ptr[at - 1])))) {
        return 0;
    }
    for (size_t i = at + 1; i < goal.len && goal.ptr[i] != '\n'; i++) {
        if (goal.ptr[i] == c) {
            return c;
        }
    }
    return 0;
}

/* "e.g. " and "3. " and one letter do not end a sentence. */
static bool ends_sentence(struct str goal, size_t from, size_t at)
{
    size_t start = at;
    bool dots = false;
    while (start > from && !blank(goal.ptr[start - 1])) {
        start--;
        dots = dots || goal.ptr[start] == '.';
    }
    const size_t len = at - start;
    const bool digits = len > 0 && goal.ptr[start] >= '0' && goal.ptr[start] <= '9' && len <= 2;
    return len > 1 && !digits && !(dots && len <= 3);
}

static size_t connector(struct str goal, size_t from, size_t at)
{
    static const char *const words[] = {"and then",   "then",        "after that",
                                        "afterwards", "and finally", "finally"};
    const struct str clause = trimmed(cut(goal, from, at));
    const struct str rest = cut(goal, at, goal.len);
    if (at == 0 || !blank(goal.ptr[at - 1]) || clause.len == 0 || begins(clause, "if") > 0 ||
        begins(clause, "when") > 0) {
        return 0;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = begins(rest, words[i]);
        if (n > 0) {
            return n;
        }
    }
    return 0;
}

/* Length of the separator at `at` in a clause that began at `from`; 0 = none here. */
static size_t separator(struct str goal, size_t from, size_t at)
{
    const char c = goal.ptr[at];
    const bool last = at + 1 >= goal.len;
    if (c == '\n' || c == ';') {
        return 1;
    }
    if ((c == '.' || c == '!' || c == '?') && (last || blank(goal.ptr[at + 1]))) {
        return c != '.' || ends_sentence(goal, from, at) ? 1 : 0;
    }
    if (c == '-' && !last && goal.ptr[at + 1] == '>') {
        return 2;
    }
    return connector(goal, from, at);
}

uint32_t clauses_split(struct str goal, struct str ret[CLAUSES_MAX])
{
    uint32_t n = 0;
    size_t from = 0;
    size_t at = 0;
    while (at <= goal.len) {
        const char quote = at < goal.len ? quote_at(goal, at) : 0;
        if (quote != 0) {
            const char *end = memchr(goal.ptr + at + 1, quote, goal.len - at - 1);
            at = (size_t)(end - goal.ptr) + 1;
            continue;
        }
        const size_t skip = at == goal.len ? 1 : separator(goal, from, at);
        if (skip == 0) {
            at++;
            continue;
        }
        const struct str clause = trimmed(cut(goal, from, at));
        if (clause.len > 0) {
            if (n == CLAUSES_MAX) {
                return n + 1;
            }
            ret[n++] = clause;
        }
        at += skip;
        from = at < goal.len ? at : goal.len;
    }
    return n;
}

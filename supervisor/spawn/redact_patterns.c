#include "supervisor/spawn/redact_patterns.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "protocol/base/utf8.h"

static const char mark[] = "[redacted]";

struct out {
    char *to;
    size_t len, cap; /* cap: without the zero */
};

static void put(struct out *o, const char *bytes, size_t n)
{
    const size_t room = o->cap - o->len;

    memcpy(o->to + o->len, bytes, n < room ? n : room);
    o->len += n < room ? n : room;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_name(char c)
{
    return is_alnum(c) || c == '_' || c == '-' || c == '.';
}

static bool begins(struct str s, size_t at, const char *word)
{
    const size_t n = strlen(word);

    return s.len - at >= n && strncasecmp(s.ptr + at, word, n) == 0;
}

/* Whether a name is that of a secret. anywhere: also within the name (`OPENAI_KEY_OLD=`); else only
 * at its end, so `keyFile: is missing` does not match. */
static bool names_secret(struct str name, bool anywhere)
{
    static const char *const words[] = {
        "key",           "token",      "secret",      "password", "passwd", "passphrase",
        "authorization", "credential", "credentials", "cookie",   "pwd"};

    while (name.len > 0 &&
           !((name.ptr[name.len - 1] | 0x20) >= 'a' && (name.ptr[name.len - 1] | 0x20) <= 'z')) {
        name.len--; /* API_KEY_2 */
    }
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        const size_t n = strlen(words[w]);
        for (size_t at = anywhere || name.len < n ? 0 : name.len - n; at + n <= name.len; at++) {
            if (begins(name, at, words[w])) {
                return true;
            }
        }
    }
    return false;
}

/* A word with a known prefix and enough characters after it. */
static bool is_known_key(struct str word)
{
    static const char *const prefixes[] = {"sk-",  "sk_",  "pk_",         "rk_",    "ghp_", "gho_",
                                           "ghs_", "ghu_", "github_pat_", "glpat-", "xox",  "AKIA",
                                           "ASIA", "AIza", "eyJ",         "hf_",    "gsk_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const size_t n = strlen(prefixes[i]);
        if (word.len >= n + 8 && memcmp(word.ptr, prefixes[i], n) == 0) {
            return true;
        }
    }
    return false;
}

static size_t skip_blanks(struct str s, size_t at)
{
    while (at < s.len && s.ptr[at] == ' ') {
        at++;
    }
    return at;
}

static size_t skip_quotes(struct str s, size_t at)
{
    while (at < s.len && (s.ptr[at] == '"' || s.ptr[at] == '\'' || s.ptr[at] == '\\')) {
        at++;
    }
    return at;
}

/* The end of the value that begins at `at`, after its quotes: the closing quote, else a blank. */
static size_t value_end(struct str s, size_t at)
{
    const char quote = at > 0 ? s.ptr[at - 1] : 0;
    const bool quoted = quote == '"' || quote == '\'';

    while (at < s.len && (quoted ? s.ptr[at] != quote : s.ptr[at] != ' ')) {
        at++;
    }
    return at;
}

static bool is_scheme(struct str s, size_t at, size_t *ret_value)
{
    static const char *const schemes[] = {"bearer ", "basic "};

    for (size_t i = 0; i < 2; i++) {
        if (begins(s, at, schemes[i])) {
            *ret_value = skip_blanks(s, at + strlen(schemes[i]));
            return *ret_value < s.len;
        }
    }
    return false;
}

/* The start of the value after a name that ends at `end`; 0 = the name is not that of a secret. */
static size_t value_of(struct str s, size_t from, size_t end)
{
    const struct str name = {s.ptr + from, end - from};
    size_t at = skip_blanks(s, skip_quotes(s, end));
    size_t value;

    if (at < s.len && (s.ptr[at] == '=' || s.ptr[at] == ':')) {
        const bool file = from > 0 && s.ptr[from - 1] == '/'; /* "/run/key: not found" */
        if ((file && s.ptr[at] == ':') || !names_secret(name, s.ptr[at] == '=')) {
            return 0;
        }
        at = skip_quotes(s, skip_blanks(s, at + 1));
    } else if (!begins(name, 0, "--") || at == end || !names_secret(name, false)) {
        return 0;
    } else {
        at = skip_quotes(s, at);
    }
    value = at;
    (void)is_scheme(s, at, &value);
    return value < s.len ? value : 0;
}

/* The end of "://user:password@", or `at`. */
static size_t user_end(struct str s, size_t at)
{
    size_t end = at;

    while (end < s.len && s.ptr[end] != '@' && s.ptr[end] != '/' && s.ptr[end] != ' ') {
        end++;
    }
    return end < s.len && s.ptr[end] == '@' ? end : at;
}

/* Looks for a secret at `at`, where a word may begin. The caller copies up to *ret_value and
 * redacts up to the returned place; `at` when there is none. */
static size_t redact_at(struct str s, size_t at, size_t *ret_value)
{
    size_t end = at;

    *ret_value = at;
    if (begins(s, at, "://")) {
        *ret_value = at + 3;
        end = user_end(s, at + 3);
        return end > at + 3 ? end : at;
    }
    if ((at > 0 && is_name(s.ptr[at - 1])) || !is_name(s.ptr[at])) {
        return at;
    }
    if (is_scheme(s, at, ret_value)) {
        return value_end(s, *ret_value);
    }
    while (end < s.len && is_name(s.ptr[end])) {
        end++;
    }
    *ret_value = value_of(s, at, end);
    if (*ret_value > 0) {
        return value_end(s, *ret_value);
    }
    *ret_value = at;
    return is_known_key((struct str){s.ptr + at, end - at}) ? end : at;
}

void redact_patterns(struct str line, char *ret, size_t cap)
{
    struct out o = {.to = ret, .cap = cap - 1};
    size_t at = 0;

    while (at < line.len && o.len < o.cap) {
        size_t value;
        const size_t end = redact_at(line, at, &value);
        if (end > at && end > value) {
            put(&o, line.ptr + at, value - at);
            put(&o, mark, sizeof mark - 1);
            at = end;
        } else {
            put(&o, line.ptr + at, 1);
            at++;
        }
    }
    while (o.len > 0 && !utf8_valid(ret, o.len)) {
        o.len--; /* drops the last character when it did not fit */
    }
    ret[o.len] = 0;
}

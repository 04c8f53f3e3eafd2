#include "supervisor/dispatch/classify.h"

enum { LOOK_BYTES = 4096, WORDS_MAX = 512, WORD_BYTES = 24 };

struct word {
    char text[WORD_BYTES]; /* lower case, cut: no word that matters is as long */
    bool number;
};

struct words {
    uint32_t n;
    struct word at[WORDS_MAX];
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* Runs of letters and runs of digits. What is both ("x404", "v2") is one word and no number. */
static void split(struct str s, struct words *w)
{
    size_t at = 0;

    w->n = 0;
    s.len = s.len > LOOK_BYTES ? LOOK_BYTES : s.len;
    while (at < s.len && w->n < WORDS_MAX) {
        struct word *word = &w->at[w->n];
        size_t n = 0;
        if (!is_letter(s.ptr[at]) && !is_digit(s.ptr[at])) {
            at++;
            continue;
        }
        *word = (struct word){.number = true};
        for (; at < s.len && (is_letter(s.ptr[at]) || is_digit(s.ptr[at])); at++, n++) {
            char c = s.ptr[at];
            word->number = word->number && is_digit(c);
            if (n < WORD_BYTES - 1) {
                word->text[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
            }
        }
        if (n >= WORD_BYTES) {
            word->text[0] = 0; /* cut: it may not be taken for a shorter one */
            word->number = false;
        }
        w->n++;
    }
}

static bool is(const struct words *w, uint32_t ix, const char *text)
{
    return ix < w->n && strcmp(w->at[ix].text, text) == 0;
}

static bool has(const struct words *w, const char *text)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (is(w, i, text)) {
            return true;
        }
    }
    return false;
}

static bool has_pair(const struct words *w, const char *first, const char *second)
{
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        if (is(w, i, first) && is(w, i + 1, second)) {
            return true;
        }
    }
    return false;
}

static enum err_class class_of_status(const char *number)
{
    static const struct {
        const char *number;
        enum err_class cls;
    } all[] = {
        {"400", CLASS_VALIDATION_ERROR},
        {"401", CLASS_PERMISSION_DENIED},
        {"403", CLASS_PERMISSION_DENIED},
        {"404", CLASS_RESOURCE_NOT_FOUND},
        {"408", CLASS_TIMEOUT},
        {"410", CLASS_RESOURCE_NOT_FOUND},
        {"422", CLASS_VALIDATION_ERROR},
        {"429", CLASS_RATE_LIMITED},
        {"502", CLASS_SERVICE_UNAVAILABLE},
        {"503", CLASS_SERVICE_UNAVAILABLE},
        {"504", CLASS_TIMEOUT},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].number, number) == 0) {
            return all[i].cls;
        }
    }
    return CLASS_NONE;
}

/* A number is a status at either end of the message, behind a word that announces one, or before
 * the words that go with it. */
static bool stands_as_status(const struct words *w, uint32_t ix)
{
    static const char *const before[] = {"http", "https",    "status",   "code", "error",
                                         "with", "response", "returned", "got",  "answered"};
    static const char *const after[] = {"not",     "forbidden", "unauthorized", "too",
                                        "service", "bad",       "gone",         "request",
                                        "gateway", "error",     "unprocessable"};

    if (ix == 0 || ix + 1 == w->n) {
        return true;
    }
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        if (is(w, ix - 1, before[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        if (is(w, ix + 1, after[i])) {
            return true;
        }
    }
    /* "HTTP/1.1 404" */
    return w->at[ix - 1].number && ix >= 3 && is(w, ix - 3, "http");
}

static enum err_class by_number(const struct words *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        enum err_class cls = w->at[i].number ? class_of_status(w->at[i].text) : CLASS_NONE;
        /* "404 rows" is first, but counts something. */
        bool counts = i + 1 < w->n && i == 0 &&
                      (is(w, 1, "rows") || is(w, 1, "items") || is(w, 1, "files") ||
                       is(w, 1, "bytes") || is(w, 1, "records") || is(w, 1, "ms"));
        if (cls != CLASS_NONE && !counts && stands_as_status(w, i)) {
            return cls;
        }
    }
    return CLASS_NONE;
}

/* In the order of M041. */
static enum err_class by_words(const struct words *w)
{
    bool not_found = has_pair(w, "not", "found");

    if (not_found && (has(w, "tool") || has(w, "tools"))) {
        return CLASS_TOOL_NOT_FOUND;
    }
    if (not_found) {
        return CLASS_RESOURCE_NOT_FOUND;
    }
    if (has(w, "permission") || has(w, "permissions") || has(w, "forbidden") ||
        has(w, "unauthorized")) {
        return CLASS_PERMISSION_DENIED;
    }
    if (has(w, "rate") || has(w, "ratelimit") || has(w, "throttled") ||
        has_pair(w, "too", "many")) {
        return CLASS_RATE_LIMITED;
    }
    if (has(w, "unavailable")) {
        return CLASS_SERVICE_UNAVAILABLE;
    }
    if (has(w, "validation") || has(w, "invalid")) {
        return CLASS_VALIDATION_ERROR;
    }
    if (has(w, "timeout") || has_pair(w, "timed", "out")) {
        return CLASS_TIMEOUT;
    }
    return CLASS_NONE;
}

/* The protocol's own codes. A code without a cause leaves the class to the message. */
static enum err_class by_code(struct str code)
{
    static const struct {
        const char *code;
        enum err_class cls;
    } all[] = {
        {"INVALID", CLASS_VALIDATION_ERROR},
        {"UNAUTHORIZED", CLASS_PERMISSION_DENIED},
        {"NOT_FOUND", CLASS_NONE},
        {"CONFLICT", CLASS_VALIDATION_ERROR},
        {"LIMIT", CLASS_VALIDATION_ERROR},
        {"BUSY", CLASS_SERVICE_UNAVAILABLE},
        {"TIMEOUT", CLASS_TIMEOUT},
        {"UNAVAILABLE", CLASS_SERVICE_UNAVAILABLE},
        {"GONE", CLASS_RESOURCE_NOT_FOUND},
        {"CANCELLED", CLASS_CANCELLED},
        {"PROTOCOL", CLASS_PROTOCOL_ERROR},
        {"NOMEM", CLASS_SERVICE_UNAVAILABLE},
        {"ETIMEDOUT", CLASS_TIMEOUT},
        {"ECONNREFUSED", CLASS_SERVICE_UNAVAILABLE},
        {"ENOENT", CLASS_RESOURCE_NOT_FOUND},
        {"EACCES", CLASS_PERMISSION_DENIED},
        {"EPERM", CLASS_PERMISSION_DENIED},
    };
    enum err_class cls = err_class_from_name(code.ptr, code.len);

    if (cls != CLASS_UNKNOWN) {
        return cls; /* some put the class where the code belongs */
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (str_is(code, all[i].code)) {
            return all[i].cls;
        }
    }
    return CLASS_NONE;
}

enum err_class classify_error(struct str code, struct str message)
{
    struct words w;
    enum err_class cls = code.len > 0 ? by_code(code) : CLASS_NONE;

    if (cls == CLASS_NONE && code.len > 0 && !str_is(code, "NOT_FOUND")) {
        split(code, &w);
        cls = by_number(&w);
        cls = cls == CLASS_NONE ? by_words(&w) : cls;
    }
    if (cls == CLASS_NONE) {
        split(message, &w);
        cls = by_number(&w);
        /* A tool that is not there is not just any resource, whatever the number. */
        if (cls == CLASS_NONE || cls == CLASS_RESOURCE_NOT_FOUND) {
            enum err_class spoken = by_words(&w);
            cls = cls == CLASS_NONE || spoken == CLASS_TOOL_NOT_FOUND ? spoken : cls;
        }
    }
    if (cls == CLASS_NONE && str_is(code, "NOT_FOUND")) {
        cls = CLASS_RESOURCE_NOT_FOUND;
    }
    return cls == CLASS_NONE ? CLASS_UNKNOWN : cls;
}

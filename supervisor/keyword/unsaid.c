#include "supervisor/keyword/unsaid.h"

#include "protocol/base/assert.h"
#include "supervisor/keyword/phrase.h"

/* Where a phrase stands when it says what it says. */
enum where { ANYWHERE, FIRST, IF, WHEN, WHILE, EVERY };

struct sign {
    const char *words;
    enum unsaid_kind kind;
    enum where where;
};

static const struct sign signs[] = {
    {"only if", UNSAID_CONDITION, ANYWHERE},
    {"if", UNSAID_CONDITION, IF},
    {"unless", UNSAID_CONDITION, ANYWHERE},
    {"otherwise", UNSAID_CONDITION, ANYWHERE},
    {"or else", UNSAID_CONDITION, ANYWHERE},
    {"else", UNSAID_CONDITION, FIRST},
    {"in case", UNSAID_CONDITION, ANYWHERE},
    {"provided that", UNSAID_CONDITION, ANYWHERE},
    {"depending on", UNSAID_CONDITION, ANYWHERE},
    {"only when", UNSAID_CONDITION, ANYWHERE},
    {"when", UNSAID_CONDITION, WHEN},
    {"on failure", UNSAID_FAILURE, ANYWHERE},
    {"on error", UNSAID_FAILURE, ANYWHERE},
    {"until", UNSAID_LOOP, ANYWHERE},
    {"as long as", UNSAID_LOOP, ANYWHERE},
    {"while", UNSAID_LOOP, WHILE},
    {"repeat", UNSAID_LOOP, FIRST},
    {"repeatedly", UNSAID_LOOP, ANYWHERE},
    {"retry", UNSAID_LOOP, FIRST},
    {"try again", UNSAID_LOOP, ANYWHERE},
    {"over and over", UNSAID_LOOP, ANYWHERE},
    {"for each", UNSAID_LOOP, FIRST},
    {"for every", UNSAID_LOOP, FIRST},
    {"whenever", UNSAID_TIME, ANYWHERE},
    {"each time", UNSAID_TIME, ANYWHERE},
    {"every", UNSAID_TIME, EVERY},
    {"once a", UNSAID_TIME, EVERY},
    {"once per", UNSAID_TIME, EVERY},
    {"once every", UNSAID_TIME, EVERY},
};

/* ---- time ---- */

static bool is_unit(struct str word)
{
    static const char *const units[] = {
        "second", "seconds",  "minute", "minutes", "hour",    "hours",     "day",
        "days",   "week",     "weeks",  "month",   "months",  "year",      "morning",
        "night",  "evening",  "time",   "monday",  "tuesday", "wednesday", "thursday",
        "friday", "saturday", "sunday", "weekday", "noon",    "midnight"};
    return phrase_is(word, PHRASE_LIST(units));
}

static bool is_number(struct str word)
{
    static const char *const numbers[] = {"a",      "an",   "one",  "two",  "three",
                                          "four",   "five", "six",  "ten",  "twenty",
                                          "thirty", "few",  "some", "half", "other"};
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < '0' || word.ptr[i] > '9') {
            return phrase_is(word, PHRASE_LIST(numbers));
        }
    }
    return word.len > 0;
}

bool unsaid_is_time(struct str text)
{
    struct str word;
    size_t at = 0;
    if (!phrase_word(text, &at, &word)) {
        return false;
    }
    if (is_unit(word)) {
        return true;
    }
    return is_number(word) && phrase_word(text, &at, &word) && is_unit(word);
}

/* ---- signs ---- */

/* Where a word stands: behind which one, and what follows it. */
struct spot {
    struct str text, before, behind;
    bool first;
};

static bool speaks_of_failure(struct str text)
{
    static const char *const words[] = {"fails",    "fail",          "failed",      "failure",
                                        "failing",  "breaks",        "crashes",     "goes wrong",
                                        "go wrong", "does not work", "doesn't work"};
    size_t n;
    return phrase_find(text, PHRASE_LIST(words), &n) != PHRASE_NONE;
}

/* "check if", "tell me when": a question, not a condition. */
static bool is_question(struct str before)
{
    static const char *const words[] = {"check", "see",    "test",  "verify", "determine", "me",
                                        "out",   "ask",    "know",  "sure",   "tell",      "us",
                                        "show",  "report", "learn", "say"};
    return phrase_is(before, PHRASE_LIST(words));
}

static bool is_counted(struct str before)
{
    static const char *const words[] = {"for", "of", "in", "per", "on", "from", "by", "and", "or"};
    return phrase_is(before, PHRASE_LIST(words));
}

/* "when done" and "when it is ready" are about order, which order.c understands. */
static bool is_about_order(struct str behind)
{
    static const char *const words[] = {"done",      "finished", "ready", "complete",
                                        "completed", "over",     "that",  "this"};
    size_t n;
    const size_t comma = phrase_comma(behind);
    const struct str part = phrase_cut(behind, 0, comma == PHRASE_NONE ? behind.len : comma);
    return phrase_find(part, PHRASE_LIST(words), &n) != PHRASE_NONE;
}

static bool says_it(const struct sign *s, const struct spot *at)
{
    struct str next = {NULL, 0};
    size_t i = 0;
    switch (s->where) {
    case ANYWHERE:
        return true;
    case FIRST:
        return at->first;
    case IF:
        return !is_question(at->before);
    case WHEN:
        return speaks_of_failure(at->behind) ||
               (!is_about_order(at->behind) && !is_question(at->before));
    case WHILE:
        return !phrase_word(at->behind, &i, &next) || !phrase_gerund(next);
    case EVERY:
        return !is_counted(at->before) && unsaid_is_time(at->behind);
    }
    return false;
}

enum unsaid_kind unsaid_find(struct str text, struct str *ret_words)
{
    struct spot spot = {.text = text, .first = true};
    struct str word;
    size_t at = 0;
    while (phrase_word(text, &at, &word)) {
        const size_t start = (size_t)(word.ptr - text.ptr);
        const struct str rest = phrase_cut(text, start, text.len);
        for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
            const size_t n = phrase_begins(rest, signs[i].words);
            spot.behind = phrase_cut(rest, n, rest.len);
            if (n == 0 || !says_it(&signs[i], &spot)) {
                continue;
            }
            *ret_words = phrase_cut(rest, 0, n);
            const bool condition = signs[i].kind == UNSAID_CONDITION;
            return condition && speaks_of_failure(rest) ? UNSAID_FAILURE : signs[i].kind;
        }
        spot.before = word;
        spot.first = false;
    }
    return UNSAID_NOTHING;
}

const char *unsaid_text(enum unsaid_kind k)
{
    static const char *const texts[] = {
        [UNSAID_NOTHING] = "",
        [UNSAID_CONDITION] =
            "is a condition, which a plan made from words cannot have; give a plan "
            "(its steps know runIf and gate), or let a model plan (planner llm)",
        [UNSAID_FAILURE] = "is about failures; say it in a plan's steps (onFailure, maxRetries, "
                           "fallbackAgents), or let a model plan (planner llm)",
        [UNSAID_LOOP] = "is a loop, which no plan has; name each thing to do, or give a plan "
                        "(maxRetries repeats a step that fails)",
        [UNSAID_TIME] = "is a time or an interval: a plan runs once and now; start it from a timer "
                        "such as cron",
        [UNSAID_ORDER] = "leaves open what comes first; set the two parts apart by a comma, or put "
                         "them in their order with \"then\"",
        [UNSAID_NOT] = "says what is not to be done, or asks about work: say only what is to be "
                       "done, or let a model plan (planner llm)",
        [UNSAID_PERSON] = "is about a person's word; a plan's step says it (requiresApproval), or "
                          "the policy (signoff)",
        [UNSAID_CHOICE] = "leaves open which of the two; say one of them, or let a model plan "
                          "(planner llm)",
    };
    _Static_assert(sizeof texts / sizeof texts[0] == UNSAID_KIND_COUNT, "a text for each");
    ASSERT((unsigned)k < UNSAID_KIND_COUNT);
    return texts[k];
}

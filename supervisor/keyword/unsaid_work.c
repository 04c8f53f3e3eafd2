/*
 * Words that turn what is asked for into something else: what is not to be done, what a person is
 * to be asked before, one of two, at another time, more than once. The routing would find the verb
 * behind them and do it, which is often the opposite.
 */
#include "supervisor/keyword/unsaid.h"

#include "supervisor/keyword/phrase.h"
#include "supervisor/keyword/words.h"

enum {
    REACH = 8,        /* words between "not" and what is not to be done */
    REACH_BYTES = 512 /* hostile goals are long */
};

/* Where a phrase counts, and what must follow it. */
enum use {
    USE_ALWAYS,
    USE_FIRST,  /* as the first words, unless an agent can do that */
    USE_BEFORE, /* before work or a thing, a few words on; or at the end */
    USE_NEXT,   /* directly before work */
    USE_OTHER,  /* directly before a thing, or what begins another work */
    USE_EDGE    /* as the first or the last words */
};

struct turn {
    const char *words;
    enum unsaid_kind kind;
    enum use use;
};

static const struct turn turns[] = {
    {"not", UNSAID_NOT, USE_BEFORE},
    {"don't", UNSAID_NOT, USE_BEFORE},
    {"don\xe2\x80\x99t", UNSAID_NOT, USE_BEFORE},
    {"dont", UNSAID_NOT, USE_BEFORE},
    {"can't", UNSAID_NOT, USE_BEFORE},
    {"cannot", UNSAID_NOT, USE_BEFORE},
    {"mustn't", UNSAID_NOT, USE_BEFORE},
    {"shouldn't", UNSAID_NOT, USE_BEFORE},
    {"won't", UNSAID_NOT, USE_BEFORE},
    {"never", UNSAID_NOT, USE_BEFORE},
    {"without", UNSAID_NOT, USE_BEFORE},
    {"except", UNSAID_NOT, USE_BEFORE},
    {"neither", UNSAID_NOT, USE_BEFORE},
    {"instead of", UNSAID_NOT, USE_BEFORE},
    {"rather than", UNSAID_NOT, USE_BEFORE},
    {"refuse to", UNSAID_NOT, USE_BEFORE},
    {"avoid", UNSAID_NOT, USE_BEFORE},
    {"but skip", UNSAID_NOT, USE_BEFORE},
    {"no", UNSAID_NOT, USE_NEXT},
    {"stop", UNSAID_NOT, USE_FIRST},
    {"cancel", UNSAID_NOT, USE_FIRST},
    {"undo", UNSAID_NOT, USE_FIRST},
    {"revert", UNSAID_NOT, USE_FIRST},
    {"prevent", UNSAID_NOT, USE_FIRST},
    {"forbid", UNSAID_NOT, USE_FIRST},
    {"skip", UNSAID_NOT, USE_FIRST},
    {"pretend", UNSAID_NOT, USE_FIRST},
    {"simulate", UNSAID_NOT, USE_FIRST},
    {"imagine", UNSAID_NOT, USE_FIRST},
    {"dry run", UNSAID_NOT, USE_FIRST},
    {"explain", UNSAID_NOT, USE_FIRST},
    {"why", UNSAID_NOT, USE_FIRST},
    {"how do", UNSAID_NOT, USE_FIRST},
    {"how to", UNSAID_NOT, USE_FIRST},
    {"how can", UNSAID_NOT, USE_FIRST},
    {"how should", UNSAID_NOT, USE_FIRST},
    {"what would", UNSAID_NOT, USE_FIRST},
    {"what happens", UNSAID_NOT, USE_FIRST},
    {"did", UNSAID_NOT, USE_FIRST},
    {"was", UNSAID_NOT, USE_FIRST},
    {"were", UNSAID_NOT, USE_FIRST},
    {"has", UNSAID_NOT, USE_FIRST},
    {"have you", UNSAID_NOT, USE_FIRST},
    {"should", UNSAID_NOT, USE_FIRST},
    {"ask me", UNSAID_PERSON, USE_ALWAYS},
    {"ask us", UNSAID_PERSON, USE_ALWAYS},
    {"ask first", UNSAID_PERSON, USE_ALWAYS},
    {"check with me", UNSAID_PERSON, USE_ALWAYS},
    {"confirm with me", UNSAID_PERSON, USE_ALWAYS},
    {"let me approve", UNSAID_PERSON, USE_ALWAYS},
    {"let me confirm", UNSAID_PERSON, USE_ALWAYS},
    {"let me check", UNSAID_PERSON, USE_ALWAYS},
    {"let me decide", UNSAID_PERSON, USE_ALWAYS},
    {"my approval", UNSAID_PERSON, USE_ALWAYS},
    {"my permission", UNSAID_PERSON, USE_ALWAYS},
    {"my consent", UNSAID_PERSON, USE_ALWAYS},
    {"my ok", UNSAID_PERSON, USE_ALWAYS},
    {"my okay", UNSAID_PERSON, USE_ALWAYS},
    {"after approval", UNSAID_PERSON, USE_ALWAYS},
    {"upon approval", UNSAID_PERSON, USE_ALWAYS},
    {"with approval", UNSAID_PERSON, USE_ALWAYS},
    {"wait for approval", UNSAID_PERSON, USE_ALWAYS},
    {"i approve", UNSAID_PERSON, USE_ALWAYS},
    {"i agree", UNSAID_PERSON, USE_ALWAYS},
    {"i confirm", UNSAID_PERSON, USE_ALWAYS},
    {"i say", UNSAID_PERSON, USE_ALWAYS},
    {"i have approved", UNSAID_PERSON, USE_ALWAYS},
    {"or", UNSAID_CHOICE, USE_OTHER},
    {"tomorrow", UNSAID_TIME, USE_EDGE},
    {"tonight", UNSAID_TIME, USE_EDGE},
    {"later", UNSAID_TIME, USE_EDGE},
    {"at noon", UNSAID_TIME, USE_EDGE},
    {"at midnight", UNSAID_TIME, USE_EDGE},
    {"twice", UNSAID_LOOP, USE_ALWAYS},
    {"thrice", UNSAID_LOOP, USE_ALWAYS},
    {"each of them", UNSAID_LOOP, USE_ALWAYS},
    {"one by one", UNSAID_LOOP, USE_ALWAYS},
    {"reverse order", UNSAID_ORDER, USE_ALWAYS},
    {"but first", UNSAID_ORDER, USE_ALWAYS},
};

/* ---- what stands behind ---- */

static bool is_thing(struct str word)
{
    return word.len > 0 &&
           (strchr("\"`'", word.ptr[0]) != NULL || token_is_path(word) || token_is_url(word));
}

/* Work or a thing among the next words, up to a comma; or no words at all. */
static bool reaches(const struct verbs *verbs, struct str behind, uint32_t reach)
{
    const size_t near = behind.len < REACH_BYTES ? behind.len : REACH_BYTES;
    const size_t comma = phrase_comma(phrase_cut(behind, 0, near));
    struct str word;
    size_t at = 0;
    uint32_t n = 0;

    behind = phrase_cut(behind, 0, comma == PHRASE_NONE ? near : comma);
    for (; n < reach && phrase_word(behind, &at, &word); n++) {
        if (is_thing(word) || verbs_know(verbs, word)) {
            return true;
        }
    }
    return n == 0 && reach > 1;
}

/* "whether or not", "not only" */
static bool is_harmless(struct str before, struct str rest)
{
    static const char *const words[] = {"whether", "or"};
    return phrase_begins(rest, "not only") > 0 ||
           (phrase_begins(rest, "not") > 0 && phrase_is(before, PHRASE_LIST(words))) ||
           phrase_begins(rest, "or not") > 0;
}

struct place {
    struct str before, rest, behind;
    bool first;
};

static bool counts(const struct turn *t, const struct verbs *verbs, const struct place *p)
{
    struct str word;
    size_t at = 0;

    switch (t->use) {
    case USE_ALWAYS:
        return true;
    case USE_FIRST:
        return p->first && phrase_word(p->rest, &at, &word) && !verbs_know(verbs, word);
    case USE_BEFORE:
        return !is_harmless(p->before, p->rest) && reaches(verbs, p->behind, REACH);
    case USE_NEXT:
        return !is_harmless(p->before, p->rest) && reaches(verbs, p->behind, 1);
    case USE_OTHER:
        return !is_harmless(p->before, p->rest) &&
               (verbs_begin(verbs, p->behind) ||
                (phrase_word(p->behind, &at, &word) && is_thing(word)));
    case USE_EDGE:
        return p->first || !phrase_word(p->behind, &at, &word);
    }
    return false;
}

/* ---- numbers ---- */

/* "17:00", "5pm" */
static bool is_clock(struct str word)
{
    static const char *const halves[] = {"am", "pm"};
    size_t n = 0;

    while (n < word.len && word.ptr[n] >= '0' && word.ptr[n] <= '9') {
        n++;
    }
    return n > 0 && n <= 2 && n < word.len &&
           (word.ptr[n] == ':' || phrase_is(phrase_cut(word, n, word.len), PHRASE_LIST(halves)));
}

/* "at 5pm", "in 5 minutes" at the end, "three times". */
static enum unsaid_kind counted(const struct place *p, struct str *ret_words)
{
    static const char *const numbers[] = {"two", "three", "four", "five", "six", "ten"};
    static const char *const times[] = {"times"};
    struct str a;
    struct str b;
    struct str c;
    struct str more;
    size_t at = 0;
    const bool two = phrase_word(p->rest, &at, &a) && phrase_word(p->rest, &at, &b);
    const size_t end_two = at;
    const bool three = two && phrase_word(p->rest, &at, &c);
    const bool last = three && !phrase_word(p->rest, &at, &more);
    const bool digits = two && a.len > 0 && a.ptr[0] >= '0' && a.ptr[0] <= '9';

    *ret_words = phrase_cut(p->rest, 0, two ? end_two : 0);
    if (two && (digits || phrase_is(a, PHRASE_LIST(numbers))) && phrase_is(b, times, 1)) {
        return UNSAID_LOOP;
    }
    if (two && phrase_begins(a, "at") == a.len && is_clock(b)) {
        return UNSAID_TIME;
    }
    if (last && phrase_begins(a, "in") == a.len && b.ptr[0] >= '0' && b.ptr[0] <= '9' &&
        unsaid_is_time(phrase_cut(p->rest, (size_t)(b.ptr - p->rest.ptr), p->rest.len))) {
        *ret_words = p->rest;
        return UNSAID_TIME;
    }
    return UNSAID_NOTHING;
}

enum unsaid_kind unsaid_work(struct str text, const struct verbs *verbs, struct str *ret_words)
{
    struct place p = {.first = true};
    struct str word;
    size_t at = 0;

    while (phrase_word(text, &at, &word)) {
        enum unsaid_kind kind;
        word = word.len > 1 && word.ptr[0] == '(' ? phrase_cut(word, 1, word.len) : word;
        p.rest = phrase_cut(text, (size_t)(word.ptr - text.ptr), text.len);
        for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
            const size_t n = phrase_begins(p.rest, turns[i].words);
            p.behind = phrase_cut(p.rest, n, p.rest.len);
            if (n > 0 && counts(&turns[i], verbs, &p)) {
                *ret_words = phrase_cut(p.rest, 0, n);
                return turns[i].kind;
            }
        }
        kind = counted(&p, ret_words);
        if (kind != UNSAID_NOTHING) {
            return kind;
        }
        p.before = word;
        p.first = false;
    }
    return UNSAID_NOTHING;
}

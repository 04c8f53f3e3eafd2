/*
 * What a plan made from words cannot say: conditions, loops, times, what is done when something
 * fails, what is not to be done, what a person is asked first. A goal that asks for it is refused
 * with the words that do, rather than run as if they were not there. Pure. Private to this folder.
 */
#ifndef PLANNER_UNSAID_H
#define PLANNER_UNSAID_H

#include "protocol/base/str.h"
#include "supervisor/keyword/verbs.h"

enum unsaid_kind {
    UNSAID_NOTHING,
    UNSAID_CONDITION, /* if, unless, otherwise */
    UNSAID_FAILURE,   /* when ... fails */
    UNSAID_LOOP,      /* until, repeat, for each */
    UNSAID_TIME,      /* every hour */
    UNSAID_ORDER,     /* after, before, once without a comma: what belongs to which part? */
    UNSAID_NOT,       /* "do not", "without ...ing", "why": speaks of work, does not ask for it */
    UNSAID_PERSON,    /* "ask me first" */
    UNSAID_CHOICE,    /* "a.txt or b.txt" */
    UNSAID_KIND_COUNT
};

/* The first of it in the text; *ret_words = which words say it. */
enum unsaid_kind unsaid_find(struct str text, struct str *ret_words);
/* The same of words that turn the work behind them into something else. */
enum unsaid_kind unsaid_work(struct str text, const struct verbs *verbs, struct str *ret_words);
/* "is a condition, ...": what would be right. */
const char *unsaid_text(enum unsaid_kind k);
/* "every hour", "5 minutes", "a day": whether the text begins with a length of time. */
bool unsaid_is_time(struct str text);
#endif

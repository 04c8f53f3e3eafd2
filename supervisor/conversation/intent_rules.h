/*
 * What a person wants of a plan, read from short messages without a model. A rule must fit the
 * whole message, so that a goal which merely contains such words stays a goal. What was meant is
 * checked against the plan by say.c. Pure.
 */
#ifndef CONVERSATION_SAY_RULES_H
#define CONVERSATION_SAY_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"

enum intent_kind {
    INTENT_UNKNOWN, /* no rule fits */
    INTENT_SKIP,    /* the steps of `ranges` */
    INTENT_SKIP_TO, /* ranges[0].from */
    INTENT_STOP,
    INTENT_PAUSE,
    INTENT_RESUME, /* also a yes, when something waits for one ("go ahead") */
    INTENT_YES, /* ranges: to this step; n_ranges 0 = to the one that waits. rest: what was added */
    INTENT_NO,  /* the same */
    INTENT_STATUS,
    INTENT_ASK,    /* "just asking ...": changes nothing */
    INTENT_ANSWER, /* "answer: ...": rest goes to what waits, whatever it is; "step 2: ...": to
                   that step (ranges). A goal may begin like that: it counts only while a plan is
                   open */
    INTENT_NEW     /* "new plan: ...": rest is the goal, perhaps empty */
};

/* Step numbers count from 1; these stand for a step that only the plan knows. */
#define INTENT_STEP_LAST UINT32_MAX
#define INTENT_STEP_NEXT (UINT32_MAX - 1)
#define INTENT_STEP_THIS (UINT32_MAX - 2)

enum { INTENT_RANGES_MAX = 16 };

struct intent_range {
    uint32_t from, to;
};

struct intent {
    enum intent_kind intent;
    struct intent_range ranges[INTENT_RANGES_MAX];
    uint32_t n_ranges;
    struct str rest;   /* points into the message */
    bool only_resumes; /* RESUME: no yes to what waits ("resume", "no, go on") */
};

struct intent intent_read(struct str text);
#endif

/*
 * What a person wants of a plan, told from short messages without a model. A rule must fit the
 * whole message, so that a goal which merely contains such words stays a goal. What was meant is
 * checked against the plan by session_say.c. Pure.
 */
#ifndef ENGINE_SAY_RULES_H
#define ENGINE_SAY_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/str.h"

enum say_intent {
    SAY_UNKNOWN, /* no rule fits */
    SAY_SKIP,    /* the steps of `ranges` */
    SAY_SKIP_TO, /* ranges[0].from */
    SAY_STOP,
    SAY_PAUSE,
    SAY_RESUME, /* also a yes, when something waits for one ("go ahead") */
    SAY_YES,    /* ranges: to this step; n_ranges 0 = to the one that waits. rest: what was added */
    SAY_NO,     /* the same */
    SAY_STATUS,
    SAY_ASK,    /* "just asking ...": changes nothing */
    SAY_ANSWER, /* "answer: ...": rest goes to what waits, whatever it says; "step 2: ...": to that
                   step (ranges). A goal may begin like that: it counts only while a plan is open */
    SAY_NEW     /* "new plan: ...": rest is the goal, perhaps empty */
};

/* Step numbers count from 1; these stand for a step that only the plan knows. */
#define SAY_STEP_LAST UINT32_MAX
#define SAY_STEP_NEXT (UINT32_MAX - 1)
#define SAY_STEP_THIS (UINT32_MAX - 2)

enum { SAY_RANGES_MAX = 16 };

struct say_range {
    uint32_t from, to;
};

struct say {
    enum say_intent intent;
    struct say_range ranges[SAY_RANGES_MAX];
    uint32_t n_ranges;
    struct str rest;   /* points into the message */
    bool only_resumes; /* RESUME: no yes to what waits ("resume", "no, go on") */
};

struct say say_read(struct str text);
#endif

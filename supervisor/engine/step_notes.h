/*
 * What a plan's rows say that its run, which holds no text, cannot: what an agent asked of a
 * person, the feedback for the next attempt, the parameters that a person gave, why a step was not
 * done, and whether its context was whole.
 * Only steps that have such a thing have a note, and a step that completes keeps only the last, so
 * a waiting plan pays for one. Filled from records, live and at a recovery alike. Not thread-safe:
 * the loop thread's.
 */
#ifndef ENGINE_STEP_NOTES_H
#define ENGINE_STEP_NOTES_H

#include "protocol/base/arena.h"
#include "protocol/base/str.h"
#include "supervisor/core/run/aggregate.h"
#include "supervisor/core/run/record.h"

enum { NOTE_PROMPT_MAX = 2048, NOTE_FEEDBACK_MAX = 8192, NOTE_EDITS_MAX = 16, NOTE_WHY_MAX = 300 };

struct note_edit {
    struct blob_ref doc;
    bool adds; /* data that was asked for: goes beside the parameters instead of in their place */
};

/* A copy of a text. */
struct note_text {
    uint32_t len;
    char at[];
};

/* Of the texts NULL is none; note_text reads them. */
struct note {
    uint32_t step;
    uint16_t edits_n;
    bool context_truncated; /* its last attempt read only a part of the results before it */
    struct note_text *prompt, *feedback;
    struct note_text *why; /* of an ended step: why it was not done */
    struct note_text
        *error; /* of a step that a replan drops, or that a search agent got: its own */
    struct note_edit *edits;
};

static inline struct str note_text(const struct note_text *text)
{
    return text != NULL ? (struct str){text->at, text->len} : (struct str){"", 0};
}

struct step_notes {
    struct note *at; /* ascending steps */
    uint32_t n, cap;
};

void step_notes_done(struct step_notes *n);
/* Takes from the record what is to be kept. Want of memory costs a text, never the plan. */
void step_notes_record(struct step_notes *n, const struct record *rec);
/* Whether the context of the step's last attempt has less than the results in its scope. Want of
 * memory costs the mark. */
void step_notes_context(struct step_notes *n, uint32_t step, bool truncated);
/* The steps with that mark, in the arena. False: out of memory. */
BT_MUST_CHECK bool step_notes_readers(const struct step_notes *n, struct arena *arena,
                                      struct aggregate_readers *ret);
/* Feedback for the next attempt of the step. */
void step_notes_feedback(struct step_notes *n, uint32_t step, struct str text);
/* NULL when nothing is kept for the step. Valid until the next record. */
const struct note *step_notes_of(const struct step_notes *n, uint32_t step);
#endif

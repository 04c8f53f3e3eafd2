/*
 * What a plan's rows say that its run, which holds no text, cannot: what an agent asked of a
 * person, the feedback for the next attempt, and the parameters that a person gave.
 * Only steps that have such a thing have a note, and an ended step has none, so a waiting plan pays
 * for one. Filled from records, live and at a recovery alike. Not thread-safe: the loop thread's.
 */
#ifndef ENGINE_STEP_NOTES_H
#define ENGINE_STEP_NOTES_H

#include "protocol/base/str.h"
#include "supervisor/core/run/record.h"

enum { NOTE_PROMPT_MAX = 2048, NOTE_FEEDBACK_MAX = 8192, NOTE_EDITS_MAX = 16 };

struct note_edit {
    struct blob_ref doc;
    bool adds; /* data that was asked for: goes beside the parameters instead of in their place */
};

struct note {
    uint32_t step;
    uint32_t edits_n;
    struct str prompt, feedback; /* own memory */
    struct note_edit *edits;
};

struct step_notes {
    struct note *at; /* ascending steps */
    uint32_t n, cap;
};

void step_notes_done(struct step_notes *n);
/* Takes from the record what is to be kept. Want of memory costs a text, never the plan. */
void step_notes_record(struct step_notes *n, const struct record *rec);
/* Feedback for the next attempt of the step. */
void step_notes_feedback(struct step_notes *n, uint32_t step, struct str text);
/* NULL when nothing is kept for the step. Valid until the next record. */
const struct note *step_notes_of(const struct step_notes *n, uint32_t step);
#endif

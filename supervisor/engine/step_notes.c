#include "supervisor/engine/step_notes.h"

#include <stdlib.h>

#include "protocol/base/utf8.h"

static void free_note(struct note *t)
{
    free(t->prompt);
    free(t->feedback);
    free(t->why);
    free(t->error);
    free(t->edits);
}

void step_notes_done(struct step_notes *n)
{
    for (uint32_t i = 0; i < n->n; i++) {
        free_note(&n->at[i]);
    }
    free(n->at);
    *n = (struct step_notes){0};
}

/* Where the step's note is, or would be. */
static uint32_t place_of(const struct step_notes *n, uint32_t step)
{
    uint32_t low = 0;
    uint32_t high = n->n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (n->at[mid].step < step) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

const struct note *step_notes_of(const struct step_notes *n, uint32_t step)
{
    uint32_t at = place_of(n, step);

    return at < n->n && n->at[at].step == step ? &n->at[at] : NULL;
}

/* Finds or adds; NULL when out of memory. */
static struct note *open_note(struct step_notes *n, uint32_t step)
{
    uint32_t at = place_of(n, step);

    if (at < n->n && n->at[at].step == step) {
        return &n->at[at];
    }
    if (n->n == n->cap) {
        uint32_t cap = n->cap == 0 ? 1 : n->cap * 2;
        struct note *grown = realloc(n->at, cap * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        n->at = grown;
        n->cap = cap;
    }
    memmove(&n->at[at + 1], &n->at[at], (n->n - at) * sizeof *n->at);
    n->at[at] = (struct note){.step = step};
    n->n++;
    return &n->at[at];
}

static void drop(struct step_notes *n, uint32_t step)
{
    uint32_t at = place_of(n, step);

    if (at < n->n && n->at[at].step == step) {
        free_note(&n->at[at]);
        n->n--;
        memmove(&n->at[at], &n->at[at + 1], (n->n - at) * sizeof *n->at);
    }
}

static void keep_text(struct note_text **to, struct str from, size_t max)
{
    const size_t len = from.len == 0 ? 0 : utf8_cut(from.ptr, from.len, max);
    struct note_text *copy = len == 0 ? NULL : malloc(sizeof *copy + len);

    if (copy != NULL) {
        copy->len = (uint32_t)len;
        memcpy(copy->at, from.ptr, len);
    }
    free(*to);
    *to = copy;
}

/* New parameters make the older ones void; data that was asked for adds up. */
static void keep_edit(struct note *t, struct blob_ref doc, bool adds)
{
    struct note_edit *grown;

    if (!adds) {
        t->edits_n = 0;
    } else if (t->edits_n == NOTE_EDITS_MAX) {
        const uint16_t from =
            t->edits[0].adds ? 0 : 1; /* the parameters stay; the oldest data goes */
        memmove(&t->edits[from], &t->edits[from + 1],
                (size_t)(t->edits_n - from - 1) * sizeof *t->edits);
        t->edits_n--;
    }
    grown = realloc(t->edits, (t->edits_n + (size_t)1) * sizeof *grown);
    if (grown != NULL) {
        t->edits = grown;
        t->edits[t->edits_n++] = (struct note_edit){.doc = doc, .adds = adds};
    }
}

static void on_decided(struct step_notes *n, const struct record *rec)
{
    const struct rec_decided *decided = REC(rec, decided);
    bool told = decided->decision == DECISION_APPROVE && rec->text.len > 0;
    bool edited = decided->decision == DECISION_APPROVE && decided->result.id != 0;
    struct note *t =
        step_notes_of(n, rec->step) != NULL || told || edited ? open_note(n, rec->step) : NULL;

    if (t == NULL) {
        return;
    }
    keep_text(&t->prompt, (struct str){NULL, 0}, 0);
    if (told) {
        keep_text(&t->feedback, rec->text, NOTE_FEEDBACK_MAX);
    }
    if (edited) {
        keep_edit(t, decided->result, decided->review == REVIEW_INPUT);
    }
}

void step_notes_feedback(struct step_notes *n, uint32_t step, struct str text)
{
    struct note *t = text.len > 0 ? open_note(n, step) : NULL;

    if (t != NULL) {
        keep_text(&t->feedback, text, NOTE_FEEDBACK_MAX);
    }
}

static void on_ended(struct step_notes *n, const struct record *rec)
{
    const struct rec_step_completed *end = REC(rec, step_completed);
    const bool undone =
        end->status != STEP_COMPLETED && end->reason != REASON_SUPERSEDED && rec->text.len > 0;
    const struct note *before = step_notes_of(n, rec->step);
    const bool truncated = before != NULL && before->context_truncated;
    struct note *t;

    drop(n, rec->step);
    t = undone || truncated ? open_note(n, rec->step) : NULL;
    if (t != NULL) {
        t->context_truncated = truncated;
        keep_text(&t->why, undone ? rec->text : (struct str){NULL, 0}, NOTE_WHY_MAX);
    }
}

void step_notes_context(struct step_notes *n, uint32_t step, bool truncated)
{
    struct note *t = truncated || step_notes_of(n, step) != NULL ? open_note(n, step) : NULL;

    if (t != NULL) {
        t->context_truncated = truncated;
    }
}

bool step_notes_readers(const struct step_notes *n, struct arena *arena,
                        struct aggregate_readers *ret)
{
    uint32_t *at = arena_alloc(arena, (n->n + 1) * sizeof *at);

    *ret = (struct aggregate_readers){.at = at};
    for (uint32_t i = 0; at != NULL && i < n->n; i++) {
        if (n->at[i].context_truncated) {
            at[ret->n++] = n->at[i].step;
        }
    }
    return at != NULL;
}

void step_notes_record(struct step_notes *n, const struct record *rec)
{
    if (rec->step == STEP_NONE) {
        return;
    }
    if (rec->type == REC_STEP_WAITING) {
        struct note *t = rec->text.len > 0 || step_notes_of(n, rec->step) != NULL
                             ? open_note(n, rec->step)
                             : NULL;
        if (t != NULL) {
            keep_text(&t->prompt, rec->text, NOTE_PROMPT_MAX);
        }
    } else if (rec->type == REC_REVIEW_DECIDED) {
        on_decided(n, rec);
    } else if (rec->type == REC_REPLAN_STARTED ||
               (rec->type == REC_FALLBACK_USED && REC(rec, fallback)->action == FALLBACK_SEARCH)) {
        struct note *t = rec->text.len > 0 ? open_note(n, rec->step) : NULL;
        if (t != NULL) {
            keep_text(&t->error, rec->text, NOTE_PROMPT_MAX);
        }
    } else if (rec->type == REC_VERIFICATION_FAILED ||
               (rec->type == REC_HANDOFF && REC(rec, handoff)->kind != HANDOFF_PLAN_STEP)) {
        step_notes_feedback(n, rec->step, rec->text);
    } else if (rec->type == REC_STEP_STARTED || rec->type == REC_STEP_ASSIGNED) {
        if (!uuid_is_nil(REC(rec, assigned)->instance)) { /* an attempt, not what comes before it */
            step_notes_context(n, rec->step, REC(rec, assigned)->context_truncated);
        }
    } else if (rec->type == REC_STEP_COMPLETED) {
        on_ended(n, rec);
    }
}

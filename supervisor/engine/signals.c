#include "supervisor/engine/signals.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"

static void keep(struct signals *s, const struct record *rec)
{
    const struct rec_signal *signal = REC(rec, signal);
    char *text = malloc(rec->text.len + signal->key.len + 1);
    if (s->n == s->cap) {
        const uint32_t cap = s->cap == 0 ? 4 : s->cap * 2;
        struct signal_known *at = realloc(s->at, cap * sizeof *at);
        ASSERT(at != NULL); /* forgetting one would lose a step, or take a signal twice */
        s->at = at;
        s->cap = cap;
    }
    ASSERT(text != NULL);
    if (rec->text.len > 0) {
        memcpy(text, rec->text.ptr, rec->text.len);
    }
    if (signal->key.len > 0) {
        memcpy(text + rec->text.len, signal->key.ptr, signal->key.len);
    }
    s->at[s->n++] = (struct signal_known){.serial = signal->serial,
                                          .taker = STEP_NONE,
                                          .digest = signal->digest,
                                          .result = signal->result,
                                          .name = {text, rec->text.len},
                                          .key = {text + rec->text.len, signal->key.len}};
}

void signals_record(struct signals *s, const struct record *rec)
{
    if (rec->type == REC_SIGNAL_RECEIVED) {
        keep(s, rec);
    } else if (rec->type == REC_STEP_COMPLETED) {
        const uint32_t serial = REC(rec, step_completed)->signal;
        if (serial > 0 && serial <= s->n) {
            s->at[serial - 1].taker = rec->step;
        }
    }
}

const struct signal_known *signals_by_key(const struct signals *s, struct str key)
{
    for (uint32_t i = 0; key.len > 0 && i < s->n; i++) {
        if (str_eq(s->at[i].key, key)) {
            return &s->at[i];
        }
    }
    return NULL;
}

const struct signal_known *signals_kept(const struct signals *s, struct str name)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->at[i].taker == STEP_NONE && str_eq(s->at[i].name, name)) {
            return &s->at[i];
        }
    }
    return NULL;
}

void signals_done(struct signals *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        free((void *)(uintptr_t)s->at[i].name.ptr);
    }
    free(s->at);
    *s = (struct signals){.at = NULL};
}

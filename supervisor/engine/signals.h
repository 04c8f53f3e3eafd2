/*
 * The signals of an open plan: those that no step has taken yet, and all others for their
 * clientKeys. Rebuilt from the plan's rows; the core counts them and decides who takes one.
 */
#ifndef ENGINE_SIGNALS_H
#define ENGINE_SIGNALS_H

#include "supervisor/core/run/record.h"

struct signal_known {
    uint32_t serial;
    uint32_t taker;  /* the step that took it; STEP_NONE = it is kept */
    uint64_t digest; /* of its name and data */
    struct blob_ref result;
    struct str name, key; /* own memory: one block, at name.ptr */
};

struct signals {
    struct signal_known *at; /* by serial, without gaps */
    uint32_t n, cap;
};

/* A signal came, or a step took one. Other records change nothing. */
void signals_record(struct signals *s, const struct record *rec);
/* The one with the clientKey; NULL when there is none. An empty key is nobody's. */
const struct signal_known *signals_by_key(const struct signals *s, struct str key);
/* The oldest of the name that is kept; NULL when there is none. */
const struct signal_known *signals_kept(const struct signals *s, struct str name);
void signals_done(struct signals *s);
#endif

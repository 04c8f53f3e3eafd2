/*
 * An event with the fields of all types side by side. For tests that draw events of any type at
 * random. A field that the type does not have is left out.
 */
#ifndef TESTS_FLAT_EVENT_H
#define TESTS_FLAT_EVENT_H

#include "supervisor/core/sched/core_event.h"

struct flat_event {
    enum core_event_type type;
    msec now;
    msec wall;
    const struct plan *plan;
    void *block;
    uint64_t run;
    uint32_t step;
    uint32_t attempt;
    uint32_t agent;
    struct uuid instance;
    uint32_t capacity;
    uint32_t pid;
    uint32_t slot;
    uint64_t epoch;
    uint32_t lane;
    bool sent;
    bool running;
    enum step_outcome outcome;
    enum err_class error_class;
    bool retryable_given;
    bool retryable;
    msec retry_after_ms;
    struct blob_ref result; /* the document, where a plan comes with the event */
    struct usage usage;
    enum review_decision decision;
    uint64_t n;
    double percent;
    struct str text;
    struct doc data;
    enum step_phase phase;
    bool passed;
    bool invalid; /* JOB_TEXT: the text restarts */
    bool ok;      /* CONDITION: it is true; with `invalid` there is no verdict */
    bool spawned;
    struct uuid process;
    bool never;
    enum modify_kind modify;
    uint32_t expect;
    const uint32_t *steps;
    uint32_t n_steps;
    enum job_kind job;
};

struct core_event event_of_flat(const struct flat_event *flat);
#endif

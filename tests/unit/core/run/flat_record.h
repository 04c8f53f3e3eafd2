/*
 * A record with the fields of all types side by side. For tests that treat every type alike:
 * traces, hashes, random records. A field that the type does not have is zero.
 */
#ifndef TESTS_FLAT_RECORD_H
#define TESTS_FLAT_RECORD_H

#include "supervisor/core/run/record.h"

struct flat_record {
    enum record_type type;
    uint64_t run;
    msec now;
    msec wall;
    uint32_t step;
    uint32_t attempt;
    uint32_t agent;
    uint32_t from_agent;
    struct uuid instance;
    struct uuid process;
    uint64_t epoch;
    enum step_status status;
    enum step_reason reason;
    enum err_class error_class;
    enum plan_status plan_status;
    enum plan_outcome outcome;
    enum plan_failure failure;
    enum review_kind review;
    enum review_decision decision;
    uint32_t serial;
    enum step_phase phase;
    enum pause_reason pause;
    enum modify_kind modify;
    enum handoff_kind handoff;
    enum fallback_action fallback;
    bool asked; /* of a retry or fallback: by the agent */
    enum step_stop stop;
    bool doubt;
    bool ok;
    uint32_t revision;
    uint32_t capacity;
    uint32_t pid;
    msec delay_ms;
    msec duration_ms;
    struct blob_ref result;
    struct usage usage;
    double percent;
    uint64_t n;
    struct str text;
    struct doc data;
};

struct flat_record flat_record(const struct record *rec);
/* The fields that the type has. */
struct record record_of_flat(const struct flat_record *flat);
#endif

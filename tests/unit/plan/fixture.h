/* Documents from JSON, and a set of agents like the bundled ones. */
#ifndef TEST_PLANNER_FIXTURE_H
#define TEST_PLANNER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/wire/msg.h"
#include "registry/registry.h"
#include "supervisor/plan/read.h"

/* All memory of a test. */
struct bench {
    struct arena arena;
    struct registry *registry;
    struct problem at[100];
    struct problems problems;
    struct plan *plan;
    struct run *run; /* of the plan, when a test sets one */
    struct buf normalised;
    struct bt_error err;
    bool lenient; /* of read_doc */
};

extern const struct registry_limits bench_limits;

int bench_setup(void **state);
int bench_teardown(void **state);

/* JSON (single quotes stand for double ones) as a document in the bench's arena. */
struct doc doc_of(struct bench *b, const char *json);
/* The document as JSON with single quotes, in the bench's arena. */
const char *json_of(struct bench *b, struct doc doc);
/* Registers an agent with a card given as JSON. */
void add_agent(struct bench *b, const char *card_json);
/* files, sql, calc, exec: small cards in the style of the bundled ones. */
void add_house(struct bench *b);

/* Reads a plan and returns the code. Problems, plan and canonical document are in the bench. */
enum bt_code read_doc(struct bench *b, struct doc doc);
enum bt_code read_json(struct bench *b, const char *json);
/*
 * Reads the last canonical document with plan_read_canonical and returns the canonical document of
 * that plan; fails the test when they are not equal byte for byte.
 */
struct plan *read_back(struct bench *b);
/* "category step field: message" of the i-th problem; "" when there is none. */
const char *problem_of(struct bench *b, uint32_t i);

#define RULE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
#endif

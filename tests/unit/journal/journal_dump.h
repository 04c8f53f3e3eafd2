/* All that is in a journal, as lines: every reading of every kind of thing, to the last field. */
#ifndef TESTS_JOURNAL_DUMP_H
#define TESTS_JOURNAL_DUMP_H

#include "tests/unit/journal/journal_fixture.h"

enum { DUMP_IDS = 6, DUMP_SESSIONS = 3, DUMP_TURNS = 4, DUMP_NAMES = 3, DUMP_BLOBS = 40 };

/* Things have ids of a small world, so that readings find them. */
struct uuid dump_plan_id(uint64_t n);
struct uuid dump_turn_id(uint64_t n);

/*
 * Appends the lines. A reading that fails is one line with its code and its words; `fails` counts
 * them. No batch may be open. whole: also what the journal in memory does not know, the blobs that
 * a plan names.
 */
void journal_dump(struct journal *j, bool whole, struct buf *out, uint32_t *fails);
/* A row of plan 1 that names blob 1; and a journal with something of everything, of fixed ids. */
enum bt_code journal_add_row(struct journal *j, uint64_t plan_seq, struct bt_error *err);
void journal_fill(struct journal *j);
#endif

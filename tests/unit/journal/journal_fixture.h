/* Journals for tests: one of each kind, in a directory of its own. */
#ifndef TESTS_JOURNAL_FIXTURE_H
#define TESTS_JOURNAL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/base/buf.h"
#include "supervisor/journal/journal.h"
#include "tests/support/memory_journal/memory_journal.h"

enum kind { KIND_SQLITE, KIND_MEMORY, KIND_POSTGRES };

struct fixture {
    enum kind kind;
    struct journal *j;
    struct journal_options opt;
    char root[64]; /* removed with all in it */
    char dir[96];  /* DIR of the journal, below root */
};

/* On SQLite; with BATON_TEST_JOURNAL=postgres, on a PostgreSQL server that the test starts. When
 * none is installed, it says so and ends the program as skipped. */
int fixture_sqlite(void **state);
int fixture_memory(void **state);
int fixture_done(void **state);
/* Simulates a kill and a new start: for SQLite, drops the open batch and opens again. */
void fixture_reopen(struct fixture *f);
void fixture_remove_tree(const char *path);

#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        if ((call) != BT_OK) {                                                                     \
            fail_msg("%s: %s", #call, (err).msg);                                                  \
        }                                                                                          \
    } while (0)

/* Adds a plan with a random id; returns its number. */
uint64_t add_plan(struct journal *j, const char *key, const char *goal);
/* Appends a public row (its seq is returned) or an internal one. */
uint64_t add_event(struct journal *j, uint64_t plan_ix, uint64_t plan_seq, const char *body);
void add_internal(struct journal *j, uint64_t plan_ix, const char *body);
void commit(struct journal *j);

/* Collects the rows of a read: "seq:body " and "(seq):body " for internal rows. */
struct seen {
    char text[4096];
    size_t len;
    uint32_t n;
};
bool see_row(const struct journal_row *row, void *self);
bool see_plan(const struct journal_plan *p,
              void *self); /* "ix:goal/status " or "ix:goal/status/note " */
#endif

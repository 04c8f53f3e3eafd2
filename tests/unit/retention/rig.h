/* The room over a journal in memory whose deletions are told, and some of whose answers are set. */
#ifndef TEST_RETENTION_RIG_H
#define TEST_RETENTION_RIG_H

#include "supervisor/journal/port.h"
#include "supervisor/retention/retention.h"
#include "tests/unit/journal/journal_fixture.h"

enum { START = 1000000, HOUR = 3600 * 1000 };

/* The calls since the last look, and the answers of the journal. */
struct said {
    char text[4000];
    size_t len;
    uint64_t imports[4];
    uint32_t imports_n;
    bool counts; /* rows and tombstones are those below, not the journal's */
    uint32_t rows, gone;
    uint64_t last_blob, blobs_at; /* where a look at blobs ends; 0 = at its end */
    bool sized;
    uint64_t used; /* sized */
    enum bt_code by_id, deletes, commits;
    bool deletes_nothing;
    bool looks_inside; /* tell where plans inside another one are looked for, too */
};
extern struct said said;

struct world {
    struct journal *journal;
    struct retention *retention;
    struct uuid open; /* still in memory; nil = none */
    uint32_t deleted;
    char log[2000];
    size_t log_len;
};

void open_world(struct world *w, const struct retention_options *opt);
void close_world(struct world *w);
void new_retention(struct world *w, const struct retention_options *opt);
/* One cycle, and what it asked of the journal. */
void expect_cycle(struct world *w, msec now, const char *calls);
/* All that is due. */
void run_at(struct world *w, msec now);
/* An ended plan, inside the other one; of NULL = inside none. */
struct uuid add_at(struct world *w, const char *status, msec created, msec ended,
                   const struct uuid *of);
struct uuid add(struct world *w, const char *status, msec ended);
struct journal_plan head_of(struct world *w, struct uuid id);
bool has(struct world *w, struct uuid id);
#endif

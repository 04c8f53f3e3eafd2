/*
 * libpq in the test's own process, with a server that knows no SQL: of a shard its epoch and its
 * position, what is written and when it counts, and for each other text the answer that the test
 * has set. What is sent is written down. Link with -Wl,--wrap=clock_boot_ms,--wrap=clock_wall_ms,
 * --wrap=poll: time is fake_pq.now, and goes on while an answer is waited for. One thread.
 */
#ifndef TESTS_FAKE_PQ_H
#define TESTS_FAKE_PQ_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/buf.h"

enum fake_pq_fault {
    FAKE_PQ_ERROR,      /* the statement fails with `state` */
    FAKE_PQ_UNSENT,     /* libpq refuses to send it */
    FAKE_PQ_LOST,       /* the connection ends, and nothing of the turn has arrived */
    FAKE_PQ_UNANSWERED, /* the turn is done, and the connection ends before its answer */
    FAKE_PQ_SILENT      /* the turn is done, and no answer comes */
};

/* What is stored. */
struct fake_pq_state {
    uint64_t epoch, pos;
    uint64_t rows; /* of SQL_ROW_ADD, one by one or as arrays */
    uint64_t mark; /* of a turn without rows */
    int backend;   /* who took the epoch */
};

struct fake_pq {
    uint64_t now;         /* ms */
    uint64_t latency;     /* ms, of each answer */
    uint32_t refused;     /* so many attempts to connect are refused */
    uint32_t connections; /* of all times */
    int left;             /* results and connections that nobody has freed */
    int poll_errno;       /* the next poll fails with it */
    bool no_sync;         /* the answers of the next pipeline end without that of its Sync */
    bool writes_down;     /* what is sent goes to `log` */
    bool writes_prepared; /* the texts of prepared statements, too; else how many there are */
    struct buf log;
    struct fake_pq_state stored;
};
extern struct fake_pq fake_pq;

void fake_pq_begin(void);
void fake_pq_end(void); /* asserts that all is freed */
/*
 * The answer to statements that contain `text`, or to the prepared one of this name: a row of
 * values between "|", numbers as decimal digits, texts in quotes; NULL = no row. The newest counts.
 * `text` is kept. Without one a SELECT in SQL returns the number 0, a prepared one no row.
 */
void fake_pq_answer(const char *text, const char *row);
/* The prepared statement of this name has so many rows, and returns those that its last two
 * parameters, a limit and an offset, ask for: the numbers from 0. */
void fake_pq_pages(const char *name, uint32_t rows);
/* The n-th statement from now on, 1 = the next one, and the `times` - 1 after it. state: of ERROR,
 * kept. */
void fake_pq_fail(uint32_t n, enum fake_pq_fault fault, const char *state, uint32_t times);
/* Beside fake_pq_fail: the next `times` statements with this text. */
void fake_pq_fail_text(const char *text, enum fake_pq_fault fault, const char *state,
                       uint32_t times);
bool fake_pq_failed(void); /* whether it has come to that */
#endif

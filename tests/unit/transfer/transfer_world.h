/* A SQLite journal of a test with what an export gives, exports of it and imports into it; each
 * reading of it can fail. */
#ifndef TEST_TRANSFER_WORLD_H
#define TEST_TRANSFER_WORLD_H

#include "protocol/base/arena.h"
#include "supervisor/journal/port.h"
#include "supervisor/transfer/transfer.h"
#include "tests/support/cmocka.h"
#include "tests/unit/journal/journal_fixture.h"

/* The ids of plans and turns end with two letters. */
#define ID(n) "0190F3C2-7A1B-7C3D-9E4F-0123456789" n

#define EVENT(id, n) "'type':'plan_started','planId':'" ID(id) "','planSeq':" n

struct world {
    char dir[64];
    struct journal *j;
    struct arena arena;
    struct buf text; /* the last export */
    uint32_t slices;
    char open[3]; /* the plan that is still in memory; "" = none */
    const struct journal_ops *real;
    struct journal_ops ops;
};

extern struct world *world_now; /* whose journal fails */
extern uint32_t asked, fail_at; /* readings so far; the one that fails, 0 = none */
extern enum bt_code fail_with;
extern uint32_t written, fail_write_at; /* the same of what is written, with BT_IO */

int set_up(void **state);
int tear_down(void **state);
void open_journal(struct world *w);
void close_journal(struct world *w);
/* From now on what is read of the journal and written to it is counted. */
void watch(struct world *w);
struct str quoted(struct world *w, const char *json);
/* JSON ("'" for '"') as a document. */
struct str doc(struct world *w, const char *json);
struct uuid id_of(const char *end);
void keep(struct world *w);
/* A plan that ended then; the document may be of any size. */
uint64_t put_plan(struct world *w, const char *end, struct str document, msec created, msec ended,
                  const char *job);
uint64_t put_blob(struct world *w, const char *bytes, size_t len);
/* A row with these members beside `seq`; plan_seq 0: an internal one. */
void put_row(struct world *w, uint64_t ix, uint64_t plan_seq, const char *type, const char *members,
             const uint64_t *blobs, uint32_t n);
void put_event(struct world *w, uint64_t ix, uint64_t n, const char *id);
void put_session(struct world *w, const char *id, msec updated, uint64_t messages);
void put_message(struct world *w, const char *session, const char *text);
void put_schedule(struct world *w, const char *name, struct str document);
/* A document of about so many bytes. */
struct str large(struct world *w, size_t bytes);
/* All slices; what the last one came to. */
enum bt_code export_want(struct world *w, const struct transfer_want *want, struct bt_error *err);
const char *exported(struct world *w, const struct transfer_want *want);
const char *all(struct world *w);
void is_exported(struct world *w, const struct transfer_want *want, const char *lines);
uint32_t count(const char *text, const char *word);
/* Each plan, session and schedule by itself, in parts of so many lines. */
void import(struct world *w, const char *lines, uint32_t part);
bool is_open(void *self, struct uuid id);
#endif

/*
 * A journal in memory, for tests and simulation. It keeps the contract of
 * supervisor/journal/journal.h, except that nothing survives the process.
 */
#ifndef MEMORY_JOURNAL_MEMORY_JOURNAL_H
#define MEMORY_JOURNAL_MEMORY_JOURNAL_H

#include "supervisor/journal/journal.h"

/* The caller closes it with journal_close. */
BT_MUST_CHECK enum bt_code memory_journal_open(struct journal **ret, struct bt_error *err);
/* Makes the fail_at-th commit from now fail; 0 = none. `kept`: its rows are stored all the same. */
void memory_journal_fail(struct journal *j, uint32_t fail_at, bool kept);
/* The next commit waits for its server: it calls who waits so many times (journal_while_waiting),
 * and is stored then. */
void memory_journal_away(struct journal *j, uint32_t calls);
/* Acts like kill -9 and a new start: drops the open batch, adds 1 to the boot count and revives a
 * dead journal. */
void memory_journal_restart(struct journal *j);
#endif

/* The journal on PostgreSQL 15 or newer. See README.md. */
#ifndef JOURNAL_POSTGRES_POSTGRES_H
#define JOURNAL_POSTGRES_POSTGRES_H

#include "supervisor/journal/journal.h"

/*
 * Connects, makes the tables when they are not there, and takes the journal when nobody owns it.
 * BT_CONFLICT: the named node owns it until its lease is over. BT_UNAVAILABLE: no connection.
 * BT_INVALID: the tables are of a newer program.
 */
BT_MUST_CHECK enum bt_code journal_open_postgres(const char *url, const struct journal_options *opt,
                                                 struct journal **ret, struct bt_error *err);
#endif

/* A directory of databases for the tests of the sql agent, empty before each test. */
#ifndef TEST_SQL_WORLD_H
#define TEST_SQL_WORLD_H

#include "tests/unit/agents/steps.h"

#include "agents/sql/sql.h"

extern struct sql_settings *sql_reader; /* readOnly */
extern struct sql_settings *sql_writer; /* not readOnly, at most 100 rows */

int sql_set_up(void **state);
int sql_tear_down(void **state);
int sql_fresh(void **state);
const char *sql_dir(void);
/* Settings with more members (",\"maxRows\":1"). The caller frees with free(). */
struct sql_settings *sql_settings_make(const char *more);
/* Runs a skill with {"sql": sql, ...more} as parameters; see steps_run. */
const char *sql_run(bt_skill_run how, const struct sql_settings *s, const char *sql,
                    const char *more);
/* Runs query on the reader. */
const char *sql_ask(const char *sql);
/* Runs execute on the writer; it must complete. */
void sql_do(const char *sql);
#endif

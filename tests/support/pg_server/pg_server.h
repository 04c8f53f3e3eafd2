/* A PostgreSQL server of the test's own: an unprivileged cluster in a directory of its own, on a
 * socket in it. It ends with the test. One thread. */
#ifndef TESTS_PG_SERVER_H
#define TESTS_PG_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

/* False: PostgreSQL's programs are not installed; they are looked for in /usr/lib/postgresql. */
bool pg_server_installed(void);
/* Makes the cluster at the first call and starts the server when it does not run; asserts that it
 * can. */
void pg_server_start(void);
pid_t pg_server_pid(void);
const char *pg_server_url(void); /* postgresql://... */
/* kill -9 of the whole server. */
void pg_server_kill(void);
/* What pg_ctl -m immediate does. */
void pg_server_stop_at_once(void);
/* Where its socket is: PGHOST. */
const char *pg_server_dir(void);
/* Ends it and removes the cluster; also done at exit. */
void pg_server_done(void);
/* Runs SQL texts; what the last returns first goes to ret (cap bytes, may be NULL). Asserts. */
void pg_server_run(const char *sql, char *ret, size_t cap);
/* Drops what Baton has in it. */
void pg_server_clear(void);
/* For main(): says that the tests are skipped, and why; returns what ctest takes for that. */
int pg_server_skip(const char *what);
#endif

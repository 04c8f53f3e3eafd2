/* What the tests of protocol/link share: events with a deadline, a scratch directory, peers as
 * child processes. */
#ifndef TESTS_EDGE_LINK_FIXTURE_H
#define TESTS_EDGE_LINK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs the four before it */

#include <stdbool.h>
#include <sys/types.h>

#include "protocol/link/link.h"

enum { FIXTURE_WAIT_MS = 5000, FIXTURE_RECV_MAX = 4 * 1024 * 1024 };

/* Every test program starts with this: a wedge ends it (SIGALRM) instead of hanging the run. */
void fixture_watchdog(unsigned seconds);
extern const struct link_limits fixture_limits;

struct link *fixture_link(void);
struct link_server *fixture_server(struct link *l, const char *url, uint32_t n);
/* Dials and waits for LINK_UP. */
struct link_lane *fixture_lane(struct link *l, const char *url);
/* False when nothing came in time. */
bool fixture_next(struct link *l, msec timeout_ms, struct link_event *ret);
/* Fails the test when the next event is of another type. */
struct link_event fixture_expect(struct link *l, enum link_event_type type);
/* Answers requests with their own bytes until something else comes. */
struct link_event fixture_serve_until(struct link *l, enum link_event_type type);
void fixture_send(struct link_lane *lane, const char *text);
/* The event's bytes are `text`; frees the message. */
void fixture_assert_bytes(struct link_event ev, const char *text);
/* One request over a fresh lane is echoed by the server in `l` (same process). */
void fixture_assert_echo(struct link *l, const char *url);

/* A fresh directory, 0700, removed by fixture_rmdir. Valid until the next call. */
const char *fixture_dir(void);
void fixture_rmdir(const char *dir);

struct peer {
    pid_t pid;
    int out; /* what it prints */
    int in;
    char url[256];
};

/* Runs the program link_peer and reads the url that it prints first. */
struct peer peer_start(const char *mode, const char *url, const char *log);
void peer_kill(struct peer *p);
/* Runs argv[0] and returns what it printed (valid until the next call); its exit status goes to
 * *ret_status. */
const char *fixture_run(char *const argv[], int *ret_status);
/* Number of lines of a file; 0 when it is not there. */
int fixture_lines(const char *path);
#endif

/* Shared by the tests of protocol/link: events with a deadline, a scratch directory, peers as child
 * processes. */
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

/* Every test program starts with this: SIGALRM ends a wedged one, so that the run does not hang. */
void fixture_watchdog(unsigned seconds);
extern const struct link_limits fixture_limits;

struct link *fixture_link(void);
struct link_server *fixture_server(struct link *l, const char *url, uint32_t n);
/* Dials and waits for LINK_UP. */
struct link_lane *fixture_lane(struct link *l, const char *url);
/* Returns false when nothing came in time. */
bool fixture_next(struct link *l, msec timeout_ms, struct link_event *ret);
/* Fails the test when the next event is of another type. */
struct link_event fixture_expect(struct link *l, enum link_event_type type);
/* Answers requests with their own bytes until something else comes. */
struct link_event fixture_serve_until(struct link *l, enum link_event_type type);
/* Waits until LINK_LOST and the other event have come, in either order; returns the LINK_LOST. */
struct link_event fixture_expect_lost_and(struct link *l, enum link_event_type other);
void fixture_send(struct link_lane *lane, const char *text);
/* The event's bytes are `text`; frees the message. */
void fixture_assert_bytes(struct link_event ev, const char *text);
/* The server in `l` (same process) echoes one request over a new lane. */
void fixture_assert_echo(struct link *l, const char *url);

struct link_pub *fixture_publisher(struct link *l, const char *url);
/* Dials and waits for LINK_SUB_UP. */
struct link_sub *fixture_subscriber(struct link *l, const char *url, const struct str *prefixes,
                                    uint32_t n);
/* The subscriber's pipe is up before the publisher knows it. Publishes until one frame arrives in
 * `reader`. */
void fixture_wait_live(struct link *reader, struct link_pub *p);
/* Returns the number of open descriptors of this process. */
int fixture_descriptors(void);
/* Returns the number of sockets that nng has open in this process. */
int fixture_sockets(void);
/* A fresh directory, 0700, removed by fixture_rmdir. Valid until the next call. */
const char *fixture_dir(void);
void fixture_rmdir(const char *dir);

/* A child process with pipes to its stdin and stdout. It ends with the test at the latest (the
 * pipes break). */
struct child {
    pid_t pid;
    int in;
    int out;
    int status;
    size_t len;
    char text[4096]; /* what it has printed so far */
};

struct child child_start(char *const argv[]);
bool child_readable(const struct child *c);
/* Reads its next line, without the newline; valid until the next call. Fails the test at its end.
 */
const char *child_line(struct child *c);
/* Closes its stdin, reads the rest, waits for it. */
void child_finish(struct child *c);
void child_kill(struct child *c);
/* Runs the program link_peer beside the test. Its first line is the URL that it serves. */
struct child peer_start(const char *mode, const char *url, const char *log);

/* Number of lines of a file; 0 when it is not there. */
int fixture_lines(const char *path);
#endif

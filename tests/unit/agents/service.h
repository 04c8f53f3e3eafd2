/* An HTTP service in the test's process, on 127.0.0.1: it gives the answers that a test puts up,
 * and keeps what it was asked. One of it; each connection has a thread and one request. */
#ifndef TEST_SERVICE_H
#define TEST_SERVICE_H

#include "tests/support/cmocka.h"

#include "protocol/base/buf.h"

enum service_end {
    SERVICE_CLOSES, /* after the last byte */
    SERVICE_WAITS   /* says nothing more, until the client goes */
};

/* For setup and teardown of a group. Stopping waits for the connections. */
int service_start(void **state);
int service_stop(void **state);
int service_port(void);
/* "http://127.0.0.1:PORT" */
const char *service_url(void);
/* A text with "'" for '"' and "$" for service_url(); valid until the second next call. */
const char *service_text(const char *text);
/* Ends the connections, and forgets answers and requests. */
void service_forget(void);
/* The next answer, once: its bytes as they are. */
void service_raw(struct str bytes, enum service_end end);
/* The same with a status, header lines ("A: 1\r\n" each, or "") and a body with its length. */
void service_next(int status, const char *headers, const char *body);
/* Every answer at this path (to '?' or its end) that nothing was put up for. Texts are borrowed. */
void service_at(const char *path, int status, const char *headers, const char *body);
/* How many requests came, and the i-th as it was sent, with its body; valid until service_forget.
 */
size_t service_count(void);
const char *service_asked(size_t i);
/* Fails the test when the i-th request has not this part, or has it. */
void service_expect(size_t i, const char *part);
void service_expect_not(size_t i, const char *part);
#endif

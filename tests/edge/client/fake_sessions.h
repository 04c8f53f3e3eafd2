/* A fake daemon that has the daemon's own table of sessions: requests of the credential `ci` are
 * sealed. One at a time. */
#ifndef CLIENT_FAKE_SESSIONS_H
#define CLIENT_FAKE_SESSIONS_H

#include "supervisor/auth/sessions.h"
#include "tests/edge/client/fake.h"

enum { FAKE_KEY = 7 };

extern struct sessions *fake_sessions;
/* The sessions end before this request is opened (0 = never), or before each. */
extern _Atomic uint32_t fake_ends_at;
extern _Atomic bool fake_ends_always;
/* A request had a token. */
extern _Atomic bool fake_had_token;

/* The credential `ci` with the key. */
struct credential fake_credential(int key);
/* Before fake_start. */
void fake_sessions_open(void);
/* After it: what is sealed is opened. */
void fake_seals(struct fake *f);
void fake_sessions_close(void);
/* The answer to a request that could not be opened, or to auth.begin; NULL: it is another one, for
 * the test to answer. */
const char *fake_begins(struct fake *f, struct doc request);
#endif

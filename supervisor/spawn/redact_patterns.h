/* What looks like a secret in a line that a program wrote, by its form: nobody here knows the keys
 * of other people's agents. */
#ifndef SPAWN_REDACT_PATTERNS_H
#define SPAWN_REDACT_PATTERNS_H

#include <stddef.h>

#include "protocol/base/str.h"

/* Copies a line of valid UTF-8, cut to cap - 1 bytes between characters, and puts "[redacted]" in
 * place of
 *   - the value behind a name of a secret: OPENAI_API_KEY=..., "apiKey": "...", --token ...
 *     (key, token, secret, password, passphrase, credential, authorization, cookie),
 *   - what follows Bearer or Basic,
 *   - words that begin as keys of well-known services do: sk-..., ghp_..., AKIA..., eyJ...,
 *   - a user and password in a URL.
 * A help, no promise: a secret in another form stays. */
void redact_patterns(struct str line, char *ret, size_t cap);
#endif

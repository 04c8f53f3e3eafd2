/* Redacts what looks like a secret in a line of a program's output. It works by form, because the
 * daemon does not know other programs' keys. */
#ifndef SPAWN_REDACT_PATTERNS_H
#define SPAWN_REDACT_PATTERNS_H

#include <stddef.h>

#include "protocol/base/str.h"

/*
 * Copies a line of valid UTF-8, cut to cap - 1 bytes between characters. Puts "[redacted]" in place
 * of:
 * - the value after the name of a secret: OPENAI_API_KEY=..., "apiKey": "...", --token ... (key,
 *   token, secret, password, passphrase, credential, authorization, cookie);
 * - the word after Bearer or Basic;
 * - words with the prefixes of well-known services: sk-..., ghp_..., AKIA..., eyJ...;
 * - a user and password in a URL.
 * Best effort: a secret in another form stays.
 */
void redact_patterns(struct str line, char *ret, size_t cap);
#endif

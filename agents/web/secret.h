/*
 * Loads keys, keeps them in one place and redacts them in every text that leaves the room. A key
 * comes from an environment variable (which is wiped), a file that only its owner may read, or a
 * systemd credential; never from arguments or settings.
 */
#ifndef WEB_SECRET_H
#define WEB_SECRET_H

#include "protocol/base/buf.h"

enum { SECRETS_MAX = 16, SECRET_BYTES_MAX = 4096, SECRET_PLAIN_BYTES = 8 };

struct secrets {
    char *at[SECRETS_MAX];
    uint32_t n;
};

enum secret_source { SECRET_NONE, SECRET_ENV, SECRET_FILE, SECRET_CREDENTIAL };

/* Wipes the keys. A zeroed struct secrets is empty. */
void secrets_done(struct secrets *s);
/* Loads a key and returns it (borrowed from s) in *ret. From then on the process leaves no core
 * dump, which would have the key. Errors name the source, never the content.
 * BT_INVALID when others may read the file, or the content is not a key (1 to 4096 printable
 * characters without spaces). BT_NOT_FOUND when there is none. */
BT_MUST_CHECK enum bt_code secrets_load(struct secrets *s, enum secret_source source,
                                        const char *name, const char **ret, struct bt_error *err);
/* Another place that is asked for a variable before the environment; NULL = none. find returns
 * NULL when it has none of that name. Before threads exist. */
void secrets_ask_first(const char *(*find)(void *of, const char *name), void *of);
/* The environment of a process that starts later. */
struct secret_view {
    /* "NAME=value", or "NAME" for the own value of this process; NULL-terminated */
    const char *const *env;
    const char *cwd; /* of relative paths */
};
/* Whether that process will find a key. Reads only the file's metadata. Errors as of
 * secrets_load. */
BT_MUST_CHECK enum bt_code secret_probe(const struct secret_view *seen, enum secret_source source,
                                        const char *name, struct bt_error *err);
/* Removes a variable from the environment, and its value from /proc/PID/environ. Call it before
 * threads exist. */
void secrets_forget_env(const char *name);
/* Replaces every key in the text by "[redacted]". Also a key without its end, when half of it is
 * there, a prefix of a key at the end of a cut text, and keys with escaped slashes. A key of less
 * than SECRET_PLAIN_BYTES may be a part of any word: it is replaced where no letter or digit stands
 * beside it. Without memory the text is empty, and its buffer has failed. */
void secrets_redact(const struct secrets *s, struct buf *text);
/* The same for a text that arrives in pieces. Appends the safe part to out and returns its length
 * in the text. The rest may be a prefix of a key: the caller passes it again with the next piece.
 * before: the byte before the text, ' ' at its beginning. last: no piece follows, all of the text
 * is processed. */
size_t secrets_redact_stream(const struct secrets *s, struct str text, char before, bool last,
                             struct buf *out);
/* Whether the text contains a key. */
bool secrets_contained(const struct secrets *s, struct str text);
/* As secrets_redact, for the message of an error. */
void secrets_redact_error(const struct secrets *s, struct bt_error *err);
#endif

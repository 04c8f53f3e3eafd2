/*
 * Keys: read once, kept in one place, taken out of every text that leaves the room. A key comes
 * from an environment variable (which is wiped), a file that only its owner may read, or a systemd
 * credential; never from arguments or settings.
 */
#ifndef LLM_SECRET_H
#define LLM_SECRET_H

#include "protocol/base/buf.h"

enum { SECRETS_MAX = 16, SECRET_BYTES_MAX = 4096, SECRET_BYTES_MIN = 8 };

struct secrets {
    char *at[SECRETS_MAX];
    uint32_t n;
};

enum secret_source { SECRET_NONE, SECRET_ENV, SECRET_FILE, SECRET_CREDENTIAL };

/* A zeroed struct secrets is empty. Wipes the keys. */
void secrets_done(struct secrets *s);
/* Reads a key and returns it (borrowed from s) in *ret. Errors name the place, never what stands
 * there. BT_INVALID when the file may be read by others, or it is no key (8 to 4096 printable
 * characters without spaces); BT_NOT_FOUND when there is none. */
BT_MUST_CHECK enum bt_code secrets_load(struct secrets *s, enum secret_source source,
                                        const char *name, const char **ret, struct bt_error *err);
/* How a process that is yet to be started will see keys. */
struct secret_view {
    const char *const *env; /* "NAME=value", or "NAME" for our own value; NULL-terminated */
    const char *cwd;        /* of relative paths */
};
/* Whether that process will find a key, without reading any file: what the system says of it is
 * enough. Errors as of secrets_load. */
BT_MUST_CHECK enum bt_code secret_probe(const struct secret_view *seen, enum secret_source source,
                                        const char *name, struct bt_error *err);
/* Takes a variable out of the environment, and its value out of /proc/PID/environ. Before threads
 * exist. */
void secrets_forget_env(const char *name);
/* Replaces every key in the text by "[redacted]", also the beginning of one at the end of a text
 * that was cut, and keys with escaped slashes. */
void secrets_redact(const struct secrets *s, struct buf *text);
/* The same for a text that comes in pieces: appends to out what can be told, and returns how many
 * bytes of the text that was; the rest may be the beginning of a key, and has to be given again
 * with what follows. last: nothing follows, all is dealt with. */
size_t secrets_redact_stream(const struct secrets *s, struct str text, bool last, struct buf *out);
/* Whether there is anything to replace. */
bool secrets_contained(const struct secrets *s, struct str text);
/* The same as secrets_redact for the sentence of an error. */
void secrets_redact_error(const struct secrets *s, struct bt_error *err);
#endif

#include "agents/sdk/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HANDOVER_BYTES = 128 * 1024, SECRET_NAME_BYTES = 192 };

#define SECRET "secret:"
#define KEY "key="

static enum bt_code read_all(struct handover *h, int fd, struct bt_error *err)
{
    ssize_t n = 1;

    h->bytes = calloc(1, HANDOVER_BYTES + 1);
    if (h->bytes == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for BATON_HANDOVER");
    }
    (void)lseek(fd, 0, SEEK_SET); /* a wrapper may have started an agent before */
    while (n > 0 && h->len < HANDOVER_BYTES) {
        n = read(fd, h->bytes + h->len, HANDOVER_BYTES - h->len);
        if (n < 0 && errno == EINTR) {
            n = 1;
        } else if (n > 0) {
            h->len += (size_t)n;
        }
    }
    return n < 0 ? err_errno(err, errno, "BATON_HANDOVER") : BT_OK;
}

enum bt_code handover_read(struct handover *h, struct bt_error *err)
{
    const char *text = getenv("BATON_HANDOVER");
    char *end = NULL;
    enum bt_code code;
    long fd;

    *h = (struct handover){0};
    if (text == NULL) {
        return BT_OK;
    }
    fd = strtol(text, &end, 10);
    if (*text == 0 || *end != 0 || fd < 3 || fd > 1000000 || fcntl((int)fd, F_GETFD) < 0) {
        return err_set(err, BT_INVALID, "BATON_HANDOVER '%.20s': is no open descriptor above 2",
                       text);
    }
    code = read_all(h, (int)fd, err);
    (void)close((int)fd);
    (void)unsetenv("BATON_HANDOVER");
    return code;
}

const char *handover_get(const struct handover *h, const char *name)
{
    const size_t len = strlen(name);
    size_t at = 0;

    while (h->bytes != NULL && at < h->len) {
        const char *entry = h->bytes + at;
        if (strncmp(entry, name, len) == 0 && entry[len] == '=') {
            return entry + len + 1;
        }
        at += strlen(entry) + 1;
    }
    return NULL;
}

const char *handover_secret(struct handover *h, const char *name)
{
    char full[SECRET_NAME_BYTES];
    const char *given = NULL;
    char *value;

    if (snprintf(full, sizeof full, SECRET "%s", name) < (int)sizeof full) {
        given = handover_get(h, full);
    }
    value = getenv(name);
    if (given != NULL || value == NULL || h->env_n == HANDOVER_ENV_MAX) {
        return given;
    }
    given = h->env[h->env_n] = strdup(value);
    if (given != NULL) {
        h->env_n++;
        explicit_bzero(value, strlen(value)); /* this memory is what /proc/PID/environ shows */
        (void)unsetenv(name);
    }
    return given;
}

void handover_wipe(struct handover *h)
{
    for (size_t at = 0; h->bytes != NULL && at < h->len;) {
        char *entry = h->bytes + at;
        const bool secret =
            strncmp(entry, SECRET, strlen(SECRET)) == 0 || strncmp(entry, KEY, strlen(KEY)) == 0;
        char *value = secret ? strchr(entry, '=') : NULL;
        at += strlen(entry) + 1;
        if (value != NULL) {
            explicit_bzero(value + 1, strlen(value + 1));
        }
    }
    for (size_t i = 0; i < h->env_n; i++) {
        explicit_bzero(h->env[i], strlen(h->env[i]));
        free(h->env[i]);
    }
    h->env_n = 0;
}

void handover_done(struct handover *h)
{
    handover_wipe(h);
    if (h->bytes != NULL) {
        explicit_bzero(h->bytes, h->len);
        free(h->bytes);
    }
    *h = (struct handover){0};
}

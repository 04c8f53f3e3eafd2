#include "supervisor/cli/common/started.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "protocol/base/replace.h"
#include "protocol/client/state.h"

enum { PATH_BYTES = 4200 };

/* A word of a shell's command line. */
static void put_word(struct buf *out, const char *word)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+=,";

    if (word[0] != 0 && strspn(word, plain) == strlen(word)) {
        buf_add_cstr(out, word);
        return;
    }
    buf_add_cstr(out, "'");
    for (; *word != 0; word++) {
        buf_add_cstr(out, *word == '\'' ? "'\\''" : (char[]){*word, 0});
    }
    buf_add_cstr(out, "'");
}

static void put_option(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, " --%s ", name);
    put_word(out, value);
}

/* The instance that is or was there; "" = not known. */
static void instance_of(const char *state, char ret[UUID_TEXT_LEN + 1])
{
    struct state_endpoints at;

    ret[0] = 0;
    if (state_endpoints_read(state, &at, NULL) == BT_OK) {
        uuid_format(at.instance, ret);
    }
}

void started_write(const struct cli *cli, const char *state, const char *const *names, size_t n)
{
    const char *config = cli_value(cli, "config");
    char *whole = config != NULL ? realpath(config, NULL) : NULL;
    char instance[UUID_TEXT_LEN + 1];
    char path[PATH_BYTES];
    struct bt_error err;
    struct buf text;

    instance_of(state, instance);
    buf_init(&text, STARTED_MAX - 1);
    buf_add_cstr(&text, instance);
    for (size_t i = 0; i < n; i++) {
        const char *value = cli_value(cli, names[i]);
        if (value != NULL) {
            put_option(&text, names[i],
                       whole != NULL && strcmp(names[i], "config") == 0 ? whole : value);
        }
    }
    (void)snprintf(path, sizeof path, "%s/up", state);
    if (instance[0] != 0 && text.len > UUID_TEXT_LEN && buf_check(&text, &err) == BT_OK) {
        (void)!file_replace(path, text.at, text.len, &err);
    }
    buf_done(&text);
    free(whole);
}

/* The options after the instance's id; "" when another one has the directory now. */
static const char *options_in(const char *state, char text[STARTED_MAX])
{
    char instance[UUID_TEXT_LEN + 1];
    char path[PATH_BYTES];
    ssize_t n = 0;
    int fd;

    (void)snprintf(path, sizeof path, "%s/up", state);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0) {
        n = read(fd, text, STARTED_MAX - 1);
        (void)close(fd);
    }
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    instance_of(state, instance);
    return instance[0] != 0 && strncmp(text, instance, UUID_TEXT_LEN) == 0 ? text + UUID_TEXT_LEN
                                                                           : "";
}

void started_options(const struct cli *cli, char ret[STARTED_MAX])
{
    const char *given = cli_value(cli, "state");
    char text[STARTED_MAX];
    struct buf dir;
    struct buf out;

    buf_init(&dir, PATH_BYTES - 16);
    buf_init(&out, STARTED_MAX - 1);
    if (given != NULL) {
        put_option(&out, "state", given);
    }
    if (state_dir_find(given, &dir, NULL) == BT_OK) {
        buf_add_cstr(&out, options_in(buf_cstr(&dir), text));
    }
    (void)snprintf(ret, STARTED_MAX, "%s", buf_check(&out, NULL) == BT_OK ? buf_cstr(&out) : "");
    buf_done(&out);
    buf_done(&dir);
}

#include "supervisor/cli/common/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "supervisor/certs/certs.h"
#include "supervisor/cli/common/json.h"

enum { PATH_BYTES = 4096, FILE_BYTES = 1024 * 1024 };

/* ---- the file ---- */

static enum bt_code path_of_file(bool make, char ret[PATH_BYTES], struct bt_error *err)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    const bool xdg = config != NULL && config[0] == '/';
    char dir[PATH_BYTES - 16];
    int n;

    if (!xdg && (home == NULL || home[0] != '/')) {
        return err_set(err, BT_NOT_FOUND, "contexts are kept in ~/.config/baton: set HOME");
    }
    n = snprintf(dir, sizeof dir, "%s%s", xdg ? config : home, xdg ? "" : "/.config");
    if (n < 0 || n > (int)sizeof dir - 32) {
        return err_set(err, BT_INVALID, "HOME is too long");
    }
    if (make && mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "%s", dir);
    }
    (void)snprintf(dir + n, sizeof dir - (size_t)n, "/baton");
    if (make && mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "%s", dir);
    }
    (void)snprintf(ret, PATH_BYTES, "%s/contexts", dir);
    return BT_OK;
}

static enum bt_code read_text(const char *path, struct buf *text, struct bt_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum bt_code code = BT_OK;
    char block[4096];
    struct stat st;
    ssize_t n = 0;

    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        code = err_set(err, BT_INVALID, "%s is not a regular file", path);
    } else if ((st.st_mode & 022) != 0 || (st.st_uid != geteuid() && st.st_uid != 0)) {
        code = err_set(err, BT_UNAUTHORIZED,
                       "%s: others may write it, and so say which daemon you ask; run chmod 600 %s",
                       path, path);
    }
    while (code == BT_OK && (n = read(fd, block, sizeof block)) > 0) {
        buf_add(text, block, (size_t)n);
    }
    if (code == BT_OK && n < 0) {
        code = err_errno(err, errno, "%s", path);
    }
    (void)close(fd);
    return code == BT_OK ? buf_check(text, err) : code;
}

enum bt_code contexts_read(cJSON **ret, struct bt_error *err)
{
    char path[PATH_BYTES];
    struct buf text;
    enum bt_code code = path_of_file(false, path, err);

    buf_init(&text, FILE_BYTES);
    code = code == BT_OK ? read_text(path, &text, err) : code;
    *ret = code == BT_OK          ? json_tree(buf_cstr(&text))
           : code == BT_NOT_FOUND ? cli_fields(NULL, NULL)
                                  : NULL;
    buf_done(&text);
    if (*ret == NULL || code == BT_OK) {
        if (code == BT_OK && !cJSON_IsObject(*ret)) {
            cJSON_Delete(*ret);
            *ret = NULL;
            return err_set(err, BT_INVALID, "%s is damaged: it is no JSON object", path);
        }
        return code;
    }
    return BT_OK;
}

static enum bt_code write_text(const char *path, const char *text, struct bt_error *err)
{
    char part[PATH_BYTES + 16];
    const size_t len = strlen(text);
    enum bt_code code = BT_OK;
    int fd;

    (void)snprintf(part, sizeof part, "%s.%u", path, (unsigned)getpid());
    (void)unlink(part);
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len || fsync(fd) != 0 ||
        rename(part, path) != 0) {
        code = err_errno(err, errno, "%s", path);
        (void)unlink(part);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}

enum bt_code contexts_write(const cJSON *tree, struct bt_error *err)
{
    char path[PATH_BYTES];
    char *text = cJSON_Print(tree);
    enum bt_code code = text == NULL ? err_set(err, BT_NOMEM, "out of memory for contexts")
                                     : path_of_file(true, path, err);

    code = code == BT_OK ? write_text(path, text, err) : code;
    cJSON_free(text);
    return code;
}

bool contexts_name_ok(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = strlen(name);

    return n > 0 && n <= CLI_CONTEXT_MAX && strspn(name, allowed) == n && name[0] != '-' &&
           strcmp(name, CLI_CONTEXT_LOCAL) != 0;
}

/* ---- which daemon ---- */

static const char *given(const char *text)
{
    return text != NULL && text[0] != 0 ? text : NULL;
}

/* The context that is chosen by name, by --context or else BATON_CONTEXT; NULL = none is.
 * *ret_local: a state directory was given instead, which the context in use has nothing to do with.
 */
static const char *chosen_context(const struct cli *cli, bool *ret_local)
{
    const char *name = given(cli_value(cli, "context"));
    const bool state = given(cli_value(cli, "state")) != NULL;

    if (name == NULL && !state) {
        name = given(getenv("BATON_CONTEXT"));
    }
    *ret_local = name != NULL ? strcmp(name, CLI_CONTEXT_LOCAL) == 0
                              : state || given(getenv("BATON_STATE")) != NULL;
    return *ret_local ? NULL : name;
}

/* What the context says; NULL = there is no such one. */
static const cJSON *context_of(const cJSON *tree, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tree, "contexts"),
                                            name);
}

static const char *credential_or_environment(const char *file)
{
    return file != NULL ? file : given(getenv("BATON_CREDENTIAL"));
}

/* Reads the file once. */
enum bt_code cli_connection(const struct cli *cli, struct bt_connection *ret, struct bt_error *err)
{
    static cJSON *tree;
    const cJSON *context;
    const char *name;
    const char *chosen;
    bool local;

    *ret = (struct bt_connection){.url = given(cli_value(cli, "connect")),
                                  .credential = given(cli_value(cli, "credential")),
                                  .ca = given(cli_value(cli, "ca")),
                                  .cert = given(cli_value(cli, "cert"))};
    if (ret->url != NULL) {
        ret->credential = credential_or_environment(ret->credential);
        return BT_OK;
    }
    chosen = chosen_context(cli, &local);
    if (local) {
        return BT_OK;
    }
    if (tree == NULL && contexts_read(&tree, err) != BT_OK) {
        /* Without a home there are no contexts; one that is asked for by name must be found. */
        return err->code == BT_NOT_FOUND && chosen == NULL ? BT_OK : err->code;
    }
    name = chosen != NULL ? chosen : given(json_text(tree, "current", ""));
    if (name == NULL || strcmp(name, CLI_CONTEXT_LOCAL) == 0) {
        return BT_OK;
    }
    context = context_of(tree, name);
    if (context == NULL) {
        return err_set(err, BT_NOT_FOUND, "%s context '%.80s'; see: baton context list",
                       chosen != NULL ? "there is no" : "the one in use is gone:", name);
    }
    ret->url = json_text(context, "connect", "");
    if (ret->credential == NULL) {
        ret->credential = credential_or_environment(given(json_text(context, "credential", "")));
    }
    ret->ca = ret->ca != NULL ? ret->ca : given(json_text(context, "ca", ""));
    ret->cert = ret->cert != NULL ? ret->cert : given(json_text(context, "cert", ""));
    return BT_OK;
}

const char *cli_elsewhere(const struct cli *cli)
{
    struct bt_connection to;
    struct bt_error err;

    return cli_connection(cli, &to, &err) == BT_OK ? to.url : "";
}

/* The daemon would only hang up. */
static enum bt_code check_time(const struct bt_connection *to, struct bt_error *err)
{
    const msec now = clock_wall_ms();
    char when[CLOCK_ISO_LEN + 1];
    struct cert own;

    if (to->cert == NULL || certs_read(to->cert, &own, NULL) != BT_OK ||
        (now >= own.from && now <= own.until)) {
        return BT_OK;
    }
    clock_iso(now < own.from ? own.from : own.until, when);
    return err_set(err, BT_UNAUTHORIZED, "%s: the certificate %s %s; see: baton certs renew",
                   to->cert, now < own.from ? "is valid only from" : "expired at", when);
}

enum bt_code cli_open(const struct cli *cli, struct bt_client **ret, struct bt_error *err)
{
    struct bt_connection to;
    enum bt_code code = cli_connection(cli, &to, err);

    if (code != BT_OK) {
        return code;
    }
    if (to.url == NULL) {
        return bt_client_open(cli_value(cli, "state"), ret, err);
    }
    code = check_time(&to, err);
    return code == BT_OK ? bt_client_connect(&to, ret, err) : code;
}

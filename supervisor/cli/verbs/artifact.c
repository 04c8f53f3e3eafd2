/* Artifacts of a plan: a list of them, and the bytes of one. */
#include "supervisor/cli/verbs/artifact.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/artifact/artifact.h"
#include "protocol/base/utf8.h"
#include "protocol/client/state.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"

enum { BLOCK = 64 * 1024, LINE_MAX_BYTES = 4096 };

/* The directory of files of the daemon of this host. */
static enum bt_code find_root(const struct cli *cli, struct buf *root, struct bt_error *err)
{
    enum bt_code code = state_dir_find(cli_value(cli, "state"), root, err);

    while (code == BT_OK && root->len > 1 && root->at[root->len - 1] == '/') {
        buf_truncate(root, root->len - 1);
    }
    buf_add_cstr(root, "/" ARTIFACT_DIR);
    return code == BT_OK ? buf_check(root, err) : code;
}

/* Whether the file is not there: it was not kept, or its plan was imported without it. What a
 * daemon elsewhere has, and each shard of a fleet, is not looked at. */
static bool is_gone(const struct cli *cli, struct buf *root, const char *uri)
{
    struct artifact_place at;
    char fleet[ARTIFACT_PATH_MAX + 16];
    uint64_t bytes;

    (void)snprintf(fleet, sizeof fleet, "%.*s/fleet.json",
                   (int)(root->len - strlen("/" ARTIFACT_DIR)), buf_cstr(root));
    return cli_elsewhere(cli) == NULL && access(fleet, F_OK) != 0 &&
           artifact_was(str_from(uri), &at) &&
           artifact_stat(buf_cstr(root), &at, &bytes, NULL) == BT_GONE;
}

void cli_print_artifacts(const struct cli *cli, const cJSON *answer)
{
    const cJSON *a;
    char path[ARTIFACT_PATH_MAX + 1];
    char line[LINE_MAX_BYTES];
    struct buf root;
    struct bt_error err;
    bool known;

    buf_init(&root, ARTIFACT_PATH_MAX);
    known = find_root(cli, &root, &err) == BT_OK;
    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(answer, "artifacts"))
    {
        const char *uri = json_text(a, "uri", "");
        const char *where = artifact_uri_path(str_from(uri), path) ? path : uri;
        (void)snprintf(line, sizeof line, "artifact %s: %.0f bytes, %s%s", json_text(a, "name", ""),
                       json_number(a, "bytes"),
                       known && is_gone(cli, &root, uri) ? "not here; it was " : "", where);
        cli_one_line(line, sizeof line, line);
        (void)puts(line);
    }
    buf_done(&root);
}

/* The only one of that name. Prints the error and returns NULL; then *ret is the exit code. */
static const cJSON *find(const cJSON *answer, const char *name, enum cli_exit *ret)
{
    const cJSON *found = NULL;
    const cJSON *a;

    *ret = CLI_NOT_FOUND;
    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(answer, "artifacts"))
    {
        if (strcmp(json_text(a, "name", ""), name) != 0) {
            continue;
        }
        if (found != NULL) {
            cli_error("the steps %s and %s both have an artifact '%s'; name the step, too",
                      json_text(found, "stepId", ""), json_text(a, "stepId", ""), name);
            *ret = CLI_USAGE;
            return NULL;
        }
        found = a;
    }
    if (found == NULL) {
        cli_error("there is no artifact '%s'; without --artifact the result lists them", name);
    }
    return found;
}

/* The uri may be that of another state directory: where the plan was before it was imported. */
static enum bt_code open_found(struct cli *cli, const cJSON *found, int *ret_fd,
                               struct bt_error *err)
{
    const struct artifact_claim claim = {.bytes = (uint64_t)json_number(found, "bytes"),
                                         .sha256 = str_from(json_text(found, "sha256", ""))};
    const struct str uri = str_from(json_text(found, "uri", ""));
    struct artifact_place at;
    struct buf root;
    bool ours = false;
    enum bt_code code;

    buf_init(&root, ARTIFACT_PATH_MAX);
    code = find_root(cli, &root, err);
    if (code == BT_OK) {
        code = artifact_locate(buf_cstr(&root), uri, &at, err);
        ours = code == BT_OK;
    }
    if (code == BT_UNAUTHORIZED && artifact_was(uri, &at)) {
        code = BT_OK;
    }
    if (code == BT_OK) {
        code = artifact_open(buf_cstr(&root), &at, &claim, NULL, NULL, ret_fd, err);
    }
    if (code == BT_GONE && !ours) {
        code = err_set(err, BT_GONE,
                       "artifact '%s' is not here: it was not kept, or its plan was imported "
                       "without --artifacts",
                       json_text(found, "name", ""));
    }
    buf_done(&root);
    return code;
}

/* How many of the bytes end with a whole character. */
static size_t whole(const char *at, size_t n)
{
    size_t last = n;

    while (last > 0 && n - last < 3 && ((uint8_t)at[last - 1] & 0xC0) == 0x80) {
        last--;
    }
    if (last == 0) {
        return n;
    }
    const uint8_t first = (uint8_t)at[last - 1];
    const size_t needs = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    return last - 1 + needs > n ? last - 1 : n;
}

/* As all that agents wrote is shown on a terminal: with marks. */
static void scrub(char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        at[i] = at[i] == '\0' ? '?' : at[i];
    }
    at[n] = '\0';
    utf8_scrub(at);
}

/* Its bytes; people who read them on a terminal get marks for what would order it about. */
static enum bt_code copy(int fd, struct bt_error *err)
{
    char block[BLOCK + 1];
    size_t left = 0; /* of a character that the next block goes on with */
    ssize_t n = 1;

    while (n > 0) {
        n = read(fd, block + left, BLOCK - left);
        if (n < 0 && errno == EINTR) {
            n = 1;
            continue;
        }
        if (n < 0) {
            return err_errno(err, errno, "reading the artifact");
        }
        const size_t have = left + (size_t)n;
        const size_t ready = cli_on_terminal() && n > 0 ? whole(block, have) : have;
        char tail[4];
        left = have - ready;
        memcpy(tail, block + ready, left);
        if (cli_on_terminal()) {
            scrub(block, ready);
        }
        if (fwrite(block, 1, ready, stdout) != ready) {
            return err_errno(err, errno, "the output could not be written");
        }
        memcpy(block, tail, left);
    }
    return fflush(stdout) == 0 ? BT_OK : err_errno(err, errno, "the output could not be written");
}

/* Of a daemon elsewhere, into a file without a name. */
static enum bt_code fetch(struct bt_client *client, const cJSON *found, int *ret_fd,
                          struct bt_error *err)
{
    enum bt_code code;

    *ret_fd = artifact_spool_fd();
    if (*ret_fd < 0) {
        return err_errno(err, errno, "making a file for the artifact (TMPDIR)");
    }
    code = bt_client_artifact(client, json_text(found, "uri", ""),
                              (uint64_t)json_number(found, "bytes"), json_text(found, "sha256", ""),
                              *ret_fd, err);
    return code == BT_OK ? code : err_wrap(err, "artifact '%s'", json_text(found, "name", ""));
}

enum cli_exit cli_print_artifact(struct cli *cli, const cJSON *answer, const char *name)
{
    enum cli_exit missing;
    const cJSON *found = find(answer, name, &missing);
    struct bt_error err;
    int fd = -1;
    enum bt_code code;

    if (found == NULL) {
        return missing;
    }
    code = cli_elsewhere(cli) != NULL ? fetch(cli->client, found, &fd, &err)
                                      : open_found(cli, found, &fd, &err);
    if (code == BT_OK) {
        code = copy(fd, &err);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return code == BT_OK ? CLI_OK : cli_fail(&err);
}

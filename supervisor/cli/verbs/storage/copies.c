/* backup, restore, verify: copies of the journal. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/storage/files.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/journal/journal.h"

enum { POLL_MS = 50, WAIT_MS = 60000, REPORT_MAX = 1024 * 1024 };

/* Files that go when the command is interrupted or its time is over: a copy under way, and one that
 * is made for the command alone. */
static char temporary[2][PATH_MAX];

static void remove_temporary(void)
{
    for (int i = 0; i < 2; i++) {
        if (temporary[i][0] != 0) {
            (void)unlink(temporary[i]);
        }
    }
}

static void on_signal(int signal_number)
{
    remove_temporary();
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static void remove_when_interrupted(const char *copy, bool whole)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = on_signal};

    (void)snprintf(temporary[0], sizeof temporary[0], "%.*s.part", PATH_MAX - 8, copy);
    (void)snprintf(temporary[1], sizeof temporary[1], "%s", whole ? copy : "");
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)sigaction(signals[i], &action, NULL);
    }
    deadline_leave(remove_temporary);
}

static bool daemon_runs(const char *state)
{
    char path[PATH_MAX];
    bool held = false;
    int fd;

    (void)snprintf(path, sizeof path, "%s/lock", state);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        held = flock(fd, LOCK_SH | LOCK_NB) != 0;
        (void)close(fd);
    }
    return held;
}

/* The daemon has another working directory: the folder of the file, resolved, and its name. */
static bool absolute(const char *file, char ret[PATH_MAX])
{
    char dir[PATH_MAX];
    char real[PATH_MAX];
    const char *slash = strrchr(file, '/');
    const char *name = slash == NULL ? file : slash + 1;
    int n = snprintf(dir, sizeof dir, "%.*s", slash == NULL ? 1 : (int)(slash - file) + 1,
                     slash == NULL ? "." : file);

    if (name[0] == 0) {
        cli_error("%s: is a directory; give the name of a file in it", file);
        return false;
    }
    if (n < 0 || n >= (int)sizeof dir || realpath(dir, real) == NULL) {
        cli_error("%s: the directory %s: %s", file, dir, strerror(errno));
        return false;
    }
    n = snprintf(ret, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    return n > 0 && n < PATH_MAX;
}

/* Waits until the daemon makes no copy, this one or that of another command. */
static enum cli_exit wait_for_copy(struct cli *cli, const char *path, cJSON **answer)
{
    enum cli_exit code = CLI_OK;

    while (code == CLI_OK && (*answer == NULL ||
                              cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(*answer, "running")))) {
        const bool other = strcmp(json_text(*answer, "file", ""), path) != 0;
        cJSON_Delete(*answer);
        *answer = NULL;
        if (deadline_is_over()) {
            cli_note(other ? "the daemon still makes another copy; there is none of %s yet\n"
                           : "the copy goes on in the daemon: %s\n",
                     path);
            return deadline_report();
        }
        (void)poll(NULL, 0, (int)deadline_left(POLL_MS));
        code = cli_call(cli, "journal.backup", NULL, answer);
    }
    return code;
}

/* Asks the daemon for a copy and waits for its end. It makes one at a time. */
static enum cli_exit copy_of_running(struct cli *cli, const char *path)
{
    cJSON *answer = NULL;
    enum cli_exit code = CLI_OK;

    while (code == CLI_OK && answer == NULL) {
        code = cli_call_unless(cli, "journal.backup", cli_fields("file", path), BT_BUSY, &answer);
        if (code == CLI_OK && answer == NULL) {
            code = wait_for_copy(cli, path, &answer);
            cJSON_Delete(answer);
            answer = NULL;
        }
    }
    code = code == CLI_OK ? wait_for_copy(cli, path, &answer) : code;
    if (code == CLI_OK && strcmp(json_text(answer, "file", ""), path) != 0) {
        /* Another one was begun since: this one has its name when it is complete. */
        if (access(path, F_OK) != 0) {
            cli_error("there is no copy %s: it failed, or the daemon was restarted; its log says "
                      "why",
                      path);
            code = CLI_INTERNAL;
        }
    } else if (code == CLI_OK && json_text(answer, "failure", "")[0] != 0) {
        cli_error("%s", json_text(answer, "failure", ""));
        code = CLI_INTERNAL;
    }
    cJSON_Delete(answer);
    return code;
}

/* Whether the one that holds the journal has said where it listens: a daemon, and no copy that
 * another command makes without one. */
static bool listens(const char *state)
{
    static const char *const files[] = {"endpoints.json", "fleet.json"};
    char path[PATH_MAX];
    bool found = false;

    for (size_t i = 0; i < 2 && !found; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", state, files[i]);
        found = access(path, F_OK) == 0;
    }
    return found;
}

/* What cannot be written here is no matter of a daemon. */
static enum cli_exit fail_here(const struct bt_error *err)
{
    const enum cli_exit code = cli_fail(err);

    return err->code == BT_UNAVAILABLE ? CLI_INTERNAL : code;
}

/* Makes a copy, with the daemon or without one. `own`: for this command alone. */
static enum cli_exit make_copy(struct cli *cli, const char *state, const char *path, bool own)
{
    const msec until = deadline_or(WAIT_MS);
    struct bt_error err;
    bool held = daemon_runs(state);

    if (own) {
        remove_when_interrupted(path, true);
    }
    for (;;) {
        if (held && listens(state)) {
            return copy_of_running(cli, path);
        }
        if (!held && !own) {
            remove_when_interrupted(path, false);
        }
        if (!held && journal_backup_stopped(state, path, &err) == BT_OK) {
            return CLI_OK;
        }
        if (!held && (err.code != BT_CONFLICT || !daemon_runs(state))) {
            return fail_here(&err);
        }
        if (clock_mono_ms() >= until) {
            cli_error("the journal of %s is in use by another command, or by a daemon that starts",
                      state);
            return CLI_TIMEOUT;
        }
        (void)poll(NULL, 0, POLL_MS);
        held = daemon_runs(state);
    }
}

/* The directory of the files beside a copy. */
static bool files_of(const char *copy, char ret[PATH_MAX])
{
    return snprintf(ret, PATH_MAX, "%s." ARTIFACT_DIR, copy) < PATH_MAX;
}

/* The directory of the files beside a copy that is to be made: it must not be there. */
static bool files_of_new(const char *path, char ret[PATH_MAX])
{
    if (!files_of(path, ret)) {
        cli_error("%s: the name is too long", path);
        return false;
    }
    if (access(ret, F_OK) == 0) {
        cli_error("%s exists: it would be mixed with the files of this copy", ret);
        return false;
    }
    return true;
}

/* Files of results, after the journal: what it names is there, unless it was not kept. */
static enum cli_exit copy_files(const char *state, const char *path, const char *to,
                                uint64_t *ret_n)
{
    char from[PATH_MAX];
    struct bt_error err;

    (void)snprintf(from, sizeof from, "%s/" ARTIFACT_DIR, state);
    if (files_copy(from, to, true, ret_n, &err) != BT_OK) {
        cli_note("%s has the journal, but not all files of results are in %s\n", path, to);
        return cli_fail(&err);
    }
    return CLI_OK;
}

enum cli_exit verb_backup(struct cli *cli)
{
    const char *state = cli_state_dir(cli);
    char path[PATH_MAX];
    char to[PATH_MAX];
    enum cli_exit code;
    uint64_t files = 0;

    if (state == NULL || !absolute(cli->argv[0], path) || !files_of_new(path, to)) {
        return CLI_USAGE;
    }
    code = make_copy(cli, state, path, false);
    if (code == CLI_OK) {
        code = copy_files(state, path, to, &files);
    }
    if (code == CLI_OK && cli->json) {
        cJSON *said = cli_fields("file", path);
        (void)cJSON_AddNumberToObject(said, "artifacts", (double)files);
        cli_print_json(said);
        cJSON_Delete(said);
    } else if (code == CLI_OK) {
        (void)printf("%s\n", path);
        if (files > 0) {
            cli_note("%llu files of results are in %s." ARTIFACT_DIR "\n",
                     (unsigned long long)files, path);
        }
    }
    return code;
}

/* Prints the report as text or as JSON; the code of the verb. */
static enum cli_exit report(struct cli *cli, enum bt_code result, struct buf *text,
                            const struct bt_error *err)
{
    if (cli->json && (result == BT_OK || result == BT_IO)) {
        cJSON *said = cJSON_CreateObject();
        const char *root = strstr(buf_cstr(text), "root ");
        cJSON *lines = NULL;
        (void)cJSON_AddBoolToObject(said, "ok", result == BT_OK);
        if (root != NULL) {
            char hash[65];
            (void)snprintf(hash, sizeof hash, "%.64s", root + 5);
            (void)cJSON_AddStringToObject(said, "root", hash);
        }
        lines = cJSON_AddArrayToObject(said, "report");
        for (const char *p = buf_cstr(text); *p != 0;) {
            char line[512];
            size_t n = strcspn(p, "\n");
            (void)snprintf(line, sizeof line, "%.*s", (int)n, p);
            (void)cJSON_AddItemToArray(lines, cJSON_CreateString(line));
            p += n + (p[n] == '\n');
        }
        cli_print_json(said);
        cJSON_Delete(said);
        return result == BT_OK ? CLI_OK : CLI_INTERNAL;
    }
    (void)fputs(buf_cstr(text), stdout);
    return result == BT_OK ? CLI_OK : cli_fail(err);
}

/* The journal and the files of its results; what is wrong with files comes first in the report,
 * whose last line is the root. *ret_gone (may be NULL): the files that are not there. */
static enum bt_code verify_all(const char *path, const char *files, struct buf *report,
                               uint64_t *ret_gone, struct bt_error *err)
{
    struct buf about_files;
    struct buf about_rows;
    struct files_check check = {.root = files, .report = &about_files};
    enum bt_code code;

    buf_init(&about_files, REPORT_MAX / 2);
    buf_init(&about_rows, REPORT_MAX / 2);
    code = journal_verify(path, doc_refs, files_see, &check, &about_rows, err);
    code = files_check_end(&check, code, err);
    if (ret_gone != NULL) {
        *ret_gone = check.gone;
    }
    buf_add(report, about_files.at, about_files.len);
    buf_add(report, about_rows.at, about_rows.len);
    buf_done(&about_files);
    buf_done(&about_rows);
    return code;
}

enum cli_exit verb_verify(struct cli *cli)
{
    const char *state = cli->argc == 0 ? cli_state_dir(cli) : "";
    char copy[PATH_MAX] = "";
    char files[PATH_MAX];
    struct buf text;
    struct bt_error err;
    enum bt_code result;
    enum cli_exit code = CLI_OK;

    if (state == NULL) {
        return CLI_USAGE;
    }
    if (cli->argc == 0) {
        char wanted[PATH_MAX];
        (void)snprintf(wanted, sizeof wanted, "%s/verify-%ld.db", state, (long)getpid());
        if (!absolute(wanted, copy)) {
            return CLI_INTERNAL;
        }
        code = make_copy(cli, state, copy, true);
    }
    if (code != CLI_OK) {
        return code;
    }
    buf_init(&text, REPORT_MAX);
    if (copy[0] != 0) {
        (void)snprintf(files, sizeof files, "%s/" ARTIFACT_DIR, state);
    } else if (!files_of(cli->argv[0], files)) {
        files[0] = 0;
    }
    result = verify_all(copy[0] != 0 ? copy : cli->argv[0], files, &text, NULL, &err);
    code = report(cli, result, &text, &err);
    buf_done(&text);
    if (copy[0] != 0) {
        (void)unlink(copy);
    }
    return code;
}

/* The journal, then the files of its results. *ret_n: how many files. */
static enum bt_code restore(struct cli *cli, const char *state, const char *files, uint64_t *ret_n,
                            struct bt_error *err)
{
    char to[PATH_MAX];
    char staged[PATH_MAX];
    enum bt_code code;

    (void)snprintf(staged, sizeof staged, "%s/journal.db.restored", state);
    remove_when_interrupted(staged, true);
    code = journal_restore(state, cli->argv[0], cli_flag(cli, "force"), err);
    if (code != BT_OK) {
        (void)unlink(staged);
        return code;
    }
    (void)snprintf(to, sizeof to, "%s/" ARTIFACT_DIR, state);
    return files_copy(files, to, false, ret_n, err);
}

enum cli_exit verb_restore(struct cli *cli)
{
    const char *state = cli_state_dir(cli);
    struct buf text;
    struct bt_error err;
    char files[PATH_MAX];
    uint64_t gone = 0;
    uint64_t n = 0;
    enum bt_code result = BT_OK;

    if (state == NULL) {
        return CLI_USAGE;
    }
    if (daemon_runs(state)) {
        cli_error_hint("baton down", "restore: a daemon has the journal of %s", state);
        return CLI_USAGE;
    }
    if (!files_of(cli->argv[0], files)) {
        cli_error("%s: the name is too long", cli->argv[0]);
        return CLI_USAGE;
    }
    buf_init(&text, REPORT_MAX);
    result = verify_all(cli->argv[0], files, &text, &gone, &err);
    if (result != BT_OK && text.len > 0) {
        cli_note("%s", buf_cstr(&text));
    }
    buf_done(&text);
    if (result == BT_OK) {
        result = restore(cli, state, files, &n, &err);
    }
    if (result != BT_OK) {
        return fail_here(&err);
    }
    if (gone > 0 && access(files, F_OK) != 0) {
        cli_note("%s is not there: %llu file%s that results name %s not restored\n", files,
                 (unsigned long long)gone, gone == 1 ? "" : "s", gone == 1 ? "is" : "are");
    }
    if (cli->json) {
        cJSON *said = cli_fields("state", state);
        (void)cJSON_AddNumberToObject(said, "artifacts", (double)n);
        cli_print_json(said);
        cJSON_Delete(said);
    } else {
        (void)printf("%s has the journal of %s\n", state, cli->argv[0]);
    }
    return CLI_OK;
}

/* audit: the lines of STATE/audit, the oldest first, without a daemon. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/output.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"

enum { PATH_BYTES = 4400, POLL_MS = 250, LINE_BYTES = 2048 };

static volatile sig_atomic_t stop;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

struct reader {
    char dir[PATH_BYTES];
    char since[CLOCK_ISO_LEN + 1]; /* "" = all */
    bool json;
    FILE *at; /* audit.jsonl, when it is followed */
    ino_t inode;
};

/* A line that a crash cut off is none. */
static void print_line(const struct reader *r, const char *text)
{
    cJSON *line = json_tree(text);
    const char *role = json_text(line, "role", "");
    const char *kind = json_text(line, "kind", "");
    char shown[LINE_BYTES];
    char made[LINE_BYTES];

    if (line == NULL || strcmp(json_text(line, "at", ""), r->since) < 0) {
        cJSON_Delete(line);
        return;
    }
    if (r->json) {
        cli_print_json(line);
    } else if (strcmp(kind, "suppressed") == 0) {
        (void)printf("%s %s: %.0f refusals and %.0f lost lines are not listed\n",
                     json_text(line, "at", ""), kind, json_number(line, "refusals"),
                     json_number(line, "lost"));
    } else if (strcmp(kind, "credential") == 0) {
        const char *about = json_text(line, "about", "");
        (void)snprintf(made, sizeof made, "%s %s: %s%s%s", json_text(line, "at", ""), kind, about,
                       about[0] != 0 ? " " : "",
                       json_text(line, "text", "")[0] != 0 ? json_text(line, "text", "")
                                                           : "the daemon has read them");
        cli_one_line(shown, sizeof shown, made);
        (void)printf("%s\n", shown);
    } else {
        (void)snprintf(
            made, sizeof made, "%s %s: %s %s by %s%s%s%s from %s %s%s%s", json_text(line, "at", ""),
            kind, json_text(line, "type", "")[0] != 0 ? json_text(line, "type", "") : "a request",
            json_text(line, "about", ""),
            json_text(line, "by", "")[0] != 0 ? json_text(line, "by", "") : "nobody",
            role[0] != 0 ? " (" : "", role, role[0] != 0 ? ")" : "",
            json_text(line, "peer", "")[0] != 0 ? json_text(line, "peer", "") : "here",
            json_text(line, "outcome", ""), json_text(line, "text", "")[0] != 0 ? ": " : "",
            json_text(line, "text", ""));
        cli_one_line(shown, sizeof shown, made);
        (void)printf("%s\n", shown);
    }
    cJSON_Delete(line);
}

/* What has come; the end of a line that is being written stays for the next time. */
static void read_on(const struct reader *r, FILE *f)
{
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;

    while ((n = getline(&text, &cap, f)) > 0) {
        if (text[n - 1] != '\n') {
            (void)fseek(f, -n, SEEK_CUR);
            break;
        }
        print_line(r, text);
    }
    clearerr(f);
    free(text);
}

static int is_rotated(const struct dirent *e)
{
    return strncmp(e->d_name, "audit-", 6) == 0 && strstr(e->d_name, ".jsonl") != NULL;
}

static void read_rotated(const struct reader *r)
{
    struct dirent **names = NULL;
    const int n = scandir(r->dir, &names, is_rotated, alphasort);
    char path[PATH_BYTES + 300];
    struct stat st;

    for (int i = 0; i < n; i++) {
        FILE *f;
        (void)snprintf(path, sizeof path, "%s/%s", r->dir, names[i]->d_name);
        f = fopen(path, "re");
        if (f != NULL && (r->at == NULL || fstat(fileno(f), &st) != 0 || st.st_ino != r->inode)) {
            read_on(r, f);
        }
        if (f != NULL) {
            (void)fclose(f);
        }
        free(names[i]);
    }
    free(names);
}

/* Before the rotated ones are read: a rotation meanwhile costs no line, and doubles none. */
static void open_newest(struct reader *r)
{
    char path[PATH_BYTES + 16];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/audit.jsonl", r->dir);
    r->at = fopen(path, "re");
    if (r->at != NULL && fstat(fileno(r->at), &st) == 0) {
        r->inode = st.st_ino;
    }
}

/* Reads the newest file on; a rotated one to its end first: nothing is added once it has another
 * name. */
static void read_newest(struct reader *r)
{
    char path[PATH_BYTES + 16];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/audit.jsonl", r->dir);
    if (r->at != NULL) {
        read_on(r, r->at);
    }
    if (stat(path, &st) == 0 && (r->at == NULL || st.st_ino != r->inode)) {
        if (r->at != NULL) {
            read_on(r, r->at);
            (void)fclose(r->at);
        }
        open_newest(r);
        if (r->at != NULL) {
            read_on(r, r->at);
        }
    }
}

static enum cli_exit follow(struct reader *r)
{
    while (output_flush()) { /* else main prints why */
        if (deadline_is_over()) {
            return CLI_TIMEOUT;
        }
        (void)poll(NULL, 0, (int)deadline_left(POLL_MS));
        if (stop != 0) {
            return CLI_INTERRUPTED;
        }
        read_newest(r);
    }
    return CLI_OK;
}

enum cli_exit verb_audit(struct cli *cli)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const char *state = cli_state_dir(cli);
    const char *since = cli_value(cli, "since");
    struct reader r = {.json = cli->json};
    struct stat st;
    enum cli_exit code = CLI_OK;
    msec from;

    if (state == NULL) {
        return CLI_USAGE;
    }
    if (since != NULL) {
        if (!cli_moment(since, "--since", clock_wall_ms(), &from)) {
            return CLI_USAGE;
        }
        clock_iso(from, r.since);
    }
    (void)snprintf(r.dir, sizeof r.dir, "%s/audit", state);
    if (stat(r.dir, &st) != 0) {
        cli_error("%s: %s", r.dir, strerror(errno));
        return CLI_NOT_FOUND;
    }
    open_newest(&r);
    read_rotated(&r);
    read_newest(&r);
    if (cli_flag(cli, "follow")) {
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        code = follow(&r);
    }
    if (r.at != NULL) {
        (void)fclose(r.at);
    }
    return code;
}

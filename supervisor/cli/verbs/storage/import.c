/* import: plans, sessions and schedules of the lines of an export. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/storage/carried.h"
#include "supervisor/cli/verbs/storage/lines.h"
#include "supervisor/cli/verbs/verbs.h"

enum {
    BATCH_BYTES = 192 * 1024,
    BATCH_LINES = 256, /* some milliseconds of the daemon */
    BATCH_MAX = 768 * 1024,
    POLL_MS = 50, /* at most; the first wait is 1 ms */
    WAIT_MS = 60000
};

struct import {
    struct cli *cli;
    struct export_file file;
    struct carried files;
    struct buf batch;
    uint64_t before, in_batch; /* lines of the plan or session: sent, waiting */
    char name[160];            /* "plan ID", "session ID" or "schedule NAME" */
    const char *key;           /* the field that has the second word */
    uint64_t plans, sessions, schedules, refused, damaged;
    uint64_t plans_here, sessions_here, schedules_here;
    bool checked;
    bool lost;  /* the daemon knows nothing of the one under way any more */
    bool again; /* it was begun once more for that */
};

static bool is_first(struct str body)
{
    return export_is(body, "plan") || export_is(body, "session") || export_is(body, "schedule");
}

/* The next line; its files are remembered. */
static bool next_line(struct import *m, struct str *ret)
{
    return export_next(&m->file, ret) && (ret->ptr == NULL || carried_line(&m->files, *ret));
}

/* The whole file, before anything is sent: every line is as it was written, every plan has an end.
 */
static bool check_file(struct import *m)
{
    struct str body;
    bool inside = false;

    while (next_line(m, &body)) {
        const bool last = export_is(body, "end") || export_is(body, "damaged");
        if (body.ptr == NULL && !inside) {
            return true;
        }
        if (body.ptr == NULL || is_first(body) == inside) {
            cli_error("%s:%" PRIu64 ": a plan or session has no %s; nothing was imported",
                      m->file.name, m->file.sum.lines, inside ? "end" : "beginning");
            return false;
        }
        if (last && export_is(body, "end") && !carried_plan(&m->files)) {
            return false;
        }
        inside = !last;
    }
    return false;
}

/* The files of the results, too. */
static bool check_all(struct import *m)
{
    const char *to = m->files.to;
    bool good;

    m->files.to = NULL;
    good = check_file(m) && export_rewind(&m->file);
    m->checked = good && m->files.bad == 0;
    if (good && m->files.bad > 0) {
        cli_error("%" PRIu64 " file%s not as the results say; nothing was imported", m->files.bad,
                  m->files.bad == 1 ? " is" : "s are");
        return false;
    }
    carried_again(&m->files, to);
    return good;
}

/* One request. An import that another client has taken the place of, or of which a new daemon knows
 * nothing, is begun once more: its result is "lost". */
static enum cli_exit send_once(struct import *m, char ret[16])
{
    const bool begins = m->before > 0 && !m->again;
    cJSON *fields = cli_fields("lines", buf_cstr(&m->batch));
    cJSON *answer = NULL;
    enum cli_exit code;

    (void)cJSON_AddNumberToObject(fields, "before", (double)m->before);
    (void)cJSON_AddStringToObject(fields, m->key, strchr(m->name, ' ') + 1);
    code = cli_call_unless(m->cli, "journal.import", fields, begins ? BT_CONFLICT : BT_OK, &answer);
    m->lost = code == CLI_OK && answer == NULL;
    (void)snprintf(ret, 16, "%s", m->lost ? "lost" : json_text(answer, "result", ""));
    cJSON_Delete(answer);
    return code;
}

/* Sends what waits; the answer's result. */
static enum cli_exit send_batch(struct import *m, char ret[16])
{
    const msec until = clock_mono_ms() + WAIT_MS;
    int pause = 1;
    enum cli_exit code = send_once(m, ret);

    while (code == CLI_OK && strcmp(ret, "wait") == 0) {
        if (deadline_is_over()) {
            return deadline_report();
        }
        if (clock_mono_ms() > until) {
            cli_error("%s: another import is under way, or what an earlier one has left is not "
                      "gone yet; import the file again later: it goes on without doubles",
                      m->name);
            return CLI_TIMEOUT;
        }
        (void)poll(NULL, 0, (int)deadline_left((uint32_t)pause));
        pause = pause * 2 < POLL_MS ? pause * 2 : POLL_MS;
        code = send_once(m, ret);
    }
    m->before += m->in_batch;
    m->in_batch = 0;
    buf_clear(&m->batch);
    return code;
}

static bool add_line(struct import *m, struct str body)
{
    buf_add_str(&m->batch, body);
    buf_add_byte(&m->batch, '\n');
    m->in_batch++;
    return buf_check(&m->batch, NULL) == BT_OK;
}

static void name_it(struct import *m, const char *first)
{
    const struct str body = str_from(first);
    cJSON *tree = json_tree(first);
    const bool plan = export_is(body, "plan");
    const bool schedule = export_is(body, "schedule");

    m->key = plan ? "planId" : schedule ? "name" : "sessionId";
    (void)snprintf(m->name, sizeof m->name, "%s %s",
                   plan       ? "plan"
                   : schedule ? "schedule"
                              : "session",
                   json_text(tree, m->key, ""));
    cJSON_Delete(tree);
}

static bool sum_line(struct str body, void *self)
{
    return export_sum_add(self, body);
}

/* The plan is here: the rest of it in the file is compared with it. */
static enum cli_exit compare(struct import *m, struct str body)
{
    cJSON *fields = cli_fields("planId", m->name + strlen("plan "));
    struct export_sum ours = {.lines = 0};
    struct export_sum theirs = {.lines = 0};
    enum cli_exit code;

    (void)cJSON_AddBoolToObject(fields, "alone", true);
    code = export_ask(m->cli, fields, sum_line, &theirs);
    cJSON_Delete(fields);
    if (code == CLI_UNREACHABLE || code == CLI_TIMEOUT) {
        return code;
    }
    while (export_sum_add(&ours, body) && !export_is(body, "end")) {
        if (!next_line(m, &body)) {
            return CLI_INTERNAL; /* it could be read before */
        }
    }
    if (code == CLI_OK && ours.lines == theirs.lines && strcmp(ours.hash, theirs.hash) == 0) {
        m->plans_here++;
        return carried_plan(&m->files) ? CLI_OK : CLI_INTERNAL;
    }
    cli_error(code == CLI_OK ? "%s is here already, and is not the same: it stays as it is"
                             : "%s is here already, and was not compared: it stays as it is",
              m->name);
    m->refused++;
    return CLI_OK;
}

/* After a refusal of the daemon: the rest of it in the file. */
static void skip(struct import *m, struct str body)
{
    while (body.ptr != NULL && !export_is(body, "end") && !export_is(body, "damaged") &&
           export_next(&m->file, &body)) {
    }
}

/* To a line that was read before. */
static bool go_back(struct import *m, long at, struct export_sum sum)
{
    m->file.sum = sum;
    m->file.ended = false;
    if (fseek(m->file.from, at, SEEK_SET) != 0) {
        cli_error("%s: %s", m->file.name, strerror(errno));
        return false;
    }
    return true;
}

/* Whether it was damaged when it was exported, which its last line has. False: the file cannot be
 * read, which is reported. */
static bool look_ahead(struct import *m, bool *ret_damaged)
{
    const long at = ftell(m->file.from);
    const struct export_sum sum = m->file.sum;
    struct str body = {"", 0};
    bool good = true;

    while (good && body.ptr != NULL && !export_is(body, "end") && !export_is(body, "damaged")) {
        good = export_next(&m->file, &body);
    }
    *ret_damaged = good && export_is(body, "damaged");
    return good && go_back(m, at, sum);
}

/* What the daemon refuses is left out, and the others are taken. */
static enum cli_exit refused(struct import *m, enum cli_exit code, struct str last)
{
    if (code == CLI_UNREACHABLE || code == CLI_TIMEOUT) {
        return code;
    }
    cli_error("%s:%" PRIu64 ": %s was refused", m->file.name, m->file.sum.lines, m->name);
    m->refused++;
    skip(m, last);
    return CLI_OK;
}

/* The lines after the first one. */
static enum cli_exit take_rest(struct import *m, char result[16])
{
    struct str body = {"", 0};
    enum cli_exit code = CLI_OK;

    (void)snprintf(result, 16, "more");
    while (code == CLI_OK && strcmp(result, "more") == 0) {
        if (!next_line(m, &body)) {
            return CLI_INTERNAL; /* it could be read before */
        }
        if (body.ptr == NULL) {
            cli_error("%s:%" PRIu64 ": %s has no end any more; the file was changed while it was "
                      "imported",
                      m->file.name, m->file.sum.lines, m->name);
            return CLI_INTERNAL;
        }
        if (!add_line(m, body)) {
            cli_error("%s:%" PRIu64 ": the line is too long", m->file.name, m->file.sum.lines);
            return CLI_USAGE;
        }
        if (export_is(body, "end") || m->batch.len >= BATCH_BYTES || m->in_batch >= BATCH_LINES) {
            code = send_batch(m, result);
        }
        if (code != CLI_OK) {
            return refused(m, code, body);
        }
    }
    return CLI_OK;
}

/* It was taken, or was here: to the end of its lines, nothing of it was new. */
static enum cli_exit count(struct import *m, bool here)
{
    if (strcmp(m->key, "planId") == 0) {
        m->plans++;
    } else if (strcmp(m->key, "name") == 0) {
        m->schedules++;
    } else {
        *(here ? &m->sessions_here : &m->sessions) += 1;
    }
    return carried_plan(&m->files) ? CLI_OK : CLI_INTERNAL;
}

/* One that is whole. */
static enum cli_exit take_whole(struct import *m, struct str body)
{
    const uint64_t refusals = m->refused;
    char result[16] = "";
    enum cli_exit code;

    m->before = m->in_batch = 0;
    buf_clear(&m->batch);
    (void)add_line(m, body); /* the first one alone: it may be here already */
    code = send_batch(m, result);
    if (code != CLI_OK) {
        return refused(m, code, STR_LIT(""));
    }
    if (strcmp(result, "exists") == 0 && export_is(body, "schedule")) {
        skip(m, STR_LIT(""));
        m->schedules_here++;
        cli_note("%s is here already: it stays as it is\n", m->name);
        return CLI_OK;
    }
    if (strcmp(result, "exists") == 0) {
        return compare(m, body);
    }
    code = take_rest(m, result);
    return code == CLI_OK && m->refused == refusals && !m->lost
               ? count(m, strcmp(result, "exists") == 0)
               : code;
}

/* The same once more when it was lost. */
static enum cli_exit take_again(struct import *m, struct str body)
{
    const long at = ftell(m->file.from);
    const struct export_sum sum = m->file.sum;
    enum cli_exit code;

    m->again = false;
    code = take_whole(m, body);
    if (code == CLI_OK && m->lost) {
        m->again = true;
        carried_forget(&m->files);
        code = go_back(m, at, sum) ? take_whole(m, body) : CLI_INTERNAL;
    }
    return code;
}

/* One plan or session; `first` is its first line. */
static enum cli_exit take_one(struct import *m, struct str first)
{
    char *kept = strndup(first.ptr, first.len);
    bool damaged;
    enum cli_exit code;

    if (kept == NULL) {
        cli_error("%s:%" PRIu64 ": out of memory", m->file.name, m->file.sum.lines);
        return CLI_INTERNAL;
    }
    name_it(m, kept);
    if (!look_ahead(m, &damaged)) {
        code = CLI_INTERNAL;
    } else if (damaged) {
        skip(m, STR_LIT(""));
        m->damaged++;
        cli_note("left out, because it was damaged when it was exported: %s\n", m->name);
        code = CLI_OK;
    } else {
        code = take_again(m, str_from(kept));
    }
    free(kept);
    return code;
}

static enum cli_exit take_all(struct import *m)
{
    enum cli_exit code = CLI_OK;
    struct str body = {"", 0};

    while (code == CLI_OK && body.ptr != NULL) {
        code = !next_line(m, &body) ? CLI_INTERNAL : body.ptr == NULL ? CLI_OK : take_one(m, body);
    }
    return code == CLI_OK && m->refused > 0 ? CLI_INTERNAL : code;
}

static const char *many(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_here(const struct import *m)
{
    char sessions[48] = "";

    if (m->sessions_here > 0) {
        (void)snprintf(sessions, sizeof sessions, " and %" PRIu64 " session%s", m->sessions_here,
                       many(m->sessions_here));
    }
    (void)printf("%" PRIu64 " plan%s%s %s here already\n", m->plans_here, many(m->plans_here),
                 sessions, m->plans_here == 1 && m->sessions_here == 0 ? "was" : "were");
}

static void report(struct import *m)
{
    carried_report(&m->files);
    if (m->cli->json) {
        cJSON *said = cJSON_CreateObject();
        (void)cJSON_AddNumberToObject(said, "plans", (double)m->plans);
        (void)cJSON_AddNumberToObject(said, "sessions", (double)m->sessions);
        (void)cJSON_AddNumberToObject(said, "schedules", (double)m->schedules);
        (void)cJSON_AddNumberToObject(
            said, "here", (double)(m->plans_here + m->sessions_here + m->schedules_here));
        (void)cJSON_AddNumberToObject(said, "refused", (double)m->refused);
        (void)cJSON_AddNumberToObject(said, "damaged", (double)m->damaged);
        if (m->files.from != NULL) {
            (void)cJSON_AddNumberToObject(said, "artifacts", (double)m->files.sound);
        }
        cli_print_json(said);
        cJSON_Delete(said);
        return;
    }
    (void)printf("%" PRIu64 " plan%s and %" PRIu64 " session%s imported, ", m->plans,
                 many(m->plans), m->sessions, many(m->sessions));
    print_here(m);
    if (m->schedules > 0) {
        (void)printf("%" PRIu64 " schedule%s imported, paused: baton schedule resume NAME\n",
                     m->schedules, many(m->schedules));
    }
}

/* A pipe is kept in a file without a name: it is read twice. */
static FILE *open_twice(const char *name)
{
    FILE *from = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    FILE *copy;
    char bytes[65536];
    size_t n;

    if (from == NULL || fseek(from, 0, SEEK_CUR) == 0) {
        return from;
    }
    copy = tmpfile();
    while (copy != NULL && (n = fread(bytes, 1, sizeof bytes, from)) > 0) {
        if (fwrite(bytes, 1, n, copy) != n) {
            const int why = errno;
            (void)fclose(copy);
            errno = why;
            return NULL;
        }
    }
    if (copy != NULL) {
        rewind(copy);
    }
    return copy;
}

enum cli_exit verb_import(struct cli *cli)
{
    struct import m = {.cli = cli, .file = {.name = cli->argv[0]}};
    enum cli_exit code = carried_begin(&m.files, cli, false);

    buf_init(&m.batch, BATCH_MAX);
    m.file.from = code == CLI_OK ? open_twice(cli->argv[0]) : NULL;
    if (code == CLI_OK && m.file.from == NULL) {
        const int why = errno;
        cli_error("%s: %s", cli->argv[0], strerror(why));
        code = why == ENOSPC ? CLI_INTERNAL : CLI_NOT_FOUND; /* a pipe is kept in TMPDIR */
    }
    if (code == CLI_OK) {
        code = check_all(&m) ? take_all(&m) : CLI_USAGE;
        if (code == CLI_OK || (m.checked && !cli->json)) { /* else the error is what is printed */
            report(&m);
        }
    }
    buf_done(&m.batch);
    carried_done(&m.files);
    free(m.file.line);
    if (m.file.from != NULL) {
        (void)fclose(m.file.from);
    }
    return code;
}

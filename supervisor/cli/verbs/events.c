/* events: the events of one plan or of all: history first, then live. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "baton/vocabulary.h"
#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/event_line.h"

enum { SLICE_MS = 250, HISTORY_MS = 10000, LINE_BYTES_MAX = 65536 };

static volatile sig_atomic_t stop;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

static bool wanted(const char *types, const char *type)
{
    size_t n = strlen(type);

    for (const char *p = types; p != NULL && *p != 0; p += strcspn(p, ","), p += *p == ',') {
        if (strncmp(p, type, n) == 0 && (p[n] == ',' || p[n] == 0)) {
            return true;
        }
    }
    return types == NULL;
}

/* One line for people: number, time, type, text. */
static void print_event(const struct bt_event *ev)
{
    cJSON *json = cJSON_Parse(ev->json);
    struct buf line;

    cli_scrub_tree(json);
    buf_init(&line, LINE_BYTES_MAX);
    event_line(json, &line);
    (void)printf("%6llu %s %-20s %s\n", (unsigned long long)ev->seq,
                 json_text(json, "timestamp", ""), ev->type, buf_cstr(&line));
    buf_done(&line);
    cJSON_Delete(json);
}

struct viewing {
    const char *types;
    struct bt_vocabulary *vocabulary; /* NULL = Baton's own */
    bool sse;
    uint64_t limit, shown, last;
    bool follow;
    uint32_t quiet_ms; /* ends after so long without an event, in ms; 0 = never */
};

static void print_json(const struct viewing *v, const char *json)
{
    (void)printf(v->sse ? "data: %s\n\n" : "%s\n", json);
}

/* The plan's document describes its steps in more detail than the event. Without an answer the
 * detail is missing. */
static void describe(struct cli *cli, const struct viewing *v, const struct bt_event *ev)
{
    cJSON *fields = cli_fields("planId", ev->plan_id);
    char *text;
    char *answer = NULL;
    struct bt_error err;

    (void)cJSON_AddTrueToObject(fields, "document");
    (void)cJSON_AddFalseToObject(fields, "steps");
    text = cJSON_PrintUnformatted(fields);
    if (bt_client_call(cli->client, "plan.get", text, &answer, &err) == BT_OK &&
        bt_vocabulary_describe(v->vocabulary, answer, &err) == BT_NOMEM) {
        cli_error("plan %s: %s", ev->plan_id, err.msg);
    }
    bt_free(answer);
    cJSON_free(text);
    cJSON_Delete(fields);
}

/* Prints the event in the other vocabulary; --type and --limit apply to its events. */
static void print_translated(struct cli *cli, struct viewing *v, const struct bt_event *ev)
{
    struct bt_translated said;
    struct bt_error err;

    if (bt_vocabulary_wants_plan(v->vocabulary, ev->type)) {
        describe(cli, v, ev);
    }
    if (bt_vocabulary_take(v->vocabulary, ev->json, strlen(ev->json), &err) != BT_OK) {
        cli_error("event %llu: %s", (unsigned long long)ev->seq, err.msg);
    }
    while ((v->limit == 0 || v->shown < v->limit) && bt_vocabulary_next(v->vocabulary, &said)) {
        if (wanted(v->types, said.type)) {
            v->shown++;
            print_json(v, said.json);
        }
    }
}

static void print_one(struct cli *cli, struct viewing *v, const struct bt_event *ev)
{
    if (v->vocabulary != NULL) {
        print_translated(cli, v, ev);
    } else if (wanted(v->types, ev->type)) {
        v->shown++;
        if (cli->json || v->sse) {
            print_json(v, ev->json);
        } else {
            print_event(ev);
        }
    }
}

static enum cli_exit view(struct cli *cli, struct bt_watch *watch, struct viewing *v)
{
    msec heard = clock_mono_ms();

    while (stop == 0 && (v->limit == 0 || v->shown < v->limit)) {
        struct bt_event ev;
        struct bt_error err;
        enum bt_code code = bt_watch_next(watch, SLICE_MS, &ev, &err);
        if (code == BT_TIMEOUT) {
            if (!v->follow && clock_mono_ms() - heard < HISTORY_MS) {
                continue; /* the daemon is slow to answer: the history must be complete */
            }
            if (!v->follow) {
                cli_error("the daemon did not give the rest of the events in time");
                return CLI_TIMEOUT;
            }
            if (v->quiet_ms != 0 && clock_mono_ms() - heard >= v->quiet_ms) {
                return CLI_OK;
            }
            continue;
        }
        if (code != BT_OK) {
            return cli_fail(&err);
        }
        heard = clock_mono_ms();
        if (!v->follow && ev.seq > v->last) {
            return CLI_OK; /* history only: later events are not part of it */
        }
        print_one(cli, v, &ev);
        if (fflush(stdout) != 0) {
            return CLI_OK; /* the reader has closed the pipe */
        }
        if (!v->follow && ev.seq == v->last) {
            return CLI_OK;
        }
    }
    return stop != 0 ? CLI_INTERRUPTED : CLI_OK;
}

static enum cli_exit look(struct cli *cli, struct viewing *v)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    const char *plan_id = cli->argc == 1 ? cli->argv[0] : NULL;
    struct bt_watch *watch = NULL;
    cJSON *answer = NULL;
    cJSON *fields = NULL;
    struct bt_error err;
    uint64_t after = 0;
    enum cli_exit code;

    if ((cli_value(cli, "after") != NULL &&
         !cli_number(cli_value(cli, "after"), "--after", &after)) ||
        (cli_value(cli, "limit") != NULL &&
         !cli_number(cli_value(cli, "limit"), "--limit", &v->limit)) ||
        (cli_value(cli, "timeout") != NULL &&
         !cli_duration(cli_value(cli, "timeout"), "--timeout", &v->quiet_ms))) {
        return CLI_USAGE;
    }
    if (plan_id != NULL) { /* so that an unknown id is an error */
        fields = cJSON_CreateObject();
        (void)cJSON_AddStringToObject(fields, "planId", plan_id);
        (void)cJSON_AddFalseToObject(fields, "steps");
    }
    code = cli_call(cli, plan_id != NULL ? "plan.get" : "supervisor.info", fields, &answer);
    if (code != CLI_OK) {
        return code;
    }
    v->last = (uint64_t)json_number(answer, "lastSeq");
    cJSON_Delete(answer);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (bt_watch_open(cli->client, plan_id, after, &watch, &err) != BT_OK) {
        return cli_fail(&err);
    }
    code = !v->follow && v->last <= after ? CLI_OK : view(cli, watch, v);
    bt_watch_close(watch);
    return code;
}

enum cli_exit verb_events(struct cli *cli)
{
    const char *name = cli_value(cli, "vocabulary");
    struct viewing v = {.types = cli_value(cli, "type"),
                        .sse = cli_flag(cli, "sse"),
                        .follow = cli_flag(cli, "follow")};
    struct bt_error err;
    enum cli_exit code;

    if (name != NULL && bt_vocabulary_new(name, &v.vocabulary, &err) != BT_OK) {
        cli_error("events: --vocabulary: %s", err.msg);
        return cli_exit_of(err.code);
    }
    code = look(cli, &v);
    bt_vocabulary_free(v.vocabulary);
    return code;
}

/* events: the events of one plan or of all: history first, then live. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "baton/vocabulary.h"
#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/form.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/output.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/event_line.h"
#include "supervisor/cli/view/last_lines.h"

enum {
    SLICE_MS = 250,
    HISTORY_MS = 10000,
    LINE_BYTES_MAX = 65536,
    VECTOR_BYTES = 4096,
    PLACE_MAX = 80
};

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

/* Of Baton's own events; a vocabulary has other names. */
static bool types_exist(const char *types)
{
    char type[64];

    for (const char *p = types; p != NULL && *p != 0; p += strcspn(p, ","), p += *p == ',') {
        const char *const *known = event_types();
        const char *near;
        (void)snprintf(type, sizeof type, "%.*s", (int)strcspn(p, ","), p);
        while (*known != NULL && strcmp(*known, type) != 0) {
            known++;
        }
        if (*known == NULL) {
            near = cli_did_you_mean(type, event_types());
            cli_error("events: --type: there is no event '%s'%s%s%s", type,
                      near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                      near != NULL ? "'?" : "; EVENTS.md lists them");
            return false;
        }
    }
    return true;
}

struct viewing {
    const char *types;
    struct bt_vocabulary *vocabulary; /* NULL = Baton's own */
    bool sse;
    bool as_data; /* JSON objects in the form of --output */
    uint64_t limit, shown, last;
    bool follow;
    bool keeps; /* lines of history are kept in `tail` until all of it has come */
    struct last_lines tail;
    const char *vector; /* of --after, with a shard or an eventId; NULL = a number */
    char place[PLACE_MAX];
    msec since; /* in ms since 1970: what is older is not shown; 0 = all */
};

/* A line for people or of a stream of server-sent events, or one JSON object. */
static void show(const char *text, void *self)
{
    const struct viewing *v = self;

    if (v->as_data) {
        (void)cli_print_json_text(text);
    } else {
        (void)fputs(text, stdout);
    }
}

static void put(struct viewing *v, const char *text)
{
    v->shown++;
    if (v->keeps) {
        last_lines_add(&v->tail, text);
    } else {
        show(text, v);
    }
}

/* One line for people: number, time, type, text. */
static void print_event(struct viewing *v, const struct bt_event *ev)
{
    char head[128];
    char when[CLI_TIME_MAX];
    cJSON *json = json_tree(ev->json);
    struct buf line;

    cli_scrub_tree(json);
    (void)snprintf(head, sizeof head, "%6llu %s %-20s ", (unsigned long long)ev->seq,
                   cli_time(json_text(json, "timestamp", ""), when), ev->type);
    buf_init(&line, LINE_BYTES_MAX);
    buf_add_cstr(&line, head);
    event_line(json, &line);
    buf_add_byte(&line, '\n');
    put(v, buf_cstr(&line));
    buf_done(&line);
    cJSON_Delete(json);
}

static void print_json(struct viewing *v, const char *json)
{
    struct buf line;

    if (v->as_data) {
        put(v, json);
        return;
    }
    buf_init(&line, SIZE_MAX / 2);
    buf_add_cstr(&line, "data: ");
    cli_put_json(&line, str_from(json));
    buf_add_cstr(&line, "\n\n");
    put(v, buf_cstr(&line));
    buf_done(&line);
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
            print_json(v, said.json);
        }
    }
}

static bool is_older(const struct viewing *v, const struct bt_event *ev)
{
    cJSON *json = v->since > 0 ? json_tree(ev->json) : NULL;
    const bool older = json != NULL && json_number(json, "tsMs") < (double)v->since;

    cJSON_Delete(json);
    return older;
}

static void print_one(struct cli *cli, struct viewing *v, const struct bt_event *ev)
{
    if (is_older(v, ev)) {
        return;
    }
    if (v->vocabulary != NULL) {
        print_translated(cli, v, ev);
    } else if (wanted(v->types, ev->type)) {
        if (cli->json || v->sse) {
            print_json(v, ev->json);
        } else {
            print_event(v, ev);
        }
    }
}

/* All of the history has come. */
static void end_history(struct viewing *v)
{
    if (v->keeps) {
        v->keeps = false;
        last_lines_pass(&v->tail, show, v);
    }
}

static enum cli_exit view(struct cli *cli, struct bt_watch *watch, struct viewing *v)
{
    msec heard = clock_mono_ms();

    while (stop == 0 && (v->limit == 0 || v->shown < v->limit)) {
        struct bt_event ev;
        struct bt_error err;
        enum bt_code code;
        if (deadline_is_over()) {
            return CLI_TIMEOUT;
        }
        code = bt_watch_next(watch, deadline_left(SLICE_MS), &ev, &err);
        if (code == BT_TIMEOUT) {
            if (!v->follow && clock_mono_ms() - heard >= HISTORY_MS) {
                cli_error("the daemon did not give the rest of the events in time");
                return CLI_TIMEOUT;
            }
            continue; /* the history must be complete, also of a slow daemon */
        }
        if (code != BT_OK) {
            return cli_fail(&err);
        }
        heard = clock_mono_ms();
        if (!v->follow && ev.seq > v->last) {
            return CLI_OK; /* history only: later events are not part of it */
        }
        if (ev.seq > v->last) {
            end_history(v);
        }
        print_one(cli, v, &ev);
        if (ev.seq >= v->last) {
            end_history(v);
        }
        if (!output_flush()) {
            return CLI_OK; /* main prints why */
        }
        if (v->follow ? cli->argc == 1 && strcmp(ev.type, "plan_completed") == 0
                      : ev.seq == v->last) {
            return CLI_OK;
        }
    }
    return stop != 0 ? CLI_INTERRUPTED : CLI_OK;
}

/* The number of the last event before v->since, by halving; 0 = none. */
static enum cli_exit find_since(struct cli *cli, const struct viewing *v, uint64_t *ret_after)
{
    uint64_t low = 0;
    uint64_t high = v->last;

    while (low < high) {
        const uint64_t middle = low + (high - low + 1) / 2;
        cJSON *fields = cJSON_CreateObject();
        cJSON *answer = NULL;
        enum cli_exit code;
        (void)cJSON_AddNumberToObject(fields, "fromSeq", (double)middle);
        (void)cJSON_AddNumberToObject(fields, "limit", 1);
        code = cli_call(cli, "events.read", fields, &answer);
        if (code != CLI_OK) {
            return code;
        }
        if (json_number(cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(answer, "events"), 0),
                        "tsMs") < (double)v->since) {
            low = middle;
        } else {
            high = middle - 1;
        }
        cJSON_Delete(answer);
    }
    *ret_after = low > *ret_after ? low : *ret_after;
    return CLI_OK;
}

/* Prints the error and returns false. */
static bool read_options(const struct cli *cli, struct viewing *v, uint64_t *after)
{
    const char *number = cli_value(cli, "after");
    const char *limit = cli_value(cli, "limit");
    const char *tail = cli_value(cli, "tail");
    const char *since = cli_value(cli, "since");
    uint64_t n = 0;

    if (number != NULL && number[0] == 'S') {
        v->vector = number;
    } else if (number != NULL && strchr(number, ':') != NULL) { /* 12:EVENTID of one daemon */
        (void)snprintf(v->place, sizeof v->place, "S0=%s", number);
        v->vector = v->place;
    } else if (number != NULL && !cli_number(number, "--after", after)) {
        return false;
    }
    if ((limit != NULL && !cli_number(limit, "--limit", &v->limit)) ||
        (tail != NULL && !cli_number(tail, "--tail", &n)) ||
        (since != NULL && !cli_moment(since, "--since", clock_wall_ms(), &v->since))) {
        return false;
    }
    if (tail != NULL && (limit != NULL || n > LAST_LINES_MAX)) {
        cli_error(limit != NULL ? "events: --limit keeps the first, --tail the last: give one"
                                : "events: --tail is at most %d",
                  LAST_LINES_MAX);
        return false;
    }
    v->keeps = tail != NULL;
    if (v->keeps && !last_lines_init(&v->tail, n)) {
        cli_error("out of memory");
        return false;
    }
    return true;
}

/* A fleet of several shards: all of them, merged by time. The history has ended when nothing comes
 * for a moment; then the vector is said, so that the next call can go on. */
static enum cli_exit look_at_all(struct cli *cli, struct viewing *v, uint64_t after)
{
    struct bt_watch *watch = NULL;
    char vector[VECTOR_BYTES];
    bool is_late = false;
    enum bt_code code;
    struct bt_error err;
    struct bt_event ev;

    code = v->vector != NULL ? bt_watch_open_after(cli->client, v->vector, &watch, &err)
                             : bt_watch_open(cli->client, NULL, after, &watch, &err);
    while (code == BT_OK && stop == 0 && (v->limit == 0 || v->shown < v->limit)) {
        is_late = deadline_is_over();
        if (is_late) {
            break;
        }
        code = bt_watch_next(watch, deadline_left(SLICE_MS), &ev, &err);
        if (code == BT_OK) {
            print_one(cli, v, &ev);
        } else if (code == BT_TIMEOUT && bt_watch_is_current(watch)) {
            end_history(v);
            code = v->follow ? BT_OK : code;
        } else if (code == BT_TIMEOUT) { /* a shard that has not answered yet */
            code = BT_OK;
        }
        if (!output_flush()) {
            break;
        }
    }
    if (watch != NULL) {
        end_history(v);
        bt_watch_cursor(watch, vector, sizeof vector);
        (void)fprintf(stderr, "baton: to go on from here: --after '%s'\n", vector);
        bt_watch_close(watch);
    }
    return code != BT_OK && code != BT_TIMEOUT ? cli_fail(&err)
           : stop != 0                         ? CLI_INTERRUPTED
           : is_late                           ? CLI_TIMEOUT
                                               : CLI_OK;
}

/* What --after may be with what else was asked; prints the error and returns false. */
static bool read_all_options(const struct cli *cli, struct viewing *v, uint64_t *after)
{
    if (!read_options(cli, v, after)) {
        return false;
    }
    if (cli->argc == 1 && v->vector != NULL) {
        cli_error("events: --after: of one plan give a number, got '%s'", cli_value(cli, "after"));
        return false;
    }
    return true;
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
    uint32_t shards = 1;
    enum cli_exit code;

    if (!read_all_options(cli, v, &after)) {
        return CLI_USAGE;
    }
    code = cli_connect(cli);
    if (code == CLI_OK && plan_id == NULL) {
        if (bt_client_shards(cli->client, &shards, &err) != BT_OK) {
            return cli_fail(&err);
        }
        if (shards > 1 || v->vector != NULL) {
            (void)sigaction(SIGINT, &action, NULL);
            (void)sigaction(SIGTERM, &action, NULL);
            return look_at_all(cli, v, after);
        }
    }
    if (code != CLI_OK) {
        return code;
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
    code = v->since > 0 ? find_since(cli, v, &after) : CLI_OK;
    if (code != CLI_OK) {
        return code;
    }
    if (v->keeps && plan_id == NULL && v->types == NULL && v->vocabulary == NULL &&
        v->last > v->tail.cap && v->last - v->tail.cap > after) {
        after = v->last - v->tail.cap; /* the numbers have no gaps */
    }
    if (v->last <= after) {
        end_history(v);
    }
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (bt_watch_open(cli->client, plan_id, after, &watch, &err) != BT_OK) {
        return cli_fail(&err);
    }
    code = !v->follow && v->last <= after ? CLI_OK : view(cli, watch, v);
    bt_watch_close(watch);
    end_history(v); /* also of a stream that ended early */
    return code;
}

enum cli_exit verb_events(struct cli *cli)
{
    const char *name = cli_value(cli, "vocabulary");
    struct viewing v = {.types = cli_value(cli, "type"),
                        .sse = cli_flag(cli, "sse"),
                        .as_data = !cli_flag(cli, "sse") && (cli->json || name != NULL),
                        .follow = cli_flag(cli, "follow")};
    struct bt_error err;
    enum cli_exit code;

    if (name == NULL && !types_exist(v.types)) {
        return CLI_USAGE;
    }
    if (name != NULL && bt_vocabulary_new(name, &v.vocabulary, &err) != BT_OK) {
        cli_error("events: --vocabulary: %s", err.msg);
        return cli_exit_of(err.code);
    }
    code = look(cli, &v);
    last_lines_done(&v.tail);
    bt_vocabulary_free(v.vocabulary);
    return code;
}

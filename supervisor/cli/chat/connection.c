/* chat: the connection to the daemon, which may be lost and restored. */
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/client/state.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/chat/chat.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/remote.h"

enum { CHECK_MS = 500 };

enum bt_code chat_call(struct chat *c, const char *type, cJSON *fields, cJSON **ret,
                       struct bt_error *err)
{
    char *text = fields != NULL ? cjson_print(fields, false, err) : NULL;
    char *json = NULL;
    enum bt_code code = fields != NULL && text == NULL ? BT_INVALID : BT_OK;

    *ret = NULL;
    if (code == BT_OK && c->cli->client == NULL) {
        code = cli_open(c->cli, &c->cli->client, err);
        if (code == BT_OK) {
            bt_client_timeout(c->cli->client, deadline_left(CHAT_CALL_MS));
            bt_client_via(c->cli->client, "baton chat");
        }
    }
    if (code == BT_OK) {
        code = bt_client_call(c->cli->client, type, text, &json, err);
    }
    if (code == BT_OK) {
        *ret = json_tree(json);
        code = *ret != NULL ? BT_OK : err_set(err, BT_PROTOCOL, "an answer could not be read");
    }
    bt_free(json);
    cJSON_free(text);
    cJSON_Delete(fields);
    return code;
}

bool chat_is_unreachable(const struct chat *c, enum bt_code code)
{
    return code == BT_UNAVAILABLE || code == BT_TIMEOUT || code == BT_BUSY ||
           (code == BT_NOT_FOUND && c->cli->client == NULL);
}

/* Whether the state directory names a running daemon. Cheaper than a request. */
static bool daemon_runs(const struct chat *c)
{
    const char *dir = cli_state_dir(c->cli);
    struct state_endpoints at;

    if (cli_elsewhere(c->cli) != NULL) {
        return true; /* only a request can say */
    }
    return dir != NULL && state_endpoints_read(dir, &at, NULL) == BT_OK && !state_daemon_ended(&at);
}

static void disconnect(struct chat *c)
{
    bt_watch_close(c->watch);
    c->watch = NULL;
    bt_client_close(c->cli->client);
    c->cli->client = NULL;
}

static void connection_lost(struct chat *c)
{
    disconnect(c);
    if (!c->away) {
        c->away = true;
        c->away_since = clock_mono_ms();
        c->screen.hold = c->screen.hold || c->screen.answer.text.len > 0;
        screen_note(&c->screen, "waiting for the daemon; running plans continue when it is back");
    }
}

/* Whether the daemon knows the session that it had before. */
static enum bt_code look_for_session(struct chat *c, struct bt_error *err)
{
    cJSON *fields;
    cJSON *answer = NULL;
    enum bt_code code = BT_OK;

    if (c->is_named) {
        fields = cli_fields("sessionId", c->session);
        (void)cJSON_AddNumberToObject(fields, "limit", 1);
        code = chat_call(c, "session.get", fields, &answer, err);
    }
    cJSON_Delete(answer);
    return code;
}

/* Whether the daemon answers, with the journal of before: event numbers only grow, so a smaller
 * lastSeq means another one, and so does a session that is not there. */
static bool is_back(struct chat *c)
{
    cJSON *info = NULL;
    struct bt_error err;
    enum bt_code code = chat_call(c, "supervisor.info", NULL, &info, &err);

    if (code == BT_OK) {
        code = (uint64_t)json_number(info, "lastSeq") < c->last ? BT_NOT_FOUND
                                                                : look_for_session(c, &err);
        if (code == BT_NOT_FOUND) {
            screen_note(&c->screen,
                        "this daemon does not know the session: its journal is another one");
            c->exit = CLI_NOT_FOUND;
            c->quit = true;
        }
    }
    cJSON_Delete(info);
    return code == BT_OK;
}

static void reconnect(struct chat *c)
{
    struct bt_error err;

    if (!daemon_runs(c) || !is_back(c) ||
        bt_watch_open(c->cli->client, NULL, c->last, &c->watch, &err) != BT_OK) {
        disconnect(c);
        return;
    }
    c->away = false;
    c->send_at = 0;
    screen_note(&c->screen, "the daemon is back");
}

enum cli_exit chat_begin(struct chat *c)
{
    enum cli_exit code = cli_connect(c->cli);
    cJSON *info = NULL;
    struct bt_error err;

    if (code != CLI_OK) {
        return code;
    }
    bt_client_timeout(c->cli->client, deadline_left(CHAT_CALL_MS));
    if (chat_call(c, "supervisor.info", NULL, &info, &err) != BT_OK) {
        return cli_fail(&err);
    }
    c->last = (uint64_t)json_number(info, "lastSeq");
    cJSON_Delete(info);
    if (bt_watch_open(c->cli->client, NULL, c->last, &c->watch, &err) != BT_OK) {
        return cli_fail(&err);
    }
    return CLI_OK;
}

bool chat_next(struct chat *c, uint32_t timeout_ms, struct bt_event *ret)
{
    msec now = clock_mono_ms();
    struct bt_error err;
    enum bt_code code;

    if (now >= c->check_at) {
        c->check_at = now + CHECK_MS;
        if (c->watch != NULL && !daemon_runs(c)) {
            connection_lost(c);
        } else if (c->watch == NULL) {
            reconnect(c);
        }
    }
    if (c->watch == NULL) {
        if (!c->quit && !c->screen.interactive &&
            clock_mono_ms() - c->away_since > CHAT_AWAY_MS_MAX) {
            screen_note(&c->screen, "the daemon does not come back");
            c->exit = CLI_UNREACHABLE;
            c->quit = true;
        }
        return false;
    }
    code = bt_watch_next(c->watch, timeout_ms, ret, &err);
    if (code == BT_OK) {
        c->last = ret->seq;
        return true;
    }
    if (code != BT_TIMEOUT) {
        connection_lost(c);
    }
    return false;
}

void chat_end(struct chat *c)
{
    bt_watch_close(c->watch);
    c->watch = NULL;
}

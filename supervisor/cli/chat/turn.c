/* chat: sends messages and handles turns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/base/uuid.h"
#include "supervisor/cli/chat/chat.h"
#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/sessions.h"
#include "supervisor/cli/common/text.h"

enum { RESEND_MS = 500, MESSAGES_SHOWN = 6, MESSAGE_SHOWN = 304 };

static bool has_ended(const struct chat *c, const char *turn_id)
{
    for (int i = 0; i < CHAT_TURNS_KEPT; i++) {
        if (strcmp(c->ended[i], turn_id) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_own_turn(const struct chat *c, const char *turn_id, bool *ret_replied)
{
    for (int i = 0; i < CHAT_TURNS_KEPT; i++) {
        if (turn_id[0] != 0 && strcmp(c->own_turns[i].turn, turn_id) == 0) {
            *ret_replied = c->own_turns[i].replied;
            return true;
        }
    }
    *ret_replied = false;
    return false;
}

/* A turn that wanted a plan and got none is an error, as in `baton run`. */
static void set_exit(struct chat *c, const char *action, const char *plan_id)
{
    if (strcmp(action, "new_plan") == 0 && plan_id[0] == 0) {
        c->exit = CLI_USAGE;
    }
}

/* The daemon knows the session by this name: that of a submitter has its credential in front. */
static void name_session(struct chat *c, const cJSON *answer)
{
    const char *name = json_text(answer, "sessionId", "");

    if (name[0] != 0) {
        (void)snprintf(c->session, sizeof c->session, "%s", name);
        c->is_named = true;
    }
}

/* Before an answer has named it, an event of it may come when that answer was lost. */
static bool is_own_session(const struct chat *c, const char *name)
{
    const size_t n = strlen(name);
    const size_t own = strlen(c->session);

    return n >= own && strcmp(name + n - own, c->session) == 0 &&
           (n == own || (!c->is_named && name[n - own - 1] == ':'));
}

/* The daemon has accepted the message. */
static void on_accepted(struct chat *c, const cJSON *answer)
{
    const char *reply = json_text(answer, "reply", "");
    const char *plan_id = json_text(answer, "planId", "");

    (void)snprintf(c->turn, sizeof c->turn, "%s", json_text(answer, "turnId", ""));
    name_session(c, answer);
    c->turn_open = !has_ended(c, c->turn);
    (void)snprintf(c->own_turns[c->own_turns_at % CHAT_TURNS_KEPT].turn,
                   sizeof c->own_turns[0].turn, "%s", c->turn);
    c->own_turns[c->own_turns_at++ % CHAT_TURNS_KEPT].replied = reply[0] != 0;
    set_exit(c, json_text(answer, "action", ""), plan_id);
    chat_plan_set(c, plan_id);
    chat_show_reply(c, reply);
    if (c->exit == CLI_USAGE && !c->agents_checked && c->cli->client != NULL) {
        c->agents_checked = true;
        screen_clear(&c->screen);
        cli_note_if_no_agents(c->cli->client);
    }
}

static void drop_unsent(struct chat *c)
{
    free(c->unsent);
    c->unsent = NULL;
}

static cJSON *send_fields(struct chat *c)
{
    cJSON *fields = cli_fields("sessionId", c->session);
    const char *policy = cli_value(c->cli, "policy");

    (void)cJSON_AddStringToObject(fields, "text", c->unsent);
    (void)cJSON_AddStringToObject(fields, "clientKey", c->key);
    if (c->answers[0] != 0) {
        (void)cJSON_AddStringToObject(fields, "reviewId", c->answers);
    }
    cli_add_value(c->cli, "planner", fields, "planner");
    if (policy != NULL) {
        (void)cJSON_AddItemToObject(fields, "policy", cJSON_Parse(policy));
    }
    return fields;
}

void chat_send_pending(struct chat *c)
{
    cJSON *answer = NULL;
    struct bt_error err;
    enum bt_code code;

    if (c->unsent == NULL || c->watch == NULL || clock_mono_ms() < c->send_at) {
        return;
    }
    code = chat_call(c, "session.say", send_fields(c), &answer, &err);
    if (chat_is_unreachable(c, code)) {
        if (code == BT_BUSY && !c->told_why) {
            c->told_why = true;
            screen_note(&c->screen, "the message waits: %s", err.msg);
        }
        c->send_at = clock_mono_ms() + RESEND_MS;
    } else if (code != BT_OK) {
        screen_note(&c->screen, "%s", err.msg);
        c->exit = cli_exit_of(code);
        drop_unsent(c);
    } else {
        drop_unsent(c);
        on_accepted(c, answer);
    }
    cJSON_Delete(answer);
}

void chat_send(struct chat *c, const char *text)
{
    drop_unsent(c);
    c->unsent = strdup(text);
    if (c->unsent == NULL) {
        screen_note(&c->screen, "out of memory");
        return;
    }
    uuid_format(uuid_new(), c->key);
    memcpy(c->answers, c->plan.review, sizeof c->answers);
    c->send_at = 0;
    c->told_why = false;
    c->last_reply[0] = 0;
    c->exit = CLI_OK;
    c->plan.muted = false;
    chat_send_pending(c);
}

/* Whether the outcome of the turn was shown: as the reply, or as the end of its plan. */
static bool is_shown(const struct chat *c, const char *turn, const char *plan_id,
                     const char *action)
{
    bool replied;

    (void)is_own_turn(c, turn, &replied);
    return replied || (c->plan.end_shown && strcmp(plan_id, c->plan.id) == 0 &&
                       (action[0] == 0 || strcmp(action, "new_plan") == 0));
}

static void turn_end(struct chat *c, const struct bt_event *ev, const cJSON *event)
{
    const char *turn = json_text(event, "turnId", "");
    const char *plan_id = json_text(event, "turnPlanId", "");
    const char *action = json_text(event, "action", "");

    (void)snprintf(c->ended[c->ended_at++ % CHAT_TURNS_KEPT], sizeof c->ended[0], "%s", turn);
    if (strcmp(turn, c->turn) == 0) {
        c->turn_open = false;
        set_exit(c, action, plan_id);
    }
    chat_plan_set(c, plan_id);
    if (c->cli->json) {
        (void)cli_print_json_text(ev->json);
        (void)fflush(stdout);
    }
    if (!c->plan.muted && !is_shown(c, turn, plan_id, action)) {
        chat_show_reply(c, json_text(event, "message", ""));
    }
}

/* Another client may write in the session, too. */
static void turn_start(struct chat *c, const cJSON *event)
{
    const char *message = json_text(event, "message", "");
    bool replied;
    bool ours = is_own_turn(c, json_text(event, "turnId", ""), &replied) ||
                (c->unsent != NULL && strncmp(c->unsent, message, strlen(message)) == 0);

    if (!ours) {
        screen_note(&c->screen, "« %s", message);
    }
}

void chat_event(struct chat *c, const struct bt_event *ev)
{
    cJSON *event = json_tree(ev->json);

    if (is_own_session(c, json_text(event, "sessionId", ""))) {
        if (strcmp(ev->type, "turn_start") == 0) {
            turn_start(c, event);
        } else if (strcmp(ev->type, "turn_end") == 0) {
            turn_end(c, ev, event);
        } else if (ev->plan_id[0] != 0) {
            chat_plan_event(c, ev->type, event);
        }
    }
    cJSON_Delete(event);
}

static void show_messages(struct chat *c, const cJSON *view)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(view, "messages"))
    {
        char text[MESSAGE_SHOWN];
        cli_cut_line(text, sizeof text, json_text(m, "text", ""));
        screen_note(&c->screen, "%s %s", strcmp(json_text(m, "role", ""), "user") == 0 ? ">" : " ",
                    text);
    }
    chat_plan_set(c, json_text(view, "openPlanId", ""));
    if (c->plan.id[0] != 0) {
        chat_plan_show(c);
    }
}

enum cli_exit chat_catch_up(struct chat *c)
{
    cJSON *fields = cli_fields("sessionId", c->session);
    cJSON *view = NULL;
    struct bt_error err;
    enum bt_code code;
    enum cli_exit exit = CLI_OK;

    (void)cJSON_AddNumberToObject(fields, "limit", MESSAGES_SHOWN);
    code = chat_call(c, "session.get", fields, &view, &err);
    if (code == BT_OK) {
        name_session(c, view);
        show_messages(c, view);
    } else if (code == BT_NOT_FOUND && c->cli->client != NULL && cli_flag(c->cli, "new")) {
        screen_note(&c->screen, "a new session: %s", c->session);
    } else if (code == BT_NOT_FOUND && c->cli->client != NULL) {
        cli_report_no_session(c->cli, c->session, "; with --new it is begun");
        exit = CLI_NOT_FOUND;
    } else {
        exit = cli_fail(&err);
    }
    cJSON_Delete(view);
    return exit;
}

/* chat: what is said, and what comes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/base/uuid.h"
#include "supervisor/cli/chat.h"

enum { AGAIN_MS = 500, MESSAGES_SHOWN = 6 };

static bool has_ended(const struct chat *c, const char *turn_id)
{
    for (int i = 0; i < CHAT_TURNS_KEPT; i++) {
        if (strcmp(c->ended[i], turn_id) == 0) {
            return true;
        }
    }
    return false;
}

/* The daemon has taken the message. */
static void taken(struct chat *c, const cJSON *answer)
{
    (void)snprintf(c->turn, sizeof c->turn, "%s", json_text(answer, "turnId", ""));
    c->turn_open = !has_ended(c, c->turn);
    chat_plan_set(c, json_text(answer, "planId", ""));
    chat_tell(c, json_text(answer, "reply", ""));
}

static void drop_saying(struct chat *c)
{
    free(c->saying);
    c->saying = NULL;
}

static cJSON *say_fields(struct chat *c)
{
    cJSON *fields = cli_fields("sessionId", c->session);
    const char *policy = cli_value(c->cli, "policy");

    (void)cJSON_AddStringToObject(fields, "text", c->saying);
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

void chat_say_again(struct chat *c)
{
    cJSON *answer = NULL;
    struct bt_error err;
    enum bt_code code;

    if (c->saying == NULL || c->watch == NULL || clock_mono_ms() < c->say_at) {
        return;
    }
    code = chat_call(c, "session.say", say_fields(c), &answer, &err);
    if (chat_is_away(c, code)) {
        c->say_at = clock_mono_ms() + AGAIN_MS;
    } else if (code != BT_OK) {
        screen_note(&c->screen, "%s", err.msg);
        c->exit = cli_exit_of(code);
        drop_saying(c);
    } else {
        drop_saying(c);
        taken(c, answer);
    }
    cJSON_Delete(answer);
}

void chat_say(struct chat *c, const char *text)
{
    drop_saying(c);
    c->saying = strdup(text);
    if (c->saying == NULL) {
        screen_note(&c->screen, "out of memory");
        return;
    }
    uuid_format(uuid_new(), c->key);
    memcpy(c->answers, c->plan.review, sizeof c->answers);
    c->say_at = 0;
    c->said[0] = 0;
    c->exit = CLI_OK;
    c->plan.muted = false;
    chat_say_again(c);
}

static void turn_end(struct chat *c, const struct bt_event *ev, const cJSON *event)
{
    const char *turn = json_text(event, "turnId", "");

    (void)snprintf(c->ended[c->ended_at++ % CHAT_TURNS_KEPT], sizeof c->ended[0], "%s", turn);
    if (strcmp(turn, c->turn) == 0) {
        c->turn_open = false;
    }
    chat_plan_set(c, json_text(event, "turnPlanId", ""));
    if (c->cli->json) {
        (void)puts(ev->json);
        (void)fflush(stdout);
    }
    if (!c->plan.muted) {
        chat_tell(c, json_text(event, "message", ""));
    }
}

/* Somebody else may talk in the session, too. */
static void turn_start(struct chat *c, const cJSON *event)
{
    const char *message = json_text(event, "message", "");
    bool ours = strcmp(json_text(event, "turnId", ""), c->turn) == 0 ||
                (c->saying != NULL && strncmp(c->saying, message, strlen(message)) == 0);

    if (!ours) {
        screen_note(&c->screen, "« %s", message);
    }
}

void chat_event(struct chat *c, const struct bt_event *ev)
{
    cJSON *event = cJSON_Parse(ev->json);

    if (strcmp(json_text(event, "sessionId", ""), c->session) == 0) {
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

void chat_catch_up(struct chat *c)
{
    cJSON *fields = cli_fields("sessionId", c->session);
    cJSON *view = NULL;
    struct bt_error err;
    const cJSON *m;

    (void)cJSON_AddNumberToObject(fields, "limit", MESSAGES_SHOWN);
    if (chat_call(c, "session.get", fields, &view, &err) == BT_OK) {
        cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(view, "messages"))
        {
            screen_note(&c->screen, "%s %.300s",
                        strcmp(json_text(m, "role", ""), "user") == 0 ? ">" : " ",
                        json_text(m, "text", ""));
        }
        chat_plan_set(c, json_text(view, "openPlanId", ""));
        if (c->plan.id[0] != 0) {
            chat_plan_show(c);
        }
    }
    cJSON_Delete(view);
}

/* chat: the current plan, in short lines. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/chat/chat.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/view/event_line.h"
#include "supervisor/cli/view/failures.h"
#include "supervisor/cli/view/review.h"
#include "supervisor/cli/view/tree.h"

enum {
    STEPS_SHOWN = 20,
    LINE_BYTES_MAX = 65536,
    SAME_FROM = 1000,
    WRAPPING_MAX = 32 /* the reply around an answer that is stored */
};

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* Whether the texts are equal, or one is the beginning of the other. */
static bool is_same(const char *a, const char *b)
{
    size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

    return strcmp(a, b) == 0 || (n >= SAME_FROM && strncmp(a, b, n - 4) == 0);
}

void chat_show_reply(struct chat *c, const char *text)
{
    if (text[0] == 0 || is_same(text, c->last_reply)) {
        return;
    }
    (void)snprintf(c->last_reply, sizeof c->last_reply, "%s", text);
    if (!c->cli->json) {
        screen_answer(&c->screen, text);
    }
}

static enum bt_code ask_plan(struct chat *c, const char *plan_id, cJSON **ret)
{
    struct bt_error err;
    enum bt_code code = chat_call(c, "plan.get", cli_fields("planId", plan_id), ret, &err);

    if (code != BT_OK && !chat_is_unreachable(c, code)) {
        screen_note(&c->screen, "plan %s: %s", plan_id, err.msg);
    }
    return code;
}

/* Whether a step, or the whole plan, waits for a person. */
static bool waits_by_view(const cJSON *view)
{
    const cJSON *v;
    bool waits = false;

    cJSON_ArrayForEach(v, get(view, "steps"))
    {
        waits = waits || strcmp(json_text(v, "status", ""), "waiting") == 0;
    }
    cJSON_ArrayForEach(v, get(view, "paused"))
    {
        waits = waits || (cJSON_IsString(v) && strcmp(v->valuestring, "requested") != 0);
    }
    return waits;
}

static bool is_final(const char *status)
{
    return strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0 ||
           strcmp(status, "cancelled") == 0 || strcmp(status, "planned") == 0 ||
           strcmp(status, "quarantined") == 0;
}

/*
 * Takes the state of a view that is not newer than the events. False: events are still to come and
 * are shown first.
 */
static bool take_view(struct chat *c, const cJSON *view)
{
    const char *status = json_text(view, "status", "");

    if ((uint64_t)json_number(view, "lastSeq") > c->last) {
        return false;
    }
    c->plan.over = is_final(status);
    c->plan.exit = cli_exit_of_plan(status, json_text(view, "outcome", ""));
    c->plan.waits = !c->plan.over && waits_by_view(view);
    return true;
}

void chat_plan_set(struct chat *c, const char *plan_id)
{
    cJSON *view = NULL;

    if (plan_id[0] == 0 || strcmp(plan_id, c->plan.id) == 0) {
        return;
    }
    c->plan = (struct chat_plan){.over = false};
    (void)snprintf(c->plan.id, sizeof c->plan.id, "%s", plan_id);
    if (ask_plan(c, plan_id, &view) == BT_OK) {
        (void)take_view(c, view);
    }
    cJSON_Delete(view);
}

bool chat_plan_waits(struct chat *c)
{
    cJSON *view = NULL;
    bool waits = false;

    if (c->plan.waits && !c->plan.over && c->watch != NULL &&
        ask_plan(c, c->plan.id, &view) == BT_OK) {
        waits = take_view(c, view) && c->plan.waits;
    }
    cJSON_Delete(view);
    return waits;
}

/* Remembers the review that was shown: an answer of the person is for it. */
static void keep_review(struct chat *c, const char *review_id)
{
    (void)snprintf(c->plan.review, sizeof c->plan.review, "%s", review_id);
}

/* Forgets the review when it was decided or its step has continued. */
static void forget_shown(struct chat *c, const char *type, const cJSON *event)
{
    char of[CHAT_REVIEW_MAX + 1];

    if (strcmp(type, "review_decided") == 0 || strcmp(type, "review_voided") == 0) {
        (void)snprintf(of, sizeof of, "%s", json_text(event, "reviewId", ""));
    } else if (strcmp(type, "plan_step_started") == 0 || strcmp(type, "plan_step_completed") == 0) {
        (void)snprintf(of, sizeof of, "%s/%s/", c->plan.id, json_text(event, "stepId", ""));
    } else {
        return;
    }
    if (strncmp(c->plan.review, of, strlen(of)) == 0) {
        c->plan.review[0] = 0;
    }
}

/* Shows what is to be decided: the values that will run, or the plan. Without an answer of the
 * daemon there is only the question. */
static void show_review(struct chat *c, const char *review_id)
{
    cJSON *answer = NULL;
    struct bt_error err;
    struct buf text;

    if (review_id[0] != 0 &&
        chat_call(c, "review.get", cli_fields("reviewId", review_id), &answer, &err) == BT_OK) {
        buf_init(&text, SIZE_MAX / 2);
        review_text(get(answer, "review"), REVIEW_CUT, &text);
        if (strstr(buf_cstr(&text), "… ") != NULL) {
            buf_printf(&text, "    all of it: baton review show %s\n", review_id);
        }
        screen_text(&c->screen, buf_cstr(&text));
        buf_done(&text);
    }
    cJSON_Delete(answer);
}

/* Shows the question of each waiting step. */
static void show_waits(struct chat *c, const cJSON *view)
{
    const cJSON *s;

    cJSON_ArrayForEach(s, get(view, "steps"))
    {
        if (strcmp(json_text(s, "status", ""), "waiting") == 0) {
            show_review(c, json_text(get(s, "waiting"), "reviewId", ""));
            screen_note(&c->screen, "? %.0f %s: %s (yes or no)", json_number(s, "stepIndex") + 1,
                        json_text(s, "stepId", ""), json_text(get(s, "waiting"), "text", ""));
            keep_review(c, json_text(get(s, "waiting"), "reviewId", ""));
        }
    }
}

void chat_plan_show(struct chat *c)
{
    cJSON *view = NULL;

    if (c->plan.id[0] == 0) {
        screen_note(&c->screen, "no plan yet");
    } else if (c->watch == NULL) {
        screen_note(&c->screen, "plan %s; the daemon is away", c->plan.id);
    } else if (ask_plan(c, c->plan.id, &view) == BT_OK) {
        cli_scrub_tree(view);
        (void)take_view(c, view);
        screen_note(&c->screen, "%s plan %s %s%s%s", cli_mark(json_text(view, "status", "")),
                    c->plan.id, json_text(view, "status", ""),
                    get(view, "position") != NULL ? ", " : "", json_text(view, "position", ""));
        tree_print(c->cli, view);
        (void)fflush(stdout);
        show_waits(c, view);
    }
    cJSON_Delete(view);
}

static void show_steps(struct chat *c, const cJSON *event)
{
    const cJSON *steps = get(event, "steps");
    double n = json_number(event, "estimatedSteps");
    int shown = 0;
    const cJSON *s;

    screen_note(&c->screen, "plan %s, %.0f step%s%s%s", c->plan.id, n, n == 1 ? "" : "s",
                json_text(event, "description", "")[0] != 0 ? ": " : "",
                json_text(event, "description", ""));
    cJSON_ArrayForEach(s, steps)
    {
        if (shown++ < STEPS_SHOWN) {
            screen_note(&c->screen, "  %.0f %s → %s: %s", json_number(s, "stepIndex") + 1,
                        json_text(s, "stepId", ""), json_text(s, "agentId", ""),
                        json_text(s, "task", ""));
        }
    }
    if (n > STEPS_SHOWN || cJSON_IsTrue(get(event, "stepsTruncated"))) {
        screen_note(&c->screen, "  ...; /status has them all");
    }
}

static void show_step(struct chat *c, const char *type, const cJSON *event)
{
    const char *status = strcmp(type, "plan_step_started") == 0   ? "in_progress"
                         : strcmp(type, "plan_step_waiting") == 0 ? "waiting"
                                                                  : json_text(event, "status", "");
    const char *step = json_text(event, "stepId", "");
    double n = json_number(event, "stepIndex") + 1;
    char ms[24];

    cli_format_ms(json_number(event, "durationMs"), ms, sizeof ms);
    if (strcmp(status, "waiting") == 0) {
        show_review(c, json_text(event, "reviewId", ""));
        screen_note(&c->screen, "? %.0f %s: %s (%s)", n, step,
                    json_text(event, "prompt", "it needs your approval"),
                    strcmp(json_text(event, "kind", ""), "input") == 0 ? "an answer, or no"
                                                                       : "yes or no");
        keep_review(c, json_text(event, "reviewId", ""));
    } else if (strcmp(status, "in_progress") == 0) {
        screen_note(&c->screen, "%s %.0f %s → %s", cli_mark(status), n, step,
                    json_text(event, "agentId", ""));
    } else {
        bool done = strcmp(status, "completed") == 0;
        const char *why = json_text(event, "error", json_text(event, "reason", ""));
        const char *hint = json_text(event, "hint", "");
        screen_note(&c->screen, "%s %.0f %s %s%s%s%s%s", cli_mark(status), n, step,
                    done ? ms : status, done || why[0] == 0 ? "" : ": ", done ? "" : why,
                    hint[0] != 0 ? "; " : "", hint);
    }
}

static enum bt_code ask_result(struct chat *c, cJSON **ret, struct bt_error *err)
{
    cJSON *fields = cli_fields("planId", c->plan.id);

    (void)cJSON_AddFalseToObject(fields, "steps");
    return chat_call(c, "plan.result", fields, ret, err);
}

/* Shows the whole answer: an event has only the beginning of a long one. */
static void show_answer(struct chat *c, const cJSON *event)
{
    const char *summary = json_text(event, "summary", "");
    cJSON *result = NULL;
    struct bt_error err;

    if (json_number(event, "summaryLen") > (double)(strlen(summary) + WRAPPING_MAX) &&
        ask_result(c, &result, &err) == BT_OK) {
        summary = json_text(result, "aggregatedResult", summary);
    }
    chat_show_reply(c, summary);
    cJSON_Delete(result);
}

static void note_failure(void *self, const char *text)
{
    struct chat *c = self;

    screen_note(&c->screen, "  %s", text);
}

/* The failed steps that the plan's own reason does not name. */
static void show_failures(struct chat *c, const char *why)
{
    cJSON *view = NULL;
    struct bt_error err;

    if (chat_call(c, "plan.get", cli_fields("planId", c->plan.id), &view, &err) == BT_OK) {
        failures_each(view, why, note_failure, c);
    }
    cJSON_Delete(view);
}

/* A cancelled plan has an answer only if a step completed. */
static bool has_answer(const char *status, const cJSON *event)
{
    const cJSON *counts = get(event, "counts");

    return strcmp(status, "cancelled") != 0 || counts == NULL ||
           json_number(counts, "completed") > 0;
}

static void show_end(struct chat *c, const cJSON *event)
{
    const char *status = json_text(event, "status", "");
    const char *why = json_text(event, "failureReason", "");
    const char *hint = json_text(event, "hint", "");

    c->plan.over = true;
    c->plan.end_shown = true;
    c->plan.exit = cli_exit_of_plan(status, json_text(event, "outcome", ""));
    if (c->plan.muted) {
        screen_note(&c->screen, "%s the plan %s: baton result %s", cli_mark(status), status,
                    c->plan.id);
        return;
    }
    if (c->plan.exit == CLI_PARTIAL) {
        screen_note(&c->screen, "%s the plan is partial: not all of it was done",
                    cli_mark("skipped"));
    } else if (c->plan.exit != CLI_OK) {
        screen_note(&c->screen, "%s the plan %s%s%s%s%s", cli_mark(status), status,
                    why[0] != 0 ? ": " : "", why, hint[0] != 0 ? "; " : "", hint);
        show_failures(c, why);
    }
    if (has_answer(status, event)) {
        show_answer(c, event);
    }
    c->screen.hold = false;
}

/* Whether another line reports it: that of the waiting step, or of the decision. */
static bool is_shown_elsewhere(const char *type, const char *reason)
{
    return strcmp(reason, "review") == 0 ||
           (strcmp(type, "plan_resumed") == 0 && strcmp(reason, "requested") != 0);
}

static void show_pause(struct chat *c, const char *type, const cJSON *event)
{
    const char *reason = json_text(event, "reason", "");

    if (strcmp(type, "plan_paused") == 0 && strcmp(reason, "signoff") == 0) {
        show_review(c, json_text(event, "reviewId", ""));
        screen_note(&c->screen, json_number(event, "revision") > 1
                                    ? "? go on with the changed plan? (yes or no)"
                                    : "? run this plan? (yes or no)");
        keep_review(c, json_text(event, "reviewId", ""));
    } else if (strcmp(type, "plan_paused") == 0 && strcmp(reason, "planning") == 0) {
        screen_note(&c->screen, "? no valid plan was made; plan again? (yes or no)");
        keep_review(c, json_text(event, "reviewId", ""));
    } else if (!is_shown_elsewhere(type, reason)) {
        screen_note(&c->screen, "%s", strcmp(type, "plan_paused") == 0 ? "paused" : "resumed");
    }
}

static void show_other(struct chat *c, const cJSON *event)
{
    const char *title = event_title(event);
    struct buf line;

    if (title == NULL) {
        return;
    }
    buf_init(&line, LINE_BYTES_MAX);
    event_line(event, &line);
    screen_note(&c->screen, "%s%s%s", title, line.len > 0 ? ": " : "", buf_cstr(&line));
    buf_done(&line);
}

static void show(struct chat *c, const char *type, const cJSON *event)
{
    if (strcmp(type, "plan_generated") == 0) {
        show_steps(c, event);
    } else if (strcmp(type, "text_delta") == 0) {
        if (!c->screen.hold && !c->cli->json && isatty(STDOUT_FILENO) == 1) {
            screen_piece(&c->screen, (uint64_t)json_number(event, "index"),
                         json_text(event, "text", ""));
        }
    } else if (strcmp(type, "plan_step_started") == 0 || strcmp(type, "plan_step_waiting") == 0 ||
               strcmp(type, "plan_step_completed") == 0) {
        show_step(c, type, event);
    } else if (strcmp(type, "plan_paused") == 0 || strcmp(type, "plan_resumed") == 0) {
        show_pause(c, type, event);
    } else {
        show_other(c, event);
    }
}

void chat_plan_event(struct chat *c, const char *type, const cJSON *event)
{
    const char *id = json_text(event, "planId", "");

    if (strcmp(id, c->plan.id) != 0 &&
        (strcmp(type, "planning_started") == 0 || strcmp(type, "plan_generated") == 0)) {
        c->plan = (struct chat_plan){.over = false};
        (void)snprintf(c->plan.id, sizeof c->plan.id, "%s", id);
    }
    if (strcmp(id, c->plan.id) != 0) {
        return; /* an event of an earlier plan */
    }
    if (strcmp(type, "plan_step_waiting") == 0 ||
        (strcmp(type, "plan_paused") == 0 &&
         strcmp(json_text(event, "reason", ""), "requested") != 0)) {
        c->plan.waits = true;
    } else {
        forget_shown(c, type, event);
    }
    if (strcmp(type, "plan_completed") == 0) {
        show_end(c, event);
    } else if (!c->plan.muted) {
        show(c, type, event);
    }
}

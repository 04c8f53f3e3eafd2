/* The handler: a message to the agent, its task until the end, its artifacts. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agents/a2a/a2a.h"
#include "agents/sdk/input.h"
#include "agents/sdk/step.h"

enum {
    CANCEL_MS = 5000,
    GET_MS = 15000,
    PAUSE_FIRST_MS = 200,
    PAUSE_MOST_MS = 2000,
    SLICE_MS = 50
};

/* ---- the task that waits for a person ---- */

static void keep(struct a2a_agent *a, const char *key, const struct a2a_task *t)
{
    struct a2a_waiting *w;

    (void)pthread_mutex_lock(&a->lock);
    w = &a->waiting[a->next_waiting];
    a->next_waiting = (a->next_waiting + 1) % A2A_TASKS_MAX;
    (void)snprintf(w->key, sizeof w->key, "%s", key);
    (void)snprintf(w->task, sizeof w->task, "%s", t->id);
    (void)snprintf(w->context, sizeof w->context, "%s", t->context);
    (void)pthread_mutex_unlock(&a->lock);
}

static void find_waiting(struct a2a_agent *a, const char *key, struct a2a_task *t)
{
    (void)pthread_mutex_lock(&a->lock);
    for (uint32_t i = 0; i < A2A_TASKS_MAX; i++) {
        if (strcmp(a->waiting[i].key, key) == 0) {
            (void)snprintf(t->id, sizeof t->id, "%s", a->waiting[i].task);
            (void)snprintf(t->context, sizeof t->context, "%s", a->waiting[i].context);
            a->waiting[i].key[0] = 0;
        }
    }
    (void)pthread_mutex_unlock(&a->lock);
}

/* ---- the message ---- */

static void put_member(struct buf *out, const char *name, const char *value)
{
    doc_put_cstr(out, name);
    doc_put_cstr(out, value);
}

static void put_text_part(const struct a2a_agent *a, struct buf *out, const char *text)
{
    doc_put_map(out, a->modern ? 1 : 2);
    put_member(out, "text", text);
    if (!a->modern) {
        put_member(out, "kind", "text");
    }
}

static void put_parts(const struct a2a_agent *a, struct bt_step *step, const char *text,
                      struct buf *out)
{
    const struct doc data = step->req.parameters.ptr == NULL
                                ? (struct doc){NULL, 0}
                                : doc_get(step->req.parameters, STR_LIT("data"));

    doc_put_cstr(out, "parts");
    doc_put_array(out, data.ptr != NULL ? 2 : 1);
    put_text_part(a, out, text);
    if (data.ptr != NULL) {
        doc_put_map(out, a->modern ? 1 : 2);
        doc_put_cstr(out, "data");
        doc_put_doc(out, data);
        if (!a->modern) {
            put_member(out, "kind", "data");
        }
    }
}

/* An attempt again has the same id, so that the agent may know the message; an answer has another.
 */
static void put_message(const struct a2a_agent *a, struct bt_step *step, const struct a2a_task *t,
                        const char *remote, const char *text, struct buf *out)
{
    const bool answers = t->id[0] != 0;
    const char *context = bt_step_param_string(step, "contextId", t->context);
    char id[LIMIT_KEY_BYTES + 32];

    (void)snprintf(id, sizeof id, answers ? "%s.%u" : "%s", bt_step_key(step),
                   bt_step_attempt(step));
    doc_put_cstr(out, "message");
    doc_put_map(out, 4u + (a->modern ? 0 : 1) + (answers ? 1 : 0) + (context[0] != 0 ? 1 : 0));
    put_member(out, "messageId", id);
    put_member(out, "role", a->modern ? "ROLE_USER" : "user");
    put_parts(a, step, text, out);
    doc_put_cstr(out, "metadata");
    doc_put_map(out, 1);
    put_member(out, "skillId", remote);
    if (!a->modern) {
        put_member(out, "kind", "message");
    }
    if (answers) {
        put_member(out, "taskId", t->id);
    }
    if (context[0] != 0) {
        put_member(out, "contextId", context);
    }
}

static void put_params(const struct a2a_agent *a, struct bt_step *step, const struct a2a_task *t,
                       const char *remote, const char *text, struct buf *out)
{
    doc_put_map(out, a->modern ? 1 : 2);
    put_message(a, step, t, remote, text, out);
    if (!a->modern) {
        doc_put_cstr(out, "configuration");
        doc_put_map(out, 1);
        doc_put_cstr(out, "blocking");
        doc_put_bool(out, true);
    }
}

/* ---- until its end ---- */

static enum bt_code about_task(const struct a2a_agent *a, enum a2a_method method,
                               uint64_t timeout_ms, struct a2a_task *t, struct bt_error *err)
{
    struct buf params;
    bool sent;
    enum bt_code code;

    buf_init(&params, 1024);
    doc_put_map(&params, 1);
    put_member(&params, "id", t->id);
    code = buf_check(&params, err);
    if (code == BT_OK) {
        code = a2a_call(a, method, doc_from_buf(&params), timeout_ms, t, &sent, err);
    }
    buf_done(&params);
    return code;
}

/* Tells the agent that nobody waits any more. What it answers changes nothing. */
static void cancel(const struct a2a_agent *a, const struct a2a_task *t)
{
    struct a2a_task other;
    struct bt_error ignored;

    if (t->id[0] != 0) {
        a2a_task_init(&other, NULL);
        (void)snprintf(other.id, sizeof other.id, "%s", t->id);
        (void)!about_task(a, A2A_CANCEL, CANCEL_MS, &other, &ignored);
        a2a_task_done(&other);
    }
}

static bool pause_for(struct bt_step *step, uint64_t ms, uint64_t left_at_end)
{
    const struct timespec slice = {.tv_nsec = SLICE_MS * 1000000L};

    for (uint64_t t = 0; t < ms; t += SLICE_MS) {
        if (bt_step_cancelled(step) || bt_step_time_left_ms(step) <= left_at_end) {
            return false;
        }
        (void)nanosleep(&slice, NULL);
    }
    return true;
}

/* The stream broke, or the agent answered before the end: it is asked again and again. */
static enum bt_code poll(const struct a2a_agent *a, struct a2a_task *t, struct bt_step *step,
                         uint64_t timeout_ms, struct bt_error *err)
{
    uint64_t ms = PAUSE_FIRST_MS;
    uint64_t waited = 0;
    enum bt_code code = BT_OK;
    int failures = 0;

    while (!a2a_task_is_over(t)) {
        if (waited > timeout_ms || !pause_for(step, ms, 0)) {
            return bt_step_cancelled(step) && bt_step_time_left_ms(step) > 0
                       ? err_set(err, BT_CANCELLED, "cancelled")
                       : err_set(err, BT_TIMEOUT, "the task was not done in time");
        }
        waited += ms;
        ms = ms * 2 > PAUSE_MOST_MS ? PAUSE_MOST_MS : ms * 2;
        code = about_task(a, A2A_GET, GET_MS, t, err);
        failures = code == BT_UNAVAILABLE ? failures + 1 : 0;
        if (code != BT_OK && (code != BT_UNAVAILABLE || failures > 5)) {
            return code;
        }
    }
    return BT_OK;
}

static void fail(struct bt_step *step, bool again, const struct bt_error *err)
{
    const char *note = again ? "" : "; whether it took effect is not known";

    switch ((int)err->code) {
    case BT_CANCELLED:
        bt_step_fail(step, "CANCELLED", false, "%s", err->msg);
        break;
    case BT_TIMEOUT:
        bt_step_fail(step, "TIMEOUT", again, "%s%s", err->msg, note);
        break;
    case BT_NOMEM:
    case BT_UNAVAILABLE:
        bt_step_fail(step, "SERVICE_UNAVAILABLE", again, "%s%s", err->msg, note);
        break;
    case BT_UNAUTHORIZED:
        bt_step_fail(step, "PERMISSION_DENIED", false, "%s", err->msg);
        break;
    default:
        bt_step_fail_error(step, err);
        break;
    }
}

static const struct a2a_skill *find_skill(const struct a2a_agent *a, const char *id)
{
    for (uint32_t i = 0; i < a->n_skills; i++) {
        if (strcmp(a->skills[i].id, id) == 0) {
            return &a->skills[i];
        }
    }
    return NULL;
}

static void run_task(struct a2a_agent *a, struct bt_step *step, const struct a2a_skill *skill,
                     struct a2a_task *t, const char *text)
{
    const uint64_t left = bt_step_time_left_ms(step);
    const uint64_t timeout = left < a->settings->timeout_ms ? left : a->settings->timeout_ms;
    struct buf params;
    struct bt_error err;
    bool sent = false;
    enum bt_code code;

    t->resumes = a->streaming && t->id[0] != 0;
    buf_init(&params, A2A_BYTES_MAX);
    put_params(a, step, t, skill->remote, text, &params);
    code = buf_check(&params, &err);
    if (code == BT_OK) {
        code = a2a_call(a, a->streaming ? A2A_STREAM : A2A_SEND, doc_from_buf(&params), timeout, t,
                        &sent, &err);
    }
    if (t->id[0] != 0 && !a2a_task_is_over(t) && (code == BT_OK || code == BT_UNAVAILABLE)) {
        code = poll(a, t, step, timeout, &err);
    }
    buf_done(&params);
    if (code == BT_OK && t->state == A2A_NONE && t->error.code == BT_OK) {
        (void)err_set(&t->error, BT_PROTOCOL, "the agent answered neither a task nor a message");
    }
    if (code == BT_OK && t->error.code != BT_OK) {
        err = t->error;
        code = err.code;
    }
    if (code == BT_OK && t->state == A2A_INPUT) {
        keep(a, bt_step_key(step), t);
    }
    if (code == BT_OK) {
        a2a_task_reply(t, step);
    } else {
        if (code == BT_CANCELLED || code == BT_TIMEOUT || code == BT_NOMEM) {
            cancel(a, t);
        }
        fail(step, !skill->unsafe || !sent, &err);
    }
}

void a2a_run(struct bt_step *step, void *self)
{
    struct a2a_agent *a = self;
    const struct a2a_skill *skill = find_skill(a, bt_step_skill(step));
    const char *answer = bt_step_param_string(step, A2A_ANSWER, NULL);
    const char *text = bt_step_param_string(step, "message", NULL);
    struct a2a_task *t = calloc(1, sizeof *t);

    if (t == NULL || skill == NULL) {
        bt_step_fail(step, skill == NULL ? "TOOL_NOT_FOUND" : "SERVICE_UNAVAILABLE", skill != NULL,
                     skill == NULL ? "the agent has no such skill" : "out of memory for a task");
        free(t);
        return;
    }
    a2a_task_init(t, step);
    if (answer != NULL) {
        find_waiting(a, bt_step_key(step), t);
        text = answer;
    }
    text = text != NULL ? text : bt_step_task(step);
    run_task(a, step, skill, t, text);
    a2a_task_done(t);
    free(t);
}

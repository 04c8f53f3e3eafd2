#include "agents/sdk/step.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/sdk/card.h"
#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"
#include "protocol/jsonschema/schema.h"

enum { TEXTS_MAX = 64 * 1024 * 1024 };

const char *step_copy_text(struct bt_step *s, struct str text)
{
    return arena_str(&s->texts, text).ptr;
}

static enum bt_code keep_strings(struct bt_step *s, struct bt_error *err)
{
    const struct {
        const char **to;
        struct str from;
    } all[] = {
        {&s->task, s->req.task},
        {&s->skill, s->req.skill},
        {&s->plan_id, s->req.plan_id},
        {&s->step_id, s->req.step_id},
        {&s->key, s->req.key},
        {&s->feedback, s->req.feedback},
        {&s->traceparent, s->req.traceparent},
        {&s->context, s->req.context.text},
        {&s->purpose, s->req.purpose.len > 0 ? s->req.purpose : STR_LIT("execute")},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i].to = step_copy_text(s, all[i].from);
        if (*all[i].to == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for a step");
        }
    }
    return BT_OK;
}

enum bt_code step_new(struct msg_reader *r, msec now, struct bt_step **ret, struct bt_error *err)
{
    struct bt_step *s = calloc(1, sizeof *s);
    pthread_condattr_t attr;
    enum bt_code code;

    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a step");
    }
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->piece_answered, &attr);
    (void)pthread_condattr_destroy(&attr);
    s->texts.max = TEXTS_MAX;
    reply_init(&s->reply);
    code = msg_read(r, MSG_step_execute, &s->req, err);
    if (code == BT_OK) {
        code = keep_strings(s, err);
    }
    if (code != BT_OK) {
        step_free(s);
        return code;
    }
    s->reader = *r;
    *r = (struct msg_reader){.form = r->form};
    s->deadline = s->req.deadline_ms == 0 ? MSEC_NEVER : msec_add(now, s->req.deadline_ms);
    *ret = s;
    return BT_OK;
}

void step_free(struct bt_step *s)
{
    if (s != NULL) {
        step_abort_artifacts(s);
        reply_done(&s->reply);
        msg_reader_done(&s->reader);
        arena_done(&s->texts);
        buf_done(&s->stream.text);
        free(s->owned);
        (void)pthread_cond_destroy(&s->piece_answered);
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
    }
}

bool step_is_late(const struct bt_step *s)
{
    return s->deadline != MSEC_NEVER && clock_mono_ms() >= s->deadline;
}

/* A handler gets only parameters that fit its schema. False: the reply names what does not fit. */
static bool parameters_fit(struct bt_step *s)
{
    struct schema_problem problem;
    struct cJSON *tree = NULL;
    struct bt_error err;
    uint32_t n = 0;
    enum bt_code code = BT_OK;

    if (s->card_skill->input_compiled == NULL || s->req.parameters.ptr == NULL) {
        return true;
    }
    code = doc_to_cjson(s->req.parameters, &tree, &err);
    if (code == BT_OK) {
        code = schema_check(s->card_skill->input_compiled, tree, &problem, 1, &n, &err);
        if (code == BT_INVALID && n > 0) {
            (void)err_set(&err, code, "parameters%s: %s", problem.path, problem.message);
        }
    }
    cJSON_Delete(tree);
    if (code != BT_OK) {
        bt_step_fail_error(s, &err);
    }
    return code == BT_OK;
}

static void end(struct bt_step *s)
{
    step_abort_artifacts(s);
    reply_finish(&s->reply, atomic_load(&s->cancelled), step_is_late(s));
}

void step_run(struct bt_step *s)
{
    const char *effects = s->card_skill->skill.effects;

    s->inside = true;
    s->reply.once = effects != NULL && strcmp(effects, "unsafe") == 0;
    if (parameters_fit(s)) {
        s->card_skill->skill.run(s, s->self);
    }
    s->inside = false;
    if (!s->later) {
        end(s);
    }
}

bool bt_step_later(struct bt_step *s, void (*on_cancel)(struct bt_step *step, void *arg), void *arg)
{
    if (s->finished == NULL || !s->inside) {
        return false;
    }
    s->later = true;
    s->on_cancel = on_cancel;
    s->cancel_arg = arg;
    return true;
}

void bt_step_done(struct bt_step *s)
{
    if (!s->later) {
        return;
    }
    s->later = false;
    if (!s->inside) { /* else step_run goes on as without bt_step_later */
        end(s);
        s->finished(s, s->runtime);
    }
}

void step_tell_cancelled(struct bt_step *s)
{
    if (s->later && !s->told && bt_step_cancelled(s)) {
        s->told = true;
        if (s->on_cancel != NULL) {
            s->on_cancel(s, s->cancel_arg);
        }
    }
}

void step_take_reply(struct bt_step *s, struct reply *ret)
{
    *ret = s->reply;
    s->reply = (struct reply){0};
}

bool step_take_progress(struct bt_step *s, struct step_progress *ret)
{
    bool fresh;

    (void)pthread_mutex_lock(&s->lock);
    fresh = s->notified;
    *ret = s->progress;
    s->notified = false;
    (void)pthread_mutex_unlock(&s->lock);
    return fresh;
}

/* ---- the public API ---- */

const char *bt_step_task(const struct bt_step *s)
{
    return s->task;
}

const char *bt_step_skill(const struct bt_step *s)
{
    return s->skill;
}

const char *bt_step_plan_id(const struct bt_step *s)
{
    return s->plan_id;
}

const char *bt_step_id(const struct bt_step *s)
{
    return s->step_id;
}

const char *bt_step_key(const struct bt_step *s)
{
    return s->key;
}

unsigned bt_step_attempt(const struct bt_step *s)
{
    return (unsigned)s->req.attempt;
}

const char *bt_step_feedback(const struct bt_step *s)
{
    return s->feedback;
}

const char *bt_step_traceparent(const struct bt_step *s)
{
    return s->traceparent;
}

const char *bt_step_context_text(const struct bt_step *s)
{
    return s->context;
}

bool bt_step_cancelled(const struct bt_step *s)
{
    return atomic_load(&s->cancelled) || step_is_late(s);
}

uint64_t bt_step_time_left_ms(const struct bt_step *s)
{
    msec now = clock_mono_ms();

    if (s->deadline == MSEC_NEVER) {
        return UINT64_MAX;
    }
    return now >= s->deadline ? 0 : s->deadline - now;
}

void bt_step_progress(struct bt_step *s, double percent, const char *text)
{
    struct str from = str_from(text);
    bool wake;

    from.len =
        utf8_valid(from.ptr, from.len) ? utf8_cut(from.ptr, from.len, STEP_PROGRESS_TEXT_MAX) : 0;
    (void)pthread_mutex_lock(&s->lock);
    s->progress.n++;
    s->progress.percent = percent >= 0.0 && percent <= 100.0 ? percent : -1.0;
    if (from.len > 0) {
        memcpy(s->progress.text, from.ptr, from.len);
    }
    s->progress.text[from.len] = 0;
    wake = !s->notified;
    s->notified = true;
    (void)pthread_mutex_unlock(&s->lock);
    if (wake && s->notify != NULL) {
        s->notify(s, s->runtime);
    }
}

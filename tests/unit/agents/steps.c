#include "tests/unit/agents/steps.h"

static struct bt_step *last_step;
static struct buf last_reply;

void steps_forget(void)
{
    step_free(last_step);
    last_step = NULL;
    buf_done(&last_reply);
}

struct bt_step *steps_make(const char *skill, const char *json)
{
    struct bt_error err;
    struct bt_step *step = NULL;

    if (step_new_from_json(str_from(json), skill, &step, &err) != BT_OK) {
        fail_msg("step: %s", err.msg);
    }
    return step;
}

/* Takes the step. */
const char *steps_run(struct bt_step *step, bt_skill_run run, void *self)
{
    struct bt_error err;

    steps_forget();
    last_step = step;
    run(step, self);
    reply_finish(&step->reply, atomic_load(&step->cancelled), step_is_late(step));
    buf_init(&last_reply, LIMIT_STEP_BYTES * 2);
    if (step_reply_json(step, &last_reply, &err) != BT_OK) {
        fail_msg("the reply does not fit the wire: %s", err.msg);
    }
    if (strstr(buf_cstr(&last_reply), "\"class\":\"VALIDATION_ERROR\"") != NULL) {
        steps_expect(buf_cstr(&last_reply), "\"retryable\":false"); /* it stays wrong */
    }
    return buf_cstr(&last_reply);
}

void steps_expect(const char *reply, const char *part)
{
    if (strstr(reply, part) == NULL) {
        fail_msg("expected %s in %.3000s", part, reply);
    }
}

struct bt_step *steps_last(void)
{
    return last_step;
}

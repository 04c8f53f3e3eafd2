/* Replies to people, in words. */
#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/utf8.h"
#include "supervisor/conversation/conversation.h"

enum { QUOTE_MAX = 120, SHOWN_MAX = 5, ONLY_MAX = 2048 };

void reply_only(struct turn_ctx *t, const char *fmt, ...)
{
    char text[ONLY_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_clear(&t->reply);
    buf_add_cstr(&t->reply, text);
    t->action = STR_LIT("conversation_only");
    t->waits = false;
}

/* In quotes, on one line, cut where a word ends. */
void reply_quote(struct buf *out, struct str text, size_t max)
{
    size_t keep = text.len == 0 ? 0 : utf8_cut_words(text.ptr, text.len, max);

    buf_add_byte(out, '"');
    for (size_t i = 0; i < keep; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        buf_add_byte(out, c < ' ' || c == 0x7f ? ' ' : c);
    }
    buf_add_cstr(out, keep < text.len ? "...\"" : "\"");
}

static const char *wanted(enum review_kind kind)
{
    switch (kind) {
    case REVIEW_APPROVAL:
    case REVIEW_BEFORE:
        return "waits for your approval: say yes or no";
    case REVIEW_INPUT:
        return "asks you: your next message is the answer";
    case REVIEW_STEP:
        return "is yours to do: your next message is its result, or say no";
    case REVIEW_FAILURE:
        return "has failed: say yes to try it once more, skip, or no";
    case REVIEW_UNKNOWN_OUTCOME:
        return "may have been done or not: say yes to run it again (it may take effect "
               "twice), skip, or no";
    case REVIEW_PLAN:
    case REVIEW_PLANNING:
    case REVIEW_KIND_COUNT:
    default:
        return "waits for you";
    }
}

static void put_waiting(const struct open_plan *p, struct buf *out)
{
    const struct run *run = core_block_run(p->block);
    uint32_t shown = 0;

    for (uint32_t i = 0; run->waiting > 0 && i < run->n_steps && shown < SHOWN_MAX; i++) {
        struct str prompt = open_plan_prompt(p, i);
        if (run->steps[i].status != STEP_WAITING) {
            continue;
        }
        shown++;
        buf_printf(out, " Step %u ", i + 1);
        reply_quote(out, prompt.len > 0 ? prompt : p->plan->steps[i].task, QUOTE_MAX * 4);
        buf_printf(out, " %s.", wanted((enum review_kind)run->steps[i].review));
    }
    if (run->waiting > shown) {
        buf_printf(out, " %u more steps wait for you.", run->waiting - shown);
    }
}

static bool is_under_way(uint8_t status)
{
    return status == STEP_IN_PROGRESS || status == STEP_BACKOFF || status == STEP_UNKNOWN ||
           status == STEP_CHECKING;
}

static void put_under_way(const struct open_plan *p, struct buf *out)
{
    const struct run *run = core_block_run(p->block);
    uint32_t n = 0;

    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (!is_under_way(run->steps[i].status) || n++ >= SHOWN_MAX) {
            continue;
        }
        buf_printf(out, " Step %u is under way: ", i + 1);
        reply_quote(out, p->plan->steps[i].task, QUOTE_MAX);
        buf_add_byte(out, '.');
    }
    if (n > SHOWN_MAX) {
        buf_printf(out, " %u more steps are under way.", n - SHOWN_MAX);
    }
    if (n == 0 && run->waiting == 0 && run->paused == 0 && run->open > 0) {
        buf_add_cstr(out, " The next step waits for its agent.");
    }
}

void reply_where(const struct open_plan *p, struct buf *out)
{
    const struct run *run = core_block_run(p->block);
    const uint32_t all = run->n_steps - run->superseded;

    buf_add_cstr(out, "The plan ");
    reply_quote(out, p->plan->goal, QUOTE_MAX);
    if (run->cancelling) {
        buf_add_cstr(out, " is being stopped.");
    } else if ((run->paused & 1u << PAUSE_SIGNOFF) != 0) {
        buf_printf(out,
                   run->signed_off > 0
                       ? " was changed, has %u steps and waits for your approval: say yes or no."
                       : " has %u steps and waits for your approval: say yes or no.",
                   all);
    } else if ((run->paused & 1u << PAUSE_PLANNING) != 0) {
        buf_add_cstr(out, " could not be made: say yes to have it planned once more, or no.");
    } else if (run->job == JOB_PLANNING) {
        buf_add_cstr(out, " is being made.");
    } else if (run->job == JOB_SYNTHESIS) {
        buf_add_cstr(out, " is done; its answer is being written.");
    } else {
        const bool paused = (run->paused & 1u << PAUSE_REQUESTED) != 0;
        buf_printf(out,
                   paused ? " is paused (say resume): %u of %u steps are over."
                          : ": %u of %u steps are over.",
                   all - run->open, all);
        put_under_way(p, out);
        put_waiting(p, out);
    }
}

struct last {
    struct buf *out;
    bool found;
};

static bool reply_ended(const struct journal_plan *p, void *self)
{
    struct last *l = self;

    l->found = true;
    buf_add_cstr(l->out, "No plan is open in this session. The last one, ");
    reply_quote(l->out, p->goal, QUOTE_MAX);
    buf_printf(l->out, ", is over (%.*s).", STR_ARG(p->status));
    return false;
}

void reply_last(struct engine *engine, struct str session_id, struct buf *out)
{
    struct last l = {.out = out};
    struct bt_error err;

    if (journal_plans(engine_journal(engine), (struct str){"", 0}, session_id, 0, 1, reply_ended,
                      &l, &err) != BT_OK ||
        !l.found) {
        buf_add_cstr(out, "No plan is open in this session; say what is to be done.");
    }
}

void reply_without_model(struct turn_ctx *t)
{
    if (t->plan != NULL) {
        intent_do(t, &(struct intent){.intent = INTENT_UNKNOWN});
    } else {
        reply_only(t, "%s", "");
        reply_last(t->engine, t->turn.session_id, &t->reply);
        buf_add_cstr(&t->reply, " For another one without a model say \"new plan: ...\".");
    }
}

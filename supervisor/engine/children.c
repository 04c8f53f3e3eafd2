#include "supervisor/engine/children.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "supervisor/engine/engine_internal.h"

static struct child_task *add(struct engine *engine)
{
    if (engine->child_tasks_n == engine->child_tasks_cap) {
        const uint32_t cap = engine->child_tasks_cap == 0 ? 64 : engine->child_tasks_cap * 2;
        struct child_task *at = realloc(engine->child_tasks, cap * sizeof *at);
        ASSERT(at != NULL); /* forgetting it would lose a step */
        engine->child_tasks = at;
        engine->child_tasks_cap = cap;
    }
    return &engine->child_tasks[engine->child_tasks_n++];
}

void engine_child_command(struct engine *engine, const struct core_cmd *cmd)
{
    const struct str text = engine_cycle_text(engine, cmd->text);

    *add(engine) = (struct child_task){.type = cmd->type,
                                       .run = cmd->run,
                                       .step = cmd->step,
                                       .attempt = cmd->attempt,
                                       .round = cmd->round,
                                       .text = text};
}

/* ---- room ---- */

bool child_has_room(const struct engine *engine, uint32_t depth)
{
    return engine->children < engine->opt.plans_max + depth - 1;
}

/* The depth at which a child waits and has room, the deepest first; 0 = none. */
static uint32_t next_depth(const struct engine *engine)
{
    uint32_t depth = CHILD_DEPTH_MAX;

    while (depth > 0 && (engine->child_waits[depth - 1].n == 0 || !child_has_room(engine, depth))) {
        depth--;
    }
    return depth;
}

static void wait_for_room(struct engine *engine, uint32_t depth, const struct child_task *t)
{
    struct child_wait *w = &engine->child_waits[depth - 1];

    if (w->head + w->n == w->cap && w->head > w->cap / 2) {
        memmove(w->at, w->at + w->head, w->n * sizeof *w->at);
        w->head = 0;
    }
    if (w->head + w->n == w->cap) {
        const uint32_t cap = w->cap == 0 ? 16 : w->cap * 2;
        struct child_task *at = realloc(w->at, cap * sizeof *at);
        ASSERT(at != NULL); /* forgetting it would lose a step */
        w->at = at;
        w->cap = cap;
    }
    w->at[w->head + w->n++] = *t;
    w->at[w->head + w->n - 1].waited = true;
}

static void take_waiting(struct engine *engine)
{
    uint32_t depth;

    /* One at a time: it takes its room when it is made. */
    if ((depth = next_depth(engine)) > 0) {
        struct child_wait *w = &engine->child_waits[depth - 1];
        const struct child_task t = w->at[w->head];

        w->head = w->n == 1 ? 0 : w->head + 1;
        w->n--;
        *add(engine) = t;
    }
}

bool engine_children_wait(const struct engine *engine)
{
    return engine->child_tasks_n > 0 || next_depth(engine) > 0;
}

void engine_children_done(struct engine *engine)
{
    for (uint32_t i = 0; i < CHILD_DEPTH_MAX; i++) {
        free(engine->child_waits[i].at);
    }
    free(engine->child_tasks);
}

/* ---- news of a child ---- */

static struct core_event event_of(const struct open_plan *child, enum child_outcome outcome)
{
    const struct child_of *of = &child->plan->child;

    return (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = outcome, .round = of->round),
                               .step = of->step, .attempt = of->attempt, .lane = LANE_NONE};
}

static void tell(struct engine *engine, const struct open_plan *child, const struct core_event *ev)
{
    struct child_task *t = add(engine);

    *t = (struct child_task){.type = CMD_RECORD, .ev = *ev};
    t->ev.text = engine_cycle_text(engine, ev->text);
    if (!uuid_parse(child->plan->child.of, &t->parent)) {
        t->parent = (struct uuid){{0}};
    }
}

static void put_number(struct buf *out, const char *name, uint64_t value)
{
    doc_put_cstr(out, name);
    doc_put_u64(out, value);
}

/* Of a map: how many; 0 = it is none. */
static uint32_t items_of(const struct plan *plan)
{
    uint32_t n = 0;

    for (uint32_t i = 0; plan->child.kind == CHILD_OF_MAP && i < plan->n_steps; i++) {
        n = plan->steps[i].item.ptr != NULL && plan->steps[i].index >= n ? plan->steps[i].index + 1
                                                                         : n;
    }
    return n;
}

/* "round 3: 2 of 5, 1 failed" */
static void put_counts(const struct open_plan *child, uint32_t over, uint32_t all, char *ret,
                       size_t cap)
{
    const struct run *run = core_block_run(child->block);
    const struct child_of *of = &child->plan->child;
    int n = 0;

    if (of->kind == CHILD_OF_LOOP) {
        n = snprintf(ret, cap, "round %u: ", of->round + 1);
    }
    n += snprintf(ret + n, cap - (size_t)n, "%u of %u", over, all);
    if (run->failed > 0) {
        (void)snprintf(ret + n, cap - (size_t)n, ", %u failed", run->failed);
    }
}

/* When the per cent changed. Its data is what step_children of messages.def has, but for `round`,
 * which is from 0 on. */
static void tell_progress(struct engine *engine, struct open_plan *child, bool begins)
{
    const struct run *run = core_block_run(child->block);
    const uint32_t all = run->n_steps - run->superseded;
    const uint32_t over = run->completed + run->failed + run->skipped + run->cancelled;
    const uint32_t percent = all == 0 ? 100 : (uint32_t)((uint64_t)over * 100 / all);
    struct core_event ev = event_of(child, CHILD_PROGRESS);
    struct buf data;
    char text[80];

    struct open_plan_more *more = open_plan_more_change(child);

    if (!begins && percent == more->told_percent) {
        return;
    }
    more->told_percent = percent;
    buf_init(&data, 512);
    doc_put_map(&data, 7);
    doc_put_cstr(&data, "planId");
    doc_put_cstr(&data, child->id);
    put_number(&data, "round", child->plan->child.round);
    put_number(&data, "items", items_of(child->plan));
    put_number(&data, "steps", all);
    put_number(&data, "over", over);
    put_number(&data, "completed", run->completed);
    put_number(&data, "failed", run->failed);
    put_counts(child, over, all, text, sizeof text);
    CORE_EV(&ev, child)->n = over;
    CORE_EV(&ev, child)->percent = percent;
    CORE_EV(&ev, child)->data = doc_copy(&engine->cycle, doc_from_buf(&data));
    ev.text = str_from(text);
    buf_done(&data);
    tell(engine, child, &ev);
}

enum bt_code engine_child_record(struct engine *engine, struct open_plan *child,
                                 const struct record *rec, struct str summary, struct bt_error *err)
{
    struct core_event ev = event_of(child, CHILD_FAILED);
    enum bt_code code = BT_OK;

    if (child->plan->child.kind == CHILD_OF_UNDO) {
        if (rec->type == REC_PLAN_COMPLETED) {
            ev = engine_undo_event(child, rec);
            tell(engine, child, &ev);
        }
        return BT_OK;
    }
    if (rec->type == REC_PLAN_COMPLETED) {
        tell_progress(engine, child, false); /* what had not begun has ended now */
        code = child_answer(engine, child, rec, summary, &ev, err);
        if (code == BT_OK) {
            tell(engine, child, &ev);
        }
    } else if (rec->type == REC_PLAN_STARTED || rec->type == REC_STEP_COMPLETED) {
        tell_progress(engine, child, rec->type == REC_PLAN_STARTED);
    }
    return code;
}

/* ---- what the core asks ---- */

static bool is_awaited(const struct open_plan *p, const struct child_task *t)
{
    const struct run *run = core_block_run(p->block);

    if (t->type == CMD_COMPENSATE) {
        return run->job == JOB_COMPENSATION;
    }
    return t->step < run->n_steps && run->steps[t->step].status == STEP_IN_PROGRESS &&
           run->steps[t->step].attempt == t->attempt && run->steps[t->step].round == t->round;
}

/* The child of the task; NULL when it is not open. */
static struct open_plan *child_of_task(struct engine *engine, const struct open_plan *p,
                                       const struct child_task *t, bool *ret_known)
{
    char key[CHILD_KEY_MAX];
    char id[UUID_TEXT_LEN + 1];
    struct journal_plan row;
    struct bt_error unused;

    child_key(p, t, key);
    *ret_known = journal_plan_by_key(engine->journal, str_from(key), &row, &unused) == BT_OK;
    if (!*ret_known) {
        return NULL;
    }
    uuid_format(row.plan_id, id);
    return open_plan_by_id(engine, str_from(id));
}

static enum err_class class_of(enum bt_code code)
{
    return code == BT_BUSY || code == BT_UNAVAILABLE ? CLASS_SERVICE_UNAVAILABLE
           : code == BT_NOMEM                        ? CLASS_UNKNOWN
                                                     : CLASS_VALIDATION_ERROR;
}

/* The plan was paused while its child waited for room. */
static void pause_too(struct engine *engine, const struct child_task *t)
{
    const struct open_plan *p = open_plan_of_run(engine, t->run);
    const struct open_plan *child;
    struct core_event ev = {.type = CORE_PAUSE, .step = STEP_NONE, .lane = LANE_NONE};
    bool known;

    if (p == NULL || (core_block_run(p->block)->paused & 1u << PAUSE_REQUESTED) == 0) {
        return;
    }
    child = child_of_task(engine, p, t, &known);
    if (child != NULL) {
        ev.run = child->run;
        engine_tell(engine, &ev);
    }
}

/* The child ended in this cycle, and another plan has its place already: its answer stands further
 * down in the list. */
static bool is_answered(const struct engine *engine, const struct open_plan *p,
                        const struct child_task *t)
{
    for (uint32_t i = 0; i < engine->child_tasks_n; i++) {
        const struct child_task *told = &engine->child_tasks[i];
        if (told->type == CMD_RECORD && uuid_eq(told->parent, p->plan_id) &&
            told->ev.type == CORE_CHILD && told->ev.step == t->step &&
            told->ev.attempt == t->attempt && CORE_EV(&told->ev, child)->round == t->round &&
            CORE_EV(&told->ev, child)->outcome != CHILD_PROGRESS) {
            return true;
        }
    }
    return false;
}

static void start(struct engine *engine, const struct open_plan *p, const struct child_task *t)
{
    struct core_event ev = {CORE_EV_INIT(CHILD, child, .outcome = CHILD_FAILED, .round = t->round,
                                         .error_class = CLASS_UNKNOWN),
                            .run = t->run, .step = t->step, .attempt = t->attempt,
                            .lane = LANE_NONE};
    struct bt_error err = {.code = BT_OK};
    bool known;

    if (child_of_task(engine, p, t, &known) != NULL) {
        return; /* it goes on after a restart */
    }
    if (known && is_answered(engine, p, t)) {
        return;
    }
    if (known) {
        ev.text = STR_LIT("Its child plan ended, or is in quarantine, and gave no answer");
        engine_tell(engine, &ev);
        return;
    }
    const uint32_t depth = p->plan->child.depth + 1;
    if (depth <= CHILD_DEPTH_MAX &&
        (!child_has_room(engine, depth) ||
         (!t->waited && engine->child_waits[depth - 1].n > 0))) { /* it overtakes nobody */
        wait_for_room(engine, depth, t);
        return;
    }
    const enum bt_code code = child_start(engine, p, t, &ev, &err);
    if (code == BT_OK && t->waited) {
        pause_too(engine, t);
    }
    if (code == BT_OK || engine->failed) {
        return;
    }
    if (code != BT_NOT_FOUND) {
        CORE_EV(&ev, child)->error_class = class_of(code);
        ev.text = str_from(err.msg);
    }
    engine_tell(engine, &ev);
}

static void act(struct engine *engine, const struct child_task *t)
{
    static const enum core_event_type events[] = {[CMD_CHILD_STOP] = CORE_CANCEL,
                                                  [CMD_CHILD_PAUSE] = CORE_PAUSE,
                                                  [CMD_CHILD_RESUME] = CORE_RESUME};
    char id[UUID_TEXT_LEN + 1];
    struct core_event ev = t->ev;
    struct open_plan *p;
    bool known;

    if (t->type == CMD_RECORD) {
        uuid_format(t->parent, id);
        p = open_plan_by_id(engine, str_from(id));
        ev.run = p != NULL ? p->run : 0;
        if (p != NULL) {
            engine_tell(engine, &ev);
        }
        return;
    }
    p = open_plan_of_run(engine, t->run);
    if (p == NULL) {
        return; /* it has ended, and its children before it */
    }
    if (t->type == CMD_CHILD || t->type == CMD_COMPENSATE) {
        if (is_awaited(p, t) && t->type == CMD_CHILD) {
            start(engine, p, t);
        } else if (is_awaited(p, t)) {
            engine_undo_start(engine, p);
        }
        return;
    }
    const struct open_plan *child = child_of_task(engine, p, t, &known);
    if (child != NULL) {
        ev = (struct core_event){.type = events[t->type],
                                 .run = child->run,
                                 .step = STEP_NONE,
                                 .lane = LANE_NONE,
                                 .text = t->text};
        engine_tell(engine, &ev);
    } else if (t->type == CMD_CHILD_STOP && core_block_run(p->block)->cancelling &&
               is_awaited(p, t)) {
        ev = (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = CHILD_FAILED,
                                              .round = t->round, .error_class = CLASS_CANCELLED),
                                 .run = t->run,
                                 .step = t->step,
                                 .attempt = t->attempt,
                                 .lane = LANE_NONE,
                                 .text = STR_LIT("Cancelled")};
        engine_tell(engine, &ev);
    }
}

void engine_children_act(struct engine *engine)
{
    for (uint32_t i = 0; !engine->failed; i++) {
        if (i == engine->child_tasks_n) {
            take_waiting(engine);
        }
        if (i == engine->child_tasks_n) {
            break;
        }
        const struct child_task t = engine->child_tasks[i]; /* the list may grow, and move */
        const uint64_t before = engine_applies(engine, t.run);
        act(engine, &t);
        (void)engine_applies(engine, before);
    }
    engine->child_tasks_n = 0;
}

void engine_children_recovered(struct engine *engine)
{
    for (struct open_plan *p = NULL; (p = open_plan_next(engine, p)) != NULL;) {
        const struct child_of *of = &p->plan->child;
        const struct child_task t = {.type = of->kind == CHILD_OF_UNDO ? CMD_COMPENSATE : CMD_CHILD,
                                     .step = of->step,
                                     .attempt = of->attempt,
                                     .round = of->round};
        const struct open_plan *parent =
            of->kind == CHILD_OF_NONE ? p : open_plan_by_id(engine, of->of);
        if (of->kind != CHILD_OF_NONE && (parent == NULL || !is_awaited(parent, &t))) {
            struct core_event ev = {.type = CORE_CANCEL,
                                    .run = p->run,
                                    .step = STEP_NONE,
                                    .lane = LANE_NONE,
                                    .text = STR_LIT("nobody waits for it any more")};
            engine_later(engine, &ev);
        }
    }
}

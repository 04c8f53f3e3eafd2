/* The answer of a child plan that has ended: what its parent's step gets. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "supervisor/engine/child_calls.h"
#include "supervisor/engine/children.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/plan/expand.h"
#include "supervisor/plan/flow/child.h"

enum { LINE_MAX = 300, TEXT_MAX = 64 * 1024 };

/* One item: the last of its steps that completed, or the first that did not. */
struct item {
    uint32_t done;   /* STEP_NONE: none */
    uint32_t failed; /* STEP_NONE: none failed */
    uint32_t last;
};

static bool is_bad(const struct run_step *s)
{
    return s->status == STEP_FAILED || s->status == STEP_CANCELLED ||
           (s->status == STEP_SKIPPED && s->reason != REASON_CONDITION &&
            s->reason != REASON_USER_SKIP);
}

static void look(const struct run *run, uint32_t step, struct item *io)
{
    const struct run_step *s = &run->steps[step];

    io->last = step;
    if (s->status == STEP_COMPLETED) {
        io->done = step;
    } else if (is_bad(s) && io->failed == STEP_NONE) {
        io->failed = step;
    }
}

static struct str why_of(const struct open_plan *child, uint32_t step)
{
    const struct note *note = step_notes_of(&child->notes, step);

    return note != NULL && note->why != NULL
               ? note_text(note->why)
               : str_from(err_class_name(core_block_run(child->block)->steps[step].error_class));
}

static const char *status_of(const struct run *run, const struct item *item)
{
    return item->failed != STEP_NONE ? step_status_name(run->steps[item->failed].status)
           : item->done != STEP_NONE ? "completed"
                                     : step_status_name(run->steps[item->last].status);
}

static void put_text(struct buf *out, const char *name, struct str value)
{
    doc_put_cstr(out, name);
    doc_put_str(out, value.len > 0 ? value : (struct str){"", 0});
}

/* {status, text, data, artifacts} or {status, error, errorClass}. whole false: the status alone. */
static enum bt_code put_item(struct engine *engine, const struct open_plan *child,
                             const struct item *item, bool whole, struct buf *out,
                             struct bt_error *err)
{
    const struct run *run = core_block_run(child->block);
    struct doc result = {NULL, 0};
    struct doc_cursor c;
    struct doc_head head = {.n = 0};
    enum bt_code code = BT_OK;

    if (item->failed != STEP_NONE) {
        doc_put_map(out, 3);
        put_text(out, "status", str_from(status_of(run, item)));
        put_text(out, "error", why_of(child, item->failed));
        put_text(out, "errorClass", str_from(err_class_name(run->steps[item->failed].error_class)));
        return BT_OK;
    }
    if (item->done != STEP_NONE && whole) {
        code = engine_result_doc(engine, run->steps[item->done].result, &result, err);
    }
    if (code != BT_OK) {
        return code;
    }
    c = doc_cursor(result);
    if (result.ptr != NULL && (!doc_next(&c, &head) || head.kind != DOC_MAP)) {
        head.n = 0;
    }
    doc_put_map(out, head.n + (whole ? 1 : 2));
    put_text(out, "status", str_from(status_of(run, item)));
    if (!whole) {
        doc_put_cstr(out, "whole");
        doc_put_bool(out, false);
    }
    for (uint32_t i = 0; i < 2 * head.n; i++) {
        doc_put_doc(out, doc_skip(&c));
    }
    return BT_OK;
}

static void put_line(struct engine *engine, const struct open_plan *child, const struct item *item,
                     uint32_t index, struct buf *out)
{
    const struct run *run = core_block_run(child->block);
    struct buf text;
    struct str line = {"", 0};
    bool cut = false;

    buf_init(&text, LIMIT_STEP_BYTES);
    if (item->failed != STEP_NONE) {
        line = why_of(child, item->failed);
    } else if (item->done != STEP_NONE &&
               engine_result_text(engine, run->steps[item->done].result, LINE_MAX, &text, &cut,
                                  NULL) == BT_OK) {
        line = buf_str(&text);
    }
    buf_printf(out, "\n[%u] %s%s", index, status_of(run, item), line.len > 0 ? ": " : "");
    const size_t keep = utf8_cut(line.ptr, line.len, LINE_MAX);
    for (size_t i = 0; i < keep; i++) {
        buf_add_byte(out, (uint8_t)line.ptr[i] < ' ' ? ' ' : (uint8_t)line.ptr[i]);
    }
    buf_add_cstr(out, cut || keep < line.len ? "…" : "");
    buf_done(&text);
}

/* ---- a map ---- */

struct items {
    struct item *at;
    uint32_t n, completed;
};

static enum bt_code find_items(const struct open_plan *child, struct arena *arena,
                               struct items *ret, struct bt_error *err)
{
    const struct plan *plan = child->plan;
    const struct run *run = core_block_run(child->block);

    *ret = (struct items){.n = 0};
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].item.ptr != NULL && plan->steps[i].index >= ret->n) {
            ret->n = plan->steps[i].index + 1;
        }
    }
    ret->at = arena_alloc(arena, (ret->n + 1) * sizeof *ret->at);
    if (ret->at == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the results of %u items", ret->n);
    }
    for (uint32_t i = 0; i < ret->n; i++) {
        ret->at[i] = (struct item){.done = STEP_NONE, .failed = STEP_NONE};
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].item.ptr != NULL && !plan->steps[i].superseded) {
            look(run, i, &ret->at[plan->steps[i].index]);
        }
    }
    for (uint32_t i = 0; i < ret->n; i++) {
        ret->completed += ret->at[i].failed == STEP_NONE ? 1 : 0;
    }
    return BT_OK;
}

/* {text, data: [...]}: all of it, or with `whole` false only how each item ended. */
static enum bt_code put_items(struct engine *engine, const struct open_plan *child,
                              const struct items *items, bool whole, struct buf *out,
                              struct bt_error *err)
{
    struct buf text;
    enum bt_code code = BT_OK;

    buf_init(&text, LIMIT_RESULT_BYTES);
    buf_printf(&text, "%u of %u items completed", items->completed, items->n);
    for (uint32_t i = 0; i < items->n && text.len < TEXT_MAX; i++) {
        put_line(engine, child, &items->at[i], i, &text);
    }
    buf_add_cstr(&text, text.len >= TEXT_MAX ? "\n…" : "");
    doc_put_map(out, 2);
    put_text(out, "text", buf_str(&text));
    buf_done(&text);
    doc_put_cstr(out, "data");
    doc_put_array(out, items->n);
    for (uint32_t i = 0; i < items->n && code == BT_OK && out->bad == BT_OK; i++) {
        code = put_item(engine, child, &items->at[i], whole, out, err);
    }
    return code;
}

static enum bt_code answer_map(struct engine *engine, const struct open_plan *child,
                               struct core_ev_child *io, struct bt_error *err)
{
    struct arena arena = {.chunks = NULL};
    struct items items;
    struct buf result;
    enum bt_code code = find_items(child, &arena, &items, err);

    buf_init(&result, engine->opt.result_max);
    if (code == BT_OK) {
        code = put_items(engine, child, &items, true, &result, err);
    }
    if (code == BT_OK && result.bad == BT_LIMIT) {
        buf_done(&result);
        buf_init(&result, LIMIT_RESULT_BYTES);
        io->result.truncated = 1;
        code = put_items(engine, child, &items, false, &result, err);
    }
    if (code == BT_OK) {
        const uint32_t truncated = io->result.truncated;
        code = buf_check(&result, err);
        code = code == BT_OK ? engine_result_store(engine, &result, &io->result, err) : code;
        io->result.truncated = truncated;
    }
    buf_done(&result);
    arena_done(&arena);
    return code;
}

/* ---- a round, a sub-plan ---- */

static uint32_t last_done(const struct open_plan *child, uint32_t *ret_n)
{
    const struct run *run = core_block_run(child->block);
    uint32_t last = STEP_NONE;

    *ret_n = 0;
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (!child->plan->steps[i].superseded && run->steps[i].status == STEP_COMPLETED) {
            last = i;
            (*ret_n)++;
        }
    }
    return last;
}

/* {text: the plan's answer, data: {stepId: its data}}. Of one step its result; too large, the text
 * alone. */
static enum bt_code answer_sub(struct engine *engine, const struct open_plan *child,
                               struct str summary, struct core_ev_child *io, struct bt_error *err)
{
    const struct run *run = core_block_run(child->block);
    uint32_t n;
    const uint32_t last = last_done(child, &n);
    struct buf result;
    enum bt_code code = BT_OK;

    if (n == 1 && run_phases(run)->answer.id == 0) {
        io->result = run->steps[last].result;
        return BT_OK;
    }
    buf_init(&result, engine->opt.result_max);
    for (int whole = 1; whole >= 0 && code == BT_OK; whole--) {
        buf_clear(&result);
        doc_put_map(&result, whole != 0 ? 2 : 1);
        put_text(&result, "text", summary);
        if (whole != 0) {
            doc_put_cstr(&result, "data");
            doc_put_map(&result, n);
        }
        for (uint32_t i = 0; whole != 0 && i < run->n_steps && code == BT_OK; i++) {
            struct doc of = {NULL, 0};
            if (child->plan->steps[i].superseded || run->steps[i].status != STEP_COMPLETED) {
                continue;
            }
            code = engine_result_doc(engine, run->steps[i].result, &of, err);
            doc_put_str(&result, child->plan->steps[i].step_id);
            doc_put_doc(&result, expand_pick(of, (struct str){"", 0}));
        }
        io->result.truncated = whole != 0 ? 0 : 1;
        if (result.bad == BT_OK) {
            break;
        }
    }
    const uint32_t truncated = io->result.truncated;
    code = code == BT_OK ? buf_check(&result, err) : code;
    code = code == BT_OK ? engine_result_store(engine, &result, &io->result, err) : code;
    io->result.truncated = truncated;
    buf_done(&result);
    return code;
}

/* Whether the loop goes on. What cannot be told fails its step. */
static void judge_round(struct engine *engine, const struct open_plan *child,
                        const struct child_step *how, struct str own, struct core_event *ev)
{
    struct core_ev_child *c = CORE_EV(ev, child);
    struct bt_error err;
    struct buf tested;
    bool holds = false;

    buf_init(&tested, 4096);
    if (engine_round_holds(engine, child, own, c->result, how->condition, &holds, &tested, &err) ==
        BT_OK) {
        c->outcome = holds == how->is_while ? CHILD_AGAIN : CHILD_COMPLETED;
        ev->text = engine_cycle_text(engine, buf_str(&tested));
    } else {
        c->outcome = CHILD_FAILED;
        c->error_class = CLASS_VALIDATION_ERROR;
        ev->text = engine_cycle_text(engine, str_from(err.msg));
    }
    buf_done(&tested);
}

/* ---- its failure ---- */

static enum err_class class_of(const struct open_plan *child, const struct record *rec)
{
    const struct rec_plan_completed *end = REC(rec, plan_completed);
    const struct run *run = core_block_run(child->block);

    if (end->status == PLAN_CANCELLED) {
        return CLASS_CANCELLED;
    }
    if (end->failure == PLAN_FAILURE_TIMEOUT) {
        return CLASS_TIMEOUT;
    }
    if (end->failure == PLAN_FAILURE_BUDGET) {
        return CLASS_BUDGET_EXCEEDED;
    }
    if (rec->step != STEP_NONE && rec->step < run->n_steps &&
        run->steps[rec->step].error_class != CLASS_NONE) {
        return run->steps[rec->step].error_class;
    }
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (run->steps[i].status == STEP_FAILED && run->steps[i].error_class != CLASS_NONE) {
            return run->steps[i].error_class;
        }
    }
    return CLASS_UNKNOWN;
}

/* "step check[3]: why". */
static struct str why_failed(struct engine *engine, const struct open_plan *child,
                             const struct record *rec)
{
    const struct run *run = core_block_run(child->block);
    uint32_t step = rec->step < run->n_steps ? rec->step : STEP_NONE;
    struct buf text;
    struct str kept;

    for (uint32_t i = 0; step == STEP_NONE && i < run->n_steps; i++) {
        step = run->steps[i].status == STEP_FAILED ? i : STEP_NONE;
    }
    buf_init(&text, 8192);
    if (step != STEP_NONE) {
        const struct str why = rec->text.len > 0 ? rec->text : why_of(child, step);
        buf_printf(&text, "step %.*s: ", STR_ARG(child->plan->steps[step].step_id));
        buf_add(&text, why.ptr, utf8_cut(why.ptr, why.len, 4096));
    } else {
        buf_add_str(&text, rec->text.len > 0 ? rec->text : STR_LIT("Its child plan failed"));
    }
    kept = engine_cycle_text(engine, buf_str(&text));
    buf_done(&text);
    return kept;
}

/* A damaged or too large result is the step's failure. */
static enum bt_code take_result(struct engine *engine, enum bt_code code,
                                const struct bt_error *why, struct core_event *ev,
                                struct bt_error *err)
{
    if (code == BT_IO || engine->failed) {
        *err = *why;
        return BT_IO;
    }
    if (code != BT_OK) {
        CORE_EV(ev, child)->outcome = CHILD_FAILED;
        CORE_EV(ev, child)->error_class = CLASS_VALIDATION_ERROR;
        ev->text = engine_cycle_text(engine, str_from(why->msg));
    }
    return BT_OK;
}

/* The budget and the time of the calls are those of their step. */
static bool ends_the_step(const struct record *rec)
{
    const enum plan_failure failure = REC(rec, plan_completed)->failure;

    return REC(rec, plan_completed)->status != PLAN_COMPLETED &&
           (failure == PLAN_FAILURE_TIMEOUT || failure == PLAN_FAILURE_BUDGET);
}

enum bt_code child_answer(struct engine *engine, const struct open_plan *child,
                          const struct record *rec, struct str summary, struct core_event *ev,
                          struct bt_error *err)
{
    const struct open_plan *p = open_plan_by_id(engine, child->plan->child.of);
    struct core_ev_child *c = CORE_EV(ev, child);
    struct child_step how = {.kind = child->plan->child.kind};
    struct bt_error why = {.code = BT_OK};
    enum bt_code code = BT_OK;
    uint32_t n;

    c->usage = core_block_run(child->block)->usage;
    if (p != NULL && how.kind == CHILD_OF_CALLS && !ends_the_step(rec)) {
        c->outcome = CHILD_COMPLETED; /* how each call ended is for its agent to see */
        code = child_calls_answer(engine, p, ev->step, child, (struct str){"", 0}, c, &why);
        return take_result(engine, code, &why, ev, err);
    }
    if (REC(rec, plan_completed)->status != PLAN_COMPLETED || p == NULL) {
        c->error_class = class_of(child, rec);
        ev->text = why_failed(engine, child, rec);
        return BT_OK;
    }
    (void)child_step_read(p->plan->steps[ev->step].rules->child, &how);
    c->outcome = CHILD_COMPLETED;
    if (how.kind == CHILD_OF_MAP) {
        code = answer_map(engine, child, c, &why);
    } else if (how.kind == CHILD_OF_SUB) {
        code = answer_sub(engine, child, summary, c, &why);
    } else {
        const uint32_t last = last_done(child, &n);
        c->result = last != STEP_NONE ? core_block_run(child->block)->steps[last].result
                                      : (struct blob_ref){0};
        judge_round(engine, child, &how, p->plan->steps[ev->step].step_id, ev);
    }
    return take_result(engine, code, &why, ev, err);
}

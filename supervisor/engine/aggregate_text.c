/*
 * The plan's answer as one text: the parts that core/aggregate chose, or what a synthesizer wrote.
 * The answer of a partial plan ends with what was not done, and why (M029, M080); then results that
 * are not whole, and steps that read only a part of the results before them, are named.
 */
#include <stdlib.h>

#include "protocol/base/utf8.h"
#include "supervisor/core/run/aggregate.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/events/record_codec.h"

enum { CUT_MARK_ROOM = 64, TASK_MAX = 120, NOT_DONE_BYTES = 32 * 1024 };

/* ---- its end ---- */

/* On one line: texts of agents make no lines of the list. */
static void add_line(struct buf *out, struct str text, size_t max)
{
    const size_t keep = text.len == 0 ? 0 : utf8_cut(text.ptr, text.len, max);

    for (size_t i = 0; i < keep; i++) {
        const uint8_t c = (uint8_t)text.ptr[i];
        buf_add_byte(out, c < ' ' || c == 0x7f ? ' ' : c);
    }
    buf_add_cstr(out, keep < text.len ? "..." : "");
}

/* As it was sent; as the plan has it when it was not. On one line. */
static void add_task(struct engine *engine, const struct open_plan *p, uint32_t step, size_t max,
                     struct buf *out)
{
    struct buf text;
    struct str task = p->plan->steps[step].task;

    buf_init(&text, LIMIT_STEP_BYTES);
    if (core_block_run(p->block)->steps[step].attempt > 0) {
        task = open_plan_step_task(engine, p, step, &text);
    }
    if (max == 0 && task.ptr == p->plan->steps[step].task.ptr) {
        buf_add_str(out, task);
    } else {
        add_line(out, task, max == 0 ? SIZE_MAX : max);
    }
    buf_done(&text);
}

static void add_step(struct engine *engine, const struct open_plan *p, uint32_t step,
                     struct buf *out)
{
    buf_printf(out, "\n- Step %u \"", step + 1);
    add_task(engine, p, step, TASK_MAX, out);
    buf_add_cstr(out, "\" ");
}

/* A timeout names its time and its setting. */
static void add_hint(const struct open_plan *p, uint32_t step, struct str why, struct buf *out)
{
    const size_t before = out->len;

    buf_add_cstr(out, "; ");
    plan_timeout_hint(&p->plan->steps[step].rules->policy, why, out);
    if (out->bad == BT_OK && out->len == before + 2) {
        buf_truncate(out, before);
    }
}

static void add_rest(const struct open_plan *p, uint32_t n, struct buf *out)
{
    if (n > AGGREGATE_NAMED_MAX) {
        buf_printf(out, "\n- %u more step%s: baton status %s", n - AGGREGATE_NAMED_MAX,
                   n == AGGREGATE_NAMED_MAX + 1 ? "" : "s", p->id);
    }
}

/* Of a partial plan. */
static void add_not_done(struct engine *engine, const struct open_plan *p, struct buf *out)
{
    const struct run *run = core_block_run(p->block);
    uint32_t steps[AGGREGATE_NAMED_MAX];
    const uint32_t n = aggregate_not_done(p->plan, run, steps, AGGREGATE_NAMED_MAX);

    buf_add_cstr(out, AGGREGATE_BETWEEN AGGREGATE_NOT_DONE);
    for (uint32_t i = 0; i < n && i < AGGREGATE_NAMED_MAX; i++) {
        const struct note *note = step_notes_of(&p->notes, steps[i]);
        add_step(engine, p, steps[i], out);
        buf_add_str(out, aggregate_ended_how(&run->steps[steps[i]]));
        if (note != NULL && note->why != NULL) {
            buf_add_cstr(out, ": ");
            add_line(out, note_text(note->why), NOTE_WHY_MAX);
            add_hint(p, steps[i], note_text(note->why), out);
        }
    }
    add_rest(p, n, out);
    if (p->plan->n_steps == 0) { /* M008: an answer without a plan */
        buf_add_cstr(out, "\n- No plan was made: ");
        const struct run_phases *phases = run_phases(run);
        add_line(out, open_plan_failure(p, (struct str){phases->end_text, phases->end_text_n}),
                 NOTE_WHY_MAX);
    }
}

static void add_not_whole(struct engine *engine, const struct open_plan *p,
                          const struct aggregate_readers *readers, struct buf *out)
{
    static const char *const LACKS[] = {
        [AGGREGATE_RESULT] = "gave only a part of its result",
        [AGGREGATE_CONTEXT] = "read only a part of the results before it",
        [AGGREGATE_RESULT | AGGREGATE_CONTEXT] =
            "gave only a part of its result, and read only a part of the results before it",
    };
    struct aggregate_lack lacks[AGGREGATE_NAMED_MAX];
    const uint32_t n =
        aggregate_not_whole(p->plan, core_block_run(p->block), readers,
                            AGGREGATE_RESULT | AGGREGATE_CONTEXT, lacks, AGGREGATE_NAMED_MAX);

    if (n == 0) {
        return;
    }
    buf_add_cstr(out, out->len > 0 ? "\n\n" : AGGREGATE_BETWEEN);
    buf_add_cstr(out, AGGREGATE_NOT_WHOLE);
    for (uint32_t i = 0; i < n && i < AGGREGATE_NAMED_MAX; i++) {
        add_step(engine, p, lacks[i].step, out);
        buf_add_cstr(out, LACKS[lacks[i].what]);
    }
    add_rest(p, n, out);
}

/* ---- what is before it ---- */

static enum bt_code add_part(struct engine *engine, const struct open_plan *p,
                             const struct aggregate_part *part, struct buf *out,
                             struct bt_error *err)
{
    bool cut;

    buf_add_cstr(out, AGGREGATE_HEAD);
    add_task(engine, p, part->step, 0, out);
    buf_add_cstr(out, AGGREGATE_HEAD_END);
    if (part->kind == AGGREGATE_PART_SKIPPED) {
        buf_add_cstr(out, AGGREGATE_SKIPPED);
        return BT_OK;
    }
    return engine_result_text(engine, part->result, 0, out, &cut, err);
}

/* Whole parts only: the rest is counted, each result can be asked for by its step. */
static enum bt_code add_parts(struct engine *engine, const struct open_plan *p,
                              const struct aggregate_part *parts, uint32_t n, size_t room,
                              struct buf *out, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    size_t whole = 0;

    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        if (i > 0) {
            buf_add_cstr(out, AGGREGATE_BETWEEN);
        }
        code = add_part(engine, p, &parts[i], out, err);
        if (out->bad == BT_LIMIT || out->len > room - CUT_MARK_ROOM) {
            out->bad = BT_OK;
            buf_truncate(out, whole);
            buf_printf(out, "\n\n[cut: %u of %u parts fit]", i, n);
            return BT_OK;
        }
        whole = out->len;
    }
    return code;
}

/* One result as it is; cut when the end of the answer needs the room. */
static enum bt_code add_result(struct engine *engine, struct blob_ref result, size_t room,
                               const char *mark, struct buf *out, struct bt_error *err)
{
    const bool whole = room == LIMIT_RESULT_BYTES;
    bool cut;
    const enum bt_code code =
        engine_result_text(engine, result, whole ? 0 : room - CUT_MARK_ROOM, out, &cut, err);

    if (code == BT_OK && cut && !whole) {
        buf_printf(out, "\n\n[cut: %s]", mark);
    }
    return code;
}

static enum bt_code add_results(struct engine *engine, const struct open_plan *p,
                                enum plan_status end, size_t room, struct buf *out,
                                struct bt_error *err)
{
    struct aggregate_part *parts = malloc((p->plan->n_steps + 1) * sizeof *parts);
    struct aggregate_choice choice;
    enum bt_code code = BT_OK;

    if (parts == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the results of %u steps",
                       p->plan->n_steps);
    }
    choice = aggregate_choose(p->plan, core_block_run(p->block), parts);
    if (choice.form == AGGREGATE_FORM_NOTHING) {
        buf_add_str(out, aggregate_nothing(p->plan, core_block_run(p->block), end));
    } else if (choice.form == AGGREGATE_FORM_RAW) {
        code =
            add_result(engine, parts[0].result, room, "the step's own result is whole", out, err);
    } else {
        code = add_parts(engine, p, parts, choice.n, room, out, err);
    }
    free(parts);
    return code;
}

enum bt_code aggregate_text(struct engine *engine, const struct open_plan *p,
                            const struct record *rec, const struct aggregate_readers *readers,
                            struct buf *out, size_t *ret_end, struct bt_error *err)
{
    const struct rec_plan_completed *end = REC(rec, plan_completed);
    struct buf tail;
    enum bt_code code;

    buf_init(&tail, NOT_DONE_BYTES);
    if (end->outcome == OUTCOME_PARTIAL) {
        add_not_done(engine, p, &tail);
    }
    add_not_whole(engine, p, readers, &tail);
    code = buf_check(&tail, err);
    if (code == BT_OK && end->result.id != 0) {
        code = add_result(engine, end->result, LIMIT_RESULT_BYTES - tail.len,
                          "synthesis_finished names the whole answer", out, err);
    } else if (code == BT_OK) {
        code = add_results(engine, p, end->status, LIMIT_RESULT_BYTES - tail.len, out, err);
    }
    buf_add(out, tail.at, tail.len);
    *ret_end = tail.len;
    buf_done(&tail);
    return code == BT_OK ? buf_check(out, err) : code;
}

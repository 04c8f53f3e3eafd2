/* The plan's answer as one text: the parts that core/aggregate chose, joined with its texts (M080).
 */
#include <stdlib.h>

#include "supervisor/core/run/aggregate.h"
#include "supervisor/engine/engine_internal.h"

enum { CUT_MARK_ROOM = 64 };

static enum bt_code add_part(struct engine *engine, const struct plan *plan,
                             const struct aggregate_part *part, struct buf *out,
                             struct bt_error *err)
{
    bool cut;

    buf_add_cstr(out, AGGREGATE_HEAD);
    buf_add_str(out, plan->steps[part->step].task);
    buf_add_cstr(out, AGGREGATE_HEAD_END);
    if (part->kind == AGGREGATE_PART_SKIPPED) {
        buf_add_cstr(out, AGGREGATE_SKIPPED);
        return BT_OK;
    }
    return engine_result_text(engine, part->result, 0, out, &cut, err);
}

enum bt_code aggregate_text(struct engine *engine, const struct plan *plan, const struct run *run,
                            enum plan_status end, struct buf *out, struct bt_error *err)
{
    struct aggregate_part *parts = malloc((plan->n_steps + 1) * sizeof *parts);
    struct aggregate_choice choice;
    enum bt_code code = BT_OK;
    size_t whole = 0;
    bool cut;

    if (parts == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the results of %u steps", plan->n_steps);
    }
    choice = aggregate_choose(plan, run, parts);
    if (choice.form == AGGREGATE_FORM_NOTHING) {
        buf_add_str(out, aggregate_nothing(plan, end));
    } else if (choice.form == AGGREGATE_FORM_RAW) {
        code = engine_result_text(engine, parts[0].result, 0, out, &cut, err);
    }
    for (uint32_t i = 0; choice.form == AGGREGATE_FORM_SECTIONS && i < choice.n && code == BT_OK;
         i++) {
        if (i > 0) {
            buf_add_cstr(out, AGGREGATE_BETWEEN);
        }
        code = add_part(engine, plan, &parts[i], out, err);
        if (out->bad == BT_LIMIT || out->len > LIMIT_RESULT_BYTES - CUT_MARK_ROOM) {
            /* Whole parts only: the rest is named, each result can be asked for by its step. */
            out->bad = BT_OK;
            buf_truncate(out, whole);
            buf_printf(out, "\n\n[cut: %u of %u parts fit]", i, choice.n);
            code = BT_OK;
            break;
        }
        whole = out->len;
    }
    free(parts);
    return code == BT_OK ? buf_check(out, err) : code;
}

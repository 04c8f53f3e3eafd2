/* journal.export and journal.import: plans and sessions as lines, out of the journal and in. */
#include <string.h>

#include "supervisor/api/api_internal.h"
#include "supervisor/retention/retention.h"
#include "supervisor/schedule/schedules.h"

static bool plan_is_open(void *self, struct uuid plan_id)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_format(plan_id, id);
    return open_plan_by_id(self, str_from(id)) != NULL;
}

/* The plan of the request. Refuses and returns false when it cannot be exported. `alone` is asked
 * to compare a plan with that of a file, and there a job has its place as any plan. */
static bool find_plan(struct engine *engine, struct request *rq, struct str plan_id, bool alone,
                      struct transfer_want *want)
{
    struct journal_plan row;
    struct bt_error err;

    if (request_plan_row(engine, plan_id, &row, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (row.job.len > 0 && !alone) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "planId: this is a question of a plan to an agent; it comes with its "
                            "plan");
    } else if (row.ended_wall == 0) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "the plan has not ended; only ended plans are exported");
    } else if (plan_is_open(engine, row.plan_id)) {
        request_refuse_text(engine, rq, BT_BUSY, "the plan's last attempts are not over yet");
    } else {
        want->one = true;
        want->ix = row.ix;
        want->id = row.plan_id;
        return true;
    }
    return false;
}

void on_journal_export(struct engine *engine, struct request *rq)
{
    const struct transfer_hooks hooks = {engine, plan_is_open};
    struct msg_journal_export_ok ok = {0};
    struct transfer_want want = {0};
    struct msg_journal_export m;
    struct buf lines;
    struct bt_error err;
    char cursor[TRANSFER_CURSOR_MAX] = "";

    if (!request_read(engine, rq, MSG_journal_export, &m) ||
        (m.plan_id.len > 0 && !find_plan(engine, rq, m.plan_id, m.alone, &want))) {
        return;
    }
    want.since = m.since_ms;
    want.alone = m.alone;
    if (m.cursor.len >= sizeof cursor ||
        (m.cursor.len > 0 && memchr(m.cursor.ptr, 0, m.cursor.len) != NULL)) {
        request_refuse_text(engine, rq, BT_INVALID, "cursor: too long");
        return;
    }
    if (m.cursor.len > 0) {
        memcpy(cursor, m.cursor.ptr, m.cursor.len);
    }
    buf_init(&lines, TRANSFER_SLICE_MAX);
    if (transfer_export(engine_journal(engine), &hooks, &want, cursor, &lines, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        ok.lines = buf_str(&lines);
        ok.cursor = str_from(cursor);
        request_answer(engine, rq, MSG_journal_export_ok, &ok);
    }
    buf_done(&lines);
}

void on_journal_import(struct engine *engine, struct request *rq)
{
    static const char *const names[] = {[TRANSFER_MORE] = "more",
                                        [TRANSFER_EXISTS] = "exists",
                                        [TRANSFER_WAIT] = "wait",
                                        [TRANSFER_DONE] = "done"};
    struct msg_journal_import_ok ok = {0};
    struct transfer_lines lines;
    enum transfer_result result;
    struct msg_journal_import m;
    struct bt_error err;
    bool failed_write = false;

    if (!request_read(engine, rq, MSG_journal_import, &m)) {
        return;
    }
    lines = (struct transfer_lines){.text = m.lines,
                                    .before = m.before,
                                    .plan_id = m.plan_id,
                                    .session = m.session_id,
                                    .name = m.name,
                                    .now = engine_now(engine),
                                    .wall = engine_wall(engine)};
    if (transfer_import(api_of(engine)->transfer, engine_journal(engine), &lines, &result,
                        &failed_write, &err) == BT_OK) {
        if (result == TRANSFER_WAIT) {
            retention_wake(engine_hooks(engine)->retention);
        }
        if (transfer_schedule(api_of(engine)->transfer)[0] != 0 &&
            schedules_adopt(engine_hooks(engine)->schedules,
                            str_from(transfer_schedule(api_of(engine)->transfer)), &err) != BT_OK) {
            engine_fail(engine, &err);
            return;
        }
        ok.result = str_from(names[result]);
        request_answer(engine, rq, MSG_journal_import_ok, &ok);
    } else if (failed_write) {
        engine_fail(engine, &err); /* the batch may be lost with what others wrote into it */
    } else {
        retention_wake(engine_hooks(engine)->retention);
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    }
}

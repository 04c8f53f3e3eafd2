/* What the requests have in common. */
#include "supervisor/engine/request.h"

#include "protocol/base/clock.h"
#include "supervisor/engine/access.h"

bool request_read(struct engine *engine, struct request *rq, enum msg_type type, void *body)
{
    struct bt_error err;

    if (msg_read(&rq->reader, type, body, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return false;
    }
    return true;
}

enum bt_code request_no_plan(struct str plan_id, struct bt_error *err)
{
    struct uuid id;

    return err_set(err, BT_NOT_FOUND, "No state found for %.*s%s", STR_ARG(plan_id),
                   uuid_parse(plan_id, &id) ? "" : "; a plan id is a UUID");
}

/* BT_GONE with the sentence when the plan was deleted. */
static enum bt_code check_deleted(struct engine *engine, struct uuid id, struct bt_error *err)
{
    char ended[CLOCK_ISO_LEN + 1];
    char deleted[CLOCK_ISO_LEN + 1];
    struct journal_gone gone;
    enum bt_code code = journal_gone_by_id(engine_journal(engine), id, &gone, err);

    if (code == BT_OK && !access_sees(engine_who(engine), gone.owner)) {
        code = BT_NOT_FOUND;
    }
    if (code != BT_OK) {
        return code;
    }
    clock_iso(gone.ended_wall, ended);
    clock_iso(gone.deleted_wall, deleted);
    return err_set(err, BT_GONE, "the plan was deleted at %s (%.*s); it had ended at %s as %.*s",
                   deleted, STR_ARG(gone.why), ended, STR_ARG(gone.status));
}

static enum bt_code plan_row(struct engine *engine, struct str plan_id, bool with_document,
                             struct journal_plan *ret, struct bt_error *err)
{
    struct uuid id;
    enum bt_code code = BT_NOT_FOUND;

    if (uuid_parse(plan_id, &id)) {
        code = with_document ? journal_plan_by_id(engine_journal(engine), id, ret, err)
                             : journal_plan_head(engine_journal(engine), id, ret, err);
        if (code == BT_NOT_FOUND) {
            code = check_deleted(engine, id, err);
        } else if (code == BT_OK && !access_sees(engine_who(engine), ret->owner)) {
            code = BT_NOT_FOUND;
        }
    }
    if (code == BT_OK && str_is(ret->status, JOURNAL_IMPORTING)) {
        return err_set(err, BT_BUSY, "the plan is being imported");
    }
    return code == BT_NOT_FOUND ? request_no_plan(plan_id, err) : code;
}

enum bt_code request_plan_row(struct engine *engine, struct str plan_id, struct journal_plan *ret,
                              struct bt_error *err)
{
    return plan_row(engine, plan_id, false, ret, err);
}

enum bt_code request_plan_document(struct engine *engine, struct str plan_id,
                                   struct journal_plan *ret, struct bt_error *err)
{
    return plan_row(engine, plan_id, true, ret, err);
}

void request_refuse_ended(struct engine *engine, struct request *rq, const struct journal_plan *row)
{
    if (str_is(row->status, "quarantined")) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "the plan is quarantined: retry it (plan.retry), or fork it");
    } else {
        request_refuse_text(engine, rq, BT_CONFLICT, "the plan has ended (%.*s)",
                            STR_ARG(row->status));
    }
}

void request_refuse_job(struct engine *engine, struct request *rq, struct str of)
{
    request_refuse_text(
        engine, rq, BT_INVALID,
        "planId: this is a question of %.*s to an agent, not a plan of its own; it can "
        "only be looked at and cancelled",
        STR_ARG(of));
}

struct open_plan *request_open_plan(struct engine *engine, struct request *rq, struct str plan_id)
{
    struct open_plan *p = open_plan_by_id(engine, plan_id);
    struct journal_plan row;
    struct bt_error err;

    p = p != NULL && access_sees(engine_who(engine), open_plan_owner(p)) ? p : NULL;
    if (p != NULL && p->job != NULL) {
        request_refuse_job(engine, rq, str_from(p->job->of));
        return NULL;
    }
    if (p != NULL && !plan_is_final(core_block_run(p->block)->status)) {
        return access_may_change(engine, rq, open_plan_owner(p)) ? p : NULL;
    }
    if (request_plan_row(engine, plan_id, &row, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (access_may_change(engine, rq, row.owner)) {
        request_refuse_ended(engine, rq, &row);
    }
    return NULL;
}

enum bt_code request_reject(enum core_reject reject, uint32_t revision, struct bt_error *err)
{
    switch (reject) {
    case REJECT_NONE:
        return BT_OK;
    case REJECT_REVISION:
        return err_set(err, BT_CONFLICT,
                       "expectRevision: the plan has been changed since; it is at revision %u now",
                       revision);
    case REJECT_UNKNOWN_RUN:
        return err_set(err, BT_CONFLICT, "the plan has ended");
    case REJECT_NO_STEP:
        return err_set(err, BT_NOT_FOUND, "%s", core_reject_text(reject));
    case REJECT_TOO_MANY_RUNS:
    case REJECT_TOO_MANY_INSTANCES:
        return err_set(err, BT_BUSY, "%s", core_reject_text(reject));
    case REJECT_SIGNALS:
        return err_set(err, BT_LIMIT, "%s", core_reject_text(reject));
    case REJECT_TOO_MUCH:
        return err_set(err, BT_LIMIT,
                       "the plan has had as many changes or attempts as one plan may have");
    case REJECT_JOB:
    case REJECT_FINAL:
    case REJECT_STALE_ATTEMPT:
    case REJECT_STALE_REVIEW:
    case REJECT_STALE_EPOCH:
    case REJECT_FOREIGN:
    case REJECT_PROCESS:
    case REJECT_NOT_WAITING:
    case REJECT_BEGUN:
    case REJECT_CANCELLING:
    case REJECT_UNDOING:
    case REJECT_PAUSED:
    case CORE_REJECT_COUNT:
    default:
        return err_set(err, BT_CONFLICT, "%s", core_reject_text(reject));
    }
}

void request_refuse_revision(struct engine *engine, struct request *rq, const struct open_plan *p)
{
    uint32_t revision = core_revision(engine_core(engine), p->run);
    struct bt_error why;
    struct buf details;

    (void)request_reject(REJECT_REVISION, revision, &why);
    buf_init(&details, 64);
    doc_put_map(&details, 1);
    doc_put_cstr(&details, "revision");
    doc_put_u64(&details, revision);
    request_refuse(engine, rq, &why, CLASS_NONE, 0, doc_from_buf(&details));
    buf_done(&details);
}

/* The answer to a request whose event went through the core. */
static bool check_fed(struct engine *engine, struct request *rq, const struct open_plan *p,
                      enum core_reject reject, const char *not_waiting)
{
    struct bt_error why;

    if (reject == REJECT_REVISION) {
        request_refuse_revision(engine, rq, p);
    } else if (reject == REJECT_NOT_WAITING && not_waiting != NULL) {
        request_refuse_text(engine, rq, BT_CONFLICT, "%s", not_waiting);
    } else if (request_reject(reject, 0, &why) != BT_OK) {
        request_refuse(engine, rq, &why, CLASS_NONE, 0, (struct doc){NULL, 0});
    }
    return reject == REJECT_NONE;
}

bool request_feed(struct engine *engine, struct request *rq, const struct open_plan *p,
                  struct core_event *ev, const char *not_waiting)
{
    enum core_reject reject = REJECT_NONE;
    struct bt_error err;

    ev->run = p->run;
    if (engine_feed(engine, ev, &reject, &err) != BT_OK) {
        engine_fail(engine, &err);
        return false;
    }
    return check_fed(engine, rq, p, reject, not_waiting);
}

bool request_revise(struct engine *engine, struct request *rq, const struct open_plan *p,
                    struct core_event *ev, struct new_revision *revision, const char *not_waiting)
{
    enum core_reject reject = REJECT_NONE;
    struct bt_error err;

    ev->run = p->run;
    if (engine_revise(engine, ev, revision, &reject, &err) != BT_OK) {
        engine_fail(engine, &err);
        return false;
    }
    return check_fed(engine, rq, p, reject, not_waiting);
}

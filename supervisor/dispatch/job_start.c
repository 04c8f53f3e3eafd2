/* A job as a plan: its document, and how it begins and is called off. */
#include <stdio.h>

#include "supervisor/dispatch/job.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/submission.h"

enum { DOCUMENT_MAX = 64 * 1024 };

static void put_text(struct buf *out, const char *name, struct str value)
{
    doc_put_cstr(out, name);
    doc_put_str(out, value.len > 0 ? value : (struct str){"", 0});
}

static void put_number(struct buf *out, const char *name, uint64_t value)
{
    doc_put_cstr(out, name);
    doc_put_u64(out, value);
}

static void put_policy(const struct job_ask *ask, struct buf *out)
{
    const bool tokens = ask->tokens != UINT64_MAX;
    const bool micros = ask->micros != UINT64_MAX;

    doc_put_map(out, tokens || micros ? 9 : 8);
    put_number(out, "planTimeoutMs", ask->timeout_ms);
    put_number(out, "stepTimeoutMs", ask->timeout_ms);
    put_number(out, "maxFallbacks", 0);
    /* The policies that a configuration has for steps do not hold for jobs: their time is their
     * own, and no person is asked when one fails. */
    put_text(out, "onFailure", STR_LIT("abort"));
    put_number(out, "idleTimeoutMs", 0);
    put_number(out, "queueTimeoutMs", 0);
    put_number(out, "stepLimitMs", 0);
    put_text(out, "synthesis", STR_LIT("concat"));
    if (tokens || micros) {
        doc_put_cstr(out, "budget");
        doc_put_map(out, (tokens ? 1u : 0) + (micros ? 1u : 0));
        if (tokens) {
            put_number(out, "tokens", ask->tokens > 0 ? ask->tokens : 1);
        }
        if (micros) {
            put_number(out, "costMicros", ask->micros > 0 ? ask->micros : 1);
        }
    }
}

static void put_document(const struct job_ask *ask, struct buf *out)
{
    doc_put_map(out, 3);
    doc_put_cstr(out, "errand");
    doc_put_map(out, ask->turn.len > 0 ? 3 : 2);
    put_text(out, "kind", str_from(job_kind_name(ask->kind)));
    put_text(out, "of", ask->of);
    if (ask->turn.len > 0) {
        put_text(out, "turn", ask->turn);
    }
    doc_put_cstr(out, "policy");
    put_policy(ask, out);
    doc_put_cstr(out, "steps");
    doc_put_array(out, 1);
    doc_put_map(out, 4);
    put_text(out, "stepId", str_from(job_kind_name(ask->kind)));
    put_text(out, "agentId", ask->agent_id);
    put_text(out, "skill", ask->skill);
    put_text(out, "task", ask->task);
}

/* A job belongs to whom it is for: a plan, or a session. */
static enum bt_code owner_of(struct engine *engine, const struct job_ask *ask,
                             char ret[LIMIT_ID_BYTES + 1], struct bt_error *err)
{
    const struct open_plan *p = open_plan_by_id(engine, ask->of);
    bool known;

    if (p != NULL) {
        (void)snprintf(ret, LIMIT_ID_BYTES + 1, "%.*s", STR_ARG(open_plan_owner(p)));
        return BT_OK;
    }
    return access_session_owner(engine, ask->session_id.len > 0 ? ask->session_id : ask->of, &known,
                                ret, err);
}

enum bt_code job_start(struct engine *engine, const struct job_ask *ask, uint64_t *ret_run,
                       struct bt_error *err)
{
    struct submit_request w = {.goal = ask->task, .session_id = ask->session_id, .own = true};
    struct submission_start how = {.job = str_from(job_kind_name(ask->kind))};
    char owner[LIMIT_ID_BYTES + 1];
    char id[UUID_TEXT_LEN + 1];
    struct buf document;
    struct submission d;
    enum bt_code code = submission_job_room(engine, ask->kind <= JOB_SYNTHESIS, err);

    if (code == BT_OK) {
        code = owner_of(engine, ask, owner, err);
    }
    if (code != BT_OK) {
        return code;
    }
    how.owner = str_from(owner);
    buf_init(&document, DOCUMENT_MAX);
    put_document(ask, &document);
    code = buf_check(&document, err);
    w.plan = doc_from_buf(&document);
    if (code == BT_OK) {
        code = submission_init(&d, err);
        if (code == BT_OK) {
            code = submission_make(engine, &w, &d, err);
        }
        if (code == BT_OK) {
            code = submission_start(engine, &how, &d, id, err);
        }
        if (code == BT_OK) {
            *ret_run = core_newest_run(engine_core(engine));
        }
        submission_done(&d);
    }
    buf_done(&document);
    return code;
}

void job_stop(struct engine *engine, uint64_t run)
{
    struct core_event ev = {
        .type = CORE_CANCEL, .run = run, .text = STR_LIT("nobody waits for it any more")};
    struct bt_error err;

    if (run != 0 && core_run(engine_core(engine), run, NULL) != NULL &&
        engine_feed(engine, &ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
}

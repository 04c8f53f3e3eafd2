#include "tests/unit/engine/engine_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/wire/doc.h"
#include "supervisor/engine/open_plan.h"
#include "supervisor/engine/submission.h"
#include "supervisor/journal/port.h"
#include "tests/support/cmocka.h"
#include "tests/support/memory_journal/memory_journal.h"

uint32_t engine_world_reads;
bool engine_world_jobs;
enum bt_code (*engine_world_plan_ended)(struct engine *engine, const struct open_plan *p,
                                        const struct record *rec, struct str summary,
                                        size_t not_done, struct bt_error *err);

void (*engine_world_on_lane)(const struct link_event *ev);

/* ---- a journal that counts ---- */

static const struct journal_ops *real;
static struct journal_ops counting;

static enum bt_code plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err)
{
    engine_world_reads++;
    return real->plan_by_id(j, id, ret, err);
}

static enum bt_code blob_get(struct journal *j, uint64_t id, struct buf *out, struct bt_error *err)
{
    engine_world_reads++;
    return real->blob_get(j, id, out, err);
}

/* ---- the rooms above ---- */

static void on_request(struct engine *engine, uint64_t handle, struct str bytes)
{
    (void)engine;
    (void)handle;
    (void)bytes;
    fail_msg("a request came");
}

static void on_lane_event(struct engine *engine, struct link_event *ev)
{
    (void)engine;
    assert_non_null(engine_world_on_lane); /* a lane spoke */
    engine_world_on_lane(ev);
}

static void performed(struct engine *engine)
{
    (void)engine;
}

static void perform(struct engine *engine, const struct core_cmd *cmd)
{
    (void)engine;
    (void)cmd;
}

static void on_job_record(struct engine *engine, const struct open_plan *p,
                          const struct record *rec)
{
    (void)engine;
    (void)p;
    (void)rec;
}

static void on_attempt_over(struct engine *engine, const struct record *rec)
{
    (void)engine;
    (void)rec;
}

static bool settle(struct engine *engine)
{
    (void)engine;
    assert_true(engine_world_jobs);
    return false;
}

static void recovered(struct engine *engine)
{
    (void)engine;
}

static enum bt_code plan_ended(struct engine *engine, const struct open_plan *p,
                               const struct record *rec, struct str summary, size_t not_done,
                               struct bt_error *err)
{
    return engine_world_plan_ended != NULL
               ? engine_world_plan_ended(engine, p, rec, summary, not_done, err)
               : BT_OK;
}

static enum bt_code turns_recovered(struct engine *engine, struct bt_error *err)
{
    (void)engine;
    (void)err;
    return BT_OK;
}

static enum bt_code review_shown(struct engine *engine, const struct open_plan *p, uint32_t step,
                                 struct blob_ref *ret, struct bt_error *err)
{
    (void)engine;
    (void)p;
    (void)step;
    (void)ret;
    (void)err;
    return BT_OK;
}

static void after_commit(struct engine *engine, bool committed)
{
    (void)engine;
    (void)committed;
    fail_msg("no request waits");
}

static bool step_task(struct engine *engine, const struct open_plan *p, uint32_t step,
                      struct buf *out)
{
    (void)engine;
    (void)p;
    (void)step;
    (void)out;
    return false;
}

static const struct engine_hooks hooks = {.on_request = on_request,
                                          .on_request_meanwhile = on_request,
                                          .on_lane_event = on_lane_event,
                                          .perform = perform,
                                          .performed = performed,
                                          .step_task = step_task,
                                          .on_job_command = perform,
                                          .on_job_record = on_job_record,
                                          .on_attempt_over = on_attempt_over,
                                          .settle = settle,
                                          .jobs_recovered = recovered,
                                          .plan_ended = plan_ended,
                                          .review_shown = review_shown,
                                          .turns_recovered = turns_recovered,
                                          .after_commit = after_commit};

void engine_world_open_on(struct engine_world *w, struct journal *journal, msec wall)
{
    const struct engine_options opt = {.state_dir = "/nowhere",
                                       .control_url = "tcp://127.0.0.1:0",
                                       .events_url = "tcp://127.0.0.1:0",
                                       .defaults = plan_defaults_builtin(),
                                       .planner = "keyword",
                                       .heartbeat_ms = 1000,
                                       .lease_ms = 3000,
                                       .agent_wait_ms = 1000,
                                       .cancel_grace_ms = 1000,
                                       .plans_max = 8,
                                       .agents_max = 8,
                                       .instances_max = 8,
                                       .result_max = LIMIT_RESULT_BYTES};
    struct bt_error err;

    *w = (struct engine_world){.journal = journal};
    real = w->journal->ops;
    counting = *real;
    counting.plan_by_id = plan_by_id;
    counting.blob_get = blob_get;
    w->journal->ops = &counting;
    assert_int_equal(link_new(256, &w->link, &err), BT_OK);
    assert_int_equal(engine_new(&opt, w->journal, w->link, &w->engine, &err), BT_OK);
    engine_set_hooks(w->engine, &hooks);
    engine_begin(w->engine, 1000, wall);
    assert_int_not_equal(
        registry_agent_configure(engine_registry(w->engine), STR_LIT("calc"), 1000), REGISTRY_NONE);
    engine_world_reads = 0;
    engine_world_jobs = false;
    engine_world_plan_ended = NULL;
    engine_world_on_lane = NULL;
}

void engine_world_open(struct engine_world *w)
{
    struct journal *journal;
    struct bt_error err;

    assert_int_equal(memory_journal_open(&journal, &err), BT_OK);
    engine_world_open_on(w, journal, 1700000000000);
}

void engine_world_restart(struct engine_world *w)
{
    struct journal *journal = w->journal;

    engine_free(w->engine);
    link_free(w->link);
    arena_done(&w->arena);
    journal->ops = real;
    memory_journal_restart(journal);
    engine_world_open_on(w, journal, 1700000000000);
}

void engine_world_close(struct engine_world *w)
{
    engine_free(w->engine);
    link_free(w->link);
    journal_close(w->journal);
    arena_done(&w->arena);
}

struct doc engine_world_doc(struct engine_world *w, const char *json)
{
    char *text = arena_alloc(&w->arena, strlen(json) + 1);
    struct bt_error err;
    struct buf out;
    struct doc doc;

    assert_non_null(text);
    for (size_t i = 0; i <= strlen(json); i++) {
        text[i] = json[i] == '\'' ? '"' : json[i];
    }
    buf_init(&out, LIMIT_STEP_BYTES);
    if (json_to_doc(str_from(text), NULL, &out, &err) != BT_OK) {
        fail_msg("%s in %s", err.msg, json);
    }
    doc = doc_copy(&w->arena, doc_from_buf(&out));
    buf_done(&out);
    return doc;
}

void engine_world_submit(struct engine_world *w, const struct submit_request *request,
                         char ret_id[UUID_TEXT_LEN + 1])
{
    const struct submission_start how = {.body_hash = 1};
    struct submission d;
    struct bt_error err;

    assert_int_equal(submission_init(&d, &err), BT_OK);
    if (submission_make(w->engine, request, &d, &err) != BT_OK ||
        submission_start(w->engine, &how, &d, ret_id, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    submission_done(&d);
}

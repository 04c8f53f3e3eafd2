/* The rooms of the loop, and what the engine calls upward, room by room. */
#include "supervisor/daemon_internal.h"

#include "protocol/base/clock.h"
#include "supervisor/api/shown.h"
#include "supervisor/audit/audit.h"
#include "supervisor/auth/store.h"
#include "supervisor/conversation/conversation.h"
#include "supervisor/dispatch/cards.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/dispatch/job.h"
#include "supervisor/dispatch/lanes.h"
#include "supervisor/dispatch/trunk.h"
#include "supervisor/engine/suspect.h"

/* The turn that waits for the plan, and the plan's files. */
static enum bt_code on_plan_ended(struct engine *engine, const struct open_plan *p,
                                  const struct record *rec, struct str summary, size_t not_done,
                                  struct bt_error *err)
{
    enum bt_code code = BT_OK;
    struct uuid id;
    if (p->job == NULL) {
        code = schedules_plan_ended(engine_hooks(engine)->schedules, str_from(p->id),
                                    REC(rec, plan_completed)->status, err);
    }
    if (p->job == NULL && uuid_parse(str_from(p->id), &id)) {
        sweep_plan_ended(engine_hooks(engine)->sweep, id);
    }
    return code == BT_OK ? conversation_plan_ended(engine, p, rec, summary, not_done, err) : code;
}

static bool plan_is_open(void *self, struct uuid plan_id)
{
    const struct daemon *d = self;
    char id[UUID_TEXT_LEN + 1];

    uuid_format(plan_id, id);
    return open_plan_by_id(d->engine, str_from(id)) != NULL;
}

static bool plan_is_read(void *self, struct uuid plan_id, uint64_t ix)
{
    return sweep_is_read(((const struct daemon *)self)->sweep, plan_id, ix);
}

static void on_plan_deleted(void *self, struct uuid plan_id)
{
    sweep_plan_ended(((const struct daemon *)self)->sweep, plan_id);
}

/* What the engine calls upward, room by room. */
static struct engine_hooks hooks_of(struct dispatch *dispatch, struct api *api, struct sweep *sweep,
                                    struct retention *retention, struct schedules *schedules,
                                    struct reload *reload)
{
    return (struct engine_hooks){
        .reload_of = reload,
        .reload = reload_config,
        .sweep = sweep,
        .retention = retention,
        .schedules = schedules,
        .dispatch = dispatch,
        .on_lane_event = lanes_on_link,
        .perform = dispatch_perform,
        .performed = trunks_flush,
        .step_task = dispatch_step_task,
        .on_attempt_over = dispatch_on_attempt_over,
        .agent_remember = agent_remember,
        .agents_recall = agents_recall,
        .on_job_record = job_on_record,
        .on_job_command = job_on_command,
        .settle = jobs_cycle,
        .jobs_recovered = jobs_find,
        .plan_ended = on_plan_ended,
        .review_shown = review_shown,
        .turns_recovered = conversation_recover,
        .api = api,
        .on_request = api_on_request,
        .on_request_meanwhile = api_on_request_meanwhile,
        .after_commit = api_after_commit,
    };
}

/* Sessions end with the daemon; credentials are files. */
static enum bt_code open_auth(struct daemon *d, struct bt_error *err)
{
    const struct session_time time = {.now = clock_mono_ms(), .wall = clock_wall_ms()};
    struct engine_options *opt = &d->engine_options;
    enum bt_code code = audit_open(opt->state_dir, time.wall, &opt->audit, err);

    code = code == BT_OK ? sessions_new(&opt->sessions, err) : code;
    if (code == BT_OK) {
        code =
            auth_store_new(d->opt->fleet.node_dir != NULL ? d->opt->fleet.node_dir : opt->state_dir,
                           opt->sessions, opt->audit, time, &opt->credentials, err);
    }
    return code;
}

enum bt_code daemon_open_rooms(struct daemon *d, struct bt_error *err)
{
    const struct engine_options *opt = &d->engine_options;
    struct process_hooks processes;
    struct engine_hooks hooks;
    struct dispatch *dispatch = NULL;
    enum bt_code code = open_auth(d, err);

    if (code == BT_OK) {
        code = engine_new(opt, d->journal, d->link, &d->engine, err);
    }
    if (code == BT_OK) {
        engine_watch_sessions(d->engine);
        code = roster_new(d->engine, d->spawn, d->opt->config, &d->roster, err);
    }
    if (code == BT_OK) {
        d->opt->reload->roster = d->roster;
        d->processes = (struct processes){
            .engine = d->engine, .spawn = d->spawn, .roster = d->roster, .keeper = &d->keeper};
        code = processes_open(&d->processes, err);
    }
    if (code == BT_OK) {
        processes = processes_hooks(&d->processes);
        code = dispatch_new(opt, d->link, &processes, conversation_job_over, &dispatch, err);
    }
    if (code == BT_OK) {
        code = api_new(&d->api, err);
    }
    if (code == BT_OK) {
        code = sweep_new(&d->opt->artifacts, d->engine, &d->sweep, err);
    }
    if (code == BT_OK) {
        const struct retention_hooks retention = {d, plan_is_open, plan_is_read, on_plan_deleted};
        code = retention_new(&d->opt->retention, &retention, d->journal, &d->retention, err);
    }
    code = code == BT_OK ? schedules_new(d->engine, &d->schedules, err) : code;
    if (code == BT_OK) {
        hooks = hooks_of(dispatch, d->api, d->sweep, d->retention, d->schedules, d->opt->reload);
        hooks.projections = api_projections(d->api);
        engine_set_hooks(d->engine, &hooks);
        suspect_watch(d->engine);
    }
    return code;
}

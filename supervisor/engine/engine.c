/* The cycle: it begins, events go through the core, it commits and then performs. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/failpoint.h"
#include "protocol/base/log.h"
#include "supervisor/core/mutant.h"
#include "supervisor/engine/engine_internal.h"

enum {
    OUT_MAX = 512 * 1024 * 1024,
    CYCLE_BYTES = 16 * 1024 * 1024,
    ENDED_MS = 700,    /* between the end of the last connection and that of the instance */
    LAST_WORD_MS = 500 /* an adopted attempt is asked about that long before its time is over */
};

static void grow_commands(struct commands *c)
{
    uint32_t cap = c->cap == 0 ? 64 : c->cap * 2;
    struct core_cmd *at = realloc(c->at, cap * sizeof *at);

    ASSERT(at != NULL); /* half a decision cannot be taken back: crash, replay */
    c->at = at;
    c->cap = cap;
}

static struct core_config core_config_of(const struct engine_options *opt, uint64_t boot)
{
    return (struct core_config){
        .runs_max = opt->plans_max * 4 + ENGINE_RUNS_SPARE, /* plans, children, a job of each */
        .registry = {.agents = opt->agents_max,
                     .instances = opt->instances_max,
                     .lease_ms = opt->lease_ms,
                     .suspect_ms = opt->lease_ms / 2,
                     .ended_ms = ENDED_MS,
                     .epoch_base = boot << 32,
                     .breaker_failures = opt->breaker_failures,
                     .breaker_cooldown_ms = opt->breaker_cooldown_ms,
                     .breaker_cooldown_max_ms = opt->breaker_cooldown_max_ms,
                     .breaker_probe_ms = opt->lease_ms},
        .agent_wait_ms = opt->agent_wait_ms,
        .unknown_wait_ms = opt->lease_ms + 2000,
        .last_word_ms = LAST_WORD_MS,
        .cancel_grace_ms = opt->cancel_grace_ms,
        .sessions = opt->plans_max * 4 + ENGINE_RUNS_SPARE,
        .keys = LIMIT_KEYS,
        .in_flight = opt->in_flight,
        .in_flight_agent = opt->in_flight_agent,
        .in_flight_session = opt->in_flight_session,
        .seed = clock_mono_ns(),
    };
}

enum bt_code engine_new(const struct engine_options *opt, struct journal *journal,
                        struct link *link, struct engine **ret, struct bt_error *err)
{
    const struct core_config config = core_config_of(opt, journal_boot(journal));
    struct engine *engine = calloc(1, sizeof *engine);
    enum bt_code code = BT_OK;

    *ret = NULL;
    if (engine == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %u plans", opt->plans_max);
    }
    *engine = (struct engine){.opt = *opt,
                              .runs_max = config.runs_max,
                              .journal = journal,
                              .link = link,
                              .commands.grow = grow_commands,
                              .started_mono = clock_mono_ms(),
                              .started_wall = clock_wall_ms()};
    buf_init(&engine->out, OUT_MAX);
    buf_init(&engine->row, LIMIT_STEP_BYTES);
    buf_init(&engine->topic, 1024);
    engine->core_memory = calloc(1, core_size(&config));
    engine->plans = calloc(engine->runs_max, sizeof *engine->plans);
    if (engine->core_memory == NULL || engine->plans == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for %u plans", opt->plans_max);
    }
    if (code == BT_OK) {
        code = session_slots_init(&engine->sessions, config.sessions, err);
    }
    if (code == BT_OK) {
        engine->core = core_init(engine->core_memory, &config);
        engine->registry = core_registry(engine->core);
        code = rates_init(engine, err);
    }
    if (code == BT_OK) {
        code = engine_listen(engine, err);
    }
    if (code != BT_OK) {
        engine_free(engine);
        return code;
    }
    *ret = engine;
    return BT_OK;
}

void engine_set_hooks(struct engine *engine, const struct engine_hooks *hooks)
{
    ASSERT(hooks->on_request != NULL && hooks->on_lane_event != NULL && hooks->perform != NULL);
    ASSERT(hooks->performed != NULL);
    ASSERT(hooks->on_job_command != NULL && hooks->on_job_record != NULL && hooks->settle != NULL);
    ASSERT(hooks->jobs_recovered != NULL && hooks->plan_ended != NULL);
    ASSERT(hooks->turns_recovered != NULL && hooks->after_commit != NULL);
    ASSERT(hooks->on_attempt_over != NULL);
    engine->hooks = *hooks;
}

void engine_free(struct engine *engine)
{
    for (uint32_t i = 0; engine->plans != NULL && i < engine->runs_used; i++) {
        open_plan_done(&engine->plans[i]);
    }
    for (uint32_t i = 0; i < engine->ended_n; i++) {
        open_plan_done(&engine->ended[i]);
    }
    free(engine->by_id);
    session_slots_done(&engine->sessions);
    rates_done(&engine->rates);
    plan_shelf_done(&engine->shelf);
    blob_cache_done(&engine->cache);
    buf_done(&engine->out);
    buf_done(&engine->row);
    buf_done(&engine->topic);
    arena_done(&engine->cycle);
    arena_done(&engine->later_arena);
    free(engine->later);
    engine_conditions_done(engine);
    engine_children_done(engine);
    free(engine->effects);
    free(engine->commands.at);
    free(engine->plans);
    free(engine->ended);
    free(engine->core_memory);
    engine_storage_done(engine);
    free(engine);
}

void engine_fail(struct engine *engine, const struct bt_error *why)
{
    if (!engine->failed) {
        engine->failed = true;
        engine->fatal = *why;
    }
}

void engine_begin(struct engine *engine, msec now, msec wall)
{

    engine->now = now;
    engine->wall = wall;
    engine->stats.cycles++;
    engine_storage_begin(engine);
    if (engine->stalled) {
        return;
    }
    for (uint32_t i = 0; i < engine->later_n; i++) {
        engine_tell(engine, &engine->later[i]);
    }
    engine->later_n = 0;
    arena_reset(&engine->later_arena);
}

void engine_later(struct engine *engine, const struct core_event *ev)
{
    if (engine->later_n == engine->later_cap) {
        uint32_t cap = engine->later_cap == 0 ? 64 : engine->later_cap * 2;
        struct core_event *at = realloc(engine->later, cap * sizeof *at);
        ASSERT(at != NULL); /* forgetting an event would lose a step */
        engine->later = at;
        engine->later_cap = cap;
    }
    engine->later[engine->later_n] = *ev;
    engine->later[engine->later_n++].text = arena_str(&engine->later_arena, ev->text);
}

/* One event on its way through the core, with what it brings. */
struct feed {
    struct core_event *ev;
    struct open_plan *plan;        /* of a submission or a recovery; NULL = none */
    struct new_revision *revision; /* NULL = none, or taken over */
    struct doc document;           /* of the plan or the revision; .ptr NULL = not in hand */
    enum core_reject reject;
};

/* The core has taken the new revision: it holds from its record on. What was before is the caller's
 * to free, because commands after this one may still speak of it. */
static void take_revision(struct engine *engine, struct feed *f, uint64_t run)
{
    struct open_plan *p = open_plan_of_run(engine, run);

    ASSERT(p != NULL && f->revision != NULL);
    open_plan_revise(p, f->revision);
    f->revision = NULL;
}

/* The journal has failed in the middle of the commands: the daemon stops, but until it has, the
 * core holds on to what it has taken over. */
static void keep_revision(struct engine *engine, struct feed *f)
{
    for (uint32_t i = 0; f->revision != NULL && i < engine->commands.n; i++) {
        if (engine->commands.at[i].type == CMD_REVISED) {
            take_revision(engine, f, engine->commands.at[i].run);
        }
    }
}

/* A step has ended, or an attempt of it: there is something to count for its agent. */
static bool is_attempt_over(const struct record *rec)
{
    return (rec->type == REC_STEP_COMPLETED || rec->type == REC_STEP_RETRY ||
            rec->type == REC_STEP_WAITING || rec->type == REC_VERIFICATION_FAILED) &&
           rec->step != STEP_NONE;
}

/* The core passes by the details of a failed attempt: its rows name them. */
static struct blob_ref failure_details(const struct core_event *ev)
{
    const bool failed =
        ev->type == CORE_RESULT && CORE_EV(ev, result)->outcome == STEP_OUTCOME_FAILED;

    return failed ? CORE_EV(ev, result)->result : (struct blob_ref){0};
}

/* A record becomes a row; then the rooms that wait for its plan see it. */
static enum bt_code take_record(struct engine *engine, const struct feed *f,
                                const struct record *rec, struct bt_error *err)
{
    struct open_plan *p = open_plan_of_run(engine, rec->run);
    const struct record_source from = {.revision = f->revision,
                                       .document = f->document,
                                       .details = failure_details(f->ev),
                                       .step = f->ev->step};
    struct record whole = *rec;
    struct buf summary; /* of an ended plan */
    size_t not_done;    /* bytes at its end */
    char error[OPEN_PLAN_ERROR_MAX];
    enum bt_code code;

    if (p != NULL && (rec->type == REC_PLAN_COMPLETED || rec->type == REC_COMPENSATION_STARTED)) {
        whole.text = open_plan_failure(p, rec->text);
    }
    if (p != NULL && rec->type == REC_STEP_COMPLETED) {
        whole.text = open_plan_step_failure(p, rec, error);
    }
    if (p != NULL && rec->type == REC_PLAN_STARTED &&
        rates_plan_started(engine, p->plan, err) != BT_OK) {
        return err->code;
    }
    buf_init(&summary, LIMIT_RESULT_BYTES);
    code = engine_record(engine, &whole, &from, &summary, &not_done, err);
    if (code == BT_OK && p != NULL && rec->type == REC_PLAN_COMPLETED) {
        engine->jobs -= p->job != NULL ? 1 : 0;
        engine->children -= p->plan->child.kind != CHILD_OF_NONE ? 1 : 0;
        code = engine->hooks.plan_ended(engine, p, &whole, buf_str(&summary), not_done, err);
    }
    if (code == BT_OK && rec->type == REC_PLAN_COMPLETED) {
        engine_undo_retry(engine);
    }
    if (code == BT_OK && p != NULL && is_attempt_over(rec)) {
        engine->hooks.on_attempt_over(engine, &whole);
    }
    if (code == BT_OK && p != NULL && p->plan->child.kind != CHILD_OF_NONE) {
        code = engine_child_record(engine, p, &whole, buf_str(&summary), err);
    }
    if (code == BT_OK && p != NULL && p->job != NULL) {
        engine->settle_due = true;
        engine->hooks.on_job_record(engine, p, &whole);
    }
    buf_done(&summary);
    return code;
}

/* Commands in the order of the core: rows now, everything else once the rows are durable. */
static enum bt_code take_commands(struct engine *engine, struct feed *f, struct bt_error *err)
{
    for (uint32_t i = 0; i < engine->commands.n; i++) {
        const struct core_cmd *cmd = &engine->commands.at[i];
        (void)engine_applies(engine, cmd->run);
        if (cmd->type == CMD_RECORD) {
            enum bt_code code = take_record(engine, f, &cmd->rec, err);
            if (code != BT_OK) {
                return code;
            }
        } else if (cmd->type == CMD_DISPATCH && rates_dispatched(engine, cmd, err) != BT_OK) {
            return err->code;
        } else if (cmd->type == CMD_REJECT) {
            f->reject = cmd->reject;
        } else if (cmd->type == CMD_REVISED) {
            take_revision(engine, f, cmd->run);
        } else if (cmd->type == CMD_JOB || cmd->type == CMD_JOB_STOP) {
            engine->settle_due = true;
            engine->hooks.on_job_command(engine, cmd);
        } else if (cmd->type == CMD_CONDITION || cmd->type == CMD_SIGNAL) {
            engine_condition_asked(engine, cmd);
        } else if (cmd->type == CMD_CHILD || cmd->type == CMD_CHILD_STOP ||
                   cmd->type == CMD_CHILD_PAUSE || cmd->type == CMD_CHILD_RESUME ||
                   cmd->type == CMD_COMPENSATE) {
            engine_child_command(engine, cmd);
        } else if (cmd->type != CMD_REGISTERED) {
            struct effect *e = engine_effect(engine, EFFECT_COMMAND);
            e->cmd = *cmd;
            e->cmd.text = engine_cycle_text(engine, cmd->text);
        }
    }
    return BT_OK;
}

/* A new run's plan must be in its place before the first record about it is rendered. */
static void bind_plan(struct engine *engine, struct open_plan *plan)
{
    if (engine->commands.n > 0 && engine->commands.at[0].type == CMD_REJECT) {
        open_plan_session_drop(engine, plan);
    } else {
        open_plan_bind(engine, plan, core_newest_run(engine->core));
    }
}

/* Nobody approves blind: what the person saw stands beside the decision. */
static enum bt_code keep_shown(struct engine *engine, struct core_event *ev, struct bt_error *err)
{
    const struct open_plan *p = open_plan_of_run(engine, ev->run);

    return p == NULL
               ? BT_OK
               : engine->hooks.review_shown(engine, p, ev->step, &CORE_EV(ev, decide)->shown, err);
}

/* The event through the core, which says itself what run it is at. */
static void handle(struct engine *engine, const struct core_event *ev)
{
    const struct open_plan *p;

    engine->mark.in_core = true;
    core_handle(engine->core, ev, &engine->commands);
    p = open_plan_of_run(engine, core_at(engine->core));
    if (p != NULL && ev->type != CORE_RECOVER) {
        FAILPOINT_OF("apply", p->plan_id);
    }
    engine->mark.in_core = false;
}

/* The plan of an event that brings one. */
static void set_plan(struct core_event *ev, const struct plan *plan)
{
    if (ev->type == CORE_SUBMIT) {
        CORE_EV(ev, submit)->plan = plan;
    } else {
        CORE_EV(ev, recover)->plan = plan;
    }
}

static enum bt_code feed_marked(struct engine *engine, struct feed *f, enum core_reject *ret_reject,
                                struct bt_error *err)
{
    struct new_revision *revised = f->revision;
    enum bt_code code = f->ev->type == CORE_DECIDE ? keep_shown(engine, f->ev, err) : BT_OK;

    if (code != BT_OK) {
        return code;
    }
    f->ev->now = engine->now;
    f->ev->wall = engine->wall;
    engine->commands.n = 0;
    if (f->plan != NULL) {
        open_plan_session(engine, f->plan);
        f->plan->plan = plan_pack_share(f->plan->plan, &engine->shelf);
        set_plan(f->ev, f->plan->plan);
    }
    if (f->revision != NULL) { /* its keys are in use beside those of the revision before */
        if (rates_take(engine, f->revision->plan, err) != BT_OK) {
            *(ret_reject != NULL ? ret_reject : &f->reject) = REJECT_TOO_MUCH;
            return BT_OK;
        }
    }
    handle(engine, f->ev);
    if (f->plan != NULL) {
        bind_plan(engine, f->plan);
    }
    code = take_commands(engine, f, err);
    if (code != BT_OK) {
        keep_revision(engine, f);
    }
    if (revised != NULL) { /* the plan before, or the revision that was not taken */
        rates_drop(engine, revised->plan);
    }
    if (f->reject != REJECT_NONE && (f->ev->type == CORE_RESULT || f->ev->type == CORE_STATE)) {
        engine->stats.results_rejected++;
        log_debug("step.result.rejected", "why=\"%s\" step=%u attempt=%u",
                  core_reject_text(f->reject), f->ev->step, f->ev->attempt);
    }
    if (ret_reject != NULL) {
        *ret_reject = f->reject;
    }
    return code;
}

static enum bt_code feed(struct engine *engine, struct feed *f, enum core_reject *ret_reject,
                         struct bt_error *err)
{
    const uint64_t before = engine_applies(engine, f->ev->run);
    const enum bt_code code = feed_marked(engine, f, ret_reject, err);

    (void)engine_applies(engine, before);
    return code;
}

enum bt_code engine_feed(struct engine *engine, struct core_event *ev, enum core_reject *ret_reject,
                         struct bt_error *err)
{
    struct feed f = {.ev = ev};

    return feed(engine, &f, ret_reject, err);
}

void engine_tell(struct engine *engine, struct core_event *ev)
{
    struct bt_error err;

    if (engine_feed(engine, ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
}

enum bt_code engine_submit(struct engine *engine, struct core_event *ev, struct open_plan *plan,
                           struct doc document, enum core_reject *ret_reject, struct bt_error *err)
{
    struct feed f = {.ev = ev, .plan = plan, .document = document};

    return feed(engine, &f, ret_reject, err);
}

enum bt_code engine_revise(struct engine *engine, struct core_event *ev,
                           struct new_revision *revision, enum core_reject *ret_reject,
                           struct bt_error *err)
{
    struct feed f = {.ev = ev};

    if (revision->plan != NULL) {
        f.revision = revision;
        f.document = doc_from_buf(&revision->text);
    }
    return feed(engine, &f, ret_reject, err);
}

enum bt_code engine_register(struct engine *engine, struct core_event *ev, uint32_t *ret_slot,
                             uint64_t *ret_epoch, enum core_reject *ret_reject,
                             struct bt_error *err)
{
    struct feed f = {.ev = ev};
    enum bt_code code = feed(engine, &f, ret_reject, err);

    *ret_slot = REGISTRY_NONE;
    for (uint32_t i = 0; i < engine->commands.n; i++) {
        if (engine->commands.at[i].type == CMD_REGISTERED) {
            *ret_slot = engine->commands.at[i].slot;
            *ret_epoch = engine->commands.at[i].epoch;
            break;
        }
    }
    return code;
}

msec engine_deadline(const struct engine *engine)
{
    msec d = engine->stalled ? MSEC_NEVER : core_deadline(engine->core);

    if ((engine->later_n > 0 || engine->held_n > engine->held_at ||
         engine_conditions_wait(engine)) &&
        !engine->stalled) {
        return 0;
    }
    if (engine->waiting > 0 && engine->waiting_until < d) {
        d = engine->waiting_until;
    }
    /* No heartbeat goes out without a bus. */
    return engine->pub != NULL && engine->heartbeat_at < d ? engine->heartbeat_at : d;
}

void engine_set_waiting(struct engine *engine, uint32_t n, msec deadline)
{
    engine->waiting = n;
    engine->waiting_until = deadline;
}

bool engine_has_failed(const struct engine *engine)
{
    return engine->failed;
}

bool engine_is_full(const struct engine *engine)
{
    return engine->out.len > CYCLE_BYTES || engine_storage_is_full(engine);
}

static void heartbeat(struct engine *engine)
{
    struct msg_heartbeat m = {.last_seq = journal_committed_seq(engine->journal),
                              .ts_ms = engine->wall,
                              .type = STR_LIT("heartbeat")};
    struct msg_part part = {MSG_heartbeat, &m};

    if (engine->now < engine->heartbeat_at || engine->pub == NULL) {
        return;
    }
    engine->heartbeat_at = engine->now + 1000;
    buf_clear(&engine->row);
    if (msg_write(&engine->row, WIRE_MSGPACK, &part, 1, NULL) == BT_OK) {
        link_publish(engine->pub, STR_LIT("system/heartbeat"), engine->row.at, engine->row.len);
    }
}

/* What jobs and child plans of this cycle lead to; each may lead to more. Whatever has ended is
 * known to who waits for it before the commit. */
static bool settle(struct engine *engine)
{
    bool news = engine_children_wait(engine);

    engine_children_act(engine);
    if (!engine->failed && engine->settle_due) {
        engine->settle_due = false;
        news = engine->hooks.settle(engine) || news;
    }
    return news;
}

/* Who may not own the journal any more does nothing, and answers nothing. */
bool engine_keep(struct engine *engine)
{
    struct bt_error why;

    if (!engine->failed && !MUTANT(EFFECTS_UNKEPT) &&
        journal_keep(engine->journal, &why) != BT_OK) {
        engine_fail(engine, &why);
    }
    return !engine->failed;
}

enum bt_code engine_end(struct engine *engine, struct bt_error *err)
{
    bool news = journal_dirty(engine->journal);

    if (!engine->failed && !engine_is_stalled(engine) &&
        (core_deadline(engine->core) <= engine->now ||
         core_clock_jumped(engine->core, engine->now, engine->wall))) {
        struct core_event tick = {.type = CORE_TICK};
        struct bt_error why;
        (void)FAILPOINT("timer");
        if (engine_feed(engine, &tick, NULL, &why) != BT_OK) {
            engine_fail(engine, &why);
        }
        news = news || journal_dirty(engine->journal);
    }
    if (!engine->failed && !engine_is_stalled(engine) && engine_conditions_wait(engine)) {
        engine_conditions_answer(engine);
        news = true;
    }
    while (!engine->failed && (engine->settle_due || engine_children_wait(engine))) {
        news = settle(engine) || news;
    }
    if (!engine->failed && news) {
        struct bt_error why;
        const uint64_t from = clock_mono_ns();
        engine->stats.commits++;
        if (journal_commit(engine->journal, &why) != BT_OK) {
            engine_fail(engine, &why);
        }
        engine->stats.commit_us += (clock_mono_ns() - from) / 1000;
    }
    if (!engine_keep(engine)) {
        *err = engine->fatal;
        return BT_IO;
    }
    (void)FAILPOINT("kept");
    engine_perform(engine);
    (void)FAILPOINT("performed");
    if (engine->waiting > 0) {
        engine->hooks.after_commit(engine, news);
        engine_perform(engine);
    }
    journal_copy_log(engine->journal);
    heartbeat(engine);
    return BT_OK;
}

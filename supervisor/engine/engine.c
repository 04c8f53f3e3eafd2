#include "supervisor/engine/engine.h"

#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/conversation/conversation.h"
#include "supervisor/dispatch/job.h"

enum { OUT_MAX = 512 * 1024 * 1024, CYCLE_BYTES = 16 * 1024 * 1024, CONTROL_CONTEXTS = 128 };

static void grow_commands(struct commands *c)
{
    uint32_t cap = c->cap == 0 ? 64 : c->cap * 2;
    struct core_cmd *at = realloc(c->at, cap * sizeof *at);

    ASSERT(at != NULL); /* half a decision cannot be taken back: crash, replay */
    c->at = at;
    c->cap = cap;
}

static enum bt_code open_sockets(struct engine *engine, struct bt_error *err)
{
    struct link_limits control = {.recv_max = LIMIT_STEP_BYTES};
    struct link_limits events = {.recv_max = LIMIT_EVENT_BYTES};
    enum bt_code code = link_server_open(engine->link, engine->opt.control_url, CONTROL_CONTEXTS,
                                         &control, NULL, &engine->server, err);

    if (code == BT_OK) {
        code = link_pub_open(engine->link, engine->opt.events_url, &events, &engine->pub, err);
    }
    return code;
}

enum bt_code engine_init(struct engine *engine, const struct engine_options *opt,
                         struct journal *journal, struct link *link, struct bt_error *err)
{
    struct core_config config = {
        .runs_max = opt->plans_max * 2 + ENGINE_RUNS_SPARE,
        .registry = {.agents = opt->agents_max,
                     .instances = opt->instances_max,
                     .lease_ms = opt->lease_ms,
                     .suspect_ms = opt->lease_ms / 2,
                     .epoch_base = journal_boot(journal) << 32,
                     .breaker_failures = opt->breaker_failures,
                     .breaker_cooldown_ms = opt->breaker_cooldown_ms,
                     .breaker_cooldown_max_ms = opt->breaker_cooldown_max_ms,
                     .breaker_probe_ms = opt->lease_ms},
        .agent_wait_ms = opt->agent_wait_ms,
        .unknown_wait_ms = opt->lease_ms + 2000,
        .cancel_grace_ms = opt->cancel_grace_ms,
        .sessions = opt->plans_max * 2 + ENGINE_RUNS_SPARE,
        .in_flight = opt->in_flight,
        .in_flight_agent = opt->in_flight_agent,
        .in_flight_session = opt->in_flight_session,
        .seed = clock_mono_ns(),
    };
    void *mem = calloc(1, core_size(&config));

    *engine = (struct engine){.opt = *opt,
                              .runs_max = config.runs_max,
                              .journal = journal,
                              .link = link,
                              .commands.grow = grow_commands};
    buf_init(&engine->out, OUT_MAX);
    buf_init(&engine->row, LIMIT_CONTROL_BYTES);
    buf_init(&engine->topic, 1024);
    engine->plans = calloc(engine->runs_max, sizeof *engine->plans);
    engine->instances = calloc(opt->instances_max, sizeof(struct lane_instance *));
    engine->cards = calloc(opt->agents_max, sizeof *engine->cards);
    if (mem == NULL || engine->plans == NULL || engine->instances == NULL ||
        engine->cards == NULL) {
        free(mem);
        return err_set(err, BT_NOMEM, "out of memory for %u plans", opt->plans_max);
    }
    if (session_slots_init(&engine->sessions, config.sessions, err) != BT_OK) {
        free(mem);
        return BT_NOMEM;
    }
    engine->conversation_job_over = conversation_job_over;
    engine->core = core_init(mem, &config);
    engine->registry = core_registry(engine->core);
    engine->started_mono = clock_mono_ms();
    engine->started_wall = clock_wall_ms();
    return open_sockets(engine, err);
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
    struct bt_error err;

    engine->now = now;
    engine->wall = wall;
    engine->stats.cycles++;
    engine->registered_n = 0;
    for (uint32_t i = 0; i < engine->later_n; i++) {
        if (engine_feed(engine, &engine->later[i], NULL, NULL, &err) != BT_OK) {
            engine_fail(engine, &err);
        }
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

/* The core has taken the new revision: it holds from its record on. What was before is the event's
 * to free, because commands behind this one may still speak of it. */
static void take_revision(struct engine *engine, uint64_t run)
{
    struct open_plan *p = open_plan_of_run(engine, run);

    ASSERT(p != NULL && engine->revision != NULL);
    open_plan_revise(p, engine->revision);
    engine->revision = NULL;
}

/* The journal has failed in the middle of the commands: the daemon stops, but until it has, the
 * core holds on to what it has taken over. */
static void keep_revision(struct engine *engine)
{
    for (uint32_t i = 0; engine->revision != NULL && i < engine->commands.n; i++) {
        if (engine->commands.at[i].type == CMD_REVISED) {
            take_revision(engine, engine->commands.at[i].run);
        }
    }
}

/* Commands in the order of the core: rows now, everything else once the rows are durable. */
static enum bt_code take_commands(struct engine *engine, enum core_reject *ret_reject,
                                  struct bt_error *err)
{
    for (uint32_t i = 0; i < engine->commands.n; i++) {
        const struct core_cmd *cmd = &engine->commands.at[i];
        if (cmd->type == CMD_RECORD) {
            enum bt_code code;
            code = engine_record(engine, &cmd->rec, err);
            if (code != BT_OK) {
                return code;
            }
        } else if (cmd->type == CMD_REJECT) {
            *ret_reject = cmd->reject;
        } else if (cmd->type == CMD_REVISED) {
            take_revision(engine, cmd->run);
        } else if (cmd->type == CMD_JOB || cmd->type == CMD_JOB_STOP) {
            job_on_command(engine, cmd);
        } else if (cmd->type != CMD_REGISTERED) {
            struct effect *e = engine_effect(engine, EFFECT_COMMAND);
            e->cmd = *cmd;
            e->cmd.text = engine_cycle_text(engine, cmd->text);
        }
    }
    return BT_OK;
}

/* A new run's plan must be in its place before the first record about it is rendered. */
static void bind_pending(struct engine *engine, uint64_t *ret_run)
{
    if (engine->commands.n > 0 && engine->commands.at[0].type == CMD_REJECT) {
        open_plan_session_drop(engine, engine->pending);
        return;
    }
    open_plan_bind(engine, core_newest_run(engine->core));
    if (ret_run != NULL) {
        *ret_run = core_newest_run(engine->core);
    }
}

enum bt_code engine_feed(struct engine *engine, struct core_event *ev, enum core_reject *ret_reject,
                         uint64_t *ret_run, struct bt_error *err)
{
    enum core_reject reject = REJECT_NONE;
    enum bt_code code;

    ev->now = engine->now;
    ev->wall = engine->wall;
    engine->commands.n = 0;
    if (engine->pending != NULL) {
        open_plan_session(engine, engine->pending);
    }
    core_handle(engine->core, ev, &engine->commands);
    if (engine->pending != NULL) {
        bind_pending(engine, ret_run);
    }
    code = take_commands(engine, &reject, err);
    if (code != BT_OK) {
        keep_revision(engine);
    }
    if (reject != REJECT_NONE && (ev->type == CORE_RESULT || ev->type == CORE_STATE)) {
        engine->stats.results_rejected++;
        log_debug("step.result.rejected", "why=\"%s\" step=%u attempt=%u", core_reject_text(reject),
                  ev->step, ev->attempt);
    }
    if (ret_reject != NULL) {
        *ret_reject = reject;
    }
    return code;
}

static msec parked_deadline(const struct engine *engine)
{
    msec d = MSEC_NEVER;
    for (uint32_t i = 0; i < ENGINE_PARKED_MAX && engine->parked_n > 0; i++) {
        if (engine->parked[i].request != 0 && engine->parked[i].deadline < d) {
            d = engine->parked[i].deadline;
        }
    }
    return d;
}

msec engine_deadline(const struct engine *engine)
{
    msec d = core_deadline(engine->core);
    msec parked = parked_deadline(engine);

    if (engine->later_n > 0) {
        return 0;
    }
    d = parked < d ? parked : d;
    return engine->heartbeat_at < d ? engine->heartbeat_at : d;
}

bool engine_is_full(const struct engine *engine)
{
    return engine->out.len > CYCLE_BYTES;
}

static void heartbeat(struct engine *engine)
{
    struct msg_heartbeat m = {.last_seq = journal_committed_seq(engine->journal),
                              .ts_ms = engine->wall,
                              .type = STR_LIT("heartbeat")};
    struct msg_part part = {MSG_heartbeat, &m};

    if (engine->now < engine->heartbeat_at) {
        return;
    }
    engine->heartbeat_at = engine->now + 1000;
    buf_clear(&engine->row);
    if (msg_write(&engine->row, WIRE_MSGPACK, &part, 1, NULL) == BT_OK) {
        link_publish(engine->pub, STR_LIT("system/heartbeat"), engine->row.at, engine->row.len);
    }
}

enum bt_code engine_end(struct engine *engine, struct bt_error *err)
{
    bool news = journal_dirty(engine->journal);

    if (!engine->failed && core_deadline(engine->core) <= engine->now) {
        struct core_event tick = {.type = CORE_TICK};
        struct bt_error why;
        if (engine_feed(engine, &tick, NULL, NULL, &why) != BT_OK) {
            engine_fail(engine, &why);
        }
        news = news || journal_dirty(engine->journal);
    }
    if (!engine->failed && engine->news_n > 0) {
        jobs_cycle(engine);
        news = true;
    }
    if (!engine->failed && news) {
        struct bt_error why;
        engine->stats.commits++;
        if (journal_commit(engine->journal, &why) != BT_OK) {
            engine_fail(engine, &why);
        }
    }
    if (engine->failed) {
        *err = engine->fatal;
        return BT_IO;
    }
    engine_perform(engine);
    if (engine->parked_n > 0) {
        api_answer_parked_reads(engine, news);
        engine_perform(engine);
    }
    heartbeat(engine);
    return BT_OK;
}

void engine_on_link(struct engine *engine, struct link_event *ev)
{
    if (ev->type == LINK_REQUEST) {
        engine->stats.requests++;
        api_on_request(engine, ev->request, link_msg_bytes(ev->msg));
    } else if (ev->lane != NULL) {
        lanes_on_link(engine, ev);
    }
    if (ev->msg != NULL) {
        link_msg_free(ev->msg);
    }
}

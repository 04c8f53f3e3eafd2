#include "supervisor/engine/engine.h"

#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/conversation/session.h"
#include "supervisor/dispatch/job.h"

enum { OUT_MAX = 512 * 1024 * 1024, TURN_BYTES = 16 * 1024 * 1024, CONTROL_CONTEXTS = 128 };

static void grow_commands(struct commands *c)
{
    uint32_t cap = c->cap == 0 ? 64 : c->cap * 2;
    struct core_cmd *at = realloc(c->at, cap * sizeof *at);

    ASSERT(at != NULL); /* half a decision cannot be taken back: crash, replay */
    c->at = at;
    c->cap = cap;
}

static enum bt_code open_sockets(struct bus *b, struct bt_error *err)
{
    struct link_limits control = {.recv_max = LIMIT_STEP_BYTES};
    struct link_limits events = {.recv_max = LIMIT_EVENT_BYTES};
    enum bt_code code = link_server_open(b->link, b->opt.control_url, CONTROL_CONTEXTS, &control,
                                         NULL, &b->server, err);

    if (code == BT_OK) {
        code = link_pub_open(b->link, b->opt.events_url, &events, &b->pub, err);
    }
    return code;
}

enum bt_code bus_init(struct bus *b, const struct bus_options *opt, struct journal *journal,
                      struct link *link, struct bt_error *err)
{
    struct core_config config = {
        .runs_max = opt->plans_max * 2 + BUS_RUNS_SPARE,
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
        .sessions = opt->plans_max * 2 + BUS_RUNS_SPARE,
        .in_flight = opt->in_flight,
        .in_flight_agent = opt->in_flight_agent,
        .in_flight_session = opt->in_flight_session,
        .seed = clock_mono_ns(),
    };
    void *mem = calloc(1, core_size(&config));

    *b = (struct bus){.opt = *opt,
                      .runs_max = config.runs_max,
                      .journal = journal,
                      .link = link,
                      .commands.grow = grow_commands};
    buf_init(&b->out, OUT_MAX);
    buf_init(&b->row, LIMIT_CONTROL_BYTES);
    buf_init(&b->topic, 1024);
    b->plans = calloc(b->runs_max, sizeof *b->plans);
    b->instances = calloc(opt->instances_max, sizeof(struct lane_instance *));
    b->cards = calloc(opt->agents_max, sizeof *b->cards);
    if (mem == NULL || b->plans == NULL || b->instances == NULL || b->cards == NULL) {
        free(mem);
        return err_set(err, BT_NOMEM, "out of memory for %u plans", opt->plans_max);
    }
    if (sessions_init(&b->sessions, config.sessions, err) != BT_OK) {
        free(mem);
        return BT_NOMEM;
    }
    b->session_job_over = session_job_over;
    b->core = core_init(mem, &config);
    b->registry = core_registry(b->core);
    b->started_mono = clock_mono_ms();
    b->started_wall = clock_wall_ms();
    return open_sockets(b, err);
}

void bus_fail(struct bus *b, const struct bt_error *why)
{
    if (!b->failed) {
        b->failed = true;
        b->fatal = *why;
    }
}

void bus_begin(struct bus *b, msec now, msec wall)
{
    struct bt_error err;

    b->now = now;
    b->wall = wall;
    b->stats.turns++;
    b->registered_n = 0;
    for (uint32_t i = 0; i < b->later_n; i++) {
        if (bus_feed(b, &b->later[i], NULL, NULL, &err) != BT_OK) {
            bus_fail(b, &err);
        }
    }
    b->later_n = 0;
    arena_reset(&b->later_arena);
}

void bus_later(struct bus *b, const struct core_event *ev)
{
    if (b->later_n == b->later_cap) {
        uint32_t cap = b->later_cap == 0 ? 64 : b->later_cap * 2;
        struct core_event *at = realloc(b->later, cap * sizeof *at);
        ASSERT(at != NULL); /* forgetting an event would lose a step */
        b->later = at;
        b->later_cap = cap;
    }
    b->later[b->later_n] = *ev;
    b->later[b->later_n++].text = arena_str(&b->later_arena, ev->text);
}

/* The core has taken the new revision: it holds from its record on. What was before is the event's
 * to free, because commands behind this one may still speak of it. */
static void take_revision(struct bus *b, uint64_t run)
{
    struct open_plan *p = open_plan_of_run(b, run);

    ASSERT(p != NULL && b->revision != NULL);
    open_plan_revise(p, b->revision);
    b->revision = NULL;
}

/* The journal has failed in the middle of the commands: the daemon stops, but until it has, the
 * core holds on to what it has taken over. */
static void keep_revision(struct bus *b)
{
    for (uint32_t i = 0; b->revision != NULL && i < b->commands.n; i++) {
        if (b->commands.at[i].type == CMD_REVISED) {
            take_revision(b, b->commands.at[i].run);
        }
    }
}

/* Commands in the order of the core: rows now, everything else once the rows are durable. */
static enum bt_code take_commands(struct bus *b, enum core_reject *ret_reject, struct bt_error *err)
{
    for (uint32_t i = 0; i < b->commands.n; i++) {
        const struct core_cmd *cmd = &b->commands.at[i];
        if (cmd->type == CMD_RECORD) {
            enum bt_code code;
            code = bus_record(b, &cmd->rec, err);
            if (code != BT_OK) {
                return code;
            }
        } else if (cmd->type == CMD_REJECT) {
            *ret_reject = cmd->reject;
        } else if (cmd->type == CMD_REVISED) {
            take_revision(b, cmd->run);
        } else if (cmd->type == CMD_JOB || cmd->type == CMD_JOB_STOP) {
            job_on_command(b, cmd);
        } else if (cmd->type != CMD_REGISTERED) {
            struct effect *e = bus_effect(b, EFFECT_COMMAND);
            e->cmd = *cmd;
            e->cmd.text = bus_turn_text(b, cmd->text);
        }
    }
    return BT_OK;
}

/* A new run's plan must be in its place before the first record about it is rendered. */
static void bind_pending(struct bus *b, uint64_t *ret_run)
{
    if (b->commands.n > 0 && b->commands.at[0].type == CMD_REJECT) {
        open_plan_session_drop(b, b->pending);
        return;
    }
    open_plan_bind(b, core_newest_run(b->core));
    if (ret_run != NULL) {
        *ret_run = core_newest_run(b->core);
    }
}

enum bt_code bus_feed(struct bus *b, struct core_event *ev, enum core_reject *ret_reject,
                      uint64_t *ret_run, struct bt_error *err)
{
    enum core_reject reject = REJECT_NONE;
    enum bt_code code;

    ev->now = b->now;
    ev->wall = b->wall;
    b->commands.n = 0;
    if (b->pending != NULL) {
        open_plan_session(b, b->pending);
    }
    core_handle(b->core, ev, &b->commands);
    if (b->pending != NULL) {
        bind_pending(b, ret_run);
    }
    code = take_commands(b, &reject, err);
    if (code != BT_OK) {
        keep_revision(b);
    }
    if (reject != REJECT_NONE && (ev->type == CORE_RESULT || ev->type == CORE_STATE)) {
        b->stats.results_rejected++;
        log_debug("step.result.rejected", "why=\"%s\" step=%u attempt=%u", core_reject_text(reject),
                  ev->step, ev->attempt);
    }
    if (ret_reject != NULL) {
        *ret_reject = reject;
    }
    return code;
}

static msec parked_deadline(const struct bus *b)
{
    msec d = MSEC_NEVER;
    for (uint32_t i = 0; i < BUS_PARKED_MAX && b->parked_n > 0; i++) {
        if (b->parked[i].request != 0 && b->parked[i].deadline < d) {
            d = b->parked[i].deadline;
        }
    }
    return d;
}

msec bus_deadline(const struct bus *b)
{
    msec d = core_deadline(b->core);
    msec parked = parked_deadline(b);

    if (b->later_n > 0) {
        return 0;
    }
    d = parked < d ? parked : d;
    return b->heartbeat_at < d ? b->heartbeat_at : d;
}

bool bus_is_full(const struct bus *b)
{
    return b->out.len > TURN_BYTES;
}

static void heartbeat(struct bus *b)
{
    struct msg_heartbeat m = {.last_seq = journal_committed_seq(b->journal),
                              .ts_ms = b->wall,
                              .type = STR_LIT("heartbeat")};
    struct msg_part part = {MSG_heartbeat, &m};

    if (b->now < b->heartbeat_at) {
        return;
    }
    b->heartbeat_at = b->now + 1000;
    buf_clear(&b->row);
    if (msg_write(&b->row, WIRE_MSGPACK, &part, 1, NULL) == BT_OK) {
        link_publish(b->pub, STR_LIT("system/heartbeat"), b->row.at, b->row.len);
    }
}

enum bt_code bus_end(struct bus *b, struct bt_error *err)
{
    bool news = journal_dirty(b->journal);

    if (!b->failed && core_deadline(b->core) <= b->now) {
        struct core_event tick = {.type = CORE_TICK};
        struct bt_error why;
        if (bus_feed(b, &tick, NULL, NULL, &why) != BT_OK) {
            bus_fail(b, &why);
        }
        news = news || journal_dirty(b->journal);
    }
    if (!b->failed && b->news_n > 0) {
        jobs_turn(b);
        news = true;
    }
    if (!b->failed && news) {
        struct bt_error why;
        b->stats.commits++;
        if (journal_commit(b->journal, &why) != BT_OK) {
            bus_fail(b, &why);
        }
    }
    if (b->failed) {
        *err = b->fatal;
        return BT_IO;
    }
    bus_perform(b);
    if (b->parked_n > 0) {
        api_answer_parked_reads(b, news);
        bus_perform(b);
    }
    heartbeat(b);
    return BT_OK;
}

void bus_on_link(struct bus *b, struct link_event *ev)
{
    if (ev->type == LINK_REQUEST) {
        b->stats.requests++;
        api_on_request(b, ev->request, link_msg_bytes(ev->msg));
    } else if (ev->lane != NULL) {
        lanes_on_link(b, ev);
    }
    if (ev->msg != NULL) {
        link_msg_free(ev->msg);
    }
}

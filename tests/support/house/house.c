#include "tests/support/house/house_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/doc.h"
#include "supervisor/api/shown.h"
#include "supervisor/artifacts/sweep.h"
#include "supervisor/conversation/conversation.h"
#include "supervisor/dispatch/cards.h"
#include "supervisor/dispatch/job.h"
#include "supervisor/dispatch/trunk.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/retention/retention.h"
#include "supervisor/schedule/schedules.h"
#include "tests/support/memory_journal/memory_journal.h"

static const char token[] = HOUSE_TOKEN;

/* What a restart leaves behind: reachable for the checker of leaks, as in the daemon. */
static void **left;
static size_t left_n;

static void leave(void *p)
{
    if (left_n % 64 == 0) {
        left = realloc(left, (left_n + 64) * sizeof *left);
        assert_non_null(left);
    }
    left[left_n++] = p;
}

void (*house_rooms_act)(bool act);

/* ---- the rooms ---- */

static enum bt_code on_plan_ended(struct engine *engine, const struct open_plan *p,
                                  const struct record *rec, struct str summary, size_t not_done,
                                  struct bt_error *err)
{
    const enum plan_status status = REC(rec, plan_completed)->status;
    const enum bt_code code =
        schedules_plan_ended(engine_hooks(engine)->schedules, str_from(p->id), status, err);

    return code != BT_OK ? code : conversation_plan_ended(engine, p, rec, summary, not_done, err);
}

/* ---- processes ---- */

static const struct house_process *process_of(const struct house *h, struct str agent_id,
                                              uint32_t ix)
{
    for (uint32_t i = 0; i < h->processes_n; i++) {
        if (str_is(agent_id, h->processes[i].agent_id) && ix-- == 0) {
            return &h->processes[i];
        }
    }
    return NULL;
}

static bool process_about(void *of, struct str agent_id, struct agent_process *ret)
{
    const struct house_process *p = process_of(of, agent_id, 0);

    if (p != NULL) {
        (void)snprintf(ret->why, sizeof ret->why, "%s", p->why);
        (void)snprintf(ret->log, sizeof ret->log, "%s", p->log);
    }
    return p != NULL;
}

static bool process_view(void *of, struct str agent_id, uint32_t ix, struct process_view *ret)
{
    const struct house_process *p = process_of(of, agent_id, ix);

    if (p != NULL) {
        *ret = p->view;
    }
    return p != NULL;
}

static enum bt_code process_order(void *of, const struct process_order *order,
                                  struct process_names *ret, struct bt_error *err)
{
    static const char *const verbs[] = {"start", "stop", "restart"};
    struct house *h = of;
    const struct house_process *p;
    const size_t at = strlen(h->ordered);

    ret->n = 0;
    for (uint32_t i = 0; (p = process_of(h, order->agent_id, i)) != NULL; i++) {
        if (order->process.len == 0 || str_is(order->process, p->view.name)) {
            (void)snprintf(ret->at[ret->n++], PROCESS_NAME_BYTES, "%s", p->view.name);
        }
    }
    (void)snprintf(h->ordered + at, sizeof h->ordered - at, "%s %.*s/%.*s%s; ", verbs[order->verb],
                   STR_ARG(order->agent_id), STR_ARG(order->process), order->at_once ? " now" : "");
    return ret->n > 0 ? BT_OK : err_set(err, BT_NOT_FOUND, "no such process of ours");
}

static bool process_is_ours(void *of, struct str instance_id)
{
    const struct house *h = of;

    (void)instance_id;
    return h->ours;
}

static void tell(struct house *h, const char *what, struct str instance_id)
{
    const size_t at = strlen(h->told);

    (void)snprintf(h->told + at, sizeof h->told - at, "%s %.*s; ", what, STR_ARG(instance_id));
}

static void process_kill(void *of, struct str instance_id)
{
    tell(of, "kill", instance_id);
}

static void process_lost(void *of, struct str instance_id)
{
    tell(of, "lost", instance_id);
}

/* A configuration with one change that is live; the file "bad" is refused. */
static enum bt_code on_reload(struct engine *engine, struct str file, bool check,
                              struct msg_setting_change *ret, uint32_t max, uint32_t *ret_n,
                              struct bt_error *err)
{
    (void)engine;
    if (str_is(file, "bad")) {
        return err_set(err, BT_INVALID, "line 1: expected a map");
    }
    assert_true(max > 0);
    *ret_n = 1;
    ret[0] = (struct msg_setting_change){.key = STR_LIT("leaseMs"), .live = !check};
    return BT_OK;
}

static bool plan_is_open(void *self, struct uuid plan_id)
{
    const struct house *h = self;
    char id[UUID_TEXT_LEN + 1];

    uuid_format(plan_id, id);
    return open_plan_by_id(h->engine, str_from(id)) != NULL;
}

static void on_deleted(void *self, struct uuid plan_id)
{
    (void)self;
    (void)plan_id;
}

static void is_acting(bool acting)
{
    if (house_rooms_act != NULL) {
        house_rooms_act(acting);
    }
}

static enum bt_code new_rooms(struct house *h, struct bt_error *err)
{
    static const struct sweep_options no_files = {.root = NULL};
    static const struct retention_options for_ever = {.completed_ms = 0};
    const struct retention_hooks retention = {h, plan_is_open, NULL, on_deleted};
    enum bt_code code = link_new(256, &h->link, err);

    h->engine = NULL;
    h->hooks = (struct process_hooks){.of = h,
                                      .is_ours = process_is_ours,
                                      .kill = process_kill,
                                      .lost = process_lost,
                                      .about = process_about,
                                      .view = process_view,
                                      .order = process_order};
    if (code == BT_OK) {
        code = engine_new(&h->opt, h->journal, h->link, &h->engine, err);
    }
    if (code == BT_OK) {
        code = dispatch_new(&h->opt, h->link, &h->hooks, conversation_job_over, &h->dispatch, err);
    }
    if (code == BT_OK) {
        code = api_new(&h->api, err);
    }
    if (code == BT_OK) {
        code = sweep_new(&no_files, h->engine, &h->sweep, err);
    }
    if (code == BT_OK) {
        code = retention_new(&for_ever, &retention, h->journal, &h->retention, err);
    }
    if (code == BT_OK) {
        code = schedules_new(h->engine, &h->schedules, err);
    }
    return code;
}

static void open_rooms(struct house *h)
{
    struct engine_hooks hooks;

    if (new_rooms(h, &h->why) != BT_OK) {
        h->dead = true;
        return;
    }
    is_acting(false); /* what follows is the house's own memory */
    leave(h->dispatch);
    leave(h->api);
    leave(h->sweep);
    leave(h->retention);
    is_acting(true);
    hooks = (struct engine_hooks){.reload = on_reload,
                                  .sweep = h->sweep,
                                  .retention = h->retention,
                                  .schedules = h->schedules,
                                  .dispatch = h->dispatch,
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
                                  .api = h->api,
                                  .projections = api_projections(h->api),
                                  .on_request = api_on_request,
                                  .on_request_meanwhile = api_on_request_meanwhile,
                                  .after_commit = api_after_commit};
    engine_set_hooks(h->engine, &hooks);
}

static void recover(struct house *h)
{
    struct bt_error err;
    uint64_t n = 0;

    if (h->dead) {
        return;
    }
    engine_begin(h->engine, h->now, h->wall);
    if (engine_recover(h->engine, &n, &err) != BT_OK ||
        schedules_load(h->schedules, &err) != BT_OK ||
        engine_system_record(h->engine, REC_SUPERVISOR_STARTED, STR_LIT(""), n, &err) != BT_OK ||
        engine_end(h->engine, &err) != BT_OK) {
        h->dead = true;
        h->why = err;
    }
}

static enum bt_code open_journal(struct house *h, struct bt_error *err)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS, .blobs_of = row_blobs};

    return h->dir == NULL ? memory_journal_open(&h->journal, err)
                          : journal_open_sqlite(h->dir, &opt, &h->journal, err);
}

/* The journal, the rooms, and what they find. */
static void start(struct house *h)
{
    is_acting(true);
    if (h->journal == NULL && open_journal(h, &h->why) != BT_OK) {
        h->dead = true;
    } else {
        house_watch_journal(h);
        open_rooms(h);
    }
    if (!h->dead) {
        h->now = engine_started(h->engine) > h->now ? engine_started(h->engine) : h->now;
        recover(h);
    }
    is_acting(false);
}

struct engine_options house_options(void)
{
    return (struct engine_options){.token = STR_LIT(HOUSE_TOKEN),
                                   .state_dir = "/nowhere",
                                   .control_url = "tcp://127.0.0.1:0",
                                   .events_url = "tcp://127.0.0.1:0",
                                   .durability = DURABILITY_PROCESS,
                                   .defaults = plan_defaults_builtin(),
                                   .planner = "keyword",
                                   .heartbeat_ms = HOUSE_BEAT_MS,
                                   .lease_ms = HOUSE_LEASE_MS,
                                   .agent_wait_ms = 1000,
                                   .cancel_grace_ms = 1000,
                                   .plans_max = 64,
                                   .agents_max = 16,
                                   .instances_max = 16,
                                   .result_max = LIMIT_RESULT_BYTES};
}

static struct house *open_at(const struct engine_options *opt, const char *dir)
{
    struct house *h = calloc(1, sizeof *h);

    assert_non_null(h);
    h->opt = *opt;
    h->wall = 1700000000000;
    h->dir = dir;
    h->opt.sessions = house_roles_new(h);
    start(h);
    return h;
}

struct house *house_open_with(const struct engine_options *opt)
{
    struct house *h = open_at(opt, NULL);

    if (h->dead) {
        fail_msg("%s", h->why.msg);
    }
    return h;
}

struct house *house_open(void)
{
    const struct engine_options opt = house_options();

    return house_open_with(&opt);
}

struct house *house_open_in(const char *dir)
{
    const struct engine_options opt = house_options();

    return open_at(&opt, dir);
}

static void close_rooms(struct house *h)
{
    schedules_free(h->schedules);
    h->schedules = NULL;
    if (h->engine != NULL) {
        engine_free(h->engine);
    }
    link_free(h->link);
    h->engine = NULL;
    h->link = NULL;
}

void house_close(struct house *h)
{
    close_rooms(h);
    journal_close(h->journal);
    house_roles_done(h);
    arena_done(&h->arena);
    free(h);
}

void house_restart(struct house *h)
{
    close_rooms(h);
    h->journal->ops = h->real;
    if (h->dir == NULL) {
        memory_journal_restart(h->journal);
    } else {
        journal_close(h->journal);
        h->journal = NULL;
    }
    h->fail_at = 0;
    h->dead = false;
    h->agents_n = 0;
    start(h);
    if (h->dead && h->dir == NULL) {
        fail_msg("%s", h->why.msg);
    }
}

/* ---- cycles ---- */

void house_cycle_once(struct house *h)
{
    struct link_event ev;
    struct bt_error err;

    if (h->dead) {
        return;
    }
    is_acting(true);
    engine_begin(h->engine, h->now, h->wall);
    for (int i = 0; i < ENGINE_CYCLE_EVENTS && link_next(h->link, &ev); i++) {
        engine_on_link(h->engine, &ev);
    }
    api_take_turns(h->engine);
    schedules_cycle(h->schedules);
    if (engine_end(h->engine, &err) != BT_OK ||
        retention_cycle(h->retention, h->now, h->wall, &err) != BT_OK) {
        h->dead = true;
        h->why = err;
    }
    is_acting(false);
}

static struct house_agent *agent_of(struct house *h, const struct link_lane *lane)
{
    for (uint32_t i = h->agents_n; i > 0; i--) {
        if (strcmp(h->agents[i - 1].url, lane->url) == 0) {
            return &h->agents[i - 1];
        }
    }
    return NULL;
}

static const char *sent_on(struct house *h, const struct link_lane *lane)
{
    return house_keep(h, lane->sent.at, lane->sent.len);
}

/* What an agent answers by itself. False: it is work. */
static bool answer_alone(struct house *h, struct link_lane *lane, struct house_agent *agent)
{
    const char *request = sent_on(h, lane);
    const char *type = house_get(h, request, "type");
    const char *own = agent->tells != NULL ? agent->tells(agent, request) : NULL;
    const char *answer;

    if (own != NULL) {
        fake_lane_answer(lane, own, strlen(own));
        return true;
    }
    if (strcmp(type, "lane.hello") == 0 || strcmp(type, "agent.ping") == 0) {
        answer =
            house_text(h, "{'v':1,'id':'%s','ok':true,'type':'ok'}", house_get(h, request, "id"));
    } else if (strcmp(type, "step.query") == 0 || strcmp(type, "step.cancel") == 0) {
        answer = house_text(h,
                            "{'v':1,'id':'%s','ok':true,'type':'step.state','key':'%s',"
                            "'state':'unknown'}",
                            house_get(h, request, "id"), house_get(h, request, "key"));
    } else {
        return false;
    }
    fake_lane_answer(lane, answer, strlen(answer));
    return true;
}

static bool agents_act(struct house *h)
{
    bool acted = false;

    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        struct link_lane *lane = fake_link_lane(h->link, i);
        struct house_agent *agent = agent_of(h, lane);
        if (lane->retired || agent == NULL || agent->deaf) {
            continue;
        }
        if (!lane->up) {
            fake_lane_up(lane);
            acted = true;
        } else if (lane->outstanding && !bundle_is(buf_str(&lane->sent))) {
            acted = answer_alone(h, lane, agent) || acted;
        }
    }
    return acted;
}

void house_cycle(struct house *h)
{
    int left_over = 50;

    do {
        house_cycle_once(h);
    } while (!h->dead &&
             (agents_act(h) || engine_deadline(h->engine) <= h->now || api_is_behind(h->api) ||
              retention_deadline(h->retention) <= h->now ||
              schedules_deadline(h->schedules, h->now, h->wall) <= h->now) &&
             left_over-- > 0);
}

static void beat(struct house *h)
{
    const char *who = house_as(h, NULL);

    for (uint32_t i = 0; i < h->agents_n; i++) {
        struct house_agent *a = &h->agents[i];
        if (!a->silent && a->epoch > 0) {
            (void)house_ask(h, "agent.heartbeat", "'instanceId':'%s','epoch':%llu", a->instance,
                            (unsigned long long)a->epoch);
        }
    }
    (void)house_as(h, who);
}

void house_wait(struct house *h, msec ms)
{
    while (ms > 0 && !h->dead) {
        const msec step = ms < HOUSE_BEAT_MS / 2 ? ms : HOUSE_BEAT_MS / 2;
        h->now += step;
        h->wall += step;
        ms -= step;
        beat(h);
        house_cycle(h);
    }
    house_cycle(h);
}

/* ---- requests ---- */

const char *house_late_answer(struct house *h)
{
    const struct buf *answer = fake_link_answer_to(h->link, h->requests);

    const struct str body =
        answer != NULL ? house_unseal(h, buf_str(answer)) : (struct str){NULL, 0};

    return body.ptr != NULL ? house_keep(h, body.ptr, body.len) : NULL;
}

const char *house_ask_bytes(struct house *h, const char *bytes, size_t len)
{
    fake_link_request(h->link, h->remote, ++h->requests, bytes, len);
    for (int i = 0; i < 5 && house_late_answer(h) == NULL; i++) {
        house_cycle(h);
    }
    return house_late_answer(h);
}

static const char *ask(struct house *h, const char *type, const char *fields, va_list args)
{
    const char *more = house_text_of(h, fields, args);
    const char *comma = more[strspn(more, " ")] != 0 ? "," : "";
    const char *request;
    const char *answer;
    struct buf sealed;

    if (!house_is_sealed(h)) {
        request = house_text(h, "{'v':1,'type':'%s','id':'q','token':'%s'%s%s}", type, token, comma,
                             more);
        return house_ask_bytes(h, request, strlen(request));
    }
    buf_init(&sealed, LIMIT_STEP_BYTES);
    house_seal(h, house_text(h, "{'v':1,'type':'%s','id':'q'%s%s}", type, comma, more), &sealed);
    answer = house_ask_bytes(h, (const char *)sealed.at, sealed.len);
    buf_done(&sealed);
    return answer;
}

const char *house_ask(struct house *h, const char *type, const char *fields, ...)
{
    const char *answer;
    va_list args;

    va_start(args, fields);
    answer = ask(h, type, fields, args);
    va_end(args);
    return answer;
}

void house_refused(struct house *h, const char *code, const char *words, const char *type,
                   const char *fields, ...)
{
    const char *answer;
    va_list args;

    va_start(args, fields);
    answer = ask(h, type, fields, args);
    va_end(args);
    house_is(h, answer, "type", "error");
    house_is(h, answer, "ok", "false");
    house_is(h, answer, "error.code", code);
    house_has(h, answer, "error.message", words);
    house_check_error(h, answer);
}

const char *house_ok(struct house *h, const char *type, const char *fields, ...)
{
    const char *answer;
    va_list args;

    va_start(args, fields);
    answer = ask(h, type, fields, args);
    va_end(args);
    house_is(h, answer, "ok", "true");
    return answer;
}

const char *house_submit(struct house *h, const char *fields, ...)
{
    const char *answer;
    va_list args;

    va_start(args, fields);
    answer = ask(h, "plan.submit", fields, args);
    va_end(args);
    house_is(h, answer, "ok", "true");
    return house_get(h, answer, "planId");
}

/* ---- agents ---- */

static struct house_agent *join(struct house *h, const char *id, const char *instance,
                                uint32_t capacity, const char *card_more, const char *more)
{
    struct house_agent *a = &h->agents[h->agents_n];
    const char *answer;

    assert_true(h->agents_n < HOUSE_AGENTS_MAX);
    *a = (struct house_agent){.epoch = 0};
    (void)snprintf(a->id, sizeof a->id, "%s", id);
    (void)snprintf(a->instance, sizeof a->instance, "%s", instance);
    (void)snprintf(a->url, sizeof a->url, "tcp://127.0.0.1:%u", 40000 + h->agents_n);
    h->agents_n++;
    answer = house_ask(h, "agent.register",
                       "'card':{'agentId':'%s','name':'%s','version':'1',%s},'capacity':%u,"
                       "'endpoint':'%s','protocol':[1],'instanceId':'%s',"
                       "'sessionKey':'0123456789abcdef%u'%s",
                       id, id, card_more, capacity, a->url, a->instance, h->agents_n, more);
    if (strcmp(house_get(h, answer, "ok"), "true") != 0) {
        fail_msg("%s", answer);
    }
    a->epoch = strtoull(house_get(h, answer, "epoch"), NULL, 10);
    house_cycle(h);
    return a;
}

static const char skill[] = "'skills':[{'id':'do','description':'Does a thing.'}]";

struct house_agent *house_join_as(struct house *h, const char *id, uint32_t capacity,
                                  const char *card_more, const char *more)
{
    return join(h, id, house_text(h, "0190F3C2-7A1B-7C3D-9E4F-%012u", h->agents_n + 1), capacity,
                card_more, more);
}

struct house_agent *house_join(struct house *h, const char *id, uint32_t capacity)
{
    return house_join_as(h, id, capacity, skill, "");
}

struct house_agent *house_join_instance(struct house *h, const char *id, const char *instance,
                                        uint32_t capacity)
{
    return join(h, id, instance, capacity, skill, "");
}

struct link_lane *house_lane(struct house *h, const char *agent, const char *step)
{
    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        struct link_lane *lane = fake_link_lane(h->link, i);
        const struct house_agent *a = agent_of(h, lane);
        if (lane->outstanding && !lane->retired && a != NULL && strcmp(a->id, agent) == 0 &&
            !bundle_is(buf_str(&lane->sent))) {
            const char *request = sent_on(h, lane);
            const char *is = house_get(h, request, "stepId");
            if (strcmp(house_get(h, request, "type"), "step.execute") == 0 &&
                (step == NULL || (is != NULL && strcmp(is, step) == 0))) {
                return lane;
            }
        }
    }
    return NULL;
}

const char *house_work(struct house *h, const char *agent, const char *step)
{
    const struct link_lane *lane;

    house_cycle(h);
    lane = house_lane(h, agent, step);
    return lane != NULL ? sent_on(h, lane) : NULL;
}

static void reply(struct house *h, const char *agent, const char *step, const char *more)
{
    const char *request = house_work(h, agent, step);
    const char *answer;

    if (request == NULL) {
        fail_msg("%s has no work", agent);
    }
    answer = house_text(h,
                        "{'v':1,'id':'%s','ok':true,'type':'step.result','key':'%s','attempt':%s,"
                        "'epoch':%s,%s}",
                        house_get(h, request, "id"), house_get(h, request, "key"),
                        house_get(h, request, "attempt"), house_get(h, request, "epoch"), more);
    fake_lane_answer(house_lane(h, agent, step), answer, strlen(answer));
    house_cycle(h);
}

void house_answer(struct house *h, const char *agent, const char *step, const char *fields, ...)
{
    const char *more;
    va_list args;

    va_start(args, fields);
    more = house_text_of(h, fields, args);
    va_end(args);
    reply(h, agent, step, more);
}

void house_done(struct house *h, const char *agent, const char *fields, ...)
{
    const char *more;
    va_list args;

    va_start(args, fields);
    more = house_text_of(h, fields, args);
    va_end(args);
    reply(
        h, agent, NULL,
        house_text(h, "'outcome':'completed'%s%s", more[strspn(more, " ")] != 0 ? "," : "", more));
}

void house_failed(struct house *h, const char *agent, const char *cls, bool retryable)
{
    house_answer(h, agent, NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'%s','message':'no luck',"
                 "'retryable':%s}",
                 cls, retryable ? "true" : "false");
}

void house_hang_up(struct house *h, const char *agent, bool sent)
{
    struct link_lane *lane = house_lane(h, agent, NULL);

    assert_non_null(lane);
    fake_lane_down(lane, sent);
    house_cycle(h);
}

/* ---- events ---- */

static const char *event_at(struct house *h, uint32_t i)
{
    const struct fake_frame *f = fake_link_frame(h->link, i);
    const char *ret;
    struct bt_error err;
    struct buf out;

    buf_init(&out, 64 * 1024);
    assert_int_equal(doc_to_json((struct doc){f->body.at, f->body.len}, false, &out, &err), BT_OK);
    ret = house_keep(h, out.at, out.len);
    buf_done(&out);
    return ret;
}

static const char *find_event(struct house *h, const char *type, uint32_t *ret_n)
{
    const char *last = NULL;

    *ret_n = 0;
    for (uint32_t i = 0; i < fake_link_frames(h->link); i++) {
        const char *event = event_at(h, i);
        const char *is = house_get(h, event, "type");
        if (is != NULL && strcmp(is, type) == 0) {
            (*ret_n)++;
            last = event;
        }
    }
    return last;
}

uint32_t house_seen(struct house *h, const char *type)
{
    uint32_t n;

    (void)find_event(h, type, &n);
    return n;
}

const char *house_event(struct house *h, const char *type)
{
    uint32_t n;

    return find_event(h, type, &n);
}

/* What agents ask of the supervisor: register, heartbeat, drain, deregister, progress, late
 * results. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "registry/card.h"
#include "supervisor/api/api_internal.h"
#include "supervisor/dispatch/cards.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/dispatch/keys.h"
#include "supervisor/dispatch/lanes.h"
#include "supervisor/dispatch/trunk.h"

enum { SESSION_KEY_MIN = 16, UNREACHABLE_LEASES = 2 };

static bool speaks_version_1(struct doc protocol)
{
    struct doc_head head = doc_head(protocol);

    if (protocol.ptr == NULL || head.kind == DOC_UINT) {
        return protocol.ptr == NULL || head.u == 1;
    }
    for (uint32_t i = 0; head.kind == DOC_ARRAY && i < head.n; i++) {
        struct doc_head v = doc_head(doc_at(protocol, i));
        if (v.kind == DOC_UINT && v.u == 1) {
            return true;
        }
    }
    return false;
}

static bool same_port(struct str url, const char *other)
{
    const char *port = strrchr(other, ':');
    const size_t n = port != NULL ? strlen(port) : 0;

    return n > 0 && url.len >= n && memcmp(url.ptr + url.len - n, port, n) == 0;
}

static bool is_allowed(const struct engine_options *opt, struct str url)
{
    bool found = false;

    for (uint32_t i = 0; i < opt->n_agent_endpoints && !found; i++) {
        const char *allowed = opt->agent_endpoints[i];
        const size_t n = strlen(allowed);
        found = n > 0 && allowed[n - 1] == '*'
                    ? url.len >= n - 1 && memcmp(url.ptr, allowed, n - 1) == 0
                    : str_is(url, allowed);
    }
    return found;
}

/* The daemon dials it: nothing to resolve, no path of its file system, not itself. */
static enum bt_code check_endpoint(struct engine *engine, struct str url, struct bt_error *err)
{
    const bool near = link_url_is_near(url);

    if (near &&
        (same_port(url, engine_control_url(engine)) || same_port(url, engine_events_url(engine)))) {
        return err_set(err, BT_INVALID, "endpoint: is not an address that an agent may have");
    }
    if (!near && !is_allowed(engine_options(engine), url)) {
        return err_set(err, BT_INVALID,
                       "endpoint: expected tcp://127.0.0.1:PORT or tcp://[::1]:PORT, or an address "
                       "that the setting allowEndpoints has");
    }
    if (link_url_check(url, true, false, err) != BT_OK) {
        return err_wrap(err, "endpoint");
    }
    return BT_OK;
}

/* Everything that is wrong with a registration before the core sees it. */
static enum bt_code check_registration(struct engine *engine, const struct request *rq,
                                       const struct msg_agent_register *m, struct uuid *ret_id,
                                       struct uuid *ret_process, struct bt_error *err)
{
    uint32_t skill = 0;
    enum card_problem problem = card_check(&m->card, &skill);

    if (problem != CARD_OK) {
        if (problem >= CARD_SKILL_ID_BAD && skill < m->card.skills_n) {
            return err_set(err, BT_INVALID, "card.skills[%u]: %s", skill,
                           card_problem_text(problem));
        }
        return err_set(err, BT_INVALID, "card: %s", card_problem_text(problem));
    }
    if (!uuid_parse(m->instance_id, ret_id) || uuid_is_nil(*ret_id)) {
        return err_set(err, BT_INVALID,
                       "instanceId: expected a UUID such as 0190F3C2-7A1B-7C3D-9E4F-0123456789AB");
    }
    if (m->capacity < 1 || m->capacity > LIMIT_CAPACITY) {
        return err_set(err, BT_INVALID, "capacity: expected 1 to %d", LIMIT_CAPACITY);
    }
    if (m->session_key.len < SESSION_KEY_MIN) {
        return err_set(err, BT_INVALID, "sessionKey: expected at least %d random characters",
                       SESSION_KEY_MIN);
    }
    if (engine_options(engine)->auth_required && !m->proof) {
        return err_set(err, BT_INVALID,
                       "proof: this daemon wants agents that prove themselves on their lanes "
                       "(auth: required)");
    }
    if (m->process_id.len > 0 &&
        (!uuid_parse(m->process_id, ret_process) || uuid_is_nil(*ret_process))) {
        return err_set(err, BT_INVALID,
                       "processId: expected a UUID that the process made up at its start");
    }
    if (!speaks_version_1(m->protocol)) {
        return err_set(err, BT_INVALID,
                       "protocol: none of the versions is supported; supported: 1");
    }
    if (m->dial_in) {
        return BT_OK;
    }
    if (engine_is_remote(rq->handle)) {
        return err_set(err, BT_INVALID,
                       "dialIn: an agent on another host dials the lanes: send dialIn true, and no "
                       "endpoint");
    }
    return check_endpoint(engine, m->endpoint, err);
}

/* Into a place that begins with zeros. */
static void copy_text(char *to, size_t cap, struct str from)
{
    size_t n = from.len < cap - 1 ? from.len : cap - 1;
    if (n > 0) { /* an absent text has no bytes to point to */
        memcpy(to, from.ptr, n);
    }
}

static void remember_registered(struct engine *engine, struct uuid id)
{
    struct api *api = api_of(engine);

    if (api->registered_n < API_REGISTERED_MAX) {
        api->registered[api->registered_n++] = id;
    }
}

static enum bt_code open_instance(struct engine *engine, const struct request *rq,
                                  const struct msg_agent_register *m, uint32_t agent, uint32_t slot,
                                  uint64_t epoch, struct bt_error *err)
{
    struct lane_instance *proto = calloc(1, sizeof *proto);
    enum bt_code code;

    if (proto == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for an instance");
    }
    proto->slot = slot;
    proto->epoch = epoch;
    proto->agent = agent;
    proto->capacity = (uint32_t)m->capacity;
    proto->bundle = trunk_bundle(m->bundle, m->capacity);
    proto->pid = (uint32_t)m->pid;
    proto->form = rq->reader.form;
    proto->proves = m->proof;
    copy_text(proto->from, sizeof proto->from, engine_request_peer(engine));
    copy_text(proto->by, sizeof proto->by, str_from(rq->who->id));
    proto->remote = engine_is_remote(rq->handle);
    (void)uuid_parse(m->process_id, &proto->process);
    proto->opened = engine_now(engine);
    copy_text(proto->version, sizeof proto->version, m->card.version);
    copy_text(proto->id, sizeof proto->id, m->instance_id);
    copy_text(proto->endpoint, sizeof proto->endpoint,
              m->dial_in ? (struct str){"", 0} : m->endpoint);
    copy_text(proto->session_key, sizeof proto->session_key, m->session_key);
    code = lanes_open(engine, proto, err);
    free(proto);
    return code;
}

static void answer_registered(struct engine *engine, struct request *rq,
                              const struct msg_agent_register *m, uint32_t slot, uint64_t epoch)
{
    struct msg_agent_registered_ok ok = {.epoch = epoch,
                                         .lease_ms = engine_options(engine)->lease_ms,
                                         .heartbeat_ms = engine_options(engine)->heartbeat_ms};
    struct lane_instance *in = lanes_instance(engine, slot, epoch);
    struct str lanes[LIMIT_CAPACITY + 1];

    if (m->dial_in && in != NULL) {
        for (uint32_t i = 0; i <= lanes_pipes(in); i++) {
            const struct lane *lane = lanes_pipe(in, i);
            lanes[i] = str_from(lane->link != NULL ? link_lane_url(lane->link) : "");
        }
        ok.lanes = lanes;
        ok.lanes_n = lanes_pipes(in) + 1;
    }
    if (in != NULL && in->bundle > 0) {
        ok.pipes = BUNDLE_PIPES;
    }
    request_answer(engine, rq, MSG_agent_registered_ok, &ok);
}

/* Taking the place of an instance needs the same agent: a stranger must not end another's work
 * (G16). */
static bool is_of_another_agent(const struct engine *engine, struct uuid id, uint32_t agent)
{
    struct instance_view live;
    uint32_t slot = registry_instance(engine_registry(engine), id);

    return slot != REGISTRY_NONE && registry_instance_view(engine_registry(engine), slot, &live) &&
           live.agent != agent;
}

/* A session key is the secret of one process: what has it answers for the instance. Processes that
 * do not name themselves are not looked at. */
static bool is_key_of_another(struct engine *engine, const struct msg_agent_register *m,
                              const struct core_event *ev)
{
    const struct uuid process = CORE_EV(ev, registration)->process;

    const struct lane_instance *in =
        uuid_is_nil(process) ? NULL : lanes_by_key(engine, m->session_key);
    struct uuid id;

    return in != NULL && uuid_parse(str_from(in->id), &id) && !uuid_eq(id, ev->instance);
}

/* An instance is of the credential that registered it; an admin acts for any. */
static bool is_of(const struct lane_instance *in, const struct identity *who)
{
    return who->role == ROLE_ADMIN || str_is(str_from(who->id), in->by);
}

/* A live instance of another credential: its place is not to be taken. */
static bool is_of_another_credential(struct engine *engine, struct uuid id,
                                     const struct identity *who)
{
    struct instance_view live;
    const uint32_t slot = registry_instance(engine_registry(engine), id);
    const struct lane_instance *in;

    if (slot == REGISTRY_NONE || !registry_instance_view(engine_registry(engine), slot, &live)) {
        return false;
    }
    in = lanes_instance(engine, slot, live.epoch);
    return in != NULL && !is_of(in, who);
}

/* What the credential may be. False after refusing. */
static bool may_be_agent(struct engine *engine, struct request *rq, struct str agent_id)
{
    const struct identity *who = rq->who;
    struct buf globs;

    if (identity_may_be_agent(who, agent_id)) {
        return true;
    }
    buf_init(&globs, 2048);
    for (uint32_t i = 0; i < who->agents_n; i++) {
        buf_printf(&globs, "%s%s", i > 0 ? ", " : "", who->agents[i]);
    }
    log_warn("agent.refused", "agent=%.*s credential=%s", STR_ARG(agent_id), who->id);
    request_refuse_text(engine, rq, BT_UNAUTHORIZED,
                        "card.agentId: the credential '%s' may be the agents %s, not '%.*s'",
                        who->id, globs.len > 0 ? buf_cstr(&globs) : "(none)", STR_ARG(agent_id));
    buf_done(&globs);
    return false;
}

/* The lanes that the other instances have. */
static uint32_t lanes_of_others(struct engine *engine, struct uuid id)
{
    const uint32_t slot = registry_instance(engine_registry(engine), id);
    struct instance_view live;
    const struct lane_instance *in =
        slot != REGISTRY_NONE && registry_instance_view(engine_registry(engine), slot, &live)
            ? lanes_instance(engine, slot, live.epoch)
            : NULL;

    return lanes_taken(engine) - (in != NULL ? lanes_pipes(in) + 1 : 0);
}

/* Refuses and returns false when its lanes would be more than the files that may be open. */
static bool has_room_for_lanes(struct engine *engine, struct request *rq, struct uuid id,
                               uint32_t pipes)
{
    const uint32_t max = engine_lanes_max();
    const uint32_t others = lanes_of_others(engine, id);

    if (others + pipes + 1 <= max) {
        return true;
    }
    request_refuse_text(engine, rq, BT_LIMIT,
                        "capacity: the lanes of all instances are at most %u here, a quarter of "
                        "the files that may be open (ulimit -n); %u are taken, each instance has "
                        "one beside its capacity",
                        max, others);
    return false;
}

/* The same, and the instanceId is free for it. */
static bool may_register(struct engine *engine, struct request *rq, struct str agent_id,
                         struct uuid instance)
{
    if (!may_be_agent(engine, rq, agent_id)) {
        return false;
    }
    if (is_of_another_credential(engine, instance, rq->who)) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "instanceId: belongs to a live instance of another credential; make up "
                            "a new one");
        return false;
    }
    return true;
}

static void refuse_foreign_instance(struct engine *engine, struct request *rq)
{
    request_refuse_text(
        engine, rq, BT_CONFLICT,
        "instanceId: belongs to a live instance of another agent; make up a new one");
}

/* A full registry forgets an agent that left, to have room for one that comes. */
static uint32_t known_agent(struct engine *engine, struct str id)
{
    const uint32_t agent = registry_agent_add(engine_registry(engine), id, engine_now(engine));

    return agent == REGISTRY_NONE && core_agent_room(engine_core(engine))
               ? registry_agent_add(engine_registry(engine), id, engine_now(engine))
               : agent;
}

/* Everything after the checks: the core's decision, and the lanes. False = it was refused. */
static bool take_registration(struct engine *engine, struct request *rq,
                              const struct msg_agent_register *m, struct core_event *ev,
                              uint32_t *ret_slot, uint64_t *ret_epoch)
{
    const uint32_t agent = CORE_EV(ev, registration)->agent;
    enum core_reject reject;
    struct bt_error err;

    if (engine_register(engine, ev, ret_slot, ret_epoch, &reject, &err) != BT_OK) {
        engine_fail(engine, &err);
        return false;
    }
    if (reject != REJECT_NONE || *ret_slot == REGISTRY_NONE) {
        request_refuse_text(engine, rq, reject == REJECT_PROCESS ? BT_CONFLICT : BT_LIMIT, "%s",
                            core_reject_text(reject));
        return false;
    }
    if (open_instance(engine, rq, m, agent, *ret_slot, *ret_epoch, &err) != BT_OK) {
        struct core_event gone = {
            .type = CORE_GONE, .slot = *ret_slot, .epoch = *ret_epoch, .text = STR_LIT("no lanes")};
        struct bt_error why;
        log_err("agent.lanes", "%s", err.msg);
        if (engine_feed(engine, &gone, NULL, &why) != BT_OK) {
            engine_fail(engine, &why);
        }
        request_refuse(engine, rq, &err, CLASS_NONE, 1000, (struct doc){NULL, 0});
        return false;
    }
    return true;
}

void on_agent_register(struct engine *engine, struct request *rq)
{
    const struct process_hooks *processes = dispatch_processes(engine);
    struct core_event ev = {.type = CORE_REGISTER};
    struct core_ev_registration *reg = CORE_EV(&ev, registration);
    struct msg_agent_register m;
    struct bt_error err;
    uint64_t epoch = 0;
    uint32_t slot = 0;

    if (msg_read(&rq->reader, MSG_agent_register, &m, &err) != BT_OK ||
        check_registration(engine, rq, &m, &ev.instance, &reg->process, &err) != BT_OK) {
        log_warn("agent.refused", "%s", err.msg);
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    if (!may_register(engine, rq, m.card.agent_id, ev.instance)) {
        return;
    }
    reg->agent = known_agent(engine, m.card.agent_id);
    if (reg->agent == REGISTRY_NONE) {
        request_refuse_text(engine, rq, BT_LIMIT,
                            "there are %u agents already; one that leaves makes room",
                            engine_options(engine)->agents_max);
        return;
    }
    if (is_of_another_agent(engine, ev.instance, reg->agent)) {
        log_warn("agent.refused", "instance=%.*s is registered by another agent",
                 STR_ARG(m.instance_id));
        refuse_foreign_instance(engine, rq);
        return;
    }
    if (is_key_of_another(engine, &m, &ev)) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "sessionKey: another instance has it; a new process makes up a new "
                            "instanceId and a new sessionKey");
        return;
    }
    if (!has_room_for_lanes(engine, rq, ev.instance,
                            trunk_bundle(m.bundle, m.capacity) > 0 ? BUNDLE_PIPES
                                                                   : (uint32_t)m.capacity)) {
        return;
    }
    if (agent_card_keep(engine, reg->agent, &m.card, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    reg->capacity = (uint32_t)m.capacity;
    reg->pid = (uint32_t)m.pid;
    reg->spawned = processes->is_ours != NULL && processes->is_ours(processes->of, m.instance_id);
    if (!take_registration(engine, rq, &m, &ev, &slot, &epoch)) {
        return;
    }
    remember_registered(engine, ev.instance);
    log_info("agent.registered", "agent=%.*s instance=%.*s capacity=%u epoch=%llu",
             STR_ARG(m.card.agent_id), STR_ARG(m.instance_id), reg->capacity,
             (unsigned long long)epoch);
    answer_registered(engine, rq, &m, slot, epoch);
}

struct lane_instance *request_instance(struct engine *engine, struct request *rq,
                                       struct str instance_id, uint64_t epoch)
{
    struct uuid id;
    uint32_t slot = uuid_parse(instance_id, &id) ? registry_instance(engine_registry(engine), id)
                                                 : REGISTRY_NONE;

    if (slot == REGISTRY_NONE || is_of_another_credential(engine, id, rq->who)) {
        request_refuse_text(engine, rq, BT_NOT_FOUND,
                            "instance '%.*s' is not registered; register again",
                            STR_ARG(instance_id));
        return NULL;
    }
    if (!registry_is_current(engine_registry(engine), slot, epoch) ||
        lanes_instance(engine, slot, epoch) == NULL) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "epoch %llu is not the current one of this instance; register again",
                            (unsigned long long)epoch);
        return NULL;
    }
    return lanes_instance(engine, slot, epoch);
}

static bool feed_about(struct engine *engine, enum core_event_type type,
                       const struct lane_instance *in, const char *why)
{
    struct core_event ev = {
        .type = type, .slot = in->slot, .epoch = in->epoch, .text = str_from(why)};
    struct bt_error err;

    if (engine_feed(engine, &ev, NULL, &err) != BT_OK) {
        engine_fail(engine, &err);
        return false;
    }
    return true;
}

/* It sends heartbeats, but nothing answers at its endpoint: steps must not wait for it. */
static bool is_unreachable(const struct engine *engine, struct lane_instance *in)
{
    struct instance_view view;

    in->reached =
        in->reached ||
        (registry_instance_view(engine_registry(engine), in->slot, &view) && view.lanes_up > 0);
    return !in->reached &&
           engine_now(engine) - in->opened > UNREACHABLE_LEASES * engine_options(engine)->lease_ms;
}

static bool is_listed(const struct msg_agent_heartbeat *m, const char *key, uint32_t attempt)
{
    for (uint32_t i = 0; i < m->inflight_n; i++) {
        const struct msg_inflight *at = &m->inflight[i];
        if (str_is(at->key, key) && (at->attempt == 0 || at->attempt == attempt)) {
            return true;
        }
    }
    return false;
}

/* What the instance said to work on, and does not list any more, has ended: its answer was lost. */
static bool ask_for_unlisted(struct engine *engine, const struct lane_instance *in,
                             const struct msg_agent_heartbeat *m)
{
    struct core_adopted adopted[LIMIT_CAPACITY];
    const uint32_t n = core_adopted(engine_core(engine), in->slot, adopted, LIMIT_CAPACITY);

    for (uint32_t i = 0; i < n; i++) {
        const struct open_plan *p = open_plan_of_run(engine, adopted[i].run);
        struct core_event ev = {.type = CORE_NOT_LISTED,
                                .run = adopted[i].run,
                                .step = adopted[i].step,
                                .phase = adopted[i].phase,
                                .attempt = adopted[i].attempt,
                                .slot = in->slot,
                                .epoch = in->epoch,
                                .lane = LANE_NONE};
        char key[LIMIT_KEY_BYTES + 1];
        struct bt_error err;

        if (p == NULL) {
            continue;
        }
        step_key(p->plan, p->plan_id, ev.step, ev.phase,
                 ((const struct run *)core_block_run(p->block))->steps[ev.step].turns, key);
        if (!is_listed(m, key, ev.attempt) && engine_feed(engine, &ev, NULL, &err) != BT_OK) {
            engine_fail(engine, &err);
            return false;
        }
    }
    return true;
}

void on_agent_heartbeat(struct engine *engine, struct request *rq)
{
    struct msg_agent_heartbeat_ok ok = {.lease_ms = engine_options(engine)->lease_ms};
    struct msg_cancel_order orders[LIMIT_CAPACITY];
    struct msg_agent_heartbeat m;
    struct lane_instance *in;
    struct instance_view view;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_agent_heartbeat, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    in = request_instance(engine, rq, m.instance_id, m.epoch);
    if (in == NULL || !feed_about(engine, CORE_SEEN, in, "")) {
        return;
    }
    if (is_unreachable(engine, in)) {
        request_refuse_text(engine, rq, BT_GONE,
                            "no lane could be opened to %s; listen there, then register again",
                            in->endpoint[0] != 0 ? in->endpoint : "you");
        (void)feed_about(engine, CORE_GONE, in, "unreachable");
        return;
    }
    lanes_hang_up_on_mute(engine, in);
    if (!ask_for_unlisted(engine, in, &m)) {
        return;
    }
    for (uint32_t i = 0; i < in->capacity; i++) {
        if (in->lanes[i].state == LANE_BUSY && in->lanes[i].cancelled) {
            orders[ok.cancel_n++] =
                (struct msg_cancel_order){.key = str_from(in->lanes[i].item.key),
                                          .attempt = in->lanes[i].item.attempt,
                                          .reason = STR_LIT("cancelled"),
                                          .grace_ms = 5000};
        }
    }
    ok.cancel = orders;
    ok.drain = registry_instance_view(engine_registry(engine), in->slot, &view) && view.draining;
    request_answer(engine, rq, MSG_agent_heartbeat_ok, &ok);
}

void on_agent_drain(struct engine *engine, struct request *rq)
{
    struct msg_agent_drain m;
    struct lane_instance *in;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_agent_drain, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    in = request_instance(engine, rq, m.instance_id, m.epoch);
    if (in != NULL && feed_about(engine, CORE_DRAIN, in, "the agent asked for it")) {
        request_answer(engine, rq, MSG_empty, NULL);
    }
}

void on_agent_deregister(struct engine *engine, struct request *rq)
{
    struct msg_agent_deregister m;
    struct lane_instance *in;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_agent_deregister, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    in = request_instance(engine, rq, m.instance_id, m.epoch);
    if (in != NULL && feed_about(engine, CORE_GONE, in, "deregistered")) {
        request_answer(engine, rq, MSG_empty, NULL);
    }
}

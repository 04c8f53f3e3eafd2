/* Requests about the agents and about the supervisor itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"
#include "supervisor/api/api_internal.h"
#include "supervisor/dispatch/cards.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/dispatch/lanes.h"

enum { SCRUB_PROBLEMS = 64, SCRUB_PROBLEM_BYTES = 400, SCRUB_PART_BYTES = 1024 * 1024 };

static struct msg_breaker_view breaker_of(const struct engine *engine, const struct breaker_view *v)
{
    struct msg_breaker_view m = {.state = str_from(breaker_state_name(v->state)),
                                 .failures = v->failures};

    if (v->state == BREAKER_OPEN) {
        m.retry_in_ms = v->retry_at > engine_now(engine) ? v->retry_at - engine_now(engine) : 0;
        msg_set(&m, breaker_view, retry_in_ms);
    }
    return m;
}

static struct msg_instance_view view_of(struct engine *engine, uint32_t slot,
                                        const struct instance_view *v)
{
    const struct lane_instance *in = lanes_instance(engine, slot, v->epoch);
    struct msg_instance_view m = {
        .epoch = v->epoch,
        .health = str_from(health_name(v->health)),
        .capacity = v->capacity,
        .outstanding = v->outstanding,
        .draining = v->draining,
        .breaker = breaker_of(engine, &v->breaker),
        .last_seen_ms = engine_now(engine) > v->last_seen ? engine_now(engine) - v->last_seen : 0};

    msg_set(&m, instance_view, breaker);
    if (in != NULL) {
        m.instance_id = str_from(in->id);
        m.version = str_from(in->version);
        m.endpoint = in->endpoint[0] != 0 ? str_from(in->endpoint) : STR_LIT("dialIn");
        m.pid = in->pid;
    }
    return m;
}

enum { REASON_SHOWN = 1000, PATH_SHOWN = 4000 };

/* A hint must never cost the answer that it stands in: valid UTF-8, whatever a path or a process
 * says, and not longer than the message allows. ptr is NULL when out of memory. */
static struct str hint(struct arena *arena, const char *text, size_t max)
{
    struct buf clean;
    struct str ret = {NULL, 0};

    buf_init(&clean, 4 * strlen(text) + 1);
    (void)buf_add_repaired(&clean, str_from(text));
    if (clean.bad == BT_OK) {
        const char *shown = buf_cstr(&clean);
        ret = arena_str(arena, (struct str){shown, utf8_cut(shown, clean.len, max)});
    }
    buf_done(&clean);
    return ret;
}

/* Why it is not there, and where its output is. */
static bool fill_reason(struct engine *engine, const struct agent_view *a, struct arena *arena,
                        struct msg_agent_view *ret)
{
    const struct process_hooks *processes = dispatch_processes(engine);
    struct agent_process process;

    ret->gave_up = a->failure.len > 0;
    if (processes->about == NULL || !processes->about(processes->of, a->id, &process)) {
        ret->reason = a->failure;
        return true;
    }
    ret->reason = hint(arena, process.why, REASON_SHOWN);
    ret->log = hint(arena, process.log, PATH_SHOWN);
    return ret->reason.ptr != NULL && ret->log.ptr != NULL;
}

/* False: out of memory. */
static bool fill_processes(struct engine *engine, struct str agent_id, struct arena *arena,
                           struct msg_agent_view *ret)
{
    const struct process_hooks *hooks = dispatch_processes(engine);
    struct msg_process_view *list;
    struct process_view v;
    uint32_t n = 0;

    while (hooks->view != NULL && n < PROCESS_NAMES_MAX &&
           hooks->view(hooks->of, agent_id, n, &v)) {
        n++;
    }
    list = n == 0 ? NULL : arena_alloc(arena, n * sizeof *list);
    if (n > 0 && list == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n && hooks->view(hooks->of, agent_id, i, &v); i++) {
        list[i] = (struct msg_process_view){.name = hint(arena, v.name, PROCESS_NAME_BYTES),
                                            .state = str_from(v.state),
                                            .pid = v.pid,
                                            .restarts = v.restarts,
                                            .group = hint(arena, v.group, LIMIT_ID_BYTES),
                                            .doing = str_from(v.doing),
                                            .reason = hint(arena, v.reason, REASON_SHOWN / 2),
                                            .stale = v.stale};
        if (list[i].name.ptr == NULL || list[i].group.ptr == NULL || list[i].reason.ptr == NULL) {
            return false;
        }
        ret->processes_n = i + 1;
    }
    ret->processes = list;
    return true;
}

static bool fill_agent(struct engine *engine, uint32_t agent, struct arena *arena,
                       struct msg_agent_view *ret)
{
    struct agent_view a = registry_agent_view(engine_registry(engine), agent);
    uint32_t slots = registry_instances(engine_registry(engine));
    bool all_draining = a.instances > 0;

    ret->external = !a.configured;
    ret->instances = arena_alloc(arena, (a.instances + 1) * sizeof *ret->instances);
    if (ret->instances == NULL) {
        return false;
    }
    if (a.card != NULL) {
        ret->card = *a.card;
    } else {
        ret->card.agent_id = a.id;
        ret->card.name = a.id;
    }
    for (uint32_t i = 0; i < slots && ret->instances_n < a.instances; i++) {
        struct instance_view v;
        if (registry_instance_view(engine_registry(engine), i, &v) && v.agent == agent) {
            ret->instances[ret->instances_n++] = view_of(engine, i, &v);
            ret->in_flight += v.outstanding;
            all_draining = all_draining && v.draining;
        }
    }
    ret->state = !a.enabled         ? STR_LIT("disabled")
                 : a.instances == 0 ? STR_LIT("down")
                 : all_draining     ? STR_LIT("draining")
                                    : STR_LIT("up");
    if (!fill_processes(engine, a.id, arena, ret) ||
        (a.instances == 0 && !fill_reason(engine, &a, arena, ret))) {
        return false;
    }
    ret->queued = core_agent_queued(engine_core(engine), agent);
    ret->breaker = breaker_of(engine, &a.breaker);
    msg_set(ret, agent_view, breaker);
    ret->num_requests = agent_card_of(engine, agent)->requests;
    ret->num_errors = agent_card_of(engine, agent)->errors;
    return true;
}

/* A thousand agents with long schemas are more than one answer: then without their skills, which
 * agents.get has. */
static void answer_list(struct engine *engine, struct request *rq, struct msg_agents_list_ok *ok)
{
    struct bt_error err;

    if (request_try_answer(engine, rq, MSG_agents_list_ok, ok, &err) == BT_OK) {
        return;
    }
    for (uint32_t i = 0; i < ok->agents_n; i++) {
        ok->agents[i].card.skills_n = 0;
    }
    ok->skills_truncated = true;
    request_answer(engine, rq, MSG_agents_list_ok, ok);
}

bool agent_is_shown(const struct engine *engine, uint32_t agent)
{
    const struct agent_view a = registry_agent_view(engine_registry(engine), agent);

    return a.id.len > 0 && (a.instances > 0 || a.configured || !a.enabled ||
                            core_agent_queued(engine_core(engine), agent) > 0);
}

struct remembered {
    struct engine *engine;
    struct arena *arena;
    struct msg_agents_list_ok *ok;
};

static void take_remembered(const struct journal_agent *a, void *self)
{
    struct remembered *all = self;
    const uint32_t agent = registry_agent(engine_registry(all->engine), a->id);
    struct msg_agent_view *ret = &all->ok->agents[all->ok->agents_n];
    const struct doc card = {(const uint8_t *)a->card.ptr, a->card.len};
    const struct doc copy = doc_copy(all->arena, card);
    struct bt_error err;

    if (copy.ptr == NULL || all->ok->agents_n == LIMIT_AGENTS) {
        return;
    }
    *ret = (struct msg_agent_view){.external = true};
    if ((agent == REGISTRY_NONE || !agent_is_shown(all->engine, agent)) &&
        msg_read_doc(all->arena, copy, MSG_card, &ret->card, &err) == BT_OK) {
        ret->state = STR_LIT("remembered");
        ret->seen_at = a->seen_wall;
        all->ok->agents_n++;
    }
}

static void list_remembered(struct engine *engine, struct request *rq)
{
    struct msg_agents_list_ok ok = {.agents_n = 0};
    struct arena arena = {0};
    struct remembered all = {engine, &arena, &ok};
    struct bt_error err;

    ok.agents = arena_alloc(&arena, LIMIT_AGENTS * sizeof *ok.agents);
    if (ok.agents == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for %u agents", LIMIT_AGENTS);
    } else if (journal_agents(engine_journal(engine), take_remembered, &all, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        answer_list(engine, rq, &ok);
    }
    arena_done(&arena);
}

void on_agents_list(struct engine *engine, struct request *rq)
{
    uint32_t n = registry_agents(engine_registry(engine));
    struct msg_agents_list_ok ok = {.agents_n = 0};
    struct msg_agents_list m;
    struct arena arena = {0};
    bool fits = true;

    if (!request_read(engine, rq, MSG_agents_list, &m)) {
        return;
    }
    if (m.remembered) {
        list_remembered(engine, rq);
        return;
    }
    ok.agents = arena_alloc(&arena, (n + 1) * sizeof *ok.agents);
    for (uint32_t i = 0; ok.agents != NULL && i < n && fits; i++) {
        fits =
            !agent_is_shown(engine, i) || fill_agent(engine, i, &arena, &ok.agents[ok.agents_n++]);
    }
    if (ok.agents == NULL || !fits) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for %u agents", n);
    } else {
        answer_list(engine, rq, &ok);
    }
    arena_done(&arena);
}

/* The agent that a person may mean by this id; .ptr NULL = none. */
static struct str near_agent(struct engine *engine, struct str id)
{
    const struct registry *registry = engine_registry(engine);
    struct suggest near = suggest_start(id);

    for (uint32_t i = 0; i < registry_agents(registry); i++) {
        if (agent_is_shown(engine, i)) {
            suggest_offer(&near, registry_agent_view(registry, i).id);
        }
    }
    return near.best;
}

uint32_t request_agent(struct engine *engine, struct request *rq, struct str id)
{
    const uint32_t agent = registry_agent(engine_registry(engine), id);
    const struct str near = agent == REGISTRY_NONE ? near_agent(engine, id) : id;

    if (agent == REGISTRY_NONE && near.ptr != NULL) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "Unknown agent: %.*s; did you mean '%.*s'?",
                            STR_ARG(id), STR_ARG(near));
    } else if (agent == REGISTRY_NONE) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "Unknown agent: %.*s", STR_ARG(id));
    }
    return agent;
}

void on_agents_get(struct engine *engine, struct request *rq)
{
    struct msg_agent_view view = {.has = 0};
    struct arena arena = {0};
    struct msg_agents_get m;
    struct bt_error err;
    uint32_t agent;

    if (msg_read(&rq->reader, MSG_agents_get, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    agent = request_agent(engine, rq, m.agent_id);
    if (agent == REGISTRY_NONE) {
        return;
    }
    if (fill_agent(engine, agent, &arena, &view)) {
        request_answer(engine, rq, MSG_agent_view, &view);
    } else {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for an agent");
    }
    arena_done(&arena);
}

static uint32_t agents_shown(const struct engine *engine)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < registry_agents(engine_registry(engine)); i++) {
        n += agent_is_shown(engine, i) ? 1 : 0;
    }
    return n;
}

void on_supervisor_info(struct engine *engine, struct request *rq)
{
    static const uint8_t versions[] = {0x91, 0x01}; /* msgpack: [1] */
    static const struct {
        const char *name, *means;
    } durability[] = {
        [DURABILITY_POWER] = {"power", "acknowledged work survives a power cut: fsync before every "
                                       "acknowledgement"},
        [DURABILITY_PROCESS] =
            {"process", "acknowledged work survives kill -9 of the daemon, not a power cut"},
        [DURABILITY_REPLICATED] = {"replicated",
                                   "acknowledged work survives the loss of a database server: two "
                                   "have it before every acknowledgement"},
    };
    const enum durability which = engine_options(engine)->durability;
    char started[CLOCK_ISO_LEN + 1];
    struct arena arena = {0};
    struct msg_supervisor_info_ok ok = {
        .version = STR_LIT(BATON_VERSION),
        .protocol = {versions, sizeof versions},
        .pid = (uint64_t)getpid(),
        .uptime_ms = engine_now(engine) - engine_started(engine),
        .durability = str_from(durability[which].name),
        .durability_means = str_from(durability[which].means),
        .control = str_from(engine_control_url(engine)),
        .events = str_from(engine_events_url(engine)),
        .remote = str_from(engine_remote_url(engine)),
        .state_dir = hint(&arena, engine_options(engine)->state_dir, PATH_SHOWN),
        .nng = str_from(link_library_version()),
        .sqlite = str_from(journal_sqlite_version()),
        .last_seq = journal_committed_seq(engine_journal(engine)),
        .plans_open = engine_plans_open(engine),
        .agents = agents_shown(engine),
        .credential = str_from(rq->who->id),
        .role = str_from(role_name(rq->who->role)),
    };

    ok.storage = engine_is_away(engine)                        ? STR_LIT("away")
                 : engine_is_stalled(engine)                   ? STR_LIT("full")
                 : journal_storage_low(engine_journal(engine)) ? STR_LIT("low")
                                                               : (struct str){"", 0};
    clock_iso(engine_started_wall(engine), started);
    ok.started_at = str_from(started);
    request_answer(engine, rq, MSG_supervisor_info_ok, &ok);
    arena_done(&arena);
}

/* The problems of one part; more of them are counted by the doctor as one. */
struct scrubbed {
    struct arena arena;
    struct str problems[SCRUB_PROBLEMS];
    uint32_t n;
};

static void add_problem(struct str text, void *self)
{
    struct scrubbed *found = self;
    const size_t n = utf8_cut(text.ptr, text.len, SCRUB_PROBLEM_BYTES);

    if (found->n < SCRUB_PROBLEMS) {
        found->problems[found->n++] = arena_str(&found->arena, (struct str){text.ptr, n});
    }
}

void on_supervisor_scrub(struct engine *engine, struct request *rq)
{
    struct scrubbed found = {.n = 0};
    struct msg_supervisor_scrub m;
    struct journal_scrub at = {.table = 0};
    struct msg_supervisor_scrub_ok ok = {.problems = found.problems};
    char cursor[64];
    struct bt_error err;

    if (!request_read(engine, rq, MSG_supervisor_scrub, &m)) {
        return;
    }
    (void)snprintf(cursor, sizeof cursor, "%.*s", STR_ARG(m.cursor));
    if (m.cursor.len > 0 && sscanf(cursor, "%" SCNu32 ".%" SCNu64, &at.table, &at.at) != 2) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "cursor: is not one of an earlier answer; leave it out to begin");
        return;
    }
    at.at = at.at < INT64_MAX ? at.at : INT64_MAX;
    at.total = m.cursor.len > 0 ? UINT64_MAX : 0; /* counted once */
    if (journal_scrub(engine_journal(engine), &at, SCRUB_PART_BYTES, add_problem, &found, &err) !=
        BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        (void)snprintf(cursor, sizeof cursor, "%" PRIu32 ".%" PRIu64, at.table, at.at);
        ok.cursor = at.done ? (struct str){"", 0} : str_from(cursor);
        ok.checked = at.checked;
        ok.total = m.cursor.len > 0 ? 0 : at.total;
        ok.problems_n = found.n;
        request_answer(engine, rq, MSG_supervisor_scrub_ok, &ok);
    }
    arena_done(&found.arena);
}

void on_supervisor_drain(struct engine *engine, struct request *rq)
{
    struct api *api = api_of(engine);
    struct msg_supervisor_drain m;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_supervisor_drain, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    engine_drain(engine);
    api->stop_grace_ms = msg_has(&m, supervisor_drain, grace_ms) ? m.grace_ms : MSEC_NEVER;
    api->stop_asked = true;
    request_answer(engine, rq, MSG_empty, NULL);
}

/* ---- the configuration again ---- */

enum { CHANGES_MAX = 1024 };

void on_supervisor_reload(struct engine *engine, struct request *rq)
{
    struct msg_supervisor_reload_ok ok = {0};
    struct msg_supervisor_reload m;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_supervisor_reload, &m)) {
        return;
    }
    ok.changes = calloc(CHANGES_MAX, sizeof *ok.changes);
    if (ok.changes == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for the changes");
        return;
    }
    if (engine_hooks(engine)->reload(engine, m.file, m.check, ok.changes, CHANGES_MAX,
                                     &ok.changes_n, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
    } else {
        request_answer(engine, rq, MSG_supervisor_reload_ok, &ok);
    }
    free(ok.changes);
}

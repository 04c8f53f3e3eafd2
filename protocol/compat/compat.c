/*
 * The translator. It takes one event, updates the state that every vocabulary needs of its plan,
 * and lets the vocabulary emit. It uses only events and their times: no clock, no requests.
 */
#include "protocol/compat/compat_internal.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/wire/msg.h"

static const struct compat_vocabulary *const VOCABULARIES[] = {
    &vocabulary_ai_sdk,     &vocabulary_plan_executor,        &vocabulary_agent_turn,
    &vocabulary_ptc_runner, &vocabulary_ptc_runner_telemetry, &vocabulary_orchestrator_log};
enum { VOCABULARIES_N = sizeof VOCABULARIES / sizeof VOCABULARIES[0] };

const char *const *bt_vocabulary_names(void)
{
    static const char *const names[] = {"ai-sdk",     "plan-executor",        "agent-turn",
                                        "ptc-runner", "ptc-runner-telemetry", "orchestrator-log",
                                        NULL};
    _Static_assert(sizeof names / sizeof names[0] == VOCABULARIES_N + 1, "a name per vocabulary");
    return names;
}

static enum bt_code unknown(const char *name, struct bt_error *err)
{
    char list[128] = "";

    for (size_t i = 0; i < VOCABULARIES_N; i++) {
        (void)strncat(list, i == 0 ? "" : ", ", sizeof list - strlen(list) - 1);
        (void)strncat(list, VOCABULARIES[i]->name, sizeof list - strlen(list) - 1);
    }
    return err_set(err, BT_INVALID, "unknown vocabulary '%s'; there are: %s", name, list);
}

enum bt_code bt_vocabulary_new(const char *name, struct bt_vocabulary **ret, struct bt_error *err)
{
    const struct compat_vocabulary *vocabulary = NULL;
    struct bt_vocabulary *v;

    *ret = NULL;
    for (size_t i = 0; i < VOCABULARIES_N; i++) {
        if (strcmp(VOCABULARIES[i]->name, name) == 0 || strcmp(VOCABULARIES[i]->alias, name) == 0) {
            vocabulary = VOCABULARIES[i];
        }
    }
    if (vocabulary == NULL) {
        return unknown(name, err);
    }
    v = calloc(1, sizeof *v);
    if (v == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a translator");
    }
    v->vocabulary = vocabulary;
    buf_init(&v->body, COMPAT_OUT_BYTES);
    buf_init(&v->list, COMPAT_OUT_BYTES);
    buf_init(&v->parts, COMPAT_OUT_BYTES);
    buf_init(&v->value, COMPAT_OUT_BYTES);
    buf_init(&v->out, COMPAT_OUT_BYTES);
    *ret = v;
    return BT_OK;
}

void bt_vocabulary_free(struct bt_vocabulary *v)
{
    if (v == NULL) {
        return;
    }
    compat_forget_all(v);
    buf_done(&v->body);
    buf_done(&v->list);
    buf_done(&v->parts);
    buf_done(&v->value);
    buf_done(&v->out);
    free(v->spans);
    free(v);
}

/* ---- state for all vocabularies ---- */

static bool adds_steps(const struct compat_event *ev)
{
    return str_is(ev->type, "plan_modified") || str_is(ev->type, "synthesis_retry") ||
           (str_is(ev->type, "replan_finished") && compat_bool(ev, "ok"));
}

/* Every plan has a plan_generated event. A plan that the client submitted names no planner. A retry
 * or fork names the planner of the plan that it copies. */
static bool made_by_planner(const struct compat_event *ev)
{
    return compat_text(ev, "planner").len > 0 && compat_text(ev, "parentPlanId").len == 0;
}

static void update_plan(struct bt_vocabulary *v, struct compat_plan *p,
                        const struct compat_event *ev)
{
    if (str_is(ev->type, "planning_started")) {
        p->by_planner = true;
        compat_plan_text(v, p, &p->mission,
                         compat_or_default(compat_text(ev, "goal"), STR_LIT("")));
    } else if (str_is(ev->type, "planning_failed")) {
        p->by_planner = false; /* a person brings the plan, or planning_started comes again */
    } else if (str_is(ev->type, "plan_generated")) {
        p->by_planner = p->by_planner || made_by_planner(ev);
        compat_plan_text(v, p, &p->mission,
                         compat_or_default(compat_text(ev, "query"), STR_LIT("")));
        p->first = p->total = p->current = compat_number(ev, "estimatedSteps", 0);
        p->has_total = true;
    } else if (str_is(ev->type, "plan_started")) {
        p->started_ms = ev->ts_ms;
        p->has_start = ev->ts_ms != 0;
        if (!p->has_total) {
            p->first = p->total = p->current = compat_number(ev, "stepCount", 0);
            p->has_total = true;
        }
    } else if (str_is(ev->type, "replan_started")) {
        compat_plan_text(v, p, &p->reason, compat_text(ev, "diagnosis"));
        p->replanning = compat_number(ev, "stepIndex", UINT64_MAX);
        p->replan_ms = ev->ts_ms;
        p->failure_emitted = false;
    } else if (adds_steps(ev)) {
        const uint64_t more = compat_number(ev, "newSteps", 0);
        p->replans += str_is(ev->type, "replan_finished") ? 1 : 0;
        const bool copies = str_is(ev->type, "synthesis_retry"); /* a copy replaces each of them */
        p->total += more < LIMIT_STEPS ? more : LIMIT_STEPS;
        p->current += copies || more > LIMIT_STEPS ? 0 : more;
    } else if (str_is(ev->type, "plan_step_completed") &&
               str_is(compat_text(ev, "reason"), "superseded")) {
        p->current -= p->current > 0 ? 1 : 0;
    }
}

/* Tracks whether every event of the plan was seen, from the first one on. */
static void track_plan_seq(struct compat_plan *p, const struct compat_event *ev)
{
    const uint64_t seq = compat_number(ev, "planSeq", 0);

    if (seq == 0) { /* a stream made by hand: its first event is known by type */
        p->seen_from_start = p->seen_from_start || str_is(ev->type, "planning_started") ||
                             str_is(ev->type, "plan_generated");
        return;
    }
    p->seen_from_start = seq == 1 || (p->seen_from_start && seq == p->plan_seq + 1);
    p->plan_seq = seq;
}

/* ---- one event ---- */

static void clear_output(struct bt_vocabulary *v)
{
    buf_clear(&v->out);
    buf_clear(&v->list);
    buf_clear(&v->parts);
    v->n_spans = v->next = 0;
    v->bad = BT_OK;
}

static enum bt_code apply(struct bt_vocabulary *v, const struct compat_event *ev)
{
    struct compat_plan *p = NULL;

    compat_id_set(&v->event_plan, ev->plan_id);
    if (ev->plan_id.len > 0) {
        p = compat_plan_get(v, ev->plan_id);
        if (p == NULL) {
            return BT_NOMEM;
        }
        track_plan_seq(p, ev);
        update_plan(v, p, ev);
    }
    v->vocabulary->take(v, p, ev);
    if (p != NULL && str_is(ev->type, "plan_completed")) {
        compat_plan_forget(v, p);
    }
    return v->bad != BT_OK ? v->bad : v->out.bad;
}

static enum bt_code take(struct bt_vocabulary *v, const struct compat_event *ev)
{
    const uint64_t seq = compat_number(ev, "seq", 0);
    uint64_t *last = &v->last_seq[compat_number(ev, "shard", 0) % SHARDS_MAX];

    if (seq != 0 && seq <= *last) {
        return BT_OK;
    }
    *last = seq != 0 ? seq : *last;
    return apply(v, ev);
}

/* The event, and the memory that it points into, which msg_reader_done frees also after an error.
 */
static enum bt_code read_event(const void *event, size_t len, struct msg_reader *r,
                               struct compat_event *ev, struct bt_error *err)
{
    enum bt_code code = msg_reader_init(r, event, len, COMPAT_EVENT_BYTES, err);

    *ev = (struct compat_event){0};
    if (code != BT_OK) {
        return err_wrap(err, "an event");
    }
    ev->body = (struct doc){r->body, r->len};
    ev->type = compat_text(ev, "type");
    ev->plan_id = compat_text(ev, "planId");
    ev->session_id = compat_text(ev, "sessionId");
    ev->timestamp = compat_text(ev, "timestamp");
    ev->ts_ms = compat_number(ev, "tsMs", 0);
    return ev->type.len > 0
               ? BT_OK
               : err_set(err, BT_INVALID, "an event: expected a member 'type' with its name");
}

static enum bt_code with_event(struct bt_vocabulary *v, const void *event, size_t len,
                               enum bt_code (*use)(struct bt_vocabulary *,
                                                   const struct compat_event *),
                               struct bt_error *err)
{
    struct compat_event ev;
    struct msg_reader r;
    enum bt_code code;

    clear_output(v);
    code = read_event(event, len, &r, &ev, err);
    if (code == BT_OK) {
        code = use(v, &ev);
        if (code != BT_OK) {
            err_set(err, code, "%s what the event '%.*s' becomes",
                    code == BT_LIMIT ? "too large:" : "out of memory for", STR_ARG(ev.type));
        }
    }
    msg_reader_done(&r);
    return code;
}

enum bt_code bt_vocabulary_take(struct bt_vocabulary *v, const void *event, size_t len,
                                struct bt_error *err)
{
    return with_event(v, event, len, take, err);
}

enum bt_code bt_vocabulary_learn(struct bt_vocabulary *v, const void *event, size_t len,
                                 struct bt_error *err)
{
    const enum bt_code code = with_event(v, event, len, apply, err);

    clear_output(v);
    return code;
}

bool bt_vocabulary_lacks(const struct bt_vocabulary *v, const void *event, size_t len)
{
    struct compat_event ev;
    struct msg_reader r;
    struct bt_error err;
    bool lacks = false;

    if (read_event(event, len, &r, &ev, &err) == BT_OK && ev.plan_id.len > 0) {
        lacks = compat_number(&ev, "planSeq", 0) > 1 && compat_plan_find(v, ev.plan_id) == NULL;
    }
    msg_reader_done(&r);
    return lacks;
}

bool bt_vocabulary_next(struct bt_vocabulary *v, struct bt_translated *ret)
{
    if (v->next == v->n_spans) {
        return false;
    }
    const struct compat_span *s = &v->spans[v->next++];
    *ret = (struct bt_translated){
        .type = s->type, .plan_id = v->event_plan.text, .json = (const char *)v->out.at + s->json};
    return true;
}

/* ---- the plan's document ---- */

bool bt_vocabulary_wants_plan(const struct bt_vocabulary *v, const char *event_type)
{
    static const char *const types[] = {"plan_generated", "plan_modified", "replan_finished",
                                        "synthesis_retry"};
    bool makes_plan = false;

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        makes_plan = makes_plan || strcmp(types[i], event_type) == 0;
    }
    return (v->vocabulary->wants_plan && makes_plan) ||
           (v->vocabulary->wants_revision && strcmp(event_type, "replan_finished") == 0);
}

static size_t document_bytes(const struct compat_plan *p)
{
    return p->document.len + p->by_step.cap * sizeof *p->by_step.slots +
           p->n_step_offsets * sizeof *p->step_offsets;
}

static void document_done(struct compat_plan *p)
{
    buf_done(&p->document);
    map_done(&p->by_step);
    free(p->step_offsets);
    p->step_offsets = NULL;
    p->n_step_offsets = 0;
}

void compat_document_forget(struct bt_vocabulary *v, struct compat_plan *p)
{
    v->bytes -= document_bytes(p);
    p->bytes -= document_bytes(p);
    document_done(p);
}

/* Builds the index of steps. The id is used when a document has other indexes; of two steps with
 * one id the first counts. */
static enum bt_code index_steps(struct compat_plan *p)
{
    const struct compat_event plan = {.body = doc_from_buf(&p->document)};
    struct compat_event step;
    uint32_t left;
    struct doc_cursor at = compat_steps(&plan, &left);
    enum bt_code code = BT_OK;

    p->step_offsets =
        calloc(COMPAT_STEPS < left ? COMPAT_STEPS : left + 1u, sizeof *p->step_offsets);
    if (p->step_offsets == NULL) {
        return BT_NOMEM;
    }
    while (code == BT_OK && p->n_step_offsets < COMPAT_STEPS &&
           compat_next_step(&at, &left, &step)) {
        const struct str id = compat_text(&step, "stepId");
        p->step_offsets[p->n_step_offsets++] = (uint32_t)(step.body.ptr - p->document.at);
        if (map_get(&p->by_step, id) == MAP_NONE) {
            code = map_put(&p->by_step, id, (uint32_t)(step.body.ptr - p->document.at));
        }
    }
    return code;
}

static struct compat_event document_at(const struct compat_plan *p, uint32_t begins)
{
    struct doc_cursor at =
        doc_cursor((struct doc){p->document.at + begins, p->document.len - begins});
    return (struct compat_event){.body = doc_skip(&at)};
}

struct compat_event compat_step_document(const struct compat_plan *p, uint64_t index,
                                         struct str step_id)
{
    struct compat_event step = {0};
    uint32_t begins;

    if (index < p->n_step_offsets) {
        step = document_at(p, p->step_offsets[index]);
    }
    if (step.body.ptr == NULL || !str_eq(compat_text(&step, "stepId"), step_id)) {
        begins = map_get(&p->by_step, step_id);
        step = begins == MAP_NONE ? (struct compat_event){0} : document_at(p, begins);
    }
    return step;
}

bool compat_has_step(const struct compat_plan *p, const struct compat_step *s)
{
    const struct compat_event step = compat_step_document(p, s->index, s->id);
    return step.body.ptr == NULL || !compat_bool(&step, "superseded");
}

static enum bt_code describe(struct bt_vocabulary *v, struct doc answer, struct bt_error *err)
{
    const struct str plan_id = doc_string(doc_get(answer, STR_LIT("planId")));
    const struct doc document = doc_get(answer, STR_LIT("document"));
    struct compat_plan *p;

    if (plan_id.len == 0 || document.ptr == NULL || doc_head(document).kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "expected the answer of plan.get with planId and document");
    }
    p = compat_plan_get(v, plan_id);
    if (p == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a plan's document");
    }
    compat_document_forget(v, p);
    doc_put_doc(&p->document, document);
    if (p->document.bad != BT_OK || index_steps(p) != BT_OK) {
        document_done(p);
        return err_set(err, BT_NOMEM, "out of memory for a plan's document");
    }
    compat_make_room(v, p, document_bytes(p));
    v->bytes += document_bytes(p);
    p->bytes += document_bytes(p);
    return BT_OK;
}

enum bt_code bt_vocabulary_describe(struct bt_vocabulary *v, const char *plan_json,
                                    struct bt_error *err)
{
    const struct json_limits limits = {.bytes = 8 * (size_t)LIMIT_CONTROL_BYTES,
                                       .depth = LIMIT_DEPTH + 8,
                                       .nodes = 2 * LIMIT_NODES};
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, json_doc_capacity(limits.bytes));
    code = json_to_doc(str_from(plan_json), &limits, &doc, err);
    if (code == BT_OK) {
        code = describe(v, doc_from_buf(&doc), err);
    }
    buf_done(&doc);
    return code;
}

/* Agents' messages about their steps on the control socket: progress, late results, and the files
 * of agents that cannot open them. */
#include <stdio.h>
#include <string.h>

#include "protocol/wire/base64.h"
#include "supervisor/api/api_internal.h"
#include "supervisor/dispatch/artifacts.h"
#include "supervisor/dispatch/keys.h"
#include "supervisor/dispatch/result_form.h"
#include "supervisor/dispatch/results.h"

void on_step_progress(struct engine *engine, struct request *rq)
{
    struct core_event ev = {.type = CORE_PROGRESS, .lane = LANE_NONE};
    enum core_reject reject;
    struct msg_step_progress m;
    struct lane_instance *in;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_step_progress, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    in = request_instance(engine, rq, m.instance_id, m.epoch);
    if (in == NULL) {
        return;
    }
    if (!key_find(engine, in, m.key, &ev.run, &ev.step, &ev.phase)) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "no open step has the key '%.*s'",
                            STR_ARG(m.key));
        return;
    }
    ev.attempt = (uint32_t)m.attempt;
    ev.slot = in->slot;
    ev.epoch = in->epoch;
    (void)uuid_parse(m.instance_id, &ev.instance);
    ev.text = m.text;
    *CORE_EV(&ev, progress) =
        (struct core_ev_progress){.n = m.n, .percent = m.percent, .data = m.data};
    if (engine_feed(engine, &ev, &reject, &err) != BT_OK) {
        engine_fail(engine, &err);
    } else if (reject != REJECT_NONE && reject != REJECT_TOO_MUCH) {
        request_refuse_text(engine, rq, BT_CONFLICT, "%s", core_reject_text(reject));
    } else {
        request_answer(engine, rq, MSG_empty, NULL);
    }
}

/*
 * The instance that delivers a result. An agent may have registered again since it was asked: its
 * result names the epoch that the request had. It counts when the very process that has the attempt
 * is the one that is registered now.
 */
static struct lane_instance *deliverer(struct engine *engine, struct request *rq,
                                       const struct msg_step_result *m, struct core_event *ev,
                                       bool *ret_known)
{
    struct uuid id;
    struct instance_view now;
    const uint32_t slot = uuid_parse(m->instance_id, &id)
                              ? registry_instance(engine_registry(engine), id)
                              : REGISTRY_NONE;
    struct lane_instance *in = NULL;

    if (slot != REGISTRY_NONE && registry_instance_view(engine_registry(engine), slot, &now) &&
        m->epoch < now.epoch && !uuid_is_nil(now.process)) {
        in = lanes_instance(engine, slot, now.epoch);
        in = in != NULL && (rq->who->role == ROLE_ADMIN || str_is(str_from(rq->who->id), in->by))
                 ? in
                 : NULL;
        *ret_known = in != NULL && key_find(engine, in, m->key, &ev->run, &ev->step, &ev->phase);
        const struct run *run = *ret_known ? core_run(engine_core(engine), ev->run, NULL) : NULL;
        if (in != NULL && (run == NULL || uuid_eq(run->steps[ev->step].process, now.process))) {
            return in;
        }
    }
    in = request_instance(engine, rq, m->instance_id, m->epoch);
    *ret_known = in != NULL && key_find(engine, in, m->key, &ev->run, &ev->step, &ev->phase);
    return in;
}

void on_step_result(struct engine *engine, struct request *rq)
{
    struct core_event ev = {.lane = LANE_NONE};
    struct msg_step_result_ok ok = {0};
    struct msg_step_result m;
    struct lane_instance *in;
    struct bt_error err;
    bool known = false;

    if (result_form_normalise(&rq->reader, &err) != BT_OK ||
        msg_read(&rq->reader, MSG_step_result, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    in = deliverer(engine, rq, &m, &ev, &known);
    if (in == NULL) {
        return;
    }
    ok.reason = STR_LIT("no open step has this key: the plan has ended or never was");
    if (known) {
        enum core_reject reject;
        ev.slot = in->slot;
        ev.epoch = in->epoch;
        (void)uuid_parse(m.instance_id, &ev.instance);
        reject = results_take(engine, &m, ev.run, ev.step, &ev);
        ok.accepted = reject == REJECT_NONE;
        ok.reason = ok.accepted ? (struct str){"", 0} : str_from(core_reject_text(reject));
    }
    msg_set(&ok, step_result_ok, accepted);
    request_answer(engine, rq, MSG_step_result_ok, &ok);
}

/* ---- files ---- */

/* A question is on a lane; an attempt may be out after its lane broke, also while a person is asked
 * what became of it. */
static bool has_it(struct engine *engine, const struct lane_instance *in, struct uuid id,
                   const struct core_cmd *asked)
{
    const struct run_step *row =
        &core_run(engine_core(engine), asked->run, NULL)->steps[asked->step];

    for (uint32_t i = 0; i < in->capacity; i++) {
        const struct control_item *item = &in->lanes[i].item;
        if (in->lanes[i].state == LANE_BUSY && item->run == asked->run &&
            item->step == asked->step && item->phase == asked->phase &&
            item->attempt == asked->attempt) {
            return true;
        }
    }
    return asked->phase <= PHASE_SEARCH && row->attempt == asked->attempt &&
           uuid_eq(row->instance, id) &&
           (row->status == STEP_IN_PROGRESS || row->status == STEP_UNKNOWN ||
            row->status == STEP_WAITING);
}

/* The attempt, or the question, that the instance has. Its registration may be a newer one: the
 * line to another host breaks while a file is on its way. False after refusing. */
static bool find_asked(struct engine *engine, struct request *rq, struct str instance_id,
                       struct str key, uint64_t attempt, struct lane_instance **ret,
                       struct core_cmd *asked)
{
    struct instance_view now = {.epoch = 0};
    struct lane_instance *in;
    struct uuid id;

    *asked = (struct core_cmd){.type = CMD_DISPATCH, .attempt = (uint32_t)attempt};
    if (uuid_parse(instance_id, &id)) {
        const uint32_t slot = registry_instance(engine_registry(engine), id);
        (void)(slot != REGISTRY_NONE &&
               registry_instance_view(engine_registry(engine), slot, &now));
    }
    in = request_instance(engine, rq, instance_id, now.epoch);
    if (in == NULL) {
        return false;
    }
    if (!key_find(engine, in, key, &asked->run, &asked->step, &asked->phase)) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "no open step has the key '%.*s'",
                            STR_ARG(key));
        return false;
    }
    if (!has_it(engine, in, id, asked)) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "attempt %llu of '%.*s' is not with this instance (any more)",
                            (unsigned long long)attempt, STR_ARG(key));
        return false;
    }
    *ret = in;
    return true;
}

static bool was_given(const struct api *api, struct uuid instance, struct str key, uint64_t attempt,
                      const struct artifact_place *at)
{
    for (size_t i = 0; i < sizeof api->given / sizeof api->given[0]; i++) {
        const struct given_file *g = &api->given[i];
        if (g->attempt == attempt && uuid_eq(g->instance, instance) && str_is(key, g->key) &&
            strcmp(g->at.plan, at->plan) == 0 && strcmp(g->at.file, at->file) == 0) {
            return true;
        }
    }
    return false;
}

void on_artifact_fetch(struct engine *engine, struct request *rq)
{
    struct api *api = api_of(engine);
    struct msg_artifact_fetch m;
    struct lane_instance *in;
    struct artifact_place at;
    struct core_cmd asked;
    struct uuid id;

    if (!request_read(engine, rq, MSG_artifact_fetch, &m) ||
        !find_asked(engine, rq, m.instance_id, m.key, m.attempt, &in, &asked) ||
        !api_locate_file(engine, rq, m.uri, &at)) {
        return;
    }
    (void)uuid_parse(m.instance_id, &id);
    if (!was_given(api, id, m.key, m.attempt, &at)) {
        struct given_file *g;
        if (!artifacts_are_given(engine, in, &asked, m.uri)) {
            request_refuse_text(engine, rq, BT_UNAUTHORIZED,
                                "'%.*s': this step was given no such artifact", STR_ARG(m.uri));
            return;
        }
        g = &api->given[api->given_n++ % (sizeof api->given / sizeof api->given[0])];
        *g = (struct given_file){.instance = id, .attempt = m.attempt, .at = at};
        (void)snprintf(g->key, sizeof g->key, "%.*s", STR_ARG(m.key));
    }
    api_answer_file(engine, rq, &at, m.offset, m.limit, true);
}

/* The bytes of a request: a bin value, or base64 text, decoded into *text. False after refusing. */
static bool read_bytes(struct engine *engine, struct request *rq, struct doc d, struct buf *text,
                       struct str *ret)
{
    const struct doc_head head = d.ptr != NULL ? doc_head(d) : (struct doc_head){.kind = DOC_NIL};
    struct bt_error err;

    *ret = head.str;
    if (head.kind == DOC_STR) {
        if (json_read_base64(head.str, text, &err) != BT_OK) {
            request_refuse_text(engine, rq, BT_INVALID, "bytes: neither bin nor base64 text");
            return false;
        }
        *ret = buf_str(text);
    } else if (head.kind != DOC_BIN) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "bytes: expected a bin value or base64 text, or sha256 for the end");
        return false;
    }
    if (ret->len > LIMIT_ARTIFACT_PART) {
        request_refuse_text(engine, rq, BT_LIMIT, "bytes: at most %d of one request, got %zu",
                            LIMIT_ARTIFACT_PART, ret->len);
        return false;
    }
    return true;
}

/* ROOT/PLAN and the name of the file. False after refusing. */
static bool name_file(struct engine *engine, struct request *rq, const struct core_cmd *asked,
                      const struct msg_artifact_store *m, uint64_t end,
                      char dir[ARTIFACT_PATH_MAX + 1], char file[ARTIFACT_FILE_MAX + 1])
{
    const struct engine_options *opt = engine_options(engine);
    const struct open_plan *p = open_plan_of_run(engine, asked->run);
    const struct plan_step *s = &p->plan->steps[asked->step];
    struct bt_error err;
    enum bt_code code = BT_OK;

    if (opt->artifact_root == NULL || asked->phase > PHASE_SEARCH) {
        code = err_set(&err, BT_INVALID, "an answer to a question has no files");
    } else if (opt->artifact_max_bytes > 0 && end > opt->artifact_max_bytes) {
        code = err_set(&err, BT_LIMIT,
                       "an artifact has at most %llu bytes, which is artifacts.maxBytes of the "
                       "configuration",
                       (unsigned long long)opt->artifact_max_bytes);
    } else {
        code = artifact_file_name(s->step_id, s->revision > 0 ? s->revision : p->plan->revision,
                                  m->attempt, m->name, file, &err);
    }
    if (code != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return false;
    }
    (void)snprintf(dir, ARTIFACT_PATH_MAX + 1, "%s/%s", opt->artifact_root, p->id);
    return true;
}

static void store(struct engine *engine, struct request *rq, const struct msg_artifact_store *m,
                  const char *dir, const char *file, struct str bytes)
{
    struct arriving *arriving = api_of(engine)->arriving;
    const msec now = engine_now(engine);
    struct msg_artifact_store_ok ok = {0};
    struct bt_error err;
    struct buf uri;
    bool done = false;
    enum bt_code code =
        m->sha256.len > 0
            ? arriving_end(arriving, dir, file, m->len, m->sha256, now, &ok.offset, &done, &err)
            : arriving_add(arriving, dir, file, m->offset, bytes, now, &ok.offset, &err);

    buf_init(&uri, (size_t)ARTIFACT_PATH_MAX * 3);
    if (code == BT_OK && done) {
        artifact_uri(dir, file, &uri);
        ok.uri = buf_str(&uri);
        code = uri.len > ARTIFACT_PATH_MAX ? err_set(&err, BT_LIMIT, "the uri is too long")
                                           : buf_check(&uri, &err);
    }
    if (code == BT_OK) {
        request_answer(engine, rq, MSG_artifact_store_ok, &ok);
    } else {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    }
    buf_done(&uri);
}

void on_artifact_store(struct engine *engine, struct request *rq)
{
    char dir[ARTIFACT_PATH_MAX + 1];
    char file[ARTIFACT_FILE_MAX + 1];
    struct str bytes = {"", 0};
    struct msg_artifact_store m;
    struct lane_instance *in;
    struct core_cmd asked;
    struct buf text;

    buf_init(&text, LIMIT_CONTROL_BYTES);
    if (request_read(engine, rq, MSG_artifact_store, &m) &&
        find_asked(engine, rq, m.instance_id, m.key, m.attempt, &in, &asked) &&
        (m.sha256.len > 0 || read_bytes(engine, rq, m.bytes, &text, &bytes)) &&
        name_file(engine, rq, &asked, &m, m.sha256.len > 0 ? m.len : m.offset + bytes.len, dir,
                  file)) {
        store(engine, rq, &m, dir, file, bytes);
    }
    buf_done(&text);
}

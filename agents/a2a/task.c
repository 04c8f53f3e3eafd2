/* Tasks, messages and events of A2A 1.0 and 0.3 as one. */
#include <stdio.h>
#include <stdlib.h>

#include "agents/a2a/a2a.h"
#include "agents/sdk/step.h"
#include "protocol/base/utf8.h"
#include "protocol/wire/base64.h"

enum { SHOWN = 400, FILE_NAME_MAX = 100 };

void a2a_task_init(struct a2a_task *t, struct bt_step *step)
{
    *t = (struct a2a_task){.state = A2A_NONE, .step = step};
    buf_init(&t->says, A2A_BYTES_MAX);
}

void a2a_task_done(struct a2a_task *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        buf_done(&t->artifacts[i].parts);
    }
    buf_done(&t->says);
}

static struct str text_of(struct doc map, const char *member)
{
    return doc_string(doc_get(map, str_from(member)));
}

static void copy_text(struct str from, char ret[A2A_ID_MAX])
{
    const size_t n = utf8_cut(from.ptr != NULL ? from.ptr : "", from.len, A2A_ID_MAX - 1);

    if (n > 0) {
        memcpy(ret, from.ptr, n);
        ret[n] = 0;
    }
}

static bool is_true(struct doc map, const char *member)
{
    const struct doc d = doc_get(map, str_from(member));

    return d.ptr != NULL && doc_head(d).kind == DOC_BOOL && doc_head(d).b;
}

static uint32_t count(struct doc list)
{
    return list.ptr != NULL && doc_head(list).kind == DOC_ARRAY ? doc_head(list).n : 0;
}

void a2a_parts_text(struct doc parts, struct buf *out)
{
    for (uint32_t i = 0; i < count(parts); i++) {
        const struct str text = text_of(doc_at(parts, i), "text");
        if (text.ptr != NULL) {
            buf_add_str(out, text);
        }
    }
}

/* "TASK_STATE_INPUT_REQUIRED" of 1.0, "input-required" of 0.3. */
static enum a2a_state state_of(struct str text)
{
    static const struct {
        const char *modern, *legacy;
        enum a2a_state state;
    } states[] = {{"TASK_STATE_SUBMITTED", "submitted", A2A_WORKING},
                  {"TASK_STATE_WORKING", "working", A2A_WORKING},
                  {"TASK_STATE_INPUT_REQUIRED", "input-required", A2A_INPUT},
                  {"TASK_STATE_AUTH_REQUIRED", "auth-required", A2A_AUTH},
                  {"TASK_STATE_COMPLETED", "completed", A2A_COMPLETED},
                  {"TASK_STATE_FAILED", "failed", A2A_FAILED},
                  {"TASK_STATE_CANCELED", "canceled", A2A_CANCELED},
                  {"TASK_STATE_REJECTED", "rejected", A2A_REJECTED}};

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (str_is(text, states[i].modern) || str_is(text, states[i].legacy)) {
            return states[i].state;
        }
    }
    return A2A_NONE;
}

/* ---- taking ---- */

static void take_status(struct a2a_task *t, struct doc status)
{
    const struct str state = text_of(status, "state");
    const struct doc message = doc_get(status, STR_LIT("message"));

    t->state = state_of(state);
    if (t->state == A2A_NONE) {
        (void)err_set(&t->error, BT_PROTOCOL, "the agent sent a state that A2A has not: '%.*s'",
                      state.len > 60 ? 60 : (int)state.len, state.ptr != NULL ? state.ptr : "");
        return;
    }
    if (message.ptr != NULL) {
        buf_clear(&t->says);
        a2a_parts_text(doc_get(message, STR_LIT("parts")), &t->says);
        if (t->says.bad != BT_OK) {
            (void)!buf_check(&t->says, &t->error);
            return;
        }
        if (t->step != NULL && t->says.len > 0 && t->state == A2A_WORKING) {
            char shown[SHOWN + 1];
            const size_t n = utf8_cut((const char *)t->says.at, t->says.len, SHOWN);
            memcpy(shown, t->says.at, n);
            shown[n] = 0;
            bt_step_progress(t->step, -1.0, shown);
        }
    }
}

static struct a2a_artifact *artifact_of(struct a2a_task *t, struct str id)
{
    struct a2a_artifact *a;

    for (uint32_t i = 0; i < t->n; i++) {
        if (str_is(id, t->artifacts[i].id)) {
            return &t->artifacts[i];
        }
    }
    if (t->n == A2A_ARTIFACTS_MAX) {
        (void)err_set(&t->error, BT_LIMIT, "the agent sent more than %d artifacts",
                      A2A_ARTIFACTS_MAX);
        return NULL;
    }
    a = &t->artifacts[t->n++];
    *a = (struct a2a_artifact){.id = ""};
    copy_text(id, a->id);
    buf_init(&a->parts, A2A_STREAM_MAX);
    return a;
}

static void take_parts(struct a2a_task *t, struct str id, struct str name, struct doc parts,
                       bool append)
{
    struct a2a_artifact *a = artifact_of(t, id);
    const bool replaces = a != NULL && !append && a->parts.len > 0;

    if (a == NULL) {
        return;
    }
    copy_text(name, a->name);
    if (replaces) {
        buf_clear(&a->parts);
        if (t->step != NULL) {
            bt_step_stream_reset(t->step);
        }
    }
    for (uint32_t i = 0; i < count(parts); i++) {
        const struct doc part = doc_at(parts, i);
        const struct str text = text_of(part, "text");
        doc_put_doc(&a->parts, part);
        if (t->step != NULL && text.len > 0) {
            bt_step_stream(t->step, text.ptr, text.len);
        }
    }
    if (a->parts.bad == BT_NOMEM) {
        (void)!buf_check(&a->parts, &t->error);
    } else if (a->parts.bad != BT_OK) {
        (void)err_set(&t->error, BT_LIMIT, "the artifacts are larger than %d bytes",
                      A2A_STREAM_MAX);
    }
}

static void take_artifact(struct a2a_task *t, struct doc artifact, bool append)
{
    take_parts(t, text_of(artifact, "artifactId"), text_of(artifact, "name"),
               doc_get(artifact, STR_LIT("parts")), append);
}

/* A whole task replaces what was there: its artifacts are all of them. */
static void take_task(struct a2a_task *t, struct doc task)
{
    const struct doc artifacts = doc_get(task, STR_LIT("artifacts"));
    struct bt_step *step = t->step;

    copy_text(text_of(task, "id"), t->id);
    copy_text(text_of(task, "contextId"), t->context);
    take_status(t, doc_get(task, STR_LIT("status")));
    t->state = t->resumes && t->state == A2A_INPUT ? A2A_WORKING : t->state;
    t->resumes = false;
    t->step = t->n > 0 ? NULL : step; /* what was streamed is not streamed again */
    for (uint32_t i = 0; i < count(artifacts); i++) {
        take_artifact(t, doc_at(artifacts, i), false);
    }
    t->step = step;
}

static void take_message(struct a2a_task *t, struct doc message)
{
    copy_text(text_of(message, "contextId"), t->context);
    t->state = A2A_COMPLETED;
    take_parts(t, STR_LIT("message"), (struct str){NULL, 0}, doc_get(message, STR_LIT("parts")),
               true);
}

static void take_event(struct a2a_task *t, struct doc event)
{
    copy_text(text_of(event, "taskId"), t->id);
    copy_text(text_of(event, "contextId"), t->context);
}

static void take_result(struct a2a_task *t, struct doc result)
{
    const struct str kind = text_of(result, "kind"); /* of 0.3 */
    const struct doc task = doc_get(result, STR_LIT("task"));
    const struct doc message = doc_get(result, STR_LIT("message"));
    struct doc status = doc_get(result, STR_LIT("statusUpdate"));
    struct doc artifact = doc_get(result, STR_LIT("artifactUpdate"));

    status = str_is(kind, "status-update") ? result : status;
    artifact = str_is(kind, "artifact-update") ? result : artifact;
    if (status.ptr != NULL) {
        take_event(t, status);
        take_status(t, doc_get(status, STR_LIT("status")));
    } else if (artifact.ptr != NULL) {
        take_event(t, artifact);
        take_artifact(t, doc_get(artifact, STR_LIT("artifact")), is_true(artifact, "append"));
    } else if (str_is(kind, "message")) {
        take_message(t, result);
    } else if (task.ptr != NULL) {
        take_task(t, task);
    } else if (kind.ptr == NULL && message.ptr != NULL) {
        take_message(t, message);
    } else if (doc_get(result, STR_LIT("status")).ptr != NULL) {
        take_task(t, result);
    } else {
        (void)err_set(&t->error, BT_PROTOCOL,
                      "the agent answered neither a task, a message nor an event");
    }
}

static void take_error(struct a2a_task *t, struct doc error)
{
    const struct str text = text_of(error, "message");
    const struct doc code = doc_get(error, STR_LIT("code"));
    const struct doc_head h =
        code.ptr == NULL ? (struct doc_head){.kind = DOC_NIL} : doc_head(code);
    const int64_t number = h.kind == DOC_INT ? h.i : h.kind == DOC_UINT ? (int64_t)h.u : 0;

    (void)err_set(&t->error,
                  number == -32602   ? BT_INVALID
                  : number == -32001 ? BT_GONE
                                     : BT_PROTOCOL,
                  "the agent answered error %lld: %.*s", (long long)number,
                  text.len > SHOWN ? SHOWN : (int)text.len, text.ptr != NULL ? text.ptr : "");
}

void a2a_task_take(struct a2a_task *t, struct doc answer)
{
    const struct doc error = doc_get(answer, STR_LIT("error"));
    const struct doc result = doc_get(answer, STR_LIT("result"));

    if (error.ptr != NULL && doc_head(error).kind == DOC_MAP) {
        take_error(t, error);
    } else if (result.ptr != NULL) {
        take_result(t, result);
    } else {
        (void)err_set(&t->error, BT_PROTOCOL, "the agent answered no JSON-RPC");
    }
}

bool a2a_task_is_over(const struct a2a_task *t)
{
    return t->error.code != BT_OK || (t->state != A2A_NONE && t->state != A2A_WORKING);
}

/* ---- replying ---- */

struct answer {
    struct bt_step *step;
    struct buf text;
    struct buf data; /* documents */
    uint32_t n_data, n_files;
};

static const char *ending_of(struct str type)
{
    static const struct {
        const char *type, *ending;
    } known[] = {{"text/plain", ".txt"},        {"text/csv", ".csv"},       {"text/html", ".html"},
                 {"text/markdown", ".md"},      {"image/png", ".png"},      {"image/jpeg", ".jpg"},
                 {"application/json", ".json"}, {"application/pdf", ".pdf"}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (str_is(type, known[i].type)) {
            return known[i].ending;
        }
    }
    return ".bin";
}

/* A name that an artifact may have, unique by the number of the file. */
static void name_file(struct answer *a, struct str given, struct str type, char *ret, size_t size)
{
    size_t n = 0;
    char plain[FILE_NAME_MAX / 2];

    for (size_t i = 0; i < given.len && n < sizeof plain - 1; i++) {
        const char c = given.ptr[i];
        const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '_' || (c == '.' && n > 0);
        plain[n] = ok ? c : '_';
        n++;
    }
    plain[n] = 0;
    if (n == 0) {
        (void)snprintf(ret, size, "file-%u%s", a->n_files, ending_of(type));
    } else if (a->n_files > 1) {
        (void)snprintf(ret, size, "%u-%s", a->n_files, plain);
    } else {
        (void)snprintf(ret, size, "%s", plain);
    }
}

static enum bt_code put_file(struct answer *a, struct str name, struct str type, struct str base64,
                             struct bt_error *err)
{
    struct bt_artifact *to = NULL;
    char file[FILE_NAME_MAX + 1];
    char media[A2A_ID_MAX] = "";
    struct buf bytes;
    enum bt_code code;

    a->n_files++;
    name_file(a, name, type, file, sizeof file);
    copy_text(type, media);
    buf_init(&bytes, A2A_STREAM_MAX);
    code = json_read_base64(base64, &bytes, err);
    if (code == BT_OK) {
        code = bt_artifact_create(a->step, file, media[0] != 0 ? media : NULL, &to, err);
    }
    if (code == BT_OK) {
        code = bt_artifact_write(to, bytes.at, bytes.len, err);
        if (code == BT_OK) {
            code = bt_artifact_commit(to, err);
        } else {
            bt_artifact_abort(to);
        }
    }
    buf_done(&bytes);
    return code == BT_OK ? BT_OK : err_wrap(err, "the file '%s' of the agent", file);
}

static void put_link(struct answer *a, struct str name, struct str type, struct str url)
{
    char file[A2A_ID_MAX] = "file";
    char media[A2A_ID_MAX] = "";
    char *uri = strndup(url.ptr, url.len);

    a->n_files++;
    copy_text(name, file);
    copy_text(type, media);
    if (uri != NULL) {
        bt_step_reply_artifact(a->step, file, media[0] != 0 ? media : NULL, uri);
    } else {
        step_lose(a->step, "the link to a file");
    }
    free(uri);
}

/* 1.0: {text | data | raw | url, filename, mediaType}. 0.3: {kind: text | data | file}. */
static enum bt_code put_part(struct answer *a, struct doc part, struct bt_error *err)
{
    const struct doc file = doc_get(part, STR_LIT("file"));
    const struct doc data = doc_get(part, STR_LIT("data"));
    const struct str text = text_of(part, "text");
    const bool legacy = file.ptr != NULL;
    const struct str raw = legacy ? text_of(file, "bytes") : text_of(part, "raw");
    const struct str url = legacy ? text_of(file, "uri") : text_of(part, "url");
    const struct str name = legacy ? text_of(file, "name") : text_of(part, "filename");
    const struct str type = legacy ? text_of(file, "mimeType") : text_of(part, "mediaType");

    if (text.ptr != NULL) {
        buf_add_str(&a->text, text);
    } else if (raw.ptr != NULL) {
        return put_file(a, name, type, raw, err);
    } else if (url.ptr != NULL) {
        put_link(a, name, type, url);
    } else if (data.ptr != NULL) {
        doc_put_doc(&a->data, data);
        a->n_data++;
    } else {
        return err_set(err, BT_PROTOCOL, "the agent sent a part without text, data or file");
    }
    return BT_OK;
}

static enum bt_code put_artifacts(struct a2a_task *t, struct answer *a, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < t->n && code == BT_OK; i++) {
        struct doc_cursor c = doc_cursor(doc_from_buf(&t->artifacts[i].parts));
        const size_t before = a->text.len;
        struct doc part;
        c.end = t->artifacts[i].parts.at + t->artifacts[i].parts.len;
        if (t->artifacts[i].parts.len == 0) {
            continue;
        }
        if (before > 0) {
            buf_add_cstr(&a->text, "\n\n");
        }
        while (code == BT_OK && (part = doc_skip(&c)).ptr != NULL) {
            code = put_part(a, part, err);
        }
        if (before > 0 && a->text.len == before + 2) {
            buf_truncate(&a->text, before);
        }
    }
    return code;
}

/* One value as it is; several as a list. */
static enum bt_code put_data(struct answer *a, struct bt_error *err)
{
    struct buf list;
    struct buf json;
    enum bt_code code;

    buf_init(&list, A2A_STREAM_MAX);
    buf_init(&json, A2A_STREAM_MAX);
    if (a->n_data > 1) {
        doc_put_array(&list, a->n_data);
    }
    buf_add(&list, a->data.at, a->data.len);
    code = buf_check(&list, err);
    code = code == BT_OK ? doc_to_json(doc_from_buf(&list), false, &json, err) : code;
    if (code == BT_OK) {
        bt_step_reply_json(a->step, (const char *)json.at, json.len);
    }
    buf_done(&list);
    buf_done(&json);
    return code;
}

static void reply_completed(struct a2a_task *t, struct bt_step *step)
{
    struct answer a = {.step = step};
    struct bt_error err;
    enum bt_code code;

    buf_init(&a.text, A2A_STREAM_MAX);
    buf_init(&a.data, A2A_STREAM_MAX);
    code = put_artifacts(t, &a, &err);
    code = code == BT_OK ? buf_check(&a.data, &err) : code;
    if (code == BT_OK && a.text.len == 0 && a.n_data == 0 && t->says.len > 0) {
        buf_add_str(&a.text, buf_str(&t->says)); /* the agent answered by its status */
    }
    code = code == BT_OK ? buf_check(&a.text, &err) : code;
    if (code == BT_OK && a.n_data > 0) {
        code = put_data(&a, &err);
    }
    if (code == BT_OK) {
        if (a.text.len > 0 || a.n_data == 0) {
            bt_step_reply_bytes(step, a.text.len > 0 ? (const char *)a.text.at : "", a.text.len);
        }
    } else if (code == BT_NOMEM) {
        step_lose(step, "the result");
    } else {
        bt_step_fail_error(step, &err);
    }
    buf_done(&a.text);
    buf_done(&a.data);
}

static void put_details(const struct a2a_task *t, struct bt_step *step)
{
    struct buf doc;
    struct buf json;

    buf_init(&doc, 4096);
    buf_init(&json, 8192);
    doc_put_map(&doc, 2);
    doc_put_cstr(&doc, "taskId");
    doc_put_cstr(&doc, t->id);
    doc_put_cstr(&doc, "contextId");
    doc_put_cstr(&doc, t->context);
    if (buf_check(&doc, NULL) == BT_OK &&
        doc_to_json(doc_from_buf(&doc), false, &json, NULL) == BT_OK) {
        bt_step_details_json(step, (const char *)json.at, json.len);
    }
    buf_done(&doc);
    buf_done(&json);
}

void a2a_task_reply(struct a2a_task *t, struct bt_step *step)
{
    const char *says = t->says.len > 0 ? buf_cstr(&t->says) : NULL;

    switch (t->state) {
    case A2A_COMPLETED:
        reply_completed(t, step);
        break;
    case A2A_INPUT:
        bt_step_need_input(step,
                           "{\"type\":\"object\",\"required\":[\"" A2A_ANSWER
                           "\"],\"properties\":{\"" A2A_ANSWER
                           "\":{\"type\":\"string\",\"minLength\":1}}}",
                           "%.1000s", says != NULL ? says : "The agent asks for input.");
        break;
    case A2A_AUTH:
        bt_step_fail(step, "PERMISSION_DENIED", false,
                     "the agent asks for a credential of its own: %.400s",
                     says != NULL ? says : "it does not name which");
        break;
    case A2A_REJECTED:
        bt_step_fail(step, "VALIDATION_ERROR", false, "the agent rejected the task: %.400s",
                     says != NULL ? says : "without a reason");
        break;
    case A2A_CANCELED:
        bt_step_fail(step, "CANCELLED", false, "the agent cancelled the task: %.400s",
                     says != NULL ? says : "without a reason");
        break;
    case A2A_FAILED:
    case A2A_NONE:
    case A2A_WORKING:
        bt_step_fail(step, "UNKNOWN", false, "the task failed: %.400s",
                     says != NULL ? says : "without a reason");
        break;
    }
    put_details(t, step);
}

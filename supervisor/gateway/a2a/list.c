/* ListTasks: a page of plan.list as tasks, with their results when they are asked for. */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/gateway/a2a/a2a_internal.h"

enum { PAGE = 50, PAGE_MAX = 100, ANY_STATE = A2A_STATES };

struct list {
    struct buf plans; /* the array of a page, copied */
    struct doc_cursor at;
    uint32_t left;
    char cursor[65];
    uint64_t size;
    int state;        /* that is asked for, or ANY_STATE */
    struct str after; /* tasks that changed later; of the params */
    bool artifacts, first;
    enum a2a_state now; /* of the plan whose result is out */
};

void a2a_list_free(struct a2a *a)
{
    if (a->list != NULL) {
        buf_done(&a->list->plans);
        free(a->list);
    }
}

static struct doc param(const struct a2a *a, const char *name)
{
    return doc_get(a->params, str_from(name));
}

static void finish(struct a2a *a)
{
    struct list *l = a->list;
    struct buf *out = &a->h->out;

    json_close(out, ']');
    json_key(out, "nextPageToken");
    json_cstr(out, l->cursor);
    json_key(out, "pageSize");
    json_u64(out, l->size);
    json_close(out, '}');
    a2a_end(a, out);
    a2a_answer(a);
}

static void next_task(struct a2a *a);

static void on_result(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    const struct doc none = {.ptr = NULL};
    const struct str why = doc_string(doc_get(reply->body, STR_LIT("failureReason")));

    a->h->call = NULL;
    if (!reply->ok && reply->problem.code != BT_NOT_FOUND && reply->problem.code != BT_GONE) {
        a2a_refuse_problem(a, &reply->problem);
        return;
    }
    if (reply->ok) { /* else it was deleted meanwhile */
        a2a_put_task(a, a->list->now, why, reply->ok ? reply->body : none, &a->h->out);
    }
    next_task(a);
}

static bool wanted(const struct list *l, const struct a2a *a, enum a2a_state s)
{
    const struct str when = str_from(a->when);
    const size_t n = when.len < l->after.len ? when.len : l->after.len;
    const int order = n == 0 ? 0 : memcmp(when.ptr, l->after.ptr, n);

    return (l->state == ANY_STATE || l->state == (int)s) &&
           (l->after.len == 0 || order > 0 || (order == 0 && when.len >= l->after.len));
}

/* Writes tasks until one needs its result, which is asked for, or to the end. */
static void next_task(struct a2a *a)
{
    struct list *l = a->list;
    struct buf fields;

    while (l->left > 0) {
        const struct doc plan = doc_skip(&l->at);
        const struct str id = doc_string(doc_get(plan, STR_LIT("planId")));
        l->left--;
        (void)snprintf(a->plan, sizeof a->plan, "%.*s", (int)id.len, id.ptr);
        l->now = a2a_take_view(a, plan);
        if (!wanted(l, a, l->now)) {
            continue;
        }
        if (l->artifacts && a2a_is_over(l->now)) {
            buf_init(&fields, 256);
            a2a_put_fields(&fields, a->plan);
            a2a_ask(a, MSG_plan_result, MSG_plan_result_ok, true, &fields, on_result);
            buf_done(&fields);
            return;
        }
        a2a_put_task(a, l->now, doc_string(doc_get(plan, STR_LIT("failureReason"))),
                     (struct doc){.ptr = NULL}, &a->h->out);
    }
    finish(a);
}

static void begin(struct a2a *a)
{
    struct buf *out = &a->h->out;
    struct doc_head head = {.kind = DOC_NIL};

    a->list->at = doc_cursor(doc_from_buf(&a->list->plans));
    a->list->left = doc_next(&a->list->at, &head) && head.kind == DOC_ARRAY ? head.n : 0;
    a2a_begin(a, out);
    json_open(out, '{');
    json_key(out, "tasks");
    json_open(out, '[');
    next_task(a);
}

/* The context of a plan without a session is the plan. */
static void on_alone(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    const bool in_session = doc_get(reply->body, STR_LIT("sessionId")).ptr != NULL;

    a->h->call = NULL;
    buf_clear(&a->list->plans);
    doc_put_array(&a->list->plans, reply->ok && !in_session);
    if (reply->ok && !in_session) {
        doc_put_doc(&a->list->plans, reply->body);
    }
    begin(a);
}

static void on_plans(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    struct list *l = a->list;
    const struct doc plans = doc_get(reply->body, STR_LIT("plans"));
    const struct str cursor = doc_string(doc_get(reply->body, STR_LIT("cursor")));
    const struct str context = doc_string(param(a, "contextId"));
    struct buf fields;

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
        return;
    }
    (void)snprintf(l->cursor, sizeof l->cursor, "%.*s", (int)cursor.len,
                   cursor.len > 0 ? cursor.ptr : "");
    buf_add(&l->plans, plans.ptr, plans.ptr == NULL ? 0 : plans.len);
    if (context.len > 0 && l->first && doc_at(plans, 0).ptr == NULL) {
        (void)snprintf(a->plan, sizeof a->plan, "%.*s", (int)context.len, context.ptr);
        buf_init(&fields, 256);
        a2a_put_fields(&fields, a->plan);
        a2a_ask(a, MSG_plan_get, MSG_plan_view, true, &fields, on_alone);
        buf_done(&fields);
        return;
    }
    begin(a);
}

/* False after refusing. */
static bool read_state(struct a2a *a, struct list *l, const char **ret_status)
{
    static const struct {
        const char *word;
        int state;
        const char *status; /* of plans; NULL: it has several */
    } words[] = {{"TASK_STATE_SUBMITTED", A2A_SUBMITTED, NULL},
                 {"TASK_STATE_WORKING", A2A_WORKING, NULL},
                 {"TASK_STATE_INPUT_REQUIRED", A2A_INPUT_REQUIRED, "waiting"},
                 {"TASK_STATE_COMPLETED", A2A_COMPLETED, "completed"},
                 {"TASK_STATE_FAILED", A2A_FAILED, "failed"},
                 {"TASK_STATE_CANCELED", A2A_CANCELED, "cancelled"},
                 {"TASK_STATE_UNSPECIFIED", ANY_STATE, NULL}};
    const struct doc status = param(a, "status");
    const struct str word = doc_string(status);

    l->state = ANY_STATE;
    *ret_status = NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (str_is(word, words[i].word)) {
            l->state = words[i].state;
            *ret_status = words[i].status;
            return true;
        }
    }
    if (status.ptr == NULL) {
        return true;
    }
    a2a_refuse(a, A2A_PARAMS, "status: expected a state of tasks, as TASK_STATE_WORKING");
    return false;
}

/* False after refusing. */
static bool read_size(struct a2a *a, struct list *l)
{
    const struct doc size = param(a, "pageSize");
    const struct doc_head head =
        size.ptr == NULL ? (struct doc_head){.kind = DOC_UINT, .u = PAGE} : doc_head(size);

    if (head.kind == DOC_UINT && head.u > 0 && head.u <= PAGE_MAX) {
        l->size = head.u;
        return true;
    }
    a2a_refuse(a, A2A_PARAMS, "pageSize: expected a number from 1 to 100");
    return false;
}

static void put_text(struct buf *out, const char *name, struct str text)
{
    if (text.len > 0) {
        doc_put_cstr(out, name);
        doc_put_str(out, text);
    }
}

void a2a_list(struct a2a *a)
{
    const struct str context = doc_string(param(a, "contextId"));
    const struct str token = doc_string(param(a, "pageToken"));
    const struct doc artifacts = param(a, "includeArtifacts");
    struct list *l = a->list = calloc(1, sizeof *l);
    const char *status;
    struct buf fields;

    if (l == NULL) {
        a2a_refuse(a, A2A_INTERNAL, "out of memory for tasks");
        return;
    }
    buf_init(&l->plans, 2 * LIMIT_CONTROL_BYTES);
    l->after = doc_string(param(a, "statusTimestampAfter"));
    l->artifacts =
        artifacts.ptr != NULL && doc_head(artifacts).kind == DOC_BOOL && doc_head(artifacts).b;
    l->first = token.len == 0;
    if (!read_size(a, l) || !read_state(a, l, &status)) {
        return;
    }
    if (l->after.len > 0 &&
        (l->after.len < 20 || l->after.ptr[4] != '-' || l->after.ptr[10] != 'T')) {
        a2a_refuse(a, A2A_PARAMS,
                   "statusTimestampAfter: expected a time in UTC, as 2026-11-25T08:00:00.000Z");
        return;
    }
    if (context.len > 64) {
        a2a_refuse(a, A2A_PARAMS, "contextId: has at most 64 bytes");
        return;
    }
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    doc_put_map(&fields, 1u + (context.len > 0) + (token.len > 0) + (status != NULL));
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, l->size);
    put_text(&fields, "sessionId", context);
    put_text(&fields, "cursor", token);
    put_text(&fields, "status", str_from(status != NULL ? status : ""));
    a2a_ask(a, MSG_plan_list, MSG_plan_list_ok, true, &fields, on_plans);
    buf_done(&fields);
}

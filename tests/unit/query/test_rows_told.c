/* What each row of the journal changes in the view of a plan, its steps and its history, and that
 * it changes nothing else. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/engine/row_body.h"
#include "supervisor/journal/journal.h"
#include "supervisor/query/history.h"
#include "supervisor/query/projection.h"
#include "tests/support/cmocka.h"

enum { LINES_MAX = 400, LINE_BYTES = 160, STEPS_LOOKED_AT = 2 };

/* A view, flat: one line "path=value" for each value that there is. */
struct lines {
    char at[LINES_MAX][LINE_BYTES];
    uint32_t n;
};

struct telling {
    struct projection projection;
    struct history history;
    struct arena scratch;
    struct lines before, after;
    msec wall;
    uint64_t seq;
};

/* ---- a view as lines ---- */

static void add(struct lines *l, const char *path, const char *value)
{
    assert_true(l->n < LINES_MAX);
    assert_true(strlen(path) + strlen(value) + 2 <= LINE_BYTES);
    (void)snprintf(l->at[l->n++], LINE_BYTES, "%s=%s", path, value);
}

static void add_number(struct lines *l, const char *path, uint64_t value)
{
    char text[24];

    if (value != 0) {
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        add(l, path, text);
    }
}

static void add_usage(struct lines *l, const char *path, const struct usage *u)
{
    char text[80];

    if (u->input_tokens != 0 || u->output_tokens != 0 || u->cost_micros != 0) {
        (void)snprintf(text, sizeof text, "%llu/%llu/%llu", (unsigned long long)u->input_tokens,
                       (unsigned long long)u->output_tokens, (unsigned long long)u->cost_micros);
        add(l, path, text);
    }
}

static void add_ref(struct lines *l, const char *path, const struct blob_ref *ref)
{
    char text[64];

    if (ref->id != 0 || ref->len != 0 || ref->truncated) {
        (void)snprintf(text, sizeof text, "%llu:%llu%s", (unsigned long long)ref->id,
                       (unsigned long long)ref->len, ref->truncated ? ", a part" : "");
        add(l, path, text);
    }
}

/* A time as minutes and seconds; all are within one hour. */
static void add_text(struct lines *l, const char *path, const char *text)
{
    static const char hour[] = "1970-01-01T00:";
    char time[8];

    if (strncmp(text, hour, sizeof hour - 1) == 0) {
        (void)snprintf(time, sizeof time, "%.5s", text + sizeof hour - 1);
        add(l, path, time);
    } else if (text[0] != 0) {
        add(l, path, text);
    }
}

static void add_json(struct lines *l, const char *path, const cJSON *value)
{
    const cJSON *part;
    char name[LINE_BYTES];
    int i = 0;

    if (cJSON_IsString(value)) {
        add_text(l, path, value->valuestring);
    } else if (cJSON_IsNumber(value)) {
        add_number(l, path, (uint64_t)value->valuedouble);
    } else if (cJSON_IsBool(value)) {
        add(l, path, cJSON_IsTrue(value) ? "true" : "false");
    }
    cJSON_ArrayForEach(part, value)
    {
        if (part->string != NULL) {
            (void)snprintf(name, sizeof name, "%s%s%s", path, path[0] != 0 ? "." : "",
                           part->string);
        } else {
            (void)snprintf(name, sizeof name, "%s.%d", path, i++);
        }
        add_json(l, name, part);
    }
}

static void add_message(struct lines *l, const char *path, enum msg_type type, const void *body)
{
    const struct msg_part part = {type, body};
    struct bt_error err;
    struct buf out;
    cJSON *json;

    buf_init(&out, 1000000);
    if (msg_write(&out, WIRE_JSON, &part, 1, &err) != BT_OK) {
        fail_msg("%s: %s", path, err.msg);
    }
    json = cJSON_Parse(buf_cstr(&out));
    assert_non_null(json);
    add_json(l, path, json);
    cJSON_Delete(json);
    buf_done(&out);
}

static void add_step(struct lines *l, uint32_t i, const struct projection_step *x)
{
    const struct projection_children *c = &x->children;
    char at[40], part[64];

    (void)snprintf(at, sizeof at, "step%u", i);
#define AT(name) ((void)snprintf(part, sizeof part, "%s." name, at), part)
    add_ref(l, AT("result"), &x->result);
    add_ref(l, AT("detailsRef"), &x->details);
    add_usage(l, AT("usage"), &x->usage);
    add_number(l, AT("began"), x->began);
    add_number(l, AT("firstAttempt"), x->first_attempt);
    add_number(l, AT("ended"), x->ended);
    add_number(l, AT("failedAttempts"), x->failed_attempts);
    add_number(l, AT("turns"), x->turns);
    add_number(l, AT("calls"), x->calls);
    add_number(l, AT("child.items"), c->items);
    if (x->task.len > 0) {
        char task[64];
        (void)snprintf(task, sizeof task, "%.*s", STR_ARG(x->task));
        add(l, AT("taskSent"), task);
    }
#undef AT
}

static void add_plan(struct lines *l, const struct projection *s)
{
    char text[100];

    add_usage(l, "planning", &s->planning);
    add_usage(l, "replanning", &s->replanning);
    add_usage(l, "synthesis", &s->synthesis);
    add_usage(l, "total", &s->total);
    add_ref(l, "revised", &s->revised);
    add_ref(l, "summaryRef", &s->summary);
    add_ref(l, "state", &s->state);
    add_number(l, "paused", s->paused);
    add_number(l, "started", s->started);
    add_number(l, "endedAt", s->ended_at);
    add_number(l, "phase", s->phase);
    add_number(l, "ended", s->ended);
    for (uint32_t i = 0; i < s->revisions_n; i++) {
        (void)snprintf(text, sizeof text, "document of revision %llu",
                       (unsigned long long)s->revisions[i].revision);
        add_ref(l, text, &s->revisions[i].document);
    }
    for (uint32_t i = 0; i < s->handoffs_n; i++) {
        (void)snprintf(text, sizeof text, "handoffs.%u", i);
        add_message(l, text, MSG_handoff_record, &s->handoffs[i]);
    }
    if (s->failure_text.len > 0) {
        (void)snprintf(text, sizeof text, "%.*s", STR_ARG(s->failure_text));
        add(l, "failureText", text);
    }
}

static void add_history(struct lines *l, const struct history *h)
{
    char name[40];

#define EACH(list, part)                                                                           \
    for (uint32_t i = 0; i < h->list##_n; i++) {                                                   \
        (void)snprintf(name, sizeof name, #list ".%u", i);                                         \
        add_message(l, name, MSG_##part, &h->list[i]);                                             \
    }
    EACH(revisions, revision_record)
    EACH(replans, replan_record)
    EACH(phases, phase_record)
    EACH(reviews, review_record)
    EACH(orders, order_record)
#undef EACH
    for (uint32_t i = 0; i < h->replans_n; i++) {
        (void)snprintf(name, sizeof name, "replan of step %u", h->replan_steps[i]);
        add(l, name, "1");
    }
    add_number(l, "truncated", h->truncated);
}

static void look(const struct telling *t, struct lines *ret)
{
    const struct projection *s = &t->projection;
    struct msg_plan_view view = s->view;

    ret->n = 0;
    view.steps_n = s->steps_cap < STEPS_LOOKED_AT ? s->steps_cap : STEPS_LOOKED_AT;
    view.last_seq = view.plan_seq = 0;
    add_message(ret, "", MSG_plan_view, &view);
    for (uint32_t i = 0; i < view.steps_n; i++) {
        add_step(ret, i, &s->steps[i]);
    }
    add_plan(ret, s);
    add_history(ret, &t->history);
}

/* ---- what a row changes ---- */

/* Whether a line is this one; with as_path, whether a line has its path. */
static bool has(const struct lines *l, const char *line, bool as_path)
{
    const size_t path = strcspn(line, "=") + 1;

    for (uint32_t i = 0; i < l->n; i++) {
        if (as_path ? strncmp(l->at[i], line, path) == 0 : strcmp(l->at[i], line) == 0) {
            return true;
        }
    }
    return false;
}

/* "path=value; " of what is new or another, "path=-; " of what is gone. */
static void changes(const struct lines *before, const struct lines *after, struct buf *out)
{
    for (uint32_t i = 0; i < after->n; i++) {
        if (!has(before, after->at[i], false)) {
            buf_printf(out, "%s%s", out->len > 0 ? "; " : "", after->at[i]);
        }
    }
    for (uint32_t i = 0; i < before->n; i++) {
        if (!has(after, before->at[i], true)) {
            buf_printf(out, "%s%.*s=-", out->len > 0 ? "; " : "", (int)strcspn(before->at[i], "="),
                       before->at[i]);
        }
    }
}

static struct telling *begin(void)
{
    struct telling *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->wall = t->projection.created = 1000000;
    t->history.executing = UINT32_MAX;
    look(t, &t->before);
    return t;
}

static void end(struct telling *t)
{
    arena_done(&t->scratch);
    projection_free(&t->projection);
    free(t);
}

/* One row, 1 s after the one before, changes exactly this. */
static void row(struct telling *t, const char *type, const char *json, const char *expected)
{
    struct buf body, text, out;
    struct bt_error err;
    struct journal_row r = {.type = str_from(type), .is_public = true, .wall = t->wall += 1000};

    buf_init(&text, 100000);
    buf_init(&body, 100000);
    buf_init(&out, 100000);
    buf_add_cstr(&text, json);
    for (size_t i = 0; i < text.len; i++) {
        text.at[i] = text.at[i] == '\'' ? '"' : text.at[i];
    }
    assert_int_equal(json_to_doc(buf_str(&text), NULL, &body, &err), BT_OK);
    r.seq = r.plan_seq = ++t->seq;
    r.body = body.at;
    r.body_len = body.len;
    assert_int_equal(projection_apply(&t->projection, &t->scratch, &r, &err), BT_OK);
    assert_true(history_row(&t->projection, &r, &t->history));
    arena_reset(&t->scratch);
    look(t, &t->after);
    changes(&t->before, &t->after, &out);
    if (strcmp(out.len > 0 ? buf_cstr(&out) : "", expected) != 0) {
        fail_msg("%s %s\nchanged:  %s\nexpected: %s", type, json, buf_cstr(&out), expected);
    }
    assert_int_equal(t->projection.updated, t->wall);
    assert_int_equal(t->projection.last_seq, t->seq);
    t->before = t->after;
    buf_done(&text);
    buf_done(&body);
    buf_done(&out);
}

struct told {
    const char *type, *json, *changed;
};

static void tell_all(const struct told *rows, size_t n)
{
    struct telling *t = begin();

    for (size_t i = 0; i < n; i++) {
        row(t, rows[i].type, rows[i].json, rows[i].changed);
    }
    end(t);
}

#define TELL(rows) tell_all(rows, sizeof rows / sizeof rows[0])

/* ---- the rows ---- */

static const struct told rows_attempts[] = {
    {"plan_step_started", "{'stepId':'a','stepIndex':0,'task':'count'}",
     "steps.0.status=in_progress; steps.0.startedAt=16:41; step0.began=1001000; "
     "step0.taskSent=count"},
    {"plan_step_started",
     "{'stepId':'a','stepIndex':0,'agentId':'calc','attempt':1,'instanceId':'i1','task':'count "
     "it'}",
     "steps.0.agentId=calc; steps.0.attempts=1; steps.0.startedAt=16:42; steps.0.instanceId=i1; "
     "step0.began=1002000; step0.firstAttempt=1002000; step0.taskSent=count it"},
    {"plan_step_retry",
     "{'stepId':'a','stepIndex':0,'attempt':1,'error':'slow','errorClass':'TIMEOUT','hint':'raise "
     "timeoutMs','detailsRef':5,'detailsLen':50,'usage':{'inputTokens':1,'outputTokens':2,'"
     "costMicros':3}}",
     "steps.0.error=slow; steps.0.errorClass=TIMEOUT; steps.0.hint=raise timeoutMs; "
     "step0.detailsRef=5:50; step0.usage=1/2/3; step0.failedAttempts=1"},
    {"step_assigned",
     "{'stepId':'a','stepIndex':0,'attempt':2,'agentId':'calc','instanceId':'i2','contextTruncated'"
     ":true}",
     "steps.0.attempts=2; steps.0.phase=execute; steps.0.instanceId=i2; "
     "steps.0.contextTruncated=true; step0.detailsRef=-"},
    {"plan_step_retry",
     "{'stepId':'a','stepIndex':0,'attempt':2,'error':'no','errorClass':'UNKNOWN'}",
     "steps.0.error=no; steps.0.errorClass=UNKNOWN; step0.failedAttempts=2; steps.0.hint=-"},
    {"plan_step_started",
     "{'stepId':'a','stepIndex':0,'agentId':'calc','attempt':3,'instanceId':'i3','task':'count "
     "it','contextCuts':1}",
     "steps.0.attempts=3; steps.0.startedAt=16:46; steps.0.instanceId=i3; step0.began=1006000"},
    {"fallback_used",
     "{'stepId':'a','stepIndex':0,'attempt':3,'agentId':'other','error':'gone','class':'TOOL_NOT_"
     "FOUND','usage':{'inputTokens':10,'outputTokens':0,'costMicros':0}}",
     "steps.0.agentId=other; steps.0.error=gone; steps.0.errorClass=TOOL_NOT_FOUND; fallbacks=1; "
     "step0.usage=11/2/3; step0.failedAttempts=3"},
    {"step_assigned",
     "{'stepId':'a','stepIndex':0,'attempt':4,'agentId':'other','instanceId':'j','phase':'execute'"
     "}",
     "steps.0.attempts=4; steps.0.instanceId=j; steps.0.contextTruncated=-"},
    {"plan_step_started",
     "{'stepId':'a','stepIndex':0,'agentId':'other','attempt':5,'instanceId':'j','contextLeftOut':"
     "2}",
     "steps.0.attempts=5; steps.0.startedAt=16:49; steps.0.contextTruncated=true; "
     "step0.began=1009000; step0.taskSent=-"},
    {"plan_step_started",
     "{'stepId':'a','stepIndex':0,'agentId':'other','attempt':6,'instanceId':'j'}",
     "steps.0.attempts=6; steps.0.startedAt=16:50; step0.began=1010000; "
     "steps.0.contextTruncated=-"},
    {"agent_handoff",
     "{'handoffId':'h1','fromAgent':{'agentId':'other'},'toAgent':{'agentId':'third'},'reason':'"
     "agent_request','explanation':'better','planStepId':'a','stepIndex':0,'usage':{'inputTokens':"
     "100,'outputTokens':0,'costMicros':0}}",
     "steps.0.agentId=third; steps.0.handoffs=1; step0.usage=111/2/3; handoffs.0.handoffId=h1; "
     "handoffs.0.fromAgentId=other; handoffs.0.toAgentId=third; handoffs.0.reason=agent_request; "
     "handoffs.0.explanation=better; handoffs.0.planStepId=a; handoffs.0.timestamp=16:51"},
    {"agent_handoff",
     "{'handoffId':'h2','fromAgent':{'agentId':'third'},'toAgent':{'agentId':'calc'},'reason':'"
     "handback','planStepId':'a','stepIndex':0}",
     "steps.0.agentId=calc; handoffs.1.handoffId=h2; handoffs.1.fromAgentId=third; "
     "handoffs.1.toAgentId=calc; handoffs.1.reason=handback; handoffs.1.planStepId=a; "
     "handoffs.1.timestamp=16:52"},
    {"plan_step_started",
     "{'stepId':'b','stepIndex':1,'agentId':'calc','attempt':1,'instanceId':'k','task':'other'}",
     "currentStepIndex=1; steps.1.stepIndex=1; steps.1.agentId=calc; steps.1.status=in_progress; "
     "steps.1.attempts=1; steps.1.startedAt=16:53; steps.1.instanceId=k; step1.began=1013000; "
     "step1.firstAttempt=1013000; step1.taskSent=other"},
    {"plan_step_progress", "{'stepId':'b','stepIndex':1,'attempt':1,'text':'half'}", ""},
};

static void rows_of_attempts_change_their_step(void **state)
{
    (void)state;
    TELL(rows_attempts);
}

static const struct told rows_questions[] = {
    {"plan_generated", "{'estimatedSteps':2}",
     "revisions.0.revision=1; revisions.0.kind=submitted; revisions.0.timestamp=16:40; "
     "revisions.0.steps=2; phases.0.phase=planning; phases.0.startTime=16:40; "
     "phases.0.endTime=16:41; phases.0.durationMs=1000; phases.0.success=true"},
    {"plan_started", "{}", "started=1002000; phases.1.phase=execution; phases.1.startTime=16:42"},
    {"quality_gate_started",
     "{'stepId':'a','stepIndex':0,'usage':{'inputTokens':1,'outputTokens':0,'costMicros':0}}",
     "steps.0.phase=gate; step0.usage=1/0/0; phases.1.tokens=1"},
    {"quality_gate_passed",
     "{'stepId':'a','stepIndex':0,'usage':{'inputTokens':2,'outputTokens':0,'costMicros':0}}",
     "steps.0.phase=execute; step0.usage=3/0/0; phases.1.tokens=3"},
    {"quality_gate_started", "{'stepId':'a','stepIndex':0}", "steps.0.phase=gate"},
    {"quality_gate_failed",
     "{'stepId':'a','stepIndex':0,'usage':{'inputTokens':4,'outputTokens':0,'costMicros':0}}",
     "steps.0.phase=execute; step0.usage=7/0/0; phases.1.tokens=7"},
    {"quality_gate_started", "{'stepId':'a','stepIndex':0}", "steps.0.phase=gate"},
    {"quality_gate_error",
     "{'stepId':'a','stepIndex':0,'usage':{'inputTokens':8,'outputTokens':0,'costMicros':0}}",
     "steps.0.phase=execute; step0.usage=15/0/0; phases.1.tokens=15"},
    {"step_checking",
     "{'stepId':'a','stepIndex':0,'attempt':1,'phase':'search','usage':{'inputTokens':16,'"
     "outputTokens':0,'costMicros':0}}",
     "steps.0.phase=search; step0.usage=31/0/0; phases.1.tokens=31"},
    {"step_checking",
     "{'stepId':'a','stepIndex':0,'attempt':1,'phase':'verify','usage':{'inputTokens':32,'"
     "outputTokens':0,'costMicros':0}}",
     "steps.0.phase=verify; step0.usage=63/0/0; phases.1.tokens=63"},
    {"plan_step_verification_failed",
     "{'stepId':'a','stepIndex':0,'attempt':1,'diagnosis':'wrong','detailsRef':4,'detailsLen':40,'"
     "usage':{'inputTokens':64,'outputTokens':0,'costMicros':0}}",
     "steps.0.error=wrong; steps.0.errorClass=VERIFICATION_FAILED; steps.0.phase=execute; "
     "step0.detailsRef=4:40; step0.usage=127/0/0; step0.failedAttempts=1; phases.1.tokens=127"},
    {"step_condition", "{'stepId':'a','stepIndex':0,'condition':'results.a.n is 5'}",
     "steps.0.condition=results.a.n is 5"},
    {"step_condition", "{'stepId':'a','stepIndex':0}", ""},
    {"plan_step_waiting",
     "{'stepId':'a','stepIndex':0,'kind':'approval','reviewId':'r1','prompt':'May "
     "it?','detailsRef':6,'detailsLen':60,'usage':{'inputTokens':128,'outputTokens':0,'costMicros':"
     "0}}",
     "steps.0.status=waiting; steps.0.reason=approval; step0.detailsRef=6:60; step0.usage=255/0/0; "
     "phases.1.tokens=255; reviews.0.reviewId=r1; reviews.0.stepId=a; reviews.0.kind=approval; "
     "reviews.0.prompt=May it?; reviews.0.askedAt=16:54"},
    {"review_decided",
     "{'stepId':'a','stepIndex':0,'reviewId':'r1','decision':'approve','comment':'go','by':{'user':"
     "'ann','host':'h','via':'cli','address':'127.0.0.1','id':'ann1'}}",
     "steps.0.status=in_progress; reviews.0.decision=approve; reviews.0.comment=go; "
     "reviews.0.decidedAt=16:55; reviews.0.by.user=ann; reviews.0.by.host=h; reviews.0.by.via=cli; "
     "reviews.0.by.address=127.0.0.1; reviews.0.by.id=ann1; steps.0.reason=-"},
    {"replan_started",
     "{'stepId':'a','stepIndex':0,'attempt':1,'totalReplans':7,'diagnosis':'no "
     "file','errorClass':'RESOURCE_NOT_FOUND','hint':'look','detailsRef':8,'detailsLen':80,'usage':"
     "{'inputTokens':256,'outputTokens':0,'costMicros':0}}",
     "steps.0.error=no file; steps.0.errorClass=RESOURCE_NOT_FOUND; steps.0.hint=look; "
     "steps.0.phase=replan; steps.0.replans=1; replans=1; step0.detailsRef=8:80; "
     "step0.usage=511/0/0; replans.0.attempt=7; replans.0.stepId=a; replans.0.timestamp=16:56; "
     "replans.0.output=no file; replans.0.diagnosis=no file; phases.1.endTime=16:56; "
     "phases.1.durationMs=14000; phases.1.tokens=511; phases.1.success=false; phases.1.details=no "
     "file; phases.2.phase=replanning; phases.2.startTime=16:56; replan of step 0=1"},
};

static void rows_of_questions_about_a_step_change_its_phase_and_its_price(void **state)
{
    (void)state;
    TELL(rows_questions);
}

static const struct told rows_ends[] = {
    {"plan_step_started",
     "{'stepId':'a','stepIndex':0,'agentId':'calc','attempt':1,'instanceId':'i1','task':'t'}",
     "steps.0.agentId=calc; steps.0.status=in_progress; steps.0.attempts=1; "
     "steps.0.startedAt=16:41; steps.0.instanceId=i1; step0.began=1001000; "
     "step0.firstAttempt=1001000; step0.taskSent=t"},
    {"step_assigned",
     "{'stepId':'a','stepIndex':0,'attempt':1,'agentId':'calc','instanceId':'i1','phase':'verify'}",
     "steps.0.phase=verify"},
    {"plan_step_completed",
     "{'stepId':'a','stepIndex':0,'agentId':'other','status':'completed','reason':'late','"
     "condition':'c is "
     "1','attempts':4,'durationMs':77,'result':'five','resultRef':3,'resultLen':33,'truncated':"
     "true,'stop':'killed','stateRef':9,'stateLen':90,'usage':{'inputTokens':1,'outputTokens':2,'"
     "costMicros':4}}",
     "steps.0.agentId=other; steps.0.status=completed; steps.0.reason=late; steps.0.condition=c is "
     "1; steps.0.attempts=4; steps.0.completedAt=16:43; steps.0.durationMs=77; "
     "steps.0.result=five; steps.0.resultLen=33; steps.0.truncated=true; steps.0.stop=killed; "
     "step0.result=3:33, a part; step0.usage=1/2/4; step0.ended=1003000; state=9:90; "
     "steps.0.phase=-"},
    {"plan_step_started",
     "{'stepId':'b','stepIndex':1,'agentId':'calc','attempt':1,'instanceId':'i1','task':'t'}",
     "currentStepIndex=1; steps.1.stepIndex=1; steps.1.agentId=calc; steps.1.status=in_progress; "
     "steps.1.attempts=1; steps.1.startedAt=16:44; steps.1.instanceId=i1; step1.began=1004000; "
     "step1.firstAttempt=1004000; step1.taskSent=t"},
    {"plan_step_retry",
     "{'stepId':'b','stepIndex':1,'attempt':1,'error':'first','errorClass':'TIMEOUT','hint':'h'}",
     "steps.1.error=first; steps.1.errorClass=TIMEOUT; steps.1.hint=h; step1.failedAttempts=1"},
    {"plan_step_completed",
     "{'stepId':'b','stepIndex':1,'status':'failed','reason':'superseded','attempts':1,'error':'a "
     "revision','errorClass':'CANCELLED'}",
     "steps.1.status=failed; steps.1.reason=superseded; steps.1.completedAt=16:46; "
     "step1.ended=1006000"},
    {"plan_step_completed",
     "{'stepId':'b','stepIndex':1,'status':'failed','attempts':2,'error':'again','errorClass':'"
     "UNKNOWN','detailsRef':2,'detailsLen':20}",
     "steps.1.attempts=2; steps.1.completedAt=16:47; steps.1.error=again; "
     "steps.1.errorClass=UNKNOWN; step1.detailsRef=2:20; step1.ended=1007000; "
     "step1.failedAttempts=2; steps.1.reason=-; steps.1.hint=-"},
    {"plan_step_completed",
     "{'stepId':'b','stepIndex':1,'status':'failed','attempts':2,'error':'again','errorClass':'"
     "UNKNOWN'}",
     "steps.1.completedAt=16:48; step1.ended=1008000"},
    {"plan_cancelling", "{'reason':'enough','by':{'user':'bob'}}",
     "cancelling=true; orders.0.kind=cancel; orders.0.timestamp=16:49; orders.0.reason=enough; "
     "orders.0.by.user=bob"},
    {"plan_completed",
     "{'status':'failed','outcome':'partial','failureReason':'Step 2 failed','hint':'raise "
     "it','summary':'five','summaryRef':12,'summaryLen':120,'durationMs':999,'usage':{'inputTokens'"
     ":5,'outputTokens':6,'costMicros':7}}",
     "status=failed; outcome=partial; completedAt=16:50; failureReason=Step 2 failed; "
     "summary=five; durationMs=999; total=5/6/7; summaryRef=12:120; endedAt=1010000; ended=1; "
     "failureText=Step 2 failed; raise it; cancelling=-"},
    {"result_rejected",
     "{'stepId':'a','stepIndex':0,'usage':{'inputTokens':1,'outputTokens':1,'costMicros':1}}",
     "total=6/7/8"},
};

static void the_end_of_a_step_is_shown_with_all_that_it_left(void **state)
{
    (void)state;
    TELL(rows_ends);
}

static const struct told rows_planning[] = {
    {"planning_started", "{}", "phase=1; phases.0.phase=planning; phases.0.startTime=16:41"},
    {"planning_retry", "{'usage':{'inputTokens':1,'outputTokens':0,'costMicros':0}}",
     "planning=1/0/0; phases.0.tokens=1"},
    {"planning_failed",
     "{'reason':'no plan','usage':{'inputTokens':2,'outputTokens':0,'costMicros':0}}",
     "planning=3/0/0; phases.0.endTime=16:43; phases.0.durationMs=2000; phases.0.tokens=3; "
     "phases.0.success=false; phases.0.details=no plan; phase=-"},
    {"planning_started", "{}", "phase=1; phases.1.phase=planning; phases.1.startTime=16:44"},
    {"plan_generated",
     "{'revision':1,'planRef':4,'planLen':40,'estimatedSteps':2,'planner':'llm','parentPlanId':'Q',"
     "'traceparent':'00-0123456789abcdef0123456789abcdef-0123456789abcdef-01','usage':{'"
     "inputTokens':4,'outputTokens':0,'costMicros':0}}",
     "revision=1; parentPlanId=Q; traceId=0123456789abcdef0123456789abcdef; planning=7/0/0; "
     "revised=4:40; document of revision 1=4:40; revisions.0.revision=1; "
     "revisions.0.kind=submitted; revisions.0.timestamp=16:40; revisions.0.steps=2; "
     "revisions.0.planRef=4; revisions.0.planLen=40; phases.1.endTime=16:45; "
     "phases.1.durationMs=1000; phases.1.tokens=4; phases.1.success=true; phases.1.details=llm; "
     "phase=-"},
    {"plan_paused", "{'reason':'planning','reviewId':'P/1','prompt':'Again?'}",
     "paused=8; reviews.0.reviewId=P/1; reviews.0.kind=planning; reviews.0.prompt=Again?; "
     "reviews.0.askedAt=16:46"},
    {"review_decided", "{'reviewId':'P/1','decision':'retry'}",
     "reviews.0.decision=retry; reviews.0.decidedAt=16:47; paused=-"},
    {"plan_started", "{'stepCount':2}",
     "started=1008000; phases.2.phase=execution; phases.2.startTime=16:48"},
    {"plan_step_started",
     "{'stepId':'a','stepIndex':0,'agentId':'calc','attempt':1,'instanceId':'i1','task':'t'}",
     "steps.0.agentId=calc; steps.0.status=in_progress; steps.0.attempts=1; "
     "steps.0.startedAt=16:49; steps.0.instanceId=i1; step0.began=1009000; "
     "step0.firstAttempt=1009000; step0.taskSent=t"},
    {"replan_started",
     "{'stepId':'a','stepIndex':0,'attempt':1,'diagnosis':'no file','errorClass':'UNKNOWN'}",
     "steps.0.error=no file; steps.0.errorClass=UNKNOWN; steps.0.phase=replan; steps.0.replans=1; "
     "replans=1; step0.failedAttempts=1; replans.0.attempt=1; replans.0.stepId=a; "
     "replans.0.timestamp=16:50; replans.0.output=no file; replans.0.diagnosis=no file; "
     "phases.2.endTime=16:50; phases.2.durationMs=2000; phases.2.success=false; "
     "phases.2.details=no file; phases.3.phase=replanning; phases.3.startTime=16:50; replan of "
     "step 0=1"},
    {"replan_finished",
     "{'stepId':'a','stepIndex':0,'ok':false,'reason':'not "
     "valid','revision':1,'usage':{'inputTokens':8,'outputTokens':0,'costMicros':0}}",
     "replanning=8/0/0; replans.0.ok=false; replans.0.revision=1; phases.3.endTime=16:51; "
     "phases.3.durationMs=1000; phases.3.tokens=8; phases.3.success=false; phases.3.details=not "
     "valid; phases.4.phase=execution; phases.4.startTime=16:51"},
    {"replan_started", "{'stepId':'a','stepIndex':0,'attempt':1,'diagnosis':'no file'}",
     "steps.0.replans=2; replans=2; replans.1.attempt=2; replans.1.stepId=a; "
     "replans.1.timestamp=16:52; replans.1.output=no file; replans.1.diagnosis=no file; "
     "phases.4.endTime=16:52; phases.4.durationMs=1000; phases.4.success=false; "
     "phases.4.details=no file; phases.5.phase=replanning; phases.5.startTime=16:52; "
     "steps.0.errorClass=-"},
    {"replan_finished",
     "{'stepId':'a','stepIndex':0,'ok':true,'reason':'so','revision':2,'newSteps':3,'planRef':5,'"
     "planLen':50,'by':{'user':'eve'},'usage':{'inputTokens':16,'outputTokens':0,'costMicros':0}}",
     "revision=2; replanning=24/0/0; revised=5:50; document of revision 2=5:50; "
     "revisions.1.revision=2; revisions.1.kind=replan; revisions.1.reasoning=so; "
     "revisions.1.timestamp=16:53; revisions.1.steps=3; revisions.1.planRef=5; "
     "revisions.1.planLen=50; revisions.1.by.user=eve; replans.1.newTaskCount=3; "
     "replans.1.ok=true; replans.1.revision=2; phases.5.endTime=16:53; phases.5.durationMs=1000; "
     "phases.5.tokens=16; phases.5.success=true; phases.5.details=so; phases.6.phase=execution; "
     "phases.6.startTime=16:53"},
    {"plan_modified",
     "{'kind':'insert','revision':3,'reasoning':'more','newSteps':1,'planRef':6,'planLen':60,'by':{"
     "'user':'ann','via':'cli'}}",
     "revision=3; revised=6:60; document of revision 3=6:60; revisions.2.revision=3; "
     "revisions.2.kind=insert; revisions.2.reasoning=more; revisions.2.timestamp=16:54; "
     "revisions.2.steps=1; revisions.2.planRef=6; revisions.2.planLen=60; revisions.2.by.user=ann; "
     "revisions.2.by.via=cli"},
    {"plan_modified", "{'kind':'conversation_only','revision':4,'reasoning':'said so'}",
     "revision=4; revisions.3.revision=4; revisions.3.kind=conversation_only; "
     "revisions.3.reasoning=said so; revisions.3.timestamp=16:55"},
    {"synthesis_started", "{'status':'completed'}",
     "phase=2; phases.6.endTime=16:56; phases.6.durationMs=3000; phases.6.success=true; "
     "phases.7.phase=synthesis; phases.7.startTime=16:56"},
    {"synthesis_retry",
     "{'ok':false,'reason':'thin','revision':5,'newSteps':1,'planRef':7,'planLen':70,'usage':{'"
     "inputTokens':32,'outputTokens':0,'costMicros':0}}",
     "revision=5; synthesis=32/0/0; revised=7:70; document of revision 5=7:70; "
     "revisions.4.revision=5; revisions.4.kind=synthesis_retry; revisions.4.reasoning=thin; "
     "revisions.4.timestamp=16:57; revisions.4.steps=1; revisions.4.planRef=7; "
     "revisions.4.planLen=70; phases.7.endTime=16:57; phases.7.durationMs=1000; "
     "phases.7.tokens=32; phases.7.success=false; phases.7.details=thin; phases.8.phase=execution; "
     "phases.8.startTime=16:57; phase=-"},
    {"synthesis_started", "{'status':'failed','failureReason':'Step 1 failed'}",
     "phase=2; phases.8.endTime=16:58; phases.8.durationMs=1000; phases.8.success=false; "
     "phases.8.details=Step 1 failed; phases.9.phase=synthesis; phases.9.startTime=16:58"},
    {"synthesis_finished",
     "{'ok':true,'reason':'fine','usage':{'inputTokens':64,'outputTokens':0,'costMicros':0}}",
     "synthesis=96/0/0; phases.9.endTime=16:59; phases.9.durationMs=1000; phases.9.tokens=64; "
     "phases.9.success=true; phases.9.details=fine; phase=-"},
    {"plan_completed", "{'status':'completed','outcome':'success','summary':'done','durationMs':9}",
     "status=completed; outcome=success; completedAt=17:00; summary=done; durationMs=9; "
     "endedAt=1020000; ended=1"},
};

static void rows_of_planning_and_of_revisions_change_the_plan(void **state)
{
    (void)state;
    TELL(rows_planning);
}

static const struct told rows_people[] = {
    {"plan_paused",
     "{'reason':'requested','comment':'wait','by':{'user':'ann','host':'h','via':'cli','address':'"
     "127.0.0.1','id':'ann1'}}",
     "paused=1; orders.0.kind=pause; orders.0.timestamp=16:41; orders.0.reason=wait; "
     "orders.0.by.user=ann; orders.0.by.host=h; orders.0.by.via=cli; "
     "orders.0.by.address=127.0.0.1; orders.0.by.id=ann1"},
    {"plan_paused", "{'reason':'signoff','reviewId':'P/2','prompt':'Sign?'}",
     "paused=5; reviews.0.reviewId=P/2; reviews.0.kind=plan; reviews.0.prompt=Sign?; "
     "reviews.0.askedAt=16:42"},
    {"plan_resumed", "{'reason':'requested','comment':'go on','by':{'id':'bob'}}",
     "paused=4; orders.1.kind=resume; orders.1.timestamp=16:43; orders.1.reason=go on; "
     "orders.1.by.id=bob"},
    {"review_voided", "{'reviewId':'P/2'}",
     "reviews.0.decision=void; reviews.0.decidedAt=16:44; paused=-"},
    {"plan_paused", "{'reason':'signoff','reviewId':'P/3'}",
     "paused=4; reviews.1.reviewId=P/3; reviews.1.kind=plan; reviews.1.askedAt=16:45"},
    {"plan_resumed", "{'reason':'signoff'}", "paused=-"},
    {"plan_step_waiting",
     "{'stepId':'a','stepIndex':0,'kind':'input','reviewId':'r1','prompt':'Which?'}",
     "steps.0.status=waiting; steps.0.reason=input; reviews.2.reviewId=r1; reviews.2.stepId=a; "
     "reviews.2.kind=input; reviews.2.prompt=Which?; reviews.2.askedAt=16:47"},
    {"review_voided", "{'stepId':'a','stepIndex':0,'reviewId':'r1'}",
     "reviews.2.decision=void; reviews.2.decidedAt=16:48"},
    {"review_decided", "{'reviewId':'none such','decision':'approve','stepIndex':1,'stepId':'b'}",
     "steps.1.stepIndex=1; steps.1.status=in_progress"},
    {"plan_cancelling", "{'reason':'enough','by':{'user':'eve'}}",
     "cancelling=true; orders.2.kind=cancel; orders.2.timestamp=16:50; orders.2.reason=enough; "
     "orders.2.by.user=eve"},
    {"plan_completed", "{'status':'cancelled','outcome':'failed','failureReason':'Cancelled'}",
     "status=cancelled; outcome=failed; completedAt=16:51; failureReason=Cancelled; "
     "endedAt=1011000; ended=1; failureText=Cancelled; cancelling=-"},
};

static void what_people_decide_and_order_is_kept_with_their_names(void **state)
{
    (void)state;
    TELL(rows_people);
}

static const struct told rows_undo[] = {
    {"plan_started", "{}", "started=1001000; phases.0.phase=execution; phases.0.startTime=16:41"},
    {"plan_paused", "{'reason':'requested'}",
     "paused=1; orders.0.kind=pause; orders.0.timestamp=16:42"},
    {"compensation_started", "{'failureReason':'Step 1 failed','reason':'failed'}",
     "compensation.status=running; compensation.reason=failed; phase=5; phases.0.endTime=16:43; "
     "phases.0.durationMs=2000; phases.0.success=false; phases.0.details=Step 1 failed; "
     "phases.1.phase=compensation; phases.1.startTime=16:43; paused=-"},
    {"compensation_finished",
     "{'status':'compensation_failed','compensated':2,'failed':1,'reason':'no "
     "undo','usage':{'inputTokens':1,'outputTokens':0,'costMicros':0}}",
     "compensation.status=compensation_failed; compensation.compensated=2; compensation.failed=1; "
     "compensation.reason=no undo; phases.1.endTime=16:44; phases.1.durationMs=1000; "
     "phases.1.tokens=1; phases.1.success=false; phases.1.details=no undo; phase=-"},
    {"compensation_started", "{'failureReason':'x'}",
     "compensation.status=running; phase=5; phases.2.phase=compensation; phases.2.startTime=16:45; "
     "compensation.compensated=-; compensation.failed=-; compensation.reason=-"},
    {"compensation_finished", "{'status':'compensated','compensated':3}",
     "compensation.status=compensated; compensation.compensated=3; phases.2.endTime=16:46; "
     "phases.2.durationMs=1000; phases.2.success=true; phase=-"},
};

static void undoing_is_a_phase_with_its_result(void **state)
{
    (void)state;
    TELL(rows_undo);
}

static const struct told rows_children[] = {
    {"plan_step_progress",
     "{'stepId':'a','stepIndex':0,'attempt':1,'data':{'planId':'01A20FAC-BE48-7031-8026-"
     "339589AC5DF6','round':1,'items':2,'steps':3,'over':2,'completed':1,'failed':1}}",
     "step0.child.items=2"},
    {"calls_started",
     "{'stepId':'a','stepIndex':0,'turn':1,'calls':2,'usage':{'inputTokens':1,'outputTokens':0,'"
     "costMicros':0}}",
     "step0.usage=1/0/0; step0.turns=1; step0.calls=1"},
    {"plan_step_progress",
     "{'stepId':'a','stepIndex':0,'attempt':1,'data':{'planId':'01A20FAC-BE48-7031-8026-"
     "339589AC5DF6','items':5}}",
     "step0.child.items=5"},
    {"calls_finished",
     "{'stepId':'a','stepIndex':0,'turn':2,'usage':{'inputTokens':2,'outputTokens':0,'costMicros':"
     "0}}",
     "step0.usage=3/0/0; step0.turns=2; step0.calls=-"},
    {"plan_step_progress",
     "{'stepId':'a','stepIndex':0,'attempt':1,'data':{'planId':'01A20FAC-BE48-7031-8026-"
     "339589AC5DF6','items':6}}",
     ""},
};

static void a_child_plan_and_calls_of_an_agent_are_of_their_step(void **state)
{
    (void)state;
    TELL(rows_children);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_attempts_change_their_step),
        cmocka_unit_test(rows_of_questions_about_a_step_change_its_phase_and_its_price),
        cmocka_unit_test(the_end_of_a_step_is_shown_with_all_that_it_left),
        cmocka_unit_test(rows_of_planning_and_of_revisions_change_the_plan),
        cmocka_unit_test(what_people_decide_and_order_is_kept_with_their_names),
        cmocka_unit_test(undoing_is_a_phase_with_its_result),
        cmocka_unit_test(a_child_plan_and_calls_of_an_agent_are_of_their_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

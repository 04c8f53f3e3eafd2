/* Each kind of record as its event, and what comes back from its row: with nothing but its step,
 * with the least of all, with all that it can have, in records_told.txt. BATON_WRITE=1 writes the
 * file anew: read the difference against the events' page. */
#include "tests/unit/events/codec_bench.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "protocol/wire/doc.h"
#include "tests/support/golden.h"
#include "tests/unit/core/run/flat_record.h"

static struct uuid id_of(uint8_t n)
{
    struct uuid id = {{0}};

    id.b[6] = 0x70;
    id.b[8] = 0x80;
    id.b[15] = n;
    return id;
}

static bool never_about_a_step(enum record_type t)
{
    return t == REC_PLAN_GENERATED || t == REC_PLAN_STARTED || t == REC_PLAN_CANCELLING ||
           t == REC_PLAN_PAUSED || t == REC_PLAN_RESUMED || t == REC_PLANNING_STARTED ||
           t == REC_PLANNING_RETRY || t == REC_PLANNING_FAILED || t == REC_TEXT_DELTA ||
           t == REC_SYNTHESIS_RETRY || t == REC_SYNTHESIS_FINISHED || t == REC_REVIEW_VOIDED ||
           t == REC_SIGNAL_RECEIVED || t == REC_COMPENSATION_FINISHED;
}

static bool step_is_optional(enum record_type t)
{
    return t == REC_REVIEW_DECIDED || t == REC_PLAN_MODIFIED || t == REC_RESULT_REJECTED ||
           t == REC_PLAN_COMPLETED || t == REC_SYNTHESIS_STARTED || t == REC_COMPENSATION_STARTED;
}

static struct flat_record bare(enum record_type t)
{
    return (struct flat_record){.type = t,
                                .now = 1000,
                                .wall = 1700000000000,
                                .step = never_about_a_step(t) ? STEP_NONE : 1,
                                .attempt = 1,
                                .revision = 1,
                                .serial = 1,
                                .from_agent = AGENT_SUPERVISOR,
                                .status = STEP_COMPLETED,
                                .plan_status = PLAN_COMPLETED,
                                .outcome = (enum plan_outcome)1};
}

/* Every number is 1, every text one letter. */
static struct flat_record least(enum record_type t)
{
    struct flat_record rec = bare(t);

    rec.agent = 1;
    rec.from_agent = 1;
    rec.instance = id_of(1);
    rec.process = id_of(1);
    rec.epoch = 1;
    rec.asked = true;
    rec.failure = PLAN_FAILURE_TIMEOUT;
    rec.capacity = 1;
    rec.pid = 1;
    rec.delay_ms = 1;
    rec.duration_ms = 1;
    rec.result = (struct blob_ref){1, 1, 1, 1};
    rec.usage = (struct usage){1, 1, 1, 1};
    rec.percent = 1;
    rec.n = t == REC_REVIEW_DECIDED ? 2 : 1;
    rec.text = STR_LIT("x");
    return rec;
}

static struct flat_record full(enum record_type t)
{
    struct flat_record rec = bare(t);

    rec.attempt = 3;
    rec.agent = 1;
    rec.from_agent = 2;
    rec.instance = id_of(3);
    rec.process = id_of(4);
    rec.epoch = 5;
    rec.status = STEP_FAILED;
    rec.reason = REASON_ON_FAILURE_SKIP;
    rec.error_class = CLASS_VERIFICATION_FAILED;
    rec.plan_status = PLAN_FAILED;
    rec.outcome = OUTCOME_FAILED;
    rec.failure = PLAN_FAILURE_MAX_REPLANS_STEP;
    rec.review = REVIEW_UNKNOWN_OUTCOME;
    rec.decision = DECISION_COUNT - 1;
    rec.serial = 6;
    rec.phase = STEP_PHASE_COUNT - 1;
    rec.pause = PAUSE_SIGNOFF;
    rec.modify = MODIFY_CONVERSATION_ONLY;
    rec.handoff = HANDOFF_FALLBACK;
    rec.fallback = FALLBACK_AGENT;
    rec.asked = true;
    rec.stop = STOP_ACKNOWLEDGED;
    rec.doubt = true;
    rec.ok = true;
    rec.revision = 2;
    rec.capacity = 7;
    rec.pid = 8;
    rec.delay_ms = 9000;
    rec.duration_ms = 10000;
    rec.result = (struct blob_ref){11, 12, true, 13};
    rec.usage = (struct usage){13, 14, 15, 16};
    rec.percent = 0.5;
    rec.n = 17;
    rec.text = STR_LIT("the text");
    return rec;
}

/* A timeout, a condition, a pause on request: what the others have not. */
static struct flat_record other(enum record_type t)
{
    struct flat_record rec = full(t);

    rec.agent = 2;
    rec.from_agent = 77; /* of nobody */
    rec.status = STEP_SKIPPED;
    rec.reason = REASON_CONDITION;
    rec.error_class = CLASS_TIMEOUT;
    rec.plan_status = PLAN_CANCELLED;
    rec.outcome = OUTCOME_PARTIAL;
    rec.failure = PLAN_FAILURE_STEP;
    rec.review = REVIEW_PLAN;
    rec.decision = DECISION_REJECT;
    rec.phase = PHASE_GATE;
    rec.pause = PAUSE_REQUESTED;
    rec.modify = MODIFY_INSERT;
    rec.handoff = HANDOFF_AGENT;
    rec.fallback = FALLBACK_WAIT;
    rec.stop = STOP_NONE;
    rec.doubt = false;
    rec.ok = false;
    rec.result = (struct blob_ref){0};
    rec.percent = NAN;
    rec.text = STR_LIT("Step execution timeout");
    return rec;
}

/* The members that a flat record does not have. */
static void fill(struct record *rec, bool all, struct buf *data)
{
    const enum record_member member = record_member(rec->type);
    const struct str text = all ? STR_LIT("who") : STR_LIT("x");
    const uint64_t n = all ? 30 : 1;
    const struct doc doc = doc_from_buf(data);

    if (member == RECORD_decided) {
        REC(rec, decided)->by = (struct actor){text, text, text, text, text};
        REC(rec, decided)->shown = (struct blob_ref){.id = n, .len = n};
    } else if (member == RECORD_signal) {
        REC(rec, signal)->key = text;
        REC(rec, signal)->digest = n;
    } else if (member == RECORD_damaged) {
        REC(rec, damaged)->last_seq = n;
    } else if (member == RECORD_rewound) {
        *REC(rec, rewound) = (struct rec_rewound){.kept_seq = n, .lost_seq = n + 1};
    } else if (member == RECORD_waiting) {
        REC(rec, waiting)->data = doc;
    } else if (member == RECORD_progress) {
        REC(rec, progress)->data = doc;
    } else if (member == RECORD_gate) {
        REC(rec, gate)->data = doc;
    }
}

static struct record_extra with_all(struct record_extra x, struct str text, uint64_t n)
{
    x.by = text;
    x.parent = id_of(20);
    x.trace = (struct trace){.id = {1, 2}, .span = n};
    x.task = text;
    x.state = (struct blob_ref){n, n + 1, false};
    x.details = (struct blob_ref){n + 2, n + 3, false};
    x.context_left_out = (uint32_t)n + 4;
    x.description = text;
    x.success_criteria = text;
    x.estimated_tokens = n + 5;
    x.schedule.name = text;
    x.schedule.scheduled_for = STR_LIT("2026-11-30T09:00:00Z");
    x.schedule.until = STR_LIT("2026-12-01T09:00:00Z");
    x.schedule.plan_id = STR_LIT("P");
    x.schedule.kind = STR_LIT("catch_up");
    x.schedule.count = n + 6;
    x.session_id = STR_LIT("s");
    x.turn_id = STR_LIT("t");
    x.turn_plan_id = STR_LIT("p");
    x.action = STR_LIT("new_plan");
    x.outcome = STR_LIT("completed");
    return x;
}

static void say(struct buf *out, const char *name, uint64_t n)
{
    if (n != 0) {
        buf_printf(out, " %s %" PRIu64, name, n);
    }
}

static void say_text(struct buf *out, const char *name, struct str text)
{
    if (text.len > 0) {
        buf_printf(out, " %s '%.*s'", name, STR_ARG(text));
    }
}

static void say_blob(struct buf *out, const char *name, struct blob_ref blob)
{
    if (blob.id != 0) {
        buf_printf(out, " %s %" PRIu64 "/%" PRIu64 "/%u/%u", name, blob.id, blob.len,
                   blob.truncated, blob.text_len);
    }
}

/* What only some members have, beside those of a flat record. */
static void say_member(struct buf *out, const struct record *rec)
{
    const enum record_member member = record_member(rec->type);

    if (member == RECORD_decided) {
        const struct rec_decided *decided = REC(rec, decided);
        say_text(out, "user", decided->by.user);
        say_text(out, "host", decided->by.host);
        say_text(out, "via", decided->by.via);
        say_text(out, "address", decided->by.address);
        say_text(out, "id", decided->by.id);
        say_blob(out, "shown", decided->shown);
    } else if (member == RECORD_signal) {
        say_text(out, "key", REC(rec, signal)->key);
        say(out, "digest", REC(rec, signal)->digest);
    } else if (member == RECORD_step_completed) {
        say_blob(out, "state", REC(rec, step_completed)->state);
    } else if (member == RECORD_assigned) {
        say(out, "cut", REC(rec, assigned)->context_truncated);
    }
}

/* What comes back from its row. */
static void say_back(struct bench *b, const struct record *rec, struct buf *out)
{
    const struct record got = decode(b, rec, rec->now + 1, rec->wall + 1);
    const struct flat_record flat = flat_record(&got);

    buf_add_cstr(out, "  back:");
    say(out, "step", flat.step + 1);
    say(out, "attempt", flat.attempt);
    say(out, "agent", flat.agent + 1);
    say(out, "from", rec->type == REC_HANDOFF ? flat.from_agent + 1 : 0);
    say(out, "instance", flat.instance.b[15]);
    say(out, "process", flat.process.b[15]);
    say(out, "epoch", flat.epoch);
    say(out, "status", flat.status);
    say(out, "reason", flat.reason);
    say(out, "class", flat.error_class);
    say(out, "plan", flat.plan_status);
    say(out, "outcome", flat.outcome);
    say(out, "failure", flat.failure);
    say(out, "review", flat.review);
    say(out, "decision", flat.decision);
    say(out, "serial", flat.serial);
    say(out, "phase", flat.phase);
    say(out, "pause", flat.pause);
    say(out, "modify", flat.modify);
    say(out, "handoff", flat.handoff);
    say(out, "fallback", flat.fallback);
    say(out, "asked", flat.asked);
    say(out, "stop", flat.stop);
    say(out, "doubt", flat.doubt);
    say(out, "ok", flat.ok);
    say(out, "revision", flat.revision);
    say(out, "delay", flat.delay_ms);
    say(out, "duration", flat.duration_ms);
    say_blob(out, "result", flat.result);
    buf_printf(out, " usage %" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64, flat.usage.input_tokens,
               flat.usage.output_tokens, flat.usage.cached_tokens, flat.usage.cost_micros);
    say(out, "percent", (uint64_t)(flat.percent * 100));
    say(out, "n", flat.n);
    say_text(out, "text", flat.text);
    say(out, "data", flat.data.len);
    say_member(out, &got);
    buf_add_cstr(out, "\n");
}

static void tell(struct bench *b, const char *name, const struct record *rec,
                 const struct record_extra *with, struct buf *out)
{
    struct record_extra x = *with;
    struct bt_error err;

    x.event_id = id_of(1);
    x.handoff_id = id_of(2);
    if (record_about(rec->type) == ABOUT_SESSION) {
        x.session_id = STR_LIT("s");
    }
    encode(b, rec, &x);
    buf_printf(out, "%s%s\n  %.*s\n  ", record_wire_type(rec->type), name,
               STR_ARG(buf_str(&b->topic)));
    assert_ok(doc_to_json(doc_from_buf(&b->body), false, out, &err), err);
    buf_add_cstr(out, "\n");
    if (record_about(rec->type) == ABOUT_PLAN) {
        say_back(b, rec, out);
    }
}

/* The members that hold long texts, which are cut to the caps of their messages: how long. */
static void tell_lengths(struct bench *b, struct flat_record *flat, struct buf *data,
                         struct buf *out)
{
    static char longest[20001];
    const struct str text = {memset(longest, 'x', sizeof longest - 1), sizeof longest - 1};
    struct record rec;
    struct record_extra x;
    struct buf json;
    struct bt_error err;
    const char *key = "";

    flat->text = text;
    rec = record_of_flat(flat);
    fill(&rec, true, data);
    if (rec.type == REC_REVIEW_DECIDED) {
        REC(&rec, decided)->by = (struct actor){text, text, text, text, text};
    } else if (rec.type == REC_SIGNAL_RECEIVED) {
        REC(&rec, signal)->key = text;
    }
    x = with_all(extra_of(b, &rec), text, 40);
    x.schedule.name = STR_LIT("daily");
    x.preview = x.version = text;
    x.event_id = id_of(1);
    if (record_about(rec.type) == ABOUT_AGENT) {
        x.version = STR_LIT("1");
    }
    encode(b, &rec, &x);
    buf_init(&json, GOLDEN_MAX);
    assert_ok(doc_to_json(doc_from_buf(&b->body), false, &json, &err), err);
    buf_add_cstr(out, "  cut:");
    for (const char *at = buf_cstr(&json); *at != 0; at++) {
        const size_t n = strspn(at, "x");
        if (*at == '"' && strncmp(at + 1 + strcspn(at + 1, "\""), "\":", 2) == 0) {
            key = at + 1;
        }
        if (n > 2) {
            buf_printf(out, " %.*s %zu", (int)strcspn(key, "\""), key, n);
            at += n - 1;
        }
    }
    buf_add_cstr(out, "\n");
    buf_done(&json);
}

/* What steps and their plan have beside their tasks. */
static void make_plan(struct bench *b)
{
    codec_plan_make(&b->p, 3, 3, STR_LIT("a task"), 2);
    b->p.plan_id = id_of(9);
    b->p.plan.goal = STR_LIT("the goal");
    b->p.plan.replan.agent_id = STR_LIT("files");
    b->p.plan.replan.agent = 0;
    b->p.steps[1].skill = STR_LIT("count");
    b->p.steps[1].rules->gate_with = STR_LIT("calc");
    b->p.steps[1].rules->gate_agent = 2;
    b->p.steps[1].rules->policy.gate_closed = true;
    b->p.steps[2].revision = 2;
}

/* A list that is not all texts, one of them long. */
static void make_data(struct buf *data)
{
    static char longest[301];

    memset(longest, 'x', sizeof longest - 1);
    buf_init(data, 4096);
    doc_put_array(data, 5);
    doc_put_cstr(data, "sources");
    doc_put_u64(data, 7);
    doc_put_cstr(data, "");
    doc_put_cstr(data, "a");
    doc_put_cstr(data, longest);
}

static void each_kind_of_record_is_told_as_it_was(void **state)
{
    struct bench *b = *state;
    char *was = golden_read(TOLD);
    struct buf out;
    struct buf data;

    make_plan(b);
    make_data(&data);
    buf_init(&out, GOLDEN_MAX);
    for (int i = 0; i < REC_COUNT; i++) {
        const enum record_type t = (enum record_type)i;
        const struct flat_record all[] = {bare(t), least(t), full(t), other(t)};
        static const char *const names[] = {"", ", least", ", all", ", other"};
        struct flat_record longest = full(t);
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
            struct record rec = record_of_flat(&all[k]);
            struct record_extra x = extra_of(b, &rec);
            if (k > 0) {
                fill(&rec, k > 1, &data);
                x = k == 1 ? with_all(x, STR_LIT("x"), 1) : with_all(x, STR_LIT("a name"), 40);
            }
            if (k == 1) {
                x.preview = x.agent_name = x.version = STR_LIT("x");
            }
            tell(b, names[k], &rec, &x, &out);
            if (k > 1 && step_is_optional(t)) {
                rec.step = STEP_NONE;
                tell(b, ", plan", &rec, &x, &out);
            }
        }
        tell_lengths(b, &longest, &data, &out);
    }
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
    buf_done(&data);
    free(was);
}

/* Each status with each reason is written and comes back. */
static void each_end_of_a_step_has_its_words(void **state)
{
    struct bench *b = *state;

    codec_plan_make(&b->p, 3, 3, STR_LIT("a task"), 2);
    for (int status = STEP_COMPLETED; status < STEP_STATUS_COUNT; status++) {
        for (int reason = 0; reason < STEP_REASON_COUNT; reason++) {
            struct flat_record flat = bare(REC_STEP_COMPLETED);
            struct flat_record got;
            struct record rec;
            struct record read;
            struct record_extra x;
            flat.status = (enum step_status)status;
            flat.reason = (enum step_reason)reason;
            rec = record_of_flat(&flat);
            x = extra_of(b, &rec);
            encode(b, &rec, &x);
            read = decode(b, &rec, rec.now, rec.wall);
            got = flat_record(&read);
            assert_int_equal(got.status, flat.status);
            assert_int_equal(got.reason, flat.reason);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(each_kind_of_record_is_told_as_it_was),
                                       TEST(each_end_of_a_step_has_its_words)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

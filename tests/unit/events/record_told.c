/* Each kind of record as its event: with nothing but its step, and with all that it can have, in
 * records_told.txt. BATON_WRITE=1 writes the file anew: read the difference against the events'
 * page. */
#include "tests/unit/events/codec_bench.h"

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
    rec.ok = true;
    rec.revision = 2;
    rec.capacity = 7;
    rec.pid = 8;
    rec.delay_ms = 9000;
    rec.duration_ms = 10000;
    rec.result = (struct blob_ref){11, 12, true};
    rec.usage = (struct usage){13, 14, 15, 16};
    rec.percent = 0.5;
    rec.n = 17;
    rec.text = STR_LIT("the text");
    return rec;
}

static struct record_extra with_all(struct record_extra x)
{
    x.by = STR_LIT("ann");
    x.parent = id_of(20);
    x.task = STR_LIT("the task as it is sent");
    x.state = (struct blob_ref){21, 22, false};
    x.details = (struct blob_ref){23, 24, false};
    x.context_left_out = 25;
    x.description = STR_LIT("what it does");
    x.success_criteria = STR_LIT("how one can tell");
    x.estimated_tokens = 26;
    x.schedule.name = STR_LIT("daily");
    x.schedule.scheduled_for = STR_LIT("2026-11-30T09:00:00Z");
    x.schedule.until = STR_LIT("2026-12-01T09:00:00Z");
    x.schedule.plan_id = STR_LIT("P");
    x.schedule.kind = STR_LIT("catch_up");
    x.schedule.count = 27;
    x.session_id = STR_LIT("s");
    x.turn_id = STR_LIT("t");
    x.turn_plan_id = STR_LIT("p");
    x.action = STR_LIT("new_plan");
    x.outcome = STR_LIT("completed");
    return x;
}

static void tell(struct bench *b, const struct flat_record *flat, bool all, struct buf *out)
{
    const struct record rec = record_of_flat(flat);
    struct record_extra x = extra_of(b, &rec);
    struct bt_error err;

    x.event_id = id_of(1);
    x.handoff_id = id_of(2);
    x = all ? with_all(x) : x;
    if (record_about(rec.type) == ABOUT_SESSION) {
        x.session_id = STR_LIT("s");
    }
    encode(b, &rec, &x);
    buf_printf(out, "%s%s\n  %.*s\n  ", record_wire_type(rec.type), all ? ", all" : "",
               STR_ARG(buf_str(&b->topic)));
    assert_ok(doc_to_json(doc_from_buf(&b->body), false, out, &err), err);
    buf_add_cstr(out, "\n");
}

/* The lengths of the members that hold long texts, which are cut to the caps of their messages. */
static void tell_lengths(struct bench *b, struct flat_record *flat, struct buf *out)
{
    static char longest[20001];
    const struct str text = {memset(longest, 'x', sizeof longest - 1), sizeof longest - 1};
    struct record rec;
    struct record_extra x;
    struct doc_cursor c;
    struct doc_head head;

    flat->text = text;
    rec = record_of_flat(flat);
    x = with_all(extra_of(b, &rec));
    x.preview = x.task = x.description = x.success_criteria = text;
    x.event_id = id_of(1);
    encode(b, &rec, &x);
    c = doc_cursor(doc_from_buf(&b->body));
    (void)doc_next(&c, &head);
    buf_add_cstr(out, "  cut:");
    for (uint32_t n = head.n; n > 0; n--) {
        const struct str key = doc_string(doc_skip(&c));
        const struct str value = doc_string(doc_skip(&c));
        if (value.len > 100) {
            buf_printf(out, " %.*s %zu", STR_ARG(key), value.len);
        }
    }
    buf_add_cstr(out, "\n");
}

static void each_kind_of_record_is_told_as_it_was(void **state)
{
    struct bench *b = *state;
    char *was = golden_read(TOLD);
    struct buf out;

    codec_plan_make(&b->p, 3, 3, STR_LIT("a task"), 2);
    b->p.plan_id = id_of(9);
    buf_init(&out, GOLDEN_MAX);
    for (int t = 0; t < REC_COUNT; t++) {
        const struct flat_record least = bare((enum record_type)t);
        struct flat_record most = full((enum record_type)t);
        tell(b, &least, false, &out);
        tell(b, &most, true, &out);
        tell_lengths(b, &most, &out);
    }
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
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

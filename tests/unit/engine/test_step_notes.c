/* What a plan keeps beside its run, and the numbers of sessions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/engine/session_slots.h"
#include "supervisor/engine/step_notes.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

static struct record about(enum record_type type, uint32_t step, const char *text)
{
    return (struct record){.type = type, .step = step, .text = str_from(text)};
}

static void prompt_is_kept_cut_at_a_character_and_gone_once_decided(void **state)
{
    struct step_notes n = {0};
    char text[4200];
    struct record rec = about(REC_STEP_WAITING, 3, "Which?");

    (void)state;
    for (size_t i = 0; i < 2000; i++) {
        (void)snprintf(text + i * 2, 3, "ü");
    }
    assert_null(step_notes_of(&n, 3));
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 3)->prompt), "Which?"));
    rec.text = str_from(text);
    rec.text.len--; /* ends in the middle of nothing, then of a character */
    step_notes_record(&n, &rec);
    rec.text.len -= rec.text.len % 2;
    assert_int_equal(note_text(step_notes_of(&n, 3)->prompt).len, NOTE_PROMPT_MAX);
    rec = about(REC_REVIEW_DECIDED, 3, "");
    step_notes_record(&n, &rec);
    assert_int_equal(note_text(step_notes_of(&n, 3)->prompt).len, 0);
    rec = about(REC_STEP_WAITING, STEP_NONE, "the plan");
    step_notes_record(&n, &rec);
    assert_int_equal(n.n, 1);
    step_notes_done(&n);
    step_notes_done(&n);
}

static void step_that_waits_without_a_word_costs_nothing(void **state)
{
    struct step_notes n = {0};
    struct record rec = about(REC_STEP_WAITING, 1, "");

    (void)state;
    step_notes_record(&n, &rec);
    rec = about(REC_REVIEW_DECIDED, 1, "");
    step_notes_record(&n, &rec);
    rec = about(REC_HANDOFF, 1, "Executing plan step: a");
    REC(&rec, handoff)->kind = HANDOFF_PLAN_STEP;
    step_notes_record(&n, &rec);
    assert_null(n.at);
    step_notes_done(&n);
}

/* What a replanner and who searches are asked about; another fallback keeps nothing. */
static void the_error_that_others_are_asked_about_is_kept(void **state)
{
    struct step_notes n = {0};
    struct record rec = about(REC_FALLBACK_USED, 1, "no answer");

    (void)state;
    REC(&rec, fallback)->action = FALLBACK_AGENT;
    step_notes_record(&n, &rec);
    assert_null(n.at);
    rec = about(REC_FALLBACK_USED, 1, "");
    REC(&rec, fallback)->action = FALLBACK_SEARCH;
    step_notes_record(&n, &rec);
    assert_null(n.at);
    rec.text = STR_LIT("not found");
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 1)->error), "not found"));
    rec = about(REC_REPLAN_STARTED, 2, "");
    step_notes_record(&n, &rec);
    assert_null(step_notes_of(&n, 2));
    rec.text = STR_LIT("no such host");
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 2)->error), "no such host"));
    assert_int_equal(note_text(step_notes_of(&n, 2)->prompt).len, 0);
    step_notes_done(&n);
}

static void feedback_is_the_last_thing_that_was_said_to_the_step(void **state)
{
    struct step_notes n = {0};
    struct record rec = about(REC_VERIFICATION_FAILED, 0, "too short");

    (void)state;
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 0)->feedback), "too short"));
    rec = about(REC_HANDOFF, 0, "not mine");
    REC(&rec, handoff)->kind = HANDOFF_AGENT;
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 0)->feedback), "not mine"));
    rec = about(REC_REVIEW_DECIDED, 0, "never");
    REC(&rec, decided)->decision = DECISION_REJECT;
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 0)->feedback), "not mine"));
    rec = about(REC_REVIEW_DECIDED, 0, "");
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 0)->feedback), "not mine"));
    rec = about(REC_REVIEW_DECIDED, 0, "use the blue one");
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 0)->feedback), "use the blue one"));
    rec = about(REC_STEP_COMPLETED, 0, "");
    step_notes_record(&n, &rec);
    assert_null(step_notes_of(&n, 0));
    step_notes_done(&n);
}

static void why_a_step_was_not_done_is_kept_and_nothing_else_of_it(void **state)
{
    struct step_notes n = {0};
    struct record rec = about(REC_STEP_WAITING, 0, "Which?");
    char long_why[NOTE_WHY_MAX + 2];

    (void)state;
    step_notes_record(&n, &rec);
    rec = about(REC_STEP_COMPLETED, 0, "no such file");
    REC(&rec, step_completed)->status = STEP_FAILED;
    step_notes_record(&n, &rec);
    assert_true(str_is(note_text(step_notes_of(&n, 0)->why), "no such file"));
    assert_int_equal(note_text(step_notes_of(&n, 0)->prompt).len, 0);
    memset(long_why, 'x', sizeof long_why - 1);
    long_why[sizeof long_why - 1] = 0;
    rec = about(REC_STEP_COMPLETED, 1, long_why);
    REC(&rec, step_completed)->status = STEP_SKIPPED;
    step_notes_record(&n, &rec);
    assert_int_equal(note_text(step_notes_of(&n, 1)->why).len, NOTE_WHY_MAX);
    rec = about(REC_STEP_COMPLETED, 2, "a revision without it");
    REC(&rec, step_completed)->status = STEP_SKIPPED;
    REC(&rec, step_completed)->reason = REASON_SUPERSEDED;
    step_notes_record(&n, &rec);
    assert_null(step_notes_of(&n, 2));
    step_notes_done(&n);
}

static void given_data_adds_up_and_new_parameters_replace_everything(void **state)
{
    struct step_notes n = {0};
    struct record rec = about(REC_REVIEW_DECIDED, 2, "");

    (void)state;
    REC(&rec, decided)->review = REVIEW_INPUT;
    REC(&rec, decided)->result = (struct blob_ref){.id = 1, .len = 10};
    step_notes_record(&n, &rec);
    REC(&rec, decided)->result.id = 2;
    step_notes_record(&n, &rec);
    assert_int_equal(step_notes_of(&n, 2)->edits_n, 2);
    REC(&rec, decided)->review = REVIEW_APPROVAL;
    REC(&rec, decided)->result.id = 3;
    step_notes_record(&n, &rec);
    assert_int_equal(step_notes_of(&n, 2)->edits_n, 1);
    assert_false(step_notes_of(&n, 2)->edits[0].adds);
    REC(&rec, decided)->review = REVIEW_INPUT;
    for (uint64_t i = 4; i < 100; i++) {
        REC(&rec, decided)->result.id = i;
        step_notes_record(&n, &rec);
        assert_true(step_notes_of(&n, 2)->edits_n <= NOTE_EDITS_MAX);
    }
    assert_int_equal(step_notes_of(&n, 2)->edits[0].doc.id,
                     3); /* the parameters are never dropped */
    assert_int_equal(step_notes_of(&n, 2)->edits[NOTE_EDITS_MAX - 1].doc.id, 99);
    REC(&rec, decided)->decision = DECISION_SKIP;
    REC(&rec, decided)->result.id = 100;
    step_notes_record(&n, &rec);
    assert_int_equal(step_notes_of(&n, 2)->edits[NOTE_EDITS_MAX - 1].doc.id, 99);
    step_notes_done(&n);
}

static void step_notes_stay_in_order_whatever_the_order_of_steps(void **state)
{
    struct rng rng = rng_seeded("notes");
    bool has[50] = {false};
    struct step_notes n = {0};

    (void)state;
    for (int i = 0; i < 2000; i++) {
        uint32_t step = rng_below(&rng, 50);
        char text[16];
        (void)snprintf(text, sizeof text, "%u", step);
        has[step] = rng_below(&rng, 3) > 0;
        struct record rec = about(has[step] ? REC_STEP_WAITING : REC_STEP_COMPLETED, step, text);
        if (!has[step]) {
            REC(&rec, step_completed)->status = STEP_COMPLETED;
        }
        step_notes_record(&n, &rec);
        for (uint32_t s = 0; s < 50; s++) {
            const struct note *t = step_notes_of(&n, s);
            assert_int_equal(t != NULL, has[s]);
            if (t != NULL) {
                (void)snprintf(text, sizeof text, "%u", s);
                assert_true(str_is(note_text(t->prompt), text));
            }
        }
    }
    step_notes_done(&n);
}

static void why_a_step_did_not_complete_is_kept_and_nothing_of_a_completed_one(void **state)
{
    static const enum step_status ends[] = {STEP_FAILED, STEP_SKIPPED, STEP_CANCELLED,
                                            STEP_COMPLETED};
    static char text[NOTE_WHY_MAX + 2];
    struct step_notes n = {0};

    (void)state;
    memset(text, 'x', sizeof text - 1);
    for (uint32_t i = 0; i < 4; i++) {
        struct record rec = about(REC_STEP_COMPLETED, i, text);
        REC(&rec, step_completed)->status = ends[i];
        step_notes_record(&n, &rec);
        assert_int_equal(step_notes_of(&n, i) != NULL, ends[i] != STEP_COMPLETED);
    }
    assert_int_equal(note_text(step_notes_of(&n, 0)->why).len, NOTE_WHY_MAX);
    struct record rec = about(REC_STEP_COMPLETED, 9, "");
    REC(&rec, step_completed)->status = STEP_SKIPPED;
    step_notes_record(&n, &rec);
    assert_null(step_notes_of(&n, 9));
    step_notes_done(&n);
}

/* The steps with the mark, as "1 3". */
static const char *readers(const struct step_notes *n)
{
    static char text[40];
    struct arena arena = {.chunks = NULL};
    struct aggregate_readers got;
    size_t at = 0;

    text[0] = '\0';
    assert_true(step_notes_readers(n, &arena, &got));
    for (uint32_t i = 0; i < got.n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", i > 0 ? " " : "", got.at[i]);
    }
    arena_done(&arena);
    return text;
}

static void that_a_context_is_not_whole_outlives_its_step_and_not_its_attempt(void **state)
{
    struct step_notes n = {0};
    struct record rec = about(REC_STEP_STARTED, 3, "");

    (void)state;
    REC(&rec, assigned)->context_truncated = true;
    step_notes_record(&n, &rec);
    assert_string_equal(readers(&n), ""); /* it begins without an attempt */
    REC(&rec, assigned)->instance.b[0] = 1;
    step_notes_record(&n, &rec);
    rec.type = REC_STEP_ASSIGNED;
    rec.step = 1;
    step_notes_record(&n, &rec);
    assert_string_equal(readers(&n), "1 3");
    rec = about(REC_STEP_COMPLETED, 1, "");
    REC(&rec, step_completed)->status = STEP_COMPLETED;
    step_notes_record(&n, &rec);
    assert_string_equal(readers(&n), "1 3");
    assert_int_equal(note_text(step_notes_of(&n, 1)->why).len, 0);
    rec = about(REC_STEP_ASSIGNED, 3, "");
    REC(&rec, assigned)->instance.b[0] = 1;
    step_notes_record(&n, &rec);
    assert_string_equal(readers(&n), "1");
    step_notes_done(&n);
}

/* ---- sessions ---- */

static void plans_of_one_session_share_a_number_until_the_last_has_gone(void **state)
{
    struct session_slots s;
    uint32_t a;
    uint32_t b;

    (void)state;
    assert_int_equal(session_slots_init(&s, 2, NULL), BT_OK);
    a = session_slots_take(&s, STR_LIT("a"));
    assert_int_equal(session_slots_take(&s, STR_LIT("a")), a);
    b = session_slots_take(&s, (struct str){NULL, 0});
    assert_int_not_equal(a, b);
    assert_int_equal(session_slots_take(&s, STR_LIT("")), b);
    assert_int_equal(session_slots_take(&s, STR_LIT("third")), SESSION_SLOT_NONE);
    session_slots_drop(&s, SESSION_SLOT_NONE);
    session_slots_drop(&s, a);
    assert_int_equal(session_slots_take(&s, STR_LIT("third")), SESSION_SLOT_NONE);
    session_slots_drop(&s, a);
    assert_int_equal(session_slots_take(&s, STR_LIT("third")), a);
    assert_int_not_equal(session_slots_take(&s, STR_LIT("third")), b);
    session_slots_done(&s);
}

static void numbers_are_never_shared_by_two_sessions(void **state)
{
    enum { CAP = 8, NAMES = 12, PLANS = 40 };
    struct rng rng = rng_seeded("sessions");
    uint32_t held[PLANS];
    uint32_t name_of[PLANS];
    struct session_slots s;

    (void)state;
    assert_int_equal(session_slots_init(&s, CAP, NULL), BT_OK);
    memset(held, 0xFF, sizeof held);
    for (int i = 0; i < 5000; i++) {
        uint32_t p = rng_below(&rng, PLANS);
        char name[LIMIT_ID_BYTES + 8];
        if (held[p] != SESSION_SLOT_NONE) {
            session_slots_drop(&s, held[p]);
            held[p] = SESSION_SLOT_NONE;
            continue;
        }
        name_of[p] = rng_below(&rng, NAMES);
        (void)snprintf(name, sizeof name, "%064u", name_of[p]);
        held[p] = session_slots_take(&s, str_from(name));
        for (uint32_t q = 0; q < PLANS; q++) {
            if (q != p && held[q] != SESSION_SLOT_NONE && held[p] != SESSION_SLOT_NONE) {
                assert_int_equal(held[q] == held[p], name_of[q] == name_of[p]);
            }
        }
    }
    session_slots_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompt_is_kept_cut_at_a_character_and_gone_once_decided),
        cmocka_unit_test(step_that_waits_without_a_word_costs_nothing),
        cmocka_unit_test(why_a_step_was_not_done_is_kept_and_nothing_else_of_it),
        cmocka_unit_test(the_error_that_others_are_asked_about_is_kept),
        cmocka_unit_test(feedback_is_the_last_thing_that_was_said_to_the_step),
        cmocka_unit_test(given_data_adds_up_and_new_parameters_replace_everything),
        cmocka_unit_test(why_a_step_did_not_complete_is_kept_and_nothing_of_a_completed_one),
        cmocka_unit_test(that_a_context_is_not_whole_outlives_its_step_and_not_its_attempt),
        cmocka_unit_test(step_notes_stay_in_order_whatever_the_order_of_steps),
        cmocka_unit_test(plans_of_one_session_share_a_number_until_the_last_has_gone),
        cmocka_unit_test(numbers_are_never_shared_by_two_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

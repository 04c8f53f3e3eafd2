/* Steps in bundles: what goes out together, how results come back, and what a lost pipe costs. */
#include <stdio.h>
#include <string.h>

#include "supervisor/dispatch/trunk.h"
#include "tests/support/house/house.h"

#define DO(id) "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "','dependsOn':[]}"
#define FIVE DO("a") "," DO("b") "," DO("c") "," DO("d") "," DO("e")
#define SUBMIT(steps) "'plan':{'steps':[" steps "]},'policy':{'maxRetries':0,'maxConcurrency':64}"

/* One request on a pipe, read. */
struct asked {
    struct link_lane *pipe;
    uint32_t n;
    uint64_t tags[BUNDLE_ITEMS_MAX];
    const char *bodies[BUNDLE_ITEMS_MAX];
};

/* The i-th request with a bundle that has no answer. False: there are not so many. */
static bool asked(struct house *h, uint32_t i, struct asked *ret)
{
    *ret = (struct asked){.n = 0};
    for (uint32_t k = 0; k < fake_link_lanes(h->link); k++) {
        struct link_lane *lane = fake_link_lane(h->link, k);
        struct bundle_reader r;
        struct bt_error err;
        struct str body;
        if (lane->retired || !lane->outstanding || !bundle_is(buf_str(&lane->sent)) || i-- > 0) {
            continue;
        }
        ret->pipe = lane;
        assert_int_equal(bundle_open(&r, buf_str(&lane->sent), &err), BT_OK);
        while (bundle_next(&r, &ret->tags[ret->n], &body)) {
            ret->bodies[ret->n++] = house_text(h, "%.*s", STR_ARG(body));
        }
        return true;
    }
    return false;
}

/* So many steps are in the requests that are out, in this order. */
static void is_asked(struct house *h, const char *want)
{
    char have[256] = "";
    struct asked a;

    for (uint32_t i = 0; asked(h, i, &a); i++) {
        size_t n = strlen(have);
        (void)snprintf(have + n, sizeof have - n, "%s%u", i > 0 ? " " : "", a.n);
    }
    assert_string_equal(have, want);
}

/* The answer to one of the steps, ended by failure when cls is given. */
static void add_result(struct house *h, struct buf *out, const struct asked *a, uint32_t i)
{
    const char *body =
        house_text(h,
                   "{'v':1,'id':'%s','ok':true,'type':'step.result','key':'%s','attempt':%s,"
                   "'epoch':%s,'outcome':'completed','result':{'text':'done'}}",
                   house_get(h, a->bodies[i], "id"), house_get(h, a->bodies[i], "key"),
                   house_get(h, a->bodies[i], "attempt"), house_get(h, a->bodies[i], "epoch"));

    assert_true(bundle_add(out, BUNDLE_ITEMS_MAX, a->tags[i], str_from(body)));
}

static void answer(struct house *h, struct link_lane *pipe, struct buf *out)
{
    fake_lane_answer(pipe, out->at, out->len);
    house_cycle(h);
    bundle_begin(out);
}

static struct house *with_agent(uint32_t capacity, const char *bundle, struct buf *out)
{
    struct house *h = house_open();

    (void)house_join_as(h, "calc", capacity, "'skills':[{'id':'do','description':'Does.'}]",
                        bundle);
    buf_init(out, BUNDLE_BYTES_MAX);
    bundle_begin(out);
    return h;
}

static void done(struct house *h, struct buf *out)
{
    buf_done(out);
    house_close(h);
}

static void is(struct house *h, const char *id, const char *wants)
{
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), wants);
}

static uint32_t pipes(const struct house *h)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        n += !fake_link_lane(h->link, i)->retired;
    }
    return n;
}

static void steps_of_one_cycle_are_one_request_and_results_answer_it_together(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    const char *id = house_submit(h, SUBMIT(FIVE));
    struct asked a;

    (void)state;
    assert_int_equal(pipes(h), BUNDLE_PIPES + 1); /* and the control lane */
    is_asked(h, "5");
    assert_true(asked(h, 0, &a));
    for (uint32_t i = 0; i < 5; i++) {
        house_says(h, a.bodies[i], "type=step.execute; attempt=1; sessionKey=0123456789abcdef1");
        add_result(h, &out, &a, i);
    }
    answer(h, a.pipe, &out);
    is_asked(h, "");
    is(h, id, "status=completed; steps.4.status=completed");
    done(h, &out);
}

static void while_steps_are_out_so_is_a_request(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    const char *id = house_submit(h, SUBMIT(FIVE));
    struct asked a;
    struct asked next;

    (void)state;
    assert_true(asked(h, 0, &a));
    add_result(h, &out, &a, 3);
    answer(h, a.pipe, &out);
    is_asked(h, "0");
    is(h, id, "steps.3.status=completed; steps.0.status=in_progress");
    (void)house_submit(h, SUBMIT(DO("x"))); /* new steps do not wait for that answer */
    is_asked(h, "0 1");
    for (uint32_t i = 0; i < 5; i++) {
        if (i != 3) {
            add_result(h, &out, &a, i);
        }
    }
    assert_true(asked(h, 0, &next));
    answer(h, next.pipe, &out);
    is(h, id, "status=completed");
    is_asked(h, "1");
    done(h, &out);
}

static void an_empty_answer_frees_a_pipe_for_new_steps(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':2", &out);
    struct asked a;

    (void)state;
    (void)house_submit(h, SUBMIT(FIVE "," DO("f") "," DO("g") "," DO("h")));
    is_asked(h, "2 2 2 2");
    assert_true(asked(h, 0, &a));
    answer(h, a.pipe, &out);
    is_asked(h, "2 2 2");
    assert_true(asked(h, 0, &a));
    add_result(h, &out, &a, 0);
    answer(h, a.pipe, &out);
    (void)house_submit(h, SUBMIT(DO("x")));
    is_asked(h, "1 2 2");
    done(h, &out);
}

static void what_finds_no_pipe_waits_for_one(void **state)
{
    struct buf out;
    struct house *h = with_agent(16, ",'bundle':2", &out);
    struct asked a;

    (void)state;
    (void)house_submit(h, SUBMIT(FIVE "," DO("f") "," DO("g") "," DO("h") "," DO("i") "," DO("j")));
    is_asked(h, "2 2 2 2");
    assert_true(asked(h, 2, &a));
    add_result(h, &out, &a, 0);
    answer(h, a.pipe, &out);
    is_asked(h, "2 2 2 2");
    assert_true(asked(h, 2, &a));
    house_says(h, a.bodies[0], "stepId=i");
    house_says(h, a.bodies[1], "stepId=j");
    done(h, &out);
}

static uint32_t queries; /* of all attempts, which tell_running answered */

/* The agent's answer to a query: its own state of the attempt. */
static const char *tell_running(struct house_agent *agent, const char *request)
{
    static char answer[512];
    const char *key = strstr(request, "\"key\":\"");

    (void)agent;
    if (strstr(request, "step.query") == NULL || key == NULL) {
        return NULL;
    }
    queries++;
    key += strlen("\"key\":\"");
    (void)snprintf(
        answer, sizeof answer,
        "{\"v\":1,\"id\":\"control\",\"ok\":true,\"type\":\"step.state\",\"key\":\"%.*s\","
        "\"state\":\"running\"}",
        (int)strcspn(key, "\""), key);
    return answer;
}

static void a_lost_pipe_costs_no_attempt_and_a_late_result_counts(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    const char *id = house_submit(h, SUBMIT(FIVE));
    struct asked first;
    struct asked second;
    const char *other;

    (void)state;
    h->agents[0].tells = tell_running;
    other = house_submit(h, SUBMIT(DO("x")));
    is_asked(h, "5 1");
    assert_true(asked(h, 0, &first) && asked(h, 1, &second));
    fake_lane_down(first.pipe, true); /* its answer may have had anybody's result */
    house_cycle(h);
    is(h, id, "status=running; steps.0.status=in_progress");
    is(h, other, "steps.0.status=in_progress");
    for (uint32_t i = 0; i < 5; i++) {
        add_result(h, &out, &first, i);
    }
    add_result(h, &out, &second, 0);
    answer(h, second.pipe, &out);
    is(h, id, "status=completed");
    is(h, other, "status=completed");
    done(h, &out);
}

static void what_never_left_goes_out_again_over_another_pipe(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    const char *id = house_submit(h, SUBMIT(FIVE));
    struct asked a;

    (void)state;
    assert_true(asked(h, 0, &a));
    fake_lane_down(a.pipe, false);
    house_cycle(h);
    is_asked(h, "5");
    assert_true(asked(h, 0, &a));
    house_says(h, a.bodies[0], "stepId=a; attempt=1");
    for (uint32_t i = 0; i < 5; i++) {
        add_result(h, &out, &a, i);
    }
    answer(h, a.pipe, &out);
    is(h, id, "status=completed");
    done(h, &out);
}

/* A request that waits to leave has brought nothing: its steps were asked for, and went out again,
 * when another pipe was lost. That it never left is no news about them. */
static void a_request_that_never_left_costs_nothing_that_went_out_since(void **state)
{
    static const char policy[] = "'policy':{'maxRetries':1,'backoff':{'initialMs':10}}";
    struct house *h = house_open();
    const char *first;
    const char *second;
    struct buf out;
    struct asked a;
    struct asked b;

    (void)state;
    (void)house_join_as(h, "calc", 8,
                        "'skills':[{'id':'do','description':'Does.','effects':'idempotent'}]",
                        ",'bundle':256");
    buf_init(&out, BUNDLE_BYTES_MAX);
    bundle_begin(&out);
    first = house_submit(h, "'plan':{'steps':[" DO("a") "]},%s", policy);
    second = house_submit(h, "'plan':{'steps':[" DO("b") "]},%s", policy);
    is_asked(h, "1 1");
    assert_true(asked(h, 0, &a) && asked(h, 1, &b));
    fake_lane_down(a.pipe, true);
    house_wait(h, 1000);
    is_asked(h, "2 1"); /* both again, beside the one that still waits to leave */
    fake_lane_down(b.pipe, false);
    house_wait(h, 1000);
    is_asked(h, "2");
    assert_true(asked(h, 0, &a));
    for (uint32_t i = 0; i < 2; i++) {
        house_says(h, a.bodies[i], "attempt=2");
        add_result(h, &out, &a, i);
    }
    answer(h, a.pipe, &out);
    is(h, first, "status=completed");
    is(h, second, "status=completed");
    done(h, &out);
}

static void what_waits_for_a_pipe_is_not_lost_with_one(void **state)
{
    struct buf out;
    struct house *h = with_agent(16, ",'bundle':2", &out);
    const char *id =
        house_submit(h, SUBMIT(FIVE "," DO("f") "," DO("g") "," DO("h") "," DO("i") "," DO("j")));
    struct asked a;

    (void)state;
    h->agents[0].tells = tell_running;
    queries = 0;
    assert_true(asked(h, 2, &a));
    fake_lane_down(a.pipe, true);
    house_cycle(h);
    assert_int_equal(queries, 8); /* not of the two that wait */
    is_asked(h, "2 2 2 2");
    assert_true(asked(h, 2, &a));
    house_says(h, a.bodies[0], "stepId=i");
    house_says(h, a.bodies[1], "stepId=j");
    add_result(h, &out, &a, 0);
    add_result(h, &out, &a, 1);
    answer(h, a.pipe, &out);
    is(h, id, "steps.8.status=completed; steps.9.status=completed");
    is_asked(h, "2 2 2"); /* they did not go out twice */
    done(h, &out);
}

static void a_pipe_that_is_replaced_before_its_loss_is_told_is_greeted_again(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    const char *id = house_submit(h, SUBMIT(DO("a")));
    struct asked a;

    (void)state;
    h->agents[0].tells = tell_running;
    assert_true(asked(h, 0, &a));
    fake_lane_replaced(a.pipe, true);
    house_cycle(h);
    is_asked(h, "0"); /* for the result of what runs */
    add_result(h, &out, &a, 0);
    assert_true(asked(h, 0, &a));
    answer(h, a.pipe, &out);
    is(h, id, "status=completed");
    for (int i = 0; i < BUNDLE_PIPES; i++) { /* each pipe carries steps again */
        (void)house_submit(h, SUBMIT(DO("b")));
    }
    is_asked(h, "1 1 1 1");
    done(h, &out);
}

/* It was not up: that it is lost takes none from those that are. */
static void a_pipe_that_is_lost_while_it_is_greeted_is_none_of_those_that_carry(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    struct link_lane *pipe = NULL;
    struct asked a;

    (void)state;
    (void)house_submit(h, SUBMIT(DO("x")));
    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        struct link_lane *lane = fake_link_lane(h->link, i);
        const char *last = house_text(h, "%.*s", STR_ARG(buf_str(&lane->sent)));
        pipe = !lane->outstanding && strstr(last, "\"lane\":2") != NULL ? lane : pipe;
    }
    assert_non_null(pipe);
    h->agents[0].deaf = true;
    for (int i = 0; i <= BUNDLE_PIPES; i++) {
        fake_lane_down(pipe, true);
        house_cycle(h);
        fake_lane_up(pipe);
        house_cycle(h);
        assert_true(pipe->outstanding); /* the greeting */
    }
    (void)house_submit(h, SUBMIT(DO("y")));
    is_asked(h, "1 1");
    h->agents[0].deaf = false; /* once it is greeted, it is no new credit for what is out */
    house_wait(h, 100);
    (void)house_submit(h, SUBMIT(FIVE "," DO("f") "," DO("g")));
    is_asked(h, "1 1 6");
    h->agents[0].tells = tell_running;
    queries = 0;
    assert_true(asked(h, 0, &a));
    fake_lane_down(a.pipe, true);
    house_cycle(h);
    assert_int_equal(queries, 8); /* each of them was out */
    done(h, &out);
}

static void without_any_pipe_the_agent_gets_nothing_until_one_is_greeted(void **state)
{
    struct buf out;
    struct house *h = with_agent(4, ",'bundle':256", &out);
    const char *id;
    struct asked a;

    (void)state;
    h->agents[0].deaf = true;
    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        fake_lane_down(fake_link_lane(h->link, i), true);
    }
    house_cycle(h);
    id = house_submit(h, SUBMIT(DO("a")));
    is_asked(h, "");
    h->agents[0].deaf = false;
    house_wait(h, 100);
    is_asked(h, "1");
    assert_true(asked(h, 0, &a));
    add_result(h, &out, &a, 0);
    answer(h, a.pipe, &out);
    is(h, id, "status=completed");
    done(h, &out);
}

static void doubles_and_tags_of_nobody_are_not_taken(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    const char *id = house_submit(h, SUBMIT(DO("a") "," DO("b")));
    struct asked a;
    struct asked one;

    (void)state;
    assert_true(asked(h, 0, &a));
    one = a;
    one.tags[0] = a.tags[0] ^ 1ull << 8; /* the credit of an attempt before */
    add_result(h, &out, &one, 0);
    one.tags[0] = a.tags[0] ^ 1ull << 32; /* of another incarnation */
    add_result(h, &out, &one, 0);
    one.tags[0] = 63; /* a credit that it does not have */
    add_result(h, &out, &one, 0);
    answer(h, a.pipe, &out);
    is(h, id, "steps.0.status=in_progress; steps.1.status=in_progress");
    assert_true(asked(h, 0, &one));
    add_result(h, &out, &a, 0);
    add_result(h, &out, &a, 0);
    answer(h, one.pipe, &out);
    is(h, id, "steps.0.status=completed; steps.1.status=in_progress");
    assert_int_equal(house_seen(h, "plan_step_completed"), 1);
    done(h, &out);
}

static void a_body_that_cannot_be_read_fails_its_attempt_alone(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    const char *id = house_submit(
        h, "'plan':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'a','dependsOn':[],"
           "'onFailure':'continue'}," DO("b") "]},'policy':{'maxRetries':0}");
    struct asked a;

    (void)state;
    assert_true(asked(h, 0, &a));
    assert_true(bundle_add(&out, 256, a.tags[0], str_from("{\"v\":")));
    add_result(h, &out, &a, 1);
    answer(h, a.pipe, &out);
    is(h, id,
       "steps.0.status=failed; steps.0.errorClass=PROTOCOL_ERROR; "
       "steps.0.error=~cannot be read; steps.1.status=completed");
    id = house_submit(h, SUBMIT(DO("c"))); /* its credit is used again */
    assert_true(asked(h, 0, &a));
    add_result(h, &out, &a, 0);
    answer(h, a.pipe, &out);
    is(h, id, "status=completed");
    done(h, &out);
}

/* An agent that answers at once, with nothing, would be asked again at once, and so on. */
static void who_answers_nothing_to_nothing_three_times_is_down(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    struct asked a;

    (void)state;
    h->agents[0].tells = tell_running;
    (void)house_submit(h, SUBMIT(DO("a") "," DO("b")));
    assert_true(asked(h, 0, &a));
    answer(h, a.pipe, &out); /* allowed: it had no pipe left, for all that we know */
    for (int i = 0; i < 3; i++) {
        is_asked(h, "0");
        assert_true(asked(h, 0, &a));
        answer(h, a.pipe, &out);
    }
    is_asked(h, "");
    assert_int_equal(pipes(h), 0); /* its lanes are closed */
    done(h, &out);
}

/* What it did not use is not kept for later, beyond the pipes that there are. */
static void a_long_honest_life_earns_no_more_empty_answers_than_pipes(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    struct asked a;

    (void)state;
    h->agents[0].tells = tell_running;
    for (int i = 0; i < 2 * BUNDLE_PIPES; i++) {
        (void)house_submit(h, SUBMIT(DO("a")));
        assert_true(asked(h, 0, &a));
        add_result(h, &out, &a, 0);
        answer(h, a.pipe, &out);
    }
    (void)house_submit(h, SUBMIT(DO("b")));
    for (int i = 0; i < BUNDLE_PIPES + 2; i++) {
        assert_true(asked(h, 0, &a));
        answer(h, a.pipe, &out);
        assert_int_equal(pipes(h), BUNDLE_PIPES + 1);
    }
    assert_true(asked(h, 0, &a));
    answer(h, a.pipe, &out);
    assert_int_equal(pipes(h), 0);
    done(h, &out);
}

static void what_is_no_bundle_costs_the_pipe(void **state)
{
    struct buf out;
    struct house *h = with_agent(8, ",'bundle':256", &out);
    struct asked a;
    const struct link_lane *pipe;

    (void)state;
    h->agents[0].tells = tell_running;
    (void)house_submit(h, SUBMIT(DO("a")));
    assert_true(asked(h, 0, &a));
    pipe = a.pipe;
    fake_lane_answer(a.pipe, "{}", 2);
    house_cycle(h);
    assert_true(pipe->retired);
    is_asked(h, "0"); /* the attempt goes on: the agent said that it runs */
    done(h, &out);
}

static void few_credits_and_agents_without_bundles_have_a_pipe_each(void **state)
{
    static const struct {
        uint32_t capacity;
        const char *bundle;
        uint32_t pipes;
    } all[] = {{BUNDLE_PIPES - 1, ",'bundle':256", BUNDLE_PIPES - 1},
               {BUNDLE_PIPES, ",'bundle':256", BUNDLE_PIPES},
               {BUNDLE_PIPES + 1, ",'bundle':256", BUNDLE_PIPES},
               {BUNDLE_PIPES + 1, ",'bundle':2", BUNDLE_PIPES},
               {BUNDLE_PIPES + 1, ",'bundle':1", BUNDLE_PIPES + 1},
               {BUNDLE_PIPES + 1, "", BUNDLE_PIPES + 1}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct buf out;
        struct house *h = with_agent(all[i].capacity, all[i].bundle, &out);
        assert_int_equal(pipes(h), all[i].pipes + 1);
        done(h, &out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_one_cycle_are_one_request_and_results_answer_it_together),
        cmocka_unit_test(while_steps_are_out_so_is_a_request),
        cmocka_unit_test(an_empty_answer_frees_a_pipe_for_new_steps),
        cmocka_unit_test(what_finds_no_pipe_waits_for_one),
        cmocka_unit_test(a_lost_pipe_costs_no_attempt_and_a_late_result_counts),
        cmocka_unit_test(what_never_left_goes_out_again_over_another_pipe),
        cmocka_unit_test(a_request_that_never_left_costs_nothing_that_went_out_since),
        cmocka_unit_test(what_waits_for_a_pipe_is_not_lost_with_one),
        cmocka_unit_test(a_pipe_that_is_replaced_before_its_loss_is_told_is_greeted_again),
        cmocka_unit_test(a_pipe_that_is_lost_while_it_is_greeted_is_none_of_those_that_carry),
        cmocka_unit_test(without_any_pipe_the_agent_gets_nothing_until_one_is_greeted),
        cmocka_unit_test(doubles_and_tags_of_nobody_are_not_taken),
        cmocka_unit_test(a_body_that_cannot_be_read_fails_its_attempt_alone),
        cmocka_unit_test(who_answers_nothing_to_nothing_three_times_is_down),
        cmocka_unit_test(a_long_honest_life_earns_no_more_empty_answers_than_pipes),
        cmocka_unit_test(what_is_no_bundle_costs_the_pipe),
        cmocka_unit_test(few_credits_and_agents_without_bundles_have_a_pipe_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

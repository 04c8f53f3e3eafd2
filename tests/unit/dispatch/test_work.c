/* What goes out to agents over lanes, what comes back, and what is made of it. */
#include <stdio.h>
#include <string.h>

#include "supervisor/dispatch/lanes.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE(more) "'plan':{'steps':[" STEP("a", more) "]},'policy':{'maxRetries':0}"
#define UUID(c) "0190F3C2-7A1B-7C3D-9E4F-0000000000" c

static const char *view(struct house *h, const char *id)
{
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static void an_assignment_has_all_that_the_agent_needs(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(
        h, "'sessionId':'s','plan':{'goal':'add all','steps':[" STEP(
               "a", "") ",{'stepId':'b','agentId':'calc','skill':'do',"
                        "'timeoutMs':5000,'idleTimeoutMs':700,'task':'sum {{results.a.text}}',"
                        "'parameters':{'n':'{{results.a.data.n}}','t':'x {{results.a.text}}'}}],"
                        "'policy':{'budget':{'tokens':50}}}");
    house_says(h, house_work(h, "calc", NULL),
               house_text(h,
                          "planId=%s; sessionId=s; revision=1; stepId=a; stepIndex=0; stepCount=2; "
                          "key=%s/1/a; attempt=1; deadlineMs=60000; purpose=execute; skill=do; "
                          "task=do a; parameters=-; feedback=-; budget.tokens=50; idleMs=-; "
                          "sessionKey=0123456789abcdef1; context.isPlanContext=true; "
                          "context.task_context.original_request=add all; "
                          "context.task_context.plan_position=Step 1 of 2",
                          id, id));
    house_done(h, "calc", "'result':{'text':'five','data':{'n':5}},'usage':{'inputTokens':20}");
    house_says(h, house_work(h, "calc", NULL),
               "stepId=b; stepIndex=1; task=sum five; parameters.n=5; parameters.t=x five; "
               "deadlineMs=5000; idleMs=700; budget.tokens=30; "
               "context.task_context.dependencies_completed.0.n=5; context.dependencies.#=1; "
               "context.dependencies.0.stepId=a; context.dependencies.0.agentId=calc; "
               "context.dependencies.0.result.text=five; context.text=~five");
    house_close(h);
}

static void results_that_are_none_fail_the_attempt(void **state)
{
    static const char *const bad[][2] = {
        {"'outcome':'completed'", "outcome completed without a result"},
        {"'outcome':'happy'", "unknown outcome; expected completed"},
        {"'outcome':'handoff'", "outcome handoff without `handoff`"},
        {"'key':'x','attempt':1,'outcome':'completed','result':{'text':'x'}", NULL},
    };
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    for (size_t i = 0; i < 3; i++) {
        const char *id = house_submit(h, ONE(""));
        house_answer(h, "calc", NULL, "%s", bad[i][0]);
        house_says(h, view(h, id), "steps.0.status=failed; steps.0.errorClass=PROTOCOL_ERROR");
        house_has(h, view(h, id), "steps.0.error", bad[i][1]);
    }
    house_close(h);
}

static void reply(struct house *h, const char *agent, const char *answer)
{
    struct link_lane *lane = house_lane(h, agent, NULL);

    assert_non_null(lane);
    fake_lane_answer(lane, answer, strlen(answer));
    house_cycle(h);
}

static void an_answer_for_another_step_or_attempt_fails_the_attempt(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    reply(h, "calc",
          house_text(h,
                     "{'v':1,'id':'1','ok':true,'type':'step.result','key':'%s/1/b',"
                     "'attempt':1,'epoch':1,'outcome':'completed','result':{'text':'x'}}",
                     id));
    house_says(h, view(h, id),
               "steps.0.errorClass=PROTOCOL_ERROR; steps.0.error=~another step or attempt");
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    reply(h, "calc",
          house_text(h,
                     "{'v':1,'id':'1','ok':true,'type':'step.result','key':'%s/1/a',"
                     "'attempt':2,'epoch':1,'outcome':'completed','result':{'text':'x'}}",
                     id));
    house_says(h, view(h, id), "steps.0.status=failed; steps.0.error=~another step or attempt");
    /* The agent refuses the request itself. */
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    reply(h, "calc",
          house_text(h, "{'v':1,'id':'1','ok':false,'type':'error','error':{'code':'INVALID',"
                        "'class':'PERMISSION_DENIED','message':'no key','retryable':false}}"));
    house_says(h, view(h, id), "steps.0.errorClass=PERMISSION_DENIED; steps.0.error=no key");
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    reply(h, "calc",
          house_text(h, "{'v':1,'id':'1','ok':false,'type':'error','error':{'code':'LIMIT',"
                        "'message':'too much','retryable':false}}"));
    house_says(h, view(h, id), "steps.0.errorClass=PROTOCOL_ERROR; steps.0.error=too much");
    house_close(h);
}

/* The same attempt, after a wait: it did not begin. */
static void a_busy_agent_is_asked_again_and_no_attempt_is_used_up(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE(""));
    for (int i = 0; i < 5; i++) {
        house_says(h, house_work(h, "calc", NULL), house_text(h, "planId=%s; attempt=1", id));
        reply(h, "calc",
              house_text(h, "%s",
                         "{'v':1,'id':'1','ok':false,'type':'error','error':{'code':'BUSY',"
                         "'message':'all places of this instance are taken','retryable':true}}"));
        house_wait(h, 1000);
    }
    house_says(h, house_work(h, "calc", NULL), house_text(h, "planId=%s; attempt=1", id));
    house_done(h, "calc", "'result':{'text':'x'}");
    house_says(h, view(h, id), "status=completed; steps.0.attempts=1");
    house_close(h);
}

/* These are tried again, whatever the agent says of retrying. */
static void an_agent_that_does_not_serve_now_is_asked_again(void **state)
{
    static const char *const codes[] = {"UNAVAILABLE", "CONFLICT"};
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    for (size_t i = 0; i < 2; i++) {
        const char *id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
        (void)house_work(h, "calc", NULL);
        reply(h, "calc",
              house_text(h,
                         "{'v':1,'id':'1','ok':false,'type':'error','error':{'code':'%s',"
                         "'message':'later','retryable':false}}",
                         codes[i]));
        house_wait(h, 2000);
        house_says(h, house_work(h, "calc", NULL), house_text(h, "planId=%s; attempt=2", id));
        house_done(h, "calc", "'result':{'text':'x'}");
    }
    house_close(h);
}

static void an_answer_that_cannot_be_read_costs_the_pipe_and_three_cost_the_instance(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;

    (void)state;
    a = house_join(h, "calc", 1);
    for (int i = 1; i < LANES_UNREADABLE_MAX; i++) {
        const char *id = house_submit(h, ONE(""));
        const uint32_t lanes = fake_link_lanes(h->link);
        (void)house_work(h, "calc", NULL);
        reply(h, "calc", "garbage");
        house_says(h, view(h, id),
                   "steps.0.status=failed; steps.0.errorClass=PROTOCOL_ERROR; "
                   "steps.0.error=~the agent's answer cannot be read");
        assert_int_equal(fake_link_lanes(h->link), lanes + 1); /* another pipe */
        house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "state=up");
    }
    {
        const char *id = house_submit(h, ONE("")); /* one that can be read begins the count again */
        (void)id;
        house_done(h, "calc", "'result':{'text':'x'}");
    }
    for (int i = 1; i <= LANES_UNREADABLE_MAX; i++) {
        house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "state=up");
        (void)house_submit(h, ONE(""));
        (void)house_work(h, "calc", NULL);
        reply(h, "calc", "garbage");
    }
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "state=down");
    house_says(h, house_event(h, "agent_down"), "reason=~its answers cannot be read");
    (void)a;
    house_close(h);
}

/* ---- lost answers ---- */

static const char *running_text; /* what the agent tells about the attempt */

static const char *tell(struct house_agent *agent, const char *request)
{
    static char answer[1024];

    (void)agent;
    if (strstr(request, "step.query") == NULL || running_text == NULL) {
        return NULL;
    }
    (void)snprintf(answer, sizeof answer, "%s", running_text);
    return answer;
}

static void a_lost_answer_is_asked_for(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    a->tells = tell;
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    running_text = house_text(h,
                              "{'v':1,'id':'control','ok':true,'type':'step.state','key':'%s/1/a',"
                              "'state':'done','result':{'key':'%s/1/a','attempt':1,'epoch':%llu,"
                              "'outcome':'completed','result':{'text':'kept'}}}",
                              id, id, (unsigned long long)a->epoch);
    house_hang_up(h, "calc", true);
    house_wait(h, 5000);
    house_says(h, view(h, id), "status=completed; steps.0.result=kept; steps.0.attempts=1");
    house_close(h);
}

static void an_answer_about_another_key_tells_nothing(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    a->tells = tell;
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    running_text = house_text(h,
                              "{'v':1,'id':'control','ok':true,'type':'step.state','key':'%s/1/b',"
                              "'state':'done','result':{'key':'%s/1/b','attempt':1,'epoch':%llu,"
                              "'outcome':'completed','result':{'text':'foreign'}}}",
                              id, id, (unsigned long long)a->epoch);
    house_hang_up(h, "calc", true);
    house_wait(h, 5000);
    house_says(h, view(h, id), "steps.0.result=-");
    running_text = NULL;
    house_close(h);
}

static void a_request_that_never_left_is_sent_again(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'effects':'unsafe'") "]}");
    (void)house_work(h, "calc", NULL);
    house_hang_up(h, "calc", false);
    house_wait(h, 3000);
    house_says(h, house_work(h, "calc", NULL), house_text(h, "planId=%s", id));
    house_close(h);
}

/* ---- greeting ---- */

static const char *greeting;

static const char *greet(struct house_agent *agent, const char *request)
{
    (void)agent;
    return strstr(request, "lane.hello") != NULL ? greeting : NULL;
}

static void a_lane_that_another_process_answers_gets_no_work(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;

    (void)state;
    a = house_join_as(h, "calc", 1, "'skills':[{'id':'do','description':'D'}]",
                      ",'processId':'" UUID("BB") "'");
    /* The rig named no process: good enough. A new connection answers with another one. */
    a->tells = greet;
    greeting = "{\"v\":1,\"id\":\"hello\",\"ok\":true,\"type\":\"ok\","
               "\"processId\":\"" UUID("BC") "\"}";
    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        fake_lane_down(fake_link_lane(h->link, i), true);
    }
    house_cycle(h);
    (void)house_submit(h, ONE(""));
    assert_null(house_work(h, "calc", NULL));
    for (uint32_t i = 0; i < fake_link_lanes(h->link); i++) {
        fake_lane_down(fake_link_lane(h->link, i), true);
    }
    greeting = "{\"v\":1,\"id\":\"hello\",\"ok\":true,\"type\":\"ok\","
               "\"processId\":\"" UUID("BB") "\"}";
    house_cycle(h);
    assert_non_null(house_work(h, "calc", NULL));
    house_close(h);
}

static void only_the_control_lane_is_dialed_until_it_answers(void **state)
{
    struct house *h = house_open();

    (void)state;
    (void)house_ok(h, "agent.register",
                   "'card':{'agentId':'calc','name':'c','version':'1','skills':[{'id':'do',"
                   "'description':'D'}]},'capacity':3,'endpoint':'tcp://127.0.0.1:4711',"
                   "'instanceId':'" UUID("AA") "','sessionKey':'0123456789abcdef'");
    assert_int_equal(fake_link_lanes(h->link), 1);
    house_join(h, "files", 3);
    assert_int_equal(fake_link_lanes(h->link), 5);
    house_close(h);
}

static void hello_names_lane_epoch_and_key(void **state)
{
    struct house *h = house_open();
    struct link_lane *lane;
    char hello[1024];

    (void)state;
    (void)house_ok(h, "agent.register",
                   "'card':{'agentId':'calc','name':'c','version':'1','skills':[{'id':'do',"
                   "'description':'D'}]},'capacity':1,'endpoint':'tcp://127.0.0.1:4711',"
                   "'processId':'" UUID("BB") "','instanceId':'" UUID("AA") "','sessionKey':"
                                                                            "'0123456789abcdef'");
    lane = fake_link_lane(h->link, 0);
    fake_lane_up(lane);
    house_cycle(h);
    (void)snprintf(hello, sizeof hello, "%.*s", (int)lane->sent.len, (const char *)lane->sent.at);
    house_says(h, hello,
               "type=lane.hello; epoch=4294967297; sessionKey=0123456789abcdef; "
               "processId=" UUID("BB") "; nonceS=-; lane=*");
    house_close(h);
}

/* ---- limits of results ---- */

/* A completed result whose text has n bytes. */
static void answer_text(struct house *h, size_t n)
{
    char *text = arena_alloc(&h->arena, n + 1);

    assert_non_null(text);
    memset(text, 'x', n);
    text[n] = 0;
    house_done(h, "calc", "'result':{'text':'%s'}", text);
}

static void a_result_of_the_limit_is_kept_and_one_byte_more_fails(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *id;

    (void)state;
    opt.result_max = 1000;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    id = house_submit(h, ONE(""));
    answer_text(h, 1000);
    house_says(h, view(h, id), "steps.0.status=completed");
    id = house_submit(h, ONE(""));
    answer_text(h, 1001);
    house_says(h, view(h, id),
               "steps.0.status=failed; steps.0.error=~result_too_large: 1001 bytes, "
               "at most 1000 (limits.maxResultBytes)");
    house_close(h);
}

static void the_largest_result_of_the_protocol_is_kept(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE(""));
    answer_text(h, LIMIT_RESULT_BYTES);
    house_says(h, view(h, id), "steps.0.status=completed");
    id = house_submit(h, ONE(""));
    answer_text(h, LIMIT_RESULT_BYTES + 1);
    house_says(h, view(h, id),
               "steps.0.status=failed; steps.0.error=~3145729 bytes, at most 3145728");
    house_close(h);
}

static void a_preview_has_as_many_bytes_as_the_limit(void **state)
{
    struct house *h = house_open();
    const char *event;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, ONE(""));
    answer_text(h, LIMIT_PREVIEW_BYTES);
    event = house_event(h, "plan_step_completed");
    assert_int_equal(strlen(house_get(h, event, "result")), LIMIT_PREVIEW_BYTES);
    house_says(h, event, "truncated=-");
    (void)house_submit(h, ONE(""));
    answer_text(h, LIMIT_PREVIEW_BYTES + 1);
    event = house_event(h, "plan_step_completed");
    assert_true(strlen(house_get(h, event, "result")) <= LIMIT_PREVIEW_BYTES);
    house_close(h);
}

static void a_result_is_nested_eleven_levels_and_no_deeper(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE(""));
    house_done(h, "calc", "'result':{'data':[[[[[[[[[[[1]]]]]]]]]]]}");
    house_says(h, view(h, id), "steps.0.status=completed");
    id = house_submit(h, ONE(""));
    house_done(h, "calc", "'result':{'data':[[[[[[[[[[[[1]]]]]]]]]]]]}");
    house_says(h, view(h, id), "steps.0.status=failed; steps.0.error=~result_too_deep");
    house_close(h);
}

static void details_of_a_failure_are_kept_up_to_their_limit(void **state)
{
    struct house *h = house_open();
    const char *id;
    char *text = arena_alloc(&h->arena, 70000);

    (void)state;
    memset(text, 'x', 70000);
    text[66000] = 0;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE(""));
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'no','retryable':false,'details':{'exitCode':3}}");
    house_says(h, view(h, id), "steps.0.details.exitCode=3; steps.0.detailsTruncated=-");
    id = house_submit(h, ONE(""));
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','failure':{'code':'INTERNAL','class':'PERMISSION_DENIED',"
                 "'message':'no','retryable':false,'details':{'a':[[[[[[[[[[[[1]]]]]]]]]]]]}}");
    house_says(h, view(h, id), "steps.0.details.leftOut=~over 64 KiB, or nested");
    house_close(h);
}

static void what_an_answer_used_is_counted_once(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]},'policy':{'backoff':{'kind':'fixed',"
                                                           "'initialMs':100}}");
    house_answer(h, "calc", NULL,
                 "'outcome':'failed','usage':{'inputTokens':5,'cachedTokens':2,'costMicros':9},"
                 "'failure':{'code':'INTERNAL','class':'TIMEOUT','message':'no','retryable':true}");
    house_wait(h, 100);
    house_done(h, "calc", "'result':{'text':'x'},'usage':{'outputTokens':3,'costMicros':1}");
    house_says(h, view(h, id),
               "usage.inputTokens=5; usage.outputTokens=3; usage.costMicros=10; "
               "usageExecution.inputTokens=5");
    house_close(h);
}

/* ---- times ---- */

static void an_attempt_has_its_time_and_not_a_millisecond_more(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE(",'timeoutMs':2000"));
    (void)house_work(h, "calc", NULL);
    house_wait(h, 1999);
    house_says(h, view(h, id), "steps.0.status=in_progress");
    house_wait(h, 1);
    house_says(h, view(h, id),
               "status=failed; steps.0.errorClass=TIMEOUT; steps.0.hint=~timeoutMs");
    house_close(h);
}

static void silence_ends_an_attempt_and_progress_breaks_it(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    id = house_submit(h, ONE(",'idleTimeoutMs':1000"));
    (void)house_work(h, "calc", NULL);
    house_wait(h, 999);
    (void)house_ok(h, "step.progress", "'instanceId':'%s','epoch':%llu,'key':'%s/1/a','attempt':1",
                   a->instance, (unsigned long long)a->epoch, id);
    house_wait(h, 999);
    house_says(h, view(h, id), "steps.0.status=in_progress");
    house_wait(h, 1);
    house_says(h, view(h, id), "steps.0.errorClass=TIMEOUT; steps.0.hint=~idleTimeoutMs");
    house_close(h);
}

static void a_plan_and_a_queue_have_their_times(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, "'plan':{'steps':[" STEP("a", "") "]},'policy':{'planTimeoutMs':1500}");
    (void)house_work(h, "calc", NULL);
    house_wait(h, 1499);
    house_says(h, view(h, id), "status=running; cancelling=-");
    house_wait(h, 1);
    assert_string_not_equal(house_get(h, view(h, id), "status"), "running");
    house_close(h);

    h = house_open();
    house_join(h, "calc", 1);
    (void)house_submit(h, "'plan':{'steps':[" STEP("a", "") "]}");
    id = house_submit(h, "'plan':{'steps':[" STEP("a", ",'queueTimeoutMs':1500") "]}");
    house_wait(h, 1499);
    house_says(h, view(h, id), "steps.0.status=pending");
    house_wait(h, 1);
    house_says(h, view(h, id), "steps.0.status=failed");
    house_close(h);
}

static void a_stop_has_its_grace(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE(""));
    (void)house_work(h, "calc", NULL);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_wait(h, (msec)h->opt.cancel_grace_ms - 1);
    house_says(h, view(h, id), "cancelling=true; status=running");
    house_wait(h, 1);
    house_says(h, view(h, id), "status=cancelled; cancelling=-");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_assignment_has_all_that_the_agent_needs),
        cmocka_unit_test(results_that_are_none_fail_the_attempt),
        cmocka_unit_test(an_answer_for_another_step_or_attempt_fails_the_attempt),
        cmocka_unit_test(a_busy_agent_is_asked_again_and_no_attempt_is_used_up),
        cmocka_unit_test(an_agent_that_does_not_serve_now_is_asked_again),
        cmocka_unit_test(an_answer_that_cannot_be_read_costs_the_pipe_and_three_cost_the_instance),
        cmocka_unit_test(a_lost_answer_is_asked_for),
        cmocka_unit_test(an_answer_about_another_key_tells_nothing),
        cmocka_unit_test(a_request_that_never_left_is_sent_again),
        cmocka_unit_test(a_lane_that_another_process_answers_gets_no_work),
        cmocka_unit_test(only_the_control_lane_is_dialed_until_it_answers),
        cmocka_unit_test(hello_names_lane_epoch_and_key),
        cmocka_unit_test(a_result_of_the_limit_is_kept_and_one_byte_more_fails),
        cmocka_unit_test(the_largest_result_of_the_protocol_is_kept),
        cmocka_unit_test(a_preview_has_as_many_bytes_as_the_limit),
        cmocka_unit_test(a_result_is_nested_eleven_levels_and_no_deeper),
        cmocka_unit_test(details_of_a_failure_are_kept_up_to_their_limit),
        cmocka_unit_test(what_an_answer_used_is_counted_once),
        cmocka_unit_test(an_attempt_has_its_time_and_not_a_millisecond_more),
        cmocka_unit_test(silence_ends_an_attempt_and_progress_breaks_it),
        cmocka_unit_test(a_plan_and_a_queue_have_their_times),
        cmocka_unit_test(a_stop_has_its_grace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

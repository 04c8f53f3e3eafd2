/* The caps of protocol/limits.h as a client meets them: N is taken, N + 1 is refused. */
#include <stdio.h>
#include <string.h>

#include "protocol/wire/doc.h"
#include "tests/support/house/house.h"

static void put(struct buf *out, const char *text)
{
    buf_add_cstr(out, text);
}

/* The fields of a dry run of a plan with these steps; the caller frees them. */
static void begin_plan(struct buf *out)
{
    buf_init(out, LIMIT_STEP_BYTES);
    put(out, "'dryRun':true,'plan':{'steps':[");
}

static void end_plan(struct buf *out)
{
    put(out, "]}");
}

static void takes(struct house *h, const char *type, struct buf *fields)
{
    (void)house_ok(h, type, "%s", buf_cstr(fields));
    buf_done(fields);
}

static void refuses(struct house *h, const char *words, const char *type, struct buf *fields)
{
    const char *answer = house_ask(h, type, "%s", buf_cstr(fields));

    house_is(h, answer, "ok", "false");
    house_has(h, answer, "error.message", words);
    buf_done(fields);
}

static void put_steps(struct buf *out, uint32_t n)
{
    begin_plan(out);
    for (uint32_t i = 0; i < n; i++) {
        put(out, i == 0 ? "" : ",");
        put(out, "{'agentId':'calc','skill':'do','parameters':{}}");
    }
    end_plan(out);
}

static void steps_of_a_plan(void **state)
{
    struct house *h = house_open();
    struct buf fields;

    (void)state;
    house_join(h, "calc", 1);
    put_steps(&fields, LIMIT_STEPS);
    takes(h, "plan.submit", &fields);
    put_steps(&fields, LIMIT_STEPS + 1);
    refuses(h, "10000", "plan.submit", &fields);
    house_close(h);
}

/* Each step depends on all before it, as far as there are edges. */
static void put_edges(struct buf *out, uint32_t edges)
{
    begin_plan(out);
    for (uint32_t i = 0; i == 0 || edges > 0; i++) {
        buf_printf(out,
                   "%s{'stepId':'%u','agentId':'calc','skill':'do','parameters':{},"
                   "'dependsOn':[",
                   i == 0 ? "" : ",", i);
        for (uint32_t k = 0; k < i && edges > 0; k++, edges--) {
            buf_printf(out, "%s'%u'", k == 0 ? "" : ",", k);
        }
        put(out, "]}");
    }
    end_plan(out);
}

static void dependencies_of_a_plan(void **state)
{
    struct house *h = house_open();
    struct buf fields;

    (void)state;
    house_join(h, "calc", 1);
    put_edges(&fields, LIMIT_EDGES);
    takes(h, "plan.submit", &fields);
    put_edges(&fields, LIMIT_EDGES + 1);
    refuses(h, "100000", "plan.submit", &fields);
    house_close(h);
}

static void put_agents(struct buf *out, uint32_t n)
{
    begin_plan(out);
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(out, "%s{'agentId':'a%u','skill':'do','parameters':{}}", i == 0 ? "" : ",", i);
    }
    end_plan(out);
}

static void agents_of_a_plan(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    struct buf fields;

    (void)state;
    opt.agents_max = opt.instances_max = LIMIT_PLAN_AGENTS + 1;
    h = house_open_with(&opt);
    for (uint32_t i = 0; i <= LIMIT_PLAN_AGENTS; i++) {
        (void)house_ok(h, "agent.register",
                       "'card':{'agentId':'a%u','name':'a','version':'1','skills':[{'id':'do',"
                       "'description':'D'}]},'capacity':1,'endpoint':'tcp://127.0.0.1:%u',"
                       "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-%012u','sessionKey':"
                       "'0123456789abcdef%u'",
                       i, 41000 + i, i + 1, i);
    }
    put_agents(&fields, LIMIT_PLAN_AGENTS);
    takes(h, "plan.submit", &fields);
    put_agents(&fields, LIMIT_PLAN_AGENTS + 1);
    refuses(h, "64", "plan.submit", &fields);
    house_close(h);
}

static void put_step(struct buf *out, uint32_t id_len, uint32_t retries)
{
    begin_plan(out);
    put(out, "{'stepId':'");
    for (uint32_t i = 0; i < id_len; i++) {
        buf_add_byte(out, 'x');
    }
    buf_printf(out, "','agentId':'calc','skill':'do','parameters':{},'maxRetries':%u}", retries);
    end_plan(out);
}

static void bytes_of_a_step_id_and_attempts_of_a_step(void **state)
{
    struct house *h = house_open();
    struct buf fields;

    (void)state;
    house_join(h, "calc", 1);
    put_step(&fields, LIMIT_ID_BYTES, 0);
    takes(h, "plan.submit", &fields);
    put_step(&fields, LIMIT_ID_BYTES + 1, 0);
    refuses(h, "stepId", "plan.submit", &fields);
    put_step(&fields, 1, LIMIT_ATTEMPTS - 1); /* and the first one */
    takes(h, "plan.submit", &fields);
    put_step(&fields, 1, LIMIT_ATTEMPTS + 1 - 1);
    refuses(h, "maxRetries", "plan.submit", &fields);
    house_close(h);
}

static void revisions_of_a_plan(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h,
                      "'plan':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'x'}]}");
    for (int i = 2; i <= LIMIT_REVISIONS; i++) {
        (void)house_ok(h, "plan.modify", "'planId':'%s','kind':'conversation_only'", id);
    }
    house_is(h, house_ok(h, "plan.get", "'planId':'%s'", id), "revision", "1000");
    /* LIMIT_REVISIONS + 1 */
    house_is(h, house_ask(h, "plan.modify", "'planId':'%s','kind':'conversation_only'", id), "ok",
             "false");
    house_is(h, house_ok(h, "plan.get", "'planId':'%s'", id), "revision", "1000");
    house_close(h);
}

static void put_card(struct buf *out, uint32_t skills)
{
    buf_init(out, LIMIT_STEP_BYTES);
    put(out, "'card':{'agentId':'new','name':'n','version':'1','skills':[");
    for (uint32_t i = 0; i < skills; i++) {
        buf_printf(out, "%s{'id':'s%u','description':'D'}", i == 0 ? "" : ",", i);
    }
    put(out, "]},'capacity':1,'endpoint':'tcp://127.0.0.1:4711','instanceId':"
             "'0190F3C2-7A1B-7C3D-9E4F-0000000000AA','sessionKey':'0123456789abcdef'");
}

static void skills_of_a_card(void **state)
{
    struct house *h = house_open();
    struct buf fields;

    (void)state;
    put_card(&fields, LIMIT_SKILLS);
    takes(h, "agent.register", &fields);
    put_card(&fields, LIMIT_SKILLS + 1);
    refuses(h, "skills", "agent.register", &fields);
    house_close(h);
}

static void put_capacity(struct buf *out, uint32_t n)
{
    buf_init(out, LIMIT_STEP_BYTES);
    buf_printf(out,
               "'card':{'agentId':'new','name':'n','version':'1','skills':[{'id':'do',"
               "'description':'D'}]},'capacity':%u,'endpoint':'tcp://127.0.0.1:4711',"
               "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA',"
               "'sessionKey':'0123456789abcdef'",
               n);
}

static void lanes_of_an_instance(void **state)
{
    struct house *h = house_open();
    struct buf fields;

    (void)state;
    put_capacity(&fields, LIMIT_CAPACITY);
    takes(h, "agent.register", &fields);
    put_capacity(&fields, LIMIT_CAPACITY + 1);
    refuses(h, "capacity: expected 1 to 64", "agent.register", &fields);
    house_close(h);
}

/* A step that leaves a state of so many bytes: {"s": text} has six beside the text. */
static const char *leave_state(struct house *h, size_t n)
{
    const char *id =
        house_submit(h, "'plan':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'x',"
                        "'maxRetries':0}]}");
    char *text = arena_alloc(&h->arena, n + 1);

    assert_non_null(text);
    memset(text, 'x', n);
    text[n - 6] = 0;
    house_done(h, "calc", "'result':{'text':'1'},'state':{'s':'%s'}", text);
    return house_ok(h, "plan.get", "'planId':'%s'", id);
}

static void bytes_of_a_plans_state(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    house_says(h, leave_state(h, LIMIT_STATE_BYTES), "status=completed");
    house_says(h, leave_state(h, LIMIT_STATE_BYTES + 1), "status=failed; steps.0.error=~65536");
    house_close(h);
}

/* An array of numbers with so many values, itself among them. */
static enum bt_code read_values(uint32_t n)
{
    struct buf json;
    struct buf doc;
    struct bt_error err;
    enum bt_code code;

    buf_init(&json, LIMIT_STEP_BYTES);
    buf_init(&doc, LIMIT_STEP_BYTES);
    for (uint32_t i = 1; i < n; i++) {
        put(&json, i == 1 ? "[1" : ",1");
    }
    put(&json, "]");
    code = json_to_doc(buf_str(&json), NULL, &doc, &err);
    buf_done(&json);
    buf_done(&doc);
    return code;
}

static void values_of_a_body(void **state)
{
    (void)state;
    assert_int_equal(read_values(LIMIT_NODES), BT_OK);
    assert_int_equal(read_values(LIMIT_NODES + 1), BT_LIMIT);
}

static void bytes_of_a_late_result(void **state)
{
    static const char head[] =
        "{\"v\":1,\"type\":\"step.result\",\"id\":\"7\",\"token\":\"the token "
        "of the house, 32 letters\"";
    struct house *h = house_open();
    char *bytes = arena_alloc(&h->arena, LIMIT_STEP_BYTES + 1);

    (void)state;
    assert_non_null(bytes);
    memset(bytes, ' ', LIMIT_STEP_BYTES + 1);
    memcpy(bytes, head, sizeof head - 1);
    bytes[LIMIT_STEP_BYTES - 1] = '}';
    house_is(h, house_ask_bytes(h, bytes, LIMIT_STEP_BYTES), "error.code",
             "INVALID"); /* was read */
    bytes[LIMIT_STEP_BYTES - 1] = ' ';
    bytes[LIMIT_STEP_BYTES] = '}';
    house_is(h, house_ask_bytes(h, bytes, LIMIT_STEP_BYTES + 1), "error.code", "LIMIT");
    house_close(h);
}

static void events_of_one_read(void **state)
{
    struct house *h = house_open();

    (void)state;
    (void)house_ok(h, "events.read", "'fromSeq':1,'limit':%d", LIMIT_EVENTS_READ);
    house_refused(h, "INVALID", "limit", "events.read", "'fromSeq':1,'limit':%d",
                  LIMIT_EVENTS_READ + 1);
    house_close(h);
}

/* Signal LIMIT_SIGNALS is taken and LIMIT_SIGNALS + 1 is not; the run is told that it had the
 * others, because a plan of as many waits takes minutes. */
static void signals_of_a_plan(void **state)
{
    struct house *h = house_open();
    const char *id;
    struct open_plan *p;

    (void)state;
    id = house_submit(h, "'plan':{'steps':[{'stepId':'a','wait':{'signal':'go'},'task':'wait'},"
                         "{'stepId':'b','wait':{'signal':'go'},'task':'wait'},"
                         "{'stepId':'c','wait':{'signal':'go'},'task':'wait'}]}");
    p = open_plan_by_id(h->engine, str_from(id));
    assert_non_null(p);
    core_block_run(p->block)->signals = LIMIT_SIGNALS - 1;
    house_says(h, house_ok(h, "plan.signal", "'planId':'%s','name':'go'", id),
               house_text(h, "signal=%d", LIMIT_SIGNALS));
    house_refused(h, "LIMIT", "has had 10000 signals", "plan.signal", "'planId':'%s','name':'go'",
                  id);
    assert_int_equal(core_block_run(p->block)->signals, LIMIT_SIGNALS);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_a_plan),
        cmocka_unit_test(dependencies_of_a_plan),
        cmocka_unit_test(agents_of_a_plan),
        cmocka_unit_test(bytes_of_a_step_id_and_attempts_of_a_step),
        cmocka_unit_test(revisions_of_a_plan),
        cmocka_unit_test(skills_of_a_card),
        cmocka_unit_test(lanes_of_an_instance),
        cmocka_unit_test(bytes_of_a_plans_state),
        cmocka_unit_test(values_of_a_body),
        cmocka_unit_test(bytes_of_a_late_result),
        cmocka_unit_test(events_of_one_read),
        cmocka_unit_test(signals_of_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

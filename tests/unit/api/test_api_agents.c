/* Requests of agents, about agents, and about the supervisor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

#define CARD                                                                                       \
    "'card':{'agentId':'calc','name':'Calc','version':'1','skills':[{'id':'do','description':'D'}" \
    "]}"
#define ME "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA','sessionKey':'0123456789abcdef'"
#define AT "'endpoint':'tcp://127.0.0.1:4711'"
#define ONE "'plan':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'do a'}]}"

static const char *reg(struct house *h, const char *fields)
{
    return house_ask(h, "agent.register", "%s", fields);
}

static void no_reg(struct house *h, const char *words, const char *fields)
{
    house_refused(h, "INVALID", words, "agent.register", "%s", fields);
}

static void a_registration_names_lease_heartbeat_and_epoch(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_says(h, reg(h, CARD "," ME "," AT ",'capacity':2,'pid':77"),
               "ok=true; type=agent.register.ok; epoch=4294967297; leaseMs=3000; heartbeatMs=1000; "
               "lanes=-");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "state=up; card.name=Calc; external=true; instances.#=1; instances.0.pid=77; "
               "instances.0.endpoint=tcp://127.0.0.1:4711; instances.0.capacity=2; "
               "instances.0.instanceId=0190F3C2-7A1B-7C3D-9E4F-0000000000AA; "
               "instances.0.health=healthy; instances.0.epoch=4294967297; "
               "instances.0.breaker.state=closed; breaker.state=closed; breaker.retryInMs=-");
    house_is(h, house_event(h, "agent_registered"), "pid", "77");
    /* The same instance again is its next epoch; the one before is fenced. */
    house_says(h, reg(h, CARD "," ME "," AT ",'capacity':2,'protocol':1"), "epoch=4294967298");
    house_refused(h, "CONFLICT", "epoch 4294967297 is not the current one", "agent.heartbeat",
                  "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA','epoch':4294967297");
    (void)house_ok(h, "agent.heartbeat",
                   "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA','epoch':4294967298");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "instances.#=1");
    house_says(h,
               reg(h, CARD ",'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AB','sessionKey':"
                           "'fedcba9876543210','capacity':1,'dialIn':true"),
               "lanes.#=2; lanes.0=tcp://127.0.0.1:30000; lanes.1=tcp://127.0.0.1:30001");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "instances.#=2; instances.1.endpoint=dialIn");
    house_close(h);
}

/* An agent of another host dials: nobody there can be reached. */
static void an_agent_of_another_host_dials_its_lanes(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.remote_url = "tls+tcp://192.0.2.1:7443";
    opt.lane_first = 40000;
    opt.lane_last = 40009;
    h = house_open_with(&opt);
    h->remote = true;
    (void)house_as(h, "agent");
    house_refused(h, "INVALID", "dialIn: an agent on another host dials the lanes",
                  "agent.register", CARD "," ME "," AT ",'capacity':1,'proof':true");
    house_says(h, reg(h, CARD "," ME ",'capacity':1,'dialIn':true,'proof':true"),
               "ok=true; lanes.#=2");
    h->remote = false;
    (void)house_as(h, NULL);
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "instances.#=1; instances.0.endpoint=dialIn");
    (void)house_as(h, "agent");
    house_says(h, reg(h, CARD "," ME "," AT ",'capacity':1,'proof':true"), "ok=true; lanes=-");
    house_close(h);
}

/* Who looks for the process of an agent finds it by its events. */
static void the_events_of_an_instance_have_its_process(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join_as(h, "calc", 3, "'skills':[{'id':'do','description':'D'}]", ",'pid':4711");
    house_says(h, house_event(h, "agent_registered"),
               "agentId=calc; pid=4711; capacity=3; version=1; instanceId=*; epoch=*");
    house_close(h);
}

static void a_registration_is_refused_by_what_is_wrong_with_it(void **state)
{
    struct house *h = house_open();

    (void)state;
    no_reg(h, "card", ME "," AT ",'capacity':1");
    no_reg(h, "card: ",
           "'card':{'agentId':'a b','name':'x','version':'1','skills':[{'id':'do'}]}," ME "," AT
           ",'capacity':1");
    no_reg(h, "card.skills[1]: ",
           "'card':{'agentId':'a','name':'x','version':'1','skills':[{'id':'do','description':'D'},"
           "{'id':'a b','description':'D'}]}," ME "," AT ",'capacity':1");
    no_reg(h, "instanceId: expected a UUID",
           CARD ",'instanceId':'me','sessionKey':'0123456789abcdef'," AT ",'capacity':1");
    no_reg(h, "instanceId: expected a UUID",
           CARD ",'instanceId':'00000000-0000-0000-0000-000000000000','sessionKey':"
                "'0123456789abcdef'," AT ",'capacity':1");
    no_reg(h, "capacity: expected 1 to 64", CARD "," ME "," AT ",'capacity':0");
    no_reg(h, "capacity: expected 1 to 64", CARD "," ME "," AT ",'capacity':65");
    no_reg(h, "sessionKey: expected at least 16",
           CARD ",'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA','sessionKey':"
                "'0123456789abcde'," AT ",'capacity':1");
    no_reg(h, "processId: expected a UUID", CARD "," ME "," AT ",'capacity':1,'processId':'x'");
    no_reg(h, "processId: expected a UUID",
           CARD "," ME "," AT ",'capacity':1,'processId':'00000000-0000-0000-0000-000000000000'");
    no_reg(h, "protocol: none", CARD "," ME "," AT ",'capacity':1,'protocol':[2,3]");
    no_reg(h, "protocol: none", CARD "," ME "," AT ",'capacity':1,'protocol':2");
    no_reg(h, "protocol: none", CARD "," ME "," AT ",'capacity':1,'protocol':'1'");
    no_reg(h, "endpoint: expected", CARD "," ME ",'capacity':1,'endpoint':'tcp://10.0.0.1:4711'");
    no_reg(h, "endpoint: expected", CARD "," ME ",'capacity':1,'endpoint':'ipc:///tmp/x'");
    no_reg(h, "endpoint", CARD "," ME ",'capacity':1,'endpoint':'tcp://127.0.0.1:0'");
    no_reg(h, "not an address that an agent may have",
           CARD "," ME ",'capacity':1,'endpoint':'tcp://127.0.0.1:7117'");
    no_reg(h, "not an address that an agent may have",
           CARD "," ME ",'capacity':1,'endpoint':'tcp://127.0.0.1:7118'");
    house_says(h, house_ok(h, "agents.list", " "), "agents.#=0");
    house_says(h, reg(h, CARD "," ME "," AT ",'capacity':1,'protocol':[2,1]"), "ok=true");
    house_close(h);
}

static void the_capacity_of_the_protocol_is_taken(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_says(h, reg(h, CARD "," ME "," AT ",'capacity':64"), "ok=true");
    house_close(h);
}

static void addresses_of_the_setting_are_taken(void **state)
{
    static const char *const allowed[] = {"ipc:///tmp/agent", "tcp://10.0.0.*", ""};
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.agent_endpoints = allowed;
    opt.n_agent_endpoints = 3;
    h = house_open_with(&opt);
    no_reg(h, "allowEndpoints", CARD "," ME ",'capacity':1,'endpoint':'ipc:///tmp/agents'");
    no_reg(h, "allowEndpoints", CARD "," ME ",'capacity':1,'endpoint':'tcp://10.0.1.1:4711'");
    /* link_url_check has the last word: the list opens no other host by itself. */
    house_close(h);
}

#define ONE_PROCESS ",'capacity':1,'processId':'0190F3C2-7A1B-7C3D-9E4F-0000000000BB'"
#define OTHER_PROCESS ",'capacity':1,'processId':'0190F3C2-7A1B-7C3D-9E4F-0000000000BC'"
#define OTHER                                                                                      \
    ",'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AC','sessionKey':'0123456789abcdef',"

static void an_instance_is_not_taken_over_by_another(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_says(h, reg(h, CARD "," ME "," AT ONE_PROCESS), "ok=true");
    house_refused(h, "CONFLICT", "live instance of another agent", "agent.register",
                  "'card':{'agentId':'other','name':'x','version':'1','skills':[{'id':'do',"
                  "'description':'D'}]}," ME "," AT ",'capacity':1");
    house_refused(h, "CONFLICT", "another process is registered under it", "agent.register",
                  CARD "," ME "," AT OTHER_PROCESS);
    house_refused(h, "CONFLICT", "sessionKey: another instance has it", "agent.register",
                  CARD OTHER AT OTHER_PROCESS);
    house_says(h, reg(h, CARD "," ME "," AT ONE_PROCESS), "ok=true"); /* itself again */
    /* What does not name its process is not looked at. */
    house_says(h, reg(h, CARD OTHER AT ",'capacity':1"), "ok=true");
    house_close(h);
}

static void leave(struct house *h, const char *instance, const char *registered)
{
    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%s", instance,
                   house_get(h, registered, "epoch"));
    house_cycle(h);
}

/* Of two with one key the second did not name its process, so it was not looked at. */
static void a_key_is_of_another_until_the_last_instance_with_it_has_left(void **state)
{
    static const char third[] =
        ",'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AD','sessionKey':'0123456789abcdef',";
    struct house *h = house_open();
    char first[600];
    char second[600];

    (void)state;
    (void)snprintf(first, sizeof first, "%s", reg(h, CARD "," ME "," AT ONE_PROCESS));
    (void)snprintf(second, sizeof second, "%s", reg(h, CARD OTHER AT ",'capacity':1"));
    leave(h, "0190F3C2-7A1B-7C3D-9E4F-0000000000AA", first);
    house_refused(h, "CONFLICT", "sessionKey: another instance has it", "agent.register",
                  CARD "%s" AT OTHER_PROCESS, third);
    leave(h, "0190F3C2-7A1B-7C3D-9E4F-0000000000AC", second);
    (void)house_ok(h, "agent.register", CARD "%s" AT OTHER_PROCESS, third);
    house_close(h);
}

static void no_more_agents_than_the_limit(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.agents_max = 2;
    opt.instances_max = 3;
    h = house_open_with(&opt);
    house_join(h, "one", 1);
    house_join(h, "two", 1);
    house_refused(h, "LIMIT", "there are 2 agents already", "agent.register",
                  CARD "," ME "," AT ",'capacity':1");
    house_join(h, "two", 1);
    house_refused(h, "LIMIT", "instances", "agent.register",
                  "'card':{'agentId':'two','name':'x','version':'1','skills':[{'id':'do',"
                  "'description':'D'}]}," ME "," AT ",'capacity':1");
    /* One that left makes room. */
    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", h->agents[0].instance,
                   (unsigned long long)h->agents[0].epoch);
    house_says(h, reg(h, CARD "," ME "," AT ",'capacity':1"), "ok=true");
    house_close(h);
}

/* ---- leases ---- */

static void a_lease_ends_when_no_heartbeat_comes_in_time(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    house_wait(h, 10 * HOUSE_LEASE_MS); /* beats */
    id = house_submit(h, ONE ",'policy':{'maxRetries':0}");
    assert_non_null(house_work(h, "calc", NULL));
    (void)house_ok(h, "agent.heartbeat",
                   "'instanceId':'%s','epoch':%llu,'inflight':[{'key':'%s',"
                   "'attempt':1}]",
                   a->instance, (unsigned long long)a->epoch,
                   house_get(h, house_work(h, "calc", NULL), "key"));
    a->silent = true;
    house_wait(h, HOUSE_LEASE_MS - 1);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=running");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "state=up; instances.#=1");
    house_wait(h, 1);
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "state=down; instances=-");
    house_refused(h, "NOT_FOUND", "is not registered; register again", "agent.heartbeat",
                  "'instanceId':'%s','epoch':%llu", a->instance, (unsigned long long)a->epoch);
    house_says(h, house_event(h, "agent_down"), "agentId=calc");
    house_close(h);
}

static uint32_t asked_for; /* step.query */
static char says_running[400];

/* The attempt goes on, says the process that was asked. */
static const char *is_running(struct house_agent *agent, const char *request)
{
    const char *id = strstr(request, "\"id\":\"");
    const char *key = strstr(request, "\"key\":\"");

    (void)agent;
    if (strstr(request, "\"step.query\"") == NULL || id == NULL || key == NULL) {
        return NULL;
    }
    id += strlen("\"id\":\"");
    key += strlen("\"key\":\"");
    asked_for++;
    (void)snprintf(says_running, sizeof says_running,
                   "{\"v\":1,\"id\":\"%.*s\",\"ok\":true,\"type\":\"step.state\",\"key\":\"%.*s\","
                   "\"state\":\"running\"}",
                   (int)strcspn(id, "\""), id, (int)strcspn(key, "\""), key);
    return says_running;
}

/* Over a new registration the attempt goes on as long as each heartbeat lists it. */
static void what_a_heartbeat_lists_is_not_asked_for(void **state)
{
    static const struct {
        const char *before, *after; /* of the key */
        bool listed;
    } cases[] = {{"{'key':'", "','attempt':1}", true},
                 {"{'key':'", "'}", true},
                 {"{'key':'other'},{'key':'", "','attempt':1}", true},
                 {"{'key':'", "','attempt':2}", false},
                 {"{'key':'other", "'}", false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = house_open();
        struct house_agent *a = house_join(h, "calc", 1);
        const char *key;
        (void)house_submit(h, ONE);
        key = house_get(h, house_work(h, "calc", NULL), "key");
        asked_for = 0;
        a->tells = is_running;
        a->silent = true;
        a->epoch = strtoull(
            house_get(h,
                      house_ok(h, "agent.register",
                               "'card':{'agentId':'calc','name':'calc','version':'1','skills':[{"
                               "'id':'do','description':'D'}]},'capacity':1,'endpoint':'%s',"
                               "'protocol':[1],'instanceId':'%s','sessionKey':'0123456789abcdef1'",
                               a->url, a->instance),
                      "epoch"),
            NULL, 10);
        house_wait(h, 10);
        assert_true(asked_for > 0); /* about what it had before */
        asked_for = 0;
        (void)house_ok(h, "agent.heartbeat", "'instanceId':'%s','epoch':%llu,'inflight':[%s%s%s]",
                       a->instance, (unsigned long long)a->epoch, cases[i].before, key,
                       cases[i].after);
        house_wait(h, 10);
        if ((asked_for == 0) != cases[i].listed) {
            fail_msg("%s%s%s: asked for %u times", cases[i].before, key, cases[i].after, asked_for);
        }
        house_close(h);
    }
}

static void heartbeat_drain_and_deregister_name_the_instance(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;

    (void)state;
    a = house_join(h, "calc", 1);
    house_refused(h, "NOT_FOUND", "instance 'x' is not registered", "agent.heartbeat",
                  "'instanceId':'x','epoch':1");
    house_refused(h, "INVALID", "epoch", "agent.heartbeat", "'instanceId':'x'");
    house_refused(h, "NOT_FOUND", "is not registered", "agent.drain", "'instanceId':'x','epoch':1");
    house_refused(h, "INVALID", "epoch", "agent.drain", "'instanceId':'x'");
    house_refused(h, "NOT_FOUND", "is not registered", "agent.deregister",
                  "'instanceId':'x','epoch':1");
    house_refused(h, "INVALID", "epoch", "agent.deregister", "'instanceId':'x'");
    house_says(h,
               house_ok(h, "agent.heartbeat", "'instanceId':'%s','epoch':%llu", a->instance,
                        (unsigned long long)a->epoch),
               "type=agent.heartbeat.ok; leaseMs=3000; drain=-; cancel=-");
    house_says(h,
               house_ok(h, "agent.drain", "'instanceId':'%s','epoch':%llu", a->instance,
                        (unsigned long long)a->epoch),
               "type=ok");
    house_says(h,
               house_ok(h, "agent.heartbeat", "'instanceId':'%s','epoch':%llu", a->instance,
                        (unsigned long long)a->epoch),
               "drain=true");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "state=draining; instances.0.draining=true");
    (void)house_submit(h, ONE);
    assert_null(house_work(h, "calc", NULL));
    (void)house_ok(h, "agent.deregister", "'instanceId':'%s','epoch':%llu", a->instance,
                   (unsigned long long)a->epoch);
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "state=down; queued=1");
    house_close(h);
}

static void an_endpoint_that_nobody_answers_is_given_up(void **state)
{
    struct house *h = house_open();
    const char *ok;

    (void)state;
    ok = reg(h, CARD "," ME "," AT ",'capacity':1");
    /* No rig answers at port 4711: heartbeats alone keep it for two leases. */
    for (int i = 0; i < 6; i++) {
        house_wait(h, 1000);
        (void)house_ok(h, "agent.heartbeat",
                       "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA','epoch':%s",
                       house_get(h, ok, "epoch"));
    }
    house_wait(h, 1);
    house_refused(h, "GONE", "no lane could be opened to tcp://127.0.0.1:4711", "agent.heartbeat",
                  "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA','epoch':%s",
                  house_get(h, ok, "epoch"));
    house_says(h, house_ok(h, "agents.list", " "), "agents.#=0");
    house_close(h);
}

static void a_heartbeat_repeats_the_order_to_stop(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *id;

    (void)state;
    a = house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    (void)house_work(h, "calc", NULL);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_says(h,
               house_ok(h, "agent.heartbeat", "'instanceId':'%s','epoch':%llu", a->instance,
                        (unsigned long long)a->epoch),
               house_text(h,
                          "cancel.#=1; cancel.0.key=%s/1/a; cancel.0.attempt=1; "
                          "cancel.0.reason=cancelled; cancel.0.graceMs=5000",
                          id));
    house_close(h);
}

/* ---- progress, and results that come late ---- */

static void progress_is_published_and_checked(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *key;

    (void)state;
    a = house_join(h, "calc", 1);
    (void)house_submit(h, ONE);
    key = house_get(h, house_work(h, "calc", NULL), "key");
    (void)house_ok(h, "step.progress",
                   "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':1,'n':1,'percent':50,"
                   "'text':'half','data':{'rows':3}",
                   a->instance, (unsigned long long)a->epoch, key);
    house_says(h, house_event(h, "plan_step_progress"),
               "stepId=a; text=half; percent=50; data.rows=3; attempt=1");
    house_refused(h, "CONFLICT", "", "step.progress",
                  "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':2", a->instance,
                  (unsigned long long)a->epoch, key);
    house_refused(h, "CONFLICT", "epoch", "step.progress",
                  "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':1", a->instance,
                  (unsigned long long)a->epoch + 1, key);
    house_refused(h, "NOT_FOUND", "", "step.progress",
                  "'instanceId':'%s','epoch':%llu,'key':'x/1/a','attempt':1", a->instance,
                  (unsigned long long)a->epoch);
    house_refused(h, "INVALID", "attempt", "step.progress", "'key':'x','epoch':1");
    assert_int_equal(house_seen(h, "plan_step_progress"), 1);
    house_close(h);
}

static void a_late_result_counts_once(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;
    const char *id;
    const char *key;

    (void)state;
    a = house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    key = house_get(h, house_work(h, "calc", NULL), "key");
    a->deaf = true;
    house_hang_up(h, "calc", true);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.0.status=in_progress");
    house_says(h,
               house_ok(h, "step.result",
                        "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':2,"
                        "'outcome':'completed','result':{'text':'5'}",
                        a->instance, (unsigned long long)a->epoch, key),
               "accepted=false; reason=*");
    house_says(h,
               house_ok(h, "step.result",
                        "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':1,"
                        "'outcome':'completed','result':{'text':'5'}",
                        a->instance, (unsigned long long)a->epoch, key),
               "type=step.result.ok; accepted=true; reason=-");
    house_says(h,
               house_ok(h, "step.result",
                        "'instanceId':'%s','epoch':%llu,'key':'%s','attempt':1,"
                        "'outcome':'completed','result':{'text':'6'}",
                        a->instance, (unsigned long long)a->epoch, key),
               "accepted=false");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "status=completed; steps.0.result=5");
    house_refused(h, "INVALID", "outcome", "step.result", "'epoch':1,'key':'%s','attempt':1", key);
    house_close(h);
}

/* ---- about agents ---- */

static void agents_are_listed_and_shown(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_says(h, house_ok(h, "agents.list", " "), "agents.#=0; skillsTruncated=-");
    house_join(h, "calc", 2);
    house_join(h, "files", 1);
    (void)house_submit(h, ONE);
    house_says(
        h, house_ok(h, "agents.list", " "),
        "agents.#=2; agents.0.card.agentId=calc; agents.0.card.skills.0.id=do; "
        "agents.0.inFlight=1; agents.0.instances.0.outstanding=1; agents.1.card.agentId=files; "
        "agents.1.inFlight=-; agents.0.state=up");
    house_done(h, "calc", "'result':{'text':'5'}");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "num_requests=1; num_errors=-; inFlight=-; queued=-; reason=-");
    house_refused(h, "NOT_FOUND", "Unknown agent: calk; did you mean 'calc'?", "agents.get",
                  "'agentId':'calk'");
    house_refused(h, "NOT_FOUND", "Unknown agent: zebra", "agents.get", "'agentId':'zebra'");
    house_refused(h, "INVALID", "agentId", "agents.get", " ");
    house_close(h);
}

static void a_drained_agent_gets_no_work_until_it_is_enabled(void **state)
{
    struct house *h = house_open();
    struct house_agent *a;

    (void)state;
    a = house_join(h, "calc", 1);
    house_join(h, "calc", 1);
    (void)house_ok(h, "agents.drain", "'agentId':'calc','instanceId':'%s'", a->instance);
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "state=up; instances.0.draining=true; instances.1.draining=-");
    (void)house_submit(h, ONE);
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "instances.1.outstanding=1");
    house_refused(h, "NOT_FOUND", "agent 'calc' has no such instance", "agents.drain",
                  "'agentId':'calc','instanceId':'x'");
    house_refused(h, "NOT_FOUND", "Unknown agent", "agents.drain", "'agentId':'x'");
    house_refused(h, "INVALID", "agentId", "agents.drain", " ");
    (void)house_ok(h, "agents.drain", "'agentId':'calc'");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "state=disabled");
    house_refused(h, "NOT_FOUND", "Unknown agent", "agents.enable", "'agentId':'x'");
    house_refused(h, "INVALID", "agentId", "agents.enable", " ");
    (void)house_ok(h, "agents.enable", "'agentId':'calc'");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "state=draining");
    house_close(h);
}

static void enabling_wakes_the_steps_that_waited(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 2);
    (void)house_ok(h, "agents.drain", "'agentId':'calc'");
    house_join(h, "calc", 1); /* comes while the agent is out of service */
    (void)house_submit(h, ONE);
    assert_null(house_work(h, "calc", NULL));
    (void)house_ok(h, "agents.enable", "'agentId':'calc'");
    assert_non_null(house_work(h, "calc", NULL));
    house_close(h);
}

static void failures_in_a_row_open_the_breaker(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.breaker_failures = 2;
    opt.breaker_cooldown_ms = 5000;
    opt.breaker_cooldown_max_ms = 5000;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    for (int i = 0; i < 2; i++) {
        (void)house_submit(h, ONE ",'policy':{'maxRetries':0}");
        house_failed(h, "calc", "SERVICE_UNAVAILABLE", false);
    }
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"),
               "num_errors=2; breaker.state=open; breaker.retryInMs=5000; breaker.failures=2");
    house_says(h, house_ok(h, "supervisor.stats", " "), "agents.0.breaker=open; breakersOpened=*");
    (void)house_ok(h, "agents.enable", "'agentId':'calc'");
    house_says(h, house_ok(h, "agents.get", "'agentId':'calc'"), "breaker.state=closed");
    house_close(h);
}

/* ---- about the supervisor ---- */

static void info_says_who_it_is(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, ONE);
    house_wait(h, 1500);
    house_says(h, house_ok(h, "supervisor.info", " "),
               "version=*; protocol=[1]; uptimeMs=1500; durability=process; "
               "durabilityMeans=~not a power cut; control=tcp://127.0.0.1:7117; "
               "events=tcp://127.0.0.1:7118; remote=-; stateDir=/nowhere; plansOpen=1; agents=1; "
               "storage=-; startedAt=*; lastSeq=*");
    h->journal->storage_low = true;
    house_says(h, house_ok(h, "supervisor.info", " "), "storage=low");
    house_close(h);
}

static void a_full_disk_takes_no_work_and_is_read(void **state)
{
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    id = house_submit(h, ONE);
    engine_hold(h->engine, true);
    house_says(h, house_ok(h, "supervisor.info", " "), "storage=full");
    house_refused(h, "UNAVAILABLE", "", "plan.submit", ONE);
    house_is(h, house_ask(h, "plan.submit", ONE), "error.retryable", "true");
    house_refused(h, "UNAVAILABLE", "", "plan.cancel", "'planId':'%s'", id);
    house_refused(h, "UNAVAILABLE", "", "review.decide", "'reviewId':'x','decision':'approve'");
    house_refused(h, "UNAVAILABLE", "", "session.say", "'sessionId':'s','text':'x'");
    house_refused(h, "UNAVAILABLE", "", "agents.drain", "'agentId':'calc'");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=running");
    (void)house_ok(h, "plan.list", " ");
    (void)house_ok(h, "events.read", "'fromSeq':1");
    (void)house_ok(h, "agents.list", " ");
    (void)house_ok(h, "review.list", " ");
    (void)house_ok(h, "supervisor.stats", " ");
    engine_hold(h->engine, false);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_close(h);
}

static void stats_count(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_submit(h, ONE);
    (void)house_submit(h, ONE);
    (void)house_submit(h, ONE ",'policy':{'signoff':true}");
    h->now += 100;
    h->wall += 100;
    house_done(h, "calc", "'result':{'text':'5'},'usage':{'inputTokens':4,'outputTokens':2}");
    house_says(h, house_ok(h, "supervisor.stats", " "),
               "plansOpen=2; plansDone=1; stepsDispatched=2; inFlight=1; inFlightMax=-; "
               "reviewsOpen=1; plansWaiting=-; stepsRetried=-; resultsRejected=-; agents.#=1; "
               "agents.0.agentId=calc; agents.0.state=up; agents.0.instances=1; "
               "agents.0.capacity=1; agents.0.inFlight=1; agents.0.steps=1; agents.0.errors=-; "
               "agents.0.averageMs=100; agents.0.maxMs=100; agents.0.tokens=6; rssBytes=*");
    house_close(h);
}

static void drain_stops_and_takes_no_new_plans(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    assert_false(api_stop_asked(h->api));
    house_refused(h, "INVALID", "graceMs", "supervisor.drain", "'graceMs':-1");
    assert_false(api_stop_asked(h->api));
    (void)house_ok(h, "supervisor.drain", "'graceMs':7");
    assert_true(api_stop_asked(h->api));
    assert_int_equal(api_stop_grace(h->api, 9), 7);
    house_refused(h, "UNAVAILABLE", "", "plan.submit", ONE);
    (void)house_ok(h, "supervisor.drain", " ");
    assert_int_equal(api_stop_grace(h->api, 9), 9);
    house_close(h);
}

static void reload_returns_the_changes_or_the_problem(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_says(h, house_ok(h, "supervisor.reload", " "),
               "changes.#=1; changes.0.key=leaseMs; changes.0.live=true");
    house_says(h, house_ok(h, "supervisor.reload", "'check':true"), "changes.0.live=-");
    house_refused(h, "INVALID", "line 1: expected a map", "supervisor.reload", "'file':'bad'");
    house_close(h);
}

/* ---- what every request has in common ---- */

static void a_request_without_token_type_or_version_is_refused(void **state)
{
    static const char *const bad[][3] = {
        {"{'v':1,'type':'plan.list','id':'7'}", "UNAUTHORIZED", "token is missing"},
        {"{'v':1,'type':'plan.list','id':'7','token':'x'}", "UNAUTHORIZED", "token is wrong"},
        {"{'v':1,'type':'plan.list','id':'7','token':'the token of the house, 32 letterz'}",
         "UNAUTHORIZED", "token is wrong"},
        {"{'v':1,'type':'plan.list','id':'7','token':'the token of the house, 32 letterss'}",
         "UNAUTHORIZED", "token is wrong"},
        {"{'v':2,'type':'plan.list','id':'7','token':'the token of the house, 32 letters'}",
         "INVALID", "version 2 is not supported"},
        {"{'v':1,'type':'plan.lisp','id':'7','token':'the token of the house, 32 letters'}",
         "INVALID", "unknown request type 'plan.lisp'"},
        {"{'v':1,'type':'step.execute','id':'7','token':'the token of the house, 32 letters'}",
         "INVALID", "unknown request type"},
    };
    struct house *h = house_open();

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *request = house_text(h, "%s", bad[i][0]);
        const char *answer = house_ask_bytes(h, request, strlen(request));
        house_is(h, answer, "error.code", bad[i][1]);
        house_has(h, answer, "error.message", bad[i][2]);
        house_is(h, answer, "id", "7");
    }
    house_is(h, house_ask_bytes(h, "{", 1), "error.class", "PROTOCOL_ERROR");
    house_is(h, house_ask_bytes(h, "{\"v\":1}", 7), "error.class", "PROTOCOL_ERROR");
    house_close(h);
}

/* The request with so many bytes in all, the rest as a goal. */
static const char *of_size(struct house *h, const char *head, size_t n)
{
    char *at = arena_alloc(&h->arena, n + 1);
    const char *text = house_text(h, "%s", head);
    const size_t len = strlen(text);

    assert_non_null(at);
    memset(at, ' ', n);
    memcpy(at, text, len);
    at[n - 1] = '}';
    at[n] = 0;
    return house_ask_bytes(h, at, n);
}

#define TOKEN "'token':'the token of the house, 32 letters'"

static void a_body_of_the_limit_is_read_and_one_byte_more_is_refused(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_is(h, of_size(h, "{'v':1,'type':'plan.list','id':'7'," TOKEN, LIMIT_CONTROL_BYTES), "ok",
             "true");
    house_has(h, of_size(h, "{'v':1,'type':'plan.list','id':'7'," TOKEN, LIMIT_CONTROL_BYTES + 1),
              "error.message", "a request is at most 1048576 bytes");
    /* Only the late result of an agent may be larger. */
    house_close(h);
}

static void a_long_body_of_a_stranger_is_not_read(void **state)
{
    struct house *h = house_open();
    const char *answer;

    (void)state;
    /* Its defect is far behind: only a reader would find it. */
    answer = of_size(h, "{'v':1,'type':'plan.list','id':'7','token':'x','a':[", 5000);
    house_is(h, answer, "error.code", "UNAUTHORIZED");
    house_is(h, answer, "id", "7");
    answer = of_size(h, "{'v':1,'type':'plan.list','id':'7','token':'x','a':[", 4096);
    house_is(h, answer, "error.code", "INVALID");
    house_close(h);
}

/* Where credentials are required there is no bus, and no heartbeat of it that would be due. */
static void without_a_bus_nothing_is_due(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)state;
    opt.auth_required = true;
    h = house_open_with(&opt);
    house_cycle(h);
    assert_string_equal(engine_events_url(h->engine), "");
    assert_true(engine_deadline(h->engine) > h->now);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_registration_names_lease_heartbeat_and_epoch),
        cmocka_unit_test(an_agent_of_another_host_dials_its_lanes),
        cmocka_unit_test(the_events_of_an_instance_have_its_process),
        cmocka_unit_test(a_registration_is_refused_by_what_is_wrong_with_it),
        cmocka_unit_test(the_capacity_of_the_protocol_is_taken),
        cmocka_unit_test(addresses_of_the_setting_are_taken),
        cmocka_unit_test(an_instance_is_not_taken_over_by_another),
        cmocka_unit_test(a_key_is_of_another_until_the_last_instance_with_it_has_left),
        cmocka_unit_test(no_more_agents_than_the_limit),
        cmocka_unit_test(a_lease_ends_when_no_heartbeat_comes_in_time),
        cmocka_unit_test(what_a_heartbeat_lists_is_not_asked_for),
        cmocka_unit_test(heartbeat_drain_and_deregister_name_the_instance),
        cmocka_unit_test(an_endpoint_that_nobody_answers_is_given_up),
        cmocka_unit_test(a_heartbeat_repeats_the_order_to_stop),
        cmocka_unit_test(progress_is_published_and_checked),
        cmocka_unit_test(a_late_result_counts_once),
        cmocka_unit_test(agents_are_listed_and_shown),
        cmocka_unit_test(a_drained_agent_gets_no_work_until_it_is_enabled),
        cmocka_unit_test(enabling_wakes_the_steps_that_waited),
        cmocka_unit_test(failures_in_a_row_open_the_breaker),
        cmocka_unit_test(info_says_who_it_is),
        cmocka_unit_test(a_full_disk_takes_no_work_and_is_read),
        cmocka_unit_test(stats_count),
        cmocka_unit_test(drain_stops_and_takes_no_new_plans),
        cmocka_unit_test(reload_returns_the_changes_or_the_problem),
        cmocka_unit_test(a_request_without_token_type_or_version_is_refused),
        cmocka_unit_test(a_body_of_the_limit_is_read_and_one_byte_more_is_refused),
        cmocka_unit_test(a_long_body_of_a_stranger_is_not_read),
        cmocka_unit_test(without_a_bus_nothing_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

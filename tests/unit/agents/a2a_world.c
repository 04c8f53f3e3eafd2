#include "tests/unit/agents/a2a_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct a2a_agent *agent;

static void drop(void)
{
    if (agent != NULL) {
        a2a_settings_free(agent->settings);
        arena_done(&agent->arena);
        (void)pthread_mutex_destroy(&agent->lock);
        free(agent);
        agent = NULL;
    }
}

void a2a_use(bool modern, bool streaming, const char *members)
{
    char json[4096];
    struct bt_error err;

    drop();
    agent = calloc(1, sizeof *agent);
    assert_non_null(agent);
    agent->arena.max = 1024 * 1024;
    (void)pthread_mutex_init(&agent->lock, NULL);
    (void)snprintf(json, sizeof json, "{'url':'$','allowPrivate':['127.0.0.1']%s}", members);
    if (a2a_settings_read(service_text(json), &agent->settings, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
    (void)snprintf(agent->endpoint, sizeof agent->endpoint, "%s/rpc", service_url());
    agent->modern = modern;
    agent->streaming = streaming;
    agent->skills[0] = (struct a2a_skill){.id = "work", .remote = "do work", .unsafe = true};
    agent->skills[1] = (struct a2a_skill){.id = "read", .remote = "read"};
    agent->n_skills = 2;
}

struct a2a_agent *a2a_used(void)
{
    return agent;
}

const char *a2a_do(const char *skill, const char *parameters)
{
    struct buf json;
    struct bt_step *step;

    buf_init(&json, 1024 * 1024);
    buf_printf(&json, "{\"task\":\"the task\",\"parameters\":%s}", service_text(parameters));
    step = steps_make(skill, buf_cstr(&json));
    buf_done(&json);
    return steps_run(step, a2a_run, agent);
}

void a2a_says(const char *reply, const char *part)
{
    steps_expect(reply, service_text(part));
}

void a2a_next(const char *result)
{
    struct buf json;

    buf_init(&json, 4 * 1024 * 1024);
    buf_printf(&json, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%s}", service_text(result));
    service_next(200, "", buf_cstr(&json));
    buf_done(&json);
}

int a2a_start(void **state)
{
    struct bt_error err;

    return web_start(&err) == BT_OK ? service_start(state) : -1;
}

int a2a_stop(void **state)
{
    drop();
    steps_forget();
    return service_stop(state);
}

int a2a_begin(void **state)
{
    (void)state;
    service_forget();
    return 0;
}

#include "tests/unit/agents/http_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/step.h"

static struct http_settings *settings;

void http_use(const char *members)
{
    struct buf json;
    struct bt_error err;

    http_drop();
    buf_init(&json, 32 * 1024 * 1024);
    buf_printf(&json, "{\"baseUrl\":\"%s\",\"allowPrivate\":[\"127.0.0.1\",\"::1\"],%s}",
               service_url(), service_text(members));
    if (http_settings_read(buf_cstr(&json), &settings, &err) != BT_OK) {
        fail_msg("%s: %s", buf_cstr(&json), err.msg);
    }
    buf_done(&json);
}

struct http_settings *http_used(void)
{
    return settings;
}

void http_drop(void)
{
    http_settings_free(settings);
    settings = NULL;
}

const char *http_do(const char *action, const char *parameters)
{
    struct buf json;
    struct bt_step *step;

    buf_init(&json, 32 * 1024 * 1024);
    buf_printf(&json, "{\"parameters\":%s}", service_text(parameters));
    step = steps_make(action, buf_cstr(&json));
    buf_done(&json);
    return steps_run(step, http_run, settings);
}

void http_says(const char *reply, const char *part)
{
    steps_expect(reply, service_text(part));
}

int http_start(void **state)
{
    struct bt_error err;

    return web_start(&err) == BT_OK ? service_start(state) : -1;
}

int http_stop(void **state)
{
    http_drop();
    steps_forget();
    return service_stop(state);
}

int http_begin(void **state)
{
    (void)state;
    service_forget();
    return 0;
}

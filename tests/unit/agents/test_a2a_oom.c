/* Each allocation of a message to an A2A agent fails in its turn: the reply is whole, or it says
 * that another attempt may do better, and nothing stays. The service has memory. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/no_memory.h"
#include "tests/unit/agents/a2a_world.h"

#define RESULT(text) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" text "}"
#define TASK(state, members)                                                                       \
    "{\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"" state                           \
    "\",\"message\":{\"parts\":[{\"text\":\"because\"}]}}" members "}"
#define PARTS                                                                                      \
    ",\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"one\"},{\"data\":{\"n\":1}}]},"  \
    "{\"artifactId\":\"b\",\"parts\":[{\"text\":\"two\"},{\"data\":[2]},{\"url\":"                 \
    "\"https://a.example/x\",\"filename\":\"x.pdf\",\"mediaType\":\"application/pdf\"}]}]"
#define EVENT(data) "data: " data "\n\n"

static size_t asked;      /* before the last attempt */
static const char *first; /* the first answer to an attempt; NULL = as the others */

int __wrap_nanosleep(const struct timespec *for_, struct timespec *left);

int __wrap_nanosleep(const struct timespec *for_, struct timespec *left)
{
    (void)for_;
    (void)left;
    return 0;
}

static bool was_sent(void)
{
    return service_count() > asked;
}

static void run(struct bt_step *step, void *self)
{
    const long left = memory_left;
    const long pieces = memory_pieces;

    memory_left = -1; /* the service's part has memory */
    asked = service_count();
    if (first != NULL) {
        service_next(200, "", first);
    }
    memory_pieces = pieces;
    memory_left = left;
    step->reply.once = strcmp(bt_step_skill(step), "work") == 0;
    a2a_run(step, self);
}

static void each(const char *skill, const char *parameters, const char *answer)
{
    char json[1000];

    service_forget();
    service_at("/rpc", 200, "", answer);
    (void)snprintf(json, sizeof json, "{\"task\":\"t\",\"parameters\":%s}", parameters);
    no_memory_done = strcmp(skill, "work") == 0 ? was_sent : NULL;
    no_memory_each(skill, json, run, a2a_used());
}

static void an_answer_is_told_whole_or_later(void **state)
{
    (void)state;
    a2a_use(true, false, ",'headers':{'X-A':'1'},'bearer':{'env':'OOM_KEY'}");
    each("read", "{\"message\":\"m\",\"data\":{\"n\":[1]}}",
         RESULT("{\"task\":" TASK("TASK_STATE_COMPLETED", PARTS) "}"));
    each("work", "{}", RESULT("{\"task\":" TASK("TASK_STATE_COMPLETED", PARTS) "}"));
    each("read", "{}", RESULT("{\"task\":" TASK("TASK_STATE_COMPLETED", "") "}"));
    each("read", "{}", RESULT("{\"message\":{\"parts\":[{\"data\":1}]}}"));
    each("read", "{}", RESULT("{\"task\":" TASK("TASK_STATE_FAILED", "") "}"));
    each("read", "{}", RESULT("{\"task\":" TASK("TASK_STATE_INPUT_REQUIRED", "") "}"));
    each("read", "{}", "{\"error\":{\"code\":-32603,\"message\":\"no\"}}");
    first = RESULT("{\"task\":" TASK("TASK_STATE_WORKING", "") "}");
    each("read", "{}", RESULT(TASK("TASK_STATE_COMPLETED", PARTS)));
    first = NULL;
}

static void a_stream_is_told_whole_or_later(void **state)
{
    static const char events[] = EVENT(RESULT("{\"task\":" TASK("TASK_STATE_WORKING", "") "}"))
        EVENT(RESULT("{\"artifactUpdate\":{\"taskId\":\"t1\",\"artifact\":{\"artifactId\":"
                     "\"a\",\"parts\":[{\"text\":\"one \"}]}}}"))
            EVENT(RESULT("{\"artifactUpdate\":{\"taskId\":\"t1\",\"append\":true,\"artifact\":{"
                         "\"artifactId\":\"a\",\"parts\":[{\"text\":\"two\"}]}}}"))
                EVENT(RESULT("{\"statusUpdate\":{\"taskId\":\"t1\",\"status\":{\"state\":"
                             "\"TASK_STATE_COMPLETED\"}}}"));

    (void)state;
    a2a_use(true, true, "");
    each("read", "{}", events);
    each("work", "{}", events);
}

static void a_key_is_not_told_for_want_of_memory(void **state)
{
    struct bt_error err;

    (void)state;
    a2a_use(true, false, ",'bearer':{'env':'OOM_KEY'}");
    no_memory_secret = "a-key-of-an-agent";
    each("read", "{}", "{\"error\":{\"code\":-32603,\"message\":\"not a-key-of-an-agent\"}}");
    each("read", "{}", RESULT("{\"message\":{\"parts\":[{\"text\":\"a-key-of-an-agent\"}]}}"));
    no_memory_secret = NULL;
    (void)err_set(&err, BT_UNAVAILABLE, "redirect to /a-key-of-an-agent");
    memory_left = 0;
    secrets_redact_error(&a2a_used()->settings->secrets, &err);
    memory_left = -1;
    assert_string_equal(err.msg, "[redacted]");
}

static int start(void **state)
{
    return setenv("OOM_KEY", "a-key-of-an-agent", 1) == 0 ? a2a_start(state) : -1;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, a2a_begin)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_told_whole_or_later),
        TEST(a_stream_is_told_whole_or_later),
        TEST(a_key_is_not_told_for_want_of_memory),
    };
    return cmocka_run_group_tests(tests, start, a2a_stop);
}

/* Each allocation of a request over HTTP fails in its turn: the reply is whole, or it says that
 * another attempt may do better, and nothing stays. The service has memory. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/clock.h"
#include "tests/support/no_memory.h"
#include "tests/unit/agents/http_world.h"

msec __wrap_clock_mono_ms(void);

/* Each attempt takes as long as the others. */
msec __wrap_clock_mono_ms(void)
{
    return 1000;
}

static void ask(const char *action, const char *parameters)
{
    char json[1000];

    (void)snprintf(json, sizeof json, "{\"parameters\":%s}", parameters);
    no_memory_each(action, json, http_run, http_used());
}

static void an_answer_is_told_whole_or_later(void **state)
{
    (void)state;
    http_use("'retries':0,'actions':[{'id':'get','description':'d','path':'/x/{id}','query':{'q':"
             "'{q}'}},{'id':'put','description':'d','path':'/y','method':'PUT','body':{'n':'{n}'},"
             "'result':'/items/0'}]");
    service_at("/x/7", 200, "Content-Type: application/json\r\n", "{\"a\":[1,2,{\"b\":\"c\"}]}");
    service_at("/y", 200, "Content-Type: application/json\r\n", "{\"items\":[{\"n\":1}]}");
    ask("get", "{\"id\":7,\"q\":\"two words\"}");
    ask("put", "{\"n\":[1,2]}");
    service_forget();
    service_at("/x/7", 200, "Content-Type: text/plain\r\n", "only text");
    ask("get", "{\"id\":7,\"q\":\"z\"}");
}

/* A text that cannot be cleared of the key is no answer. */
static void an_answer_with_the_key_is_told_without_it_or_later(void **state)
{
    (void)state;
    assert_int_equal(setenv("OOM_KEY", "a-key-of-a-service", 1), 0);
    http_use("'retries':0,'auth':{'bearer':{'env':'OOM_KEY'}},'actions':[{'id':'get','description':"
             "'d','path':'/x'},{'id':'no','description':'d','path':'/y'}]");
    no_memory_secret = "a-key-of-a-service";
    service_forget();
    service_at("/x", 200, "Content-Type: text/plain\r\n", "you sent a-key-of-a-service");
    ask("get", "{}");
    service_forget();
    service_at("/x", 200, "Content-Type: application/json\r\n", "{\"k\":\"a-key-of-a-service\"}");
    ask("get", "{}");
    no_memory_secret = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_told_whole_or_later),
        cmocka_unit_test(an_answer_with_the_key_is_told_without_it_or_later),
    };
    return cmocka_run_group_tests(tests, http_start, http_stop);
}

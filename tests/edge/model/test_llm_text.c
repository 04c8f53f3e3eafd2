/* The streamed answer: pieces in order, void ones marked, never a key. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/wire/doc.h"
#include "tests/edge/model/world.h"

struct watcher {
    char text[65536];
    unsigned pieces;
    unsigned reset;
    pthread_t asker;
};

static void on_text(void *self, bool reset, struct str piece)
{
    struct watcher *w = self;
    size_t n = strlen(w->text);

    assert_true(pthread_equal(w->asker, pthread_self()));
    if (reset) {
        assert_int_equal(piece.len, 0);
        assert_true(n > 0); /* a reset is emitted only after pieces */
        w->reset++;
        w->text[0] = 0;
        return;
    }
    assert_true(piece.len > 0 && n + piece.len < sizeof w->text);
    (void)snprintf(w->text + n, sizeof w->text - n, "%.*s", STR_ARG(piece));
    w->pieces++;
    assert_null(strstr(w->text, "canary"));
}

static void watch(struct llm_client *c, const char *schema, bool as_is, struct watcher *w,
                  struct world_answer *ret)
{
    struct llm_turn turn = {.text = "question"};
    struct llm_request r = {.turns = &turn,
                            .n_turns = 1,
                            .max_tokens = 100,
                            .temperature = -1,
                            .as_is = as_is,
                            .schema_name = "answer",
                            .on_text = on_text,
                            .deadline = clock_mono_ms() + 5000,
                            .self = w};
    cJSON *tree = NULL;

    *w = (struct watcher){.asker = pthread_self()};
    if (schema != NULL) {
        assert_int_equal(json_parse(str_from(schema), &tree, NULL), BT_OK);
    }
    r.schema = tree;
    memset(&ret->err, 0, sizeof ret->err);
    ret->code = llm_complete(c, &r, &ret->reply, &ret->err);
    cJSON_Delete(tree);
}

#define ANSWER                                                                                     \
    "{\"type\":\"object\",\"required\":[\"answer\"],\"additionalProperties\":false,"               \
    "\"properties\":{\"answer\":{\"type\":\"integer\"}}}"

struct row {
    const char *api;
    const char *script;
    const char *members;
    bool schema;
    unsigned reset;
};

static void pieces_joined_are_the_answer(void **state)
{
    static const struct row rows[] = {
        {"openai", "ok", "", false, 0},
        {"anthropic", "ok", "", false, 0},
        {"ollama", "ok", "", false, 0},
        {"openai", "ok", ",\"stream\":false", false, 0},
        {"anthropic", "ok", ",\"stream\":false", false, 0},
        {"ollama", "ok", ",\"stream\":false", false, 0},
        {"openai", "think", "", false, 0},
        {"ollama", "think", "", true, 0},
        {"openai", "echoanswer", "", false, 0},
        {"anthropic", "echoanswer", "", false, 0},
        {"openai", "tool", "", true, 0},
        {"openai", "breaks,ok", "", false, 1},
        {"anthropic", "breaks,ok", "", false, 1},
        {"ollama", "breaks,ok", "", false, 1},
        {"openai", "503,ok", "", false, 0}, /* no piece had come */
        {"openai", "wrong,ok", "", true, 1},
        {"openai", "noschema", "", true, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        struct llm_client *c = world_client(r->api, r->script, r->members);
        struct world_answer a;
        struct watcher w;
        watch(c, r->schema ? ANSWER : NULL, false, &w, &a);
        if (a.code != BT_OK || strcmp(w.text, buf_cstr(&a.reply.text)) != 0 ||
            w.reset != r->reset) {
            fail_msg("%s %s: %s, void %u, told '%s', answer '%s'", r->api, r->script, a.err.msg,
                     w.reset, w.text, buf_cstr(&a.reply.text));
        }
        world_done(c, &a);
    }
}

/* The piece arrives while the server still hangs. */
static bool has_piece(void *self)
{
    return ((struct watcher *)self)->pieces > 0;
}

static void pieces_come_before_the_answer_is_whole(void **state)
{
    static const char *const apis[] = {"openai", "anthropic", "ollama"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct llm_client *c = world_client(apis[i], "halts", "");
        struct llm_turn turn = {.text = "question"};
        struct watcher w = {.asker = pthread_self()};
        struct llm_request r = {.turns = &turn,
                                .n_turns = 1,
                                .max_tokens = 100,
                                .temperature = -1,
                                .on_text = on_text,
                                .stop = has_piece,
                                .deadline = clock_mono_ms() + 5000,
                                .self = &w};
        struct llm_reply reply;
        assert_int_equal(llm_complete(c, &r, &reply, NULL), BT_CANCELLED);
        assert_true(w.pieces > 0);
        llm_reply_done(&reply);
        llm_client_free(c);
    }
}

static void pieces_of_the_provider_before_are_void(void **state)
{
    char settings[1024];
    struct world_answer a;
    struct llm_client *c;
    struct watcher w;

    (void)state;
    (void)snprintf(settings, sizeof settings,
                   "{\"providers\":[{\"id\":\"a\",\"api\":\"openai\",\"model\":\"m\",\"attempts\":"
                   "1,\"baseUrl\":\"http://127.0.0.1:%d/breaks~other/v1\"},{\"id\":\"b\",\"api\":"
                   "\"anthropic\",\"model\":\"n\",\"baseUrl\":\"http://127.0.0.1:%d/ok~other/v1\"}]"
                   "}",
                   world_port(), world_port());
    c = world_client_of(settings);
    watch(c, NULL, false, &w, &a);
    assert_int_equal(a.code, BT_OK);
    assert_int_equal(w.reset, 1);
    assert_string_equal(w.text, "hello there");
    world_done(c, &a);
}

static void answer_as_it_is_is_not_repaired(void **state)
{
    static const struct {
        const char *script;
        const char *json; /* NULL = there is none */
    } rows[] = {
        {"ok", "{\"answer\":42}"},
        {"wrong", "{\"answer\":\"forty-two\"}"},
        {"prose", "{\"answer\":42}"},
        {"array", "[1,2]"},
        {"two", NULL},
        {"tool", "{\"answer\":42}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct llm_client *c = world_client("openai", rows[i].script, "");
        struct world_answer a;
        struct watcher w;
        char *json;
        watch(c, ANSWER, true, &w, &a);
        assert_int_equal(a.code, BT_OK);
        assert_int_equal(a.reply.calls, 1);
        assert_int_equal(a.reply.repairs, 0);
        assert_true(a.reply.text.len > 0);
        json = a.reply.json == NULL ? NULL : cJSON_PrintUnformatted(a.reply.json);
        if (rows[i].json == NULL) {
            assert_null(json);
        } else {
            assert_non_null(json);
            assert_string_equal(json, rows[i].json);
        }
        cJSON_free(json);
        world_done(c, &a);
    }
}

/* A server that only enforces closed objects gets no schema with a free object, and keeps its
 * output mode. */
static void free_object_costs_no_output_mode(void **state)
{
    static const char open[] = "{\"type\":\"object\",\"required\":[\"answer\"],\"properties\":{"
                               "\"answer\":{\"type\":\"integer\"},\"more\":{\"type\":\"object\"}}}";
    static const struct {
        const char *api;
        enum llm_output_mode output_mode;
    } rows[] = {{"openai", LLM_OUTPUT_MODE_SCHEMA},
                {"anthropic", LLM_OUTPUT_MODE_TEXT},
                {"ollama", LLM_OUTPUT_MODE_SCHEMA}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct llm_client *c = world_client(rows[i].api, "ok", "");
        struct world_answer a;
        struct watcher w;
        watch(c, open, false, &w, &a);
        assert_int_equal(a.code, BT_OK);
        assert_int_equal(a.reply.output_mode, rows[i].output_mode);
        assert_int_equal(llm_client_output_mode(c, 0), LLM_OUTPUT_MODE_SCHEMA);
        world_done(c, &a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_joined_are_the_answer),
        cmocka_unit_test(pieces_come_before_the_answer_is_whole),
        cmocka_unit_test(pieces_of_the_provider_before_are_void),
        cmocka_unit_test(answer_as_it_is_is_not_repaired),
        cmocka_unit_test(free_object_costs_no_output_mode),
    };

    return cmocka_run_group_tests(tests, world_start, world_stop);
}

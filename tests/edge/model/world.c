#include "tests/edge/model/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/wire/doc.h"

extern char **environ;

static pid_t mock;
static int mock_stdin = -1;
static int port;

static char dir[] = "/tmp/baton-llm-XXXXXX";

static int start(char **argv)
{
    posix_spawn_file_actions_t actions;
    int in[2];
    int out[2];
    char line[32] = "";
    size_t n = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, in[0], 0), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, out[1], 1), 0);
    assert_int_equal(posix_spawnp(&mock, "python3", &actions, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    mock_stdin = in[1];
    while (n < sizeof line - 1 && strchr(line, '\n') == NULL) {
        ssize_t got = read(out[0], line + n, sizeof line - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
    }
    (void)close(out[0]);
    port = (int)strtol(line, NULL, 10);
    assert_true(port > 0);
    return 0;
}

int world_start(void **state)
{
    char *argv[] = {(char[]){"python3"}, (char[]){"-B"}, (char[]){MOCK_LLM}, NULL};

    (void)state;
    return mkdtemp(dir) == NULL ? -1 : start(argv);
}

int world_start_tls(void **state)
{
    char *argv[] = {
        (char[]){"python3"}, (char[]){"-B"}, (char[]){MOCK_LLM}, (char[]){"--tls"}, dir, NULL};

    (void)state;
    return mkdtemp(dir) == NULL ? -1 : start(argv);
}

const char *world_dir(void)
{
    return dir;
}

/* Calls visit with each file's path. */
static void each_file(const char *ending, void (*visit)(const char *path, void *self), void *self)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[600];

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        size_t n = strlen(e->d_name);
        size_t k = strlen(ending);
        if (e->d_name[0] != '.' && n >= k && strcmp(e->d_name + n - k, ending) == 0) {
            (void)snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            visit(path, self);
        }
    }
    (void)closedir(d);
}

struct searched {
    size_t bytes;
    bool canary;
};

static void search(const char *path, void *self)
{
    struct searched *s = self;
    FILE *f = fopen(path, "re");
    static char text[1024 * 1024];
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, sizeof text, f);
    assert_true(n < sizeof text);
    s->bytes += n;
    s->canary = s->canary || memmem(text, n, "canary", 6) != NULL;
    (void)fclose(f);
}

size_t world_files(const char *ending, bool *ret_canary)
{
    struct searched s = {0};

    each_file(ending, search, &s);
    *ret_canary = s.canary;
    return s.bytes;
}

static void drop(const char *path, void *self)
{
    (void)self;
    (void)unlink(path);
}

int world_stop(void **state)
{
    (void)state;
    (void)close(mock_stdin);
    each_file("", drop, NULL);
    (void)rmdir(dir);
    return waitpid(mock, NULL, 0) == mock ? 0 : -1;
}

int world_port(void)
{
    return port;
}

struct llm_client *world_client_of(const char *settings)
{
    struct llm_config *config = NULL;
    struct llm_client *client = NULL;
    cJSON *tree = NULL;
    struct bt_error err = {0};

    if (json_parse(str_from(settings), &tree, &err) != BT_OK ||
        llm_config_read(tree, &config, &err) != BT_OK ||
        llm_client_new(config, &client, &err) != BT_OK) {
        fail_msg("%s: %s", settings, err.msg);
    }
    return client;
}

struct llm_client *world_client(const char *api, const char *script, const char *members)
{
    char settings[2048];
    static unsigned n;

    assert_int_equal(setenv("MOCK_KEY", CANARY, 1), 0);
    (void)snprintf(settings, sizeof settings,
                   "{\"providers\":[{\"id\":\"mock\",\"api\":\"%s\",\"model\":\"m\","
                   "\"baseUrl\":\"http://127.0.0.1:%d/%s~%u/v1\",\"keyEnv\":\"MOCK_KEY\","
                   "\"backoffMs\":1,\"price\":{\"input\":2,\"output\":10,\"cached\":1}%s}]}",
                   api, port, script, n++, members);
    return world_client_of(settings);
}

void world_ask(struct llm_client *c, bool with_schema, unsigned deadline_ms,
               struct world_answer *ret)
{
    struct llm_turn turn = {.text = "question"};
    cJSON *schema = NULL;
    struct llm_request request = {
        .system = "You answer.",
        .turns = &turn,
        .n_turns = 1,
        .max_tokens = 100,
        .temperature = 0,
        .deadline = clock_mono_ms() + deadline_ms,
    };

    if (with_schema) {
        assert_int_equal(
            json_parse(STR_LIT("{\"type\":\"object\",\"required\":[\"answer\"],"
                               "\"additionalProperties\":false,\"properties\":{\"answer\":{"
                               "\"type\":\"integer\"}}}"),
                       &schema, NULL),
            BT_OK);
        request.schema = schema;
        request.schema_name = "answer";
    }
    memset(&ret->err, 0, sizeof ret->err);
    ret->code = llm_complete(c, &request, &ret->reply, &ret->err);
    cJSON_Delete(schema);
    assert_null(strstr(ret->err.msg, "canary"));
    assert_null(strstr(ret->reply.request_id, "canary"));
    if (ret->reply.text.len > 0) {
        assert_null(strstr(buf_cstr(&ret->reply.text), "canary"));
    }
}

void world_done(struct llm_client *c, struct world_answer *a)
{
    llm_reply_done(&a->reply);
    llm_client_free(c);
}

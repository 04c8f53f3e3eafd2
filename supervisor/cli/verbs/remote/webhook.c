/* webhook put, test, resend, rm: files of STATE/webhooks, which baton-gateway reads.
 * NAME.json is written here; NAME.at, how far it is, by the gateway. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/auth/mac.h"
#include "protocol/base/clock.h"
#include "protocol/client/state.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/remote/webhook.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

enum { NAME_MAX_BYTES = 64, TOPICS_MAX = 16, SECRET_BYTES = 32, TEST_MS = 20000, POLL_MS = 50 };

bool webhook_name_ok(const char *name)
{
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");

    return n > 0 && n <= NAME_MAX_BYTES && name[n] == 0;
}

static void file_of(const struct order *o, const char *name, const char *ending, char *ret)
{
    (void)snprintf(ret, PATH_MAX, "%s/webhooks/%s%s", o->state, name, ending);
}

cJSON *webhook_file(const struct order *o, const char *name, const char *ending)
{
    char path[PATH_MAX];
    char text[32 * 1024];
    cJSON *tree = NULL;
    struct stat st;
    ssize_t n = -1;
    int fd;

    file_of(o, name, ending, path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0) {
        n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, text, sizeof text) : -1;
        (void)close(fd);
    }
    if (n <= 0 || json_parse((struct str){text, (size_t)n}, &tree, NULL) != BT_OK ||
        !cJSON_IsObject(tree)) {
        cJSON_Delete(tree);
        return NULL;
    }
    return tree;
}

/* Replaces the file as a whole, and flushes it. */
static enum cli_exit write_file(const char *path, const char *text)
{
    const size_t n = strlen(text);
    char next[PATH_MAX + 16];
    struct bt_error err;
    int fd;
    bool ok;

    (void)snprintf(next, sizeof next, "%s.new", path);
    fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    ok = fd >= 0 && write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
    if (fd >= 0) {
        ok = close(fd) == 0 && ok;
    }
    if (ok && rename(next, path) == 0) {
        return CLI_OK;
    }
    (void)err_errno(&err, errno, "cannot write %s", path);
    (void)unlink(next);
    return cli_fail(&err);
}

static enum cli_exit store(const struct order *o, const cJSON *spec)
{
    struct bt_error err;
    char *text = cjson_print(spec, true, &err);
    enum cli_exit code = text == NULL ? cli_fail(&err) : write_file(o->path, text);

    free(text);
    return code;
}

static enum cli_exit no_such_webhook(const struct order *o)
{
    cli_error_hint("see: baton webhook list", "there is no webhook '%s'", o->name);
    return CLI_NOT_FOUND;
}

static enum cli_exit load(const struct order *o, cJSON **ret)
{
    *ret = webhook_file(o, o->name, ".json");
    return *ret != NULL ? CLI_OK : no_such_webhook(o);
}

static void set(cJSON *spec, const char *name, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(spec, name);
    (void)cJSON_AddItemToObject(spec, name, value);
}

static bool has(const cJSON *spec, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(spec, name) != NULL;
}

/* A number that no order of before had. */
static double new_order(void)
{
    return (double)clock_wall_ms();
}

/* ---- put ---- */

/* The event after the last one of the daemon, or --from. */
static enum cli_exit first_event(const struct order *o, double *ret)
{
    const char *from = cli_value(o->cli, "from");
    uint64_t seq = 0;
    cJSON *fields;
    cJSON *answer = NULL;
    enum cli_exit code;

    if (from != NULL) {
        *ret = cli_number(from, "--from", &seq) ? (double)seq : -1;
        return *ret < 0 ? CLI_USAGE : CLI_OK;
    }
    fields = cJSON_CreateObject();
    (void)cJSON_AddNumberToObject(fields, "fromSeq", 9007199254740991.0);
    (void)cJSON_AddNumberToObject(fields, "limit", 1);
    code = cli_call(o->cli, "events.read", fields, &answer);
    *ret = json_number(answer, "lastSeq") + 1;
    cJSON_Delete(answer);
    if (code == CLI_UNREACHABLE) {
        cli_note("Without a daemon, name the first event: --from 1\n");
    }
    return code;
}

static bool read_topics(const struct order *o, cJSON *spec)
{
    cJSON *topics = cJSON_CreateArray();
    const char *topic;
    bool ok = true;

    for (int i = 0; (topic = cli_nth_value(o->cli, "topic", i)) != NULL; i++) {
        ok = ok && i < TOPICS_MAX && topic[0] != 0 && strlen(topic) <= NAME_MAX_BYTES &&
             cli_is_text(topic, "--topic");
        (void)cJSON_AddItemToArray(topics, cJSON_CreateString(topic));
    }
    if (!ok) {
        cli_error("--topic: expected at most %d globs of event types, as 'plan_*', each of 1 to %d "
                  "bytes",
                  TOPICS_MAX, NAME_MAX_BYTES);
    }
    if (ok && (cJSON_GetArraySize(topics) > 0 || !has(spec, "topics"))) {
        set(spec, "topics", topics);
    } else {
        cJSON_Delete(topics);
    }
    return ok;
}

/* 32 random bytes that nobody is shown. */
static enum cli_exit make_secret(const struct order *o, cJSON *spec)
{
    uint8_t bytes[SECRET_BYTES];
    char path[PATH_MAX];
    struct buf text;
    enum cli_exit code = CLI_INTERNAL;

    file_of(o, o->name, ".secret", path);
    buf_init(&text, 256);
    if (auth_random(bytes, sizeof bytes)) {
        buf_add_cstr(&text, "whsec_");
        json_put_base64(&text, (struct str){(const char *)bytes, sizeof bytes});
        buf_add_byte(&text, '\n');
        code = write_file(path, buf_cstr(&text));
    } else {
        cli_error("the system has no random bytes");
    }
    explicit_bzero(bytes, sizeof bytes);
    if (text.at != NULL) {
        explicit_bzero(text.at, text.cap);
    }
    buf_done(&text);
    set(spec, "secretFile", cJSON_CreateString(path));
    return code;
}

static enum cli_exit read_secret(const struct order *o, cJSON *spec)
{
    const char *file = cli_value(o->cli, "secret-file");
    const char *env = cli_value(o->cli, "secret-env");
    char path[PATH_MAX];
    struct stat st;

    if (file != NULL && env != NULL) {
        cli_error("expected --secret-file or --secret-env, not both");
        return CLI_USAGE;
    }
    if (file != NULL) {
        if (realpath(file, path) == NULL || stat(path, &st) != 0) {
            cli_error("cannot read %s: %s", file, strerror(errno));
            return CLI_USAGE;
        }
        if ((st.st_mode & 077) != 0) {
            cli_error("%s: others may read it; chmod 600 it", file);
            return CLI_USAGE;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(spec, "secretEnv");
        set(spec, "secretFile", cJSON_CreateString(path));
    } else if (env != NULL) {
        if (env[0] == 0 || strlen(env) > 127 || !cli_is_text(env, "--secret-env")) {
            cli_error("--secret-env: expected the name of a variable, 1 to 127 bytes");
            return CLI_USAGE;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(spec, "secretFile");
        set(spec, "secretEnv", cJSON_CreateString(env));
    } else if (!has(spec, "secretFile") && !has(spec, "secretEnv")) {
        return make_secret(o, spec);
    }
    return CLI_OK;
}

/* A user and password in a URL would be shown by list. */
static bool url_ok(const char *url)
{
    const char *host = strstr(url, "://");
    const bool http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    const size_t n = http ? strcspn(host + 3, "/?#") : 0;

    if (!http || n == 0 || strlen(url) > 2048 || !cli_is_text(url, "--url") ||
        strpbrk(url, " \t\r\n") != NULL || memchr(host + 3, '@', n) != NULL) {
        cli_error("--url: expected an address as https://ops.example.com/baton, at most 2048 bytes "
                  "and without a password, got '%.100s'",
                  url);
        return false;
    }
    return true;
}

static void show(const struct order *o, const cJSON *spec)
{
    if (o->cli->json) {
        cli_print_json(spec);
        return;
    }
    (void)printf("%s: events go to %s\n", o->name, json_text(spec, "url", ""));
    if (has(spec, "secretFile")) {
        cli_note("Its receiver verifies them with the secret in %s.\n",
                 json_text(spec, "secretFile", ""));
    }
}

/* Members that the gateway does not set. */
static enum cli_exit fill(const struct order *o, cJSON *spec)
{
    const char *url = cli_value(o->cli, "url");
    const char *body = cli_value(o->cli, "body");
    const bool is_new = !has(spec, "made");
    double from = 0;
    enum cli_exit code = CLI_OK;

    if (url == NULL && is_new) {
        cli_error("webhook put: --url is missing: where the events go");
        return CLI_USAGE;
    }
    if ((url != NULL && !url_ok(url)) || !read_topics(o, spec)) {
        return CLI_USAGE;
    }
    if (body != NULL && strcmp(body, "cloudevents") != 0 && strcmp(body, "chat") != 0 &&
        strcmp(body, "mail") != 0) {
        static const char *const bodies[] = {"cloudevents", "chat", "mail", NULL};
        return cli_unknown_word("--body", body, bodies);
    }
    if (is_new || cli_value(o->cli, "from") != NULL) {
        code = first_event(o, &from);
        if (code != CLI_OK) {
            return code;
        }
        set(spec, "fromSeq", cJSON_CreateNumber(from));
        set(spec, "made", cJSON_CreateNumber(new_order()));
    }
    if (url != NULL) {
        set(spec, "url", cJSON_CreateString(url));
    }
    if (body != NULL || is_new) {
        set(spec, "body", cJSON_CreateString(body != NULL ? body : "cloudevents"));
    }
    return read_secret(o, spec);
}

static enum cli_exit put(struct order *o)
{
    char dir[PATH_MAX];
    struct bt_error err;
    cJSON *spec = webhook_file(o, o->name, ".json");
    enum cli_exit code;

    spec = spec == NULL ? cJSON_CreateObject() : spec;
    (void)snprintf(dir, sizeof dir, "%s/webhooks", o->state);
    code = state_dir_make(dir, &err) == BT_OK ? CLI_OK : cli_fail(&err);
    code = code == CLI_OK ? fill(o, spec) : code;
    code = code == CLI_OK ? store(o, spec) : code;
    if (code == CLI_OK) {
        show(o, spec);
    }
    cJSON_Delete(spec);
    return code;
}

/* ---- test, resend, rm ---- */

static enum cli_exit print_test(const struct order *o, const cJSON *at)
{
    const int status = (int)json_number(at, "testStatus");
    cJSON *told = cJSON_CreateObject();

    if (status == 0) {
        cli_error("%s: no answer came: %s", o->name, json_text(at, "testWhy", ""));
    } else if (status / 100 != 2) {
        cli_error("%s: the receiver answered with status %d", o->name, status);
    } else if (o->cli->json) {
        (void)cJSON_AddNumberToObject(told, "status", status);
        cli_print_json(told);
    } else {
        (void)printf("%s: the receiver took it (status %d)\n", o->name, status);
    }
    cJSON_Delete(told);
    return status / 100 == 2 ? CLI_OK : CLI_FAILED;
}

static enum cli_exit test(struct order *o)
{
    const msec until = clock_mono_ms() + TEST_MS;
    const double number = new_order();
    cJSON *at = NULL;
    cJSON *spec;
    enum cli_exit code = load(o, &spec);

    if (code == CLI_OK) {
        set(spec, "test", cJSON_CreateNumber(number));
        code = store(o, spec);
    }
    cJSON_Delete(spec);
    while (code == CLI_OK) {
        at = webhook_file(o, o->name, ".at");
        if (at != NULL && json_number(at, "tested") >= number) {
            code = print_test(o, at);
            break;
        }
        cJSON_Delete(at);
        at = NULL;
        if (clock_mono_ms() > until) {
            cli_error_hint("does it run? `gateway: {}` in baton.yaml starts it",
                           "baton-gateway has not sent the test within %d s", TEST_MS / 1000);
            code = CLI_TIMEOUT;
        } else {
            (void)poll(NULL, 0, POLL_MS);
        }
    }
    cJSON_Delete(at);
    return code;
}

static enum cli_exit resend(struct order *o)
{
    const char *from = cli_value(o->cli, "from");
    uint64_t seq = 0;
    cJSON *order;
    cJSON *spec;
    enum cli_exit code;

    if (from != NULL && !cli_number(from, "--from", &seq)) {
        return CLI_USAGE;
    }
    code = load(o, &spec);
    if (code == CLI_OK) {
        order = cJSON_CreateObject();
        (void)cJSON_AddNumberToObject(order, "order", new_order());
        (void)cJSON_AddNumberToObject(order, "fromSeq", (double)seq);
        set(spec, "resend", order);
        code = store(o, spec);
    }
    if (code == CLI_OK) {
        show(o, spec);
    }
    cJSON_Delete(spec);
    return code;
}

/* Its secret, too, when this program made it. What says where
 * events go is removed first: without it the rest has no effect. What is left of one whose removal
 * failed can be removed again. */
static enum cli_exit rm(struct order *o)
{
    static const char *const endings[] = {".json", ".secret", ".at"};
    char path[PATH_MAX];
    enum cli_exit code = CLI_OK;
    int n = 0;

    for (int i = 0; i < 3; i++) {
        file_of(o, o->name, endings[i], path);
        if (unlink(path) == 0) {
            n++;
        } else if (errno != ENOENT) {
            cli_error("cannot remove %s: %s", path, strerror(errno));
            code = CLI_INTERNAL;
            if (i == 0) {
                break; /* it is still in force, and needs the rest */
            }
        }
    }
    return code == CLI_OK && n == 0 ? no_such_webhook(o) : code;
}

enum cli_exit verb_webhook(struct cli *cli)
{
    static const struct {
        const char *name;
        enum cli_exit (*run)(struct order *o);
    } orders[] = {
        {"put", put}, {"list", webhook_list}, {"test", test}, {"resend", resend}, {"rm", rm}};
    static const char *const names[] = {"put", "list", "test", "resend", "rm", NULL};
    struct order o = {.cli = cli, .state = cli_state_dir(cli)};

    if (o.state == NULL) {
        return CLI_INTERNAL;
    }
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (strcmp(cli->argv[0], orders[i].name) != 0) {
            continue;
        }
        if ((orders[i].run == webhook_list) != (cli->argc == 1)) {
            cli_error(orders[i].run == webhook_list ? "usage: baton webhook list"
                                                    : "usage: baton webhook %s WEBHOOK",
                      orders[i].name);
            return CLI_USAGE;
        }
        o.name = cli->argc > 1 ? cli->argv[1] : NULL;
        if (o.name != NULL && !webhook_name_ok(o.name)) {
            cli_error("webhook %s: expected a name of 1 to %d characters a-z 0-9 _ -, got '%.100s'",
                      orders[i].name, NAME_MAX_BYTES, o.name);
            return CLI_USAGE;
        }
        if (o.name != NULL) {
            file_of(&o, o.name, ".json", o.path);
        }
        return orders[i].run(&o);
    }
    return cli_unknown_word("webhook", cli->argv[0], names);
}

#include "agents/sdk/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/shard.h"
#include "protocol/client/seeds.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { SETTINGS_BYTES = 1024 * 1024 };

static const char help[] =
    "Options:\n"
    "  --state DIR         the supervisor's state directory (BATON_STATE; else "
    "$XDG_STATE_HOME/baton)\n"
    "  --credential FILE   proves who the agent is (BATON_CREDENTIAL; else what the supervisor "
    "gave\n"
    "                      the process that it started, else the token)\n"
    "  --settings FILE     settings as a JSON object (BATON_SETTINGS: the JSON itself)\n"
    "  --agent-id ID       register under this id (BATON_AGENT_ID)\n"
    "  --instance-id UUID  this process among those of the id (BATON_INSTANCE_ID; else a new one)\n"
    "  --capacity N        steps at a time, 1 to 64 (BATON_CAPACITY)\n"
    "  --shards N          serve a fleet of so many shards, 1 to 64, with one process each "
    "(BATON_SHARDS)\n"
    "  --listen URL        where the supervisor reaches the agent (tcp://127.0.0.1:0 = any free "
    "port)\n"
    "  --dial-in           dial the supervisor's lanes instead of listening\n"
    "  --connect URL       a supervisor on another host, tls+tcp://HOST:PORT (BATON_CONNECT), of a "
    "fleet\n"
    "                      several, separated by commas; with --credential FILE --ca FILE --cert "
    "FILE (BATON_CREDENTIAL, BATON_CA, "
    "BATON_CERT)\n"
    "  --log-level LEVEL   err, warn, info or debug\n"
    "  --once SKILL        run one step from stdin, {\"task\", \"parameters\", \"context\"}, "
    "without a supervisor,\n"
    "                      and print its outcome as JSON\n"
    "  --card              print the card as JSON\n"
    "  --help  --version\n"
    "Exit codes: 0 drained after SIGTERM; 1 a second SIGTERM while steps ran, or --once failed;\n"
    "            2 wrong arguments, settings or card, or the supervisor refused the agent.\n";

const char *options_help(void)
{
    return help;
}

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == 0 ? NULL : value;
}

static enum bt_code read_capacity(const char *text, const char *where, uint32_t *ret,
                                  struct bt_error *err)
{
    char *end = NULL;
    unsigned long n;

    errno = 0;
    n = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != 0 || text[0] == '-' || n < 1 || n > LIMIT_CAPACITY) {
        return err_set(err, BT_INVALID, "%s '%.40s': expected a number from 1 to %d", where, text,
                       LIMIT_CAPACITY);
    }
    *ret = (uint32_t)n;
    return BT_OK;
}

static enum bt_code read_shards(const char *text, const char *where, uint32_t *ret,
                                struct bt_error *err)
{
    char *end = NULL;
    const unsigned long n = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != 0 || n < 1 || n > SHARDS_MAX) {
        return err_set(err, BT_INVALID, "%s '%.40s': expected a number from 1 to %d", where, text,
                       SHARDS_MAX);
    }
    *ret = (uint32_t)n;
    return BT_OK;
}

static enum bt_code read_instance(const char *text, const char *where, struct uuid *ret,
                                  struct bt_error *err)
{
    if (!uuid_parse(str_from(text), ret) || uuid_is_nil(*ret)) {
        return err_set(err, BT_INVALID, "%s '%.80s': expected a UUID", where, text);
    }
    return BT_OK;
}

static enum bt_code read_settings(struct options *o, struct str json, const char *where,
                                  struct bt_error *err)
{
    enum bt_code code;

    buf_clear(&o->settings_doc);
    buf_clear(&o->settings_json);
    code = json_to_doc(json, NULL, &o->settings_doc, err);
    if (code == BT_OK && doc_head(doc_from_buf(&o->settings_doc)).kind != DOC_MAP) {
        code = err_set(err, BT_INVALID, "expected a JSON object");
    }
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&o->settings_doc), false, &o->settings_json, err);
    }
    return code == BT_OK ? BT_OK : err_wrap(err, "%s", where);
}

static enum bt_code read_settings_file(struct options *o, const char *path, struct bt_error *err)
{
    FILE *f = fopen(path, "re");
    char chunk[4096];
    struct buf text;
    size_t n;
    enum bt_code code = BT_OK;

    if (f == NULL) {
        return err_errno(err, errno, "--settings %s", path);
    }
    buf_init(&text, SETTINGS_BYTES);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) {
        buf_add(&text, chunk, n);
    }
    if (ferror(f)) {
        code = err_errno(err, errno, "--settings %s", path);
    } else if (buf_check(&text, err) != BT_OK) {
        code = err_wrap(err, "--settings %s", path);
    } else {
        code = read_settings(o, buf_str(&text), path, err);
    }
    buf_done(&text);
    (void)fclose(f);
    return code;
}

/* What the supervisor that started this process gave it alone. */
static enum bt_code read_process(struct options *o, struct bt_error *err)
{
    const char *id = handover_get(&o->handover, "credential");
    const char *key = handover_get(&o->handover, "key");

    if (id == NULL || key == NULL) {
        return BT_OK;
    }
    if (snprintf(o->process_id, sizeof o->process_id, "%s", id) >= (int)sizeof o->process_id ||
        !auth_unhex(str_from(key), o->process_key, sizeof o->process_key)) {
        return err_set(err, BT_INVALID,
                       "BATON_HANDOVER: the credential of this process is damaged");
    }
    return BT_OK;
}

static enum bt_code read_environment(struct options *o, struct bt_error *err)
{
    enum bt_code code = handover_read(&o->handover, err);

    code = code == BT_OK ? read_process(o, err) : code;
    o->agent_id = env("BATON_AGENT_ID");
    o->credential = env("BATON_CREDENTIAL");
    o->spawned = env("BATON_SPAWNED") != NULL;
    o->connect = env("BATON_CONNECT");
    o->ca = env("BATON_CA");
    o->cert = env("BATON_CERT");
    if (code == BT_OK && env("BATON_CAPACITY") != NULL) {
        code = read_capacity(env("BATON_CAPACITY"), "BATON_CAPACITY", &o->capacity, err);
    }
    if (code == BT_OK && env("BATON_SHARDS") != NULL) {
        code = read_shards(env("BATON_SHARDS"), "BATON_SHARDS", &o->shards, err);
    }
    if (code == BT_OK && env("BATON_INSTANCE_ID") != NULL) {
        code = read_instance(env("BATON_INSTANCE_ID"), "BATON_INSTANCE_ID", &o->instance_id, err);
    }
    if (code == BT_OK && env("BATON_SETTINGS") != NULL) {
        code = read_settings(o, str_from(env("BATON_SETTINGS")), "BATON_SETTINGS", err);
    }
    return code;
}

/* Whether the argument is about a supervisor on another host. */
static bool read_remote(struct options *o, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **to;
    } all[] = {{"--connect", &o->connect}, {"--ca", &o->ca}, {"--cert", &o->cert}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(name, all[i].name) == 0) {
            *all[i].to = value;
            return true;
        }
    }
    return false;
}

static enum bt_code check_remote(struct options *o, struct bt_error *err)
{
    if (o->connect == NULL || o->mode != OPTIONS_RUN) {
        return BT_OK;
    }
    if (seeds_check(o->connect, &o->seeds, err) != BT_OK) {
        return err_wrap(err, "--connect");
    }
    if (o->credential == NULL || o->ca == NULL || o->cert == NULL) {
        return err_set(err, BT_INVALID,
                       "--connect needs --credential FILE, --ca FILE and --cert "
                       "FILE");
    }
    o->dial_in = true;
    return BT_OK;
}

/* The arguments that take a value. */
static enum bt_code read_value(struct options *o, const char *name, const char *value,
                               struct bt_error *err)
{
    if (read_remote(o, name, value)) {
        return BT_OK;
    }
    if (strcmp(name, "--state") == 0) {
        o->state = value;
        if (setenv("BATON_STATE", value, 1) != 0) { /* its programs and guard.h read it there */
            return err_set(err, BT_NOMEM, "out of memory for --state");
        }
    } else if (strcmp(name, "--credential") == 0) {
        o->credential = value;
    } else if (strcmp(name, "--agent-id") == 0) {
        o->agent_id = value;
    } else if (strcmp(name, "--listen") == 0) {
        o->listen = value;
    } else if (strcmp(name, "--once") == 0) {
        o->mode = OPTIONS_ONCE;
        o->once_skill = value;
    } else if (strcmp(name, "--settings") == 0) {
        return read_settings_file(o, value, err);
    } else if (strcmp(name, "--instance-id") == 0) {
        return read_instance(value, name, &o->instance_id, err);
    } else if (strcmp(name, "--capacity") == 0) {
        return read_capacity(value, name, &o->capacity, err);
    } else if (strcmp(name, "--shards") == 0) {
        return read_shards(value, name, &o->shards, err);
    } else if (strcmp(name, "--log-level") == 0) {
        o->log_level = log_level_from_name(value);
        if (o->log_level == LOG_LEVEL_COUNT) {
            return err_set(err, BT_INVALID,
                           "--log-level '%.40s': expected err, warn, info or debug", value);
        }
    } else {
        return err_set(err, BT_INVALID, "unknown argument '%.80s'; see --help", name);
    }
    return BT_OK;
}

static bool read_flag(struct options *o, const char *name)
{
    static const struct {
        const char *name;
        enum options_mode mode;
    } modes[] = {{"--help", OPTIONS_HELP},
                 {"-h", OPTIONS_HELP},
                 {"--version", OPTIONS_VERSION},
                 {"--card", OPTIONS_CARD}};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(name, modes[i].name) == 0) {
            o->mode = modes[i].mode;
            return true;
        }
    }
    if (strcmp(name, "--dial-in") == 0) {
        o->dial_in = true;
        return true;
    }
    return false;
}

enum bt_code options_read(struct options *o, int argc, char **argv, struct bt_error *err)
{
    enum bt_code code;

    *o = (struct options){.listen = "tcp://127.0.0.1:0", .log_level = LOG_INFO};
    buf_init(&o->settings_doc, SETTINGS_BYTES);
    buf_init(&o->settings_json, SETTINGS_BYTES * 6);
    o->instance_id = uuid_new();
    code = read_settings(o, STR_LIT("{}"), "settings", err);
    if (code == BT_OK) {
        code = read_environment(o, err);
    }
    for (int i = 1; i < argc && code == BT_OK; i++) {
        if (read_flag(o, argv[i])) {
            continue;
        }
        if (i + 1 == argc || argv[i][0] != '-') {
            code = err_set(err, BT_INVALID, "argument '%.80s': %s; see --help", argv[i],
                           argv[i][0] == '-' ? "unknown, or its value is missing" : "not expected");
        } else {
            code = read_value(o, argv[i], argv[i + 1], err);
            i++;
        }
    }
    return code == BT_OK ? check_remote(o, err) : code;
}

void options_done(struct options *o)
{
    explicit_bzero(o->process_key, sizeof o->process_key);
    handover_done(&o->handover);
    buf_done(&o->settings_doc);
    buf_done(&o->settings_json);
}

/* agents add: the agent is started once for its card, then written into the configuration. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/agents/kinds.h"
#include "supervisor/config/config.h"
#include "supervisor/config/yaml.h"
#include "supervisor/config/yaml_append.h"
#include "supervisor/config/yaml_write.h"

enum { PATH_BYTES = 4096, CARD_BYTES = 8 * 1024 * 1024, LINE_SHOWN = 200 };

/* Where the entry goes. */
struct place {
    char file[PATH_BYTES];     /* the configuration; links are followed */
    char dir[PATH_BYTES];      /* its folder */
    char document[PATH_BYTES]; /* the OpenAPI document as JSON, beside it; "" = none */
    char *text;                /* of the file; NULL = there is none yet */
    size_t len;
    mode_t mode;
};

/* ---- the card ---- */

static void become_agent(const char *program, const char *id, const char *settings, int out)
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)signal(SIGPIPE, SIG_DFL);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        setenv("BATON_SETTINGS", settings, 1) == 0) {
        (void)execl(program, program, "--agent-id", id, "--log-level", "warn", "--card",
                    (char *)NULL);
    }
    _exit(127);
}

static void read_all(int fd, struct buf *out)
{
    char chunk[16384];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)) {
        buf_add(out, chunk, n > 0 ? (size_t)n : 0);
    }
}

/* The card that the agent would register; it writes to stderr why it has none. NULL = the error is
 * printed. */
static cJSON *ask_card(const struct new_agent *agent, const char *settings)
{
    char program[PATH_BYTES];
    struct buf text;
    cJSON *card = NULL;
    int status = -1;
    int fds[2];
    pid_t pid;

    if (!kinds_find_program(agent->program, program, sizeof program)) {
        return NULL;
    }
    if (pipe2(fds, O_CLOEXEC) != 0) {
        cli_error("pipe: %s", strerror(errno));
        return NULL;
    }
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        become_agent(program, agent->id, settings, fds[1]);
    }
    (void)close(fds[1]);
    buf_init(&text, CARD_BYTES);
    read_all(fds[0], &text);
    (void)close(fds[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && text.bad == BT_OK) {
        card = json_tree(buf_cstr(&text));
    }
    buf_done(&text);
    if (card == NULL) {
        cli_error("%s did not start with these settings, so nothing was written: %s",
                  agent->program, settings);
    }
    return card;
}

/* ---- the file ---- */

/* A file that is not there yet is an empty one. */
static bool find_place(const struct cli *cli, struct place *ret)
{
    const char *asked = cli_value(cli, "config");
    char path[PATH_BYTES];
    struct stat st;

    if (asked == NULL && !config_user_file(cli_value(cli, "state"), path, sizeof path)) {
        cli_error("where the configuration is cannot be told without HOME; give --config FILE");
        return false;
    }
    if (asked != NULL && snprintf(path, sizeof path, "%s", asked) >= (int)sizeof path) {
        cli_error("--config: expected a path of fewer than %d bytes", PATH_BYTES);
        return false;
    }
    ret->mode = 0600;
    if (stat(path, &st) == 0) {
        char *real = realpath(path, NULL);
        (void)snprintf(ret->file, sizeof ret->file, "%s", real != NULL ? real : path);
        free(real);
        ret->mode = st.st_mode & 0777;
        ret->text = cli_read_file(ret->file, LIMIT_CONTROL_BYTES, &ret->len);
    } else {
        (void)snprintf(ret->file, sizeof ret->file, "%s", path);
        ret->text = strdup("");
    }
    (void)snprintf(path, sizeof path, "%s", ret->file);
    (void)snprintf(ret->dir, sizeof ret->dir, "%s", dirname(path));
    return ret->text != NULL;
}

/* The same id twice is no configuration; the sentence has the line of the first. */
static bool is_free(const struct place *at, const char *id)
{
    struct yaml_marks *marks = NULL;
    struct bt_error err;
    cJSON *tree = NULL;
    const cJSON *list;
    bool ok = true;
    int i = 0;

    if (yaml_read((struct str){at->text, at->len}, at->file, &tree, &marks, &err) != BT_OK) {
        (void)cli_fail(&err);
        return false;
    }
    list = cJSON_GetObjectItemCaseSensitive(tree, "agents");
    for (const cJSON *a = list != NULL ? list->child : NULL; a != NULL && ok; a = a->next, i++) {
        char pointer[64];
        (void)snprintf(pointer, sizeof pointer, "/agents/%d/agentId", i);
        ok = strcmp(json_text(a, "agentId", ""), id) != 0;
        if (!ok) {
            cli_error("%s:%u: there is an agent %s already; give another AGENT_ID, or change that "
                      "entry",
                      at->file, yaml_place(marks, pointer).line, id);
        }
    }
    yaml_marks_free(marks);
    cJSON_Delete(tree);
    return ok;
}

/* A list of agents in this file would take the place of the machine's. */
static bool keeps_others(const struct cli *cli, const struct place *at)
{
    const struct config_request request = {.state_dir = cli_value(cli, "state"),
                                           .file = at->len > 0 ? at->file : NULL};
    const struct config_entry *entries;
    struct config *config = NULL;
    struct bt_error err;
    uint32_t n = 0;
    bool ok = true;

    if (config_load(&request, &config, NULL, &err) != BT_OK) {
        cli_error_hint("see: baton doctor --config FILE", "%s", err.msg);
        config_free(config);
        return false;
    }
    entries = config_entries(config, &n);
    for (uint32_t i = 0; i < n && ok; i++) {
        const size_t len = strlen(entries[i].key);
        ok = strncmp(entries[i].key, "agents.", 7) != 0 || len < sizeof ".agentId" ||
             strcmp(entries[i].key + len - (sizeof ".agentId" - 1), ".agentId") != 0 ||
             strncmp(entries[i].origin, at->file, strlen(at->file)) == 0;
        if (!ok) {
            cli_error("the agents stand in %s, and a list in %s would take their place; give "
                      "--config with that file, or copy its list first",
                      entries[i].origin, at->file);
        }
    }
    config_free(config);
    return ok;
}

/* ~/.config/baton need not be there yet. */
static bool make_dir(const char *dir)
{
    char path[PATH_BYTES];
    char *parent;

    (void)snprintf(path, sizeof path, "%s", dir);
    parent = dirname(path);
    if (access(dir, F_OK) == 0 ||
        ((access(parent, F_OK) == 0 || mkdir(parent, 0700) == 0) && mkdir(dir, 0700) == 0)) {
        return true;
    }
    cli_error("%s: %s; nothing was written", dir, strerror(errno));
    return false;
}

/* Writes a whole file of a name of its own, in ret. Prints the error and returns false. */
static bool write_in(const char *dir, mode_t mode, struct str content, char *ret)
{
    const char *text = content.ptr;
    size_t len = content.len;
    int fd;
    bool ok;

    (void)snprintf(ret, PATH_BYTES, "%.4000s/.baton-add.XXXXXX", dir);
    fd = mkostemp(ret, O_CLOEXEC);
    ok = fd >= 0 && fchmod(fd, mode) == 0;
    while (ok && len > 0) {
        const ssize_t n = write(fd, text, len);
        ok = n > 0 || (n < 0 && errno == EINTR);
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    ok = ok && fsync(fd) == 0;
    if (!ok) {
        cli_error("%s: %s; nothing was changed", ret, strerror(errno));
        if (fd >= 0) {
            (void)unlink(ret);
        }
    }
    return (fd < 0 || close(fd) == 0) && ok;
}

static bool is_valid(const struct cli *cli, const char *file)
{
    const struct config_request request = {.state_dir = cli_value(cli, "state"), .file = file};
    struct config *config = NULL;
    struct bt_error err;
    const bool ok = config_load(&request, &config, NULL, &err) == BT_OK;
    const char *what = strncmp(err.msg, file, strlen(file)) == 0 ? err.msg + strlen(file) : err.msg;

    if (!ok) {
        cli_error("the configuration with this agent would be wrong, so nothing was changed%s%s",
                  what == err.msg ? ": " : "", what);
    }
    config_free(config);
    return ok;
}

/* The new text in the place of the old one, whole or not at all. */
static bool replace(const struct cli *cli, const struct place *at, const struct buf *text)
{
    char temporary[PATH_BYTES];
    bool ok;

    if (!make_dir(at->dir) || !write_in(at->dir, at->mode, buf_str(text), temporary)) {
        return false;
    }
    ok = is_valid(cli, temporary);
    if (ok && rename(temporary, at->file) != 0) {
        cli_error("%s: %s; nothing was changed", at->file, strerror(errno));
        ok = false;
    }
    if (!ok) {
        (void)unlink(temporary);
    }
    return ok;
}

/* ---- the document ---- */

static void set_file(cJSON *settings, const char *path)
{
    cJSON *openapi = cJSON_GetObjectItemCaseSensitive(settings, "openapi");

    (void)cJSON_ReplaceItemInObjectCaseSensitive(openapi, "file", cJSON_CreateString(path));
}

/* The YAML document as JSON in a file of another name; "" = it is JSON already. */
static bool put_document(const struct cli *cli, struct new_agent *agent, struct place *at,
                         char *ret)
{
    const char *dir = cli_flag(cli, "dry-run") ? P_tmpdir : at->dir;
    struct bt_error err;
    char *json;
    bool ok;

    ret[0] = 0;
    if (agent->document == NULL) {
        return true;
    }
    (void)snprintf(at->document, sizeof at->document, "%.3900s/%s.openapi.json", at->dir,
                   agent->id);
    if (access(at->document, F_OK) == 0) {
        cli_error("%s is there already, and the document would go there as JSON; move it away, or "
                  "give another AGENT_ID",
                  at->document);
        return false;
    }
    json = cjson_print(agent->document, false, &err);
    ok = json != NULL ? make_dir(dir) && write_in(dir, at->mode, str_from(json), ret)
                      : cli_fail(&err) == CLI_OK;
    cJSON_free(json);
    set_file(agent->settings, ret);
    return ok;
}

/* ---- the whole ---- */

static cJSON *make_entry(const struct cli *cli, const struct new_agent *agent,
                         const struct place *at)
{
    cJSON *entry = cJSON_CreateObject();
    cJSON *settings = cJSON_Duplicate(agent->settings, true);
    const char *secret = cli_value(cli, "bearer-env");
    char text[PATH_BYTES];

    (void)cJSON_AddStringToObject(entry, "agentId", agent->id);
    (void)snprintf(text, sizeof text, "${BATON_BIN}/%s", agent->program);
    (void)cJSON_AddItemToArray(cJSON_AddArrayToObject(entry, "command"), cJSON_CreateString(text));
    if (secret != NULL) {
        (void)cJSON_AddItemToArray(cJSON_AddArrayToObject(entry, "secrets"),
                                   cJSON_CreateString(secret));
    }
    if (at->document[0] != 0) {
        (void)snprintf(text, sizeof text, "${CONFIG_DIR}/%s.openapi.json", agent->id);
        set_file(settings, text);
    }
    (void)cJSON_AddItemToObject(entry, "settings", settings);
    return entry;
}

static void print_skills(const cJSON *card)
{
    const cJSON *s;

    cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(card, "skills"))
    {
        char line[LINE_SHOWN];
        cli_one_line(line, sizeof line, json_text(s, "description", ""));
        (void)printf("skill %-24s %-10s %s\n", json_text(s, "id", ""),
                     json_text(s, "effects", "idempotent"), line);
    }
}

/* Whether a change of the answer of supervisor.reload is about the agent: "agents.shout". */
static bool is_about(const cJSON *change, const char *id)
{
    char key[LINE_SHOWN];
    const int n = snprintf(key, sizeof key, "agents.%s", id);
    const char *named = json_text(change, "key", "");

    return strncmp(named, key, (size_t)n) == 0 && (named[n] == 0 || named[n] == '.');
}

/* A daemon that was started with --config reads that file, not the user's. */
static bool other_file_is_read(struct cli *cli, const char *id)
{
    const char *state = cli_state_dir(cli);
    cJSON *fields = cJSON_CreateObject();
    cJSON *answer = NULL;
    const cJSON *change;
    struct bt_error err;
    bool other = false;

    (void)cJSON_AddTrueToObject(fields, "check");
    if (state == NULL || bt_client_open(state, &cli->client, &err) != BT_OK) {
        cJSON_Delete(fields); /* no daemon runs */
    } else if (cli_call(cli, "supervisor.reload", fields, &answer) == CLI_OK) {
        other = true;
        cJSON_ArrayForEach(change, cJSON_GetObjectItemCaseSensitive(answer, "changes"))
        {
            other = other && !is_about(change, id);
        }
    }
    cJSON_Delete(answer);
    return other;
}

static void print_done(struct cli *cli, const struct new_agent *agent, const struct place *at,
                       const cJSON *card, cJSON *entry)
{
    const bool dry = cli_flag(cli, "dry-run");
    const char *config = cli_value(cli, "config");
    const cJSON *skills = cJSON_GetObjectItemCaseSensitive(card, "skills");
    struct bt_error err;
    struct buf text;

    if (cli->json) {
        cJSON *all = cli_fields("agentId", agent->id);
        (void)cJSON_AddStringToObject(all, "file", at->file);
        (void)cJSON_AddBoolToObject(all, "written", !dry);
        (void)cJSON_AddItemToObject(all, "entry", cJSON_Duplicate(entry, true));
        (void)cJSON_AddItemToObject(all, "skills", cJSON_Duplicate(skills, true));
        cli_print_json(all);
        cJSON_Delete(all);
        return;
    }
    print_skills(card);
    if (dry) {
        buf_init(&text, LIMIT_CONTROL_BYTES);
        if (yaml_write(entry, &text, &err) == BT_OK) {
            (void)printf("\nthe entry, for %s:\n%s", at->file, buf_cstr(&text));
        }
        buf_done(&text);
        cli_note("nothing was written (--dry-run)\n");
        return;
    }
    (void)printf("added to %s\n", at->file);
    if (config == NULL && other_file_is_read(cli, agent->id)) {
        cli_note("the running daemon reads another file; to add the agent there: baton agents add "
                 "--config FILE ...\n");
        return;
    }
    cli_note("next:\n  baton reload%s%s          (or baton up%s%s, when no daemon runs)\n"
             "  baton agents try %s %s\n",
             config != NULL ? " --config " : "", config != NULL ? at->file : "",
             config != NULL ? " --config " : "", config != NULL ? at->file : "", agent->id,
             json_text(cJSON_GetArrayItem(skills, 0), "id", ""));
}

/* First the document, because the entry names it. */
static bool write_both(const struct cli *cli, const struct place *at, const struct buf *text,
                       const char *document)
{
    if (document[0] != 0 && rename(document, at->document) != 0) {
        cli_error("%s: %s; nothing was changed", at->document, strerror(errno));
        return false;
    }
    if (!replace(cli, at, text)) {
        if (document[0] != 0) {
            (void)unlink(at->document);
        }
        return false;
    }
    return true;
}

static enum cli_exit add(struct cli *cli, struct new_agent *agent, struct place *at,
                         const char *document)
{
    struct bt_error err = {0};
    struct buf text;
    char *settings = cjson_print(agent->settings, false, &err);
    cJSON *card = settings != NULL ? ask_card(agent, settings) : NULL;
    cJSON *entry = card != NULL ? make_entry(cli, agent, at) : NULL;
    enum cli_exit code = CLI_USAGE;

    buf_init(&text, 2 * LIMIT_CONTROL_BYTES);
    if (settings == NULL || (entry != NULL && yaml_append((struct str){at->text, at->len}, at->file,
                                                          "agents", entry, &text, &err) != BT_OK)) {
        code = cli_fail(&err);
    } else if (entry != NULL &&
               (cli_flag(cli, "dry-run") || write_both(cli, at, &text, document))) {
        code = CLI_OK;
    }
    if (code == CLI_OK) {
        print_done(cli, agent, at, card, entry);
    }
    buf_done(&text);
    cJSON_free(settings);
    cJSON_Delete(card);
    cJSON_Delete(entry);
    return code;
}

/* The file is on this machine, and so must be the daemon that reads it. */
static enum cli_exit check_here(const struct cli *cli)
{
    struct bt_connection to;
    struct bt_error err;

    if (cli_connection(cli, &to, &err) != BT_OK) {
        return cli_fail(&err);
    }
    if (to.url != NULL) {
        cli_error("agents add changes a configuration file of this host, and %s is another; run it "
                  "there",
                  to.url);
        return CLI_USAGE;
    }
    return CLI_OK;
}

enum cli_exit agents_add(struct cli *cli)
{
    struct new_agent agent = {.id = NULL};
    struct place at = {.text = NULL};
    char document[PATH_BYTES] = "";
    enum cli_exit code = check_here(cli);

    code = code == CLI_OK ? kinds_read(cli, &agent) : code;

    if (code == CLI_OK && !(find_place(cli, &at) && is_free(&at, agent.id) &&
                            keeps_others(cli, &at) && put_document(cli, &agent, &at, document))) {
        code = CLI_USAGE;
    }
    if (code == CLI_OK) {
        code = add(cli, &agent, &at, document);
    }
    if (document[0] != 0) {
        (void)unlink(document);
    }
    free(at.text);
    cJSON_Delete(agent.settings);
    cJSON_Delete(agent.document);
    return code;
}

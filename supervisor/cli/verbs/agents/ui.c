/* ui: where the dashboard is, in the browser; a gateway for it when the daemon has none. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/client/listener.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/program.h"
#include "supervisor/cli/verbs/agents/gateway.h"
#include "supervisor/cli/verbs/verbs.h"

enum { START_MS = 10000, POLL_MS = 20 };

bool gateway_url(const char *state, char *ret, size_t cap)
{
    char path[4200];
    char text[1024];
    cJSON *told = NULL;
    size_t n = 0;
    bool runs = false;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/gateway.json", state);
    f = fopen(path, "re");
    if (f != NULL) {
        n = fread(text, 1, sizeof text, f);
        (void)fclose(f);
    }
    if (n > 0 && json_parse((struct str){text, n}, &told, NULL) == BT_OK) {
        const pid_t pid = (pid_t)json_number(told, "pid");
        runs =
            pid > 0 && json_text(told, "url", "")[0] != 0 && (kill(pid, 0) == 0 || errno == EPERM);
        (void)snprintf(ret, cap, "%s", json_text(told, "url", ""));
    }
    cJSON_Delete(told);
    return runs && listener_is_ours(state, ret);
}

void gateway_become(const char *state, const char *option)
{
    char program[4200];

    if (cli_program_beside("baton-gateway", program, sizeof program)) {
        (void)execl(program, program, "--state", state, option, (char *)NULL);
    }
}

static enum cli_exit start(const char *state, char *url, size_t cap, pid_t *ret)
{
    const msec until = clock_mono_ms() + START_MS;
    const char *why = "; it wrote why";
    int status = 0;

    *ret = fork();
    if (*ret < 0) {
        cli_error("baton-gateway did not start: fork: %s", strerror(errno));
        return CLI_INTERNAL;
    }
    if (*ret == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* it ends with this program */
        gateway_become(state, NULL);
        _exit(127);
    }
    while (*ret > 0 && !gateway_url(state, url, cap)) {
        if (waitpid(*ret, &status, WNOHANG) == *ret) {
            *ret = -1;
        } else if (clock_mono_ms() > until) {
            (void)kill(*ret, SIGTERM);
            *ret = -1;
            why = " in time";
        } else {
            (void)poll(NULL, 0, POLL_MS);
        }
    }
    if (*ret > 0) {
        return CLI_OK;
    }
    cli_error("baton-gateway did not start%s",
              WIFEXITED(status) && WEXITSTATUS(status) == 127
                  ? ": it is not beside this program; it is built where libmicrohttpd is there"
                  : why);
    return CLI_INTERNAL;
}

/* On a desktop, in the person's browser. Elsewhere the address is enough. */
static void open_browser(const char *url)
{
    const char *const *shows = (const char *const[]){"DISPLAY", "WAYLAND_DISPLAY", NULL};
    bool desktop = false;
    pid_t pid;

    for (; *shows != NULL; shows++) {
        const char *value = getenv(*shows);
        desktop = desktop || (value != NULL && value[0] != 0);
    }
    if (!desktop || !isatty(STDOUT_FILENO)) {
        return;
    }
    pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stdout) == NULL ||
            freopen("/dev/null", "w", stderr) == NULL) {
            _exit(126);
        }
        (void)execlp("xdg-open", "xdg-open", url, (char *)NULL);
        _exit(127);
    }
}

static void print(const struct cli *cli, const char *url, const char *state)
{
    char token[4200];

    (void)snprintf(token, sizeof token, "%s/token", state);
    if (cli->json) {
        cJSON *told = cJSON_CreateObject();
        (void)cJSON_AddStringToObject(told, "url", url);
        (void)cJSON_AddStringToObject(told, "token", token);
        cli_print_json(told);
        cJSON_Delete(told);
    } else {
        (void)printf("%s/\n", url);
        cli_note("Log in with the text of %s, or with a credential (baton credential add).\n",
                 token);
    }
    (void)fflush(stdout);
}

enum cli_exit verb_ui(struct cli *cli)
{
    cJSON *info = NULL;
    char url[512] = "";
    const char *state;
    pid_t gateway = 0;
    int status;
    enum cli_exit code = cli_call(cli, "supervisor.info", NULL, &info);

    if (code != CLI_OK) {
        cJSON_Delete(info);
        return code;
    }
    state = json_text(info, "stateDir", "");
    if (!gateway_url(state, url, sizeof url)) {
        code = start(state, url, sizeof url, &gateway);
    }
    if (code == CLI_OK) {
        print(cli, url, state);
        open_browser(url);
        if (gateway > 0) {
            cli_note("The gateway runs as long as this program: Ctrl+C ends both. With `gateway: "
                     "{}` in baton.yaml\nthe daemon runs it.\n");
            while (waitpid(gateway, &status, 0) < 0 && errno == EINTR) {
            }
        }
    }
    cJSON_Delete(info);
    return code;
}

#include "supervisor/cli/common/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/cli/common/program.h"

static pid_t pager = -1; /* -1 = none */

bool cli_on_terminal(void)
{
    return pager > 0 || isatty(STDOUT_FILENO) == 1;
}

/* The command of the shell; NULL = none is wanted. */
static const char *pager_command(void)
{
    const char *own = getenv("BATON_PAGER");
    const char *given = own != NULL ? own : getenv("PAGER");

    if (given == NULL) {
        return cli_program_is_there("less") ? "less -FRX" : NULL;
    }
    return given[0] == 0 || strcmp(given, "cat") == 0 ? NULL : given;
}

void cli_pager_start(const struct cli *cli)
{
    const char *term = getenv("TERM");
    const char *command = pager_command();
    int ends[2];

    if (command == NULL || cli_flag(cli, "no-pager") || isatty(STDOUT_FILENO) != 1 ||
        (term != NULL && strcmp(term, "dumb") == 0) || pipe(ends) != 0) {
        return;
    }
    pager = fork();
    if (pager == 0) {
        (void)signal(SIGPIPE, SIG_DFL);
        (void)dup2(ends[0], STDIN_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[0]);
    if (pager > 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)signal(SIGINT, SIG_IGN); /* Ctrl-C is the pager's: the screen is still its */
    }
    (void)close(ends[1]);
}

void cli_pager_end(void)
{
    if (pager > 0) {
        (void)close(STDOUT_FILENO);
        (void)waitpid(pager, NULL, 0);
        pager = -1;
    }
}

const char *cli_time(const char *text, char ret[CLI_TIME_MAX])
{
    struct tm utc = {0};
    struct tm local;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
    const size_t fraction = rest != NULL ? strcspn(rest, "Z") : 0;
    char day[32];
    time_t seconds;

    if (rest == NULL || strcmp(rest + fraction, "Z") != 0 || !cli_on_terminal()) {
        return text;
    }
    seconds = timegm(&utc);
    if (localtime_r(&seconds, &local) == NULL ||
        strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &local) == 0) {
        return text;
    }
    (void)snprintf(ret, CLI_TIME_MAX, "%s%.*s", day, fraction > 4 ? 4 : (int)fraction, rest);
    return ret;
}

/* The bytes of a time of the wire at the beginning of a text; 0 = there is none. */
static size_t time_at(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00";
    size_t n = 0;

    for (; form[n] != 0; n++) {
        if (form[n] == '0' ? text[n] < '0' || text[n] > '9' : text[n] != form[n]) {
            return 0;
        }
    }
    n += text[n] == '.' ? 1 + strspn(text + n + 1, "0123456789") : 0;
    return text[n] == 'Z' ? n + 1 : 0;
}

void cli_times_in(char *ret, size_t cap, const char *text)
{
    size_t used = 0;

    while (*text != 0 && used + 1 < cap) {
        const size_t n = time_at(text);
        char whole[CLI_TIME_MAX];
        char local[CLI_TIME_MAX];
        if (n == 0 || n >= sizeof whole) {
            ret[used++] = *text++;
            continue;
        }
        (void)snprintf(whole, sizeof whole, "%.*s", (int)n, text);
        used += (size_t)snprintf(ret + used, cap - used, "%s", cli_time(whole, local));
        text += n;
    }
    ret[used < cap ? used : cap - 1] = 0;
}

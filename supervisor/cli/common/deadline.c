#include "supervisor/cli/common/deadline.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/form.h"

enum { GRACE_MS = 500 }; /* for a verb that ends by itself */

static msec at = MSEC_NEVER;
static char said[128];
static char text[192]; /* the same, for a handler of signals */
static int where = STDERR_FILENO;
static void (*leave)(void);

/* The verb hangs in something that does not look at the time. */
static void on_alarm(int signal_number)
{
    (void)signal_number;
    if (leave != NULL) {
        leave();
    }
    (void)!write(cli_has_printed() ? STDERR_FILENO : where, text, strlen(text));
    _exit(CLI_TIMEOUT);
}

static void set_timer(uint64_t ms)
{
    const struct itimerval timer = {
        .it_value = {.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000)}};

    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

bool deadline_start(const struct cli *cli)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    const char *given = cli_value(cli, "timeout");
    uint32_t ms;

    if (given == NULL) {
        return true;
    }
    if (!cli_duration(given, "--timeout", &ms)) {
        return false;
    }
    at = clock_mono_ms() + ms;
    where = cli->json ? STDOUT_FILENO : STDERR_FILENO;
    (void)snprintf(said, sizeof said, "%s has not ended within --timeout %.40s", cli->verb->name,
                   given);
    (void)snprintf(text, sizeof text,
                   cli->json ? "{\"code\":\"TIMEOUT\",\"message\":\"%s\"}\n" : "baton: %s\n", said);
    (void)sigaction(SIGALRM, &action, NULL);
    set_timer((uint64_t)ms + GRACE_MS);
    return true;
}

msec deadline_at(void)
{
    return at;
}

msec deadline_or(uint32_t ms)
{
    return at != MSEC_NEVER ? at : clock_mono_ms() + ms;
}

bool deadline_is_over(void)
{
    return at != MSEC_NEVER && clock_mono_ms() >= at;
}

enum cli_exit deadline_report(void)
{
    cli_error("%s", said);
    return CLI_TIMEOUT;
}

uint32_t deadline_left(uint32_t ms)
{
    const msec now = clock_mono_ms();

    if (at <= now) {
        return 1;
    }
    return at - now < ms ? (uint32_t)(at - now) : ms;
}

void deadline_leave(void (*fn)(void))
{
    leave = fn;
}

void deadline_stop(void)
{
    set_timer(0);
}

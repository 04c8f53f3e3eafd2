/* The counter behind FAILPOINT. */
#include "protocol/base/failpoint.h"

#ifdef BATON_FAILPOINTS
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DELAY_MS = 300, NAMES = 32, NOBODYS_ADDRESS = 64 };

static struct {
    const char *name;
    unsigned long hits;
} counts[NAMES];

static unsigned long count(const char *name)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (counts[i].name == NULL) {
            counts[i].name = name;
        }
        if (strcmp(counts[i].name, name) == 0) {
            return ++counts[i].hits;
        }
    }
    return 0;
}

/* The action of "NAME@N:ACTION" or "N:ACTION" when it is this hit, else NULL. */
static const char *applies(const char *rule, const char *name, unsigned long mine,
                           unsigned long all)
{
    const size_t len = strlen(name);
    char *end = NULL;

    if (strncmp(rule, name, len) == 0 && rule[len] == '@') {
        rule += len + 1;
        all = mine;
    }
    if (strtoul(rule, &end, 10) != all || end == rule || *end != ':') {
        return NULL;
    }
    return end + 1;
}

static void note(const char *name)
{
    const char *path = getenv("BATON_FAILPOINT_LOG");
    char line[64];
    const size_t len = strlen(name);

    if (path == NULL || len >= sizeof line) {
        return;
    }
    memcpy(line, name, len);
    line[len] = '\n';
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)!write(fd, line, len + 1);
        (void)close(fd);
    }
}

enum failpoint failpoint_hit(const char *name)
{
    static unsigned long all;
    const unsigned long mine = count(name);
    const char *rule = getenv("BATON_FAILPOINT");

    all++;
    note(name);
    for (; rule != NULL; rule = strchr(rule, ',')) {
        rule += *rule == ',';
        const char *action = applies(rule, name, mine, all);
        if (action == NULL) {
            continue;
        }
        switch (*action) {
        case 'k':
            (void)raise(SIGKILL);
            break;
        case 'd': /* delay, drop */
            if (action[1] == 'r') {
                return FAILPOINT_DROP;
            }
            (void)poll(NULL, 0, DELAY_MS);
            break;
        case 'e':
            return FAILPOINT_ERROR;
        case 'a':
            return FAILPOINT_AFTER;
        case 's':
            (void)raise(SIGSTOP);
            break;
        default:
            break;
        }
    }
    return FAILPOINT_NONE;
}

/* The signal of "NAME=PLAN:N", else 0. */
static int signal_of(const char *rule, const char *name, const char *plan)
{
    const size_t len = strlen(name);

    return strncmp(rule, name, len) == 0 && rule[len] == '=' &&
                   strncmp(rule + len + 1, plan, UUID_TEXT_LEN) == 0 &&
                   rule[len + 1 + UUID_TEXT_LEN] == ':'
               ? (int)strtol(rule + len + UUID_TEXT_LEN + 2, NULL, 10)
               : 0;
}

void failpoint_of(const char *name, struct uuid plan)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_format(plan, id);
    for (const char *rule = getenv("BATON_FAILPOINT"); rule != NULL; rule = strchr(rule, ',')) {
        rule += *rule == ',';
        const int sig = signal_of(rule, name, id);
        if (sig == SIGSEGV) {
            *(volatile char *)(uintptr_t)NOBODYS_ADDRESS = 1; /* a real one */
        } else if (sig != 0) {
            (void)raise(sig);
        }
    }
}
#else
typedef int failpoint_none; /* ISO C wants something in a file */
#endif

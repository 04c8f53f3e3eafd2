/* An authority in a directory of the test's own, and a directory that it issues to. */
#ifndef UNIT_CERTS_RIG_H
#define UNIT_CERTS_RIG_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/certs/certs.h"
#include "tests/support/cmocka.h"

enum { PEM_MAX = 8192, DAY_MS = 86400000 };

#define NOW UINT64_C(1700000000000)

static char top[64];
static char ca[80];
static char to[80];
static struct bt_error err;

static inline int set_up(void **state)
{
    (void)state;
    (void)snprintf(top, sizeof top, "/tmp/baton-certs-XXXXXX");
    assert_non_null(mkdtemp(top));
    (void)snprintf(ca, sizeof ca, "%s/ca", top);
    (void)snprintf(to, sizeof to, "%s/to", top);
    return mkdir(to, 0700);
}

static inline int tear_down(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", top, (char *)NULL);
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid ? 0 : -1;
}

static inline const char *path(const char *dir, const char *name)
{
    static char text[200];

    (void)snprintf(text, sizeof text, "%s/%s", dir, name);
    return text;
}

static inline void init(const char *dir)
{
    struct cert c;

    if (certs_init(dir, NULL, 0, NOW, &c, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    assert_true(c.ca);
}

static inline enum bt_code issue(const char *name, struct cert *ret)
{
    static const char *const hosts[] = {"a.example", "127.0.0.1"};
    const struct certs_ask ask = {
        .name = name, .hosts = hosts, .hosts_n = 2, .server = true, .to = to};

    return certs_issue(ca, &ask, NOW, ret, &err);
}

/* Replaces the file by so many bytes. */
static inline void fill(const char *file, size_t bytes)
{
    const int fd = open(file, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(write(fd, "x", 1), 1);
    }
    assert_int_equal(close(fd), 0);
}
#endif

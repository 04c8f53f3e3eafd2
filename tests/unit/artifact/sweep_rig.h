/* A house with files of plans, and the sweep that removes them. */
#ifndef UNIT_SWEEP_RIG_H
#define UNIT_SWEEP_RIG_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "supervisor/artifacts/sweep.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "','maxRetries':0" more "}"
#define ONE "'plan':{'goal':'g','steps':[" STEP("a", "") "]}"
#define HELLO_SUM "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

enum { KEEP_MS = 60000, PASS_PLANS = 16, SLICE_FILES = 1000, QUEUE = 256, HOUR = 3600000 };

static char root[64];
static struct sweep *sweep;

static inline void open_sweep(struct house *h, uint64_t max_bytes)
{
    const struct sweep_options opt = {.root = root, .keep_ms = KEEP_MS, .max_bytes = max_bytes};
    struct bt_error err;

    assert_int_equal(sweep_new(&opt, h->engine, &sweep, &err), BT_OK);
}

static inline struct house *open_house(uint64_t max_bytes)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)snprintf(root, sizeof root, "/tmp/baton-sweep-XXXXXX");
    assert_non_null(mkdtemp(root));
    opt.artifact_root = root;
    opt.artifact_max_bytes = 1024 * 1024;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    open_sweep(h, max_bytes);
    return h;
}

static inline void close_house(struct house *h)
{
    int status;
    pid_t pid;

    free(sweep);
    house_close(h);
    pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", root, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static inline void write_file(const char *dir, const char *name, const char *bytes)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", root, dir);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, dir, name);
    fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes));
    assert_int_equal(close(fd), 0);
}

/* The names in a directory of the root, sorted, each with a space; NULL: there is none. */
static inline const char *files(const char *dir)
{
    static char text[1024];
    struct dirent **names = NULL;
    char path[256];
    int n;

    (void)snprintf(path, sizeof path, "%s/%s", root, dir);
    n = scandir(path, &names, NULL, alphasort);
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        const size_t len = strlen(text);
        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
            (void)snprintf(text + len, sizeof text - len, "%s ", names[i]->d_name);
        }
        free(names[i]);
    }
    free((void *)names);
    return n < 0 ? NULL : text;
}

static inline void gone(const char *dir)
{
    assert_null(files(dir));
}

/* A plan whose step has ended with the file g and left the file late. */
static inline const char *ended_plan(struct house *h)
{
    const char *id = house_submit(h, ONE);

    write_file(id, "a@1.1@g", "hello");
    write_file(id, "a@1.0@late", "late");
    house_done(h, "calc",
               "'result':{'text':'x','artifacts':[{'name':'words'},{'name':'page','uri':'https://"
               "example.com/a@1.0@late'},{'name':'g','uri':'file://%s/%s/"
               "a@1.1@g',"
               "'bytes':5,'sha256':'" HELLO_SUM "'}]}",
               root, id);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=completed");
    return id;
}

static inline void ends(const char *id)
{
    struct uuid uuid;

    assert_true(uuid_parse(str_from(id), &uuid));
    sweep_plan_ended(sweep, uuid);
}

/* Slices until nothing is due; how many. */
static inline uint32_t slices(struct house *h)
{
    uint32_t n = 0;

    house_cycle_once(h); /* the time of the engine */
    while (sweep_deadline(sweep) <= h->now) {
        assert_true(n++ < 1000);
        sweep_cycle(sweep);
    }
    return n;
}

/* Time passes, of which agents hear nothing. */
static inline void later(struct house *h, msec ms)
{
    h->now += ms;
    h->wall += ms;
    (void)slices(h);
}
#endif

#include "tests/support/pg_server/pg_server.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VERSION_MIN = 15, VERSION_MAX = 30, SKIPPED = 77, TRIES = 600, PAUSE_MS = 50 };

static char dir[64];
static char url[160];
static pid_t server;
static pid_t owner; /* the process that made it: its children leave it alone */

static void must(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "pg_server: %s\n", what);
        abort();
    }
}

static bool program(const char *name, char *ret, size_t cap)
{
    for (int v = VERSION_MAX; v >= VERSION_MIN; v--) {
        (void)snprintf(ret, cap, "/usr/lib/postgresql/%d/bin/%s", v, name);
        if (access(ret, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool pg_server_installed(void)
{
    char path[128];

    return program("initdb", path, sizeof path) && program("postgres", path, sizeof path);
}

int pg_server_skip(const char *what)
{
    (void)printf("SKIPPED: %s need a PostgreSQL server: install postgresql-15\n", what);
    return SKIPPED;
}

/* PostgreSQL refuses to run as root. */
static const struct passwd *account(void)
{
    const struct passwd *p = getuid() == 0 ? getpwnam("postgres") : NULL;

    return p != NULL || getuid() != 0 ? p : getpwnam("nobody");
}

static pid_t spawn(const char *const args[])
{
    const struct passwd *p = account();
    char log[96];
    pid_t pid;

    (void)snprintf(log, sizeof log, "%s/log", dir);
    (void)fflush(NULL);
    pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir("/") != 0 ||
            (p != NULL && (initgroups(p->pw_name, p->pw_gid) != 0 || setgid(p->pw_gid) != 0 ||
                           setuid(p->pw_uid) != 0)) ||
            prctl(PR_SET_PDEATHSIG, SIGQUIT) != 0) {
            _exit(126);
        }
        (void)setpgid(0, 0);
        (void)execv(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    return pid;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void pg_server_done(void)
{
    if (owner != getpid()) {
        return;
    }
    if (server > 0) {
        (void)kill(server, SIGQUIT);
        (void)waitpid(server, NULL, 0);
        server = 0;
    }
    if (dir[0] != 0) {
        (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        dir[0] = 0;
    }
}

static void make_cluster(void)
{
    char initdb[128];
    char data[96];
    int status = -1;
    const char *const args[] = {initdb,  "-D",        data, "-A",   "trust",      "-U",
                                "fleet", "--no-sync", "-E", "UTF8", "--locale=C", NULL};
    const struct passwd *p = account();

    must(program("initdb", initdb, sizeof initdb), "no initdb");
    (void)snprintf(dir, sizeof dir, "/tmp/baton-pg-XXXXXX");
    must(mkdtemp(dir) != NULL, "mkdtemp");
    must(chmod(dir, 0755) == 0, "chmod");
    must(p == NULL || chown(dir, p->pw_uid, p->pw_gid) == 0, "chown");
    (void)snprintf(data, sizeof data, "%s/data", dir);
    (void)snprintf(url, sizeof url, "postgresql:///postgres?host=%s&user=fleet", dir);
    owner = getpid();
    (void)atexit(pg_server_done);
    must(waitpid(spawn(args), &status, 0) > 0 && status == 0, "initdb has failed");
}

static PGconn *connect_now(void)
{
    PGconn *c = PQconnectdb(url);

    if (PQstatus(c) == CONNECTION_OK) {
        return c;
    }
    PQfinish(c);
    return NULL;
}

void pg_server_start(void)
{
    char postgres[128];
    char data[96];
    PGconn *c = NULL;

    if (server > 0) {
        return;
    }
    if (dir[0] == 0) {
        make_cluster();
    }
    must(program("postgres", postgres, sizeof postgres), "no postgres");
    (void)snprintf(data, sizeof data, "%s/data", dir);
    for (int i = 0; i < TRIES && c == NULL; i++) {
        if (server <= 0 || waitpid(server, NULL, WNOHANG) == server) { /* remains of a killed one */
            const char *const args[] = {postgres,
                                        "-D",
                                        data,
                                        "-k",
                                        dir,
                                        "-c",
                                        "listen_addresses=",
                                        "-c",
                                        "fsync=off",
                                        "-c",
                                        "shared_buffers=32MB",
                                        NULL};
            server = spawn(args);
        }
        c = connect_now();
        if (c == NULL) {
            (void)poll(NULL, 0, PAUSE_MS);
        }
    }
    must(c != NULL, "the server does not start");
    PQfinish(c);
}

pid_t pg_server_pid(void)
{
    return server;
}

const char *pg_server_url(void)
{
    return url;
}

void pg_server_kill(void)
{
    must(kill(server, SIGKILL) == 0 && waitpid(server, NULL, 0) == server, "kill");
    server = 0;
}

void pg_server_stop_at_once(void)
{
    must(kill(server, SIGQUIT) == 0 && waitpid(server, NULL, 0) == server, "stop");
    server = 0;
}

const char *pg_server_dir(void)
{
    return dir;
}

void pg_server_run(const char *sql, char *ret, size_t cap)
{
    PGconn *c = connect_now();
    PGresult *r;

    must(c != NULL, "cannot connect");
    (void)PQsetErrorVerbosity(c, PQERRORS_TERSE);
    PQclear(PQexec(c, "SET client_min_messages = error"));
    r = PQexec(c, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK) {
        must(false, PQerrorMessage(c));
    }
    if (ret != NULL) {
        (void)snprintf(ret, cap, "%s", PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    }
    PQclear(r);
    PQfinish(c);
}

void pg_server_clear(void)
{
    pg_server_run("DROP SCHEMA IF EXISTS baton CASCADE; DROP SCHEMA IF EXISTS baton_s0 CASCADE; "
                  "DROP SCHEMA IF EXISTS baton_s1 CASCADE; DROP SCHEMA IF EXISTS baton_s2 CASCADE; "
                  "DROP SCHEMA IF EXISTS baton_s3 CASCADE",
                  NULL, 0);
}

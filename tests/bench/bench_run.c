/* Arguments, the directory of the run, child processes, and the cleanup. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { READY_FD = 3, DEPTH_MAX = 8, EXT_MAGIC = 0xef53, TMPFS_MAGIC_NUMBER = 0x01021994 };

extern char **environ;

static char directory[256];
static bool keep;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void clean_up(void)
{
    bench_daemon_kill();
    if (directory[0] != 0 && !keep) {
        (void)nftw(directory, remove_one, DEPTH_MAX, FTW_DEPTH | FTW_PHYS);
        directory[0] = 0;
    }
}

/* Ends without exit(): nng's threads may still run. */
static _Noreturn void leave(int code)
{
    clean_up();
    (void)fflush(NULL);
    _exit(code);
}

static void on_signal(int signo)
{
    bench_daemon_kill();
    _exit(128 + signo);
}

void bench_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
}

void bench_die(const char *fmt, ...)
{
    va_list ap;

    (void)fputs("bench: ", stderr);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    keep = true;
    (void)fprintf(stderr, "bench: the log and the state stay in %s\n", directory);
    leave(1);
}

void bench_check(enum bt_code code, const char *what, const struct bt_error *err)
{
    if (code != BT_OK) {
        bench_die("%s: %s", what, err->msg);
    }
}

const char *bench_dir(void)
{
    return directory;
}

void bench_program(const char *name, char *ret, size_t cap)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n > 0 ? n : 0] = 0;
    if (strrchr(self, '/') != NULL) {
        *strrchr(self, '/') = 0;
    }
    (void)snprintf(ret, cap, "%s/%s", self, name);
}

pid_t bench_spawn(char *const argv[], int out_fd, int ready_fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    char log[512];
    pid_t pid = -1;
    int rc;

    (void)snprintf(log, sizeof log, "%s/log", directory);
    (void)sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions) != 0 || posix_spawnattr_init(&attr) != 0) {
        bench_die("out of memory for a child");
    }
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log,
                                           O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (out_fd >= 0) {
        (void)posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
    } else {
        (void)posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    }
    if (ready_fd >= 0) {
        (void)posix_spawn_file_actions_adddup2(&actions, ready_fd, READY_FD);
    }
    rc = posix_spawn(&pid, argv[0], &actions, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    if (rc != 0) {
        bench_die("%s: %s", argv[0], strerror(rc));
    }
    return pid;
}

static void make_directory(void)
{
    const char *base = getenv("BATON_BENCH_DIR");
    struct statfs fs;

    (void)snprintf(directory, sizeof directory, "%s/baton-bench-XXXXXX",
                   base != NULL ? base : "/var/tmp");
    if (mkdtemp(directory) == NULL || statfs(directory, &fs) != 0) {
        (void)fprintf(stderr, "bench: %s: %s; set BATON_BENCH_DIR\n", directory, strerror(errno));
        exit(1);
    }
    bench_say("state in %s, file system type 0x%lx (%s)", directory, (unsigned long)fs.f_type,
              fs.f_type == EXT_MAGIC            ? "ext4"
              : fs.f_type == TMPFS_MAGIC_NUMBER ? "tmpfs: durability power means nothing here"
                                                : "see statfs(2)");
}

static int usage(const struct bench_scenario *scenarios, size_t n)
{
    (void)fprintf(
        stderr,
        "usage: SCENARIO [--durability process|power] [--n N] [--instances N] [--capacity N] "
        "[--clients N] [--fleet URL | --at STATE] [--wait] [--keep] [--quick]\nscenarios:");
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(stderr, " %s", scenarios[i].name);
    }
    (void)fputc('\n', stderr);
    return 2;
}

static bool parse(int argc, char **argv, struct bench_options *opt)
{
    static const struct option options[] = {{"durability", required_argument, NULL, 'd'},
                                            {"n", required_argument, NULL, 'n'},
                                            {"instances", required_argument, NULL, 'i'},
                                            {"capacity", required_argument, NULL, 'c'},
                                            {"clients", required_argument, NULL, 'l'},
                                            {"at-once", required_argument, NULL, 'o'},
                                            {"fleet", required_argument, NULL, 'f'},
                                            {"at", required_argument, NULL, 'a'},
                                            {"wait", no_argument, NULL, 'w'},
                                            {"keep", no_argument, NULL, 'k'},
                                            {"quick", no_argument, NULL, 'q'},
                                            {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        long number = optarg != NULL ? strtol(optarg, NULL, 10) : 0;
        switch (c) {
        case 'd':
            opt->durability = optarg;
            break;
        case 'n':
            opt->n = number;
            break;
        case 'i':
            opt->instances = number;
            break;
        case 'c':
            opt->capacity = number;
            break;
        case 'l':
            opt->clients = number;
            break;
        case 'o':
            opt->at_once = number > BENCH_AT_ONCE_MAX ? BENCH_AT_ONCE_MAX : number;
            break;
        case 'f':
            opt->fleet = optarg;
            break;
        case 'a':
            opt->at = optarg;
            break;
        case 'w':
            opt->wait = true;
            break;
        case 'k':
            opt->keep = true;
            break;
        case 'q':
            opt->quick = true;
            break;
        default:
            return false;
        }
    }
    opt->scenario = optind + 1 == argc ? argv[optind] : NULL;
    return opt->scenario != NULL;
}

int bench_main(int argc, char **argv, const struct bench_scenario *scenarios, size_t n)
{
    struct bench_options opt = {.durability = "process"};
    struct sigaction action = {.sa_handler = on_signal};

    if (!parse(argc, argv, &opt)) {
        return usage(scenarios, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(scenarios[i].name, opt.scenario) == 0) {
            (void)sigaction(SIGINT, &action, NULL);
            (void)sigaction(SIGTERM, &action, NULL);
            (void)signal(SIGPIPE, SIG_IGN);
            keep = opt.keep;
            make_directory();
            scenarios[i].run(&opt);
            leave(0);
        }
    }
    return usage(scenarios, n);
}

/* The measured daemon: its configuration, start and stop, size. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { AGENTS_MAX = 64 };
/* Two for each lane, of which an agent of 64 places has five, and some for what is retired. */
enum { INBOX_AN_AGENT = 16, INBOX_MIN = 8192, INBOX_MAX = 65536 };
enum { STOP_MS = 15000, AGENTS_MS = 20000, INSTANCE_MS = 100, POLL_NS = 2000000 };

static pid_t daemon_pid;
static pid_t agents[AGENTS_MAX];
static size_t agents_n;
static char state[512];

static void nap(void)
{
    struct timespec t = {.tv_nsec = POLL_NS};
    (void)nanosleep(&t, NULL);
}

static long inbox_for(long clients)
{
    const long want = clients * INBOX_AN_AGENT;

    return want < INBOX_MIN ? INBOX_MIN : want > INBOX_MAX ? INBOX_MAX : want;
}

static void write_config(const char *path, const struct bench_setup *s)
{
    FILE *f = fopen(path, "we");

    if (f == NULL) {
        bench_die("%s: %s", path, strerror(errno));
    }
    (void)fprintf(
        f,
        "{\"listen\": {\"control\": \"tcp://127.0.0.1:0\", \"events\": \"tcp://127.0.0.1:0\"},\n"
        " \"durability\": \"%s\", \"log\": {\"level\": \"warn\"}",
        s->durability);
    if (s->fleet != NULL) {
        (void)fprintf(f, ",\n \"fleet\": {\"url\": \"%s\", \"durability\": \"power\"}", s->fleet);
    }
    if (s->open_plans > 0) {
        (void)fprintf(f, ",\n \"limits\": {\"maxOpenPlans\": %ld}", s->open_plans);
    }
    if (s->agents_max > 0) {
        (void)fprintf(f,
                      ",\n \"limits\": {\"maxAgents\": %ld, \"maxInstances\": %ld, \"inbox\": %ld}",
                      s->agents_max, s->agents_max, inbox_for(s->agents_max));
    }
    if (s->instances > 0) {
        (void)fprintf(f,
                      ",\n \"agents\": [{\"agentId\": \"echo\", \"command\": "
                      "[\"%s\"],\n"
                      "  \"instances\": %ld, \"capacity\": %ld",
                      s->command != NULL ? s->command : "${BATON_BIN}/bench_echo_agent",
                      s->instances, s->capacity);
        if (s->log != NULL) {
            (void)fprintf(f, ", \"env\": [\"BATON_BENCH_LOG=%s\"]", s->log);
        }
        (void)fputs("}]", f);
    }
    (void)fputs("}\n", f);
    if (fclose(f) != 0) {
        bench_die("%s: cannot be written", path);
    }
}

double bench_daemon_start(const struct bench_setup *setup)
{
    char program[4096], config[512];
    char state_flag[] = "--state", config_flag[] = "--config", ready_flag[] = "--ready-fd",
         three[] = "3";
    char *argv[] = {program, state_flag, state, config_flag, config, ready_flag, three, NULL};
    char word[8] = "";
    uint64_t start;
    int ends[2];

    bench_program("batond", program, sizeof program);
    if (setup->at != NULL) {
        (void)snprintf(state, sizeof state, "%s", setup->at);
        return 0;
    }
    (void)snprintf(state, sizeof state, "%s/%s", bench_dir(),
                   setup->state != NULL ? setup->state : "state");
    (void)snprintf(config, sizeof config, "%s/baton.json", bench_dir());
    write_config(config, setup);
    if (pipe(ends) != 0) {
        bench_die("pipe");
    }
    start = bench_now_ns();
    daemon_pid = bench_spawn(argv, -1, ends[1]);
    (void)close(ends[1]);
    if (read(ends[0], word, 6) != 6) {
        bench_die("batond did not start; see %s/log", bench_dir());
    }
    (void)close(ends[0]);
    return (double)(bench_now_ns() - start) / 1e6;
}

void bench_daemon_stop(void)
{
    uint64_t start = bench_now_ns();

    if (daemon_pid == 0) {
        return;
    }
    (void)kill(daemon_pid, SIGTERM);
    while (waitpid(daemon_pid, NULL, WNOHANG) == 0) {
        if (bench_now_ns() - start > STOP_MS * 1000000ull) {
            bench_say("batond did not stop within %d ms: killed", STOP_MS);
            (void)kill(daemon_pid, SIGKILL);
            (void)waitpid(daemon_pid, NULL, 0);
            break;
        }
        nap();
    }
    daemon_pid = 0;
}

void bench_daemon_kill(void)
{
    if (daemon_pid != 0) {
        (void)kill(daemon_pid, SIGKILL);
        (void)waitpid(daemon_pid, NULL, 0);
        daemon_pid = 0;
    }
}

pid_t bench_daemon_pid(void)
{
    return daemon_pid;
}

const char *bench_state(void)
{
    return state;
}

struct bt_client *bench_client(void)
{
    struct bt_client *c = NULL;
    struct bt_error err;

    bench_check(bt_client_open(state, &c, &err), "connect", &err);
    bt_client_timeout(c, 30000);
    return c;
}

static long count(const char *text, const char *what)
{
    long n = 0;

    for (const char *at = text; at != NULL && (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    return n;
}

static void remember_agents(const char *json)
{
    agents_n = 0;
    for (const char *at = json; (at = strstr(at, "\"pid\":")) != NULL && agents_n < AGENTS_MAX;
         at++) {
        agents[agents_n++] = (pid_t)strtol(at + 6, NULL, 10);
    }
}

void bench_wait_agents(struct bt_client *c, const struct bench_setup *setup)
{
    uint64_t start = bench_now_ns();
    char id[BT_ID_LEN + 1];
    struct bt_error err;
    char *plan = bench_plan_steps(64, false, 64);
    long up = 0;

    while (up < setup->instances) {
        char *json = NULL;
        bench_check(bt_client_call(c, "agents.list", NULL, &json, &err), "agents.list", &err);
        up = count(json, "\"instanceId\"");
        remember_agents(json);
        bt_free(json);
        if (bench_now_ns() - start >
            (AGENTS_MS + (uint64_t)setup->instances * INSTANCE_MS) * 1000000ull) {
            bench_die("only %ld of %ld instances registered; see %s/log", up, setup->instances,
                      bench_dir());
        }
        nap();
    }
    for (int i = 0; i < 2 && setup->instances > 0;
         i++) { /* warm: caches, prepared statements, lanes */
        char *json = NULL;
        bench_submit(c, plan, id);
        bench_check(bt_wait(c, id, AGENTS_MS, &json, &err), "the warm-up plan", &err);
        bt_free(json);
    }
    free(plan);
}

uint64_t bench_daemon_rss(void)
{
    char path[64];
    unsigned long long total = 0;
    unsigned long long resident = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)daemon_pid);
    f = fopen(path, "re");
    if (f != NULL) {
        if (fscanf(f, "%llu %llu", &total, &resident) != 2) {
            resident = 0;
        }
        (void)fclose(f);
    }
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* In nanoseconds, unlike /proc, which counts ticks of 10 ms. */
static double cpu_of(pid_t pid)
{
    struct timespec t;
    clockid_t clock;

    if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) {
        return 0;
    }
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct bench_cpu bench_cpu_used(void)
{
    struct bench_cpu used = {.daemon = cpu_of(daemon_pid), .client = cpu_of(getpid())};

    for (size_t i = 0; i < agents_n; i++) {
        used.agents += cpu_of(agents[i]);
    }
    return used;
}

uint64_t bench_journal_bytes(void)
{
    DIR *d = opendir(state);
    struct dirent *e;
    uint64_t sum = 0;

    while (d != NULL && (e = readdir(d)) != NULL) {
        struct stat st;
        if (strncmp(e->d_name, "journal", 7) == 0 && fstatat(dirfd(d), e->d_name, &st, 0) == 0) {
            sum += (uint64_t)st.st_size;
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return sum;
}

/*
 * Shared by the benchmark programs: a daemon of their own with echo agents, the raw reference,
 * plans, figures and the one line of JSON. On a failure a benchmark prints the reason, stops its
 * daemon, removes its directory and exits with 1.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <baton/client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "protocol/base/assert.h"

/* ---- bench_run.c: the run as a whole */

struct bench_options {
    const char *scenario;
    const char *durability; /* "process" or "power" */
    long n;                 /* 0 = the scenario's own */
    long instances;         /* of the echo agent; 0 = the scenario's own */
    long capacity;          /* of each instance; 0 = the scenario's own */
    long clients;           /* S3: submitting threads; 0 = the scenario's own */
    long at_once;           /* S3: plans that one call submits; 0 = the scenario's own */
    const char *fleet;      /* S1 to S3: the journal is on this PostgreSQL; NULL = SQLite */
    const char *at;         /* S1 to S3: state directory of a daemon that runs; NULL = its own */
    bool wait;              /* S1, S2, S5: bt_wait instead of a watch */
    bool keep;              /* leave the directory behind */
    bool quick;             /* a short reference: the smoke test */
};

struct bench_scenario {
    const char *name;
    void (*run)(const struct bench_options *opt);
};

/* Reads the arguments, makes the directory, runs the scenario, cleans up. The exit code of main().
 */
int bench_main(int argc, char **argv, const struct bench_scenario *scenarios, size_t n);
/* The directory of this run: on the disk that durability is measured on. */
const char *bench_dir(void);
/* Prints the failure to stderr and ends the run. */
_Noreturn void bench_die(const char *fmt, ...) BT_PRINTF(1, 2);
void bench_say(const char *fmt, ...) BT_PRINTF(1, 2);
/* Ends the run with `what` and the error's message unless code is BT_OK. */
void bench_check(enum bt_code code, const char *what, const struct bt_error *err);
/* The path of a program in this program's directory. */
void bench_program(const char *name, char *ret, size_t cap);
/* Starts a program with stdout and stderr as given (-1 = the log). `ready_fd` (-1 = none) becomes
 * descriptor 3. */
pid_t bench_spawn(char *const argv[], int out_fd, int ready_fd);

/* ---- bench_daemon.c: one batond at a time */

struct bench_setup {
    const char *durability;
    long instances, capacity; /* 0 instances = no agent at all */
    long open_plans;          /* limits.maxOpenPlans; 0 = the default */
    long agents_max;          /* limits.maxAgents and maxInstances; 0 = the defaults */
    const char *command;      /* the agent's program; NULL = bench_echo_agent */
    const char *log;          /* file that gets a line per execution; NULL = none */
    const char *state;        /* its directory within bench_dir(); NULL = "state" */
    const char *fleet;        /* URL of PostgreSQL; NULL = SQLite */
    const char *at;           /* of a daemon that runs, and is neither started nor stopped */
};

/* Starts the daemon and waits until it serves. Restarts keep the state directory. Returns the
 * milliseconds from exec to ready. */
double bench_daemon_start(const struct bench_setup *setup);
/* SIGTERM, SIGKILL after 15 s; waits for its end. */
void bench_daemon_stop(void);
void bench_daemon_kill(void); /* kill -9 */
pid_t bench_daemon_pid(void);
const char *bench_state(void);
struct bt_client *bench_client(void);
/* Waits until all instances have registered and one plan has completed. */
void bench_wait_agents(struct bt_client *c, const struct bench_setup *setup);
/* Resident bytes of the daemon now. */
uint64_t bench_daemon_rss(void);
/* Microseconds of processor time of each process so far. */
struct bench_cpu {
    double daemon, agents, client;
};
struct bench_cpu bench_cpu_used(void);
/* Bytes of the state directory's journal and its WAL. */
uint64_t bench_journal_bytes(void);

/* ---- bench_plans.c: plans as JSON; the caller frees with free() */

/* n echo steps; when `chained`, each depends on the one before and gets its result. */
char *bench_plan_steps(uint32_t n, bool chained, uint32_t concurrency);
/* n echo steps without dependencies, in turn over the agents echo-FIRST ... of them `agents`. */
char *bench_plan_spread(uint32_t n, uint32_t concurrency, uint32_t first, uint32_t agents);
char *bench_plan_fan(uint32_t width, uint32_t concurrency); /* 1 -> width -> 1 */
char *bench_plan_sleepy(uint32_t n, double ms);             /* a chain of steps of ms each */
char *bench_plan_approval(void);                            /* one step that needs an approval */
char *bench_plan_waiting(const char *policy);               /* one echo step with this policy */
/* Submits; dies on a refusal. */
void bench_submit(struct bt_client *c, const char *plan, char ret_id[BT_ID_LEN + 1]);
/* The same plan n times, at most BENCH_AT_ONCE_MAX, by one call. */
enum { BENCH_AT_ONCE_MAX = 64 };
void bench_submit_many(struct bt_client *c, const char *plan, long n);
/* From now on plans are those of the shard that answers: clients of a fleet spread what has no key,
 * and a watch hears of one shard. */
void bench_submit_here(struct bt_client *c);
/* Takes events until the plan has completed; ends the run on a failed plan or after a minute. */
void bench_until_done(struct bt_watch *w, const char *plan_id);
struct bt_watch *bench_watch(struct bt_client *c);
/* A number out of an answer of the supervisor: bench_ask(c, "supervisor.stats", "rssBytes"). */
double bench_ask(struct bt_client *c, const char *type, const char *member);
/* True when the event ends its plan successfully; ends the run when it ends it otherwise. */
bool bench_is_success(const struct bt_event *ev);

/* ---- bench_figures.c: numbers */

struct bench_ref {
    double h1_us, h64_us, floor_us, pub_rate, lanes64_us;
};

uint64_t bench_now_ns(void);
/* Runs bench_ref in the bench's directory. */
struct bench_ref bench_reference(const struct bench_options *opt);

struct bench_samples {
    double *at;
    size_t n, cap;
};

void bench_add(struct bench_samples *s, double v);
double bench_percentile(struct bench_samples *s, double p); /* sorts; 0 of nothing */
double bench_mean(const struct bench_samples *s);

enum bench_against { AGAINST_NOTHING, AGAINST_H1, AGAINST_H64, AGAINST_FLOOR };

struct bench_result {
    const char *scenario;
    const char *durability;
    long n;
    double per_step_us, p50, p99, steps_per_s;
    struct bench_ref before, after;
    enum bench_against against;
    double goal;   /* of the ratio (or of `figure` when against nothing) */
    double figure; /* the figure of a goal that is no ratio */
    uint64_t rss;
    struct bench_cpu cpu; /* per step; zero = not measured */
    const char *more;     /* further members: "\"a\":1,\"b\":2", or NULL */
};

/* Prints the line. Ratios are against the lower of the two references, the harder one. */
void bench_print(const struct bench_result *r);
#endif

/* S11: what a session of a credential costs beside the token, in the shapes of S1, S2 and S3, which
 * wait for the end of a plan; and with its result, which is a large answer in S2. Plans
 * of both take turns in one daemon, so that a busy machine is busy for both; the figure is
 * processor time of daemon, agent and client per step. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { FAN_WIDTH = 1000, AT_A_TIME = 64, WAIT_MS = 300000, ROUNDS = 12, SENDERS = 2 };

static const struct {
    const char *name;
    uint32_t steps;
    long batch;  /* plans of a turn: processor time is counted in 10 ms */
    bool result; /* is read, too */
} shapes[] = {{"S1", 100, 40, false},
              {"S2", FAN_WIDTH + 2, 4, false},
              {"S3", 5, 400, false},
              {"S2 with plan.result", FAN_WIDTH + 2, 4, true}};

/* A file as `baton credential add` makes it. */
static void add_credential(char *ret_file, size_t cap)
{
    char dir[4096];
    FILE *f;

    (void)snprintf(dir, sizeof dir, "%s/credentials", bench_state());
    (void)mkdir(dir, 0700);
    (void)snprintf(ret_file, cap, "%s/bench", dir);
    f = fopen(ret_file, "we");
    if (f == NULL || fchmod(fileno(f), 0600) != 0) {
        bench_die("%s: cannot be written", ret_file);
    }
    (void)fprintf(f, "{\"id\":\"bench\",\"role\":\"admin\",\"createdMs\":1,\"key\":\"%064d\"}\n",
                  7);
    (void)fclose(f);
}

static double used(struct bench_cpu a)
{
    return a.daemon + a.agents + a.client;
}

static void wait_for(struct bt_client *c, const char *id, bool result)
{
    char fields[256];
    struct bt_error err;
    char *json = NULL;
    bool over = false;

    (void)snprintf(fields, sizeof fields,
                   "{\"fromSeq\":1,\"planId\":\"%s\",\"types\":[\"plan_completed\"],"
                   "\"limit\":1,\"waitMs\":2000}",
                   id);
    while (!result && !over) {
        bench_check(bt_client_call(c, "events.read", fields, &json, &err), "events.read", &err);
        over = strstr(json, "plan_completed") != NULL;
        bt_free(json);
    }
    if (result) {
        bench_check(bt_wait(c, id, WAIT_MS, &json, &err), "wait", &err);
        bt_free(json);
    }
}

static double run_turn(struct bt_client *c, const char *plan, long n, bool result)
{
    const double before = used(bench_cpu_used());

    for (long i = 0; i < n; i++) {
        char id[BT_ID_LEN + 1];
        bench_submit(c, plan, id);
        wait_for(c, id, result);
    }
    return used(bench_cpu_used()) - before;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

/* The median of the differences in pairs is what a credential adds: a pair runs at the same time.
 */
static void run_shape(struct bt_client *const senders[SENDERS], size_t shape, long rounds,
                      const char *durability)
{
    char *plan = shapes[shape].steps == FAN_WIDTH + 2
                     ? bench_plan_fan(FAN_WIDTH, AT_A_TIME)
                     : bench_plan_steps(shapes[shape].steps, true, 1);
    const double steps = (double)shapes[shape].steps * (double)shapes[shape].batch;
    double *more = calloc((size_t)rounds, sizeof *more);
    double sums[SENDERS] = {0, 0};

    if (more == NULL) {
        bench_die("out of memory");
    }
    for (long i = 0; i < rounds; i++) {
        double us[SENDERS];
        for (int k = 0; k < SENDERS; k++) {
            const int who = (int)((i + k) % SENDERS);
            us[who] = run_turn(senders[who], plan, shapes[shape].batch, shapes[shape].result);
            sums[who] += us[who];
        }
        more[i] = us[1] / us[0] - 1;
    }
    qsort(more, (size_t)rounds, sizeof *more, ascending);
    printf("{\"scenario\":\"S11\",\"shape\":\"%s\",\"durability\":\"%s\",\"n\":%ld,"
           "\"token_cpu_us\":%.2f,\"credential_cpu_us\":%.2f,\"more_percent\":%.2f,"
           "\"median_more_percent\":%.2f,\"goal_percent\":3}\n",
           shapes[shape].name, durability, rounds, sums[0] / (steps * (double)rounds),
           sums[1] / (steps * (double)rounds), 100 * (sums[1] / sums[0] - 1),
           100 * more[rounds / 2]);
    (void)fflush(stdout);
    free(more);
    free(plan);
}

static void credential(const struct bench_options *opt)
{
    const struct bench_setup setup = {
        .durability = opt->durability, .instances = 1, .capacity = AT_A_TIME};
    struct bt_client *senders[SENDERS];
    struct bt_error err;
    char file[4200];

    (void)bench_daemon_start(&setup);
    senders[0] = bench_client();
    bench_wait_agents(senders[0], &setup);
    add_credential(file, sizeof file);
    senders[1] = bench_client();
    bench_check(bt_client_credential(senders[1], file, &err), "credential", &err);
    for (int k = 0; k < SENDERS; k++) {
        char *plan = bench_plan_steps(100, true, 1);
        (void)run_turn(senders[k], plan, 10, false);
        free(plan);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        run_shape(senders, i, opt->n > 0 ? opt->n : ROUNDS, opt->durability);
    }
    bench_daemon_stop();
}

int main(int argc, char **argv)
{
    static const struct bench_scenario scenarios[] = {{"S11", credential}};

    return bench_main(argc, argv, scenarios, 1);
}

/*
 * S11: what a session of a credential costs beside the token, in the shapes of S1, S2 and S3, which
 * wait for the end of a plan; and with its result, which is a large answer in S2. Plans of both
 * take turns in one daemon, so that a busy machine is busy for both; who begins alternates. The
 * figures are processor time per step, of the daemon and of daemon, agent and client: the median
 * of the ratios of the pairs, and what half of the pairs lie between.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { FAN_WIDTH = 1000, AT_A_TIME = 64, WAIT_MS = 300000, ROUNDS = 60, SENDERS = 2 };

static const struct {
    const char *name;
    uint32_t steps;
    long
        batch; /* plans of a turn, about 400 steps: a short pair runs on one and the same machine */
    bool result; /* is read, too */
} shapes[] = {{"S1", 100, 4, false},
              {"S2", FAN_WIDTH + 2, 1, false},
              {"S3", 5, 80, false},
              {"S2 with plan.result", FAN_WIDTH + 2, 1, true}};

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

enum { OF_DAEMON, OF_ALL, PARTS };

struct turn {
    double us[PARTS];
};

static struct turn used(void)
{
    const struct bench_cpu a = bench_cpu_used();

    return (struct turn){{a.daemon, a.daemon + a.agents + a.client}};
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

static struct turn run_turn(struct bt_client *c, const char *plan, long n, bool result)
{
    const struct turn before = used();
    struct turn after;

    for (long i = 0; i < n; i++) {
        char id[BT_ID_LEN + 1];
        bench_submit(c, plan, id);
        wait_for(c, id, result);
    }
    after = used();
    for (int i = 0; i < PARTS; i++) {
        after.us[i] -= before.us[i];
    }
    return after;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

static void report(const char *part, double *ratios, long rounds, const double us[SENDERS],
                   double steps)
{
    qsort(ratios, (size_t)rounds, sizeof *ratios, ascending);
    printf(",\"%s\":{\"token_cpu_us\":%.2f,\"credential_cpu_us\":%.2f,\"median_more_percent\":%.2f,"
           "\"quartiles\":[%.2f,%.2f]}",
           part, us[0] / steps, us[1] / steps, 100 * (ratios[rounds / 2] - 1),
           100 * (ratios[rounds / 4] - 1), 100 * (ratios[rounds * 3 / 4] - 1));
}

static void run_shape(struct bt_client *const senders[SENDERS], size_t shape, long rounds,
                      const char *durability)
{
    static const char *const parts[PARTS] = {"daemon", "all"};
    char *plan = shapes[shape].steps == FAN_WIDTH + 2
                     ? bench_plan_fan(FAN_WIDTH, AT_A_TIME)
                     : bench_plan_steps(shapes[shape].steps, true, 1);
    const double steps = (double)shapes[shape].steps * (double)shapes[shape].batch * (double)rounds;
    double *ratios[PARTS] = {calloc((size_t)rounds, sizeof(double)),
                             calloc((size_t)rounds, sizeof(double))};
    double sums[PARTS][SENDERS] = {{0}};

    if (ratios[0] == NULL || ratios[1] == NULL) {
        bench_die("out of memory");
    }
    for (long i = 0; i < rounds; i++) {
        struct turn turns[SENDERS];
        for (int k = 0; k < SENDERS; k++) {
            const int who = (int)((i + k) % SENDERS);
            turns[who] = run_turn(senders[who], plan, shapes[shape].batch, shapes[shape].result);
        }
        for (int p = 0; p < PARTS; p++) {
            ratios[p][i] = turns[1].us[p] / turns[0].us[p];
            sums[p][0] += turns[0].us[p];
            sums[p][1] += turns[1].us[p];
        }
    }
    printf("{\"scenario\":\"S11\",\"shape\":\"%s\",\"durability\":\"%s\",\"n\":%ld",
           shapes[shape].name, durability, rounds);
    for (int p = 0; p < PARTS; p++) {
        report(parts[p], ratios[p], rounds, sums[p], steps);
        free(ratios[p]);
    }
    printf(",\"goal_percent\":3}\n");
    (void)fflush(stdout);
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

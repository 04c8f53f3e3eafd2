/* Samples, the reference of this run, and the line of JSON. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"

uint64_t bench_now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* the benches measure the clock's readers too */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void bench_add(struct bench_samples *s, double v)
{
    if (s->n == s->cap) {
        s->cap = s->cap == 0 ? 256 : s->cap * 2;
        s->at = realloc(s->at, s->cap * sizeof *s->at);
        if (s->at == NULL) {
            bench_die("out of memory for samples");
        }
    }
    s->at[s->n++] = v;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double bench_percentile(struct bench_samples *s, double p)
{
    size_t ix = (size_t)((double)s->n * p);

    if (s->n == 0) {
        return 0;
    }
    qsort(s->at, s->n, sizeof *s->at, by_size);
    return s->at[ix < s->n ? ix : s->n - 1];
}

double bench_mean(const struct bench_samples *s)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++) {
        sum += s->at[i];
    }
    return s->n == 0 ? 0 : sum / (double)s->n;
}

struct bench_ref bench_reference(const struct bench_options *opt)
{
    struct bench_ref r = {0};
    char program[4096];
    char dir[4096];
    char line[512];
    char quick[] = "quick";
    int ends[2];
    ssize_t n;
    pid_t pid;

    bench_program("bench_ref", program, sizeof program);
    (void)snprintf(dir, sizeof dir, "%s", bench_dir());
    char *argv[] = {program, dir, opt->quick ? quick : NULL, NULL};
    if (pipe(ends) != 0) {
        bench_die("pipe");
    }
    pid = bench_spawn(argv, ends[1], -1);
    (void)close(ends[1]);
    n = read(ends[0], line, sizeof line - 1);
    (void)close(ends[0]);
    (void)waitpid(pid, NULL, 0);
    line[n > 0 ? n : 0] = 0;
    if (sscanf(line,
               "{\"h1_us\":%lf,\"h64_us\":%lf,\"floor_us\":%lf,\"pub_rate\":%lf,\"lanes64_us\":%lf",
               &r.h1_us, &r.h64_us, &r.floor_us, &r.pub_rate, &r.lanes64_us) != 5) {
        bench_die("the reference failed: '%s'", line);
    }
    bench_say("reference: h1 %.1f us, h64 %.2f us, lanes64 %.2f us, floor %.1f us, pub %.0f/s",
              r.h1_us, r.h64_us, r.lanes64_us, r.floor_us, r.pub_rate);
    return r;
}

static double lower(double a, double b)
{
    return a < b ? a : b;
}

void bench_print(const struct bench_result *r)
{
    struct bench_ref ref = {.h1_us = lower(r->before.h1_us, r->after.h1_us),
                            .h64_us = lower(r->before.h64_us, r->after.h64_us),
                            .floor_us = lower(r->before.floor_us, r->after.floor_us),
                            .lanes64_us = lower(r->before.lanes64_us, r->after.lanes64_us)};
    static const char *const names[] = {"none", "h1", "h64", "floor"};
    const double base[] = {1, ref.h1_us, ref.h64_us, ref.floor_us};
    double figure = r->against == AGAINST_NOTHING ? r->figure : r->per_step_us / base[r->against];

    (void)printf(
        "{\"scenario\":\"%s\",\"n\":%ld,\"durability\":\"%s\",\"per_step_us\":%.2f,\"p50\":%.2f,"
        "\"p99\":%.2f,"
        "\"steps_per_s\":%.0f,\"ref_h1_us\":%.1f,\"ref_h64_us\":%.2f,\"ref_floor_us\":%.1f,\"ref_"
        "lanes64_us\":%.2f,"
        "\"ref_h1_both\":[%.1f,%.1f],\"ref_h64_both\":[%.2f,%.2f],\"ref_floor_both\":[%.1f,%.1f],"
        "\"ratio\":%.3f,\"ratio_of\":\"%s\",\"goal\":%.3f,\"met\":%s,\"rss\":%llu,"
        "\"cpu_us_per_"
        "step\":[%.1f,%.1f,%.1f]%s%s}\n",
        r->scenario, r->n, r->durability, r->per_step_us, r->p50, r->p99, r->steps_per_s, ref.h1_us,
        ref.h64_us, ref.floor_us, ref.lanes64_us, r->before.h1_us, r->after.h1_us, r->before.h64_us,
        r->after.h64_us, r->before.floor_us, r->after.floor_us, figure, names[r->against], r->goal,
        figure <= r->goal ? "true" : "false", (unsigned long long)r->rss, r->cpu.daemon,
        r->cpu.agents, r->cpu.client, r->more != NULL ? "," : "", r->more != NULL ? r->more : "");
    (void)fflush(stdout);
}

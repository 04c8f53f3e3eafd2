#include "supervisor/engine/suspect.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/engine/engine_internal.h"

enum { ALT_STACK_BYTES = 64 * 1024 };

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { SIGNALS_N = sizeof SIGNALS / sizeof SIGNALS[0] };

/* Of the process: a signal handler has no argument. */
static struct {
    struct engine *engine;
    pid_t thread;
    struct sigaction before[SIGNALS_N];
} watch;

struct uuid suspect_of(struct uuid plan_id, const struct job *job)
{
    struct uuid of;

    return job != NULL && job->kind <= JOB_SYNTHESIS && uuid_parse(str_from(job->of), &of)
               ? of
               : plan_id;
}

uint64_t engine_applies(struct engine *engine, uint64_t run)
{
    const uint64_t before = engine->mark.run;

    engine->mark.run = run;
    return before;
}

/* Nil: of nobody. Reads memory only. */
static struct uuid guilty(struct engine *engine)
{
    const struct suspect_mark *mark = &engine->mark;
    const uint64_t run = mark->in_core ? core_at(engine->core) : mark->run;
    const struct open_plan *p = open_plan_of_run(engine, run);

    return p != NULL ? suspect_of(p->plan_id, p->job) : mark->recovering;
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
    const int saved = errno;
    const bool sent = info->si_code <= 0; /* by a process, maybe this one */

    (void)context;
    if (gettid() == watch.thread && (!sent || info->si_pid == getpid())) {
        const struct uuid plan = guilty(watch.engine);
        if (!uuid_is_nil(plan)) {
            faults_add(&watch.engine->faults, plan, sig, watch.engine->wall);
        }
    }
    for (size_t i = 0; i < SIGNALS_N; i++) {
        if (SIGNALS[i] == sig) {
            (void)sigaction(sig, &watch.before[i], NULL);
        }
    }
    if (sent) {
        (void)raise(sig); /* again, when this returns; other faults repeat by themselves */
    }
    errno = saved;
}

/* A crash for want of stack must have one. */
static bool make_stack(void)
{
    stack_t now;
    stack_t other = {.ss_size = ALT_STACK_BYTES};

    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0) {
        return true;
    }
    other.ss_sp = malloc(ALT_STACK_BYTES); /* for the life of the process */
    return other.ss_sp != NULL && sigaltstack(&other, NULL) == 0;
}

void suspect_watch(struct engine *engine)
{
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = SA_SIGINFO | (make_stack() ? SA_ONSTACK : 0)};
    struct bt_error err;

    if (faults_open(engine->opt.state_dir, &engine->faults, &err) != BT_OK) {
        log_warn("supervisor.faults", "%s; crashes are not counted", err.msg);
    }
    (void)sigemptyset(&action.sa_mask);
    watch.thread = gettid();
    watch.engine = engine;
    for (size_t i = 0; i < SIGNALS_N; i++) {
        (void)sigaction(SIGNALS[i], &action, &watch.before[i]);
    }
}

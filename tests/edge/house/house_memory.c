/*
 * The i-th allocation of the daemon's rooms fails, for every i of the first ones and then for one
 * in a stride, in a process of its own over a real journal: what the daemon may do is answer with a
 * typed error, go on, end with the journal's failure, or abort in the middle of a decision, as
 * ARCHITECTURE.md says. It may not crash, leave a request without an answer, or lose what it has
 * acknowledged: the parent opens the journal with memory again and looks. SQLite's own allocations
 * fail in edge.journal_oom.
 *
 *     BATON_STRIDE=1 build/dev/tests/house_memory    every allocation, minutes
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/house/house.h"
#include "tests/support/memory.h"
#include "tests/unit/journal/journal_fixture.h"

enum { EACH = 20, STRIDE = 11, EXIT_DEAD = 75, EXIT_SILENT = 76, ACKS_MAX = 64, ACK_MAX = 128 };

/* Of this run: the allocation that fails; 0 = none. */
static long fail_at;
/* What memory_left is when the rooms act again. */
static long left = -1;

static void on_act(bool act)
{
    if (act) {
        memory_left = left;
    } else {
        left = memory_left;
        memory_left = -1;
    }
}

/* ---- what the child has seen, in a file that outlives it ---- */

static int acks;

static void acked(const char *what, const char *id)
{
    char line[ACK_MAX + 1];
    const int n = snprintf(line, sizeof line, "%s %s\n", what, id);

    if (write(acks, line, (size_t)n) != n) {
        _exit(1);
    }
}

static void end_if_dead(const struct house *h)
{
    if (h->dead) {
        (void)fprintf(stderr, "dead: %s\n", h->why.msg);
        _exit(EXIT_DEAD);
    }
}

/* A refusal that is about memory says so in its code, too: then it may be tried again. */
static bool is_typed(struct house *h, const char *answer)
{
    const char *code = house_get(h, answer, "error.code");
    const char *message = house_get(h, answer, "error.message");

    return code != NULL && message != NULL &&
           (strstr(message, "out of memory") == NULL || strcmp(code, "NOMEM") == 0);
}

/* The answer, or NULL when it was refused with a typed error. */
static const char *ask(struct house *h, const char *type, const char *fields)
{
    const char *answer = house_ask(h, type, "%s", fields);

    end_if_dead(h);
    if (answer == NULL) {
        (void)fprintf(stderr, "no answer to %s\n", type);
        _exit(EXIT_SILENT);
    }
    if (strcmp(house_get(h, answer, "ok"), "true") == 0) {
        return answer;
    }
    if (fail_at == 0 || !is_typed(h, answer)) {
        (void)fprintf(stderr, "%s: refused: %s\n", type, answer);
        _exit(EXIT_SILENT);
    }
    return NULL;
}

static const char *submit(struct house *h, const char *fields)
{
    const char *answer = ask(h, "plan.submit", fields);
    const char *id = answer != NULL ? house_get(h, answer, "planId") : NULL;

    if (id != NULL) {
        acked("plan", id);
    }
    return id;
}

/* The agent answers what it was asked, as long as it is asked. */
static void work(struct house *h, const char *agent)
{
    for (int i = 0; i < 20 && house_work(h, agent, NULL) != NULL; i++) {
        house_answer(h, agent, NULL,
                     "'outcome':'completed','result':{'text':'forty-two','data':{'n':1}},"
                     "'usage':{'inputTokens':5,'outputTokens':7}");
        end_if_dead(h);
    }
}

static bool is_over(struct house *h, const char *id)
{
    const char *answer = id == NULL ? NULL : ask(h, "plan.get", house_text(h, "'planId':'%s'", id));
    const char *status = answer != NULL ? house_get(h, answer, "status") : NULL;

    if (status != NULL && strcmp(status, "completed") == 0) {
        acked("completed", id);
        return true;
    }
    return false;
}

static bool joined(struct house *h, const char *id)
{
    struct house_agent *a = &h->agents[h->agents_n];
    const char *answer;

    *a = (struct house_agent){.epoch = 0};
    (void)snprintf(a->id, sizeof a->id, "%s", id);
    (void)snprintf(a->instance, sizeof a->instance, "0190F3C2-7A1B-7C3D-9E4F-%012u",
                   h->agents_n + 1);
    (void)snprintf(a->url, sizeof a->url, "tcp://127.0.0.1:%u", 40000 + h->agents_n);
    h->agents_n++;
    for (int i = 0; i < 3; i++) { /* an agent tries again */
        answer = ask(h, "agent.register",
                     house_text(h,
                                "'card':{'agentId':'%s','name':'%s','version':'1','skills':[{'id':"
                                "'do','description':'Does a thing.','outputSchema':{'type':"
                                "'object','required':['n']}}]},'capacity':2,'endpoint':'%s',"
                                "'protocol':[1],'instanceId':'%s','sessionKey':"
                                "'0123456789abcdef%u'",
                                id, id, a->url, a->instance, h->agents_n));
        if (answer != NULL) {
            a->epoch = strtoull(house_get(h, answer, "epoch"), NULL, 10);
            house_cycle(h);
            end_if_dead(h);
            return true;
        }
    }
    return false;
}

/* ---- the scenarios ---- */

static void plans_run_and_are_read(struct house *h)
{
    const char *id;

    (void)joined(h, "calc");
    id = submit(h, "'clientKey':'k','plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc',"
                   "'skill':'do','task':'one'},{'stepId':'b','agentId':'calc','skill':'do','task':"
                   "'two {{results.a}}','dependsOn':['a'],'when':{'results.a.n':{'eq':1}}}]}");
    work(h, "calc");
    (void)is_over(h, id);
    (void)ask(h, "plan.list", " ");
    (void)ask(h, "agents.list", " ");
    (void)ask(h, "events.read", "'fromSeq':1,'limit':50");
    if (id != NULL) {
        (void)ask(h, "plan.result", house_text(h, "'planId':'%s'", id));
        (void)ask(h, "plan.history", house_text(h, "'planId':'%s'", id));
        (void)ask(h, "plan.fork", house_text(h, "'planId':'%s','fromStep':'b'", id));
    }
    work(h, "calc");
    (void)ask(h, "supervisor.stats", " ");
}

static void people_decide_and_change(struct house *h)
{
    const char *id;
    const char *list;
    const char *review;

    (void)joined(h, "calc");
    id = submit(h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do',"
                   "'task':'one','requiresApproval':true},{'stepId':'w','wait':{'signal':'go'},"
                   "'task':'wait','dependsOn':['a']}]}");
    list = ask(h, "review.list", " ");
    review = list != NULL ? house_get(h, list, "reviews.0.reviewId") : NULL;
    if (review != NULL &&
        ask(h, "review.decide", house_text(h, "'reviewId':'%s','decision':'approve'", review)) !=
            NULL) {
        acked("decided", review);
    }
    work(h, "calc");
    if (id == NULL) {
        return;
    }
    (void)ask(h, "plan.pause", house_text(h, "'planId':'%s'", id));
    (void)ask(h, "plan.modify",
              house_text(h,
                         "'planId':'%s','kind':'insert','afterStepId':'a','steps':[{'stepId':"
                         "'c','agentId':'calc','skill':'do','task':'more'}]",
                         id));
    (void)ask(h, "plan.resume", house_text(h, "'planId':'%s'", id));
    work(h, "calc");
    (void)ask(h, "plan.signal", house_text(h, "'planId':'%s','name':'go'", id));
    work(h, "calc");
    id = submit(h, "'plan':{'steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'x'}]}");
    if (id != NULL) {
        (void)ask(h, "plan.cancel", house_text(h, "'planId':'%s'", id));
    }
    house_wait(h, 3000);
    end_if_dead(h);
}

static void a_daemon_starts_again_and_a_person_talks(struct house *h)
{
    const char *id;
    const char *answer;

    (void)joined(h, "calc");
    id = submit(h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do',"
                   "'task':'one'},{'stepId':'b','agentId':'calc','skill':'do','task':'two',"
                   "'dependsOn':['a']}]}");
    (void)house_work(h, "calc", NULL);
    end_if_dead(h);
    house_restart(h);
    end_if_dead(h);
    (void)joined(h, "calc");
    house_wait(h, 6000);
    end_if_dead(h);
    work(h, "calc");
    (void)is_over(h, id);
    answer = ask(h, "session.say", "'sessionId':'s','text':'what is the time','clientKey':'t1'");
    if (answer != NULL) {
        acked("said", "s");
    }
    (void)ask(h, "session.get", "'sessionId':'s'");
}

/* Each request that reads, about a plan of two steps, one of which failed, a session and a
 * schedule. */
static void everything_is_read(struct house *h)
{
    static const char *const of_plan[] = {"plan.get",   "plan.result", "plan.history",
                                          "plan.stats", "plan.cost",   "journal.export"};
    static const char *const others[] = {
        "plan.list",   "plan.cost",       "session.list",     "review.list",      "schedule.list",
        "agents.list", "supervisor.info", "supervisor.stats", "supervisor.scrub", "journal.export"};
    const char *id;

    (void)joined(h, "calc");
    id = submit(h, "'sessionId':'s','plan':{'goal':'g','steps':[{'stepId':'b','agentId':'calc',"
                   "'skill':'do','task':'one'},{'stepId':'f','agentId':'calc','skill':'do',"
                   "'task':'two','maxRetries':0,'onFailure':'continue','dependsOn':['b']}]}");
    if (house_work(h, "calc", "b") != NULL) {
        house_answer(h, "calc", "b",
                     "'outcome':'completed','result':{'text':'forty-two','data':{'n':1}}");
        end_if_dead(h);
    }
    if (house_work(h, "calc", "f") != NULL) {
        house_failed(h, "calc", "PERMISSION_DENIED", false);
    }
    end_if_dead(h);
    (void)is_over(h, id);
    (void)ask(h, "session.say", "'sessionId':'s','text':'status'");
    (void)ask(h, "schedule.put",
              "'name':'n','cron':'@daily','plan':{'goal':'g','steps':[{'stepId':'a','agentId':"
              "'calc','skill':'do','task':'t'}]}");
    for (size_t i = 0; id != NULL && i < sizeof of_plan / sizeof of_plan[0]; i++) {
        (void)ask(h, of_plan[i], house_text(h, "'planId':'%s'", id));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)ask(h, others[i], " ");
    }
    (void)ask(h, "plan.lint",
              "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc',"
              "'skill':'do','task':'t'}]}");
    (void)ask(h, "session.get", "'sessionId':'s'");
    (void)ask(h, "agents.get", "'agentId':'calc'");
    (void)ask(h, "blob.get", "'blobId':1");
    (void)ask(h, "events.read", "'fromSeq':1,'limit':100,'types':['plan_completed']");
    (void)ask(h, "plan.prune", "'olderThanMs':0,'dryRun':true");
}

/* What the list was answered is true of each plan by itself. */
static void several_plans_are_submitted_at_once(struct house *h)
{
    static const char list[] =
        "'plans':[{'clientKey':'k','plan':{'steps':[{'stepId':'a','agentId':'calc','skill':'do',"
        "'task':'one'}]}},{'plan':{'steps':[]}},{'clientKey':'l','goal':'do one thing'}]";

    (void)joined(h, "calc");
    for (int again = 0; again < 2; again++) {
        const char *answer = ask(h, "plans.submit", list);
        for (int i = 0; answer != NULL && i < 3; i++) {
            const char *one = house_get(h, answer, house_text(h, "answers.%d", i));
            const char *id = one != NULL ? house_get(h, one, "planId") : NULL;
            if (id != NULL) {
                acked("plan", id);
            } else if (one == NULL || !is_typed(h, one)) {
                (void)fprintf(stderr, "plan %d: %s\n", i, answer);
                _exit(EXIT_SILENT);
            }
        }
        end_if_dead(h);
    }
    work(h, "calc");
}

static void (*const scenarios[])(struct house *h) = {
    plans_run_and_are_read, people_decide_and_change, a_daemon_starts_again_and_a_person_talks,
    everything_is_read, several_plans_are_submitted_at_once};

/* ---- one run ---- */

static void child(const char *dir, void (*run)(struct house *h), const char *acks_path,
                  const char *log_path)
{
    const int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const long begun = fail_at > 0 ? fail_at - 1 : LONG_MAX;
    struct house *h;

    acks = open(acks_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (log < 0 || acks < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0) {
        _exit(1);
    }
    left = begun;
    memory_pause = &fake_link_inside;
    house_rooms_act = on_act;
    h = house_open_in(dir);
    end_if_dead(h);
    run(h);
    {
        char n[32];
        (void)snprintf(n, sizeof n, "%ld", left < 0 ? fail_at : begun - left);
        acked("made", n);
    }
    _exit(0);
}

static char *text_of(const char *path)
{
    static char text[64 * 1024];
    FILE *f = fopen(path, "re");
    size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;

    if (f != NULL) {
        (void)fclose(f);
    }
    text[n] = 0;
    return text;
}

/* An abort in the middle of a decision: the assertion is about memory. */
static bool is_about_memory(const char *log)
{
    const char *at = strstr(log, "assertion failed: ");

    return at != NULL && (strstr(at, "!= NULL") != NULL || strstr(at, "code == BT_OK") != NULL);
}

/* What was acknowledged is there when there is memory again; returns the allocations that it made,
 * 0 when it did not come to its end. */
static long look(const char *dir, char *told)
{
    struct house *h = house_open_in(dir);
    long ret = 0;
    char *rest = NULL;

    if (h->dead) {
        fail_msg("the next daemon does not start: %s", h->why.msg);
    }
    for (char *line = strtok_r(told, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char what[16] = "";
        char id[ACK_MAX] = "";
        const char *answer;
        assert_int_equal(sscanf(line, "%15s %127s", what, id), 2);
        if (strcmp(what, "made") == 0) {
            ret = strtol(id, NULL, 10);
        } else if (strcmp(what, "plan") == 0) {
            (void)house_ok(h, "plan.get", "'planId':'%s'", id);
        } else if (strcmp(what, "completed") == 0) {
            answer = house_ok(h, "plan.get", "'planId':'%s'", id);
            house_is(h, answer, "status", "completed");
            answer = house_ok(h, "plan.result", "'planId':'%s','stepId':'b'", id);
            house_is(h, answer, "result.text", "forty-two");
        } else if (strcmp(what, "decided") == 0) {
            answer = house_ask(h, "review.decide", "'reviewId':'%s','decision':'reject'", id);
            house_is(h, answer, "ok", "false"); /* it was decided */
        } else if (strcmp(what, "said") == 0) {
            answer = house_ok(h, "session.get", "'sessionId':'%s'", id);
            house_is(h, answer, "messages.0.text", "what is the time");
        }
    }
    house_close(h);
    return ret;
}

struct counts {
    uint32_t whole, dead, aborted;
};

/* Returns how many allocations there were; 0: it ended before. */
static long one(void (*run)(struct house *h), long i, struct counts *counts)
{
    char dir[64] = "/tmp/house_memory_XXXXXX";
    char acks_path[96];
    char log_path[96];
    char told[8 * 1024];
    int status = 0;
    pid_t pid;
    long n;

    assert_non_null(mkdtemp(dir));
    (void)snprintf(acks_path, sizeof acks_path, "%s/acks", dir);
    (void)snprintf(log_path, sizeof log_path, "%s/log", dir);
    fail_at = i;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(dir, run, acks_path, log_path);
    }
    fail_at = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && is_about_memory(text_of(log_path))) {
        counts->aborted++;
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DEAD) {
        counts->dead++;
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        counts->whole++;
    } else {
        fail_msg("allocation %ld: status %#x: %s", i, (unsigned)status, text_of(log_path));
    }
    (void)snprintf(told, sizeof told, "%s", text_of(acks_path));
    n = look(dir, told);
    fixture_remove_tree(dir);
    return n;
}

static void nothing_acknowledged_is_lost_when_an_allocation_fails(void **state)
{
    const char *wanted = getenv("BATON_STRIDE");
    const long stride = wanted != NULL ? strtol(wanted, NULL, 10) : STRIDE;

    (void)state;
    assert_true(stride > 0);
    for (size_t s = 0; s < sizeof scenarios / sizeof scenarios[0]; s++) {
        struct counts counts = {0};
        const long all = one(scenarios[s], 0, &counts);
        const long first = getpid() % stride; /* other ones each time */
        (void)fprintf(stderr, "%ld allocations\n", all);
        assert_true(all > 200);
        for (long i = 1; i <= all; i += i < EACH ? 1 : i == EACH ? first + 1 : stride) {
            (void)one(scenarios[s], i, &counts);
        }
        (void)fprintf(stderr,
                      "scenario %zu: %ld allocations, first %ld: to the end %u, dead %u, "
                      "aborted %u\n",
                      s, all, first, counts.whole, counts.dead, counts.aborted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_when_an_allocation_fails),
    };

    cJSON_Hooks hooks = {__wrap_malloc, free};

    cJSON_InitHooks(&hooks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

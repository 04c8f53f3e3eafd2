/* The files of results: checked when they come, given to the steps that read the result. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/house/house.h"

#define ROOT(id)                                                                                   \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "','dependsOn':[]}"
#define STEP(id)                                                                                   \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "','maxRetries':0}"
#define SUM "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"

static char root[64];

static struct house *open_house(void)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)snprintf(root, sizeof root, "/tmp/baton-files-XXXXXX");
    assert_non_null(mkdtemp(root));
    opt.artifact_root = root;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    return h;
}

static void close_house(struct house *h)
{
    char command[128];
    pid_t pid;

    house_close(h);
    (void)snprintf(command, sizeof command, "%s", root);
    pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", command, (char *)NULL);
        _exit(1);
    }
    (void)pid;
}

/* An empty file of the plan. */
static void make_file(const char *plan, const char *name)
{
    char path[400];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", root, plan);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, plan, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

static const char *artifact(struct house *h, const char *plan, const char *name, const char *more)
{
    return house_text(h, "{'name':'%s','uri':'file://%s/%s/%s'%s}", name, root, plan, name, more);
}

static void a_file_of_a_result_goes_to_the_next_step(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    id = house_submit(h, "'plan':{'steps':[" STEP("a") "," STEP("b") "]}");
    house_says(h, house_work(h, "calc", NULL),
               house_text(h, "artifactDir=%s/%s; artifacts=-", root, id));
    make_file(id, "a@1.1@x");
    house_done(h, "calc",
               "'result':{'text':'x','artifacts':[%s,%s,{'name':'web','uri':'https://x'}]}",
               artifact(h, id, "a@1.1@x", ",'bytes':0,'mediaType':'text/plain','sha256':'" SUM "'"),
               artifact(h, id, "a@1.1@x", ",'bytes':0,'sha256':'" SUM "'"));
    house_says(h, house_work(h, "calc", NULL),
               house_text(h,
                          "stepId=b; artifacts.#=1; artifacts.0.name=a@1.1@x; artifacts.0.bytes=0; "
                          "artifacts.0.mediaType=text/plain; artifacts.0.sha256=" SUM "; "
                          "artifacts.0.uri=file://%s/%s/a@1.1@x",
                          root, id));
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id), "artifacts.#=*");
    close_house(h);
}

static void fails(struct house *h, const char *name, const char *more, const char *why)
{
    const char *id = house_submit(h, "'plan':{'steps':[" STEP("a") "]}");

    make_file(id, "a@1.1@x");
    make_file("01A20EEF-370B-70A0-99DD-E3770DD612CF", "a@1.1@x");
    house_done(h, "calc", "'result':{'text':'x','artifacts':[%s]}",
               name[0] == '/'
                   ? house_text(h, "{'name':'n','uri':'file://%s%s'%s}", root, name, more)
                   : artifact(h, id, name, more));
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "steps.0.errorClass=PROTOCOL_ERROR");
    house_has(h, house_ok(h, "plan.get", "'planId':'%s'", id), "steps.0.error", why);
}

static void a_file_that_is_not_as_the_result_says_fails_it(void **state)
{
    struct house *h = open_house();

    (void)state;
    fails(h, "a@1.1@x", ",'sha256':'" SUM "'", "needs `bytes` and `sha256`");
    fails(h, "a@1.1@x", ",'bytes':0", "needs `bytes` and `sha256`");
    fails(h, "a@1.1@x", ",'bytes':0,'sha256':'0123456789abcdef'", "needs `bytes` and `sha256`");
    fails(h, "a@1.1@x",
          ",'bytes':0,'sha256':'g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'",
          "needs `bytes` and `sha256`");
    fails(h, "a@1.1@x", ",'bytes':1,'sha256':'" SUM "'", "the file has 0 bytes, the result says 1");
    fails(h, "a@1.1@y", ",'bytes':0,'sha256':'" SUM "'", "the file is missing");
    fails(h, "/01A20EEF-370B-70A0-99DD-E3770DD612CF/a@1.1@x", ",'bytes':0,'sha256':'" SUM "'",
          "is a file of another plan");
    close_house(h);
}

/* So many files from results of 64 each: the last step is given them all. */
static const char *give(struct house *h, uint32_t n)
{
    const char *id = house_submit(
        h, "'plan':{'steps':[" ROOT("a") "," ROOT("b") "," ROOT("c") "," ROOT("d") "," ROOT(
               "e") ",{'stepId':'f','agentId':'calc','skill':'do','task':'do f',"
                    "'dependsOn':['a','b','c','d','e']}]}");

    for (uint32_t step = 0; step < 5; step++) {
        struct buf list;
        char name[32];
        buf_init(&list, 1 << 20);
        for (uint32_t i = 0; i < 64 && n > 0; i++, n--) {
            (void)snprintf(name, sizeof name, "%c@1.1@%u", (char)('a' + step), i);
            make_file(id, name);
            buf_printf(&list, "%s%s", i == 0 ? "" : ",",
                       artifact(h, id, name, ",'bytes':0,'sha256':'" SUM "'"));
        }
        house_done(h, "calc", "'result':{'text':'x','artifacts':[%s]}", buf_cstr(&list));
        buf_done(&list);
    }
    return id;
}

static void a_step_is_given_as_many_files_as_the_limit(void **state)
{
    struct house *h = open_house();
    const char *id;

    (void)state;
    (void)give(h, LIMIT_ARTIFACTS);
    house_says(h, house_work(h, "calc", "f"), "artifacts.#=256");
    house_done(h, "calc", "'result':{'text':'x'}");
    id = give(h, LIMIT_ARTIFACTS + 1);
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id),
               "steps.5.status=failed; steps.5.error=~more than 256 artifacts");
    close_house(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_a_result_goes_to_the_next_step),
        cmocka_unit_test(a_file_that_is_not_as_the_result_says_fails_it),
        cmocka_unit_test(a_step_is_given_as_many_files_as_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files of results over the wire: stored in parts by who has the attempt, read by who was given
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "','maxRetries':0" more "}"
#define TWO "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "]}"
#define HELLO "'aGVsbG8='" /* base64 of "hello" */
#define HELLO_SUM "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

enum { MAX_BYTES = 1024 * 1024 };

static char root[64];

static struct house *open_house(void)
{
    struct engine_options opt = house_options();
    struct house *h;

    (void)snprintf(root, sizeof root, "/tmp/baton-artifacts-XXXXXX");
    assert_non_null(mkdtemp(root));
    opt.artifact_root = root;
    opt.artifact_max_bytes = MAX_BYTES;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    return h;
}

static void close_house(struct house *h)
{
    int status;
    pid_t pid;

    house_close(h);
    pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", root, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* Instance, key and attempt of the work that is out, as fields of a request. */
static const char *mine(struct house *h)
{
    const char *work = house_work(h, "calc", NULL);

    return house_text(h, "'instanceId':'%s','key':'%s','attempt':%s", h->agents[0].instance,
                      house_get(h, work, "key"), house_get(h, work, "attempt"));
}

static const char *store(struct house *h, const char *more)
{
    return house_ask(h, "artifact.store", "%s,%s", mine(h), more);
}

static void is_refused(struct house *h, const char *answer, const char *code, const char *words)
{
    house_is(h, answer, "error.code", code);
    house_has(h, answer, "error.message", words);
}

/* Ends the file; a thread makes it durable meanwhile. */
static const char *end_file(struct house *h, const char *name, uint64_t len, const char *sum)
{
    const char *fields =
        house_text(h, "'name':'%s','len':%llu,'sha256':'%s'", name, (unsigned long long)len, sum);
    const char *answer = store(h, fields);

    while (strcmp(house_get(h, answer, "ok"), "true") == 0 && house_get(h, answer, "uri") == NULL) {
        answer = store(h, fields);
    }
    return answer;
}

static void a_file_that_is_stored_is_fetched_by_the_step_that_is_given_it(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(h, TWO);
    const char *uri;

    (void)state;
    house_says(h, store(h, "'name':'f','offset':0,'bytes':" HELLO), "offset=5; uri=-");
    house_says(h, store(h, "'name':'f','offset':5,'bytes':" HELLO), "offset=10");
    /* what is there already is not stored twice */
    house_says(h, store(h, "'name':'f','offset':0,'bytes':" HELLO), "offset=10");
    is_refused(h, end_file(h, "f", 10, HELLO_SUM), "INVALID", "");
    house_says(h, store(h, "'name':'g','offset':0,'bytes':" HELLO), "offset=5");
    uri = house_get(h, end_file(h, "g", 5, HELLO_SUM), "uri");
    assert_non_null(uri);
    assert_string_equal(uri, house_text(h, "file://%s/%s/a@1.1@g", root, id));
    is_refused(h, house_ask(h, "artifact.fetch", "%s,'uri':'%s'", mine(h), uri), "UNAUTHORIZED",
               "this step was given no such artifact");
    house_done(
        h, "calc",
        "'result':{'text':'x','artifacts':[{'name':'g','uri':'%s','bytes':5,'sha256':'" HELLO_SUM
        "'}]}",
        uri);
    house_says(h, house_ok(h, "artifact.fetch", "%s,'uri':'%s'", mine(h), uri),
               "len=5; bytes=aGVsbG8=");
    house_says(h, house_ok(h, "artifact.fetch", "%s,'uri':'%s','offset':1,'limit':3", mine(h), uri),
               "len=5; bytes=ZWxs");
    house_says(h, house_ok(h, "artifact.fetch", "%s,'uri':'%s','offset':5", mine(h), uri), "len=5");
    /* Whoever sees the plan reads it. */
    house_says(h, house_ok(h, "artifact.read", "'uri':'%s'", uri),
               "type=artifact.read.ok; len=5; bytes=aGVsbG8=");
    house_says(h, house_ok(h, "artifact.read", "'uri':'%s','offset':1,'limit':3", uri),
               "len=5; bytes=ZWxs");
    house_says(h, house_ok(h, "artifact.read", "'uri':'%s','offset':4,'limit':9", uri),
               "len=5; bytes=bw==");
    house_refused(h, "GONE", "is not there any more", "artifact.read", "'uri':'%s.x'", uri);
    house_refused(h, "NOT_FOUND", "No state found", "artifact.read",
                  "'uri':'file://%s/0190F3C2-7A1B-7C3D-9E4F-0123456789AB/a@1.1@g'", root);
    house_refused(h, "UNAUTHORIZED", "", "artifact.read", "'uri':'file:///etc/passwd'");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'a'", id),
               house_text(h,
                          "artifacts.#=1; artifacts.0.stepId=a; artifacts.0.name=g; "
                          "artifacts.0.uri=%s; artifacts.0.bytes=5; artifacts.0.sha256=" HELLO_SUM,
                          uri));
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id), "artifacts.#=1");
    (void)house_as(h, "submitter");
    house_refused(h, "NOT_FOUND", "No state found", "artifact.read", "'uri':'%s'", uri);
    (void)house_as(h, NULL);
    close_house(h);
}

static void only_who_has_the_attempt_stores_its_files(void **state)
{
    static const struct {
        const char *instance, *key, *attempt, *code, *words;
    } cases[] = {
        {"0190F3C2-7A1B-7C3D-9E4F-0000000000AA", NULL, "1", "NOT_FOUND", ""},
        {"x", NULL, "1", "NOT_FOUND", ""},
        {NULL, "01A20EEF-370B-70A0-99DD-E3770DD612CF/1/a", "1", "NOT_FOUND", "no open step has"},
        {NULL, NULL, "2", "CONFLICT", "attempt 2 of"},
        {NULL, NULL, "0", "CONFLICT", "attempt 0 of"},
    };
    struct house *h = open_house();
    const char *work;

    (void)state;
    (void)house_submit(h, TWO);
    work = house_work(h, "calc", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        is_refused(h,
                   house_ask(h, "artifact.store",
                             "'instanceId':'%s','key':'%s','attempt':%s,'name':'f','offset':0,"
                             "'bytes':" HELLO,
                             cases[i].instance != NULL ? cases[i].instance : h->agents[0].instance,
                             cases[i].key != NULL ? cases[i].key : house_get(h, work, "key"),
                             cases[i].attempt),
                   cases[i].code, cases[i].words);
    }
    close_house(h);
}

static void what_is_no_part_of_a_file_is_refused_with_the_reason(void **state)
{
    static const char *const cases[][3] = {
        {"'name':'f','offset':0", "INVALID", "bytes: expected a bin value or base64 text"},
        {"'name':'f','offset':0,'bytes':7", "INVALID", "bytes: expected a bin value"},
        {"'name':'f','offset':0,'bytes':'a b'", "INVALID", "bytes: neither bin nor base64"},
        {"'name':'.f','offset':0,'bytes':" HELLO, "INVALID", "name"},
        {"'name':'a/b','offset':0,'bytes':" HELLO, "INVALID", "name"},
        {"'name':'h','len':5,'sha256':'" HELLO_SUM "'", "", ""},
    };
    struct house *h = open_house();

    (void)state;
    (void)house_submit(h, TWO);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *answer = store(h, cases[i][0]);
        if (cases[i][1][0] == 0) {
            house_says(h, answer, "offset=0; uri=-"); /* nothing of it is there: send it */
        } else {
            is_refused(h, answer, cases[i][1], cases[i][2]);
        }
    }
    close_house(h);
}

/* n bytes as base64, of which three are four letters. */
static const char *part(struct house *h, struct buf *text, uint32_t n, uint64_t offset)
{
    static const char *const ends[] = {"", "AA==", "AAA="};

    buf_clear(text);
    buf_printf(text, "%s,'name':'f','offset':%llu,'bytes':'", mine(h), (unsigned long long)offset);
    for (uint32_t i = 0; i < n / 3; i++) {
        buf_add_cstr(text, "AAAA");
    }
    buf_printf(text, "%s'", ends[n % 3]);
    return house_ask(h, "artifact.store", "%s", buf_cstr(text));
}

static void a_part_and_a_file_have_so_many_bytes(void **state)
{
    struct house *h = open_house();
    struct buf text;

    (void)state;
    buf_init(&text, 2 * 1024 * 1024);
    (void)house_submit(h, TWO);
    is_refused(h, part(h, &text, LIMIT_ARTIFACT_PART + 1, 0), "LIMIT", "at most 524288");
    house_says(h, part(h, &text, LIMIT_ARTIFACT_PART, 0), "offset=524288");
    is_refused(h, part(h, &text, LIMIT_ARTIFACT_PART, MAX_BYTES - LIMIT_ARTIFACT_PART + 1), "LIMIT",
               "at most 1048576 bytes");
    house_says(h, part(h, &text, LIMIT_ARTIFACT_PART, MAX_BYTES - LIMIT_ARTIFACT_PART),
               "offset=1048576");
    is_refused(h, end_file(h, "f", MAX_BYTES + 1, HELLO_SUM), "LIMIT", "artifacts.maxBytes");
    is_refused(h, end_file(h, "f", MAX_BYTES, HELLO_SUM), "INVALID", ""); /* another checksum */
    buf_done(&text);
    close_house(h);
}

/* What boss is asked has no files; in a search it works for the step. */
static void asked(struct house *h, const char *more, bool first, bool has_files)
{
    const char *answer;

    (void)house_submit(h,
                       "'plan':{'goal':'g','grants':['boss'],'steps':[" STEP(
                           "z", "") ",{'stepId':'a',"
                                    "'agentId':'calc','skill':'do','task':'t','maxRetries':0%s}]},'"
                                    "policy':{'searchAgent':"
                                    "'boss'}",
                       more);
    house_done(h, "calc", "'result':{'text':'x'}");
    if (!first) {
        house_answer(h, "calc", NULL,
                     has_files ? "'outcome':'failed','failure':{'code':'NOT_FOUND','message':'n',"
                                 "'retryable':false}"
                               : "'outcome':'completed','result':{'text':'x'}");
    }
    answer =
        house_ask(h, "artifact.store",
                  "'instanceId':'%s','key':'%s','attempt':%s,'name':'f','offset':0,'bytes':" HELLO,
                  h->agents[1].instance, house_get(h, house_work(h, "boss", NULL), "key"),
                  house_get(h, house_work(h, "boss", NULL), "attempt"));
    if (has_files) {
        house_says(h, answer, "ok=true; offset=5");
    } else {
        is_refused(h, answer, "INVALID", "an answer to a question has no files");
    }
}

static void an_answer_to_a_question_has_no_files(void **state)
{
    static const struct {
        const char *more;
        bool first, has_files;
    } cases[] = {{",'gate':'boss'", true, false},
                 {",'verifyWith':'boss'", false, false},
                 {",'parameters':{'path':'x'}", false, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct house *h = open_house();
        house_join_as(h, "boss", 1,
                      "'skills':[{'id':'gate','description':'G'},{'id':'verify','description':"
                      "'V'},{'id':'search','description':'F'}]",
                      "");
        asked(h, cases[i].more, cases[i].first, cases[i].has_files);
        close_house(h);
    }
}

/* The result of a step with so many artifacts, which are no files. */
static void done_with(struct house *h, uint32_t n)
{
    struct buf text;

    buf_init(&text, 1024 * 1024);
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&text, "%s{'name':'n%u'}", i == 0 ? "" : ",", i);
    }
    house_done(h, "calc", "'result':{'text':'x','artifacts':[%s]}", buf_cstr(&text));
    buf_done(&text);
}

/* Sixteen steps: 64 artifacts of each is the most that a result has. */
static void a_list_of_artifacts_has_a_thousand_and_says_when_there_are_more(void **state)
{
    struct house *h = open_house();
    struct buf plan;

    (void)state;
    buf_init(&plan, 64 * 1024);
    for (int i = 0; i < 16; i++) {
        buf_printf(&plan, "%s" STEP("s%02d", ""), i == 0 ? "" : ",", i, i);
    }
    for (uint32_t more = 0; more < 2; more++) {
        const char *id = house_submit(h, "'plan':{'goal':'g','steps':[%s]}", buf_cstr(&plan));
        const char *all;
        house_says(h, store(h, "'name':'f','offset':0,'bytes':" HELLO), "offset=5");
        for (int i = 0; i < 15; i++) {
            done_with(h, 64);
        }
        done_with(h, 40 + more);
        all = house_ok(h, "plan.result", "'planId':'%s'", id);
        house_says(h, all,
                   "artifacts.#=1000; artifacts.0.stepId=s00; artifacts.0.name=n0; "
                   "artifacts.63.name=n63; artifacts.64.stepId=s01; artifacts.999.stepId=s15; "
                   "artifacts.999.name=n39; artifacts.0.bytes=-; artifacts.0.uri=-");
        house_is(h, all, "truncated", more == 0 ? NULL : "true");
        house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'s15'", id),
                   more == 0 ? "artifacts.#=40; artifacts.0.name=n0; truncated=-"
                             : "artifacts.#=41; artifacts.40.name=n40; truncated=-");
    }
    buf_done(&plan);
    close_house(h);
}

/* All steps of a plan without a directory cost one look; a step is asked in any case. */
static void a_plan_without_a_directory_lists_no_files(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(h, TWO);

    (void)state;
    house_done(h, "calc",
               "'result':{'text':'x','artifacts':[{'name':'words','mediaType':'text/plain'}]}");
    house_done(h, "calc", "'result':{'text':'x','artifacts':'none'}");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s'", id), "artifacts.#=-");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'a'", id),
               "artifacts.#=1; artifacts.0.mediaType=text/plain");
    house_says(h, house_ok(h, "plan.result", "'planId':'%s','stepId':'b'", id), "artifacts.#=-");
    close_house(h);
}

static void a_result_that_cannot_be_read_is_no_empty_list(void **state)
{
    struct house *h = open_house();
    const char *id = house_submit(h, TWO);
    uint32_t refused = 0;

    (void)state;
    house_says(h, store(h, "'name':'f','offset':0,'bytes':" HELLO), "offset=5");
    done_with(h, 1);
    done_with(h, 1);
    for (uint32_t n = 1; n < 12; n++) {
        const char *answer;
        house_fail_read(h, n);
        answer = house_ask(h, "plan.result", "'planId':'%s'", id);
        house_fail_read(h, 0);
        if (answer == NULL || strcmp(house_get(h, answer, "ok"), "true") != 0) {
            refused++;
        } else {
            house_is(h, answer, "artifacts.#", "2");
        }
    }
    assert_true(refused > 1);
    close_house(h);
}

/* A lost connection leaves the attempt with its instance: a file goes on meanwhile. */
static void a_file_goes_on_while_the_reply_is_lost(void **state)
{
    struct house *h = open_house();
    const char *who;

    (void)state;
    (void)house_submit(h, TWO);
    who = mine(h);
    h->agents[0].deaf = true;
    house_hang_up(h, "calc", true);
    house_says(h, house_ok(h, "artifact.store", "%s,'name':'f','offset':0,'bytes':" HELLO, who),
               "offset=5");
    close_house(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_stored_is_fetched_by_the_step_that_is_given_it),
        cmocka_unit_test(only_who_has_the_attempt_stores_its_files),
        cmocka_unit_test(what_is_no_part_of_a_file_is_refused_with_the_reason),
        cmocka_unit_test(a_part_and_a_file_have_so_many_bytes),
        cmocka_unit_test(an_answer_to_a_question_has_no_files),
        cmocka_unit_test(a_list_of_artifacts_has_a_thousand_and_says_when_there_are_more),
        cmocka_unit_test(a_plan_without_a_directory_lists_no_files),
        cmocka_unit_test(a_result_that_cannot_be_read_is_no_empty_list),
        cmocka_unit_test(a_file_goes_on_while_the_reply_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

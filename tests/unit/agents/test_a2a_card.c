/* The card of an A2A agent, its skills, the settings, and files of tasks. The test takes the skills
 * in the place of the SDK. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/heap.h"
#include "tests/support/tree.h"
#include "tests/unit/agents/a2a_world.h"

enum { SHOWN = 4096 };

/* Each skill as a line. */
static char skills[LIMIT_SKILLS * 64 + SHOWN];
static struct bt_error err;

enum bt_code bt_agent_add_skill(struct bt_agent_init *init, const struct bt_skill *skill,
                                struct bt_error *e)
{
    (void)init;
    (void)e;
    (void)snprintf(skills + strlen(skills), sizeof skills - strlen(skills),
                   "%s|%s|%.60s|%s|%s|%s\n", skill->id, skill->name != NULL ? skill->name : "-",
                   skill->description, skill->effects,
                   skill->tags[0] != NULL ? skill->tags[0] : "-",
                   skill->examples[0] != NULL ? skill->examples[0] : "-");
    assert_true(skill->run == a2a_run);
    assert_int_equal(skill->max_ms, a2a_used()->settings->timeout_ms);
    return BT_OK;
}

#define HERE                                                                                       \
    "'supportedInterfaces':[{'url':'$/rpc','protocolBinding':'JSONRPC','protocolVersion':'1.0'}]"
#define SKILLS                                                                                     \
    "'skills':[{'id':'do it','name':'Do','description':'Does "                                     \
    "it.','tags':['','t'],'examples':['e']}]"

static enum bt_code read_card(const char *members, const char *card)
{
    enum bt_code code;
    char *text = strdup(service_text(card));

    a2a_use(true, false, members);
    a2a_used()->n_skills = 0;
    a2a_used()->modern = false;
    skills[0] = 0;
    err = (struct bt_error){.msg = ""};
    service_forget();
    service_at("/.well-known/agent-card.json", 200, "", text);
    code = a2a_card_read(a2a_used(), NULL, &err);
    free(text);
    return code;
}

static void says(const char *part)
{
    if (strstr(err.msg, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    }
}

static void the_first_interface_that_is_known_is_used(void **state)
{
    static const struct {
        const char *card, *path;
        bool modern, streaming;
    } rows[] = {
        {HERE ",'capabilities':{'streaming':true}", "/rpc", true, true},
        {HERE ",'capabilities':{'streaming':1}", "/rpc", true, false},
        {HERE ",'capabilities':{}", "/rpc", true, false},
        {"'supportedInterfaces':[{'url':'$/g','protocolBinding':'GRPC','protocolVersion':'1.0'},"
         "{'url':'$/old','protocolBinding':'JSONRPC','protocolVersion':'0.3.0'},"
         "{'url':'$/new','protocolBinding':'JSONRPC','protocolVersion':'1'}]",
         "/new", true, false},
        {"'supportedInterfaces':[{'url':'$/x','protocolBinding':'JSONRPC','protocolVersion':'2.0'},"
         "{'url':'$/a','protocolBinding':'JSONRPC','protocolVersion':'0.2'},"
         "{'url':'$/b','protocolBinding':'JSONRPC','protocolVersion':'0.3'}]",
         "/a", false, false},
        {"'url':'$/u'", "/u", false, false},
        {"'url':'$/u','preferredTransport':'JSONRPC'", "/u", false, false},
        {"'url':'/relative'", "/relative", false, false},
        {"'url':'$/g','preferredTransport':'GRPC','additionalInterfaces':[{'url':'$/h','transport':"
         "'HTTP+JSON'},{'url':'$/j','transport':'JSONRPC'}]",
         "/j", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char card[1024];
        (void)snprintf(card, sizeof card, "{%s," SKILLS "}", rows[i].card);
        if (read_card("", card) != BT_OK) {
            fail_msg("%s: %s", rows[i].card, err.msg);
        }
        assert_string_equal(a2a_used()->endpoint + strlen(service_url()), rows[i].path);
        assert_true(a2a_used()->modern == rows[i].modern);
        assert_true(a2a_used()->streaming == rows[i].streaming);
    }
}

static void a_card_without_an_interface_or_skills_is_refused(void **state)
{
    static const char *const rows[][2] = {
        {"{" SKILLS "}", "the card offers no interface of JSON-RPC in protocol 1.0 or 0.3"},
        {"{'url':'$','preferredTransport':'GRPC'," SKILLS "}", "no interface of JSON-RPC"},
        {"{'url':''," SKILLS "}", "no interface of JSON-RPC"},
        {"{'url':'http://10.0.0.1/'," SKILLS "}",
         "the card's interface: 'http://10.0.0.1/': http only"},
        {"{'url':'https://elsewhere.example/'," SKILLS "}", "is not in baseUrl or allowHosts"},
        {"{" HERE "}", "the card has no skill"},
        {"{" HERE ",'skills':[]}", "the card has no skill"},
        {"{" HERE ",'skills':{}}", "the card has no skill"},
        {"{" HERE ",'skills':[{'name':'x'}]}", "a skill of the card has no id"},
        {"no card", "the card of the agent: "},
        {"[]", "no interface"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_not_equal(read_card("", rows[i][0]), BT_OK);
        says(rows[i][1]);
    }
    assert_int_equal(read_card(",'skills':['other']", "{" HERE "," SKILLS "}"), BT_INVALID);
    says("the card has no skill that fits skills");
}

static void skills_of_the_card_become_ours(void **state)
{
    (void)state;
    assert_int_equal(
        read_card(",'effects':{'read*':'none','w':'idempotent'},'timeoutMs':77",
                  "{" HERE ",'skills':[{'id':'do it','name':'Do','description':'Does "
                  "it.','tags':['','t','u'],'examples':['e']},{'id':'read-x','name':'N'},"
                  "{'id':'w','tags':'no'}]}"),
        BT_OK);
    assert_string_equal(skills, "do_it|Do|Does it.|unsafe|t|e\n"
                                "read-x|N|N|none|-|-\n"
                                "w|-|w|idempotent|-|-\n");
    assert_int_equal(a2a_used()->n_skills, 3);
    assert_string_equal(a2a_used()->skills[0].id, "do_it");
    assert_string_equal(a2a_used()->skills[0].remote, "do it");
    assert_true(a2a_used()->skills[0].unsafe);
    assert_false(a2a_used()->skills[1].unsafe);
    assert_false(a2a_used()->skills[2].unsafe);
    assert_int_equal(read_card(",'skills':['x*','w']",
                               "{" HERE ",'skills':[{'id':'a'},{'id':'xy'},{'id':'w'}]}"),
                     BT_OK);
    assert_string_equal(skills, "xy|-|xy|unsafe|-|-\nw|-|w|unsafe|-|-\n");
}

static void there_are_at_most_64_skills(void **state)
{
    (void)state;
    for (int n = LIMIT_SKILLS; n <= LIMIT_SKILLS + 1; n++) {
        char card[8192] = "{" HERE ",'skills':[";
        for (int i = 0; i < n; i++) {
            (void)snprintf(card + strlen(card), 32, "%s{'id':'s%d'}", i > 0 ? "," : "", i);
        }
        (void)snprintf(card + strlen(card), 4, "]}");
        assert_int_equal(read_card("", card), n == LIMIT_SKILLS ? BT_OK : BT_LIMIT);
    }
    says("the card has more than 64 skills; choose some: skills: [\"report*\"]");
}

static enum bt_code fetch_from(const char *url)
{
    char settings[128];

    (void)snprintf(settings, sizeof settings, ",'agentId':'x'");
    a2a_use(true, false, settings);
    a2a_used()->n_skills = 0;
    a2a_used()->settings->url = url;
    err = (struct bt_error){.msg = ""};
    return a2a_card_read(a2a_used(), NULL, &err);
}

static void the_card_is_where_it_is_known_to_be(void **state)
{
    char *card = strdup(service_text("{" HERE "," SKILLS "}"));
    char url[128];

    (void)state;
    service_next(200, "", card);
    (void)snprintf(url, sizeof url, "%s/there/card.json", service_url());
    assert_int_equal(fetch_from(url), BT_OK);
    service_expect(0, "GET /there/card.json HTTP/1.1\r\n");
    service_expect(0, "\r\nA2A-Version: 1.0\r\n");
    service_next(404, "", "");
    assert_int_equal(fetch_from(url), BT_NOT_FOUND);
    says("/there/card.json: status 404, no card of an agent");
    assert_int_equal(service_count(), 2);
    service_next(404, "", "");
    service_next(200, "", card);
    (void)snprintf(url, sizeof url, "%s/a/", service_url());
    assert_int_equal(fetch_from(url), BT_OK);
    service_expect(2, "GET /a/.well-known/agent-card.json ");
    service_expect(3, "GET /a/.well-known/agent.json ");
    url[strlen(url) - 1] = 0;
    service_next(200, "", card);
    assert_int_equal(fetch_from(url), BT_OK);
    service_expect(4, "GET /a/.well-known/agent-card.json ");
    service_next(404, "", "");
    service_next(410, "", "");
    assert_int_equal(fetch_from(url), BT_NOT_FOUND);
    says("/a has no card of an A2A agent (/.well-known/agent-card.json: status 410)");
    service_next(401, "", "");
    assert_int_equal(fetch_from(url), BT_UNAUTHORIZED);
    says("status 401; set bearer or headers");
    service_next(403, "", "");
    assert_int_equal(fetch_from(url), BT_UNAUTHORIZED);
    service_raw(STR_LIT(""), SERVICE_CLOSES);
    assert_int_equal(fetch_from(url), BT_UNAVAILABLE);
    free(card);
}

/* ---- settings ---- */

static void wrong_settings_are_named(void **state)
{
    static const char *const rows[][2] = {
        {"{}", "url: is missing"},
        {"{'url':'ftp://x'}", "url: expected https:// or http://"},
        {"{'url':'http://example.org'}", "url: http only to this machine"},
        {"{'url':'$','allowHttp':1}", "allowHttp: expected true or false"},
        {"{'uri':'$'}", "did you mean 'url'?"},
        {"{'url':'$','agentId':1}", "agentId: expected a text"},
        {"{'url':'$','headers':{'a':1}}", "headers.a: expected a text"},
        {"{'url':'$','bearer':'x'}", "bearer: a secret does not stand in settings"},
        {"{'url':'$','skills':1}", "skills: expected a list of at most 64 texts"},
        {"{'url':'$','effects':{'a':'some'}}", "effects.a: expected one of none"},
        {"{'url':'$','timeoutMs':0}", "timeoutMs: expected a number from 1 to 86400000"},
        {"{'url':'$','timeoutMs':86400001}", "timeoutMs: expected a number from 1 to 86400000"},
        {"{'url':'$','allowHosts':1}", "allowHosts"},
        {"{", "line 1"},
    };
    static const char *const good[] = {"{'url':'$','timeoutMs':1}",
                                       "{'url':'$','timeoutMs':86400000}",
                                       "{'url':'http://example.org','allowHttp':true}"};
    struct a2a_settings *s = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_not_equal(a2a_settings_read(service_text(rows[i][0]), &s, &err), BT_OK);
        assert_null(s);
        says(rows[i][1]);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(a2a_settings_read(service_text(good[i]), &s, &err), BT_OK);
        a2a_settings_free(s);
        s = NULL;
    }
    assert_int_equal(a2a_settings_read(service_text("{'url':'$','agentId':'me'}"), &s, &err),
                     BT_OK);
    assert_int_equal(s->timeout_ms, 300000);
    assert_string_equal(s->agent_id, "me");
    assert_null(s->bearer);
    assert_null(s->skills);
    a2a_settings_free(s);
    a2a_settings_free(NULL);
}

/* ---- files ---- */

#define PLAN "00000000-0000-7000-8000-000000000000"

static void files_of_a_task_are_files_of_the_plan(void **state)
{
    char dir[] = "/tmp/baton-a2a-XXXXXX";
    char path[256];
    struct buf json;
    const char *reply;
    static const char *const names[] = {"table_one.csv", "2-_.._b", "file-3.pdf", "file-4.bin",
                                        "5-x"};

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/artifacts", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/artifacts/" PLAN, dir);
    assert_int_equal(mkdir(path, 0700), 0);
    a2a_use(true, false, "");
    a2a_next(
        "{'message':{'parts':["
        "{'raw':'YSxi','filename':'table one.csv','mediaType':'text/csv'},"
        "{'file':{'bytes':'YQ==','name':'/../b','mimeType':'text/plain'}},"
        "{'raw':'','mediaType':'application/pdf'},{'raw':'YQ=='},{'raw':'YQ==','filename':'x'}]}}");
    buf_init(&json, 4096);
    buf_printf(&json, "{\"artifactDir\":\"%s\",\"task\":\"t\"}", path);
    reply = steps_run(steps_make("read", buf_cstr(&json)), a2a_run, a2a_used());
    a2a_says(reply, "'outcome':'completed'");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char want[64];
        (void)snprintf(want, sizeof want, "'name':'%s'", names[i]);
        a2a_says(reply, want);
    }
    a2a_says(reply, "'mediaType':'text/csv'");
    a2a_says(reply, "'bytes':3");
    a2a_next("{'message':{'parts':[{'raw':'','filename':'a-b_9.Z'}]}}");
    reply = steps_run(steps_make("read", buf_cstr(&json)), a2a_run, a2a_used());
    a2a_says(reply, "'name':'a-b_9.Z'");
    (void)snprintf(path, sizeof path, "{'message':{'parts':[{'raw':'','filename':'%060d'}]}}", 0);
    a2a_next(path);
    reply = steps_run(steps_make("read", buf_cstr(&json)), a2a_run, a2a_used());
    (void)snprintf(path, sizeof path, "'name':'%049d'", 0);
    a2a_says(reply, path); /* a name that an artifact may have, with a number before it */
    a2a_next("{'message':{'parts':[{'raw':'no base64!','filename':'x'}]}}");
    reply = steps_run(steps_make("read", buf_cstr(&json)), a2a_run, a2a_used());
    steps_expect(reply, "the file 'x' of the agent: ");
    a2a_next("{'message':{'parts':[{'raw':'YQ==','filename':'x'}]}}");
    reply = a2a_do("read", "{}"); /* a plan without a place for files */
    a2a_says(reply, "'outcome':'failed'");
    buf_done(&json);
    assert_int_equal(tree_drop(dir), 0);
}

static void the_ending_of_a_file_is_that_of_its_type(void **state)
{
    static const char *const types[][2] = {{"text/plain", "file-1.txt"},
                                           {"text/csv", "file-1.csv"},
                                           {"text/html", "file-1.html"},
                                           {"text/markdown", "file-1.md"},
                                           {"image/png", "file-1.png"},
                                           {"image/jpeg", "file-1.jpg"},
                                           {"application/json", "file-1.json"},
                                           {"application/pdf", "file-1.pdf"},
                                           {"a/b", "file-1.bin"},
                                           {"", "file-1.bin"}};

    (void)state;
    a2a_use(true, false, "");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char result[128];
        char want[64];
        (void)snprintf(result, sizeof result, "{'message':{'parts':[{'raw':'','mediaType':'%s'}]}}",
                       types[i][0]);
        a2a_next(result);
        (void)snprintf(want, sizeof want, "the file '%s' of the agent: ", types[i][1]);
        steps_expect(a2a_do("read", "{}"), want); /* no place for it: the name is in the error */
    }
}

static void read_and_free(void *self)
{
    struct a2a_settings *s = NULL;

    (void)self;
    assert_int_equal(read_card("", "{" HERE "," SKILLS "}"), BT_OK);
    assert_int_equal(read_card("", "{" HERE "}"), BT_INVALID);
    assert_int_equal(a2a_settings_read("{\"url\":1}", &s, &err), BT_INVALID);
    service_forget();
}

static void a_card_is_given_back(void **state)
{
    (void)state;
    heap_is_given_back(read_and_free, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, a2a_begin)
    const struct CMUnitTest tests[] = {
        TEST(the_first_interface_that_is_known_is_used),
        TEST(a_card_without_an_interface_or_skills_is_refused),
        TEST(skills_of_the_card_become_ours),
        TEST(there_are_at_most_64_skills),
        TEST(the_card_is_where_it_is_known_to_be),
        TEST(wrong_settings_are_named),
        TEST(files_of_a_task_are_files_of_the_plan),
        TEST(the_ending_of_a_file_is_that_of_its_type),
        TEST(a_card_is_given_back),
    };

    return cmocka_run_group_tests(tests, a2a_start, a2a_stop);
}

/* The settings of the http agent: what is read, what is refused, and operations of OpenAPI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "tests/support/heap.h"
#include "tests/unit/agents/http_world.h"

#define SERVICE "'baseUrl':'$'"
#define X "'actions':[{'id':'x','description':'d','path':'/x'}]"
#define ACTION(members) SERVICE ",'actions':[{'id':'x','description':'d','path':'/x'," members "}]"

static char spec_path[] = "/tmp/baton-spec-XXXXXX";

static void reads(const char *settings)
{
    struct http_settings *s = NULL;
    struct bt_error err = {.msg = ""};
    char text[8192];

    (void)snprintf(text, sizeof text, "{%s}", settings);
    if (http_settings_read(service_text(text), &s, &err) != BT_OK) {
        fail_msg("%s: %s", settings, err.msg);
    }
    http_settings_free(s);
}

static void refuses_as(enum bt_code as, const char *settings, const char *says)
{
    struct http_settings *s = NULL;
    struct bt_error err = {.msg = ""};
    char text[8192];
    enum bt_code code;

    (void)snprintf(text, sizeof text, "{%s}", settings);
    code = http_settings_read(service_text(text), &s, &err);
    if (code != as || strstr(err.msg, says) == NULL) {
        fail_msg("%s: %s \"%s\", not \"%s\"", settings, bt_code_name(code), err.msg, says);
    }
    assert_null(s);
}

static void refuses(const char *settings, const char *says)
{
    refuses_as(BT_INVALID, settings, says);
}

static void mistakes_are_named_with_their_place(void **state)
{
    static const char *const rows[][2] = {
        {"'x':1," SERVICE, "unknown member 'x'"},
        {X, "baseUrl: is missing"},
        {"'baseUrl':'ftp://x'," X, "baseUrl: expected https:// or http://"},
        {"'baseUrl':'http://example.org'," X, "baseUrl: http only to this machine"},
        {"'allowHttp':1," SERVICE "," X, "allowHttp: expected true or false"},
        {SERVICE, "give actions, or openapi with a file that has operations"},
        {SERVICE ",'actions':[]", "give actions, or openapi"},
        {SERVICE ",'actions':{}", "actions: expected a list of at most 64 actions"},
        {SERVICE ",'actions':[7]", "actions[0]: expected an object"},
        {SERVICE ",'agentId':7," X, "agentId: expected a text"},
        {SERVICE ",'timeoutMs':0," X, "timeoutMs: expected a number from 1 to 3600000"},
        {SERVICE ",'timeoutMs':3600001," X, "timeoutMs: expected a number from 1 to 3600000"},
        {SERVICE ",'maxBytes':0," X, "maxBytes: expected a number from 1 to 67108864"},
        {SERVICE ",'maxBytes':67108865," X, "maxBytes: expected a number from 1 to 67108864"},
        {SERVICE ",'retries':11," X, "retries: expected a number from 0 to 10"},
        {SERVICE ",'rate':7," X, "rate: expected an object"},
        {SERVICE ",'rate':{'x':7}," X, "rate: unknown member 'x'"},
        {SERVICE ",'rate':{}," X, "rate: n: is missing; requests within perMs (1000 by default)"},
        {SERVICE ",'rate':{'n':0}," X, "rate: n: expected a number from 1 to 1000"},
        {SERVICE ",'rate':{'n':1001}," X, "rate: n: expected a number from 1 to 1000"},
        {SERVICE ",'rate':{'n':1,'perMs':0}," X, "rate: perMs: expected a number from 1"},
        {SERVICE ",'rate':{'n':1,'perMs':3600001}," X, "rate: perMs: expected a number from 1"},
        {SERVICE ",'headers':[]," X, "headers: expected an object of at most 32 texts"},
        {SERVICE ",'headers':{'A':1}," X, "headers.A: expected a text"},
        {SERVICE ",'headers':{'A b':'x'}," X, "headers: 'A b' is no name of a header"},
        {SERVICE ",'headers':{'Host':'x'}," X, "headers: the header Host is the client's own"},
        {SERVICE ",'auth':7," X, "auth: expected an object"},
        {SERVICE ",'auth':{}," X, "auth: expected one of bearer, basic, header, oauth2"},
        {SERVICE ",'auth':{'bearer':{'env':'K'},'basic':{}}," X, "auth: expected one of bearer"},
        {SERVICE ",'auth':{'x':1}," X, "auth: unknown member 'x'"},
        {SERVICE ",'auth':{'bearer':'in clear'}," X, "auth: bearer: a secret does not stand in"},
        {SERVICE ",'auth':{'basic':{'x':1}}," X, "auth: basic: unknown member 'x'"},
        {SERVICE ",'auth':{'basic':{'password':{'env':'K'}}}," X, "auth: basic: user: is missing"},
        {SERVICE ",'auth':{'basic':{'user':'u'}}," X, "auth: basic: password: is missing"},
        {SERVICE ",'auth':{'header':{'x':1}}," X, "auth: header: unknown member 'x'"},
        {SERVICE ",'auth':{'header':{'value':{'env':'K'}}}," X, "auth: header: name: is missing"},
        {SERVICE ",'auth':{'header':{'name':'n','prefix':7}}," X, "auth: header: prefix: expected"},
        {SERVICE ",'auth':{'header':{'name':'n'}}," X, "auth: header: value: is missing"},
        {SERVICE ",'auth':{'oauth2':{'x':1}}," X, "auth: oauth2: unknown member 'x'"},
        {SERVICE ",'auth':{'oauth2':{}}," X, "auth: oauth2: tokenUrl: is missing"},
        {SERVICE ",'auth':{'oauth2':{'tokenUrl':'http://example.org'}}," X,
         "auth: oauth2: tokenUrl: http only to this machine"},
        {SERVICE ",'auth':{'oauth2':{'tokenUrl':'$'}}," X, "oauth2: clientId: is missing"},
        {SERVICE ",'auth':{'oauth2':{'tokenUrl':'$','clientId':'c'}}," X,
         "clientSecret: is missing"},
        {SERVICE ",'auth':{'oauth2':{'tokenUrl':'$','clientId':'c','scope':1}}," X,
         "scope: expected"},
        {SERVICE ",'auth':{'oauth2':{'tokenUrl':'$','clientId':'c','audience':1}}," X,
         "audience: "},
        {SERVICE ",'auth':{'oauth2':{'tokenUrl':'$','clientId':'c','inBody':1}}," X,
         "inBody: expected true or false"},
        {SERVICE ",'allowPrivate':['10.0.0.0/33']," X, "allowPrivate[0]"},
        {SERVICE ",'openapi':7," X, "openapi: expected an object"},
        {SERVICE ",'openapi':{'x':1}", "openapi: unknown member 'x'"},
        {SERVICE ",'openapi':{}", "openapi: file: is missing"},
        {SERVICE ",'openapi':{'file':'/none','operations':7}",
         "openapi: operations: expected a list"},
        {SERVICE ",'openapi':{'file':'/no/such'}", "openapi: '/no/such': No such file"},
        {SERVICE ",'openapi':{'file':'/'}",
         "openapi: '/': cannot be read, or has more than 16777216"},
        {SERVICE ",'openapi':{'file':'/dev/null'}", "openapi: /dev/null (as JSON): "},
    };

    (void)state;
    assert_int_equal(setenv("K", "a-key", 1), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        refuses(rows[i][0], rows[i][1]);
    }
}

static void mistakes_of_an_action_are_named_with_their_place(void **state)
{
    static const char *const rows[][2] = {
        {ACTION("'metod':'PUT'"), "actions[0]: unknown member 'metod'; did you mean 'method'?"},
        {SERVICE ",'actions':[{'description':'d','path':'/x'}]", "actions[0]: id: is missing"},
        {SERVICE ",'actions':[{'id':'x','path':'/x'}]", "actions[0]: description: is missing"},
        {SERVICE ",'actions':[{'id':'x','description':'d'}]", "actions[0]: path: is missing"},
        {SERVICE ",'actions':[{'id':'x','description':'d','path':'x'}]",
         "actions[0]: path: expected a path from /, as /issues/{id}; the host is baseUrl's"},
        {SERVICE ",'actions':[{'id':'x','description':'d','path':'/{a b}'}]", "expected {name}"},
        {ACTION("'name':7"), "name: expected a text"},
        {ACTION("'effects':7"), "effects: expected a text"},
        {ACTION("'idempotencyHeader':7"), "idempotencyHeader: expected a text"},
        {ACTION("'tags':7"), "tags: expected a list of at most 64 texts"},
        {ACTION("'examples':[1]"), "examples[0]: expected a text"},
        {ACTION("'method':'TRACE'"), "method: expected one of GET, POST, PUT, PATCH, DELETE, HEAD"},
        {ACTION("'query':7"), "query: expected an object of at most 64 members"},
        {ACTION("'query':{'a':{}}"), "query.a: expected a text"},
        {ACTION("'query':{'a':'{b c}'}"), "expected {name}"},
        {ACTION("'headers':{'a':[]}"), "headers.a: expected a text"},
        {ACTION("'headers':{'Te':'x'}"), "headers: the header Te is the client's own"},
        {ACTION("'method':'POST','form':7"), "form: expected an object"},
        {ACTION("'method':'POST','form':{},'body':{}"), "give body or form, not both"},
        {ACTION("'body':{}"), "body: GET has none; use query, or another method"},
        {ACTION("'form':{}"), "body: GET has none"},
        {ACTION("'method':'HEAD','body':{}"), "body: HEAD has none"},
        {ACTION("'result':7"), "result: expected a JSON pointer, or an object of them"},
        {ACTION("'result':'items'"), "result: "},
        {ACTION("'result':{'a':'items'}"), "result.a: "},
        {ACTION("'result':{'a':7}"), "result.a: expected a text"},
        {ACTION("'fields':{'a':'x'}"), "fields.a: "},
        {ACTION("'fields':[]"), "fields: expected an object"},
        {ACTION("'pages':{'next':'link'},'result':'/x'"),
         "result: an action with pages has the list"},
        {ACTION("'pages':{'next':'link'},'result':{'a':'/x'}"), "result: an action with pages"},
        {ACTION("'pages':7"), "pages: expected an object"},
        {ACTION("'pages':{'x':1}"), "pages: unknown member 'x'"},
        {ACTION("'pages':{}"),
         "pages: give one of next (\"link\" or a JSON pointer), cursor, page"},
        {ACTION("'pages':{'next':'link','page':'p'}"),
         "pages: give one of next, cursor, page, offset"},
        {ACTION("'pages':{'cursor':'/c'}"), "pages: param: is missing; the query parameter of the"},
        {ACTION("'pages':{'next':'c'}"), "pages: "},
        {ACTION("'pages':{'cursor':'c','param':'p'}"), "pages: "},
        {ACTION("'pages':{'page':7}"), "pages: page: expected a text"},
        {ACTION("'pages':{'offset':''}"), "pages: offset: expected a text"},
        {ACTION("'pages':{'param':7,'page':'p'}"), "pages: param: expected a text"},
        {ACTION("'pages':{'next':'link','items':7}"), "pages: items: "},
        {ACTION("'pages':{'next':'link','items':'x'}"), "pages: items: "},
        {ACTION("'pages':{'page':'p','first':-1}"), "pages: first: expected a number from 0 to"},
        {ACTION("'pages':{'page':'p','max':0}"), "pages: max: expected a number from 1 to 1000"},
        {ACTION("'pages':{'page':'p','max':1001}"), "pages: max: expected a number from 0 to 1000"},
        {ACTION("'output':'xml'"), "output: expected one of auto, json, text, artifact"},
        {ACTION("'output':'text','result':'/x'"), "output: text has no result, fields or pages"},
        {ACTION("'output':'text','result':{'a':'/x'}"), "output: text has no result"},
        {ACTION("'output':'artifact','fields':{'a':'/x'}"), "output: artifact has no result"},
        {ACTION("'output':'artifact','pages':{'next':'link'}"), "output: artifact has no result"},
        {ACTION("'timeoutMs':0"), "timeoutMs: expected a number from 1 to 3600000"},
        {ACTION("'timeoutMs':3600001"), "timeoutMs: expected a number from 1 to 3600000"},
        {ACTION("'inputSchema':7"), "inputSchema: expected an object"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        refuses(rows[i][0], rows[i][1]);
    }
}

static void the_most_of_each_number_and_list_is_taken(void **state)
{
    static const char *const rows[] = {
        SERVICE ",'timeoutMs':1," X,
        SERVICE ",'timeoutMs':3600000," X,
        SERVICE ",'maxBytes':1," X,
        SERVICE ",'maxBytes':67108864," X,
        SERVICE ",'retries':0," X,
        SERVICE ",'retries':10," X,
        SERVICE ",'rate':{'n':1,'perMs':1}," X,
        SERVICE ",'rate':{'n':1000,'perMs':3600000}," X,
        ACTION("'timeoutMs':1"),
        ACTION("'timeoutMs':3600000"),
        ACTION("'pages':{'page':'p','max':1}"),
        ACTION("'pages':{'page':'p','max':1000,'first':4294967295}"),
        ACTION("'output':'json','result':'/x','fields':{'a':'/b'}"),
        ACTION("'output':'auto','pages':{'next':'/n','items':''}"),
        "'baseUrl':'http://example.org','allowHttp':true,'allowHosts':['a.example:1']," X,
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        reads(rows[i]);
    }
    for (int which = 0; which < 4; which++) {
        static const struct {
            const char *before, *each, *after, *says;
            int most;
        } lists[] = {{SERVICE "," X ",'headers':{", "'A%d':'x'", "}", "at most 32 texts", 32},
                     {SERVICE ",'actions':[", "{'id':'a%d','description':'d','path':'/'}", "]",
                      "actions: expected a list of at most 64 actions", 64},
                     {SERVICE ",'actions':[{'id':'x','description':'d','path':'/','query':{",
                      "'a%d':'x'", "}}]", "query: expected an object of at most 64 members", 64},
                     {SERVICE ",'actions':[{'id':'x','description':'d','path':'/','tags':[",
                      "'a%d'", "]}]", "tags: expected a list of at most 64 texts", 64}};
        for (int n = lists[which].most; n <= lists[which].most + 1; n++) {
            char text[6000];
            (void)snprintf(text, sizeof text, "%s", lists[which].before);
            for (int i = 0; i < n; i++) {
                char one[80];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                (void)snprintf(one, sizeof one, lists[which].each, i);
#pragma GCC diagnostic pop
                (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                               i > 0 ? "," : "", one);
            }
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                           lists[which].after);
            if (n == lists[which].most) {
                reads(text);
            } else {
                refuses(text, lists[which].says);
            }
        }
    }
}

static void what_is_not_given_has_a_value(void **state)
{
    const struct http_settings *s;
    struct http_settings *slashes = NULL;
    struct bt_error err;

    (void)state;
    assert_int_equal(http_settings_read(service_text("{'baseUrl':'$//'," X "}"), &slashes, &err),
                     BT_OK);
    assert_string_equal(slashes->base_url, service_url());
    http_settings_free(slashes);
    http_use(X);
    s = http_used();
    assert_int_equal(s->timeout_ms, 30000);
    assert_int_equal(s->max_bytes, LIMIT_RESULT_BYTES * 4);
    assert_int_equal(s->retries, 2);
    assert_int_equal(s->rate.n, 0);
    assert_int_equal(s->auth.kind, HTTP_AUTH_NONE);
    assert_null(s->agent_id);
    assert_int_equal(s->n, 1);
    assert_string_equal(s->actions[0].method, "GET");
    assert_string_equal(s->actions[0].effects, "none");
    assert_int_equal(s->actions[0].output, HTTP_OUT_AUTO);
    assert_int_equal(s->actions[0].timeout_ms, 0);
    assert_int_equal(s->actions[0].pages.kind, HTTP_PAGES_NONE);
    assert_null(s->actions[0].key_header);
    http_use("'agentId':'me','rate':{'n':3},'actions':["
             "{'id':'a','description':'da','path':'/a','method':'PUT','name':'na','tags':['t'],"
             "'examples':['e','f'],'timeoutMs':5,'pages':{'page':'p'}},"
             "{'id':'b','description':'db','path':'/b','method':'DELETE','pages':{'offset':'o'}},"
             "{'id':'c','description':'dc','path':'/c','method':'HEAD','pages':{'next':'/n'}},"
             "{'id':'d','description':'dd','path':'/d','method':'PATCH','effects':'none','output':"
             "'artifact'}]");
    s = http_used();
    assert_string_equal(s->agent_id, "me");
    assert_int_equal(s->rate.n, 3);
    assert_int_equal(s->rate.per_ms, 1000);
    assert_string_equal(s->actions[0].name, "na");
    assert_string_equal(s->actions[0].description, "da");
    assert_string_equal(s->actions[0].tags[0], "t");
    assert_string_equal(s->actions[0].examples[1], "f");
    assert_null(s->actions[0].examples[2]);
    assert_int_equal(s->actions[0].timeout_ms, 5);
    assert_string_equal(s->actions[0].effects, "idempotent");
    assert_int_equal(s->actions[0].pages.kind, HTTP_PAGES_NUMBER);
    assert_int_equal(s->actions[0].pages.first, 1);
    assert_int_equal(s->actions[0].pages.max, 1000);
    assert_string_equal(s->actions[0].pages.items, "");
    assert_string_equal(s->actions[1].effects, "idempotent");
    assert_int_equal(s->actions[1].pages.kind, HTTP_PAGES_OFFSET);
    assert_int_equal(s->actions[1].pages.first, 0);
    assert_string_equal(s->actions[2].effects, "none");
    assert_int_equal(s->actions[2].pages.kind, HTTP_PAGES_NEXT);
    assert_string_equal(s->actions[3].effects, "none");
    assert_int_equal(s->actions[3].output, HTTP_OUT_ARTIFACT);
    assert_string_equal(http_effects_of("PATCH"), "unsafe");
    assert_string_equal(http_effects_of("POST"), "unsafe");
    assert_ptr_equal(http_settings_find(s, "b"), &s->actions[1]);
    assert_null(http_settings_find(s, "z"));
    assert_null(http_settings_find(s, ""));
    http_use(X);
    assert_ptr_equal(http_settings_find(http_used(), ""), &http_used()->actions[0]);
}

static void a_header_is_a_token_that_is_not_the_clients_own(void **state)
{
    static const char *const ours[] = {"HOST",       "Content-Length",     "transfer-encoding",
                                       "Connection", "Accept-Encoding",    "Expect",
                                       "TE",         "Proxy-Connection",   "Upgrade",
                                       "Trailer",    "Proxy-Authorization"};
    static const char *const good[] = {"A",     "a-Z9", "!#$%&'*+-.^_`|~",
                                       "Hosts", "Hos",  "Content-Type"};
    static const char *const bad[] = {"", "a b", "a:", "a@", "a[", "a`{", "a/", "\xc3\xa4"};
    char longest[129];
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        assert_int_equal(http_header_check(str_from(ours[i]), STR_LIT("x"), &err), BT_INVALID);
        assert_non_null(strstr(err.msg, "is the client's own"));
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(http_header_check(str_from(good[i]), STR_LIT(" ~\xff"), &err), BT_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(http_header_check(str_from(bad[i]), STR_LIT("x"), &err), BT_INVALID);
        assert_non_null(strstr(err.msg, "is no name of a header"));
    }
    assert_int_equal(http_header_check((struct str){"a\0b", 3}, STR_LIT("x"), &err), BT_INVALID);
    memset(longest, 'a', sizeof longest);
    assert_int_equal(http_header_check((struct str){longest, 127}, STR_LIT(""), &err), BT_OK);
    assert_int_equal(http_header_check((struct str){longest, 128}, STR_LIT(""), &err), BT_INVALID);
    for (int c = 0; c < 256; c++) {
        const char value[] = {'v', (char)c};
        assert_int_equal(http_header_check(STR_LIT("A"), (struct str){value, 2}, &err),
                         c < 32 || c == 127 ? BT_INVALID : BT_OK);
    }
}

/* ---- OpenAPI ---- */

/* "'" for '"'; "$" stays, because references have it. */
static const char *with_spec(const char *spec, const char *more)
{
    static char members[512];
    FILE *f = fopen(spec_path, "we");

    assert_non_null(f);
    for (; *spec != 0; spec++) {
        assert_true(fputc(*spec == '\'' ? '"' : *spec, f) != EOF);
    }
    assert_int_equal(fclose(f), 0);
    (void)snprintf(members, sizeof members, "'openapi':{'file':'%s'%s}", spec_path, more);
    return members;
}

static const struct http_action *operation(const char *id)
{
    const struct http_action *a = http_settings_find(http_used(), id);

    if (a == NULL) {
        fail_msg("no operation %s", id);
    }
    return a;
}

#define PATHS(paths) "{'openapi':'3.1.0','paths':{" paths "}}"

static void operations_become_actions(void **state)
{
    static const char spec[] =
        "{'openapi':'3.0.3','paths':{"
        "'/pets':{'get':{'operationId':'listPets','summary':'Lists pets.','description':'x',"
        "'parameters':[{'name':'tag[]','in':'query','schema':{'type':'array'},'description':'T'},"
        "{'name':'X-H','in':'header'},{'name':'c','in':'cookie'},{'name':'','in':'query'}]},"
        "'post':{'operationId':'-add','requestBody':{'$ref':'#/b/P'}},"
        "'put':{},'patch':{'requestBody':{'content':{'text/x':{}}}},'head':{'description':'Head.'},"
        "'delete':{},'trace':{}},"
        "'/pets/{pet.id}/x':{'parameters':[{'$ref':'#/p/"
        "Id'},{'name':'v','in':'query','required':true},"
        "{'name':'w','in':'query'}],'get':{'parameters':[{'name':'w','in':'query','required':true,"
        "'schema':{'type':'string'}}]}}},"
        "'p':{'Id':{'name':'pet.id','in':'path','schema':{'type':'integer'}}},"
        "'b':{'P':{'required':true,'content':{'text/x':{},'application/json':{'schema':{'type':"
        "'object'}}}}}}";

    (void)state;
    http_use(with_spec(spec, ""));
    assert_int_equal(http_used()->n, 7);
    assert_string_equal(operation("listPets")->description, "Lists pets.");
    assert_string_equal(operation("listPets")->method, "GET");
    assert_string_equal(operation("listPets")->path, "/pets");
    assert_string_equal(operation("listPets")->effects, "none");
    assert_string_equal(operation("listPets")->input_schema,
                        service_text("{'type':'object','properties':{'tag__':{'description':'T',"
                                     "'type':'array'},'X-H':{}},'required':[],"
                                     "'additionalProperties':false}"));
    assert_null(operation("listPets")->body.ptr);
    assert_string_equal(operation("_add")->effects, "unsafe");
    assert_string_equal(operation("_add")->description, "POST /pets");
    assert_string_equal(operation("_add")->input_schema,
                        service_text("{'type':'object','properties':{'body':{'type':'object'}},"
                                     "'required':['body'],'additionalProperties':false}"));
    assert_non_null(operation("_add")->body.ptr);
    assert_string_equal(operation("PUT_pets")->effects, "idempotent");
    assert_string_equal(operation("DELETE_pets")->method, "DELETE");
    assert_string_equal(operation("HEAD_pets")->description, "Head.");
    assert_null(operation("PATCH_pets")->body.ptr); /* its body is no JSON, and need not be given */
    assert_string_equal(operation("GET_pets__pet_id__x")->path, "/pets/{pet_id}/x");
    assert_string_equal(
        operation("GET_pets__pet_id__x")->input_schema,
        service_text("{'type':'object','properties':{'w':{'type':'string'},'pet_id':"
                     "{'type':'integer'},'v':{}},'required':['w','pet_id','v'],"
                     "'additionalProperties':false}"));
    service_next(200, "", "");
    (void)http_do("listPets", "{'tag__':['a','b'],'X-H':'h'}");
    service_expect(0, "GET /pets?tag%5B%5D=a&tag%5B%5D=b ");
    service_expect(0, "\r\nX-H: h\r\n");
    service_next(200, "", "");
    (void)http_do("_add", "{'body':{'k':1}}");
    service_expect(1, "\r\n\r\n{\"k\":1}");
}

static void operations_are_chosen_by_globs(void **state)
{
    static const char spec[] = PATHS("'/a':{'get':{'operationId':'listA'},'post':{'operationId':"
                                     "'addA'}},'/b/c':{'get':{},'delete':{'operationId':'rmB'}}");

    (void)state;
    http_use(with_spec(spec, ",'operations':['list*','DELETE /b*']"));
    assert_int_equal(http_used()->n, 2);
    (void)operation("listA");
    (void)operation("rmB");
    http_use(with_spec(spec, ",'operations':['GET *']"));
    assert_int_equal(http_used()->n, 2);
    (void)operation("GET_b_c");
    http_use(with_spec(spec, ""));
    assert_int_equal(http_used()->n, 4);
}

static void a_document_that_is_none_is_refused(void **state)
{
    static const char *const rows[][2] = {
        {"{'swagger':'2.0'}", "openapi: expected an OpenAPI 3 document: openapi is ''"},
        {"{'openapi':'2.0','paths':{}}", "openapi is '2.0'"},
        {"{'openapi':'3','paths':{}}", "openapi is '3'"},
        {"{'openapi':'4123456789012345678901234567890'}", "openapi is '41234567890123456789'"},
        {"{'openapi':'3.1.0'}", "openapi: paths: expected an object"},
        {"{'openapi':'3.1.0','paths':[]}", "openapi: paths: expected an object"},
        {PATHS(""), "openapi: no operation fits operations"},
        {PATHS("'/x':{'post':{'requestBody':{'required':true,'content':{'text/x':{}}}}}"),
         "openapi: no operation fits"},
        {PATHS("'/x':{'get':{'operationId':'a'},'put':{'operationId':'a'}}"),
         "openapi: PUT /x: two operations have the id a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char settings[256];
        (void)snprintf(settings, sizeof settings, SERVICE ",%s", with_spec(rows[i][0], ""));
        refuses_as(strstr(rows[i][1], "two operations") != NULL ? BT_CONFLICT : BT_INVALID,
                   settings, rows[i][1]);
    }
}

/* A service's names may be longer than ours. */
static void a_long_operation_id_is_cut_and_chosen_whole(void **state)
{
    char spec[512];
    char glob[256];
    char id[101];

    (void)state;
    memset(id, 'a', 100);
    id[100] = 0;
    (void)snprintf(spec, sizeof spec, PATHS("'/a':{'get':{'operationId':'%s'}},'/b':{'get':{}}"),
                   id);
    (void)snprintf(glob, sizeof glob, ",'operations':['%s']", id);
    http_use(with_spec(spec, glob));
    assert_int_equal(http_used()->n, 1);
    assert_int_equal(strlen(http_used()->actions[0].id), LIMIT_ID_BYTES);
}

static void there_are_at_most_64_operations(void **state)
{
    static char spec[8192];
    char settings[256];

    (void)state;
    for (int n = LIMIT_SKILLS; n <= LIMIT_SKILLS + 1; n++) {
        (void)snprintf(spec, sizeof spec, "{'openapi':'3.0.0','paths':{");
        for (int i = 0; i < n; i++) {
            (void)snprintf(spec + strlen(spec), 64, "%s'/p%d':{'get':{'operationId':'op%d'}}",
                           i > 0 ? "," : "", i, i);
        }
        (void)snprintf(spec + strlen(spec), 4, "}}");
        (void)snprintf(settings, sizeof settings, SERVICE ",%s", with_spec(spec, ""));
        if (n == LIMIT_SKILLS) {
            reads(settings);
        } else {
            refuses_as(BT_LIMIT, settings, "more than 64 operations; choose some: operations: [");
        }
    }
}

static void read_and_free(void *self)
{
    struct http_settings *s = NULL;
    struct bt_error err;

    assert_int_equal(http_settings_read(self, &s, &err), BT_OK);
    http_settings_free(s);
    assert_int_equal(http_settings_read("{\"baseUrl\":\"https://a\"}", &s, &err), BT_INVALID);
}

static void settings_are_given_back(void **state)
{
    static char text[8192];

    (void)state;
    (void)snprintf(
        text, sizeof text, "%s",
        service_text("{" SERVICE ",'rate':{'n':3},'headers':{'a':'b'},'actions':[{'id':'x',"
                     "'description':'d','path':'/{x}','method':'POST','body':{'a':'{b}'},"
                     "'fields':{'a':'/b'}}]}"));
    heap_is_given_back(read_and_free, text);
    (void)with_spec(
        PATHS("'/a/{b}':{'post':{'parameters':[{'name':'b','in':'path'},{'name':'q','in':"
              "'query'},{'name':'h','in':'header'}],'requestBody':{'content':{"
              "'application/json':{'schema':{}}}}}}"),
        "");
    (void)snprintf(text, sizeof text, "{\"baseUrl\":\"https://a\",\"openapi\":{\"file\":\"%s\"}}",
                   spec_path);
    heap_is_given_back(read_and_free, text);
}

static int start(void **state)
{
    const int fd = mkstemp(spec_path);

    (void)close(fd);
    return fd < 0 ? -1 : http_start(state);
}

static int stop(void **state)
{
    (void)unlink(spec_path);
    return http_stop(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, http_begin)
    const struct CMUnitTest tests[] = {
        TEST(mistakes_are_named_with_their_place),
        TEST(mistakes_of_an_action_are_named_with_their_place),
        TEST(the_most_of_each_number_and_list_is_taken),
        TEST(what_is_not_given_has_a_value),
        TEST(a_header_is_a_token_that_is_not_the_clients_own),
        TEST(operations_become_actions),
        TEST(operations_are_chosen_by_globs),
        TEST(a_document_that_is_none_is_refused),
        TEST(a_long_operation_id_is_cut_and_chosen_whole),
        TEST(there_are_at_most_64_operations),
        TEST(settings_are_given_back),
    };

    return cmocka_run_group_tests(tests, start, stop);
}

#include "fixture.h"

#include "supervisor/plan/reader_internal.h"

const struct registry_limits bench_limits = {
    .agents = 64, .instances = 64, .lease_ms = 3000, .suspect_ms = 2000};

int bench_setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    void *mem = malloc(registry_size(&bench_limits));
    if (b == NULL || mem == NULL) {
        return -1;
    }
    b->registry = registry_init(mem, &bench_limits);
    buf_init(&b->normalised, LIMIT_STEP_BYTES);
    *state = b;
    return 0;
}

int bench_teardown(void **state)
{
    struct bench *b = *state;
    buf_done(&b->normalised);
    arena_done(&b->arena);
    free(b->registry);
    free(b);
    return 0;
}

struct doc doc_of(struct bench *b, const char *json)
{
    struct buf out;
    struct bt_error err;
    char *text = arena_alloc(&b->arena, strlen(json) + 1);
    assert_non_null(text);
    for (size_t i = 0; json[i] != '\0'; i++) {
        text[i] = json[i] == '\'' ? '"' : json[i];
    }
    buf_init(&out, LIMIT_STEP_BYTES);
    if (json_to_doc(str_from(text), NULL, &out, &err) != BT_OK) {
        fail_msg("%s in %s", err.msg, json);
    }
    const struct doc doc = doc_copy(&b->arena, doc_from_buf(&out));
    buf_done(&out);
    return doc;
}

const char *json_of(struct bench *b, struct doc doc)
{
    struct buf out;
    struct bt_error err;
    buf_init(&out, LIMIT_STEP_BYTES);
    if (doc_to_json(doc, false, &out, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    const struct str copy = arena_str(&b->arena, buf_str(&out));
    char *text = arena_alloc(&b->arena, copy.len + 1);
    assert_non_null(text);
    for (size_t i = 0; i < copy.len; i++) {
        text[i] = copy.ptr[i] == '"' ? '\'' : copy.ptr[i];
    }
    buf_done(&out);
    return text;
}

void add_agent(struct bench *b, const char *card_json)
{
    struct msg_card *card = arena_alloc(&b->arena, sizeof *card);
    struct bt_error err;
    assert_non_null(card);
    if (msg_read_doc(&b->arena, doc_of(b, card_json), MSG_card, card, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    const uint32_t agent = registry_agent_add(b->registry, card->agent_id, 1);
    registry_agent_card(b->registry, agent, card);
    const struct uuid id = {.b = {(uint8_t)(agent + 1)}};
    assert_int_not_equal(registry_register(b->registry, agent, id, 2, 1), REGISTRY_NONE);
}

void add_house(struct bench *b)
{
    add_agent(
        b, "{'agentId':'files','name':'Files','skills':["
           "{'id':'list','name':'List a directory','tags':['directory','folder'],"
           " 'description':'Lists the files of a directory','examples':['list the files in /etc'],"
           " 'inputSchema':{'type':'object','properties':{'path':{'type':'string',"
           "'x-baton-fill':'path'}},'required':['path']}},"
           "{'id':'read','name':'Read a file','tags':['file','text','log'],"
           " 'description':'Reads a text file','examples':['read /var/log/syslog'],"
           " 'inputSchema':{'type':'object','properties':{'path':{'type':'string',"
           "'x-baton-fill':'path'}},'required':['path'],'additionalProperties':false},"
           " 'effects':'none'},"
           "{'id':'grep','name':'Find lines','tags':['search','find','lines'],"
           " 'description':'Finds the lines of a file that hold a text',"
           " 'inputSchema':{'type':'object','x-baton-local':true,'properties':{'path':{'type':'"
           "string',"
           "'x-baton-fill':'path'},'pattern':{'type':'string','x-baton-fill':'quoted'},"
           "'ignoreCase':{'type':'boolean','description':'capitals match, too'},"
           "'limit':{'type':'integer','description':'at most so many',"
           "'x-baton-fill':'number'}},'required':['path','pattern']}},"
           "{'id':'write','name':'Write a file','tags':['save','store'],"
           " 'description':'Writes text to a file','effects':'idempotent',"
           " 'inputSchema':{'type':'object','properties':{'path':{'type':'string',"
           "'x-baton-fill':'path'},'text':{'x-baton-fill':'previous'}},"
           "'required':['path','text']}}]}");
    add_agent(b, "{'agentId':'sql','name':'SQL','skills':["
                 "{'id':'query','name':'Query a database','tags':['sql','select','table'],"
                 " 'description':'Runs a read-only SQL query','examples':['select * from t'],"
                 " 'inputSchema':{'type':'object','properties':{'sql':{'type':'string',"
                 "'x-baton-fill':'quoted'},'limit':{'type':'integer','x-baton-fill':'number'}},"
                 "'required':['sql']}},"
                 "{'id':'load','name':'Load rows','tags':['import','csv','json','database'],"
                 " 'description':'Loads a CSV or JSON file into a table','effects':'idempotent',"
                 " 'inputSchema':{'type':'object','properties':{'file':{'type':'string',"
                 "'x-baton-fill':'path'},'rows':{'x-baton-fill':'previous.rows'}}}}]}");
    add_agent(b, "{'agentId':'calc','name':'Calculator','skills':["
                 "{'id':'count_by_day','name':'Count by day','tags':['count','day','daily','log'],"
                 " 'description':'Counts log lines of a kind per day','effects':'none',"
                 " 'examples':['count the installs per day'],"
                 " 'inputSchema':{'type':'object','properties':{'text':{'type':'string',"
                 "'x-baton-fill':'previous'},'action':{'type':'string',"
                 "'enum':['install','upgrade','remove'],'x-baton-fill':'choice',"
                 "'x-baton-words':{'install':'installation','remove':'uninstall purge'}}},"
                 "'required':['text']}},"
                 "{'id':'report','name':'Report','tags':['report','summary','busiest','most'],"
                 " 'description':'Renders a Markdown report','examples':['report the busiest day'],"
                 " 'inputSchema':{'type':'object','properties':{'data':{'x-baton-fill':'previous'},"
                 "'wish':{'type':'string','x-baton-fill':'clause'}}}},"
                 "{'id':'evaluate','name':'Evaluate an expression','tags':['compute','calculate'],"
                 " 'description':'Computes an arithmetic expression',"
                 " 'inputSchema':{'type':'object','properties':{'expression':{'type':'string',"
                 "'x-baton-fill':'quoted'}},'required':['expression']}}]}");
    add_agent(b, "{'agentId':'exec','name':'Commands','skills':["
                 "{'id':'run','name':'Run a command','tags':['command','shell','program'],"
                 " 'description':'Runs an allowed command','effects':'unsafe',"
                 " 'examples':['run the command \\\"uptime\\\"'],"
                 " 'inputSchema':{'type':'object','properties':{'command':{'type':'string',"
                 "'x-baton-fill':'quoted'}},'required':['command']}}]}");
}

enum bt_code read_doc(struct bench *b, struct doc doc)
{
    const struct plan_defaults defaults = plan_defaults_builtin();
    b->problems = (struct problems){.at = b->at, .cap = 100};
    b->plan = NULL;
    buf_clear(&b->normalised);
    const struct plan_request request = {
        .plan = doc, .defaults = &defaults, .registry = b->registry, .lenient = b->lenient};
    return plan_read_request(&request, &b->arena, &b->plan, &b->problems, &b->normalised, &b->err);
}

enum bt_code read_json(struct bench *b, const char *json)
{
    return read_doc(b, doc_of(b, json));
}

struct plan *read_back(struct bench *b)
{
    /* Other defaults: the document must contain every value. */
    const struct plan_defaults other = {.step = {.max_retries = 9, .on_verify = ON_FAILURE_ASK},
                                        .max_concurrency = 77};
    const struct doc doc = doc_copy(&b->arena, doc_from_buf(&b->normalised));
    struct plan *again = NULL;
    struct buf out;
    buf_init(&out, LIMIT_STEP_BYTES);
    if (plan_read_canonical(doc, &other, b->registry, &b->arena, &again, &b->err) != BT_OK ||
        plan_write(again, &out, &b->err) != BT_OK) {
        fail_msg("%s in %s", b->err.msg, json_of(b, doc));
    }
    if (out.len != doc.len || memcmp(out.at, doc.ptr, doc.len) != 0) {
        fail_msg("%s became %s", json_of(b, doc), json_of(b, doc_from_buf(&out)));
    }
    buf_done(&out);
    return again;
}

const char *problem_of(struct bench *b, uint32_t i)
{
    char *text = arena_alloc(&b->arena, 800);
    assert_non_null(text);
    if (i < b->problems.n) {
        const struct problem *p = &b->at[i];
        (void)snprintf(text, 800, "%s %s %s: %s", problem_category_name(p->category),
                       p->step == UINT32_MAX ? "-" : p->step_id, p->field, p->message);
    }
    return text;
}

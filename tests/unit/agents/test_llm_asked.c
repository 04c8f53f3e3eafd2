/*
 * What the skills of the llm agent ask a model, and what they make of its answers, kept in files
 * beside this one: a rule in words, what is given, and what comes of it. The model is a list of
 * answers. BATON_WRITE=1 writes what follows anew: read the difference against the rule.
 *
 *     ## A rule. The agent has no settings, and the model no answers.
 *     > agent {settings}        "'" stands for '"', as everywhere
 *     > says {answer}           the next answer
 *     > text words              the same; "'" stands for itself, and "\n" for the end of a line
 *     > fails CODE MS           instead of an answer; when it may be asked again: 1 = not known,
 *                               0 = not known, and it was not asked
 *     > refuses
 *     > run SKILL {step}
 *
 * A line of more than 160 bytes that was there before is told by its beginning.
 */
#include <dirent.h>

#include <cjson/cJSON.h>

#include "agents/llm/llm_agent.h"
#include "agents/llm/model/answer_parser.h"
#include "protocol/wire/doc.h"
#include "tests/support/golden.h"
#include "tests/unit/agents/steps.h"

enum { FILE_MAX = GOLDEN_MAX, ANSWERS_MAX = 8, LONG_LINE = 160, BEGINNING = 60, PIECE = 7 };

struct answer {
    char *text; /* NULL: it fails */
    enum bt_code code;
    msec retry_ms;
    bool refuses;
};

static struct llm_agent *agent;
static struct answer answers[ANSWERS_MAX];
static unsigned given, taken;
static struct buf out;

enum bt_code __wrap_llm_complete(struct llm_client *c, const struct llm_request *request,
                                 struct llm_reply *ret, struct bt_error *err);

/* ---- what is told ---- */

static void tell_line(const char *line, size_t n)
{
    char whole[FILE_MAX / 8];

    (void)snprintf(whole, sizeof whole, "\n  %.*s\n", (int)n, line);
    if (n > LONG_LINE && strstr(buf_cstr(&out), whole) != NULL) {
        buf_printf(&out, "  %.*s ...\n", BEGINNING, line);
    } else if (n > 0) {
        buf_add_cstr(&out, whole + 1);
    }
}

static void tell_lines(const char *text)
{
    while (*text != 0) {
        const size_t n = strcspn(text, "\n");
        tell_line(text, n);
        text += n + (text[n] == '\n');
    }
}

static void tell_tree(const char *name, const cJSON *tree)
{
    char *json = cJSON_PrintUnformatted(tree);
    struct buf line;

    buf_init(&line, FILE_MAX);
    buf_printf(&line, "%s %s", name, json);
    tell_lines(buf_cstr(&line));
    buf_done(&line);
    cJSON_free(json);
}

static void tell_request(const struct llm_request *q)
{
    const char *own = strstr(q->system, "\n\n"); /* after the rules about data */

    buf_printf(&out, "asks %s, at most %llu tokens", q->schema != NULL ? q->schema_name : "text",
               (unsigned long long)q->max_tokens);
    buf_printf(&out, "%s%s%s%s", q->temperature >= 0 ? ", temperature" : "",
               q->extra ? ", extra" : "", q->as_is ? ", as it is" : "",
               q->on_text != NULL ? ", streamed" : "");
    if (q->temperature >= 0) {
        buf_printf(&out, " %.2f", q->temperature);
    }
    for (size_t i = 0; q->optional != NULL && q->optional[i] != NULL; i++) {
        buf_printf(&out, "%s%s", i == 0 ? ", optional " : " ", q->optional[i]);
    }
    buf_add_cstr(&out, "\n");
    if (own != NULL) {
        buf_printf(&out, "  system: %s\n", own + 2);
    }
    if (q->schema != NULL) {
        tell_tree("schema", q->schema);
    }
    tell_lines(q->turns[0].text);
}

/* ---- the model ---- */

static void stream(const struct llm_request *q, const char *text)
{
    for (size_t n = strlen(text); q->on_text != NULL && n > 0;) {
        const size_t piece = n < PIECE ? n : PIECE;
        q->on_text(q->self, false, (struct str){text, piece});
        text += piece;
        n -= piece;
    }
}

/* Judges as the client does, whose tests are elsewhere. */
static enum bt_code judge(const struct llm_request *q, struct llm_reply *ret, struct bt_error *err)
{
    enum bt_code code;

    if (q->schema == NULL) {
        return BT_OK;
    }
    code = answer_parser_json(buf_str(&ret->text), &ret->json, err);
    if (q->as_is) {
        return BT_OK;
    }
    if (code == BT_OK && q->check != NULL) {
        code = q->check(q->self, ret->json, err);
    }
    if (code != BT_OK) {
        cJSON_Delete(ret->json);
        ret->json = NULL;
    }
    return code;
}

enum bt_code __wrap_llm_complete(struct llm_client *c, const struct llm_request *request,
                                 struct llm_reply *ret, struct bt_error *err)
{
    enum bt_code code = BT_INVALID;

    (void)c;
    tell_request(request);
    buf_init(&ret->text, FILE_MAX);
    (void)snprintf(ret->provider, sizeof ret->provider, "m");
    for (ret->repairs = 0; code == BT_INVALID && ret->repairs < 2; ret->repairs++) {
        const struct answer *a = &answers[taken];
        if (taken == given) {
            (void)err_set(err, BT_INVALID, "%s", ret->repairs == 0 ? "no answer" : err->msg);
            break;
        }
        taken++;
        ret->calls++;
        if (a->text == NULL) {
            ret->retry_after_ms = a->retry_ms;
            ret->calls -= a->retry_ms == 0;
            ret->finish = a->refuses ? LLM_FINISH_REFUSAL : LLM_FINISH_UNKNOWN;
            return err_set(err, a->code, "the model fails");
        }
        buf_clear(&ret->text);
        buf_add_cstr(&ret->text, a->text);
        (void)buf_cstr(&ret->text);
        stream(request, a->text);
        if (request->stop(request->self)) {
            return err_set(err, BT_CANCELLED, "it was stopped");
        }
        ret->usage = (struct llm_usage){.input = 100 * ret->calls,
                                        .output = 10 * ret->calls,
                                        .cached = ret->calls,
                                        .known = true};
        ret->cost_micros = 7;
        code = judge(request, ret, err);
        if (code != BT_OK) {
            buf_printf(&out, "is told: %s\n", err->msg);
        }
    }
    return code;
}

/* ---- the files ---- */

static void drop_answers(void)
{
    for (unsigned i = 0; i < given; i++) {
        free(answers[i].text);
    }
    given = taken = 0;
}

/* settings: an object; "" = "{}". */
static void make_agent(const char *settings)
{
    const char *members = settings[0] == 0 ? "" : settings + 1;
    const size_t n = members[0] == 0 ? 0 : strlen(members) - 1;
    struct bt_error err = {0};
    struct buf json;

    llm_agent_free(agent);
    agent = NULL;
    buf_init(&json, FILE_MAX);
    buf_printf(&json,
               "{%.*s%s\"providers\":[{\"id\":\"m\",\"api\":\"openai\",\"model\":\"m\",\"baseUrl\":"
               "\"http://127.0.0.1:9/v1\",\"price\":{\"input\":1000,\"output\":2000}}]}",
               (int)n, members, n > 0 ? "," : "");
    if (llm_agent_new(buf_cstr(&json), &agent, &err) != BT_OK) {
        buf_printf(&out, "no agent: %s\n", err.msg);
        make_agent("");
    }
    buf_done(&json);
}

static void run(const char *words)
{
    char skill[32];
    const char *json = strchr(words, ' ');
    const char *reply = NULL;

    assert_non_null(json);
    (void)snprintf(skill, sizeof skill, "%.*s", (int)(json - words), words);
    for (size_t i = 0; i < llm_skill_count; i++) {
        if (strcmp(llm_skills[i].id, skill) == 0) {
            reply = steps_run(steps_make(skill, json + 1), llm_skills[i].run, agent);
        }
    }
    assert_non_null(reply);
    buf_printf(&out, "replies %s\n", strstr(reply, "\"outcome\""));
    if (steps_last()->stream.text.len > 0) {
        buf_printf(&out, "streamed %s\n", buf_cstr(&steps_last()->stream.text));
    }
    if (taken < given) {
        buf_printf(&out, "%u answers are left\n", given - taken);
    }
    drop_answers();
}

static enum bt_code code_of(const char *name)
{
    for (int code = 0; code < BT_CODE_COUNT; code++) {
        if (strcmp(bt_code_name((enum bt_code)code), name) == 0) {
            return (enum bt_code)code;
        }
    }
    fail_msg("no code %s", name);
    return BT_OK;
}

static void obey(char *line)
{
    char *words = line + strcspn(line, " ");
    const size_t n = (size_t)(words - line);
    struct answer *a = &answers[given];
    const bool plain = n == 4 && memcmp(line, "text", n) == 0;
    char code[32];
    unsigned ms = 0;

    words += *words == ' ';
    for (char *c = words; *c != 0 && !plain; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    for (char *c; plain && (c = strstr(words, "\\n")) != NULL;) {
        *c = '\n';
        memmove(c + 1, c + 2, strlen(c + 2) + 1);
    }
    assert_true(given < ANSWERS_MAX);
    *a = (struct answer){.code = BT_OK};
    if (plain || (n == 4 && memcmp(line, "says", n) == 0)) {
        a->text = strdup(words);
        given++;
    } else if (sscanf(line, "fails %31s %u", code, &ms) == 2) {
        a->code = code_of(code);
        a->retry_ms = ms == 1 ? MSEC_NEVER : ms;
        given++;
    } else if (strcmp(line, "refuses") == 0) {
        *a = (struct answer){.code = BT_INVALID, .refuses = true, .retry_ms = MSEC_NEVER};
        given++;
    } else if (n == 5 && memcmp(line, "agent", n) == 0) {
        make_agent(words);
    } else if (n == 3 && memcmp(line, "run", n) == 0) {
        run(words);
    } else {
        fail_msg("what is %s", line);
    }
}

static void replay(const char *text)
{
    char *copy = strdup(text);

    assert_non_null(copy);
    for (char *line = copy; line != NULL && *line != 0;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end = 0;
        }
        if (line[0] == '#') {
            buf_printf(&out, "%s%s\n", out.len > 0 ? "\n" : "", line);
            drop_answers();
            make_agent("");
        } else if (strncmp(line, "> ", 2) == 0) {
            buf_printf(&out, "%s\n", line);
            obey(line + 2);
        }
        line = end == NULL ? NULL : end + 1;
    }
    drop_answers();
    free(copy);
}

static void each_rule_holds(void **state)
{
    DIR *dir = opendir(ASKED);
    unsigned files = 0;

    (void)state;
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[1000];
        char *text;
        if (strstr(e->d_name, ".txt") == NULL) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", ASKED, e->d_name);
        text = golden_read(path);
        buf_init(&out, FILE_MAX);
        replay(text);
        files++;
        golden_keep(path, text, buf_cstr(&out));
        buf_done(&out);
        free(text);
    }
    assert_true(files >= 4);
    assert_int_equal(closedir(dir), 0);
    steps_forget();
    llm_agent_free(agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_rule_holds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

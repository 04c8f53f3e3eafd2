/* Parts of the control flow alone: how values are told, what `tools` permits, which plan is inside
 * which, and what a step without a body is. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "../fixture.h"
#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/flow/condition.h"
#include "supervisor/plan/flow/condition_internal.h"
#include "supervisor/plan/flow/inside.h"
#include "supervisor/plan/flow/tools.h"

/* ---- values in words ---- */

static const char *told(struct bench *b, struct doc value, size_t size)
{
    char *text = arena_alloc(&b->arena, size + 8);
    assert_non_null(text);
    memset(text, '#', size + 8);
    const size_t n = condition_describe(value, text, size);
    assert_true(n < size);
    assert_int_equal(text[n], 0);
    assert_memory_equal(text + size, "########", 8);
    return text;
}

static void a_value_is_told_as_json_of_a_bounded_length(void **state)
{
    static const char *const as_they_are[] = {"7",
                                              "-7",
                                              "18446744073709551615",
                                              "true",
                                              "false",
                                              "null",
                                              "\"word\"",
                                              "\"\"",
                                              "1.5",
                                              "[1,2]",
                                              "[]",
                                              "{}",
                                              "0",
                                              "\"with \\\" mark\"",
                                              "\"\\u0007\"",
                                              "\"ä\""};
    struct bench *b = *state;
    struct buf text;

    for (size_t i = 0; i < sizeof as_they_are / sizeof as_they_are[0]; i++) {
        struct buf doc;
        buf_init(&doc, 1000);
        assert_int_equal(json_to_doc(str_from(as_they_are[i]), NULL, &doc, &b->err), BT_OK);
        assert_string_equal(told(b, doc_from_buf(&doc), 64), as_they_are[i]);
        buf_done(&doc);
    }
    assert_string_equal(told(b, (struct doc){NULL, 0}, 64), "missing");
    buf_init(&text, 100000);
    doc_put_cstr(&text, "0123456789012345678901234567890123456789012345678901234567890123");
    assert_string_equal(told(b, doc_from_buf(&text), 64),
                        "\"01234567890123456789012345678901234567890123456789012345678…");
    assert_string_equal(told(b, doc_from_buf(&text), 66),
                        "\"0123456789012345678901234567890123456789012345678901234567890…");
    assert_string_equal(told(b, doc_from_buf(&text), 67),
                        "\"0123456789012345678901234567890123456789012345678901234567890123\"");
    for (int kind = 0; kind < 3; kind++) { /* what is too long to be written as JSON */
        char *long_one = calloc(1, 20001);
        assert_non_null(long_one);
        memset(long_one, 'x', 20000);
        buf_clear(&text);
        if (kind == 0) {
            doc_put_array(&text, 1);
        } else if (kind == 1) {
            doc_put_map(&text, 1);
            doc_put_cstr(&text, "k");
        }
        doc_put_cstr(&text, long_one);
        assert_string_equal(told(b, doc_from_buf(&text), 64), kind == 0   ? "a list"
                                                              : kind == 1 ? "a map"
                                                                          : "a long text");
        free(long_one);
    }
    buf_done(&text);
}

/* ---- tools ---- */

static char permits(struct bench *b, const char *tools, const char *agent, const char *skill)
{
    bool approval = true;
    const struct doc list = tools == NULL ? (struct doc){NULL, 0} : doc_of(b, tools);
    const bool may = plan_tool_permitted(list, str_from(agent), str_from(skill), &approval);
    assert_true(may || !approval);
    return !may ? 'n' : approval ? 'a' : 'y';
}

static void the_most_exact_entry_says_what_an_agent_may_call(void **state)
{
    static const struct {
        const char *tools, *agent, *skill;
        char is; /* y, n, a: with an approval */
    } rows[] = {
        {NULL, "sql", "query", 'y'},
        {"[]", "sql", "query", 'n'},
        {"7", "sql", "query", 'n'},
        {"{}", "sql", "query", 'n'},
        {"['sql']", "sql", "query", 'y'},
        {"['sql']", "sql2", "query", 'n'},
        {"['sql/query']", "sql", "query", 'y'},
        {"['sql/query']", "sql", "load", 'n'},
        {"['sql/quer']", "sql", "query", 'n'},
        {"['files','sql']", "sql", "query", 'y'},
        {"['sql/','/query','/','']", "sql", "query", 'n'},
        {"['sql/a b']", "sql", "a b", 'n'},
        {"[{'tool':'sql','approval':true}]", "sql", "query", 'a'},
        {"[{'tool':'sql','approval':false}]", "sql", "query", 'y'},
        {"[{'tool':'sql'}]", "sql", "query", 'y'},
        {"[{'tool':'sql','approval':true},'sql/query']", "sql", "query", 'y'},
        {"['sql/query',{'tool':'sql','approval':true}]", "sql", "query", 'y'},
        {"['sql',{'tool':'sql/query','approval':true}]", "sql", "query", 'a'},
        {"[{'tool':'sql/query','approval':true},'sql']", "sql", "query", 'a'},
        {"['sql',{'tool':'sql/query','approval':true}]", "sql", "load", 'y'},
        {"['sql/query',{'tool':'sql/query','approval':true}]", "sql", "query", 'a'},
        {"[{'tool':'sql/query','approval':true},'sql/query']", "sql", "query", 'a'},
        {"[{'tool':'sql','approval':true},'sql']", "sql", "query", 'a'},
    };
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char is = permits(b, rows[i].tools, rows[i].agent, rows[i].skill);
        if (is != rows[i].is) {
            fail_msg("%s: %s/%s is %c, not %c", rows[i].tools, rows[i].agent, rows[i].skill, is,
                     rows[i].is);
        }
    }
}

static void names_of_tools_have_at_most_64_letters_digits_and_marks(void **state)
{
    char name[LIMIT_ID_BYTES + 2];
    struct str agent;
    struct str skill;

    (void)state;
    memset(name, 'a', sizeof name);
    assert_true(plan_tool_split((struct str){name, LIMIT_ID_BYTES}, &agent, &skill));
    assert_int_equal(agent.len, LIMIT_ID_BYTES);
    assert_int_equal(skill.len, 0);
    assert_false(plan_tool_split((struct str){name, LIMIT_ID_BYTES + 1}, &agent, &skill));
    assert_true(plan_tool_split(STR_LIT("azAZ09_.-/z"), &agent, &skill));
    assert_true(str_is(agent, "azAZ09_.-") && str_is(skill, "z"));
    assert_false(plan_tool_split(STR_LIT("a/b/c"), &agent, &skill));
    for (const char *c = " `{@[/:,^\x7f"; *c != 0; c++) {
        assert_false(plan_tool_split((struct str){c, 1}, &agent, &skill));
    }
}

/* ---- inside ---- */

/* Plans 0 to 9: the one around each; 255 = none, 254 = a session, 253 = it is not there. */
struct family {
    struct bench *b;
    uint8_t around[10];
    uint8_t known; /* the plan in question */
};

static struct uuid id_of(uint8_t n)
{
    return (struct uuid){.b = {7, n}};
}

static bool find_document(void *self, struct uuid plan_id, struct doc *ret)
{
    const struct family *f = self;
    const uint8_t around = f->around[plan_id.b[1]];
    char text[UUID_TEXT_LEN + 1] = "session-1";
    char json[100];

    if (around == 253) {
        return false;
    }
    if (around < 10) {
        uuid_format(id_of(around), text);
    }
    (void)snprintf(json, sizeof json, around == 255 ? "{'steps':[]}" : "{'%s':{'of':'%s'}}",
                   plan_id.b[1] % 2 == 0 ? "errand" : "child", text);
    *ret = doc_of(f->b, json);
    return true;
}

static bool is_it(void *self, struct str plan_id)
{
    const struct family *f = self;
    char text[UUID_TEXT_LEN + 1];

    uuid_format(id_of(f->known), text);
    return str_is(plan_id, text);
}

static void a_plan_is_inside_another_one_however_deep_and_never_inside_itself(void **state)
{
    struct family f = {.b = *state, .around = {255, 0, 1, 2, 254, 4, 253, 6, 9, 8}, .known = 0};
    const struct inside in = {&f, find_document, is_it};
    static const bool is[10] = {[1] = true, [2] = true, [3] = true};

    for (uint8_t i = 0; i < 10; i++) { /* 8 and 9 go round in a circle */
        assert_int_equal(plan_is_inside(id_of(i), &in), is[i]);
    }
    f.known = 4; /* it is in a session */
    assert_true(plan_is_inside(id_of(5), &in));
    assert_false(plan_is_inside(id_of(4), &in));
    f.known = 6; /* it is gone: what was in it still says so */
    assert_true(plan_is_inside(id_of(7), &in));
}

/* ---- steps without a body ---- */

static void a_step_without_a_body_has_no_kind_of_child(void **state)
{
    struct bench *b = *state;
    struct child_step how = {.kind = CHILD_OF_LOOP, .goes_on = true};

    assert_false(child_step_read((struct doc){NULL, 0}, &how));
    assert_int_equal(how.kind, CHILD_OF_NONE);
    assert_false(how.goes_on);
    assert_false(child_step_read(doc_of(b, "{'kind':'nothing'}"), &how));
    assert_int_equal(child_loop(doc_of(b, "{'kind':'forEach','max':5}")).max, 0);
    assert_int_equal(child_loop(doc_of(b, "{'kind':'repeat','max':5}")).max, 5);
    assert_true(child_step_read(
        doc_of(b, "{'kind':'forEach','list':[1],'onItemFailure':'continue'}"), &how));
    assert_true(how.goes_on);
}

static void a_child_plan_says_what_it_is_of(void **state)
{
    struct bench *b = *state;
    struct child_of of = {.round = 9};
    struct doc items = {(const uint8_t *)"", 1};

    child_of_read((struct doc){NULL, 0}, &of, &items);
    assert_int_equal(of.kind, CHILD_OF_NONE);
    assert_int_equal(of.round, 0);
    assert_null(items.ptr);
    child_of_read(doc_of(b, "{'kind':'repeat','of':'P','step':3,'attempt':4,'round':5,'depth':2,"
                            "'as':'row','previous':{'n':1},'items':[7,8]}"),
                  &of, &items);
    assert_int_equal(of.kind, CHILD_OF_LOOP);
    assert_true(str_is(of.of, "P") && str_is(of.name, "row"));
    assert_true(of.step == 3 && of.attempt == 4 && of.round == 5 && of.depth == 2);
    assert_string_equal(json_of(b, of.previous), "{'n':1}");
    assert_string_equal(json_of(b, items), "[7,8]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_value_is_told_as_json_of_a_bounded_length),
        RULE(the_most_exact_entry_says_what_an_agent_may_call),
        RULE(names_of_tools_have_at_most_64_letters_digits_and_marks),
        RULE(a_plan_is_inside_another_one_however_deep_and_never_inside_itself),
        RULE(a_step_without_a_body_has_no_kind_of_child),
        RULE(a_child_plan_says_what_it_is_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

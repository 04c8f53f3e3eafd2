#include "fixture.h"

#include "supervisor/plan/expand.h"

/* Results by step: "fetch" has data and text, "note" has text, "quiet" has nothing, "a.b" has a
 * dot. */
struct results {
    struct bench *b;
    uint32_t asked;
};

static enum bt_code resolve(struct str step_id, struct doc *ret, void *self, struct bt_error *err)
{
    struct results *r = self;
    r->asked++;
    if (str_is(step_id, "fetch")) {
        *ret = doc_of(r->b, "{'text':'two rows','data':{'rows':[{'n':1},{'n':2}],'ok':true},"
                            "'artifacts':[{'uri':'file:/x'}]}");
    } else if (str_is(step_id, "note")) {
        *ret = doc_of(r->b, "{'text':'hello','data':null}");
    } else if (str_is(step_id, "a.b")) {
        *ret = doc_of(r->b, "{'data':{'c':5}}");
    } else if (str_is(step_id, "quiet")) {
        *ret = (struct doc){NULL, 0};
    } else if (str_is(step_id, "deep")) {
        *ret = doc_of(r->b, "{'data':[[[[[[[[[[[[1]]]]]]]]]]]]}");
    } else if (str_is(step_id, "broken")) {
        return err_set(err, BT_IO, "the disk is gone");
    } else {
        return err_set(err, BT_NOT_FOUND, "step \"%.*s\" has no result", STR_ARG(step_id));
    }
    return BT_OK;
}

static enum bt_code text(struct bench *b, const char *in, const char **ret)
{
    struct results r = {.b = b};
    struct buf out;
    buf_init(&out, 10000);
    const enum bt_code code = expand_text(str_from(in), resolve, NULL, &r, &out, &b->err);
    *ret = arena_str(&b->arena, buf_str(&out)).ptr;
    buf_done(&out);
    return code;
}

static enum bt_code params(struct bench *b, const char *in, const char **ret)
{
    struct results r = {.b = b};
    struct buf out;
    buf_init(&out, 10000);
    const enum bt_code code = expand_params(doc_of(b, in), resolve, NULL, &r, &out, &b->err);
    *ret = code == BT_OK ? json_of(b, doc_from_buf(&out)) : "";
    buf_done(&out);
    return code;
}

static void check_text(struct bench *b, const char *in, const char *expected)
{
    const char *got;
    if (text(b, in, &got) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    assert_string_equal(got, expected);
}

static void check_params(struct bench *b, const char *in, const char *expected)
{
    const char *got;
    if (params(b, in, &got) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    assert_string_equal(got, expected);
}

static void a_text_is_rendered_with_values_as_text(void **state)
{
    struct bench *b = *state;
    check_text(b, "plain", "plain");
    check_text(b, "", "");
    check_text(b, "say {{results.note}}!", "say hello!");
    check_text(b, "n={{results.fetch.rows.1.n}} ok={{ results.fetch.ok }}", "n=2 ok=true");
    check_text(b, "{{results.fetch.rows}}", "[{\"n\":1},{\"n\":2}]");
    check_text(b, "{{.Names}} {{results.note}}", "{{.Names}} hello");
}

static void data_comes_before_text_and_the_results_own_members_last(void **state)
{
    struct bench *b = *state;
    check_params(b, "'{{results.fetch}}'", "{'rows':[{'n':1},{'n':2}],'ok':true}");
    check_params(b, "'{{results.note}}'", "'hello'");
    check_params(b, "'{{results.fetch.text}}'", "'two rows'");
    check_params(b, "'{{results.fetch.artifacts.0.uri}}'", "'file:/x'");
    check_params(b, "'{{results.fetch.data.ok}}'", "true");
    check_params(b, "'{{results.quiet}}'", "''");
}

static void a_lone_template_keeps_the_type_of_its_value(void **state)
{
    struct bench *b = *state;
    check_params(b,
                 "{'a':'{{results.fetch.rows.0.n}}','b':['{{results.fetch.ok}}','x'],'c':{},"
                 "'d':[],'e':'n={{results.fetch.rows.0.n}}','f':7}",
                 "{'a':1,'b':[true,'x'],'c':{},'d':[],'e':'n=1','f':7}");
}

static void keys_are_left_alone(void **state)
{
    struct bench *b = *state;
    check_params(b, "{'{{results.note}}':{'{{results.fetch}}':'{{results.note}}'}}",
                 "{'{{results.note}}':{'{{results.fetch}}':'hello'}}");
}

static void a_step_id_with_dots_is_tried_first(void **state)
{
    struct bench *b = *state;
    check_params(b, "'{{results.a.b.c}}'", "5");
}

static void what_cannot_be_resolved_names_template_and_step(void **state)
{
    struct bench *b = *state;
    const char *got;
    assert_int_equal(text(b, "x {{results.nobody.rows}}", &got), BT_INVALID);
    assert_string_equal(b->err.msg, "{{results.nobody.rows}}: step \"nobody\" has no result");
    assert_int_equal(params(b, "['{{results.fetch.cols}}']", &got), BT_INVALID);
    assert_string_equal(
        b->err.msg, "{{results.fetch.cols}}: the result of step \"fetch\" has no member \"cols\"");
    assert_int_equal(text(b, "{{results.quiet.x}}", &got), BT_INVALID);
    assert_int_equal(text(b, "{{results.fetch.rows.2}}", &got), BT_INVALID);
    assert_int_equal(text(b, "{{results.fetch", &got), BT_INVALID);
}

static void other_failures_keep_their_code(void **state)
{
    struct bench *b = *state;
    const char *got;
    assert_int_equal(text(b, "{{results.broken}}", &got), BT_IO);
}

static void what_would_be_too_deep_to_send_is_refused(void **state)
{
    struct bench *b = *state;
    const char *got;
    assert_int_equal(params(b, "[['{{results.deep}}']]", &got), BT_OK);
    assert_int_equal(params(b, "[[[['{{results.deep}}']]]]", &got), BT_INVALID);
}

static void a_full_buffer_is_told(void **state)
{
    struct bench *b = *state;
    struct results r = {.b = b};
    struct buf out;
    buf_init(&out, 8);
    assert_int_equal(expand_text(STR_LIT("{{results.fetch}}"), resolve, NULL, &r, &out, &b->err),
                     BT_LIMIT);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_text_is_rendered_with_values_as_text),
        RULE(data_comes_before_text_and_the_results_own_members_last),
        RULE(a_lone_template_keeps_the_type_of_its_value),
        RULE(keys_are_left_alone),
        RULE(a_step_id_with_dots_is_tried_first),
        RULE(what_cannot_be_resolved_names_template_and_step),
        RULE(other_failures_keep_their_code),
        RULE(what_would_be_too_deep_to_send_is_refused),
        RULE(a_full_buffer_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

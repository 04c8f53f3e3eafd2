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

/* ---- words of a child plan ---- */

struct words {
    struct bench *b;
    enum bt_code code;
};

static enum bt_code word_value(struct str word, struct doc *ret, void *self, struct bt_error *err)
{
    struct words *w = self;
    if (w->code != BT_OK) {
        return err_set(err, w->code, "the items cannot be read");
    }
    if (str_is(word, "item")) {
        *ret = doc_of(w->b, "{'name':'n','deep':{'x':[7,8]},'nothing':null}");
    } else if (str_is(word, "index")) {
        *ret = doc_of(w->b, "3");
    } else if (str_is(word, "previous")) {
        *ret = doc_of(w->b, "{'text':'before','data':{'v':5}}");
    } else if (str_is(word, "first")) {
        *ret = doc_of(w->b, "null");
    } else {
        *ret = (struct doc){NULL, 0};
    }
    return BT_OK;
}

static enum bt_code none_resolves(struct str step_id, struct doc *ret, void *self,
                                  struct bt_error *err)
{
    (void)ret;
    (void)self;
    return err_set(err, BT_NOT_FOUND, "step \"%.*s\" has no result", STR_ARG(step_id));
}

static const char *with_words(struct bench *b, const char *in, enum bt_code value_code,
                              enum bt_code expected)
{
    static const struct str words[] = {{"item", 4}, {"index", 5}, {"previous", 8}};
    struct words w = {b, value_code};
    const struct expand_scope scope = {words, 3, word_value};
    struct buf out;
    const char *json = "";
    buf_init(&out, 10000);
    const enum bt_code code =
        expand_params(doc_of(b, in), none_resolves, &scope, &w, &out, &b->err);
    if (code != expected) {
        fail_msg("%s: %s: %s", in, bt_code_name(code), b->err.msg);
    }
    json = code == BT_OK ? json_of(b, doc_from_buf(&out)) : b->err.msg;
    buf_done(&out);
    return json;
}

static void words_of_a_child_become_their_values(void **state)
{
    static const char *const rows[][2] = {
        {"'{{item}}'", "{'name':'n','deep':{'x':[7,8]},'nothing':null}"},
        {"'{{item.name}}'", "'n'"},
        {"'{{item.deep.x.1}}'", "8"},
        {"'{{item.nothing}}'", "null"},
        {"'{{index}} of {{item.name}}'", "'3 of n'"},
        {"'{{index}}'", "3"},
        {"'{{previous}}'", "{'v':5}"},
        {"'{{previous.v}}'", "5"},
        {"'{{previous.text}}'", "'before'"},
        {"'after {{previous}}'", "'after {\"v\":5}'"},
        {"'{{items}} {{other}}'", "'{{items}} {{other}}'"},
        {"['{{index}}',{'{{index}}':'{{index}}'}]", "[3,{'{{index}}':3}]"},
    };
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *json = with_words(b, rows[i][0], BT_OK, BT_OK);
        const char *want = rows[i][1];
        if (i == 9) {
            assert_non_null(strstr(json, "after {"));
        } else {
            assert_string_equal(json, want);
        }
    }
    assert_string_equal(with_words(b, "'{{item.gone}}'", BT_OK, BT_INVALID),
                        "{{item.gone}}: item has no member \"gone\"");
    assert_string_equal(with_words(b, "'{{index.x}}'", BT_OK, BT_INVALID),
                        "{{index.x}}: index has no member \"x\"");
    assert_string_equal(with_words(b, "'{{previous.gone}}'", BT_OK, BT_INVALID),
                        "{{previous.gone}}: previous has no member \"gone\"");
    assert_string_equal(with_words(b, "'{{item}}'", BT_IO, BT_IO),
                        "{{item}}: the items cannot be read");
    assert_string_equal(with_words(b, "'{{results.x}}'", BT_OK, BT_INVALID),
                        "{{results.x}}: step \"x\" has no result");
}

static enum bt_code no_round(struct str word, struct doc *ret, void *self, struct bt_error *err)
{
    const struct doc *value = self;
    (void)word;
    (void)err;
    *ret = *value;
    return BT_OK;
}

static void the_first_round_has_nothing_before_it(void **state)
{
    static const struct str words[] = {{"previous", 8}};
    const struct expand_scope scope = {words, 1, no_round};
    struct bench *b = *state;
    struct doc values[2] = {{NULL, 0}, {NULL, 0}};

    values[1] = doc_of(b, "null");
    for (int i = 0; i < 2; i++) {
        static const char *const texts[] = {"'{{previous}}'", "'{{previous.v}}'"};
        for (int k = 0; k < 2; k++) {
            struct buf out;
            buf_init(&out, 1000);
            assert_int_equal(expand_params(doc_of(b, texts[k]), none_resolves, &scope, &values[i],
                                           &out, &b->err),
                             BT_OK);
            assert_string_equal(json_of(b, doc_from_buf(&out)), "null");
            buf_done(&out);
        }
    }
}

/* ---- artifacts ---- */

static const struct {
    const char *result, *path, *value; /* NULL: the words of the error */
    const char *error;
} artifacts[] = {
    {"{'artifacts':[{'uri':'file:///tmp/a%20b','name':'f','bytes':3}]}", "artifact",
     "'file:///tmp/a%20b'", NULL},
    {"{'artifacts':[{'uri':'file:///tmp/a%20b','name':'f'}]}", "artifact.name", "'f'", NULL},
    {"{'artifacts':[{'uri':'file:///tmp/a%20b','name':'f'}]}", "artifact.path", "'/tmp/a b'", NULL},
    {"{'artifacts':[{'uri':'file:///tmp/a','name':'f'}]}", "artifact.uri", "'file:///tmp/a'", NULL},
    {"{'artifacts':[{'uri':'https://x/y'}]}", "artifact.path", NULL,
     "has no member \"artifact.path\""},
    {"{'artifacts':[{'name':'f'}]}", "artifact.path", NULL, "has no member \"artifact.path\""},
    {"{'artifacts':[{'uri':'file:///a'}]}", "artifacts.0.uri", "'file:///a'", NULL},
    {"{'artifacts':[{'uri':'file:///a'}]}", "artifactx", NULL, "has no member \"artifactx\""},
    {"{'artifacts':[{'uri':'file:///a'}]}", "artifact.gone", NULL,
     "has no member \"artifact.gone\""},
    {"{'artifacts':[]}", "artifact", NULL, "has no artifact; set artifact: true"},
    {"{'text':'x'}", "artifact.path", NULL, "has no artifact; set artifact: true"},
    {"{'text':'x'}", "artifac", NULL, "has no member \"artifac\""},
    {"{'data':{'artifact':'mine'},'artifacts':[{'uri':'file:///a'}]}", "artifact", "'mine'", NULL},
    {"{'data':null,'text':'t'}", "", "'t'", NULL},
    {"{'data':null,'text':null}", "", "''", NULL},
    {"{'data':7,'text':'t'}", "", "7", NULL},
    {"{'data':7,'text':'t'}", "text", "'t'", NULL},
    {"{'data':{'text':1},'text':'t'}", "text", "1", NULL},
    {"{}", "", "''", NULL},
};

static enum bt_code one_result(struct str step_id, struct doc *ret, void *self,
                               struct bt_error *err)
{
    const struct doc *result = self;
    if (!str_is(step_id, "x")) {
        return err_set(err, BT_NOT_FOUND, "no such step");
    }
    *ret = *result;
    return BT_OK;
}

static void parts_of_a_result_are_found_and_files_by_their_path(void **state)
{
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof artifacts / sizeof artifacts[0]; i++) {
        struct doc result = doc_of(b, artifacts[i].result);
        char text[100];
        (void)snprintf(text, sizeof text, "'{{results.x%s%s}}'",
                       artifacts[i].path[0] != 0 ? "." : "", artifacts[i].path);
        for (int again = 0; again < 2; again++) { /* the path's room is used again */
            struct buf out;
            char both[250];
            buf_init(&out, 1000);
            (void)snprintf(both, sizeof both, again == 0 ? "%s" : "[%s,%s]", text, text);
            const enum bt_code code =
                expand_params(doc_of(b, both), one_result, NULL, &result, &out, &b->err);
            assert_int_equal(code, artifacts[i].error == NULL ? BT_OK : BT_INVALID);
            if (code == BT_OK && again == 0) {
                assert_string_equal(json_of(b, doc_from_buf(&out)), artifacts[i].value);
            } else if (code == BT_OK) {
                (void)snprintf(both, sizeof both, "[%s,%s]", artifacts[i].value,
                               artifacts[i].value);
                assert_string_equal(json_of(b, doc_from_buf(&out)), both);
            } else {
                assert_non_null(strstr(b->err.msg, artifacts[i].error));
            }
            buf_done(&out);
        }
    }
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
        RULE(words_of_a_child_become_their_values),
        RULE(the_first_round_has_nothing_before_it),
        RULE(parts_of_a_result_are_found_and_files_by_their_path),
        RULE(a_full_buffer_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* An item is added to a list of a YAML text, and each other byte stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "protocol/limits.h"
#include "supervisor/config/yaml.h"
#include "supervisor/config/yaml_append.h"

static enum bt_code append(const char *text, struct buf *out, struct bt_error *err)
{
    cJSON *item = cJSON_CreateObject();
    enum bt_code code;

    (void)cJSON_AddStringToObject(item, "agentId", "new");
    (void)cJSON_AddStringToObject(item, "text", "a\n\nb\n");
    buf_init(out, 65536);
    code = yaml_append(str_from(text), "f.yaml", "agents", item, out, err);
    cJSON_Delete(item);
    return code;
}

#define ITEM(in) in "- agentId: new\n" in "  text: |\n" in "    a\n\n" in "    b\n"

static void an_item_is_added_and_each_other_byte_stays(void **state)
{
    static const struct {
        const char *before, *after;
    } cases[] = {
        {"", "agents:\n" ITEM("  ")},
        {"# mine\nplanner: keyword", "# mine\nplanner: keyword\n\nagents:\n" ITEM("  ")},
        {"agents: # none yet\nplanner: keyword\n",
         "agents: # none yet\n" ITEM("  ") "planner: keyword\n"},
        {"agents: []\n", "agents: \n" ITEM("  ")},
        {"agents:", "agents:\n" ITEM("  ")},
        {"agents:\n- agentId: a\n# of the next\nplanner: keyword\n",
         "agents:\n- agentId: a\n" ITEM("") "# of the next\nplanner: keyword\n"},
        {"agents:\n    - agentId: a   # one\n      # its own\n\nplanner: keyword\n",
         "agents:\n    - agentId: a   # one\n      # its own\n" ITEM(
             "    ") "\nplanner: keyword\n"},
        {"agents:\n  - agentId: a\n    settings:\n      list:\n      - 1\n\n  # two\n  - agentId: "
         "b\n"
         "\n# end\n",
         "agents:\n  - agentId: a\n    settings:\n      list:\n      - 1\n\n  # two\n  - agentId: "
         "b\n"
         "\n" ITEM("  ") "\n# end\n"},
        {"agents:\n  - agentId: a\n    text: |\n      planner: no\n\n      # no comment\nx: 1\n",
         "agents:\n  - agentId: a\n    text: |\n      planner: no\n\n      # no comment\n" ITEM(
             "  ") "x: 1\n"},
        {"agents:\n  - agentId: a", "agents:\n  - agentId: a\n" ITEM("  ")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bt_error err = {0};
        struct buf out;
        if (append(cases[i].before, &out, &err) != BT_OK) {
            fail_msg("%s: %s", cases[i].before, err.msg);
        }
        assert_string_equal(buf_cstr(&out), cases[i].after);
        buf_done(&out);
    }
}

static void what_cannot_take_a_line_is_refused(void **state)
{
    static const char *const cases[] = {
        "agents: [{agentId: a}]\n",
        "{\"agents\": []}",
        "{}",
        "agents:\n  [{agentId: a}]\n",
        "agents: text\n",
        "agents: {a: 1}\n",
        "planner: keyword\n...\n",
        "- a list\n",
        "agents: |\n  - agentId: a\n",
        "agents:\n  - agentId: a\n   x: 1",
        "a: 1\nagents: &x []\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bt_error err = {0};
        struct buf out;
        if (append(cases[i], &out, &err) == BT_OK) {
            fail_msg("%s became %s", cases[i], buf_cstr(&out));
        }
        assert_non_null(strstr(err.msg, "f.yaml"));
        buf_done(&out);
    }
}

static void documents_of_others_may_nest_deeper(void **state)
{
    char text[2 * YAML_DEPTH_MAX + 3];
    struct bt_error err = {0};

    (void)state;
    for (int depth = LIMIT_DEPTH; depth <= YAML_DEPTH_MAX + 1; depth++) {
        cJSON *tree = NULL;
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        assert_int_equal(yaml_read_deep(str_from(text), "f.yaml", &tree, &err),
                         depth <= YAML_DEPTH_MAX ? BT_OK : BT_LIMIT);
        cJSON_Delete(tree);
        tree = NULL;
        assert_int_equal(yaml_read(str_from(text), "f.yaml", &tree, NULL, &err),
                         depth <= LIMIT_DEPTH ? BT_OK : BT_LIMIT);
        cJSON_Delete(tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_is_added_and_each_other_byte_stays),
        cmocka_unit_test(what_cannot_take_a_line_is_refused),
        cmocka_unit_test(documents_of_others_may_nest_deeper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every JSON example of protocol/README.md is a message that the codecs accept, with no field they
 * do not know. */
#include <stdio.h>

#include "protocol/wire/msg_table.h"
#include "tests/support/cmocka.h"

enum { LINE_MAX_BYTES = 4096 };

union body {
    struct msg_agent_view widest;
    uint8_t bytes[2048];
};

static bool knows(enum msg_type type, struct str name)
{
    for (uint32_t i = 0; i < msg_table[type].n; i++) {
        if (str_eq(msg_table[type].fields[i].name, name)) {
            return true;
        }
    }
    return false;
}

static void read_part(struct msg_reader *r, enum msg_type type, const char *line)
{
    struct bt_error err = {.code = BT_OK};
    union body body;

    assert_true(msg_table[type].size <= sizeof body);
    if (msg_read(r, type, &body, &err) != BT_OK) {
        fail_msg("%s: %s: %s", line, msg_table[type].name, err.msg);
    }
}

static void check_example(const char *line)
{
    struct bt_error err = {.code = BT_OK};
    enum msg_type base = MSG_envelope;
    enum msg_type type;
    struct doc_cursor c;
    struct doc_head map;
    struct msg_reader r;
    struct doc body;

    if (msg_reader_init(&r, line, strcspn(line, "\n"), LINE_MAX_BYTES, &err) != BT_OK) {
        fail_msg("%s: %s", line, err.msg);
    }
    body = (struct doc){r.body, r.len};
    type = msg_type_from_wire(doc_string(doc_get(body, STR_LIT("type"))));
    if (doc_get(body, STR_LIT("v")).ptr == NULL) {
        base = doc_get(body, STR_LIT("seq")).ptr == NULL ? MSG_heartbeat : MSG_event;
    }
    if (str_is(doc_string(doc_get(body, STR_LIT("type"))), "error")) {
        type = base;
    }
    if (type == MSG_TYPE_COUNT) {
        fail_msg("%s: no such type", line);
    }
    read_part(&r, base, line);
    read_part(&r, type, line);
    c = doc_cursor(body);
    assert_true(doc_next(&c, &map));
    for (uint32_t i = 0; i < map.n; i++) {
        struct str name = doc_string(doc_skip(&c));
        (void)doc_skip(&c);
        if (!knows(base, name) && !knows(type, name)) {
            fail_msg("%s: unknown field %.*s", line, STR_ARG(name));
        }
    }
    msg_reader_done(&r);
}

static void every_example_of_the_readme_is_a_message(void **state)
{
    static char line[LINE_MAX_BYTES];
    FILE *f = fopen(README_FILE, "r");
    bool inside = false;
    int examples = 0;

    (void)state;
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "```", 3) == 0) {
            inside = strncmp(line, "```json", 7) == 0;
        } else if (inside) {
            check_example(line);
            examples++;
        }
    }
    (void)fclose(f);
    assert_true(examples >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_of_the_readme_is_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

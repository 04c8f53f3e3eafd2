/* The pages of the protocol agree with the code: every JSON example is a message that the codecs
 * accept, without a field that they do not know, and every message that is sent is on a page. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/wire/catalog.h"
#include "protocol/wire/msg_table.h"
#include "tests/support/cmocka.h"

enum { EXAMPLE_MAX_BYTES = 4096, PAGE_MAX_BYTES = 256 * 1024 };

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

static void read_part(struct msg_reader *r, enum msg_type type, const char *example)
{
    struct bt_error err = {.code = BT_OK};
    union body body;

    assert_true(msg_table[type].size <= sizeof body);
    if (msg_read(r, type, &body, &err) != BT_OK) {
        fail_msg("%s: %s: %s", example, msg_table[type].name, err.msg);
    }
}

/* The payload of an event: its type, or that of the group of types that share one. */
static enum msg_type event_type(struct str wire)
{
    enum msg_type type = msg_type_from_wire(wire);

    for (unsigned i = 0; type == MSG_TYPE_COUNT && i < MSG_TYPE_COUNT; i++) {
        const size_t len = strlen(msg_table[i].wire);
        if (len > 0 && len - 1 <= wire.len && msg_table[i].wire[len - 1] == '*' &&
            memcmp(wire.ptr, msg_table[i].wire, len - 1) == 0) {
            type = (enum msg_type)i;
        }
    }
    return type;
}

static void check_example(const char *example)
{
    struct bt_error err = {.code = BT_OK};
    enum msg_type base = MSG_envelope;
    enum msg_type type;
    struct doc_cursor c;
    struct doc_head map;
    struct msg_reader r;
    struct doc body;

    if (msg_reader_init(&r, example, strlen(example), EXAMPLE_MAX_BYTES, &err) != BT_OK) {
        fail_msg("%s: %s", example, err.msg);
    }
    body = (struct doc){r.body, r.len};
    if (doc_get(body, STR_LIT("v")).ptr == NULL) {
        base = doc_get(body, STR_LIT("seq")).ptr == NULL ? MSG_heartbeat : MSG_event;
    }
    type = event_type(doc_string(doc_get(body, STR_LIT("type"))));
    if (str_is(doc_string(doc_get(body, STR_LIT("type"))), "error")) {
        type = base;
    }
    type = type == MSG_empty ? MSG_lane_hello_ok : type; /* the same type with a field more */
    if (type == MSG_TYPE_COUNT) {
        fail_msg("%s: no such type", example);
    }
    read_part(&r, base, example);
    read_part(&r, type, example);
    c = doc_cursor(body);
    assert_true(doc_next(&c, &map));
    for (uint32_t i = 0; i < map.n; i++) {
        struct str name = doc_string(doc_skip(&c));
        (void)doc_skip(&c);
        if (!knows(base, name) && !knows(type, name)) {
            fail_msg("%s: unknown field %.*s", example, STR_ARG(name));
        }
    }
    msg_reader_done(&r);
}

/* How many objects and lists are open after the line; no string of an example holds a bracket. */
static int depth_after(int depth, const char *line)
{
    for (; *line != 0; line++) {
        depth += *line == '{' || *line == '[' ? 1 : 0;
        depth -= *line == '}' || *line == ']' ? 1 : 0;
    }
    return depth;
}

/* Examples stand in blocks of ```json; one may have several lines. Returns how many there are. */
static int check_examples(const char *path)
{
    static char example[EXAMPLE_MAX_BYTES];
    char line[1024];
    FILE *f = fopen(path, "r");
    bool inside = false;
    int depth = 0;
    int examples = 0;

    if (f == NULL) {
        fail_msg("%s cannot be read", path);
    }
    example[0] = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "```", 3) == 0) {
            assert_int_equal(depth, 0);
            inside = strncmp(line, "```json", 7) == 0;
        } else if (inside) {
            assert_true(strlen(example) + strlen(line) < sizeof example);
            strncat(example, line, sizeof example - strlen(example) - 1);
            depth = depth_after(depth, line);
            if (depth == 0) {
                check_example(example);
                example[0] = 0;
                examples++;
            }
        }
    }
    (void)fclose(f);
    return examples;
}

static void every_example_of_the_pages_is_a_message(void **state)
{
    (void)state;
    assert_true(check_examples(WIRE_PAGE) >= 20);
    assert_true(check_examples(EVENTS_PAGE) >= 4);
}

/* ---- what must be on the pages ---- */

static char *read_page(const char *path)
{
    char *page = calloc(1, PAGE_MAX_BYTES);
    FILE *f = fopen(path, "r");

    if (page == NULL || f == NULL) {
        fail_msg("%s cannot be read", path);
    } else {
        const size_t n = fread(page, 1, PAGE_MAX_BYTES - 1, f);
        assert_true(n > 0 && n < PAGE_MAX_BYTES - 1);
        (void)fclose(f);
    }
    return page;
}

static bool is_sent_as(const struct msg_desc *desc, const char *prefix)
{
    return strncmp(desc->name, prefix, strlen(prefix)) == 0;
}

static bool is_request_or_answer(unsigned type)
{
    for (uint32_t i = 0; i < catalog_requests_n; i++) {
        if (catalog_requests[i].type == type || catalog_requests[i].answer == type) {
            return true;
        }
    }
    return false;
}

static void every_message_that_is_sent_is_on_a_page(void **state)
{
    char *wire = read_page(WIRE_PAGE);
    char *events = read_page(EVENTS_PAGE);
    char *fields = read_page(MESSAGES_PAGE);

    (void)state;
    for (unsigned i = 0; i < MSG_TYPE_COUNT; i++) {
        const struct msg_desc *desc = &msg_table[i];
        const bool is_event = is_sent_as(desc, "ev_") || is_sent_as(desc, "heartbeat");
        char name[80];
        char title[80];
        (void)snprintf(name, sizeof name, "`%s`", desc->wire);
        (void)snprintf(title, sizeof title, "\n### %s\n", desc->wire);
        if (desc->wire[0] == 0 || is_sent_as(desc, "rec_") || strchr(desc->wire, '*') != NULL) {
            continue; /* a part, a row of the journal, or several events that are named apart */
        }
        if (is_event ? strstr(events, title) == NULL
                     : strstr(wire, name) == NULL || strstr(fields, title) == NULL) {
            fail_msg("%s is on no page", desc->wire);
        }
        if (!is_event && !is_request_or_answer(i)) {
            fail_msg("%s is neither a request nor an answer in messages.def", desc->wire);
        }
    }
    free(wire);
    free(events);
    free(fields);
}

static void an_answer_is_named_after_its_request(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < catalog_requests_n; i++) {
        const char *type = msg_wire_type(catalog_requests[i].type);
        const char *answer = msg_wire_type(catalog_requests[i].answer);
        char wanted[80];
        (void)snprintf(wanted, sizeof wanted, "%s.ok", type);
        if (strcmp(answer, wanted) != 0 && strcmp(answer, "ok") != 0 &&
            strncmp(type, "step.", 5) != 0) {
            fail_msg("%s is answered by %s", type, answer);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_of_the_pages_is_a_message),
        cmocka_unit_test(every_message_that_is_sent_is_on_a_page),
        cmocka_unit_test(an_answer_is_named_after_its_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

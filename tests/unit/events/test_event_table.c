/* The table of records, the messages and the page of the events agree. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/wire/msg_table.h"
#include "tests/support/cmocka.h"

enum { PAGE_MAX_BYTES = 256 * 1024 };

static const struct {
    const char *wire;
    bool is_public;
    enum msg_type message;
} records[] = {
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    {wire, is_public, MSG_##message},
#include "supervisor/core/run/record.def"
};

enum { RECORDS_N = sizeof records / sizeof records[0] };

static bool is_payload(unsigned type)
{
    for (unsigned i = 0; i < RECORDS_N; i++) {
        if (records[i].message == type) {
            return true;
        }
    }
    return false;
}

static void every_event_and_journal_message_is_the_payload_of_a_record(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MSG_TYPE_COUNT; i++) {
        const struct msg_desc *desc = &msg_table[i];
        const bool wanted = desc->wire[0] != 0 && (strncmp(desc->name, "ev_", 3) == 0 ||
                                                   strncmp(desc->name, "rec_", 4) == 0);
        if (is_payload(i) != wanted) {
            fail_msg("%s: %s", desc->name, wanted ? "no record has it" : "is no payload");
        }
    }
}

static void the_payload_of_an_event_has_its_wire_type(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RECORDS_N; i++) {
        const char *wire = msg_table[records[i].message].wire;
        const size_t len = strcspn(wire, "*");
        if (records[i].is_public && (strncmp(records[i].wire, wire, len) != 0 ||
                                     (wire[len] == 0 && records[i].wire[len] != 0))) {
            fail_msg("%s has the payload of %s", records[i].wire, wire);
        }
    }
}

static void every_event_is_on_the_page(void **state)
{
    char *page = calloc(1, PAGE_MAX_BYTES);
    FILE *f = fopen(EVENTS_PAGE, "r");

    (void)state;
    assert_non_null(page);
    assert_non_null(f);
    assert_in_range(fread(page, 1, PAGE_MAX_BYTES - 1, f), 1, PAGE_MAX_BYTES - 2);
    (void)fclose(f);
    for (unsigned i = 0; i < RECORDS_N; i++) {
        char title[80];
        (void)snprintf(title, sizeof title, "\n### %s\n", records[i].wire);
        if ((strstr(page, title) != NULL) != records[i].is_public) {
            fail_msg("%s: %s", records[i].wire,
                     records[i].is_public ? "is not on the page" : "is no event");
        }
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_and_journal_message_is_the_payload_of_a_record),
        cmocka_unit_test(the_payload_of_an_event_has_its_wire_type),
        cmocka_unit_test(every_event_is_on_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

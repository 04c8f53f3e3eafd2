/* Prints the tables of protocol/MESSAGES.md. A lint test compares them with the file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/wire/msg_table.h"

enum group { GROUP_MESSAGES, GROUP_EVENTS, GROUP_RECORDS, GROUP_PARTS, GROUP_COUNT };

static enum group group_of(const struct msg_desc *desc)
{
    if (strcmp(desc->name, "event") == 0 || strcmp(desc->name, "heartbeat") == 0 ||
        (strncmp(desc->name, "ev_", 3) == 0 && desc->wire[0] != 0)) {
        return GROUP_EVENTS;
    }
    if (strncmp(desc->name, "rec_", 4) == 0) {
        return GROUP_RECORDS;
    }
    return desc->wire[0] == 0 ? GROUP_PARTS : GROUP_MESSAGES;
}

static void print_max(uint64_t max)
{
    if (max == UINT64_MAX) {
        (void)printf("2^64-1");
    } else if (max == INT64_MAX) {
        (void)printf("2^63-1");
    } else {
        (void)printf("%" PRIu64, max);
    }
}

static void print_kind(const struct msg_field *f)
{
    const char *part = f->part == MSG_TYPE_COUNT ? "" : msg_table[f->part].name;

    switch (f->kind) {
    case FIELD_STR:
        (void)printf("string, %" PRIu64 " bytes", f->max);
        break;
    case FIELD_U64:
        (void)printf("integer, 0 to ");
        print_max(f->max);
        break;
    case FIELD_I64:
        (void)printf("integer, 64 bits with sign");
        break;
    case FIELD_F64:
        (void)printf("number");
        break;
    case FIELD_BOOL:
        (void)printf("true or false");
        break;
    case FIELD_DOC:
        (void)printf("any value, %" PRIu64 " bytes as msgpack", f->max);
        break;
    case FIELD_SUB:
        (void)printf("map: `%s`", part);
        break;
    case FIELD_LIST:
        (void)printf("list of `%s`, %u elements", part, (unsigned)f->list_max);
        break;
    case FIELD_STRS:
        (void)printf("list of strings, %u elements of %" PRIu64 " bytes", (unsigned)f->list_max,
                     f->max);
        break;
    case FIELD_KIND_COUNT:
        break;
    }
}

static void print_message(const struct msg_desc *desc)
{
    bool is_sent = desc->wire[0] != 0;

    (void)printf("\n### %s\n\n", is_sent ? desc->wire : desc->name);
    if (desc->n == 0) {
        (void)printf("No fields of its own.\n");
        return;
    }
    (void)printf("| field | value, at most | |\n|---|---|---|\n");
    for (uint32_t i = 0; i < desc->n; i++) {
        (void)printf("| `%.*s` | ", STR_ARG(desc->fields[i].name));
        print_kind(&desc->fields[i]);
        (void)printf(" | %s |\n", desc->fields[i].required ? "required" : "");
    }
}

int main(void)
{
    static const char *const titles[GROUP_COUNT] = {
        [GROUP_MESSAGES] = "Requests and answers (beside the fields of `envelope`)",
        [GROUP_EVENTS] = "Events (beside the fields of `event`)",
        [GROUP_RECORDS] = "Records of the journal that are never published",
        [GROUP_PARTS] = "Parts",
    };

    for (unsigned group = 0; group < GROUP_COUNT; group++) {
        (void)printf("\n## %s\n", titles[group]);
        for (unsigned type = 0; type < MSG_TYPE_COUNT; type++) {
            if ((unsigned)group_of(&msg_table[type]) == group) {
                print_message(&msg_table[type]);
            }
        }
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

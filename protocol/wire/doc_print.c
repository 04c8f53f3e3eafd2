#include "protocol/wire/doc_print.h"

#include <inttypes.h>
#include <stdio.h>

enum { COLUMNS = 100 };

void doc_print_item(const char *head, const char *text)
{
    size_t column = strlen(head) + 3;

    (void)printf("- %s:", head);
    while (*text != 0) {
        const size_t word = strcspn(text, " ");
        if (column + 1 + word > COLUMNS) {
            (void)printf("\n ");
            column = 1;
        }
        (void)printf(" %.*s", (int)word, text);
        column += 1 + word;
        text += word + (text[word] == ' ' ? 1 : 0);
    }
    (void)printf("\n");
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

void doc_print_fields(const struct msg_desc *desc)
{
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

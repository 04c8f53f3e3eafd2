/*
 * Data on stdout in the form of --output, and errors in the same form. The settings hold for the
 * process: main sets them once. One thread.
 */
#ifndef CLI_FORM_H
#define CLI_FORM_H

#include "protocol/base/str.h"
#include "supervisor/cli/common/cli.h"

struct buf;
struct cJSON;

enum cli_form {
    CLI_TABLE, /* text for people */
    CLI_JSON,  /* one value on a line */
    CLI_JSONL, /* the items of a list, one a line */
    CLI_YAML   /* a document a value, separated by --- */
};

/* The form of that name; -1 when there is none. */
int cli_form_find(const char *name);
/* The names, for an error: "json, jsonl, table or yaml". */
extern const char cli_form_names[];
void cli_form_set(enum cli_form as);
/* Whether data was printed since the last cli_list_item. */
bool cli_has_printed(void);

/* Appends JSON text with its unsafe characters as \uXXXX: the same value, on a terminal as well. */
void cli_put_json(struct buf *out, struct str json);

/* Several values that make one list, each printed by cli_print_json: with --json they come as one
 * array. */
void cli_list_begin(void);
/* The next value of the list begins. */
void cli_list_item(void);
void cli_list_end(void);
#endif

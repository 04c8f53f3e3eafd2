/*
 * The file of an export: lines of JSON. Each begins with its number and a hash over all lines up to
 * it, so that a line that was changed, moved or lost is found, and the last line says that nothing
 * follows.
 */
#ifndef CLI_STORAGE_LINES_H
#define CLI_STORAGE_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "protocol/base/str.h"
#include "supervisor/cli/common/cli.h"

enum {
    EXPORT_FORMAT = 1,
    EXPORT_HASH_LEN = 64,
    EXPORT_HASH_SHOWN = 16,
    /* Of a line in a file: half a megabyte from the daemon, each of its characters escaped. */
    EXPORT_LINE_MAX = 4 * 1024 * 1024
};

struct export_sum {
    uint64_t lines;
    char hash[EXPORT_HASH_LEN + 1]; /* of the lines so far; "" at first */
};

/* Adds a line without its number and hash. False: out of memory, which is reported. */
bool export_sum_add(struct export_sum *sum, struct str body);
/* Writes a line {...} with its number and hash. */
bool export_put(FILE *to, struct export_sum *sum, struct str body);

/* A file that is read. */
struct export_file {
    FILE *from;
    const char *name;
    struct export_sum sum;
    char *line; /* the last one that was read */
    bool ended; /* by its last line */
    bool again; /* it was read before, and was as it was written */
};
/* The next line without its number and hash; {NULL, 0} after the last one. False: the file is not
 * as it was written, which is reported with the number of the line. */
bool export_next(struct export_file *f, struct str *ret_body);
/* The kind of a line. */
bool export_is(struct str body, const char *kind);
/* Back to the first line; it was read to its end. */
bool export_rewind(struct export_file *f);

struct cJSON;
/* Asks the daemon for lines, slice by slice: those of journal.export with these fields, which stay
 * the caller's. */
enum cli_exit export_ask(struct cli *cli, const struct cJSON *fields,
                         bool (*fn)(struct str body, void *self), void *self);
#endif

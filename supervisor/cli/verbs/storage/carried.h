/*
 * The files of results that go with an export: DIR/PLAN/FILE. The results in its lines say which
 * files there are, with length and SHA-256; lines have no files.
 */
#ifndef CLI_STORAGE_CARRIED_H
#define CLI_STORAGE_CARRIED_H

#include "protocol/artifact/artifact.h"
#include "protocol/base/arena.h"
#include "protocol/base/map.h"
#include "supervisor/cli/common/cli.h"

struct carried {
    char here[ARTIFACT_PATH_MAX + 1]; /* the daemon's directory; "" = it is not known */
    const char *from; /* the directory that has the files; NULL = no files are asked for */
    bool counts;      /* then: those that are not here are counted */
    const char *to;   /* where they go; NULL = they are compared only */
    struct buf blob;  /* the result whose lines come */
    uint64_t blob_n;
    struct carried_file *files; /* of the plan whose lines come */
    uint32_t n, cap;
    struct map seen;  /* PLAN/FILE, below `to` or compared */
    struct map plans; /* that the lines have */
    struct map named; /* that have one of the files */
    struct arena arena;
    uint64_t sound, gone, bad, missing;
};

/*
 * The directory of --artifacts and that of the daemon, `out`: from the daemon's into the other one,
 * which is made; else it must be there. Without the option nothing is carried. An error is
 * reported.
 */
enum cli_exit carried_begin(struct carried *c, struct cli *cli, bool out);
/* A line of the export. False: out of memory, which is reported. */
bool carried_line(struct carried *c, struct str body);
/* The plan is complete: its files are compared and copied. A file that is missing was not kept; one
 * that is not as its result says is reported and counted as bad. False: the copy failed, which is
 * reported. */
bool carried_plan(struct carried *c);
/* From the first line on again, and from now on they are copied, too, or counted: after a
 * comparison. */
void carried_again(struct carried *c, const char *to);
/* The plan is not taken. */
void carried_forget(struct carried *c);
/* Says what was copied, which plans have files of plans that no line had, and what is missing here
 * without --artifacts. */
void carried_report(struct carried *c);
void carried_done(struct carried *c);
#endif

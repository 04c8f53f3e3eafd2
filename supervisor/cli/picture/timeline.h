/* When the steps of a plan waited and ran, as bars over the time. Pure, as graph.h. */
#ifndef PICTURE_TIMELINE_H
#define PICTURE_TIMELINE_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "supervisor/cli/picture/look.h"

/* Of what is shorter than a character, the later kind wins. */
enum timeline_kind {
    TIMELINE_QUEUED,  /* it could run, but no agent has it */
    TIMELINE_WAITING, /* for a time, a signal, or the next round of a loop */
    TIMELINE_BACKOFF, /* after an attempt that failed */
    TIMELINE_ASKED,   /* an agent is asked about it: a gate, a replan */
    TIMELINE_RUNNING,
    TIMELINE_ADOPTED, /* it went on while the daemon was away */
    TIMELINE_PERSON,  /* a person must decide */
    TIMELINE_KINDS
};

/* Of a row, in milliseconds from the beginning: 0 <= from <= to <= length_ms. */
struct timeline_span {
    uint32_t row;
    enum timeline_kind kind;
    double from, to;
};

/* Its texts may be any bytes. */
struct timeline_row {
    const char *name;
    const char *status; /* of the step; "" = none */
    const char *note;   /* after the bar; may be "" */
};

struct timeline {
    const char *title;
    const struct timeline_row *rows;
    uint32_t n_rows;
    const struct timeline_span *spans; /* in any order */
    uint32_t n_spans;
    double length_ms;
};

/* "queued", "running", ... */
const char *timeline_kind_name(enum timeline_kind kind);
/* Each appends one form. BT_NOMEM, or BT_LIMIT for out's cap. */
BT_MUST_CHECK enum bt_code timeline_text(const struct timeline *t, const struct look *look,
                                         struct arena *arena, struct buf *out,
                                         struct bt_error *err);
BT_MUST_CHECK enum bt_code timeline_svg(const struct timeline *t, struct buf *out,
                                        struct bt_error *err);
#endif

/* One readable line for each event of the catalogue. Pure. */
#ifndef CLI_EVENT_LINE_H
#define CLI_EVENT_LINE_H

#include <stdbool.h>

#include "protocol/base/buf.h"

struct cJSON;

/*
 * Appends what the event says, without its type: one line, no control characters, texts of others
 * cut to a few hundred bytes. An event of a type that is not known here is told by its plain
 * members.
 */
void event_line(const struct cJSON *event, struct buf *out);
/* What `run` calls the event ("replanning"); NULL when it is about a step's course alone, which the
 * tree shows. */
const char *event_title(const struct cJSON *event);
#endif

/* One line of text for each event type. Pure. */
#ifndef CLI_EVENT_LINE_H
#define CLI_EVENT_LINE_H

#include <stdbool.h>

#include "protocol/base/buf.h"

struct cJSON;

/*
 * Appends the line without the event's type: no control characters, long texts cut. An unknown
 * event type is shown by its plain members.
 */
void event_line(const struct cJSON *event, struct buf *out);
/* The types of all events; ends with NULL. */
const char *const *event_types(void);
/* The name of the event in `run` ("replanning"); NULL for events that the tree of steps shows. */
const char *event_title(const struct cJSON *event);
#endif

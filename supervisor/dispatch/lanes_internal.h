/* The parts of lanes.c: the control lane (lanes_control.c) and the trunk (trunk.c). */
#ifndef DISPATCH_LANES_INTERNAL_H
#define DISPATCH_LANES_INTERNAL_H

#include "protocol/wire/msg.h"
#include "supervisor/dispatch/lanes.h"

void lanes_feed(struct engine *engine, struct core_event *ev);
/* CORE_LANE_UP or CORE_LANE_DOWN of a credit. */
void lanes_feed_lane(struct engine *engine, const struct lane *lane, enum core_event_type type);
/* CORE_LOST: the attempt on the lane has no answer. sent: as in LINK_LOST. */
struct core_event lanes_lost(const struct lane *lane, bool sent);
/* The answer to what is outstanding on a credit. */
void lanes_work_answered(struct engine *engine, struct lane *lane, struct msg_reader *r);
/* The attempt on the credit was answered, and its result is lost for good. The credit is down
 * then. */
void lanes_fail_unreadable(struct engine *engine, struct lane *lane, const struct bt_error *why);
/* What came over the pipe is nothing that can be read: it costs the pipe, and several in a row the
 * instance. */
void lanes_unreadable(struct engine *engine, struct lane *pipe, const struct bt_error *why);

void lanes_control_answered(struct engine *engine, struct lane *lane, struct msg_reader *r);
/* CORE_PROBED: whether the ping was answered. */
struct core_event lanes_probed(struct lane_instance *in, bool ok);
/* Sends what waits for the control lane, if it is free. */
void lanes_send_control(struct engine *engine, struct lane_instance *in);
#endif

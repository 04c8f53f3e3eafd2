/* What is wrong with a line of cron, in a sentence that names the place and what would be right. */
#ifndef SCHEDULE_CRON_TEXT_H
#define SCHEDULE_CRON_TEXT_H

#include "protocol/base/err.h"
#include "supervisor/schedule/rules/cron.h"

/* Fills *err; returns BT_INVALID. */
enum bt_code cron_error(struct str line, const struct cron_problem *why, struct bt_error *err);
#endif
